"""The parts of Gibbs sampling of scale mixtures that are loops over chains and steps.

The notation is that of `skbayes_sg.recipe.scale_mixture`. Steps of these chains are short: NumPy
calls on arrays of three rows took ten times as long as their arithmetic.
"""

import math

import numpy as np

from .._base.jit import entry, inner
from ..priors.table import prior_value
from .triangular import solve

__all__ = ["project", "walk_nu", "walk_sigma"]


@inner
def _subtract(U, n, b):
    """Subtract from b its projection on the first n rows of U, which are orthonormal."""
    for k in range(n):
        along = 0.0
        for i in range(len(b)):
            along += U[k, i] * b[i]
        for i in range(len(b)):
            b[i] -= along * U[k, i]


@inner
def _square(b):
    total = 0.0
    for i in range(len(b)):
        total += b[i] * b[i]
    return total


@inner
def _factors(K, noise, rows, L_out, U_out):
    """Return ½ (log |C| + log |Fᵀ C⁻¹ F| + yᵀ P y) for `rows` = (F, y)ᵀ, and write factors of P.

    C = K + diag(noise) = L Lᵀ. All rows of U but the last are orthonormal and span L⁻¹F, so that
    P = L⁻ᵀ (1 - UᵀU) L⁻¹ with these.
    """
    C = K.copy()
    for i in range(len(K)):
        C[i, i] += noise[i]
    L_out[:] = np.linalg.cholesky(C)
    total, last = 0.0, len(rows) - 1
    for i in range(len(K)):
        total += math.log(L_out[i, i])
    for k in range(last + 1):
        own = U_out[k]
        own[:] = rows[k]
        solve(L_out, own)
        _subtract(U_out, k, own)  # twice, so that no rounding errors along the other rows are left
        _subtract(U_out, k, own)
        if k < last:
            length = math.sqrt(_square(own))
            total += math.log(length)
            own /= length
    return total + 0.5 * _square(U_out[last])


@inner
def _log_p(K, spread, jitter, rows, prior, excess, log_sigma, L_out, U_out):
    """Return log p(y, log σ | v, ω) up to a constant; the factors are written as by `_factors`."""
    noise = math.exp(2.0 * log_sigma[0]) * spread + jitter
    found = -_factors(K, noise, rows, L_out, U_out)
    return found - excess * log_sigma[0] - prior_value(prior, log_sigma)


@entry
def walk_sigma(
    K, spread, jitter, rows, prior, excess, lowest, steps, log_u, log_sigma, log_p_out, L_out, U_out
):
    """Move log σ of every chain by random-walk Metropolis, and write log p, L and U at the ends.

    `steps` (n_walks, n_chains) are the changes that are proposed. Below `lowest` the density is
    taken to be zero: proposals there are rejected, and a chain that is there accepts the first
    proposal that is not; if there is none, L and U are those at `lowest`.
    """
    n_walks, n_chains = steps.shape
    L, U, place = np.empty_like(L_out[0]), np.empty_like(U_out[0]), np.empty(1)
    for c in range(n_chains):
        place[0] = max(log_sigma[c], lowest[c])
        arguments = K[c], spread[c], jitter[c], rows, prior, excess
        log_p = _log_p(*arguments, place, L_out[c], U_out[c])
        is_inside = log_sigma[c] >= lowest[c]
        for w in range(n_walks):
            place[0] = log_sigma[c] + steps[w, c]
            if place[0] < lowest[c]:
                continue
            other = _log_p(*arguments, place, L, U)
            if not is_inside or log_u[w, c] < other - log_p:
                log_sigma[c], log_p, is_inside = place[0], other, True
                L_out[c], U_out[c] = L, U
        log_p_out[c] = log_p if is_inside else -np.inf


@entry
def project(L, U, q):
    """Replace q by P q for every chain, with the factors of `_factors` (U without its last row)."""
    for c in range(len(L)):
        white, own = q[c], L[c]
        solve(own, white)
        _subtract(U[c], U.shape[1] - 1, white)
        for i in range(len(white) - 1, -1, -1):  # backward substitution, which multiplies by L⁻ᵀ
            white[i] /= own[i, i]
            for j in range(i):
                white[j] -= own[i, j] * white[i]


@inner
def _log_p_of_nu(log_nu, z, prior):
    """Return log p(log ν | z) up to a constant, for residuals z in units of σ."""
    nu = math.exp(log_nu[0])
    total = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * log_nu[0]
    total *= len(z)
    for i in range(len(z)):
        total -= 0.5 * (nu + 1.0) * math.log1p(z[i] * z[i] / nu)
    return total - prior_value(prior, log_nu)


@entry
def walk_nu(z, prior, steps, log_u, log_nu, log_p_out):
    """Move log ν of every chain by random-walk Metropolis, and write log p(log ν | z) at the ends.

    `steps` (n_walks, n_chains) are the changes that are proposed.
    """
    place = np.empty(1)
    for c in range(len(z)):
        place[0] = log_nu[c]
        log_p = _log_p_of_nu(place, z[c], prior)
        for w in range(len(steps)):
            place[0] = log_nu[c] + steps[w, c]
            other = _log_p_of_nu(place, z[c], prior)
            if log_u[w, c] < other - log_p:
                log_nu[c], log_p = place[0], other
        log_p_out[c] = log_p
