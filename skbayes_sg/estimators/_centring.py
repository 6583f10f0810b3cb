"""Columns far from zero, such as times in seconds since 1970.

With an intercept b, columns of means m and standard deviations s have a Hessian of condition
(m/s)², which double precision does not resolve beyond m/s of some 10⁶. If the prior of b is flat,
β and a = b + mᵀβ have the posterior of rows x - m, whose Hessian is as good as that of any rows:
so these are sampled, from m/s of 10³ on. Under any other prior of b the columns are refused.

Long before that, a prior N(0, s₀²) of b would hold back the coefficients of such columns: b is the
predictor where all columns are zero, and an effect of 0.1 a year needs b = -200 in the year 2000.
Since the data determine the predictor amid the rows, the prior of b acts as a second prior of the
coefficient, N(0, (s₀/m)²). The default prior is one of the predictor amid the rows, as far as a
prior of b alone can be. It gives way to columns of means m_j that are more than 1.5 standard
deviations s_j from zero,

    b ~ N(0, s₀² + Σ_j (5 m_j min(u_j, s₀/s_j))²),

with u_j the scale of a normal prior of the coefficient, or ∞ for other priors and where the scale
is learned: the second prior of a coefficient is five times as wide as its own one, unless the
column may change the predictor by more than s₀ for a standard deviation. With the factor of five,
the posterior of a coefficient that only its prior determines becomes 2 % narrower, and for columns
up to 1.5 standard deviations from zero, with the usual u_j = 2.5/s_j, 7 %.
"""

import warnings

import numpy as np
from scipy import sparse

from .._base import memmap
from .._base.columns import weighted_moments
from ..exceptions import PriorConflictWarning
from ..priors import Flat, Normal
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family, resolve

__all__ = ["REFUSED_FROM", "centre_of", "check_near", "giving_way", "uncentred"]
__all__ += ["warn_if_held_back"]

# Limits of the absolute mean of a column, in its standard deviations.
REFUSED_FROM = 4e6  # beyond it columns must be centred, and are refused where they cannot be
# From here on columns are centred where that leaves the posterior the same: rounding errors of a
# response far from zero become 10³ times as large.
CENTRED_FROM = 1e3
WIDENING = 5.0  # factor c in the default prior N(0, s₀² + Σ_j (c m_j min(u_j, s₀/s_j))²)
WIDENED_FROM = 1.5  # up to here a column does not widen the default prior of an intercept
ROUNDING = 1e14  # beyond it values differ in their last digits only, and the column is constant
SOME_ROWS = 1000  # rows from which moments of columns are estimated first
HELD_BACK = 1.0  # posterior standard deviations by which a default prior may move an intercept


def centre_of(estimator, X, weight, far=CENTRED_FROM):
    """What to subtract from the columns: means of those far from zero, 0 for all others, or None.

    Columns whose means are more than `far` standard deviations from zero are centred where the
    posterior stays the same. Where it does not, they are left as they are, and refused beyond
    `REFUSED_FROM`.

    Raises
    ------
    ValueError
        For columns beyond `REFUSED_FROM` if centred rows have another posterior, or need a copy.
    """
    mean, variance = _of_some_rows(X, weight)
    if not (np.abs(mean) > 0.1 * far * np.sqrt(variance)).any():
        return None
    if not sparse.issparse(X):
        _warn_of_rounding(estimator, X)
        _, mean, variance = weighted_moments(X, weight)
    distant = _is_far(mean, variance, far)
    if not distant.any():
        return None
    if not _can_be_centred(estimator, X):
        check_near(estimator, mean, variance)
        return None
    return np.where(distant, mean, 0.0)


def _of_some_rows(X, weight):
    """Means and variances of the columns in at most `SOME_ROWS` evenly spaced rows."""
    rows = np.unique(np.linspace(0, X.shape[0] - 1, SOME_ROWS).astype(int))
    some = memmap.gather(X, rows)
    some = some.toarray() if sparse.issparse(some) else some.astype(np.float64, copy=False)
    return weighted_moments(some, weight[rows])[1:]


def giving_way(prior, target, learned):
    """The table of a prior with normal intercepts, widened for columns far from zero.

    Parameters
    ----------
    prior : ndarray of shape (n_parameters, 5)
    target : skbayes_sg.engine.target.Target
        Its rows, with an intercept.
    learned : bool
        Whether the scales of coefficients are learned.
    """
    K, d = target.model.n_linear, target.n_features
    if d == 0 or not _is_far(*_of_some_rows(target.X, target.weight), 0.5 * WIDENED_FROM).any():
        return prior
    _, mean, variance = target.column_moments()
    far, spread = _is_far(mean, variance, WIDENED_FROM), np.sqrt(variance)
    prior, own, b = prior.copy(), prior[: K * d], slice(K * d, K * d + K)
    bounded = of_family(own, Normal) & (not learned)
    scale = np.where(bounded, own[:, SCALE], np.inf).reshape(K, d)[:, far]
    most = prior[b, SCALE, None] / spread[far]
    moved = np.square(WIDENING * mean[far] * np.minimum(scale, most)).sum(axis=1)
    prior[b, SCALE] = np.sqrt(prior[b, SCALE] ** 2 + moved)
    return prior


def _is_far(mean, variance, far=REFUSED_FROM):
    """Which columns have means beyond `far` standard deviations; never those that are constant.

    A column that varies in its last digits only is constant.
    """
    return (np.abs(mean) > far * np.sqrt(variance)) & (variance > np.square(mean / ROUNDING))


def _can_be_centred(estimator, X):
    """Whether rows are dense and in memory, and there is an intercept with a flat prior."""
    if sparse.issparse(X) or memmap.mapped(X) is not None or not estimator.fit_intercept:
        return False
    return isinstance(resolve(estimator._given("intercept_prior"), "intercept_prior"), Flat)


def check_near(estimator, mean, variance):
    """`ValueError` for a column far from zero, beside an intercept or another such column."""
    far = np.flatnonzero(_is_far(mean, variance))
    # Constants, and columns far from zero.
    constants = np.abs(mean) > REFUSED_FROM * np.sqrt(variance)
    if len(far) == 0 or (constants.sum() == 1 and not estimator.fit_intercept):
        return
    j = far[0]
    raise ValueError(
        f"The column {_name(estimator, j)} of X is too far from zero for double precision: its "
        f"mean is {mean[j]:.3g}, and its standard deviation {np.sqrt(variance[j]):.3g}. Subtract "
        "the mean from the column, or use intercept_prior='flat' and a dense X in memory."
    )


def _warn_of_rounding(estimator, X):
    """`UserWarning` for a column whose values differ by rounding alone."""
    low, high = X.min(axis=0), X.max(axis=0)
    size = np.maximum(np.abs(low), np.abs(high))
    found = np.flatnonzero((high > low) & (high - low < 10.0 * size / ROUNDING))
    if len(found):
        warnings.warn(
            f"The column {_name(estimator, found[0])} of X is constant but for its last digits "
            f"(values from {low[found[0]]!r} to {high[found[0]]!r}), and is used as a constant.",
            UserWarning,
            stacklevel=2,
        )


def _name(estimator, j):
    """The name of column j in quotes, or its number if X had no names."""
    names = getattr(estimator, "feature_names_in_", None)
    return str(j) if names is None else repr(str(names[j]))


def uncentred(draws, centre, n_linear):
    """Draws (β, b) from draws (β, a) of centred rows: b = a - mᵀβ, with m the centre."""
    if centre is None:
        return draws
    d, draws = len(centre), draws.copy()
    for c in range(n_linear):
        draws[..., n_linear * d + c] -= draws[..., c * d : (c + 1) * d] @ centre
    return draws


def warn_if_held_back(estimator, posterior, prior, centre):
    """`PriorConflictWarning` if the default prior of an intercept has moved its posterior far.

    If the likelihood is normal in b, the prior N(m₀, v₀) has moved a posterior of mean m and
    variance v by at least |m - m₀| √v / v₀ posterior standard deviations. Where rows were centred,
    the prior is that of a = b + mᵀβ, with m the centre; without draws nothing is known of a.
    """
    if not estimator.fit_intercept or estimator.intercept_prior is not None:
        return
    j = next(j for j, label in enumerate(posterior.labels) if label.startswith("intercept"))
    if not of_family(prior[j : j + 1], Normal)[0]:
        return
    m, sd = np.ravel(posterior.mean("intercept")), np.ravel(posterior.std("intercept"))
    if centre is not None:
        if posterior.n_draws == 0:
            return
        a = posterior["intercept"] + posterior["coef"] @ centre
        m, sd = np.atleast_1d(a.mean(axis=(0, 1))), np.atleast_1d(a.std(axis=(0, 1)))
    moved = np.abs(m - prior[j, LOC]) * sd / prior[j, SCALE] ** 2
    k = int(np.argmax(moved))
    if moved[k] > HELD_BACK:
        warnings.warn(
            f"The default prior of the intercept, N(0, {prior[j, SCALE]:.3g}²), has moved it by "
            f"{moved[k]:.1f} or more posterior standard deviations, to {m[k]:.4g}, and with it the "
            "coefficients of columns that are far from zero. Subtract the mean from such columns, "
            "as StandardScaler does, or use intercept_prior='flat'.",
            PriorConflictWarning,
            stacklevel=2,
        )
