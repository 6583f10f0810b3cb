"""Where the search of the modes of robust regression begins, and moves from mode to mode.

The search begins at least squares with ν = 30, and at least trimmed squares of a third, half and
three quarters of the rows with ν = 1 or 4, from elemental subsets and from windows of residuals.
It also begins where rows are fitted exactly: those with the most frequent response, and those of
the elemental subset that fits most rows. There the noise may be rounding error (`modes`).

These fits leave a coefficient open that few rows tell of, such as that of a rare flag, since all
other rows make up three quarters. So from each mode the line is also turned about the median m_j of
each column, by δ(x_j - m_j), until it meets other rows. U at these δ, with all other parameters as
they are, may have further minima, and descents begin at the lowest of them.
"""

import numpy as np
from scipy import linalg, sparse

from .._base import streams
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..priors.columns import LOC

__all__ = ["design_of", "least_noise", "robust_starts", "turned"]

SUBSETS = 200  # number of elemental subsets, with at most 20 coefficients
SHARES = (1 / 3, 1 / 2, 3 / 4)  # shares of the rows that are fitted
PLACES = 41  # largest number of values of δ
RISE = 20.0  # descents begin at turned lines where U is less than so many nats above the mode
MOST_TURNED = 8  # largest number of starting points from each mode
ROUNDING = 1e-6  # share of the range of y below which residuals are rounding errors
WORK = 2e7  # largest work of turning lines: rows x columns x values of δ


def design_of(target):
    """The design of all rows as a dense matrix, (n_rows, n_coefficients)."""
    A = target.design(slice(None))
    return A.toarray() if sparse.issparse(A) else A


def least_noise(y):
    """The smallest standard deviation of the noise with which a search begins."""
    return max(ROUNDING * np.ptp(y), np.finfo(float).tiny ** 0.25)


def _rows(target):
    """Design as a dense matrix, response and weights of all rows."""
    return design_of(target), target.data.facts[:, FACT_Y], target.data.facts[:, FACT_WEIGHT]


def robust_starts(target):
    """Yield starting points θ: least squares with ν = 30, and fits of parts with ν = 1 or 4.

    The noise of each is that of the rows that it fits. Fits that predict nearly the same as an
    earlier one are passed over.
    """
    A, y, weight = _rows(target)
    n, least = len(y), least_noise(y)
    rough, beta = _elemental(A, y), _least_squares(A, y, weight)
    fits, residuals = [(beta, np.arange(n), 30.0)], np.abs(y[:, None] - A @ rough.T)
    for share in SHARES:
        h = max(int(share * n), min(A.shape[1] + 2, n))
        distance = np.partition(residuals, h - 1, axis=0)[h - 1]
        begun = [_closest(A, y, rough[k], h) for k in np.argsort(distance)[:2]]
        order = np.argsort(y - A @ beta)
        begun += [order[:h], order[n - h :]] if share < 0.7 else []
        fits += [(*_concentrated(A, y, weight, own), 1.0 if share < 0.7 else 4.0) for own in begun]
    seen: list = []
    for beta, own, df in fits:
        eta = A @ beta
        sd = max(np.sqrt(np.average((y - eta)[own] ** 2, weights=weight[own])), least)
        if all(np.median(np.abs(eta - other)) > 0.3 * min(sd, its) for other, its in seen):
            seen.append((eta, sd))
            yield np.concatenate([beta, [np.log(sd), np.log(df)]])
    floor = target.prior[-2, LOC] or least
    for own in _exact(y, residuals, A.shape[1]):
        beta = _least_squares(A[own], y[own], weight[own])
        away = np.log(np.maximum(np.abs(y - A @ beta) / floor, 1.0))
        yield np.concatenate([beta, [np.log(floor), -np.log(max(away.max(), 1.0))]])


def _exact(y, residuals, p):
    """Indices of rows that are fitted exactly, if there are more of them than p coefficients.

    They are those with the most frequent response, and those that one of some lines fits best, by
    the absolute `residuals` of each, (n_rows, n_lines).
    """
    values, number = np.unique(y, return_counts=True)
    tied = np.flatnonzero(y == values[np.argmax(number)])
    fitted = residuals <= least_noise(y)
    best = np.flatnonzero(fitted[:, np.argmax(fitted.sum(axis=0))])
    return [own for own in (tied, best) if len(own) > p + 1]


def _least_squares(A, y, weight):
    """Coefficients of weighted least squares; columns are scaled to norm one for accuracy.

    Columns of zeros, such as those of levels without rows, have the coefficient zero.
    """
    root = np.sqrt(weight)
    size = _or_one(linalg.norm(root[:, None] * A, axis=0))
    return linalg.lstsq(root[:, None] * A / size, root * y)[0] / size


def _or_one(size):
    """Sizes of columns, and one for those that are zero."""
    return np.where(size > 0.0, size, 1.0)


def _elemental(A, y):
    """Exact fits of random subsets of as many rows as there are coefficients."""
    rng, p = streams.fixed(), A.shape[1]
    size = _or_one(np.abs(A).max(axis=0))
    found = []
    for _ in range(SUBSETS if p <= 20 else 20):
        rows = rng.choice(len(y), min(p, len(y)), replace=False)
        found.append(linalg.lstsq(A[rows] / size, y[rows])[0] / size)
    return np.array(found)


def _closest(A, y, beta, h):
    """Indices of the h rows with the smallest residuals, in increasing order."""
    return np.sort(np.argpartition(np.abs(y - A @ beta), h - 1)[:h])


def _concentrated(A, y, weight, own, steps=10):
    """Take concentration steps, least squares on the closest rows; return coefficients and rows."""
    for _ in range(steps):
        beta = _least_squares(A[own], y[own], weight[own])
        new = _closest(A, y, beta, len(own))
        if np.array_equal(new, own):
            break
        own = new
    return beta, own


# -- from a mode ----------------------------------------------------------------------------------


def turned(target, theta):
    """Return points θ with the line turned in one column to fit other rows, the best first."""
    A, y, weight = _rows(target)
    d, found = target.n_features, []
    middle = np.median(A[:, :d], axis=0) if target.intercept else np.zeros(d)
    away = A[:, :d] - middle
    residual = y - A @ theta[: A.shape[1]]
    rarest = np.argsort((away != 0.0).sum(axis=0), kind="stable")
    for j in rarest[: max(1, int(WORK / (PLACES * len(y))))]:
        shifts, rise = _profile(residual, away[:, j], weight, theta[-2:])
        low = np.flatnonzero((rise[1:-1] < np.minimum(rise[:-2], rise[2:])) & (rise[1:-1] < RISE))
        for k in low[shifts[low + 1] != 0.0] + 1:
            place = theta.copy()
            place[j] += shifts[k]
            if target.intercept:
                place[d] -= shifts[k] * middle[j]
            found.append((rise[k], len(found), place))
    return [place for _, _, place in sorted(found)[:MOST_TURNED]]


def _profile(residual, away, weight, extras):
    """Shifts δ at which some row with x far from the median is fitted, and the rise of U there.

    Zero, the mode itself, is among them. Infinite shifts, with an infinite rise, are at both ends.
    """
    size = np.abs(away)
    far = size >= np.median(size[size > 0.0]) if size.any() else size > 0.0
    places = np.unique(residual[far] / away[far])
    some = np.unique(np.linspace(0, len(places) - 1, PLACES - 1).astype(int)) if far.any() else []
    shifts = np.unique(np.append(places[some], 0.0))
    log_sd, log_df = extras
    df = np.exp(log_df)
    z = (residual[:, None] - away[:, None] * shifts) * np.exp(-log_sd)
    U = 0.5 * (df + 1.0) * (weight @ np.log1p(np.square(z) / df))
    rise = U - U[np.searchsorted(shifts, 0.0)]
    return np.r_[-np.inf, shifts, np.inf], np.r_[np.inf, rise, np.inf]
