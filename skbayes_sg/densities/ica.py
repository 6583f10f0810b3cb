r"""Independent component analysis with logistic sources (Dubey et al. 2016, sec. 5.3).

    p(x | W) = |det W| Π_j p(w_j·x),   p(y) = 1/(4 cosh²(y/2)),   W_jk ~ N(0, 1/λ),

so that with Y = W x and constants left out

    ℓ = -log |det W| + Σ_j 2 log cosh(y_j/2),   ∂ℓ/∂W = tanh(Y/2) xᵀ - W⁻ᵀ.

The parameters are the entries of W, row by row. The determinant belongs to every row, so that its
share in the gradient of a batch has no noise.
"""

import math

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._base.jit import inner, jit
from ..kernels.layout import FACT_WEIGHT
from .density import RowDensity

__all__ = ["LogisticSources", "aligned", "log_density"]

BLOCK_BYTES = 1 << 18  # size in bytes of the sources of a block of rows, to stay in cache


@inner
def _eliminate(M, inverse_out):
    """Write M⁻¹ to `inverse_out`, and return log |det M|.

    This is Gauss-Jordan elimination with row pivots; M becomes the identity.
    """
    d, log_det = M.shape[0], 0.0
    for i in range(d):
        for j in range(d):
            inverse_out[i, j] = 1.0 if i == j else 0.0
    for c in range(d):
        p = c
        for i in range(c + 1, d):
            if abs(M[i, c]) > abs(M[p, c]):
                p = i
        for j in range(d):
            M[c, j], M[p, j] = M[p, j], M[c, j]
            inverse_out[c, j], inverse_out[p, j] = inverse_out[p, j], inverse_out[c, j]
        pivot = M[c, c]
        log_det += math.log(max(abs(pivot), 1e-300))
        if pivot == 0.0:
            pivot = 1e-300
        for j in range(d):
            M[c, j] /= pivot
            inverse_out[c, j] /= pivot
        for i in range(d):
            if i != c:
                factor = M[i, c]
                for j in range(d):
                    M[i, j] -= factor * M[c, j]
                    inverse_out[i, j] -= factor * inverse_out[c, j]
    return log_det


@inner
def _inverse(theta, inverse_out):
    """Write W⁻¹ to `inverse_out`, and return log |det W|, for the entries θ of W, row by row."""
    d = inverse_out.shape[0]
    M = np.empty((d, d))
    for i in range(d):
        for j in range(d):
            M[i, j] = theta[i * d + j]
    return _eliminate(M, inverse_out)


@jit
def _loss(facts, rows, start, stop, eta):
    theta = eta[0]
    d = int(math.sqrt(theta.shape[0]) + 0.5)
    log_det, first, total = _inverse(theta, np.empty((d, d))), facts.shape[1] - d, 0.0
    for k in range(stop - start):
        row = facts[rows[start + k]]
        x, own = row[first:], -log_det
        for i in range(d):
            y = 0.0
            for j in range(d):
                y += theta[i * d + j] * x[j]
            size = abs(y)
            own += size + 2.0 * math.log1p(math.exp(-size)) - 2.0 * math.log(2.0)
        total += row[FACT_WEIGHT] * own
    return total


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    theta = eta[0]
    d = int(math.sqrt(theta.shape[0]) + 0.5)
    inverse, first = np.empty((d, d)), facts.shape[1] - d
    _inverse(theta, inverse)
    for k in range(stop - start):
        row, out = facts[rows[start + k]], terms_out[k]
        x = row[first:]
        for i in range(d):
            part, y = theta[i * d : (i + 1) * d], 0.0
            for j in range(d):
                y += part[j] * x[j]
            e = math.exp(-abs(y))
            t = (1.0 - e) / (1.0 + e)
            t = t if y > 0.0 else -t
            slopes = out[i * d : (i + 1) * d]
            for j in range(d):
                slopes[j] = t * x[j] - inverse[j, i]


def _sources(facts, W):
    """Yield (weights, rows (n, d), |Y| and e^-|Y| (d, n), signs of Y) of blocks of rows."""
    d = len(W)
    size = max(64, BLOCK_BYTES // (8 * d))
    for first in range(0, len(facts), size):
        block = facts[first : first + size]
        x = np.ascontiguousarray(block[:, -d:])
        Y = W @ x.T
        away = np.abs(Y)
        yield block[:, FACT_WEIGHT], x, away, np.exp(-away), np.sign(Y)


def _loss_and_gradient(facts, theta):
    """Return the negative log-likelihood of rows and its gradient, by products of matrices."""
    d = int(np.sqrt(len(theta)) + 0.5)
    W, total, value, g = theta.reshape(d, d), 0.0, 0.0, np.zeros((d, d))
    log_det = np.linalg.slogdet(W)[1]
    if not np.isfinite(log_det):
        return np.inf, g.ravel()
    for weight, x, away, e, signs in _sources(facts, W):
        value += weight @ (away + 2.0 * np.log1p(e)).sum(axis=0)
        total += weight.sum()
        g += (signs * (1.0 - e) / (1.0 + e) * weight) @ x
    g -= total * np.linalg.inv(W).T
    return value - total * (log_det + 2.0 * d * np.log(2.0)), g.ravel()


def _loss_hessian(facts, theta):
    """Return the Hessian of the negative log-likelihood of rows, by products of matrices.

    With t = tanh(Y/2) it is, from ∂ℓ/∂W_ij to W_kl, δ_ik Σ ½(1 - t_i²) x_j x_l + W⁻¹_jk W⁻¹_li.
    """
    d = int(np.sqrt(len(theta)) + 0.5)
    W, total, H = theta.reshape(d, d), 0.0, np.zeros((d, d, d, d))
    for weight, x, _, e, _ in _sources(facts, W):
        total += weight.sum()
        bends = 2.0 * weight * e / (1.0 + e) ** 2  # ½(1 - t²)
        for i in range(d):
            H[i, :, i] += x.T @ (bends[i, :, None] * x)
    inverse = np.linalg.inv(W)
    H += total * np.einsum("jk,li->ijkl", inverse, inverse)
    return H.reshape(d * d, d * d)


class LogisticSources(RowDensity):
    """The density of rows x whose sources W x have independent standard logistic laws."""

    loss = staticmethod(_loss)
    derivative = staticmethod(_derivative)
    loss_and_gradient = staticmethod(_loss_and_gradient)
    loss_hessian = staticmethod(_loss_hessian)

    @property
    def cost(self):
        """Cost per parameter, see `Model`: products, and a share of the √D logistic functions."""
        return 0.1 + 1.8 / np.sqrt(self.n_extra)

    @property
    def cost_of_many(self):
        """The same for all rows together, by products of matrices."""
        return 0.65 / np.sqrt(self.n_extra)


def log_density(X, W):
    """Return log p(x | W) for each draw W (S, d, d) and each row x of X: (S, rows)."""
    found = np.empty((len(W), len(X)))
    for s, w in enumerate(W):
        Y = np.abs(X @ w.T)
        found[s] = np.linalg.slogdet(w)[1] - (Y + 2.0 * np.log1p(np.exp(-Y))).sum(axis=1)
    return found


def aligned(W, reference):
    """Return draws W (S, d, d) with the order and signs of rows that are closest to a reference.

    The closest have the largest sum of absolute cosines between rows of W and of the reference. If
    the columns of X are white, these are the correlations of the sources.
    """
    out = np.empty_like(W)
    unit = reference / np.linalg.norm(reference, axis=1, keepdims=True)
    for s, w in enumerate(W):
        likeness = unit @ (w / np.linalg.norm(w, axis=1, keepdims=True)).T
        _, order = linear_sum_assignment(-np.abs(likeness))
        signs = np.sign(likeness[np.arange(len(w)), order])
        out[s] = np.where(signs == 0.0, 1.0, signs)[:, None] * w[order]
    return out
