"""Class probabilities from predictors, and their means over draws.

The predictors η are log-odds against the first class: one for two classes, K - 1 for K. So
P(class k) = softmax(0, η_1, ..., η_{K-1})_k.

The mean over thousands of draws takes most of the time of a prediction, and most of that goes into
exponentials. It therefore has kernels of its own; that for two classes takes one exponential for
each draw.
"""

import numpy as np
from scipy.special import expit, log_softmax

from .._base import weights as weighting
from .._base.jit import entry, inlined
from ..kernels.sigmoid import HIGHEST, exp, sigmoid

__all__ = ["class_probabilities", "log_mean_probabilities", "mean_probabilities"]

DRAWS = 256  # number of draws that are processed together, so that their terms stay in cache
# Below this probability exponentials lose digits; its logarithm is then computed from logarithms.
LEAST = 1e-290
# If a predictor is larger in size, exponentials of a draw are computed relative to the largest one.
LARGE = 300.0


@inlined
def _mean_sigmoid(sign, eta, weights):
    """Return Σ_s w_s σ(sign η_s); its terms have full relative precision, and so has the sum."""
    total = 0.0
    for s in range(eta.shape[0]):
        total += weights[s] * sigmoid(sign * eta[s])
    return total


@entry
def _mean_sigmoids(eta, weights, out):
    """Write Σ_s w_s σ(-η_is) and Σ_s w_s σ(η_is), Σ w = 1, to `out`, (rows, 2).

    Both have full relative precision. One exponential for each draw is usually enough: that of the
    class which is unlikely under the first draw. One minus its mean loses digits only if that class
    is likely under the other draws; the second mean is then computed by exponentials as well.
    """
    for i in range(eta.shape[0]):
        unlikely = 1 if eta[i, 0] < 0.0 else 0
        sign = 2.0 * unlikely - 1.0
        p = _mean_sigmoid(sign, eta[i], weights)
        out[i, unlikely] = p
        out[i, 1 - unlikely] = 1.0 - p if abs(p) < 0.9 else _mean_sigmoid(-sign, eta[i], weights)


@inlined
def _n_large(eta):
    """Return how many predictors are larger than `LARGE` in size, or not a number."""
    count = 0
    for s in range(eta.shape[0]):
        count += 0 if abs(eta[s]) < LARGE else 1
    return count


@inlined
def _exponentials(eta, terms_out, total_out):
    """Write e^η to `terms_out`, and add it to `total_out`; all are arrays over draws."""
    for s in range(eta.shape[0]):
        terms_out[s] = exp(eta[s])
        total_out[s] += terms_out[s]


@inlined
def _relative_to_largest(eta, first, n, terms_out, total_out):
    """Write the exponentials of all classes for n draws, and their totals over the classes.

    They are like those of `_exponentials`, but divided by the largest one of the draw.
    """
    for s in range(n):
        top = 0.0
        for k in range(eta.shape[0]):
            top = max(top, eta[k, first + s])
        total_out[s] = terms_out[0, s] = exp(max(-top, -HIGHEST))
        for k in range(eta.shape[0]):
            terms_out[k + 1, s] = exp(max(eta[k, first + s] - top, -HIGHEST))
            total_out[s] += terms_out[k + 1, s]


@inlined
def _product(a, b):
    """Return the dot product of two arrays."""
    total = 0.0
    for s in range(a.shape[0]):
        total += a[s] * b[s]
    return total


@entry
def _mean_softmax(eta, weights, terms, totals, out):
    """Write Σ_s w_s softmax(0, η_is) to `out`, (rows, K), for predictors (rows, K - 1, draws).

    `terms` (K, draws of a block) and `totals` (draws of a block) are scratch. Each inner loop goes
    over the draws of one class, which are contiguous, so that it is vectorised.
    """
    n_rows, L, n_draws = eta.shape
    out[:] = 0.0
    for i in range(n_rows):
        for first in range(0, n_draws, terms.shape[1]):
            last, n_large = min(first + terms.shape[1], n_draws), 0
            n = last - first
            total = totals[:n]
            for k in range(L):
                n_large += _n_large(eta[i, k, first:last])
            if n_large > 0:
                _relative_to_largest(eta[i], first, n, terms, total)
            else:
                terms[0], total[:] = 1.0, 1.0
                for k in range(L):
                    _exponentials(eta[i, k, first:last], terms[k + 1, :n], total)
            for s in range(n):
                total[s] = weights[first + s] / total[s]
            for k in range(L + 1):
                out[i, k] += _product(terms[k, :n], total)


def mean_probabilities(eta, weights):
    """Return the means over draws of class probabilities, (rows, draws, K - 1) -> (rows, K).

    `weights` are those of the draws, or None if all are the same.
    """
    n_rows, n_draws, L = eta.shape
    weights = np.ones(n_draws) if weights is None else np.asarray(weights, dtype=np.float64)
    weights, out = weights / weights.sum(), np.empty((n_rows, L + 1))
    if L == 1:
        _mean_sigmoids(eta[:, :, 0], weights, out)
    else:
        # Predictions are computed in this order of the axes: there is no copy then.
        eta = np.ascontiguousarray(eta.transpose(0, 2, 1))
        _mean_softmax(eta, weights, np.empty((L + 1, DRAWS)), np.empty(DRAWS), out)
    return out


def log_mean_probabilities(eta, weights):
    """Return the logarithms of `mean_probabilities`, finite for all finite predictors."""
    p = mean_probabilities(eta, weights)
    small = ~(p >= LEAST).all(axis=1)
    out = np.log(np.where(small[:, None], 1.0, p))
    if small.any():
        logs = log_softmax(_with_first(eta[small]), axis=-1)
        out[small] = weighting.log_mean_exp(logs, weights, axis=1)
    return out


def _with_first(eta):
    """Return the predictors of all K classes, (..., K): that of the first class is zero."""
    return np.concatenate([np.zeros((*eta.shape[:-1], 1)), eta], axis=-1)


@entry
def _softmax(values_out):
    """Replace each row of (n, K) by its softmax."""
    n, K = values_out.shape
    for i in range(n):
        top = values_out[i, 0]
        for k in range(1, K):
            top = max(top, values_out[i, k])
        total = 0.0
        for k in range(K):
            values_out[i, k] = exp(max(values_out[i, k] - top, -HIGHEST))
            total += values_out[i, k]
        for k in range(K):
            values_out[i, k] /= total


def class_probabilities(eta):
    """Return the probabilities of all classes for predictors, (..., K - 1) -> (..., K)."""
    if eta.shape[-1] == 1:
        return np.concatenate([expit(-eta), expit(eta)], axis=-1)
    p = np.ascontiguousarray(_with_first(eta))
    _softmax(p.reshape(-1, p.shape[-1]))
    return p
