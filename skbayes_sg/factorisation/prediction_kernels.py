"""Predictions under each draw, for known rows and for new rows, which follow their prior.

A new row of column c is N(μ_c, Σ_c), Σ_c = Λ_c⁻¹. The mean of f over it is f at μ_c. For
independent rows with means m_c and covariances Σ_c, which are zero for known rows, the variance of
f is exactly

    Var f = Σ_c z_cᵀ Σ_c z_c + Σ_{c<c'} tr(Σ_c Σ_c')      z_c = [Σ_{c' ≠ c} m_{c'}, 1],

where the trace is over the factors alone. The noise of a rating of a new category has the variance
of the Student law that its weight implies, ν / (ν - 1) times that of weight 1.
"""

import numpy as np

from .._base.jit import entry, inner
from ..kernels.layout import frozen

__all__ = ["predictive"]


@inner
def _row(F, mu, s, c, a):
    """Row a of F under draw s, or the prior mean of column c if the row is new."""
    if a < 0:
        return mu[s, c]
    return F[s, a]


@inner
def _spread_of_new(F, mu, sigma, s, codes, n):
    """Variance of f of rating n over its new rows, which follow their prior under draw s."""
    C, D = codes.shape[1], mu.shape[2]
    K = D - 1
    z, total = np.empty(D), 0.0
    for c in range(C):
        if codes[n, c] >= 0:
            continue
        z[:] = 0.0
        z[K] = 1.0
        for other in range(C):
            if other != c:
                x = _row(F, mu, s, other, codes[n, other])
                for k in range(K):
                    z[k] += x[k]
            if other < c and codes[n, other] < 0:
                for i in range(K):
                    for j in range(K):
                        total += sigma[s, c, i, j] * sigma[s, other, j, i]
        for i in range(D):
            for j in range(D):
                total += z[i] * sigma[s, c, i, j] * z[j]
    return total


@entry
def _predict(F, means, w, alpha, shapes, mu, sigma, codes, f_out, g_out, spread_out, noise_out):
    """Write the four results of `predictive` into the last four arguments."""
    C, D = codes.shape[1], mu.shape[2]
    K = D - 1
    q = np.empty(K)
    for s in range(alpha.shape[0]):
        for n in range(codes.shape[0]):
            q[:] = 0.0
            rest, variance, new = 0.0, 1.0 / alpha[s], False
            for c in range(C):
                a = codes[n, c]
                if a >= 0:
                    variance /= w[s, a]
                else:
                    variance *= shapes[s, c] / (shapes[s, c] - 1.0)
                    new = True
                if c > 0:
                    x = _row(F, mu, s, c, a)
                    rest += x[K]
                    for k in range(K):
                        rest += q[k] * x[k]
                        q[k] += x[k]
            a = codes[n, 0]
            x = _row(F, mu, s, 0, a)
            f = rest + x[K]
            for k in range(K):
                f += q[k] * x[k]
            g = f
            if a >= 0 and means.shape[1] > 0:
                x = means[s, a]
                g = rest + x[K]
                for k in range(K):
                    g += q[k] * x[k]
            f_out[s, n], g_out[s, n], noise_out[s, n] = f, g, variance
            spread_out[s, n] = _spread_of_new(F, mu, sigma, s, codes, n) if new else 0.0


def predictive(draws, codes):
    """Predictions of ratings under each draw, in standardised units.

    Parameters
    ----------
    draws : skbayes_sg.factorisation.draws.FactorDraws
        S draws, with one first axis.
    codes : ndarray of int32, shape (n, C)
        Rows of F; -1 for new categories.

    Returns
    -------
    f : ndarray of shape (S, n)
        Expected rating given the draw, with new rows at their mean.
    g : ndarray of shape (S, n)
        Expected rating with the row of column 0 at its conditional mean given all else in the draw.
        The average over the draws has the same limit as that of f, and less variance.
    spread : ndarray of shape (S, n)
        Variance of the expected rating over new rows; zero if all rows are known.
    noise : ndarray of shape (S, n)
        Variance of the noise.
    """
    out = np.empty((4, len(draws.alpha), len(codes)))
    read_only = (frozen(array, np.float32) for array in draws)
    _predict(*read_only, frozen(codes, np.int32), *out)
    return tuple(out)
