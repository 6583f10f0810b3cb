"""Quantiles of mixtures of normal distributions, Σ_s w_s N(m_s, σ_s²)."""

import math

import numpy as np
from scipy.special import ndtri

from .._base.jit import entry
from .layout import frozen

__all__ = ["mixture_quantiles"]

ROOT_HALF, DENSITY = math.sqrt(0.5), 1.0 / math.sqrt(2.0 * math.pi)
MOST_STEPS, CLOSE = 60, 1e-10  # Newton steps, and the relative size of the last one


@entry
def _quantiles(means, sds, weights, q, low_out, high_out):
    """Find the q-quantile of each mixture by Newton's method, with bisection as a safeguard.

    `means` and `sds` have a row for each mixture. `low_out` and `high_out` bracket the quantiles,
    and are replaced by them.
    """
    for n in range(means.shape[0]):
        low, high = low_out[n], high_out[n]
        x = 0.5 * (low + high)
        for _ in range(MOST_STEPS):
            total, slope = -q, 0.0
            for s in range(means.shape[1]):
                u = (x - means[n, s]) / sds[n, s]
                total += weights[s] * 0.5 * math.erfc(-u * ROOT_HALF)
                slope += weights[s] * math.exp(-0.5 * u * u) / sds[n, s]
            if total < 0.0:
                low = x
            else:
                high = x
            step = x - total / (slope * DENSITY) if slope > 0.0 else low
            x, before = step if low < step < high else 0.5 * (low + high), x
            if abs(x - before) <= CLOSE * (high_out[n] - low_out[n]):
                break
        low_out[n] = high_out[n] = x


def mixture_quantiles(means, sds, q, weights=None):
    """Quantiles of mixtures of normal distributions, with the same weights in each.

    Parameters
    ----------
    means, sds : ndarray of shape (S, ...)
        Means and standard deviations of the S parts of each mixture.
    q : float in (0, 1)
    weights : ndarray of shape (S,), optional
        Weights of the parts, with sum 1; they are equal by default.

    Returns
    -------
    ndarray of shape (...)
    """
    S, shape = len(means), means.shape[1:]
    weights = np.full(S, 1.0 / S) if weights is None else weights
    ends = means + ndtri(q) * sds  # the quantile of a mixture lies among those of its parts
    low, high = ends.min(axis=0).ravel(), ends.max(axis=0).ravel()
    columns = (frozen(part.reshape(S, -1).T) for part in (means, sds))
    _quantiles(*columns, frozen(weights), float(q), low, high)
    return low.reshape(shape)
