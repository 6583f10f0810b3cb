"""The class of posterior draws with names, weights and scores."""

import difflib
import html
import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import weights as weighting
from .._base.validation import central, check_count
from ..diagnostics import stein, verdict
from ..diagnostics.stein import SteinDiscrepancy
from ..diagnostics.verdict import Verdict
from ..postprocess import zero_variance, zero_variance_weights
from ..postprocess.zero_variance import ORDERS
from . import classes as of_classes
from .arguments import checked_draws, checked_edges, checked_labels, checked_scores, checked_shapes
from .arviz import to_arviz
from .shortest import shortest_interval
from .summary import Summary, heading, summarise

if TYPE_CHECKING:
    import pandas

__all__ = ["Posterior"]

MOST_IN_HTML = 500  # with more parameters, notebooks show the shapes and no summary


class Posterior:
    """Draws from a posterior distribution.

    Variables have the shapes of the fitted attributes of the estimator: the shape of
    ``posterior["coef"]`` is (n_chains, n_draws) followed by the shape of ``coef_``. Iteration is
    over the names of the variables. A posterior contains only arrays, strings and numbers: it can
    be pickled, and it can be made from the draws of other software.

    All draws have the same weight, unless the step size varied (`skbayes_sg.schedules`). Then
    means, standard deviations, quantiles, intervals and summaries use `weights`. `flat` and
    ``posterior[name]`` are the draws without weights; average them with `weights`.

    Parameters
    ----------
    flat : array of shape (n_chains, n_draws, n_parameters)
        The draws.
    shapes : dict of str to tuple
        The variables, in their order along the last axis of `flat`, with their shapes.
    labels : sequence of str
        One label for each parameter, such as ``coef[age]``; all of them different.
    origin : dict
        How the draws were made: sampler, gradient, step size and so on (strings and numbers).
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain, in any unit; all the same if None.
    scores : array of shape (n_chains, n_draws, n_parameters), optional
        Gradient of the log posterior at each draw, or unbiased estimates of it.
    scores_of : str, default="all rows"
        What the scores were computed from: "all rows" if they are exact.
    evidence : dict, optional
        The measurements of the fit, for `check` and `summary`: the biases ``mean_bias`` and
        ``sd_bias`` due to the step size, with ``mean_bias_mcse`` and ``sd_bias_mcse``
        (`skbayes_sg.diagnostics.step_bias`); ``noise_share``, the share of gradient noise in each
        variance; ``coupled_distance``; ``inflation``, the share that step and noise are predicted
        to add to a variance; ``excursion``, by how many nats the farthest draw is less likely than
        draws of the posterior can be; ``divergent``, the share of trajectories that diverge;
        ``wall``, the share of those that meet places where the density ends abruptly;
        ``prior_conflict``.
    moments : skbayes_sg.posterior.moments.RunningMoments, optional
        Moments of all draws that were made, if `flat` has only some of them. Means, standard
        deviations, R-hat and Monte Carlo errors then refer to all draws.
    classes : sequence, optional
        The labels of a classifier, for `contrast`.
    shift : array of shape (n_chains, n_draws, n_features + 1), optional
        For three or more classes, the common shift of all classes that `flat` lacks: see `sampled`.
        Without intercepts there is no last column.
    edges : sequence of str, default=()
        Labels of positive parameters whose density need not vanish at zero, such as a dispersion.
        Identities of scores do not hold at such an edge: those of the logarithms are used instead.

    Attributes
    ----------
    flat : ndarray of shape (n_chains, n_draws, n_parameters)
        The draws. Coefficients of three or more classes sum to zero over the classes.
    shapes : dict of str to tuple
        Shape of each variable.
    names : tuple of str
        The names of the variables.
    n_chains, n_draws : int
        Number of chains, and number of draws of each.
    labels : tuple of str
        One label for each parameter; ``posterior[label]`` is its (n_chains, n_draws) array.
    origin : dict
        How the draws were made.
    weights : ndarray of shape (n_draws,) or None
        Weights of the draws of every chain, with mean 1; None if all are the same.
    scores : ndarray of shape (n_chains, n_draws, n_parameters) or None
        Gradient of the log posterior at each draw, with respect to the parameters `sampled`. A fit
        keeps the gradients that its sampler used, in single precision and up to 2000 parameters:
        they are exact if the sampler uses all rows, and unbiased estimates otherwise.
        `skbayes_sg.inspection.full_scores` computes exact scores from the data.
    scores_of : str
        What the scores were computed from, such as "all rows" or "10 rows a draw, Taylor()".
    evidence : dict
        The measurements of the fit.
    classes : tuple or None
        The labels of a classifier.
    shift : ndarray or None
        The common shift of all classes.

    Raises
    ------
    ValueError
        If the draws are no numbers with three axes, the shapes or labels not those of so many
        parameters, labels not different, scores not in the shape of the draws, weights not finite
        and nonnegative, or not one for each draw, and edges no labels.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.posterior import Posterior
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 3))
    >>> posterior = Posterior(draws, {"coef": (1, 2), "intercept": (1,)}, ["a", "b", "intercept"])
    >>> posterior["coef"].shape
    (4, 1000, 1, 2)
    >>> posterior.mean("coef").round(1)
    array([[-0., 0.]])
    >>> lower, upper = posterior.interval(0.9, name="intercept")
    >>> lower.round(), upper.round()
    (array([-2.]), array([2.]))

    Two draws, the second of which has three times the weight of the first:

    >>> weighted = Posterior(np.array([[[0.0], [4.0]]]), {"coef": (1,)}, ["a"], weights=[1, 3])
    >>> weighted.weights, weighted.mean("coef")
    (array([0.5, 1.5]), array([3.]))
    """

    # (draws, labels) whose R-hat and effective sample sizes `check` examines in place of those of
    # the parameters, for models whose parameters are not identified; None for all others.
    judged: Any = None
    # The labels before `with_labels`, where these name classes and columns; otherwise None.
    _labels_before: Any = None

    def __init__(
        self,
        flat: np.ndarray,
        shapes: Any,
        labels: Any,
        origin: dict[str, Any] | None = None,
        weights: Any = None,
        scores: Any = None,
        scores_of: Any = "all rows",
        evidence: Any = None,
        moments: Any = None,
        classes: Any = None,
        shift: Any = None,
        edges: Any = (),
    ) -> None:
        self.flat = checked_draws(flat)
        self.shapes = checked_shapes(shapes, self.flat.shape[2])
        self.labels = self._checked_labels(labels)
        self.origin = dict(origin or {})
        self.weights = weighting.normalised(weights, self.n_draws)
        self.scores, self.scores_of = checked_scores(scores, self.flat), scores_of
        self.evidence = dict(evidence or {})
        self.moments = moments
        self.classes, self.shift = None if classes is None else tuple(classes), shift
        self._edges = checked_edges(edges, self.labels)

    def _checked_labels(self, labels):
        return checked_labels(labels, self.flat.shape[2])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(self.shapes)

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.flat.shape[0]

    @property
    def n_draws(self) -> int:
        """Number of draws of each chain."""
        return self.flat.shape[1]

    @property
    def pooled_weights(self) -> np.ndarray | None:
        """The weights of the draws of all chains, one chain after the other; None if all are 1."""
        return None if self.weights is None else np.tile(self.weights, self.n_chains)

    def __getitem__(self, name):
        """Draws of a variable, (n_chains, n_draws, *shape), or of one labelled parameter."""
        return self._part(self.flat, name)

    def __contains__(self, name):
        return name in self.shapes or name in self.labels

    def __iter__(self):
        return iter(self.shapes)

    def __len__(self):
        return len(self.shapes)

    def _where(self, name):
        """The slice of the last axis of `flat` that holds a variable; `KeyError` for others."""
        first = 0
        for variable, shape in self.shapes.items():
            size = int(np.prod(shape, dtype=int))
            if variable == name:
                return slice(first, first + size)
            first += size
        raise KeyError(name)

    def require_draws(self) -> None:
        """Raise `ValueError` if no draws were kept."""
        if self.n_draws == 0:
            raise ValueError(
                "No draws were kept (keep='moments'), only means and standard deviations. Use, for "
                "example, keep=100 for predictions, quantiles and diagnostics."
            )

    def _part(self, values, name):
        """The part of `values` of a variable or label; the last axis is that of the parameters."""
        if name in self.shapes:
            shape = (*values.shape[:-1], *self.shapes[name])
            return values[..., self._where(name)].reshape(shape)
        if name in self.labels:
            return values[..., self.labels.index(name)]
        raise self._unknown(name)

    def _unknown(self, name):
        """The `KeyError` for a name that is no variable and no label; it suggests similar names."""
        ends = f"[{name}]", f", {name}]"
        meant = [label for label in self.labels if label.endswith(ends)]
        meant = meant or difflib.get_close_matches(str(name), [*self.names, *self.labels], 1)
        hint = f" Did you mean {' or '.join(map(repr, meant[:3]))}?" if meant else ""
        return KeyError(f"{name!r}: the variables are {list(self.names)}.{hint}")

    def _over_draws(self, reduce, name):
        """``reduce(draws, weights=, axis=)`` of a variable or label over chains and draws.

        None stands for all parameters.
        """
        self.require_draws()
        draws, weights = self.flat if name is None else self[name], self.weights
        if weights is not None:
            weights = np.broadcast_to(weights, self.flat.shape[:2])
        return reduce(draws, weights=weights, axis=(0, 1))

    def mean(self, name: str | None = None, control_variate: str | None = None) -> np.ndarray:
        """Posterior mean: the weighted mean of all draws that were made.

        Parameters
        ----------
        name : str, optional
            A variable or a label; all parameters in a row if None.
        control_variate : {None, "linear", "quadratic"}, default=None
            Degree of the polynomials with which the scores reduce the Monte Carlo error (see
            `skbayes_sg.postprocess.zero_variance`); None for the plain mean.

        Returns
        -------
        ndarray
            In the variable's shape.
        """
        if control_variate is None and self.moments is not None:
            values = self.moments.mean()
            return values if name is None else self._part(values, name)
        if control_variate is None:
            return self._over_draws(weighting.mean, name)
        return self._controlled(self.flat if name is None else self[name], control_variate)

    def std(self, name: str | None = None, control_variate: str | None = None) -> np.ndarray:
        """Posterior standard deviation: that of all draws that were made, with their weights.

        Parameters
        ----------
        name : str, optional
            A variable or a label; all parameters in a row if None.
        control_variate : {None, "linear", "quadratic"}, default=None
            As for `mean`; "quadratic" suits the second moments.

        Returns
        -------
        ndarray
            In the variable's shape.
        """
        if control_variate is None and self.moments is not None:
            values = self.moments.std()
            return values if name is None else self._part(values, name)
        if control_variate is None:
            return self._over_draws(weighting.std, name)
        draws, centre = self.flat if name is None else self[name], self.mean(name)
        off = draws - centre
        first, second = self._controlled(np.stack([off, off**2], axis=2), control_variate)
        variance = second - first**2
        # An estimate from few draws can be negative; the variance without control variates is
        # returned in its place.
        return np.where(variance > 0.0, np.sqrt(np.maximum(variance, 0.0)), self.std(name))

    def expectation(self, func: Callable, control_variate: str | None = None) -> np.ndarray:
        """Posterior mean of a function of the parameters.

        Parameters
        ----------
        func : callable
            ``func(posterior)`` returns its values at all draws, an array of shape (n_chains,
            n_draws, ...). An example is ``lambda p: np.exp(p["coef"])``.
        control_variate : {None, "linear", "quadratic"}, default=None
            As for `mean`.

        Returns
        -------
        ndarray
            In the shape of a value.

        Raises
        ------
        ValueError
            If no draws were kept, if the values are not one for each draw, for control variates
            without scores, and for a `control_variate` that does not exist.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayes_sg.posterior import Posterior
        >>> draws = np.random.default_rng(0).normal(size=(2, 200, 1))
        >>> posterior = Posterior(draws, {"coef": (1,)}, ["a"], scores=-draws)
        >>> square = posterior.expectation(lambda p: p["coef"] ** 2, control_variate="quadratic")
        >>> square.round(12)
        array([1.])
        """
        self.require_draws()
        values = np.asarray(func(self), dtype=np.float64)
        if values.shape[:2] != self.flat.shape[:2]:
            raise ValueError(
                f"func must return an array whose shape begins with {self.flat.shape[:2]}, got "
                f"{values.shape}."
            )
        if control_variate is not None:
            return self._controlled(values, control_variate)
        weights = self.weights
        if weights is not None:
            weights = np.broadcast_to(weights, values.shape[:2])
        return weighting.mean(values, weights=weights, axis=(0, 1))

    def _controlled(self, values, order):
        """Mean over the draws of values (n_chains, n_draws, ...), with control variates."""
        draws, scores = self._controls(order)
        return zero_variance(values, draws, scores, order=order, weights=self.weights).mean

    def _controls(self, control_variate):
        """Draws and scores for control variates; `ValueError` for a degree that does not exist."""
        if control_variate not in ORDERS:
            raise ValueError(
                f"control_variate must be None or one of {list(ORDERS)}, got {control_variate!r}."
            )
        return self._known_scores()

    def _known_scores(self):
        """Draws and scores in coordinates that have a density; `ValueError` without scores."""
        self.require_draws()
        if self.scores is None:
            raise ValueError(
                "This posterior has no scores. Mixtures, independent components, topics, ratings "
                "and networks never have them. Regressors and classifiers with linear predictors "
                "keep them for up to 2000 parameters, but not where draws have a closed form "
                "(sampler 'exact'), with group effects, or with scales that are learned. Without "
                "these two, skbayes_sg.inspection.full_scores computes them from the data; with "
                "them, compare fits by skbayes_sg.metrics.neg_log_predictive_density_scorer."
            )
        return self._with_density[:2]

    @property
    def sampled(self) -> np.ndarray:
        """The draws as they were sampled, which differ from `flat` for three or more classes.

        Class probabilities depend on differences between classes alone. The common shift of all
        classes is therefore not in `flat`, but it is in the prior and in `scores`.
        """
        if self.shift is None:
            return self.flat
        return of_classes.with_shift(self.flat, self.shift, *self._classes_and_intercept)

    @property
    def _classes_and_intercept(self):
        """The number of classes, and whether there are intercepts."""
        return len(self.classes), "intercept" in self.shapes

    @property
    def _of_classes(self):
        """The part of `flat` with the coefficients and intercepts, which come first."""
        sizes = [np.prod(self.shapes.get(name, 0), dtype=int) for name in ("coef", "intercept")]
        return self.flat[..., : sum(sizes)]

    @property
    def _with_density(self):
        """Draws and scores in coordinates that have a density without edges, and their labels."""
        if self._edges and self.scores is not None:
            return *self._logarithms_at_edges(), self.labels
        if self.shift is None or self.scores is None:
            return self.flat, self.scores, self.labels
        K, intercept = self._classes_and_intercept
        labels = of_classes.labels_of_full_rank(self.columns, self.classes, intercept)
        return *of_classes.full_rank(self.flat, self.shift, self.scores, K, intercept), labels

    def _logarithms_at_edges(self):
        """Draws and scores where parameters v with an edge at zero are replaced by log v.

        With the score s of v, the score of log v is 1 + v s.
        """
        flat, scores = self.flat.copy(), self.scores.copy()
        scores[..., self._edges] = 1.0 + scores[..., self._edges] * flat[..., self._edges]
        flat[..., self._edges] = np.log(flat[..., self._edges])
        return flat, scores

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns of X, of which there are coefficients; None without these."""
        return self._names_of_axes[1]

    @property
    def _names_of_axes(self):
        """The names of the rows and of the columns of coefficients.

        Where there are several rows, `with_labels` does not change them.
        """
        labels = self._labels_before or self.labels
        return of_classes.names_of_axes(labels, self.shapes, self.classes)

    def contrast(self, first: Any = None, reference: Any = None) -> "Posterior":
        """Posterior of the differences between the coefficients of classes.

        The difference is that of the log-odds of `first` against `reference`, for one unit of a
        column. It does not depend on how the coefficients of the classes are centred.

        Parameters
        ----------
        first : label, optional
            A class; all classes but `reference` if None.
        reference : label, optional
            The class that is subtracted; ``classes[0]`` if None.

        Returns
        -------
        Posterior
            With the variables "coef", of shape (n_differences, n_features), and "intercept": its
            means, intervals, `summary` and displays are those of the differences.

        Raises
        ------
        ValueError
            If there are no classes, no draws, or not these classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
        >>> posterior = model.posterior_.contrast(2, reference=1)
        >>> posterior.labels[3]
        'coef[2 - 1, petal width (cm)]'
        >>> lower, upper = posterior.interval(0.9, name=posterior.labels[3])
        >>> lower.round(), upper.round()
        (np.float64(1.0), np.float64(5.0))
        """
        self.require_draws()
        pairs, classes = of_classes.pairs(self.classes, first, reference), self.classes or ()
        rows = [f"{classes[a]} - {classes[b]}" for a, b in pairs]
        K, intercept = self._classes_and_intercept
        columns, flat = self.columns or (), self._of_classes
        if K == 2:  # one row of coefficients, of the second class against the first
            draws = flat if pairs[0] == (1, 0) else -flat
        else:
            draws = of_classes.differences(flat, K, intercept, pairs)
        labels = [f"coef[{row}, {name}]" for row in rows for name in columns]
        labels += [f"intercept[{row}]" for row in rows] * intercept
        shapes: dict[str, tuple[int, ...]] = {"coef": (len(pairs), len(columns))}
        if intercept:
            shapes["intercept"] = (len(pairs),)
        share = np.min(self.evidence.get("resampled_share", 1.0))
        evidence = {} if share == 1.0 else {"resampled_share": np.full(draws.shape[-1], share)}
        if "independent" in self.evidence:
            evidence["independent"] = np.ones(draws.shape[-1])
        return Posterior(draws, shapes, labels, self.origin, self.weights, evidence=evidence)

    @property
    def has_exact_scores(self) -> bool:
        """Whether the scores are exact, computed from all rows."""
        return self.scores is not None and self.scores_of == "all rows"

    def control_weights(self, control_variate: str = "linear") -> np.ndarray:
        """Weights of the pooled draws with which means are those of a control variate.

        Parameters
        ----------
        control_variate : {"linear", "quadratic"}, default="linear"
            As for `mean`.

        Returns
        -------
        ndarray of shape (n_chains * n_draws,)
            Their sum is one; some may be negative.
        """
        draws, scores = self._controls(control_variate)
        return zero_variance_weights(draws, scores, order=control_variate, weights=self.weights)

    def ksd(self, max_draws: int = 2000) -> SteinDiscrepancy:
        """Kernel Stein discrepancy: how far the draws are from the posterior, bias included.

        This is `skbayes_sg.diagnostics.kernel_stein_discrepancy` in standardised coordinates, whose
        limit for many draws is zero if and only if they are from the posterior. If scores are
        estimates, the diagonal is left out, so that their noise does not count. Equal draws, as
        resampling by importance weights makes them, count as one with their weight.

        Parameters
        ----------
        max_draws : int, default=2000
            Largest number of draws used, evenly spaced over all chains. The time grows with its
            square.

        Returns
        -------
        SteinDiscrepancy
            A float with the number of draws used, and with what the scores are of.

        Raises
        ------
        ValueError
            If there are no scores.
        """
        check_count("max_draws", max_draws)
        (draws, scores), each = self._known_scores(), max(1, max_draws // self.n_chains)
        kept = np.unique(np.linspace(0, self.n_draws - 1, min(each, self.n_draws)).astype(int))
        weights = None if self.weights is None else self.weights[kept]
        x, s, w = stein.merged(draws[:, kept], scores[:, kept], weights)
        found = stein.kernel_stein_discrepancy(x, s, weights=w, diagonal=self.has_exact_scores)
        found.scores = self.scores_of
        return found

    def check(self) -> Verdict:
        """Whether the draws can be trusted, and if not, why and what to do.

        This examines R-hat, effective sample sizes, means and variances by the scores, the kernel
        Stein discrepancy, and the effects of step size and gradient noise that the fit has
        measured: see `skbayes_sg.diagnostics.check_draws`. Of three or more classes, the scores
        judge the differences from the last class and the common shift of all classes.

        Returns
        -------
        Verdict
            It can be used as a condition, and shows one screen of text or a table in notebooks.
        """
        known = {"weights": self.weights, "evidence": self.evidence, "moments": self.moments}
        draws, labels = self.judged or (self.flat, self.labels)
        noisy = not self.has_exact_scores
        return verdict.examined(draws, labels, self._with_density, noisy=noisy, **known)

    def with_labels(self, labels: Sequence[str]) -> "Posterior":
        """Return this posterior with other names of its parameters.

        Parameters
        ----------
        labels : sequence of str
            One for each parameter, all of them different.

        Returns
        -------
        Posterior

        Raises
        ------
        ValueError
            For labels that are not one for each parameter, or not different.
        """
        other = copy(self)
        other.labels = checked_labels(labels, self.flat.shape[2])
        if math.prod(self.shapes.get("coef", (1,))[:-1]) > 1:
            other._labels_before = self._labels_before or self.labels
        return other

    def with_scores(self, scores: np.ndarray, scores_of: str = "all rows") -> "Posterior":
        """Return this posterior with other scores.

        Parameters
        ----------
        scores : array of shape (n_chains, n_draws, n_parameters)
            Gradient of the log posterior at each draw.
        scores_of : str, default="all rows"
            What they were computed from.

        Returns
        -------
        Posterior
        """
        other = copy(self)
        other.scores, other.scores_of = checked_scores(scores, self.flat), scores_of
        return other

    def to_arviz(self) -> Any:
        """The draws in the format of ArviZ, for its plots, files and statistics.

        It needs ArviZ, or the package ``arviz-base`` alone (``pip install "skbayes_sg[arviz]"``).
        The method of the same name of an estimator adds log-likelihoods and predictions.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            The latter if a version of ArviZ below 1.0 is installed. The group ``posterior`` has the
            variables; the axis ``coef_dim`` of coefficients has the names of the columns as
            coordinates, and ``class_dim`` those of the classes. If the draws have weights, the
            group ``sample_stats`` has the ``weight`` of each.
        """
        self.require_draws()
        return to_arviz(self)

    def quantile(self, q: Sequence[float] | float, name: str | None = None) -> np.ndarray:
        """Posterior quantiles.

        They are interpolated between draws if all have the same weight. Otherwise a quantile is the
        smallest draw such that it and those below it have at least the share q of the weight.

        Parameters
        ----------
        q : float or sequence of float in [0, 1]
            Probabilities.
        name : str, optional
            A variable or a label; all parameters in a row if None.

        Returns
        -------
        ndarray
            In the variable's shape, with one more axis in front if q is a sequence.

        Raises
        ------
        ValueError
            For probabilities outside of [0, 1], and if no draws were kept.
        KeyError
            For a name that is no variable and no label.
        """
        shares = np.asarray(q, dtype=np.float64)
        if not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise ValueError(f"q must lie in [0, 1], got {shares!r}.")
        return self._over_draws(partial(weighting.quantile, q=shares), name)

    def interval(self, mass: float = 0.9, name: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Central posterior interval.

        Parameters
        ----------
        mass : float in (0, 1), default=0.9
            Probability of the interval; the probabilities below and above it are equal.
        name : str, optional
            A variable or a label; all parameters in a row if None.

        Returns
        -------
        lower, upper : ndarray
            In the variable's shape.
        """
        lower, upper = self.quantile(central("mass", mass), name)
        return lower, upper

    def hdi(self, mass: float = 0.9, name: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Highest density interval: the shortest interval with this probability.

        Every value inside is more probable than every value outside, if the density has one mode.
        For a skewed posterior it differs from `interval`, and it changes if the parameter is
        transformed. Its ends are draws, so that they have a larger Monte Carlo error. With weights
        it is the shortest interval [a, b] between draws that has this share of the weight, both
        ends included; without, its lower end does not count, as in ArviZ.

        Parameters
        ----------
        mass : float in (0, 1), default=0.9
            Probability of the interval.
        name : str, optional
            A variable or a label; all parameters in a row if None.

        Returns
        -------
        lower, upper : ndarray
            In the variable's shape.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayes_sg.posterior import Posterior
        >>> draws = np.random.default_rng(0).exponential(size=(4, 5000, 1))
        >>> posterior = Posterior(draws, {"scale": ()}, ["scale"])
        >>> [float(end.round(1)) for end in posterior.hdi(0.9, "scale")]  # -log 0.1 = 2.3
        [0.0, 2.3]
        >>> [float(end.round(1)) for end in posterior.interval(0.9, "scale")]
        [0.1, 3.0]
        """
        central("mass", mass)
        self.require_draws()
        draws = self.flat if name is None else self[name]
        shape = draws.shape[2:]
        pooled = draws.reshape(self.n_chains * self.n_draws, -1)
        ends = shortest_interval(pooled, self.pooled_weights, mass)
        return ends[0].reshape(shape), ends[1].reshape(shape)

    def to_frame(self) -> "pandas.DataFrame":
        """The draws as a table of pandas.

        Returns
        -------
        pandas.DataFrame
            One row for each draw, with chain and draw as index, and one column for each parameter,
            named by its label; if the draws have weights, there is also a column ``weight``.

        Raises
        ------
        ValueError
            If there are no draws, or if the draws have weights and a parameter is called
            ``weight``.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayes_sg.posterior import Posterior
        >>> draws = np.arange(8.0).reshape(2, 2, 2)
        >>> Posterior(draws, {"coef": (2,)}, ["coef[age]", "coef[mass]"]).to_frame()
                    coef[age]  coef[mass]
        chain draw
        0     0           0.0         1.0
              1           2.0         3.0
        1     0           4.0         5.0
              1           6.0         7.0
        """
        import pandas as pd

        self.require_draws()
        if self.weights is not None and "weight" in self.labels:
            raise ValueError(
                "A parameter has the label 'weight', which is the column of the weights of these "
                "draws. Give it another name by with_labels."
            )
        levels = range(self.n_chains), range(self.n_draws)
        index = pd.MultiIndex.from_product(levels, names=["chain", "draw"])
        values = self.flat.reshape(len(index), -1)
        frame = pd.DataFrame(values, index=index, columns=list(self.labels))
        if self.weights is not None:
            frame["weight"] = self.pooled_weights
        return frame

    def summary(self, mass: float = 0.9) -> Summary:
        """A table of all parameters: mean, sd, interval, R-hat, ESS and Monte Carlo errors.

        The columns are ``mean``, ``sd``, the ends of the interval (``5%`` and ``95%``), and, by
        `skbayes_sg.diagnostics.convergence`, ``rhat``, ``ess_bulk``, ``ess_tail``, ``mcse_mean``
        and ``mcse_sd``, which is NaN for tails so heavy that mean and sd depend on the farthest
        draws. All columns but R-hat use the weights. If not all draws were kept, ``rhat``, ``ess``
        and ``mcse_mean`` refer to all of them, by batch means.

        After fits with stochastic gradients there are also ``bias``, the bias of the mean due to
        the step size in posterior standard deviations, ``bias_mcse``, its standard error, both from
        coupled chains one of which has half the time step, and ``noise``, the share of the variance
        that the noise of the gradient adds.

        Parameters
        ----------
        mass : float in (0, 1), default=0.9
            Probability inside the interval.

        Returns
        -------
        Summary
            It prints as text or as a table in notebooks; ``.to_frame()`` converts it for pandas.
        """
        return summarise(self, mass)

    def _repr_html_(self):
        """HTML for notebooks: the summary, findings of the checks, and the shapes of variables."""
        shapes = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{shape}</td></tr>"
            for name, shape in self.shapes.items()
        )
        table = f"<table><tr><th>variable</th><th>shape</th></tr>{shapes}</table>"
        if len(self.labels) > MOST_IN_HTML:
            return f"<p>{html.escape(heading(self))}</p>{table}"
        found = [f"{f.name}: {f.text} {f.remedy}" for f in verdict.quick_findings(self)]
        notes = "".join(f"<p><b>{html.escape(text)}</b></p>" for text in found)
        folded = f"<details><summary>Shapes</summary>{table}</details>"
        return self.summary()._repr_html_() + notes + folded

    def __repr__(self):
        shapes = ", ".join(f"{name} {shape}" for name, shape in self.shapes.items())
        return f"<Posterior of {shapes}; {heading(self)}>"
