"""The shortest interval that holds a share of weighted draws.

With the draws in order, x_1 <= ... <= x_n, and their weights w, it is the one of least x_j - x_i
among the closed intervals [x_i, x_j] with

    Σ_{i <= k <= j} w_k >= p Σ_k w_k.

Without weights it is the interval of `arviz_stats.hdi`, which has one draw more: the sum is over
i < k <= j.
"""

import numpy as np

__all__ = ["shortest_interval"]

ROUNDING = 1e-12  # rounding error of a sum of weights, as a share of all weight


def shortest_interval(
    draws: np.ndarray, weights: np.ndarray | None, mass: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends of the shortest interval that holds the share `mass` of each column.

    `draws` has the shape (n_draws, n_parameters), and `weights` (n_draws,) or None for equal ones.
    """
    w = np.ones(len(draws)) if weights is None else weights
    closed = weights is not None
    ends = [_of_column(x[w > 0.0], w[w > 0.0], mass, closed) for x in draws.T]
    lower, upper = np.array(ends).reshape(-1, 2).T
    return lower, upper


def _of_column(x: np.ndarray, w: np.ndarray, mass: float, closed: bool) -> tuple[float, float]:
    """Ends of the shortest interval of draws x (n_draws,) with positive weights w.

    `closed` says whether the weight of its lower end counts.
    """
    order = np.argsort(x)
    x, share = x[order], np.cumsum(w[order]) / w.sum()
    outside = np.r_[0.0, share[:-1]] if closed else share
    last = np.searchsorted(share, outside + mass - ROUNDING)
    first = np.flatnonzero(last < len(x))
    if len(first) == 0:
        return x[0], x[-1]
    i = first[np.argmin(x[last[first]] - x[first])]
    return x[i], x[last[i]]
