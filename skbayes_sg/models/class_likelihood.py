"""Log-likelihoods of labels at many draws, by a kernel: log P(y_i | η_is).

The predictors are log-odds against the first class, so that P(class k) = softmax(0, η)_k.
"""

import math

import numpy as np

from .._base.jit import entry
from ..kernels.sigmoid import HIGHEST, exp
from ..kernels.softplus import softplus

__all__ = ["class_log_likelihood"]


@entry
def _of_two(eta, codes, out):
    """-log(1 + e^-η) or -log(1 + e^η)."""
    for i in range(eta.shape[0]):
        sign = 1.0 - 2.0 * codes[i]
        for s in range(eta.shape[1]):
            out[i, s] = -softplus(sign * eta[i, s])


@entry
def _of_many(eta, codes, out):
    """η_y - log(1 + Σ_k e^η_k), with η = 0 for the first class."""
    n_rows, n_draws, L = eta.shape
    for i in range(n_rows):
        for s in range(n_draws):
            top = 0.0
            for k in range(L):
                top = max(top, eta[i, s, k])
            total = exp(max(-top, -HIGHEST))
            for k in range(L):
                total += exp(max(eta[i, s, k] - top, -HIGHEST))
            own = eta[i, s, codes[i] - 1] if codes[i] > 0 else 0.0
            out[i, s] = own - top - math.log(total)


def class_log_likelihood(eta, codes):
    """log P(y_i | draw), (rows, draws), from predictors (rows, draws, L) and numbers of classes."""
    out = np.empty(eta.shape[:2])
    if eta.shape[2] == 1:
        _of_two(eta[:, :, 0], codes, out)
    else:
        _of_many(eta, codes, out)
    return out
