"""Posteriors of a log-density of your own."""

from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base import weights as weighting
from .._base.callbacks import Progress, with_callbacks
from .._base.threads import one_blas_thread
from .._base.typing import ArrayLike, MatrixLike, RandomState
from .._base.validation import (
    Parameters,
    central,
    check_count,
    check_weights,
    drop_unweighted,
    is_whole,
)
from ..densities.density import density_target
from ..densities.fit import sample_density
from ..estimators._chosen import chosen_pieces, origin_of
from ..estimators._densities import DensityEstimator, dense_data
from ..estimators._fit_warnings import warn_of_unused, warn_untrustworthy
from ..estimators._prior_conflicts import warn_of_unit_scales
from ..estimators._signature import with_parameters_of
from ..estimators._store import all_or_nothing, check_draw_store
from ..posterior import Posterior
from ..priors import PositivePrior
from ..priors.columns import SCALE
from ..priors.families import POSITIVE_PRIORS, resolve, resolve_positive
from ..priors.table import starting_point
from ..recipe.crossing import judged
from .derivatives import (
    WrongDerivative,
    check_calls,
    check_function,
    check_lengths,
    named_errors,
    of_shape,
)
from .frozen_values import frozen
from .growth import growth_of_density
from .names import check_names
from .regressor import _has
from .row_law import differences_row_law_of, row_law_of

__all__ = ["CustomDensity"]

# Number of points around the middle of the prior from which the first searches for modes start by
# default: as many as WORK = rows x parameters x points allows, within these limits.
FEWEST, MOST = 4, 20
WORK = 2e5
FIRST_ROWS = 5  # rows whose log-likelihoods alone are compared with those beside each other
# Functions are called as plain Python for this number of rows, evenly spaced, and for the smallest
# and largest values of this number of columns.
ROWS_CALLED, COLUMNS_CALLED = 30, 10


def _around_the_middle(law, table, n_rows, seed):
    """Yield arrays of points z, (n_points, D): the middle of the prior, and pairs around it.

    The points of a pair are on opposite sides of the middle, so that of two modes that are mirror
    images of each other both have points nearby. All arrays but the first have `MOST` points, every
    other one of which is twice as far away.
    """
    rng, middle = streams.of_recipe(seed), starting_point(table)
    n = int(np.clip(WORK / (n_rows * law.n_extra), FEWEST, MOST)) // 2
    spread = np.where(law.positive, 1.0, np.minimum(table[:, SCALE], 1e3))
    normals = rng.standard_normal((n, law.n_extra))
    yield np.vstack([middle, middle + spread * np.vstack([normals, -normals])])
    farther = 1.0 + np.arange(MOST // 2)[:, None] % 2
    while True:
        away = spread * farther * rng.standard_normal((MOST // 2, law.n_extra))
        yield middle + np.vstack([away, -away])


def _telling(rows):
    """Return some tens of rows: evenly spaced ones, and those with extreme values of a column."""
    n, width = rows.shape
    columns = np.linspace(0, width - 1, min(width, COLUMNS_CALLED)).astype(int)
    chosen = [np.linspace(0, n - 1, min(n, ROWS_CALLED)).astype(int)]
    chosen += [(rows[:, j].argmin(), rows[:, j].argmax()) for j in columns]
    return rows[np.unique(np.concatenate(chosen))]


def _places(law, starts, rows):
    """Return pairs (theta, row) for some tens of rows, at the points z of `starts` in turn."""
    thetas = cycle(law.natural(starts))
    return list(zip(thetas, _telling(rows), strict=False))


def _is_positive(prior):
    """Whether a prior, a string or an object, says that its parameter is positive."""
    return isinstance(prior, PositivePrior) or (
        isinstance(prior, str) and prior in POSITIVE_PRIORS and prior != "flat"
    )


class CustomDensity(DensityEstimator):
    r"""Bayesian model with a log-likelihood of your own, a function of parameters and a row.

    .. math::

        \log p(\theta \mid \text{rows}) = \log p(\theta) + \sum_i w_i f(\theta, \text{row}_i)
        + \text{const}.

    The function f only has to be smooth. By default the posterior mode is looked for from several
    points, and then Hamiltonian Monte Carlo runs on all rows, in coordinates that are scaled by the
    Hessian at the mode. If there are several modes, between which chains may not cross, independent
    draws around them are weighted instead, as far as their weights can be trusted. All other
    samplers can be chosen, with all stochastic gradients except "taylor".

    Parameters
    ----------
    log_density : callable
        ``f(theta, row) -> float``, the log-likelihood of one row, in Python that Numba can compile.
        `theta` is an array of the parameters in the order of `parameters`; `row` is a row of X,
        followed by y if `fit` gets one. With `backend` "jax" or "torch" it is ``f(theta, rows)``, a
        function of arrays of that library that returns the log-likelihood of each of a batch of
        rows, (n_rows,); `fit` then compares the gradient that the library computes with differences
        of f.
    parameters : dict of str to prior
        The parameters by name, each with its prior: a string, an object of `skbayes_sg.priors`, or
        a pair ``(prior, n)`` for n parameters of that name. A prior for positive numbers, such as
        "half_normal", makes the parameter positive. A string stands for a prior of scale 1 in the
        parameter's own unit, whatever the rows are: "normal" is N(0, 1). Give a scale to parameters
        of another size, ``Normal(scale=1000.0)``. Names must be identifiers.
    derivative : callable, optional
        ``derivative(theta, row)``, the derivatives of f in all parameters, an array or a tuple.
        `fit` compares it with f. If None, derivatives are computed by complex steps if f accepts
        complex numbers, and by central differences otherwise. It must be None for "jax" and
        "torch".
    backend : {"numba", "jax", "torch"}, default="numba"
        The library in which `log_density` is written.
    start : dict or array-like of shape (n_parameters,) or (n_starts, n_parameters), optional
        Where the search for the mode begins: a dict with the values of all parameters by name, each
        a number or an array of n numbers; or an array of values in the order of `parameters`, with
        one row for each starting point. By default these are the middle of the prior and 4 to 20
        points around it, the fewer, the more rows and parameters there are, and further ones, up to
        500 in all, as long as modes are found that no other search has found.
    mean : callable, optional
        ``mean(theta, X)``, the expectation of y for each row of X under one draw, which `predict`
        needs.
    sample : callable, optional
        ``sample(rng, theta, X)``, a random y for each row of X under one draw, which `sample_y` and
        `predict_interval` need.
    sampler : str or object, default="auto"
        "hmc", "mala", "importance" (independent draws around the modes, corrected by importance
        weights), "sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht", or an object of
        `skbayes_sg.dynamics`. "auto" is "importance" if several modes are found, nothing but
        numbers of chains and draws is given, and the weights can be trusted; otherwise "hmc", or
        "baoab" if a batch size, a subsampling scheme or a gradient other than "full" is given. If a
        sampler and a step size are both given, chains begin at `start`, without a search for the
        mode.
    gradient : str or Gradient, default="auto"
        "minibatch", "svrg", "saga" (which remembers a gradient for each row), "control_variate" or
        "full". "auto" is "minibatch"; or "svrg" if the step size is "auto" as well, and chains are
        then predicted to need less time.
    subsampling : str or Subsampling, default="auto"
        "uniform", "uniform_without_replacement" or "blocks". "auto" is "uniform".
    batch_size : "auto", int or float, default="auto"
        Number of rows in each step of a stochastic gradient, or their share of all rows; "auto" is
        100, or a tenth of at most 100 rows if a gradient or a scheme is given; or all rows if the
        step size is "auto" as well, and chains then need less time.
    step_size : "auto", float or Schedule, default="auto"
        The step size h in the coordinates of the chain. For stochastic gradients "auto" follows
        from the measured noise of the gradient.
    preconditioner : {"auto", "hessian", "diagonal", None}, default="auto"
        The coordinates in which chains move: scaled by the Hessian at the mode ("hessian"), by its
        diagonal ("diagonal"), or those of the parameters themselves (None). "auto" is "hessian" up
        to 400 parameters and "diagonal" for more, but None if a sampler and a step size are both
        given.
    n_draws : int, default=1000
        Number of draws that each chain keeps.
    n_chains : int, default=4
        Number of independent chains.
    n_warmup : "auto" or int, default="auto"
        Number of steps (for "hmc", trajectories) before the first draw.
    thin : "auto" or int, default="auto"
        Number of steps (for "hmc", trajectories) from one draw to the next.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.
    n_jobs : int or None, default=None
        Number of threads for chains and for passes over the rows.

    Attributes
    ----------
    posterior_ : Posterior
        All draws, in variables with the names of `parameters`.
    derivatives_ : str
        How derivatives of the function were computed: "given", "complex step", "finite difference",
        "jax" or "torch".
    sampler_, gradient_, subsampling_, preconditioner_ : str
        The choices made for "auto", or those given.
    batch_size_, step_size_, thin_, n_warmup_, n_steps_ : int or float
        The numbers chosen for "auto", or those given; `n_steps_` is the number of steps, or
        trajectories, of each chain.
    diagnostics_, seconds_ : dict of str to float
        Measurements of the draws, among them the smallest effective sample size, the largest R-hat
        and, for "importance", Pareto k of the weights ("pareto_k", reliable below 0.7); and the
        wall time of each part of the fit in seconds.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, if X has names.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted. It is both a `ValueError` and a
        `TypeError`.
    ValueError
        By `fit`, for data that cannot be used, for a derivative that is not that of the function,
        and for a density that is not finite where the chains begin, or grows without bound, as it
        does if its sign is wrong.
    SamplerDivergedError
        By `fit`, if a chain leaves the region in which the posterior can have its mass.

    Warns
    -----
    SamplerConvergenceWarning, StepSizeWarning, MultimodalPosteriorWarning
        If the draws cannot be trusted.
    PriorConflictWarning
        If a prior that is given as a string holds a parameter back.

    See Also
    --------
    CustomRegressor : Likelihoods of linear predictors, with faster fits and more diagnostics.

    Examples
    --------
    Exponential decay to a level that is not known:

    >>> import numpy as np
    >>> from skbayes_sg.custom import CustomDensity
    >>> def log_density(theta, row):
    ...     level, size, rate, sigma = theta
    ...     z = (row[1] - level - size * np.exp(-rate * row[0])) / sigma
    ...     return -0.5 * z * z - np.log(sigma)
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0.0, 5.0, size=200)
    >>> y = 1.0 + 2.0 * np.exp(-1.5 * t) + 0.1 * rng.normal(size=200)
    >>> priors = {"level": "normal", "size": "normal"}
    >>> priors |= {"rate": "half_normal", "sigma": "half_normal"}
    >>> model = CustomDensity(log_density, priors, random_state=0).fit(t[:, None], y)
    >>> [round(float(model.posterior_.mean(name)), 1) for name in priors]
    [1.0, 2.0, 1.5, 0.1]
    """

    _functions = None  # the `Frozen` log_density and derivative of the fit

    @with_parameters_of(DensityEstimator)
    def __init__(
        self,
        log_density: Callable | None = None,
        parameters: dict[str, Any] | None = None,
        *,
        derivative: Callable | None = None,
        backend: str = "numba",
        start: dict[str, Any] | ArrayLike | None = None,
        mean: Callable | None = None,
        sample: Callable | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.log_density = log_density
        self.parameters = parameters
        self.derivative = derivative
        self.backend = backend
        self.start = start
        self.mean = mean
        self.sample = sample

    def __getstate__(self):
        # The functions are parameters, and a loaded estimator takes them as they are then.
        return super().__getstate__() | {"_functions": None}

    # -- what is sampled ----------------------------------------------------------------------

    def _variables(self):
        """Check `parameters`, and return (name, prior object, n) for each variable.

        n is None for a variable that is a number and not an array.
        """
        wanted = "a dict of names to priors, or to pairs (prior, n)"
        if not (isinstance(self.parameters, dict) and self.parameters):
            Parameters(self).fail("parameters", wanted)
        check_names(self, "parameters", self.parameters, are_attributes=False)
        found = []
        for name, value in self.parameters.items():
            prior = self._prior_of(name)
            n = None if prior is value else value[1]
            if not (n is None or (is_whole(n) and n >= 1)):
                Parameters(self).fail("parameters", wanted)
            made = resolve_positive if _is_positive(prior) else resolve
            found.append((name, made(prior, f"parameters[{name!r}]"), n))
        return found

    def _prior_of(self, name):
        """Return the prior of a variable, as it was given."""
        value = self.parameters[name]
        return value[0] if isinstance(value, tuple) and len(value) == 2 else value

    def _table(self):
        """Return the prior table, and for each parameter whether it is positive, and its label."""
        tables, positive, labels = [], [], []
        for name, prior, n in self._variables():
            tables.append(prior._table((n or 1,), name))
            positive += [isinstance(prior, PositivePrior)] * (n or 1)
            labels += [name] if n is None else [f"{name}[{k}]" for k in range(n)]
        return np.concatenate(tables), positive, labels

    def _law(self, width):
        """Return the `RowLaw` for rows of `width` numbers; checks the parameters that define it."""
        backend = self._check_functions()
        table, positive, _ = self._table()
        units = np.where(positive, 1.0, np.minimum(1.0, table[:, SCALE]))
        key = tuple(positive), tuple(map(float, units)), width
        f, derivative = self._functions or (self.log_density, self.derivative)
        if getattr(self, "_by_differences", False):
            return differences_row_law_of(f, *key)
        return row_law_of(f, derivative, *key, backend)

    def _check_functions(self):
        """Check the parameters that are functions, and return the backend."""
        p = Parameters(self)
        backend = p.choice("backend", ["numba", "jax", "torch"])
        if backend != "numba" and self.derivative is not None:
            p.fail("derivative", f"None with backend={backend!r}, which has derivatives")
        if backend == "numba":
            check_function(self, "log_density", "a function (theta, row) -> float")
        elif not callable(self.log_density):
            p.fail("log_density", "a function (theta, rows) -> array")
        if self.derivative is not None:
            check_function(self, "derivative", "None or a function")
        for name in ("mean", "sample"):
            if not (getattr(self, name) is None or callable(getattr(self, name))):
                p.fail(name, "None or a function")
        return backend

    def _rows(self, X, y):
        """Return the rows that `log_density` gets: X, followed by y if there is one."""
        return np.column_stack([X, y]) if y is not None else np.array(X)

    def _given_starts(self, law):
        """Return the points z, (n_points, D), that the parameter `start` gives, after checks."""
        D, start = law.n_extra, self.start
        wanted = f"None, an array of {D} finite numbers, or a dict of the parameters by name"
        if isinstance(start, dict):
            start = self._start_by_names(start)
        try:
            theta = np.atleast_2d(np.asarray(start, dtype=np.float64))
        except (TypeError, ValueError):
            Parameters(self).fail("start", wanted)
        if theta.ndim != 2 or theta.shape[1] != D or not np.isfinite(theta).all():
            Parameters(self).fail("start", wanted)
        if (theta[:, law.positive] <= 0.0).any():
            Parameters(self).fail("start", "positive where the parameter is")
        return np.where(law.positive, np.log(np.where(law.positive, theta, 1.0)), theta)

    def _start_by_names(self, start):
        """Return the values of the dict `start` as one array, in the order of `parameters`."""
        sizes = {name: n for name, _, n in self._variables()}
        odd = [f"{name!r} is missing" for name in sizes if name not in start]
        odd += [f"{name!r} is no parameter" for name in start if name not in sizes]
        if odd:
            names = ", ".join(map(repr, sizes))
            Parameters(self).fail("start", f"a dict with a value for each of {names}: {odd[0]}")
        parts = []
        for name, n in sizes.items():
            if np.shape(start[name]) != (() if n is None else (n,)):
                number = "a number" if n is None else f"an array of {n} numbers"
                Parameters(self).fail("start", f"a dict with {number} for {name!r}")
            parts.append(np.atleast_1d(start[name]))
        return np.concatenate(parts)

    def _starts(self, law, table, rows, request):
        """Return starting points z, (n_points, D), and an iterator of further ones or None.

        They are those of `start`, or by default those around the middle of the prior. Of the
        former, those at which the density of all rows is not finite are left out.
        """
        further = None
        if self.start is not None:
            starts = self._given_starts(law)
        else:
            further = _around_the_middle(law, table, len(rows), request.seed)
            starts = next(further)
        if self.backend == "numba":
            name = f"log_density of {type(self).__name__}"
            check_calls(self.log_density, name, _places(law, starts, rows))
        with np.errstate(all="ignore"):
            values = [law.log_likelihood(law.natural(z), rows) for z in starts]
        lost = [~np.isfinite(own) for own in values]
        best = int(np.argmin([own.sum() for own in lost]))
        if lost[best].any():
            i = int(np.flatnonzero(lost[best])[0])
            raise ValueError(
                f"The log_density of {type(self).__name__} is {values[best][i]} for "
                f"{lost[best].sum()} of {len(rows)} rows at theta = "
                f"{np.array2string(law.natural(starts[best]), precision=4)}, where chains would "
                f"begin; the first is row {i}, {np.array2string(rows[i], precision=4)}. Give "
                "another start, or a density that is finite there."
            )
        return starts[[not own.any() for own in lost]], further

    # -- fitting ------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "CustomDensity":
        """Sample the posterior.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            A response, which `log_density` gets as the last number of each row.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: 2 counts the row twice, and 0 leaves it out.

        Returns
        -------
        self : CustomDensity
            The estimator, with the attributes of the class docstring.
        """
        with all_or_nothing(self):
            rows, weight = self._read(X, y, sample_weight)
            table, _, labels = self._table()
            request = self._request(len(rows), labels)
            self._by_differences = False
            self._functions = (
                frozen(self.log_density, self.backend == "numba"),
                frozen(self.derivative),
            )
            with named_errors(f"log_density of {type(self).__name__}, or its derivative,"):
                starts, further = self._starts(self._law(rows.shape[1]), table, rows, request)
                law = self._checked_law(rows, starts[0])
            check_draw_store(request.n_chains, request.n_draws, len(table), 12)
            request.parameters = law.natural
            rows, weight = self._in_order(rows, weight, request)
            target = density_target(law, rows, weight, table, n_jobs=request.n_jobs)
            self._check_bounded(target, starts[0])

            def so_far(draws, weights):
                return {"posterior_": self._posterior(law, labels, draws, weights)}

            progress = Progress(self, so_far, X=X, y=y)
            try:
                with one_blas_thread:
                    outcome, modes = sample_density(
                        target, starts, request, progress, further=further
                    )
            except WrongDerivative as error:
                self._refuse(law.derivatives, *error.place)
            outcome = judged(outcome, modes, request)
            pieces = chosen_pieces(outcome, self._samplers)
            known = {"origin": origin_of(pieces), "evidence": outcome.evidence}
            known |= {"scores": outcome.scores, "scores_of": outcome.scores_of}
            posterior = self._posterior(law, labels, outcome.draws, outcome.weights, **known)
            fitted = {"posterior_": posterior, "derivatives_": law.derivatives, **pieces}
            self.__dict__.update(fitted)
            warn_of_unused(self, outcome.chosen["sampler"])
            warn_untrustworthy(posterior)
            names = [name for name, *_ in self._variables()]
            warn_of_unit_scales(posterior, {name: self._prior_of(name) for name in names})
            progress.finish(fitted)
        return self

    def _read(self, X, y, sample_weight, reset=True):
        """Return the rows and weights of checked data, without the rows of weight zero."""
        if y is None:
            X = dense_data(self, X, reset=reset)
        else:
            X, y = dense_data(self, X, y, reset=reset)
        self._takes_y = y is not None
        rows, _, weight = drop_unweighted(
            self._rows(X, y), np.zeros(len(X)), check_weights(sample_weight, X)
        )
        return rows, weight

    def _in_order(self, rows, weight, request):
        """Return rows and weights, in random order if the subsampling scheme needs that."""
        if request.subsampling is None or not request.subsampling.needs_shuffled_rows:
            return rows, weight
        order = streams.of_recipe(request.seed).permutation(len(rows))
        return rows[order], weight[order]

    def _checked_law(self, rows, start):
        """Return the `RowLaw` with derivatives that agree with the function near the start.

        Complex steps that do not agree are replaced by differences; other derivatives that do not
        agree are refused with a `ValueError`.
        """
        law = self._law(rows.shape[1])
        if self.backend != "numba":
            self._check_rows_alone(law, law.natural(start), rows[:FIRST_ROWS])
        if law.derivatives == "given":
            name = f"derivative of {type(self).__name__}"
            check_lengths(self.derivative, name, _places(law, start[None], rows), law.n_extra)
        wrong = law.disagreement(start, rows)
        if wrong is not None and law.derivatives != "complex step":
            self._refuse(law.derivatives, *wrong)
        self._by_differences = wrong is not None
        return self._law(rows.shape[1])

    def _check_rows_alone(self, law, theta, rows):
        """Raise `ValueError` if the log-likelihood of a row depends on the other rows."""
        together = law.log_likelihood(theta, rows)
        alone = np.array([law.log_likelihood(theta, row[None])[0] for row in rows])
        wrong = ~np.isclose(together, alone, rtol=1e-6, atol=1e-6, equal_nan=True)
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"The log_density of {type(self).__name__} is {together[i]:.6g} for row {i} beside "
                f"other rows, and {alone[i]:.6g} for that row alone. It must use each row by "
                "itself, since steps see some rows only: compute means and other statistics of "
                "columns before the fit."
            )

    def _check_bounded(self, target, start):
        """Raise `ValueError` if the posterior has no maximum, as when the sign of f is wrong."""
        table, _, labels = self._table()
        law = target.model
        growth = growth_of_density(target, start, law.positive, table[:, SCALE])
        if growth is None:
            return
        j = growth.parameter
        ends = (f"{law.natural(theta)[j]:.4g}" for theta in (growth.near, growth.far))
        near, far = (
            f"{v:.4g} at {labels[j]} = {at}" for v, at in zip(growth.values, ends, strict=True)
        )
        raise ValueError(
            f"The log_density of {type(self).__name__}, summed over the rows and with the log of "
            f"the prior, grows without bound along {labels[j]}: it is {near}, and {far}. So the "
            "posterior has no maximum: is the sign right? It must be the logarithm of the "
            "density, and not its negative."
        )

    def _refuse(self, source, theta, row, j, given, found):
        """Raise the `ValueError` for a derivative that is not that of the function.

        `source` says where the derivatives come from; `given` and `found` are that derivative in
        parameter j at theta and row, and the one by differences.
        """
        what, hint = "derivative", ""
        if source == "complex step":
            what, hint = f"derivative by {source}", " Give the derivative."
        elif source != "given":
            what = f"gradient by {source}"
            hint = " What detach, item, numpy and stop_gradient return hides parameters from it."
            if np.isfinite(found) and not np.isfinite(given):
                hint = (
                    " A gradient is not finite where one branch of `where` is not, even if the "
                    "other one is taken: replace the argument of that branch by a harmless one."
                )
        raise ValueError(
            f"The {what} of {type(self).__name__} is not that of its log_density: at theta = "
            f"{np.array2string(theta, precision=4)} and row = {np.array2string(row, precision=4)} "
            f"the derivative in {self._table()[2][j]} is {given:.6g}, and by differences of the "
            f"function it is {found:.6g}.{hint}"
        )

    def _posterior(self, law, labels, z, weights, scores=None, **known):
        """Return the `Posterior` of θ from draws z of the chains and the scores of z."""
        shapes = {name: () if n is None else (n,) for name, _, n in self._variables()}
        theta = law.natural(z)
        if scores is not None:  # for a positive parameter p(θ) = p(log θ) / θ
            changed = (scores - 1.0) / np.where(law.positive, theta, 1.0)
            scores = np.where(law.positive, changed, scores).astype(scores.dtype)
        # The density of a positive parameter need not vanish at zero.
        known["edges"] = [name for name, p in zip(labels, law.positive, strict=True) if p]
        return Posterior(theta, shapes, labels, weights=weights, scores=scores, **known)

    # -- predictions --------------------------------------------------------------------------

    def _of_draws(self, X, name, function):
        """Return ``function(theta, X)`` for all draws, (n_rows, n_draws); errors call it `name`."""
        check_is_fitted(self)
        X = dense_data(self, X, reset=False)
        flat = self.posterior_.flat.reshape(-1, self.posterior_.flat.shape[-1])
        return np.stack([of_shape(function(theta, X), (len(X),), name) for theta in flat], 1)

    @available_if(_has("mean"))
    def predict(
        self, X: MatrixLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Posterior mean of the expectation of y, which the parameter `mean` computes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        return_std : bool, default=False
            Whether to return the posterior standard deviation of that expectation as well.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,)
            Only if `return_std`.
        """
        values = self._of_draws(X, "mean", self.mean)
        weights = self.posterior_.pooled_weights
        mean = weighting.mean(values, weights, axis=1)
        return (mean, weighting.std(values, weights, axis=1)) if return_std else mean

    @available_if(_has("sample"))
    def predict_interval(
        self, X: MatrixLike, confidence_level: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Central posterior predictive interval of y, from one random y for each draw.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        confidence_level : float in (0, 1), default=0.9
            Posterior predictive probability that y lies inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,)
        """
        ends, rng = central("confidence_level", confidence_level), streams.of_predictions(0)
        drawn = self._of_draws(X, "sample", partial(cast(Callable, self.sample), rng))
        lower, upper = weighting.quantile(drawn, ends, self.posterior_.pooled_weights, axis=1)
        return lower, upper

    @available_if(_has("sample"))
    def sample_y(
        self, X: MatrixLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> np.ndarray:
        """Draws from the posterior predictive distribution of y.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int, default=1
            Number of draws for each row; each uses one draw of the posterior for all rows.
        random_state : int, RandomState instance or None, default=0
            Seed.

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        X = dense_data(self, X, reset=False)
        rng = streams.of_predictions(streams.seed_of(random_state))
        flat = self.posterior_.flat.reshape(-1, self.posterior_.flat.shape[-1])
        weights, draw = self.posterior_.pooled_weights, cast(Callable, self.sample)
        chosen = weighting.drawn_at_random(rng, weights, n_samples, len(flat))
        drawn = [of_shape(draw(rng, flat[s], X), (len(X),), "sample") for s in chosen]
        return np.stack(drawn, axis=1)

    def predict_log_density(self, X: MatrixLike, y: ArrayLike | None = None) -> np.ndarray:
        """Log posterior predictive density of rows, without the terms that `log_density` omits.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), optional
            The response, if `fit` was given one.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        NotFittedError
            If the estimator has not been fitted.
        TypeError
            For a sparse X.
        ValueError
            For a y if `fit` was given none, or the other way round, for other columns than those of
            the fit, and for values that are not finite.
        """
        check_is_fitted(self)
        if self._takes_y != (y is not None):
            raise ValueError(f"fit got {'a' if self._takes_y else 'no'} y: so must this method.")
        if y is None:
            X = dense_data(self, X, reset=False)
        else:
            X, y = dense_data(self, X, y, reset=False)
        rows = self._rows(X, y)
        law, flat = self._law(rows.shape[1]), self.posterior_.flat
        values = [law.log_likelihood(theta, rows) for theta in flat.reshape(-1, flat.shape[-1])]
        return weighting.log_mean_exp(
            np.stack(values, axis=1), self.posterior_.pooled_weights, axis=1
        )

    def score(self, X: MatrixLike, y: ArrayLike | None = None) -> float:
        """Mean log posterior predictive density of a row: see `predict_log_density`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), optional
            The response, if `fit` was given one.

        Returns
        -------
        float
        """
        return float(self.predict_log_density(X, y).mean())
