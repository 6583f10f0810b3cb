"""Kernels of `linear_slopes`: the law of (ψ, log σ) at many places, and β and u given them.

Columns and response are in units of their own (see `linear_exact.units_of`), with residuals
T_y (y - x·β), and t = (T_y/σ)². The rows of a level, times the roots of their weights, have the
triangular factor

    [z, x, y] = (orthogonal) [[F_l, S_l], [0, H_l]],

so that with C' = C/σ and I + F_l C' C'ᵀ F_lᵀ = L_l L_lᵀ the effects leave

    M = Σ_l H_lᵀ H_l + Σ_l B_lᵀ B_l,   B_l = L_l⁻¹ S_l,

the coefficients have the precision P = t M_xx + Λ = A Aᵀ and the drift b = t M_xy + Λ μ, and

    log p(y | ψ, σ) = -W log σ - Σ_l log |L_l| - log |A| - ½ (t M_yy + μᵀΛμ - |A⁻¹ b|²).

M is a sum of squares, without a difference in it: a sloped column far from zero, or rows that are
repeated in all of their level, leave of Σ w (x, y)(x, y)ᵀ less than its rounding errors. L_l comes
from I by rotations, for the same reason: 1 can be lost beside the rest, whose rank may be low.
"""

import math
from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inlined, inner
from ..kernels.triangular import solve, solve_transposed
from ..priors.table import prior_value
from .algebra import triangular
from .covariance import negative_log_prior, set_covariance

__all__ = ["SlopeSums", "factor_levels", "slope_draws", "slope_log_densities"]

FAR = 40.0  # size of an entry of (ψ, log σ) beyond which the density is taken to be zero
RANK = 1e-12  # share of the length of a column below which a pivot is a rounding error


class SlopeSums(NamedTuple):
    """Sufficient statistics of the rows, and the prior of the coefficients: see the module."""

    F: np.ndarray  # (n_levels, K, K), upper triangular
    S: np.ndarray  # (n_levels, K, D + 1)
    within: np.ndarray  # (D + 1, D + 1): Σ HᵀH
    precision: np.ndarray  # Λ
    drift: np.ndarray  # Λ μ
    square: float  # μᵀ Λ μ
    total: float  # W
    log_unit: float  # log T_y


@inlined
def _rotated(a, b):
    """c, s and the length of (a, b), which the rotation (c, s) turns to (length, 0)."""
    size = math.sqrt(a * a + b * b)
    if size == 0.0:
        return 1.0, 0.0, 0.0
    return a / size, b / size, size


@entry
def factor_levels(rows, z, codes, F_out, S_out, within_out):
    """F and S of all levels, which begin at zero, and Σ HᵀH; rows and z are overwritten.

    Each row is rotated into the triangle of its level; what is left of it belongs to H.
    """
    K, D = z.shape[1], rows.shape[1]
    length = np.zeros((len(F_out), K))
    for n in range(len(rows)):
        level = codes[n]
        for i in range(K):
            length[level, i] += z[n, i] * z[n, i]
        for i in range(K):
            c, s, F_out[level, i, i] = _rotated(F_out[level, i, i], z[n, i])
            for j in range(i + 1, K):
                own, new = F_out[level, i, j], z[n, j]
                F_out[level, i, j], z[n, j] = c * own + s * new, c * new - s * own
            for j in range(D):
                own, new = S_out[level, i, j], rows[n, j]
                S_out[level, i, j], rows[n, j] = c * own + s * new, c * new - s * own
        for i in range(D):
            for j in range(D):
                within_out[i, j] += rows[n, i] * rows[n, j]
    for level in range(len(F_out)):
        for i in range(K):
            if F_out[level, i, i] <= RANK * math.sqrt(length[level, i]):
                F_out[level, i, i] = 0.0


@inlined
def _add_square(L, x):
    """L ← the triangular factor of L Lᵀ + x xᵀ. x is overwritten."""
    for i in range(len(x)):
        c, s, L[i, i] = _rotated(L[i, i], x[i])
        for j in range(i + 1, len(x)):
            L[j, i], x[j] = c * L[j, i] + s * x[j], c * x[j] - s * L[j, i]


@inlined
def _set_one(L):
    """L ← the identity, in the lower triangle alone."""
    for i in range(len(L)):
        for j in range(i + 1):
            L[i, j] = 1.0 if i == j else 0.0


@inlined
def _element(F, level, C, i, j):
    """(F_l C)_ij."""
    value = 0.0
    for a in range(max(i, j), len(C)):
        value += F[level, i, a] * C[a, j]
    return value


@inlined
def _absorb(sums, level, C, x, L_out, B_out):
    """L_out ← L_l and B_out ← B_l of a level; return log |L_l|. x is scratch."""
    K, det = len(C), 1.0
    _set_one(L_out)
    for j in range(K):
        for i in range(K):
            x[i] = _element(sums.F, level, C, i, j)
        _add_square(L_out, x)
    for i in range(K):
        det *= L_out[i, i]
        inverse = 1.0 / L_out[i, i]
        for j in range(B_out.shape[1]):
            B_out[i, j] = sums.S[level, i, j]
        for k in range(i):
            for j in range(B_out.shape[1]):
                B_out[i, j] -= L_out[i, k] * B_out[k, j]
        for j in range(B_out.shape[1]):
            B_out[i, j] *= inverse
    return math.log(det)


@inner
def _given(sums, C, log_sigma, x, L, B, M, A_out, v_out):
    """A_out ← A, v_out ← A⁻¹ b; return log p(y | ψ, σ). x, L, B and M are scratch."""
    D, K, growth = len(sums.drift), C.shape[0], 0.0
    t = math.exp(2.0 * (sums.log_unit - log_sigma))
    for i in range(D + 1):
        for j in range(D + 1):
            M[i, j] = sums.within[i, j]
    for level in range(len(sums.F)):
        growth += _absorb(sums, level, C, x, L, B)
        for i in range(D + 1):
            for k in range(K):
                for j in range(i + 1):
                    M[i, j] += B[k, i] * B[k, j]
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
    """C_out ← C' = C/σ at (ψ, log σ); return log σ, zero where σ is known. omega is scratch."""
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

    `scales` and `noise` have the prior-table rows of standard deviations and of σ; `noise` has none
    if σ is known. Where an entry of a place is beyond `FAR`, the density is zero, and where
    rounding leaves no triangular factor it is NaN.
    """
    D, K = len(sums.drift), scales.shape[0]
    n = K * (K + 1) // 2
    C, omega, L, B = np.empty((K, K)), np.empty((K, K)), np.empty((K, K)), np.empty((K, D + 1))
    M, A, v, x = np.empty((D + 1, D + 1)), np.empty((D, D)), np.empty(D), np.empty(K)
    for m in range(len(places)):
        place = places[m]
        out[m] = -math.inf
        if not np.abs(place).max() < FAR:
            continue
        log_sigma = _set_place(place, scales, C, omega)
        own = _given(sums, C, log_sigma, x, L, B, M, A, v)
        own -= negative_log_prior(place[:n], scales)
        out[m] = own - prior_value(noise, place[n:])


@entry
def slope_draws(sums, scales, places, normals, beta_out, u_out):
    """Draw β, in the units of the module, and u for each place, from D + n_levels K normals each.

    Given β, u_l = σ C' z_l with z_l ~ N(Q_l⁻¹ C'ᵀ F_lᵀ r_l, Q_l⁻¹), Q_l = I + C'ᵀ F_lᵀ F_l C' and
    r_l = (S_l)_y - (S_l)_x β, over σ.
    """
    D, K = len(sums.drift), scales.shape[0]
    C, omega, L, B = np.empty((K, K)), np.empty((K, K)), np.empty((K, K)), np.empty((K, D + 1))
    M, A, x, inside = np.empty((D + 1, D + 1)), np.empty((D, D)), np.empty(K), np.empty(K)
    for m in range(len(places)):
        log_sigma, beta = _set_place(places[m], scales, C, omega), beta_out[m]
        _given(sums, C, log_sigma, x, L, B, M, A, beta)
        for i in range(D):
            beta[i] += normals[m, i]
        solve_transposed(A, beta)
        root, sigma = math.exp(sums.log_unit - log_sigma), math.exp(log_sigma)
        for level in range(len(sums.F)):
            _set_drift(sums, level, C, beta, root, x, L, inside)
            solve(L, inside)
            for i in range(K):
                inside[i] += normals[m, D + level * K + i]
            solve_transposed(L, inside)
            for i in range(K):
                u_out[m, level, i] = 0.0
                for k in range(i + 1):
                    u_out[m, level, i] += sigma * C[i, k] * inside[k]


@inlined
def _set_drift(sums, level, C, beta, root, x, L_out, drift_out):
    """L_out ← the triangular factor of Q_l, drift_out ← C'ᵀ F_lᵀ r_l. x is scratch."""
    D, K = len(beta), len(C)
    _set_one(L_out)
    for j in range(K):
        drift_out[j] = 0.0
    for i in range(K):
        residual = sums.S[level, i, D]
        for j in range(D):
            residual -= sums.S[level, i, j] * beta[j]
        for j in range(K):
            x[j] = _element(sums.F, level, C, i, j)
            drift_out[j] += root * x[j] * residual
        _add_square(L_out, x)
