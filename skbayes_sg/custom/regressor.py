"""Regression with a likelihood of your own."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base import weights as weighting
from .._base.typing import ArrayLike, MatrixLike, RandomState
from .._base.validation import Parameters, check_probabilities
from ..engine.target import Target
from ..estimators._parameters import with_shared_parameters
from ..estimators._regression import BayesianRegressor, _spread
from ..estimators._shards import Plan
from ..estimators._store import all_or_nothing
from ..geometry.first_place import first_place
from ..geometry.mode import check_independent
from ..kernels.layout import FACT_Y
from ..models import LinearKnownNoise
from ..priors import Flat, Normal, PositivePrior, Units
from ..priors.families import of_family, resolve_positive
from .derivatives import (
    WrongDerivative,
    check_calls,
    check_function,
    check_lengths,
    named_errors,
    of_shape,
)
from .frozen_values import frozen
from .growth import growth_of_regression, most_in_a_row
from .law import differences_law_of, law_of
from .names import check_names

__all__ = ["CustomRegressor"]

# Scale of the default prior of an intercept, as a multiple of max(1, sd(y), |mean(y)|).
WIDE = 10.0
# Sizes of linear predictors at which the likelihood must be defined, since priors are as wide.
PREDICTORS = 0.3, 1.0, 2.0, 5.0
RESPONSES = 1000  # number of different responses, at most, for which that is checked
RESPONSES_CALLED = 20  # the same for calls of the functions as plain Python
# A curvature counts as zero if it changes the slope, over a unit of the predictor, by no more than
# this share of the largest slope: that may be rounding error.
ROUNDING = 1e-6
MOSTLY = 0.5  # share of rows without curvature from which an error names that as its cause


def _has(name):
    """Return a check for `available_if`: the method exists if the parameter `name` is given."""

    def check(estimator):
        if getattr(estimator, name) is None:
            raise AttributeError(
                f"This method of {type(estimator).__name__} needs the parameter {name!r}."
            )
        return True

    return check


def _never(estimator):
    """Raise `AttributeError`: the check for `available_if` of a method that does not exist."""
    raise AttributeError(f"{type(estimator).__name__} does not know the variance of y.")


def _unchanged(y, weight):
    """Return responses and weights as they are: this model needs no transformation of them."""
    return y, weight


def _different(y, most):
    """Return different responses, evenly spaced among the sorted ones, and `most` at most."""
    found = np.unique(y)
    return found[np.linspace(0, len(found) - 1, min(len(found), most)).astype(int)]


def _ordinary(law, y, unit):
    """Return predictors z = (η, log extras) of usual sizes for responses y, z = 0 first."""
    middle, size = np.median(y), np.median(np.abs(y))
    etas = 0.0, middle, np.log(size) if size > 0.0 else 0.0
    logs = np.log([1.0, unit, 0.1, 0.01, 1.0 / unit])
    K, E = law.n_linear, law.n_extra
    return np.array([np.r_[np.full(K, eta), np.full(E, own)] for eta in etas for own in logs])


def _called(law, places, y):
    """Return arguments (eta, y, *extras) at predictors z of `places` and at different responses."""
    K = law.n_linear
    etas = places[:, 0] if K == 1 else places[:, :K]
    parts = list(zip(etas, np.exp(places[:, K:]), strict=True))
    return [(eta, v, *more) for v in _different(y, RESPONSES_CALLED) for eta, more in parts]


class CustomRegressor(BayesianRegressor):
    r"""Bayesian regression with a likelihood of your own.

    .. math::

        \log p(y_i \mid x_i) = f(\eta_i, y_i, \sigma_1, \sigma_2, \ldots), \qquad
        \eta_i = x_i \cdot \beta + b,

    where f is a function that you give, of the linear predictor, of the response, and of any number
    of positive parameters. Everything else is as in the other regressions: priors, all samplers,
    the default choices with their checks, weights, sparse matrices, shards, diagnostics.

    Parameters
    ----------
    prior : {"normal", "laplace", "student_t", "flat"} or Prior, default="normal"
        Prior of each coefficient; coefficients are independent. The strings stand for priors with
        ``scale="auto"``, which is 2.5 max(1, sd(y)) divided by the standard deviation of the
        column.
    fit_intercept : bool, default=True
        Whether there are intercepts.
    intercept_prior : str or Prior, default=None
        Prior of each intercept, given in the same way as `prior`. None is a normal prior of scale
        ``10 max(1, sd(y), abs(mean(y)))``, or a wider one if there are columns far from zero: see
        `intercept_prior_`.
    {groups}
    log_likelihood : callable
        ``f(eta, y, *extras) -> float``, the log-likelihood of one row, in Python that Numba can
        compile. Terms without parameters may be left out, but then `score` lacks them. The function
        must be smooth, and finite for all predictors and all positive extras; `fit` checks this for
        predictors between -5 and 5. The value -inf is allowed for a response that is impossible.
    derivative : callable, optional
        ``derivative(eta, y, *extras)``, the derivatives of f in eta and in each of the extras: a
        number, or a tuple of numbers. `fit` compares it with f. If None, derivatives are computed
        by complex steps, which are exact to rounding
        (``tests/custom/test_custom_regressor.py::test_kernels_are_derivatives_of_the_function``),
        if f accepts complex numbers (use functions of NumPy, not those of `math`), and by central
        differences otherwise.
    extras : dict of str to prior, optional
        The positive parameters by name, in the order of the arguments of f, each with its prior: a
        string such as "half_normal", or a `PositivePrior`. The strings stand for priors with
        ``scale="auto"``, which is the standard deviation of the response, but at least 1: a
        parameter of scale has the units of the response, and a parameter of shape has none. Names
        must be identifiers, and no attribute of the estimator may have the name with an underscore
        after it, as "posterior" in ``posterior_``.
    n_predictors : int, default=1
        Number of linear predictors, each with coefficients of its own. If there are several, eta is
        an array of them.
    mean : callable, optional
        ``mean(eta, *extras)``, the expectation of y, which `predict` needs. It is called with
        arrays: eta of shape (rows, draws), or (n_predictors, rows, draws) if there are several
        predictors, and extras of shape (draws,).
    sample : callable, optional
        ``sample(rng, eta, *extras)``, a random response for each row and draw, which `sample_y`,
        quantiles and intervals need. `rng` is a `numpy.random.Generator`; the other arguments are
        as for `mean`.
    sampler : str or object, default="auto"
        How draws are made: "auto", "importance", "sgld", "leimkuhler_matthews", "baoab", "sghmc",
        "sgnht", "mala", "hmc", or an object of `skbayes_sg.dynamics`. For this parameter and those
        that follow, see `BayesianLogisticRegression`.
    gradient : str or Gradient, default="auto"
        How a batch of rows becomes an estimate of the gradient.
    {subsampling_to_preconditioner}
    {draws_and_chains}
    {warmup_and_thin}
    {subposteriors_to_keep}

    Attributes
    ----------
    posterior_ : Posterior
        All draws, in the variables "coef" and "intercept" and one for each extra, under its name.
        The posterior mean of an extra is also an attribute, such as ``sigma_`` for an extra
        "sigma".
    {means_and_deviations}
    {prior_scale}
    derivatives_ : {"given", "complex step", "finite difference"}
        How derivatives of the function were computed.
    {group_attributes}
    {features}
    {choices_and_steps}
    {shards}
    diagnostics_, seconds_ : dict of str to float
        Measurements of the sampler, and the wall time of each part of the fit in seconds: see
        `BayesianLogisticRegression`.

    Raises
    ------
    {invalid_parameter}
    ValueError
        By `fit`, for data that cannot be used, for a derivative that is not that of the function,
        and for a likelihood that is not finite or grows without bound, as it does if its sign is
        wrong.
    {errors_and_warnings}

    See Also
    --------
    CustomDensity : For likelihoods that are not functions of linear predictors.

    Examples
    --------
    Counts that cannot be zero:

    >>> import numpy as np
    >>> from skbayes_sg.custom import CustomRegressor
    >>> def log_likelihood(eta, y):
    ...     rate = np.exp(eta)
    ...     return y * eta - rate - np.log(1.0 - np.exp(-rate))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = rng.poisson(np.exp(0.5 + 0.7 * X[:, 0]))
    >>> X, y = X[y > 0], y[y > 0]
    >>> model = CustomRegressor(log_likelihood=log_likelihood, random_state=0).fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_, 1), model.derivatives_
    (array([ 0.6, -0.1]), 0.5, 'complex step')
    """

    _has_one_peak = False  # nothing is known about the shape of the likelihood
    _functions = None  # the `Frozen` log_likelihood and derivative of the fit

    @with_shared_parameters
    def __init__(
        self,
        *,
        log_likelihood: Callable | None = None,
        derivative: Callable | None = None,
        extras: dict[str, Any] | None = None,
        n_predictors: int = 1,
        mean: Callable | None = None,
        sample: Callable | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.log_likelihood = log_likelihood
        self.derivative = derivative
        self.extras = extras
        self.n_predictors = n_predictors
        self.mean = mean
        self.sample = sample

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # `score` is a log density, not R²
        return tags

    def __getstate__(self):
        # The functions are parameters, and a loaded estimator takes them as they are then.
        return super().__getstate__() | {"_functions": None}

    # -- fitting ------------------------------------------------------------------------------

    def _fit(self, X, **rows):
        with all_or_nothing(self):
            self._freeze()
            return super()._fit(X, **rows)

    def _fit_parts(self, parts):
        self._freeze()
        return super()._fit_parts(parts)

    def _partial_fit(self, X, *rows):
        with all_or_nothing(self):
            if not hasattr(self, "posterior_"):
                self._freeze()
            return super()._partial_fit(X, *rows)

    # -- the model ----------------------------------------------------------------------------

    @property
    def _positive(self):
        """The priors of the extras, a dict by name."""
        return {} if self.extras is None else self.extras

    @property
    def _law(self):
        """The `CustomLaw` of the functions, with the derivatives and unit that the checks chose."""
        self._check_functions()
        K, E = int(self.n_predictors), len(self._positive)
        by_differences, unit = getattr(self, "_measured", (False, 1.0))
        f, derivative = self._functions or (self.log_likelihood, self.derivative)
        if by_differences:
            return differences_law_of(f, K, E).with_unit(unit)
        return law_of(f, derivative, K, E).with_unit(unit)

    def _freeze(self):
        self._functions = frozen(self.log_likelihood), frozen(self.derivative)

    def _check_functions(self):
        """Raise `InvalidParameterError` for functions, extras or numbers that are not accepted."""
        p = Parameters(self)
        p.integer("n_predictors", 1)
        check_function(self, "log_likelihood", "a function (eta, y, *extras) -> float")
        if self.derivative is not None:
            check_function(self, "derivative", "None or a function")
        for name in ("mean", "sample"):
            if not (getattr(self, name) is None or callable(getattr(self, name))):
                p.fail(name, "None or a function")
        if not isinstance(self._positive, dict):
            p.fail("extras", "None or a dict of names to priors of positive parameters")
        check_names(self, "extras", self._positive, are_attributes=True)
        for prior in self._positive.values():
            if not isinstance(resolve_positive(prior, "extras"), PositivePrior):
                p.fail("extras", "a dict of names to priors of positive parameters")

    def _read(self, X, y, sample_weight, *more, reset=True):
        X, y, weight = super()._read(X, y, sample_weight, *more, reset=reset)
        if reset:
            with named_errors(f"log_likelihood of {type(self).__name__}, or its derivative,"):
                self._check_likelihood(y, weight)
        return X, y, weight

    def _check_likelihood(self, y, weight):
        """Check the likelihood and its derivatives, and set `_measured`.

        `_measured` is (whether derivatives are by differences, unit of η). The unit is the standard
        deviation of y, rounded to a power of two, and 1 at most.
        """
        # It is rounded so that weights and copies of rows give the same unit to the last bit.
        unit = _spread(y, weight)[0]
        unit = float(2.0 ** np.round(np.log2(unit))) if unit > 0.0 else 1.0
        self._measured = False, min(unit, 1.0)
        law = self._law
        self._check_finite(law, y, unit)
        if law.derivatives == "given":
            places = _called(law, self._tried(law, y, unit), y)
            name = f"derivative of {type(self).__name__}"
            check_lengths(self.derivative, name, places, law.n_predictors, bare=True)
        wrong = law.disagreement(y, max(unit, 1.0))
        if wrong is not None and law.derivatives == "given":
            self._refuse(law.derivatives, *wrong)
        # Complex steps are wrong for functions that are not analytic, such as |η|.
        self._measured = wrong is not None, min(unit, 1.0)

    def _refuse(self, source, z, y, j, given, found):
        """Raise the `ValueError` for a derivative that is not that of the function.

        `source` says where the derivatives come from; `given` and `found` are that derivative in
        z_j, where z = (η, log extras), and the one by differences.
        """
        K, what, hint = self.n_predictors, "derivative", ""
        if source != "given":
            what, hint = f"derivative by {source}", " Give the derivative."
        name = f"eta{f'[{j}]' if K > 1 else ''}"
        if j >= K:  # ∂f/∂σ = (∂f/∂log σ) / σ
            name, of_log = list(self._positive)[j - K], found
            given, found = given / np.exp(z[j]), found / np.exp(z[j])
            if np.isclose(given, of_log) and not np.isclose(given, found):
                hint = f" The derivative in log {name} is {of_log:.6g}; give that in {name}."
        raise ValueError(
            f"The {what} of {type(self).__name__} is not that of its log_likelihood: for "
            f"{self._described(z)} and y = {y:.4g} the derivative in {name} is {given:.6g}, and by "
            f"differences of the function it is {found:.6g}.{hint}"
        )

    def _described(self, z):
        """Return predictors z = (η, log extras) as text for messages, with the extras by name."""
        K = self.n_predictors
        eta = ", ".join(f"{v:.4g}" for v in z[:K])
        extras = zip(self._positive, np.exp(z[K:]), strict=True)
        return ", ".join([f"eta = {eta}", *(f"{name} = {v:.4g}" for name, v in extras)])

    def _check_finite(self, law, y, unit):
        """Raise `ValueError` if f of some response is finite at none of several points.

        Linear predictors are zero, the median of y or its logarithm, and extras one, `unit`, or
        smaller.
        """
        places, tried = self._tried(law, y, unit), _ordinary(law, y, unit)
        name = f"log_likelihood of {type(self).__name__}"
        check_calls(self.log_likelihood, name, _called(law, places, y))
        with np.errstate(all="ignore"):
            values = law.log_likelihood(np.tile(tried, (len(y), 1, 1)), y)
        lost = ~np.isfinite(values).any(axis=1)
        if lost.any():
            i = int(np.flatnonzero(lost)[0])
            raise ValueError(
                f"The log_likelihood of {type(self).__name__} is not finite for y = {y[i]:.6g}: "
                f"at {self._described(tried[0])} it is {values[i, 0]}. Every response must be "
                "possible for all predictors."
            )
        self._check_defined(law, y, places[2:])

    def _tried(self, law, y, unit):
        """Return the predictors z = (η, log extras) at which the functions are called for checks.

        First come z = 0, and the median of y with extras equal to `unit`; then predictors of the
        sizes that priors allow.
        """
        median = np.r_[np.full(law.n_linear, np.median(y)), np.full(law.n_extra, np.log(unit))]
        turns = [np.ones(law.n_linear), (-1.0) ** np.arange(law.n_linear)][: law.n_linear]
        places = [
            np.r_[sign * size * turn, np.full(law.n_extra, level)]
            for size in PREDICTORS
            for sign in (-1.0, 1.0)
            for turn in turns
            for level in {0.0, float(np.log(unit))}
        ]
        return np.stack([np.zeros(law.n_predictors), median, *places])

    def _check_defined(self, law, y, places):
        """Raise `ValueError` if the likelihood is NaN, or +∞, at the predictors `places`.

        It may be -∞, where a response is impossible.
        """
        own = _different(y, RESPONSES)
        with np.errstate(all="ignore"):
            values = law.log_likelihood(np.tile(places, (len(own), 1, 1)), own)
        lost = np.isnan(values) | np.isposinf(values)
        if lost.any():
            k, i = np.argwhere(lost.T)[0]
            raise ValueError(
                f"The log_likelihood of {type(self).__name__} is not finite at "
                f"{self._described(places[k])}, y = {own[i]:.6g}: it is {values[i, k]}. It must be "
                "a number for all predictors, or -inf where a response is impossible: write "
                "np.exp(eta) for what must be positive."
            )

    def _target(self, *rows, **options):
        target = super()._target(*rows, **options)
        self._check_bounded(target)
        return target

    def _check_bounded(self, target):
        """Raise `ValueError` if the posterior has no maximum, as when the sign of f is wrong."""
        growth = growth_of_regression(target)
        if growth is None:
            return
        (near, far), y = most_in_a_row(growth)
        j = growth.parameter - target.n_parameters
        name = "eta" if j < -len(self._positive) else list(self._positive)[j]
        raise ValueError(
            f"The log_likelihood of {type(self).__name__} grows without bound along {name}: for "
            f"y = {y:.4g} it is {near[1]:.4g} at {self._described(near[0])}, and {far[1]:.4g} at "
            f"{self._described(far[0])}. With this prior the posterior has no maximum: is the sign "
            "right? It must be the logarithm of the density, and not its negative."
        )

    def _draw(self, target, *rest):
        try:
            return super()._draw(target, *rest)
        except WrongDerivative as error:
            self._refuse(self._law.derivatives, *error.place)
        except ValueError:
            self._check_curved(target)
            raise

    def _check_curved(self, target):
        """Raise `ValueError` if priors are flat and the curvature leaves coefficients undetermined.

        If that is because the columns of X are dependent, `check_independent` raises its own error.
        """
        d, prior = target.n_features, target.prior
        if target.model.n_extra or not of_family(prior, Flat).any():
            return
        share = self._share_without_curvature(target, first_place(target))
        if share < MOSTLY or d == 0:
            return
        rows, own = np.zeros(target.n_rows), prior[target.positions()[0]]
        options = {"intercept": target.intercept}
        alone = Target(target.X, rows, target.weight, LinearKnownNoise(), own, **options)
        check_independent(alone, dense=True)  # it raises if the columns of X are dependent
        raise ValueError(
            "prior='flat' needs a log_likelihood whose curvature determines every coefficient, "
            f"and the curvature of that of {type(self).__name__} is zero at {share:.0%} of the "
            "rows where the search of the mode begins. Give a proper prior, such as "
            "prior=Normal(scale=100.0)."
        )

    def _share_without_curvature(self, target, theta):
        """Return the largest share, over the predictors, of rows with zero curvature at θ.

        Zero means up to the `ROUNDING` of differences of slopes.
        """
        eta = np.ascontiguousarray(target.along(target.design(slice(None)), theta))
        slopes = np.abs(target.weight[:, None] * target.derivative(target.data.facts, eta))
        curved = np.abs(target.weights_at(theta).diagonal(axis1=1, axis2=2)) * self._measured[1]
        return (curved <= ROUNDING * slopes.max(axis=0)).mean(axis=0).max()

    def _recipe(self):
        return self._law, {name: name for name in self._positive}, 1.0

    def _default_intercept_prior(self, target):
        y, weight = target.data.facts[:, FACT_Y], target.weight
        scale = max(1.0, _spread(y, weight)[0], abs(np.average(y, weights=weight)))
        return Normal(scale=WIDE * scale)

    def _given(self, name):
        if name == "intercept_prior" and self.intercept_prior is None:
            return "normal"  # so that columns stay where they are: see `_default_intercept_prior`
        return self._positive[name] if name in self._positive else super()._given(name)

    def _plan_for(self, n_features):
        """Return the `Plan` of a fit with this number of columns: model, names and extras."""
        model, extras, _ = self._recipe()
        if model.n_linear == 1:
            shape, labels = (n_features,), self._labels(n_features)
        else:
            shape, labels = (model.n_linear, n_features), self._labels_of_many(n_features)
        return Plan(model, shape, labels + list(extras), extras, _unchanged)

    def _labels_of_many(self, n_features):
        """Return the labels of coefficients, then of intercepts, of several linear predictors."""
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(n_features)])
        each = range(self.n_predictors)
        labels = [f"coef[{k}, {name}]" for k in each for name in names]
        return labels + [f"intercept[{k}]" for k in each if self.fit_intercept]

    def _units(self, target):
        units = super()._units(target)
        return Units(max(1.0, units.response), target.column_spreads)

    def _units_of_extra(self, name, units):
        return Units(units.response)

    def _attributes(self, posterior):
        return super()._attributes(posterior) | {"derivatives_": self._law.derivatives}

    def _extras(self):
        """Return the draws of each extra parameter, arrays (n_draws,)."""
        return [self.posterior_[name].ravel() for name in self._positive]

    # -- predictions --------------------------------------------------------------------------

    def _reduced(self, eta):
        """Return predictors (rows, draws, K) in the shape that the user's functions get.

        It is (rows, draws) for one predictor, and (K, rows, draws) for several.
        """
        return eta[:, :, 0] if eta.shape[2] == 1 else np.moveaxis(eta, 2, 0)

    def _of_law(self, X, reduce, draws=slice(None), rng=None):
        """Return the results of ``reduce(eta, extras, components)`` for blocks of the rows X."""
        check_is_fitted(self)
        extras = [values[draws] for values in self._extras()]

        def of_block(eta, components):
            own = [components.values(values) for values in extras]
            return reduce(self._reduced(eta), own, components)

        return self._of_predictors(X, of_block, draws, rng)

    def _likelihood_of(self, y):
        y, extras, law = y.astype(np.float64), self._extras(), self._law

        def log_likelihood(rows, eta, components):
            own = [np.log(components.values(values)) for values in extras]
            parts = [np.broadcast_to(part, eta.shape[:2])[:, :, None] for part in own]
            return law.log_likelihood(np.concatenate([eta, *parts], axis=2), y[rows])

        return log_likelihood

    def _responses(self, X, rng, draws=slice(None)):
        """Return a response for each row of X and each of the draws, (n_rows, n_draws)."""

        def of_block(eta, extras, components):
            del components
            return of_shape(self.sample(rng, eta, *extras), eta.shape[-2:], "sample")

        return self._of_law(X, of_block, draws, rng)

    @available_if(_has("mean"))
    def predict(
        self, X: MatrixLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Posterior mean of the expectation of y, which the parameter `mean` computes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        return_std : bool, default=False
            Whether to return the posterior standard deviation of that expectation as well. It does
            not include the variation of y about its expectation, which `predict_interval` does.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,)
            Only if `return_std`.
        """
        check_is_fitted(self)
        weights = self._pooled_weights

        def both(eta, extras, components):
            values = of_shape(self.mean(eta, *extras), eta.shape[-2:], "mean")
            own = components.weights(weights)
            mean = weighting.mean(values, own, axis=1)
            square = weighting.mean((values - mean[:, None]) ** 2, own, axis=1)
            return np.column_stack([mean, np.sqrt(square)])

        found = self._of_law(X, both)
        return (found[:, 0], found[:, 1]) if return_std else found[:, 0]

    @available_if(_never)
    def predict_std_components(self, X: MatrixLike) -> tuple[np.ndarray, np.ndarray]:
        """This method does not exist: the variance of y is not known."""
        raise NotImplementedError

    @available_if(_has("sample"))
    def predict_quantiles(
        self, X: MatrixLike, quantiles: float | Sequence[float] = (0.05, 0.5, 0.95)
    ) -> np.ndarray:
        """Quantiles of the posterior predictive distribution, from one random y for each draw.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        quantiles : float or sequence of float in (0, 1), default=(0.05, 0.5, 0.95)

        Returns
        -------
        ndarray of shape (n_rows, n_quantiles), or (n_rows,) for a float
        """
        q = check_probabilities("quantiles", quantiles)
        check_is_fitted(self)
        drawn = self._responses(X, streams.of_predictions(0))
        found = weighting.quantile(drawn, np.atleast_1d(q), self._pooled_weights, axis=1)
        return found.T if q.ndim else found[0]

    predict_interval = available_if(_has("sample"))(BayesianRegressor.predict_interval)

    @available_if(_has("sample"))
    def sample_y(
        self, X: MatrixLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> np.ndarray:
        """Draws from the posterior predictive distribution of y.

        Each column uses one draw of the posterior for all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        n_samples : int, default=1
            Number of draws for each row.
        random_state : int, RandomState instance or None, default=0
            Seed of the choice of posterior draws and of the noise.

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
        """
        return super().sample_y(X, n_samples, random_state)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Mean log predictive density of a row, without the terms that `log_likelihood` omits.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        return float(np.average(self.predict_log_density(X, y), weights=sample_weight))
