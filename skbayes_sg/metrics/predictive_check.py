"""Posterior predictive checks: are data that the model makes like those that were observed?

For replications y* of the observed y and a statistic T, p = P(T(y*) > T(y)), plus half the
probability of equality. Replications are draws of the joint predictive law of all rows, each from
one draw of the posterior. For rows that were kept back from the fit, p is uniform if model and
posterior are right. For the rows of the fit, to which the model has adapted, T(y) is too small as a
rule if T measures distances from predictions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base.typing import ArrayLike, MatrixLike, RandomState
from .._base.validation import check_count, warn_without_exposure
from .scores import given, unwrapped

__all__ = ["PredictiveCheck", "posterior_predictive_check"]

ONE_SIDED = frozenset(["calibration"])  # statistics whose large values alone speak against a model
SURPRISING = 0.01  # p below which a statistic is marked
BLOCK = 1 << 21  # numbers (replications times rows) that are drawn together
GROUPS = 10  # number of groups of rows with similar probabilities, for "calibration"
QUARTILE = 0.6744897501960817  # upper quartile of the standard normal law
LEAST = np.finfo(np.float64).tiny  # lower bound of standard deviations, probabilities, variances
# The functions that the user of a custom estimator gives, by the methods that need them.
FUNCTIONS = {"sample_y": "sample", "predict": "mean"}


@dataclass(frozen=True)
class PredictiveCheck:
    """The result of a posterior predictive check; it prints as a table.

    Parameters
    ----------
    estimator : str
        Name of the class of the estimator.
    n_rows : int
        Number of rows that were checked.
    observed : dict of str to float
        Each statistic of the observed data.
    replicated : dict of str to ndarray of shape (n_draws,)
        Each statistic of the replications.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.metrics import PredictiveCheck
    >>> rng = np.random.default_rng(0)
    >>> replicated = {"dispersion": rng.normal(1.0, 0.05, 500)}
    >>> check = PredictiveCheck("BayesianPoissonRegressor", 400, {"dispersion": 3.2}, replicated)
    >>> check
    Posterior predictive check of BayesianPoissonRegressor: 400 rows, 500 replications
                observed  replicated (90 %)      p
    dispersion       3.2     0.926 to 1.08   0.002  !
    >>> check.surprising()
    ['dispersion']
    """

    estimator: str
    n_rows: int
    observed: dict
    replicated: dict

    @property
    def p_values(self) -> dict[str, float]:
        """For each statistic, the probability of a value at least as far from the middle: a dict.

        For "calibration" it is the probability of a value at least as large.
        """
        return {
            name: _p_value(T, self.replicated[name], name in ONE_SIDED)
            for name, T in self.observed.items()
        }

    def surprising(self, level: float = SURPRISING) -> list[str]:
        """Statistics that the model hardly ever has.

        Parameters
        ----------
        level : float, default=0.01
            The p below which a statistic is surprising.

        Returns
        -------
        list of str
        """
        return [name for name, p in self.p_values.items() if p < level]

    def to_frame(self) -> Any:
        """The table as a `pandas.DataFrame`, with a row for each statistic."""
        import pandas as pd

        columns = ["observed", "lower", "upper", "p"]
        return pd.DataFrame(self._rows(), index=list(self.observed), columns=columns)

    def _rows(self):
        """Yield (observed, 5 % and 95 % quantile of the replications, p) of every statistic."""
        for name, p in self.p_values.items():
            yield self.observed[name], *np.quantile(self.replicated[name], [0.05, 0.95]), p

    def __repr__(self):
        n_draws = len(next(iter(self.replicated.values())))
        width = max(map(len, self.observed))
        lines = [
            f"Posterior predictive check of {self.estimator}: {self.n_rows} rows, {n_draws} "
            f"replications\n{'':<{width}}  observed  replicated (90 %)      p"
        ]
        for name, (observed, lower, upper, p) in zip(self.observed, self._rows(), strict=True):
            spread = f"{lower:.3g} to {upper:.3g}"
            mark = "  !" if p < SURPRISING else ""
            lines.append(f"{name:<{width}}{observed:>10.3g}{spread:>18}{p:>8.3f}{mark}")
        return "\n".join(lines)


def _p_value(observed, replicated, one_sided):
    """The one-sided or two-sided p of an observed statistic among replicated ones (n_draws,).

    Ties count one half, and half a draw is added on both sides, so that p is never zero.
    """
    above = (replicated > observed).sum() + 0.5 * (replicated == observed).sum()
    share = (above + 0.5) / (len(replicated) + 1)
    return float(share if one_sided else 2.0 * min(share, 1.0 - share))


def _check_functions(final):
    """`TypeError` for an estimator to which the user has not given the functions of the check."""
    kind = type(final)
    lacking = [
        parameter
        for method, parameter in FUNCTIONS.items()
        if hasattr(kind, method) and getattr(final, parameter, method) is None
    ]
    if lacking:
        raise TypeError(
            f"posterior_predictive_check needs draws of y and their mean, and {kind.__name__} was "
            f"given no function for them: use set_params({'=..., '.join(lacking)}=...). After a "
            "fit this needs no other fit."
        )


def posterior_predictive_check(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    *,
    exposure: ArrayLike | None = None,
    n_draws: int = 500,
    statistics: Any = None,
    random_state: RandomState = 0,
) -> PredictiveCheck:
    r"""Compare observed data with data that the fitted model makes for the same rows.

    For numbers, with :math:`z = (y - m)/s` for the mean m and the standard deviation s that
    `predict` returns:

    * **dispersion**: the mean of :math:`z^2`. Poisson regression of overdispersed counts has too
      little; `BayesianNegativeBinomialRegressor` learns it.
    * **zeros**, of counts: the share of counts that are zero.
    * **skewness**, of other numbers: the mean of :math:`z^3`.
    * **tails**: the largest :math:`|z|`.

    For classes, with the probabilities p that `predict_proba` returns:

    * **calibration**: the sum of :math:`(O - E)^2 / V` over ten groups of rows with similar
      probabilities of each class, for the observed and the expected number of the class.
    * **log loss**: the mean of :math:`-\log p` of the labels.
    * **tails**: the largest :math:`-\log p` of a label.

    Use rows that were kept back from the fit: p is then uniform if model and posterior are right.
    The model has adapted to the rows of the fit: for these, values above the replications are even
    stronger evidence, and values below them may only say that there are many parameters for the
    rows. For the calibration only large values count. The smallest p that can be found is
    1/(n_draws + 1), and for the calibration one half of that.

    Parameters
    ----------
    estimator : estimator
        A fitted regressor or classifier of this package; also as the last step of a pipeline, or in
        a search.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Observed numbers, counts or labels.
    exposure : array-like of shape (n_rows,), optional
        Exposures of counts.
    n_draws : int, default=500
        Number of replications; of a classifier at most as many as it has draws.
    statistics : dict of str to callable, optional
        Statistics in the place of those above: ``statistic(y, mean, std)`` for numbers,
        ``statistic(codes, probabilities)`` for classes, where codes are the positions of the labels
        in ``classes_``. Each returns a number.
    random_state : int, RandomState instance or None, default=0
        Seed of the replications.

    Returns
    -------
    PredictiveCheck
        With ``observed``, ``replicated`` and ``p_values``; it prints as a table.

    Raises
    ------
    TypeError
        For an estimator that cannot replicate data, such as a `CustomRegressor` without `sample`
        or `mean`, and for exposures of a classifier.
    ValueError
        For rows, labels or exposures that cannot be used.

    Warns
    -----
    UserWarning
        If the estimator was fitted with exposures, and there are none here.

    References
    ----------
    A. Gelman, X.-L. Meng and H. Stern (1996). Posterior predictive assessment of model fitness via
    realized discrepancies. Statistica Sinica 6, 733-807.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianNegativeBinomialRegressor, BayesianPoissonRegressor
    >>> from skbayes_sg.metrics import posterior_predictive_check
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0]) * rng.gamma(2.0, 0.5, size=600))
    >>> for estimator in (BayesianPoissonRegressor, BayesianNegativeBinomialRegressor):
    ...     model = estimator(random_state=0).fit(X[:300], y[:300])
    ...     print(posterior_predictive_check(model, X[300:], y[300:]).surprising())
    ['dispersion', 'zeros', 'tails']
    []
    """
    check_count("n_draws", n_draws)
    final, X = unwrapped(estimator, X)
    check_is_fitted(final)
    _check_functions(final)
    y = column_or_1d(y)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    seed = streams.seed_of(random_state)
    if hasattr(final, "predict_proba_samples"):
        if exposure is not None:
            raise TypeError(f"{type(final).__name__} has no exposures: pass none.")
        observed, made, reference, known = _of_classes(final, X, y, n_draws, seed)
    elif hasattr(final, "sample_y"):
        warn_without_exposure(final, exposure, "posterior_predictive_check")
        observed, made, reference, known = _of_numbers(final, X, y, given(exposure), n_draws, seed)
    else:
        raise TypeError(
            f"estimator must be a fitted classifier or regressor of this package, got {final!r}."
        )
    statistics = known if statistics is None else statistics
    replicated: dict[str, list[float]] = {name: [] for name in statistics}
    for one in made:
        for name, T in statistics.items():
            replicated[name].append(float(T(one, *reference)))
    return PredictiveCheck(
        type(final).__name__,
        len(y),
        {name: float(T(observed, *reference)) for name, T in statistics.items()},
        {name: np.array(values) for name, values in replicated.items()},
    )


# -- numbers ---------------------------------------------------------------------------------------


def _z(y, mean, std):
    """Standardised residuals of the rows."""
    return (y - mean) / std


NUMBERS = {
    "dispersion": lambda *rows: np.square(_z(*rows)).mean(),
    "skewness": lambda *rows: (_z(*rows) ** 3).mean(),
    "tails": lambda *rows: np.abs(_z(*rows)).max(),
}
COUNTS = {
    "dispersion": NUMBERS["dispersion"],
    "zeros": lambda y, mean, std: (y == 0.0).mean(),
    "tails": NUMBERS["tails"],
}


def _of_numbers(final, X, y, more, n_draws, seed):
    """(observed y, iterator over replications, (mean, std), statistics) for a regressor."""
    y = np.asarray(y, dtype=np.float64)
    assert_all_finite(y, input_name="y")  # objects may be NaN as numbers alone
    mean, std = final.predict(X, return_std=True, **more)
    # Predictions with heavy tails have no standard deviation: it is that of the normal law with
    # their quartiles.
    if not np.isfinite(std).all():
        lower, upper = final.predict_interval(X, 0.5, **more)
        std = (upper - lower) / (2.0 * QUARTILE)
    std = np.maximum(std, LEAST)

    def made():
        each = max(1, BLOCK // len(y))
        for first in range(0, n_draws, each):
            own, block = (seed + first) % 2**32, min(each, n_draws - first)
            yield from final.sample_y(X, block, random_state=own, **more).T

    known = COUNTS if getattr(final, "_is_discrete", False) else NUMBERS
    return y.astype(np.float64), made(), (mean, std), known


# -- classes ---------------------------------------------------------------------------------------


def _log_losses(codes, p):
    """-log p of the observed class of each row, given class numbers and probabilities (n, K)."""
    return -np.log(np.maximum(p[np.arange(len(codes)), codes], LEAST))


def _calibration(codes, p):
    """Σ (O - E)²/V over the classes and over groups of rows with similar probabilities.

    O is the observed number of the class in a group, E the expected one, and V its variance. Of two
    classes only the second counts.
    """
    total, n_groups = 0.0, min(GROUPS, len(codes))
    for k in range(1 if p.shape[1] == 2 else 0, p.shape[1]):
        group = np.empty(len(codes), dtype=int)
        group[np.argsort(p[:, k], kind="stable")] = np.arange(len(codes)) * n_groups // len(codes)
        expected = np.bincount(group, p[:, k])
        variance = np.bincount(group, p[:, k] * (1.0 - p[:, k]))
        observed = np.bincount(group, codes == k)
        total += (np.square(observed - expected) / np.maximum(variance, LEAST)).sum()
    return total


CLASSES = {
    "calibration": _calibration,
    "log loss": lambda codes, p: _log_losses(codes, p).mean(),
    "tails": lambda codes, p: _log_losses(codes, p).max(),
}


def _of_classes(final, X, y, n_draws, seed):
    """(class numbers, iterator over replications, (probabilities,), statistics) of a classifier."""
    unknown = np.setdiff1d(y, final.classes_)
    if len(unknown):
        raise ValueError(f"y holds the label {unknown[0]}, which is not among the classes.")
    p = final.predict_proba(X)
    n_draws = min(n_draws, final.posterior_.n_chains * final.posterior_.n_draws)
    rng, codes = streams.of_predictions(seed), np.empty((n_draws, len(y)), dtype=np.int32)
    step = max(1, BLOCK // (n_draws * p.shape[1]))
    for first in range(0, len(y), step):
        rows = slice(first, first + step)
        up_to = final.predict_proba_samples(X[rows], n_draws).cumsum(axis=2)
        u = rng.random(up_to.shape[:2])[:, :, None]
        codes[:, rows] = (u > up_to[:, :, :-1]).sum(axis=2)
    return np.searchsorted(final.classes_, y), iter(codes), (p,), CLASSES
