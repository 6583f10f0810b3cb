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
from ..kernels.sigmoid import decay
from .density import RowDensity

__all__ = ["LOGISTIC_SD", "LogisticSources", "aligned", "log_density"]

LOGISTIC_SD = np.pi / np.sqrt(3.0)  # standard deviation of a logistic source
# Numbers of sources that are computed by one product of matrices, and the least number of rows.
TOGETHER, FEWEST_TOGETHER = 4096, 64
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


@inner
def _decays(flat, out):
    """Write e^-|y| of every y to `out`, in a loop that LLVM vectorises."""
    for k in range(flat.shape[0]):
        out[k] = decay(-abs(flat[k]))


@inner
def _replace_by_tanh(flat, decays):
    """Replace every y by tanh(y/2)."""
    for k in range(flat.shape[0]):
        t = (1.0 - decays[k]) / (1.0 + decays[k])
        flat[k] = t if flat[k] > 0.0 else -t


@inner
def _logistic_losses(block, Y, decays):
    """Return Σ_k weight_k Σ_j 2 log 2 cosh(y_kj/2), with one logarithm for each row."""
    total = 0.0
    for k in range(Y.shape[0]):
        size, product = 0.0, 1.0
        for j in range(Y.shape[1]):
            size += abs(Y[k, j])
            product *= 1.0 + decays[k, j]
        total += block[k, FACT_WEIGHT] * (size + 2.0 * math.log(product))
    return total


@inner
def _copy(block, x_out, weighted_out):
    """Write the rows of a block, and weight_i x_i, to contiguous arrays; return Σ weight_i."""
    total, first = 0.0, block.shape[1] - x_out.shape[1]
    for k in range(block.shape[0]):
        weight = block[k, FACT_WEIGHT]
        total += weight
        for j in range(x_out.shape[1]):
            x_out[k, j] = block[k, first + j]
            weighted_out[k, j] = weight * x_out[k, j]
    return total


@jit
def _sums(facts, theta, valued, g_out):
    n, d, value, total = facts.shape[0], int(math.sqrt(theta.shape[0]) + 0.5), 0.0, 0.0
    W, inverse, product = theta.reshape((d, d)), np.empty((d, d)), np.empty((d, d))
    size = max(FEWEST_TOGETHER, TOGETHER // d)
    x, weighted = np.empty((size, d)), np.empty((size, d))
    Y, decays = np.empty((size, d)), np.empty((size, d))
    log_det = _inverse(theta, inverse)
    for start in range(0, n, size):
        block = facts[start : min(start + size, n)]
        m = block.shape[0]
        total += _copy(block, x, weighted)
        np.dot(x[:m], W.T, Y[:m])
        _decays(Y[:m].reshape(m * d), decays[:m].reshape(m * d))
        if valued:
            value += _logistic_losses(block, Y[:m], decays)
        _replace_by_tanh(Y[:m].reshape(m * d), decays[:m].reshape(m * d))
        np.dot(Y[:m].T, weighted[:m], product)
        for i in range(d * d):
            g_out[i] += product[i // d, i % d]
    for i in range(d):
        for j in range(d):
            g_out[i * d + j] -= total * inverse[j, i]
    return value - total * (log_det + 2.0 * d * math.log(2.0)) if valued else 0.0


def _sources(facts, W):
    """Yield (weights, rows (n, d), e^-|Y| (d, n) of their sources Y) of blocks of rows."""
    d = len(W)
    size = max(64, BLOCK_BYTES // (8 * d))
    for first in range(0, len(facts), size):
        block = facts[first : first + size]
        x = np.ascontiguousarray(block[:, -d:])
        yield block[:, FACT_WEIGHT], x, np.exp(-np.abs(W @ x.T))


def _loss_hessian(facts, theta):
    """Return the Hessian of the negative log-likelihood of rows, by products of matrices.

    With t = tanh(Y/2) it is, from ∂ℓ/∂W_ij to W_kl, δ_ik Σ ½(1 - t_i²) x_j x_l + W⁻¹_jk W⁻¹_li.
    """
    d = int(np.sqrt(len(theta)) + 0.5)
    W, total, H = theta.reshape(d, d), 0.0, np.zeros((d, d, d, d))
    for weight, x, e in _sources(facts, W):
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
    sums = staticmethod(_sums)
    loss_hessian = staticmethod(_loss_hessian)

    @property
    def cost(self):
        """Cost per parameter, see `Model`: products, and a share of the √D logistic functions."""
        return 0.1 + 1.8 / np.sqrt(self.n_extra)

    @property
    def cost_of_all(self):
        """The same for all rows together: the √D logistic functions are most of it."""
        return 0.3 / np.sqrt(self.n_extra)

    cost_of_many = cost_of_all


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
