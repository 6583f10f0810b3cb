"""Kernels for the log-likelihood log P(y_i | η_is) of the label of each row i under each draw s.

The predictors are log-odds against the first class, so that P(class k) = softmax(0, η)_k.
"""

import numpy as np

from .._base.jit import entry, inlined
from ..kernels.sigmoid import HIGHEST, exp
from ..kernels.softplus import log1p, softplus

__all__ = ["class_log_likelihood"]


@entry
def _of_two(eta, codes, out):
    """Write log P(y_i | η_is) for two classes: -log(1 + e^-η) for code 1, -log(1 + e^η) for 0."""
    for i in range(eta.shape[0]):
        sign = 1.0 - 2.0 * codes[i]
        for s in range(eta.shape[1]):
            out[i, s] = -softplus(sign * eta[i, s])


@inlined
def _raise_to(eta, top_out):
    """Replace `top_out` by the elementwise maximum of it and η."""
    for s in range(eta.shape[0]):
        top_out[s] = max(top_out[s], eta[s])


@inlined
def _add_exponentials(eta, top, total_out):
    """Add e^(η - top) to `total_out`, elementwise."""
    for s in range(eta.shape[0]):
        total_out[s] += exp(max(eta[s] - top[s], -HIGHEST))


@inlined
def _subtract_logs(top, total, out):
    """Subtract top + log(total) from `out`, elementwise."""
    for s in range(top.shape[0]):
        out[s] = out[s] - top[s] - log1p(total[s] - 1.0)


@entry
def _of_many(eta, codes, top, total, out):
    """Write log P(y_i | η_is) = η_y - log(1 + Σ_k e^η_k) to `out`, (rows, draws).

    `eta` has the shape (rows, K - 1, draws), and η = 0 for the first class. `top` and `total` are
    scratch arrays (draws,). Each inner loop goes over the draws, so that it is vectorised.
    """
    n_rows, L, n_draws = eta.shape
    for i in range(n_rows):
        top[:] = 0.0
        for k in range(L):
            _raise_to(eta[i, k], top)
        for s in range(n_draws):
            total[s] = exp(max(-top[s], -HIGHEST))
        for k in range(L):
            _add_exponentials(eta[i, k], top, total)
        out[i] = 0.0
        if codes[i] > 0:
            out[i] = eta[i, codes[i] - 1]
        _subtract_logs(top, total, out[i])


def class_log_likelihood(eta, codes):
    """Return log P(y_i | draw), (rows, draws).

    `eta` are predictors (rows, draws, K - 1), and `codes` the number 0, ..., K - 1 of the class of
    each row.
    """
    out = np.empty(eta.shape[:2])
    if eta.shape[2] == 1:
        _of_two(eta[:, :, 0], codes, out)
    else:
        # Predictions are computed in this order of the axes: there is no copy then.
        eta = np.ascontiguousarray(eta.transpose(0, 2, 1))
        _of_many(eta, codes, *np.empty((2, eta.shape[2])), out)
    return out
