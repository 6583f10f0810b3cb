"""Class probabilities from predictors, and their means over draws.

The mean over thousands of draws takes most of the time of a prediction, and most of that goes into
exponentials. It therefore has kernels of its own, for two classes with one exponential a draw.
"""

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from .._base.jit import entry, inlined
from ..kernels.sigmoid import HIGHEST, exp, sigmoid

__all__ = ["class_probabilities", "log_class_probabilities", "mean_probabilities"]

DRAWS = 256  # of a block, whose terms stay in cache


@inlined
def _mean_sigmoid(sign, eta, weights):
    """Σ_s w_s σ(±η_s); its terms have full relative precision, and so has the sum."""
    total = 0.0
    for s in range(eta.shape[0]):
        total += weights[s] * sigmoid(sign * eta[s])
    return total


@entry
def _mean_sigmoids(eta, weights, out):
    """Σ_s w_s σ(-η_is) and Σ_s w_s σ(η_is), Σ w = 1, both to full relative precision.

    One exponential for each draw is enough, that of the class that is unlikely under the first
    draw. One minus its mean loses digits only if that class is likely under the other draws; the
    second mean is then computed as well.
    """
    for i in range(eta.shape[0]):
        unlikely = 1 if eta[i, 0] < 0.0 else 0
        sign = 2.0 * unlikely - 1.0
        p = _mean_sigmoid(sign, eta[i], weights)
        out[i, unlikely] = p
        out[i, 1 - unlikely] = 1.0 - p if abs(p) < 0.9 else _mean_sigmoid(-sign, eta[i], weights)


@entry
def _mean_softmax(eta, weights, terms, out):
    """Σ_s w_s softmax(η_is), with the terms of a block of draws (K, draws) as scratch.

    The exponentials are of numbers <= 0, and a loop over the draws of one class is vectorised.
    """
    n_rows, n_draws, K = eta.shape
    n_block = terms.shape[1]
    out[:] = 0.0
    for i in range(n_rows):
        for first in range(0, n_draws, n_block):
            n = min(n_block, n_draws - first)
            for s in range(n):
                top = eta[i, first + s, 0]
                for k in range(1, K):
                    top = max(top, eta[i, first + s, k])
                for k in range(K):
                    terms[k, s] = max(eta[i, first + s, k] - top, -HIGHEST)
                terms[K, s] = 0.0
            for k in range(K):
                for s in range(n):
                    terms[k, s] = exp(terms[k, s])
                    terms[K, s] += terms[k, s]
            for s in range(n):
                terms[K, s] = weights[first + s] / terms[K, s]
            for k in range(K):
                total = 0.0
                for s in range(n):
                    total += terms[k, s] * terms[K, s]
                out[i, k] += total


def mean_probabilities(eta, weights):
    """Means over the draws of class probabilities, (rows, draws, K) -> (rows, classes)."""
    n_rows, n_draws, K = eta.shape
    weights = np.ones(n_draws) if weights is None else np.asarray(weights, dtype=np.float64)
    weights, out = weights / weights.sum(), np.empty((n_rows, max(K, 2)))
    if K == 1:
        _mean_sigmoids(eta[:, :, 0], weights, out)
    else:
        _mean_softmax(eta, weights, np.empty((K + 1, min(n_draws, DRAWS))), out)
    return out


def class_probabilities(eta):
    """Probabilities of all classes from predictors (..., K); a single predictor is the log-odds."""
    if eta.shape[-1] > 1:
        return softmax(eta, axis=-1)
    return np.concatenate([expit(-eta), expit(eta)], axis=-1)


def log_class_probabilities(eta):
    """Logarithms of `class_probabilities`, finite for all finite predictors."""
    if eta.shape[-1] > 1:
        return log_softmax(eta, axis=-1)
    return np.concatenate([log_expit(-eta), log_expit(eta)], axis=-1)
