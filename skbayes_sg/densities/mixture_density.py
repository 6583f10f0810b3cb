"""The row density of a mixture of Gaussians, in the coordinates of `ComponentsPrior`.

With y_k = A_kᵀ(x - μ_k), r_k = p(component k | x) and constants left out,

    log p(x) = log Σ_k exp(log w_k + log |A_k| - ½‖y_k‖²),
    ∂/∂v_k = r_k - w_k,   ∂/∂μ_k = r_k A_k y_k,   ∂/∂A_k = r_k (A_k⁻ᵀ - (x - μ_k) y_kᵀ).

The last numbers of the facts of a row are x, the covariance type, K, c and d.
"""

import math
from functools import partial

import numpy as np

from .._base.jit import inner, jit
from ..kernels.layout import FACT_WEIGHT
from .density import RowDensity
from .mixture import DIAG, FULL, SPHERICAL, TIED
from .mixture_derivatives import loss_and_gradient, loss_hessian

__all__ = ["MixtureDensity", "rows_of"]


@inner
def _shape(facts):
    """Return (first column of x, kind, K, c, d), which the facts of every row contain."""
    n = facts.shape[1]
    d = int(facts[0, n - 1])
    return n - 4 - d, int(facts[0, n - 4]), int(facts[0, n - 3]), facts[0, n - 2], d


@inner
def _triangles(theta, kind, K, c, d, A_out, log_det_out):
    """Write A_k = T_k/√c and log |A_k| of all components."""
    first, root = K * (1 + d), 1.0 / math.sqrt(c)
    size = d * (d + 1) // 2
    if kind == DIAG:
        size = d
    elif kind == SPHERICAL:
        size = 1
    for k in range(K):
        begin = first + (0 if kind == TIED else k * size)
        log_det_out[k] = 0.0
        place = begin
        for i in range(d):
            for j in range(i + 1):
                A_out[k, i, j] = 0.0
                if i == j:
                    at = place
                    if kind == DIAG:
                        at = begin + i
                    elif kind == SPHERICAL:
                        at = begin
                    A_out[k, i, i] = root * math.exp(0.5 * theta[at])
                    log_det_out[k] += math.log(root) + 0.5 * theta[at]
                elif kind in (FULL, TIED):
                    A_out[k, i, j] = root * theta[place]
                place += 1


@inner
def _log_weights(theta, K, out):
    """Write log w_k = v_k - log Σ e^v of all components to `out`."""
    most = theta[0]
    for k in range(1, K):
        most = max(most, theta[k])
    total = 0.0
    for k in range(K):
        total += math.exp(theta[k] - most)
    shift = most + math.log(total)
    for k in range(K):
        out[k] = theta[k] - shift


@inner
def _project(x, theta, K, k, d, A, y_out):
    """Write y_k = A_kᵀ(x - μ_k) to row k of `y_out`; return ‖y_k‖²."""
    total = 0.0
    for j in range(d):
        s = 0.0
        for i in range(j, d):
            s += A[k, i, j] * (x[i] - theta[K + k * d + i])
        y_out[k, j] = s
        total += s * s
    return total


@inner
def _responsibilities(x, theta, K, d, A, log_w, log_det, y_out, r_out):
    """Write y_k and r_k = p(component k | x) of a row x; return log p(x), up to a constant."""
    most = -math.inf
    for k in range(K):
        r_out[k] = log_w[k] + log_det[k] - 0.5 * _project(x, theta, K, k, d, A, y_out)
        most = max(most, r_out[k])
    total = 0.0
    for k in range(K):
        r_out[k] = math.exp(r_out[k] - most)
        total += r_out[k]
    for k in range(K):
        r_out[k] /= total
    return most + math.log(total)


@jit
def _loss(facts, rows, start, stop, eta):
    first, kind, K, c, d = _shape(facts)
    theta, A, log_det, log_w = eta[0], np.empty((K, d, d)), np.empty(K), np.empty(K)
    y, r, total = np.empty((K, d)), np.empty(K), 0.0
    _triangles(theta, kind, K, c, d, A, log_det)
    _log_weights(theta, K, log_w)
    for k in range(stop - start):
        row = facts[rows[start + k]]
        x = row[first : first + d]
        total -= row[FACT_WEIGHT] * _responsibilities(x, theta, K, d, A, log_w, log_det, y, r)
    return total


@inner
def _add_slopes(x, theta, kind, K, c, d, k, A, y, r, out):
    """Subtract from `out` the derivatives of log p(x) in μ_k and in the coordinates of A_k."""
    size, first, root = d * (d + 1) // 2, K * (1 + d), 1.0 / math.sqrt(c)
    if kind == DIAG:
        size = d
    elif kind == SPHERICAL:
        size = 1
    begin = first + (0 if kind == TIED else k * size)
    place = begin
    for i in range(d):
        moved, s = x[i] - theta[K + k * d + i], 0.0
        for j in range(i + 1):
            s += A[k, i, j] * y[k, j]
            if i == j:  # the coordinate of T_ii is log T_ii²
                at = place
                if kind == DIAG:
                    at = begin + i
                elif kind == SPHERICAL:
                    at = begin
                out[at] -= 0.5 * r[k] * (1.0 - A[k, i, i] * moved * y[k, i])
            elif kind in (FULL, TIED):
                out[place] += root * r[k] * moved * y[k, j]
            place += 1
        out[K + k * d + i] -= r[k] * s


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    first, kind, K, c, d = _shape(facts)
    theta, A, log_det, log_w = eta[0], np.empty((K, d, d)), np.empty(K), np.empty(K)
    y, r = np.empty((K, d)), np.empty(K)
    _triangles(theta, kind, K, c, d, A, log_det)
    _log_weights(theta, K, log_w)
    for m in range(stop - start):
        x, out = facts[rows[start + m]][first : first + d], terms_out[m]
        _responsibilities(x, theta, K, d, A, log_w, log_det, y, r)
        for j in range(theta.shape[0]):
            out[j] = 0.0
        for k in range(K):
            out[k] = math.exp(log_w[k]) - r[k]
            _add_slopes(x, theta, kind, K, c, d, k, A, y, r, out)


class MixtureDensity(RowDensity):
    """The density of rows under a mixture of Gaussians; `rows_of` makes the rows that it reads.

    Parameters
    ----------
    mixture : skbayes_sg.densities.mixture.ComponentsPrior
    """

    loss = staticmethod(_loss)
    derivative = staticmethod(_derivative)

    def __init__(self, mixture):
        super().__init__(mixture.n_parameters)
        self.loss_and_gradient = partial(loss_and_gradient, mixture)
        self.loss_hessian = partial(loss_hessian, mixture)


def rows_of(X, mixture):
    """Return the rows for `MixtureDensity`: standardised X, and the shape of the mixture."""
    known = [mixture.kind, mixture.K, mixture.c, mixture.d]
    return np.column_stack([X, np.tile(np.array(known, dtype=np.float64), (len(X), 1))])
