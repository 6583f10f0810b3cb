"""Predictive distributions of a number: mixtures of the distributions of y under all draws.

With predictors η_s, positive parameters σ_s and weights w_s of the draws,
``p(y | x) = Σ_s w_s p(y | η_s, σ_s)``. Here η is an array (n_rows, n_draws), and each positive
parameter of the model an array (n_draws,). The distributions under single draws are those of
`skbayes_sg.models`; for quantiles see `skbayes_sg.models.mixture_quantiles`. All functions work on
a block of rows, which the caller keeps small.
"""

import numpy as np
from scipy import linalg, sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._base import weights as weighting

__all__ = ["affine", "moments_of_lines", "variances"]

BLOCK_BYTES = 1 << 20  # size in bytes of the rows of X that `moments_of_lines` multiplies together


def variances(model, eta, extras, weights, mean=None):
    """Return the epistemic and the aleatoric variance of y for each row, (2, n_rows).

    They are the terms of Var(y) = Var(E(y | draw)) + E(Var(y | draw)), which come from unknown
    parameters and from noise. `mean` is E(y | draw), (n_rows, n_draws), if it is already known.
    """
    mean = model.mean(eta, *extras) if mean is None else mean
    with np.errstate(invalid="ignore", over="ignore"):  # means of e^η may be of any size
        epistemic = np.square(weighting.std(mean, weights, axis=1))
    # Infinite means give NaN, from inf - inf.
    epistemic = np.where(np.isinf(mean).any(axis=1), np.inf, epistemic)
    aleatoric = np.broadcast_to(model.variance(eta, *extras), eta.shape)
    return np.stack([epistemic, weighting.mean(aleatoric, weights, axis=1)])


def moments_of_lines(X, theta, of_mean, weights, spread=True):
    """Return the mean and variance of η = x·β + b over the draws of (β, b), two arrays (n_rows,).

    With a root R of the covariance of the draws, RᵀR = Cov(β, b), the variance is |R (x, 1)|².
    So η is not computed for each row and draw.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, d)
    theta : ndarray of shape (n_draws, d + 1)
        Draws of β and b.
    of_mean, weights : ndarray of shape (n_draws,) or None
        Weights of the draws in the mean, and in the variance.
    spread : bool, default=True
        Whether to compute the variance; if not, None is returned in its place.
    """
    first = theta[0]  # it is subtracted, since means of large numbers lose digits
    theta = theta - first
    centre = (first + weighting.mean(theta, of_mean, axis=0))[:, None]
    R = _root(theta, weights, X.shape[0]).T if spread else None
    step = max(1, BLOCK_BYTES // (8 * theta.shape[1]))
    found = np.empty((2, X.shape[0]))
    for k in range(0, X.shape[0], step):
        rows = X[k : k + step]
        found[0, k : k + step] = affine(rows, centre)[:, 0]
        if spread:
            off = affine(rows, R)
            found[1, k : k + step] = np.einsum("ij,ij->i", off, off)
    return found[0], found[1] if spread else None


def _root(theta, weights, n_rows):
    """Return R such that RᵀR is the weighted covariance of the draws.

    It is triangular if that pays; for few rows or draws it is the matrix of the centred draws,
    times the square roots of their weights.
    """
    off = theta - weighting.mean(theta, weights, axis=0)
    share = np.full(len(off), 1.0 / len(off)) if weights is None else weights / weights.sum()
    off *= np.sqrt(share)[:, None]
    n = off.shape[1]
    return linalg.qr(off, mode="r", check_finite=False)[0][:n] if min(len(off), n_rows) > n else off


def affine(X, W):
    """Return X B + b for W = (B, b), whose last row is b.

    For dense X it is one product, which is faster than a product and a sum.
    """
    if sparse.issparse(X):
        return safe_sparse_dot(X, W[:-1]) + W[-1]
    return np.column_stack([X, np.ones(len(X))]) @ W
