"""Kernels of `linear_slopes`: the law of (ψ, log σ) at many places, and β and u given them.

Columns and response are in units of their own (see `linear_exact.units_of`), with residuals
T_y (y - x·β), and t = (T_y/σ)². With C' = C/σ, and for each level G_l = Σ w z zᵀ = F_lᵀ F_l and

    Q_l = I + C'ᵀ G_l C' = L_l L_lᵀ,   B_l = L_l⁻¹ C'ᵀ S_l,   M = Σ w (x, y)(x, y)ᵀ - Σ_l B_lᵀ B_l,

the coefficients have the precision P = t M_xx + Λ = A Aᵀ and the drift b = t M_xy + Λ μ, and

    log p(y | ψ, σ) = -W log σ - Σ_l log |L_l| - log |A| - ½ (t M_yy + μᵀΛμ - |A⁻¹ b|²).

L_l comes from I by a rotation for each row of F_l C', so that nothing is squared: far in the tail 1
would be lost beside C'ᵀ G_l C', whose rank may be less than K.
"""

import math
from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inlined, inner
from ..priors.table import prior_value
from .algebra import solve, solve_transposed, triangular
from .covariance import negative_log_prior, set_covariance

__all__ = ["SlopeSums", "slope_draws", "slope_log_densities"]

FAR = 40.0  # a logarithm beyond which nothing is


class SlopeSums(NamedTuple):
    """All that the rows say, and the prior of the coefficients."""

    F: np.ndarray  # (n_levels, K, K): FᵀF = Σ w z zᵀ
    S: np.ndarray  # (n_levels, K, D + 1): Σ w z (x, y)ᵀ
    all: np.ndarray  # (D + 1, D + 1): Σ w (x, y)(x, y)ᵀ
    precision: np.ndarray  # Λ
    drift: np.ndarray  # Λ μ
    square: float  # μᵀ Λ μ
    total: float  # W
    log_unit: float  # log T_y


@inlined
def _factor(F, level, C, x, L_out):
    """L_l of a level; return its log determinant. x is scratch."""
    K, det = C.shape[0], 1.0
    for i in range(K):
        for j in range(i + 1):
            L_out[i, j] = 1.0 if i == j else 0.0
    for row in range(K):
        for j in range(K):
            x[j] = 0.0
            for a in range(j, K):
                x[j] += F[level, row, a] * C[a, j]
        for i in range(K):
            size = math.sqrt(L_out[i, i] * L_out[i, i] + x[i] * x[i])
            c, s = L_out[i, i] * (1.0 / size), x[i] * (1.0 / size)
            L_out[i, i] = size
            for j in range(i + 1, K):
                L_out[j, i], x[j] = c * L_out[j, i] + s * x[j], c * x[j] - s * L_out[j, i]
    for i in range(K):
        det *= L_out[i, i]
    return math.log(det)


@inlined
def _absorb(sums, level, C, x, Q_out, B_out):
    """L_l and B_l of a level; return log |L_l|."""
    K, growth = C.shape[0], _factor(sums.F, level, C, x, Q_out)
    for i in range(K):
        for j in range(B_out.shape[1]):
            B_out[i, j] = 0.0
        for a in range(i, K):
            for j in range(B_out.shape[1]):
                B_out[i, j] += C[a, i] * sums.S[level, a, j]
        for k in range(i):
            for j in range(B_out.shape[1]):
                B_out[i, j] -= Q_out[i, k] * B_out[k, j]
        inverse = 1.0 / Q_out[i, i]
        for j in range(B_out.shape[1]):
            B_out[i, j] *= inverse
    return growth


@inner
def _given(sums, C, log_sigma, x, Q, B, M, A_out, v_out):
    """A and v = A⁻¹ b; return log p(y | ψ, σ). x, Q, B and M are scratch."""
    D, K, growth = len(sums.drift), C.shape[0], 0.0
    t = math.exp(2.0 * (sums.log_unit - log_sigma))
    for i in range(D + 1):
        for j in range(D + 1):
            M[i, j] = sums.all[i, j]
    for level in range(len(sums.F)):
        growth += _absorb(sums, level, C, x, Q, B)
        for i in range(D + 1):
            for k in range(K):
                for j in range(i + 1):
                    M[i, j] -= B[k, i] * B[k, j]
    for i in range(D):
        v_out[i] = t * M[D, i] + sums.drift[i]
        for j in range(i + 1):
            A_out[i, j] = t * M[i, j] + sums.precision[i, j]
    value = -sums.total * log_sigma - growth - triangular(A_out)
    solve(A_out, v_out)
    square = t * M[D, D] + sums.square
    for i in range(D):
        square -= v_out[i] * v_out[i]
    return value - 0.5 * square


@inner
def _set_place(place, scales, C_out, omega):
    """C' = C/σ; return log σ, which is zero where it is known."""
    K = scales.shape[0]
    n = K * (K + 1) // 2
    log_sigma = place[n] if len(place) > n else 0.0
    set_covariance(place[:n], C_out, omega)
    for i in range(K):
        for j in range(i + 1):
            C_out[i, j] *= math.exp(-log_sigma)
    return log_sigma


@entry
def slope_log_densities(sums, scales, noise, places, out):
    """out ← log p(ψ, log σ | y) at each of some places, up to a constant.

    `scales` and `noise` have the rows of the priors of standard deviations and of σ, the latter
    none if σ is known. Where the logarithm of a number is beyond `FAR`, the density is zero, and
    where rounding leaves no triangular factor it is NaN.
    """
    D, K = len(sums.drift), scales.shape[0]
    n = K * (K + 1) // 2
    C, omega, Q, B = np.empty((K, K)), np.empty((K, K)), np.empty((K, K)), np.empty((K, D + 1))
    M, A, v, x = np.empty((D + 1, D + 1)), np.empty((D, D)), np.empty(D), np.empty(K)
    for m in range(len(places)):
        place = places[m]
        out[m] = -math.inf
        if not np.abs(place).max() < FAR:
            continue
        log_sigma = _set_place(place, scales, C, omega)
        own = _given(sums, C, log_sigma, x, Q, B, M, A, v)
        own -= negative_log_prior(place[:n], scales)
        out[m] = own - prior_value(noise, place[n:])


@entry
def slope_draws(sums, scales, places, normals, beta_out, u_out):
    """β, in its units, and u for each of some places, from D + n_levels K normals each.

    Given β, u_l = σ C' z_l with z_l ~ N(Q_l⁻¹ C'ᵀ Σ w z (y - x·β)/σ, Q_l⁻¹).
    """
    D, K = len(sums.drift), scales.shape[0]
    C, omega, Q, B = np.empty((K, K)), np.empty((K, K)), np.empty((K, K)), np.empty((K, D + 1))
    M, A, x, inside = np.empty((D + 1, D + 1)), np.empty((D, D)), np.empty(K), np.empty(K)
    for m in range(len(places)):
        log_sigma, beta = _set_place(places[m], scales, C, omega), beta_out[m]
        _given(sums, C, log_sigma, x, Q, B, M, A, beta)
        for i in range(D):
            beta[i] += normals[m, i]
        solve_transposed(A, beta)
        root, sigma, place = math.exp(sums.log_unit - log_sigma), math.exp(log_sigma), D
        for level in range(len(sums.F)):
            _factor(sums.F, level, C, x, Q)
            for i in range(K):
                x[i] = sums.S[level, i, D]
                for j in range(D):
                    x[i] -= sums.S[level, i, j] * beta[j]
            for i in range(K):
                inside[i] = 0.0
                for a in range(i, K):
                    inside[i] += root * C[a, i] * x[a]
            solve(Q, inside)
            for i in range(K):
                inside[i] += normals[m, place]
                place += 1
            solve_transposed(Q, inside)
            for i in range(K):
                x[i] = 0.0
                for k in range(i + 1):
                    x[i] += sigma * C[i, k] * inside[k]
                u_out[m, level, i] = x[i]
