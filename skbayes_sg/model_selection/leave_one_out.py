"""Leave-one-out cross-validation from the draws of one fit, in blocks of rows."""

import math
import warnings
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._base.typing import ArrayLike, MatrixLike
from ..diagnostics import convergence
from ..exceptions import ParetoKWarning
from ..kernels.layout import frozen
from ..metrics import given, unwrapped
from .pareto_smoothing import ELPD, LPPD, PARETO_K, leave_one_out, tail_size

__all__ = ["LeaveOneOut", "loo"]

LOOKED_AT = 100  # most parameters whose effective sample sizes give the efficiency of the chains

GOOD_K = 0.7  # largest k that is no reason to worry, however many draws there are


class LeaveOneOut:
    """The result of `loo`: how well a model predicts each row from all others.

    Parameters
    ----------
    values : array of shape (n_rows, 3)
        Leave-one-out and in-sample log predictive densities, and Pareto k, of each row.
    y : array of shape (n_rows,)
        The responses or labels.
    sample_weight : array of shape (n_rows,)
        Weights of the rows.
    n_draws : int
        Number of draws.
    r_eff : float
        Effective draws, as a share of all.
    model : str
        The name of the estimator's class.
    is_density : bool
        Whether predictions are densities, of continuous responses.

    Attributes
    ----------
    elpd : float
        Expected log predictive density for as many new rows as there are: the sum of `elpd_i`, by
        weight. Greater is better.
    se : float
        Standard error of `elpd`: by how much it would vary with other rows of the same kind.
    p_loo : float
        Effective number of parameters: the log predictive density of the rows that were seen, minus
        `elpd`. Much more than the number of parameters says that the model does not fit.
    elpd_i, pareto_k, p_loo_i : ndarray of shape (n_rows,)
        The values of each row. A row of weight 3 is three rows, each of which is left out alone.
        `pareto_k` is the shape of the tail of its importance weights, -inf where all weights are
        the same.
    good_k : float
        Below this k an estimate can be trusted: min(0.7, 1 - 1/log10(n_draws)).
    n_high_k : int
        Number of rows with a greater k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.model_selection import loo
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = loo(BayesianLinearRegression(random_state=0).fit(X, y), X, y)
    >>> found.elpd_i.shape, found.n_high_k
    ((442,), 0)
    """

    def __init__(
        self,
        values: np.ndarray,
        y: np.ndarray,
        sample_weight: np.ndarray,
        n_draws: int,
        r_eff: float,
        model: str,
        is_density: bool,
    ) -> None:
        self.elpd_i, self.pareto_k = values[:, ELPD], values[:, PARETO_K]
        self.p_loo_i = values[:, LPPD] - self.elpd_i
        self.y, self.sample_weight, self.model = y, sample_weight, model
        self.n_draws, self.r_eff, self.is_density = n_draws, r_eff, is_density

    @property
    def elpd(self) -> float:
        """Expected log predictive density."""
        return float(self.sample_weight @ self.elpd_i)

    @property
    def se(self) -> float:
        """Standard error of `elpd`."""
        return standard_error(self.elpd_i, self.sample_weight)

    @property
    def p_loo(self) -> float:
        """Effective number of parameters."""
        return float(self.sample_weight @ self.p_loo_i)

    @property
    def good_k(self) -> float:
        """The largest k that is no reason to worry."""
        return min(GOOD_K, 1.0 - 1.0 / math.log10(self.n_draws)) if self.n_draws > 10 else 0.0

    @property
    def n_high_k(self) -> int:
        """Number of rows whose k is larger, or is not known."""
        return int(np.sum(~(self.pareto_k <= self.good_k) & (self.sample_weight > 0.0)))

    def __repr__(self):
        p_se = standard_error(self.p_loo_i, self.sample_weight)
        return (
            f"Leave-one-out: {self.model}, {len(self.y)} rows, {self.n_draws} draws\n"
            f"  elpd   {self.elpd:12.1f}   se {self.se:.1f}\n"
            f"  p_loo  {self.p_loo:12.1f}   se {p_se:.1f}\n"
            f"  Pareto k: {_said_of_k(self)}"
        )


def loo(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> LeaveOneOut:
    r"""Leave-one-out cross-validation of a fitted model, without refitting it.

    The posterior without row i is reached from the draws of the fit by importance weights, whose
    tails are smoothed by a generalised Pareto law [1]_ [2]_:

    .. math::

        \mathrm{elpd} = \sum_i w_i \log p(y_i \mid x_i, D_{-i}), \qquad
        p(y_i \mid x_i, D_{-i}) \approx \frac{\sum_s \tilde w_{is}\, p(y_i \mid x_i, \theta_s)}
        {\sum_s \tilde w_{is}}.

    The numbers are those of `arviz_stats.loo`
    (``tests/model_selection/test_loo.py::test_numbers_are_those_of_arviz``), computed in blocks of
    rows: the matrix of all rows and draws never exists
    (``tests/model_selection/test_loo.py::test_the_matrix_of_rows_and_draws_never_exists``). Draws
    with weights of their own, draws that were resampled and chains with autocorrelation are
    accounted for.

    Parameters
    ----------
    estimator : estimator
        A fitted regressor or classifier of this package with a likelihood of rows; also as the last
        step of a pipeline, or in a search.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The rows that the estimator was fitted to.
    y : array-like of shape (n_rows,)
        Responses or labels of the rows.
    sample_weight : array-like of shape (n_rows,), optional
        The weights of the fit.
    exposure : array-like of shape (n_rows,), optional
        The exposures of counts in the fit.

    Returns
    -------
    LeaveOneOut

    Warns
    -----
    ParetoKWarning
        Where Pareto k of some rows is too large: their estimates cannot be trusted.

    Raises
    ------
    TypeError
        For estimators whose rows do not have a likelihood of their own.
    ValueError
        If the rows are not those of the fit.

    See Also
    --------
    compare : Which of several models predicts best.

    Notes
    -----
    Rows are left out one at a time: for time series and groups use cross-validation by
    `sklearn.model_selection` and `skbayes_sg.metrics.neg_log_predictive_density_scorer`. What a
    pipeline learns before its last step, such as means of columns, is not learnt anew without the
    row. Under `class_weight` the power of its class is what a row loses.

    The effect of a group level that only one row has is known from that row alone, and importance
    weights of its draws fail. It is integrated out of the likelihood of the row
    (`skbayes_sg.groups.alone`), which then is that of a level not seen before. A row of weight 3 is
    three rows, so that its level has others.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman and J. Gabry (2017). Practical Bayesian model evaluation using
       leave-one-out cross-validation and WAIC. Statistics and Computing 27, 1413-1432.
    .. [2] A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry (2024). Pareto smoothed importance
       sampling. Journal of Machine Learning Research 25(72), 1-58.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.model_selection import loo
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=0))
    >>> found = loo(model.fit(X[:, :4], y), X[:, :4], y)
    >>> print(f"elpd {found.elpd:.0f}, standard error {found.se:.0f}, p_loo {found.p_loo:.0f}")
    elpd -139, standard error 12, p_loo 3
    """
    final, X = unwrapped(estimator, X)
    if not hasattr(final, "_of_likelihoods"):
        raise TypeError(_refusal(final))
    check_is_fitted(final)
    posterior, n_rows = final.posterior_, len(y) if hasattr(y, "__len__") else np.shape(X)[0]
    posterior.require_draws()
    y = column_or_1d(y)
    weight = _check_sample_weight(sample_weight, np.empty((n_rows, 1)), ensure_non_negative=True)
    more = given(exposure)
    final._check_rows_of_fit(X, y, sample_weight, *more.values())
    powers, log_weights = final._powers_of(y, weight), _log_weights(final)
    r_eff = _efficiency(posterior)
    M = tail_size(len(log_weights), r_eff)

    def of_block(rows, log_likelihood, removed):
        return leave_one_out(log_likelihood, removed, log_weights, M)

    values = final._of_rows_left_out(X, y, of_block, weight, powers, **more)
    name, is_density = type(final).__name__, not final._is_discrete
    found = LeaveOneOut(values, y, weight, len(log_weights), r_eff, name, is_density)
    if found.n_high_k:
        _warn_of_high_k(found)
    return found


def standard_error(values, weight):
    """Standard error √(n Var) of the sum of n values, where a value of weight 3 is three values."""
    total = weight.sum()
    mean = weight @ values / total
    return float(np.sqrt(weight @ np.square(values - mean)))


def _log_weights(final):
    """Logarithms of the weights of all draws of a fitted estimator, where weights add up to 1."""
    posterior, weights = final.posterior_, final._pooled_weights
    n = posterior.n_chains * posterior.n_draws
    if weights is None:
        return frozen(np.full(n, -math.log(n)))
    with np.errstate(divide="ignore"):
        return frozen(np.maximum(np.log(weights / weights.sum()), -1e3))


def _efficiency(posterior):
    """Effective sample size for means as a share of all draws, at most 1.

    It is the mean over at most `LOOKED_AT` evenly spaced parameters.
    """
    flat = posterior.flat
    chosen = np.unique(np.linspace(0, flat.shape[2] - 1, LOOKED_AT).astype(int))
    ess = convergence.ess_mean(flat[:, :, chosen], posterior.weights)
    share = np.mean(posterior.evidence.get("resampled_share", 1.0))
    known = ess[np.isfinite(ess)]
    found = share * known.mean() / (flat.shape[0] * flat.shape[1]) if len(known) else share
    return float(min(1.0, found))


def _refusal(final):
    """The message that says why an estimator has no leave-one-out estimate, and what to use."""
    name = type(final).__name__
    weights = (
        "the weights of a network are not identified, and its chains may be in different modes. "
        "Use sklearn.model_selection.cross_validate"
    )
    reasons = {
        "BayesianMLPClassifier": weights,
        "BayesianMLPRegressor": weights,
        "BayesianModuleClassifier": weights,
        "BayesianModuleRegressor": weights,
        "BayesianLDA": "the words of a document share its topics. Use perplexity of held-out words",
        "CustomDensity": "its density of a row need not be that of one response. Use "
        "sklearn.model_selection.cross_validate, whose scores are mean log predictive densities",
        "BayesianPMF": "a rating is told by the factors of its user and item, which few other "
        "ratings determine. Use sklearn.model_selection.cross_validate",
    }
    if name in reasons:
        return f"{name} has no leave-one-out estimate by importance sampling: {reasons[name]}."
    return (
        "loo needs a fitted regressor or classifier of skbayes_sg with a posterior, also in a "
        f"pipeline or a search; got {name}."
    )


def _said_of_k(found):
    """A phrase on the Pareto k of all rows: how many are too large, and the largest."""
    k = found.pareto_k[found.sample_weight > 0.0]
    largest = "unknown (too few draws)" if np.isnan(k).all() else f"{np.nanmax(k):.2f}"
    many = f"above {found.good_k:.2f} for {found.n_high_k} of {len(found.y)} rows"
    return f"{many if found.n_high_k else 'good for all rows'}, the largest is {largest}"


def _warn_of_high_k(found):
    """`ParetoKWarning` that the estimates of some rows cannot be trusted."""
    more = "" if found.good_k >= GOOD_K else "Make more draws, with which larger k are good. "
    warnings.warn(
        f"Pareto k is {_said_of_k(found)}. Without such a row the posterior would be another one, "
        f"and its elpd_i is not known: as a rule it is too high. {more}Look at these rows, use a "
        "model with heavier tails or a narrower prior, or cross-validate with "
        "skbayes_sg.metrics.neg_log_predictive_density_scorer.",
        ParetoKWarning,
        stacklevel=3,
    )
