"""Gibbs sampling of a mixture of Gaussians (Diebolt and Robert 1994), under `ComponentsPrior`.

A sweep draws, one after the other,

    z_i = k with probability ∝ w_k N(x_i; μ_k, P_k⁻¹),
    w ~ Dirichlet(α + n),
    μ_k ~ N(Q⁻¹ P_k Σ_{z_i=k} x_i, Q⁻¹),   Q = n_k P_k + diag(1/m²),
    P_k ~ Wishart(ν + n_k, (c I + S_k)⁻¹),  S_k = Σ_{z_i=k} (x_i - μ_k)(x_i - μ_k)ᵀ,

or gamma laws for "diag" and "spherical". With S_k = G Gᵀ - c I, a draw of the Wishart law is
G⁻ᵀ T Tᵀ G⁻¹ with the T of Bartlett's decomposition.
"""

import math

import numpy as np

from .._base.jit import entry, inner
from ..kernels.copies import copy
from ..kernels.triangular import solve, solve_transposed
from .mixture import DIAG, SPHERICAL, TIED

__all__ = ["sweep_many"]

AT_ONCE = 64  # rows of a block


@inner
def _cholesky(M, L_out):
    """Write the Cholesky factor L with L Lᵀ = M to `L_out`, reading the lower triangle of M."""
    d = M.shape[0]
    for i in range(d):
        for j in range(i + 1):
            s = M[i, j]
            for m in range(j):
                s -= L_out[i, m] * L_out[j, m]
            L_out[i, j] = math.sqrt(max(s, 1e-300)) if i == j else s / L_out[j, j]
        for j in range(i + 1, d):
            L_out[i, j] = 0.0


@inner
def _log_densities(X, log_w, mu, A, scratch, out):
    """out[k, i] ← log w_k N(x_i; μ_k, P_k⁻¹), without (2π)^(-d/2), of the rows of a block.

    The loops over rows are the inner ones, which compilers turn into vector instructions; `scratch`
    has the shape (d + 2, AT_ONCE).
    """
    n, d = X.shape
    centred, s, square = scratch[:d], scratch[d], scratch[d + 1]
    for k in range(log_w.shape[0]):
        log_det = log_w[k]
        for j in range(d):
            log_det += math.log(A[k, j, j])
            for i in range(n):
                centred[j, i] = X[i, j] - mu[k, j]
        square[:] = 0.0
        for j in range(d):
            s[:] = 0.0
            for m in range(j, d):
                a, x = A[k, m, j], centred[m]
                for i in range(n):
                    s[i] += a * x[i]
            for i in range(n):
                square[i] += s[i] * s[i]
        for i in range(n):
            out[k, i] = log_det - 0.5 * square[i]


@inner
def _allocate(X, log_w, mu, A, rng, counts, sums, squares, chance):
    """Draw the component z_i of each row; return Σ_i log p(x_i), without (2π)^(-d/2).

    The sufficient statistics of each component are written to `counts` (K,), `sums` (K, d) and, as
    lower triangles of Σ x xᵀ, to `squares` (K, d, d); `chance` (K,) is scratch.
    """
    N, d = X.shape
    K, total = log_w.shape[0], 0.0
    counts[:], sums[:], squares[:] = 0.0, 0.0, 0.0
    block, scratch = np.empty((K, AT_ONCE)), np.empty((d + 2, AT_ONCE))
    for i in range(N):
        x, most, place = X[i], -math.inf, i % AT_ONCE
        if place == 0:
            _log_densities(X[i : i + AT_ONCE], log_w, mu, A, scratch, block)
        for k in range(K):
            most = max(most, block[k, place])
        share = 0.0
        for k in range(K):
            share += math.exp(block[k, place] - most)
            chance[k] = share
        total += most + math.log(share)
        u, z = share * rng.random(), 0
        while z < K - 1 and chance[z] <= u:
            z += 1
        counts[z] += 1.0
        for j in range(d):
            sums[z, j] += x[j]
            for m in range(j + 1):
                squares[z, j, m] += x[j] * x[m]
    return total


@inner
def _draw_weights(alpha, counts, rng, log_w):
    """Draw the log weights from Dirichlet(α + counts), and write them to `log_w`.

    The logarithms of gamma variables cannot underflow, by Gamma(a) = Gamma(a + 1) U^(1/a).
    """
    most = -math.inf
    for k in range(log_w.shape[0]):
        a = alpha + counts[k]
        log_w[k] = math.log(rng.standard_gamma(a + 1.0)) + math.log1p(-rng.random()) / a
        most = max(most, log_w[k])
    total = 0.0
    for k in range(log_w.shape[0]):
        total += math.exp(log_w[k] - most)
    for k in range(log_w.shape[0]):
        log_w[k] -= most + math.log(total)


@inner
def _draw_mean(A, count, total, mean_sd, rng, mu, Q, L):
    """Draw μ_k given its precision P = A Aᵀ and its rows, and write it to `mu`.

    `count` and `total` are the number and the sum of these rows; Q and L (d, d) are scratch.
    """
    d = mu.shape[0]
    right = np.zeros(d)
    for i in range(d):
        for j in range(d):
            p = 0.0
            for m in range(min(i, j) + 1):
                p += A[i, m] * A[j, m]
            Q[i, j] = count * p
            right[i] += p * total[j]
        Q[i, i] += 1.0 / mean_sd[i] ** 2
    _cholesky(Q, L)
    solve(L, right)
    solve_transposed(L, right)
    for i in range(d):
        mu[i] = rng.standard_normal()
    solve_transposed(L, mu)
    for i in range(d):
        mu[i] += right[i]


@inner
def _add_scatter(counts, sums, squares, mu, k, S):
    """Add the lower triangle of Σ_{z_i=k} (x_i - μ_k)(x_i - μ_k)ᵀ to S."""
    for i in range(mu.shape[1]):
        for j in range(i + 1):
            cross = sums[k, i] * mu[k, j] + mu[k, i] * sums[k, j]
            S[i, j] += squares[k, i, j] - cross + counts[k] * mu[k, i] * mu[k, j]


@inner
def _draw_wishart(df, S, rng, A_out, L, T):
    """Draw a lower triangle A with A Aᵀ ~ Wishart(df, S⁻¹), and write it to `A_out`.

    S is overwritten; L (d, d) and T (d,) are scratch.
    """
    d = S.shape[0]
    _cholesky(S, L)
    for j in range(d):  # column j of G⁻ᵀ T
        for i in range(d):
            T[i] = 0.0
        T[j] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (df - j)))
        for i in range(j + 1, d):
            T[i] = rng.standard_normal()
        solve_transposed(L, T)
        for i in range(d):
            A_out[i, j] = T[i]
    for i in range(d):
        for j in range(i + 1):
            s = 0.0
            for m in range(d):
                s += A_out[i, m] * A_out[j, m]
            S[i, j] = s
    _cholesky(S, A_out)


@inner
def _draw_precision(kind, df, c, count, S, rng, A_out, L, T):
    """Draw A of one component given its scatter S of `count` rows, and write it to `A_out`.

    S is overwritten for "full" and "tied"; L (d, d) and T (d,) are scratch.
    """
    d = S.shape[0]
    if kind != DIAG and kind != SPHERICAL:
        for j in range(d):
            S[j, j] += c
        _draw_wishart(df + count, S, rng, A_out, L, T)
        return
    own, trace = df - d + 1.0, 0.0
    for j in range(d):
        trace += S[j, j]
    shared = 0.0
    if kind == SPHERICAL:
        shared = rng.standard_gamma(0.5 * (own + d * count)) / (0.5 * (c + trace))
    for i in range(d):
        for j in range(d):
            A_out[i, j] = 0.0
        tau = shared
        if kind == DIAG:
            tau = rng.standard_gamma(0.5 * (own + count)) / (0.5 * (c + S[i, i]))
        A_out[i, i] = math.sqrt(max(tau, 1e-300))


@entry
def sweep_many(
    X, kind, alpha, mean_sd, df, c, rng, n_sweeps, thin, done, log_w, mu, A, log_w_out, mu_out,
    A_out, log_likelihood_out,
):  # fmt: skip
    """Take `n_sweeps` sweeps from the state (log_w, mu, A), in place; return the new `done`.

    `done` is the number of sweeps since the phase began. Draw k, which is written to the arrays
    `*_out`, is the state after ``thin * (k + 1)`` sweeps; it is written at the start of the next
    sweep, which computes its log-likelihood.
    """
    K, d = mu.shape
    counts, sums, squares = np.empty(K), np.empty((K, d)), np.empty((K, d, d))
    chance, Q, L, T = np.empty(K), np.empty((d, d)), np.empty((d, d)), np.empty(d)
    scatter = np.empty((d, d))
    for _ in range(n_sweeps):
        value = _allocate(X, log_w, mu, A, rng, counts, sums, squares, chance)
        if done > 0 and done % thin == 0:
            k = done // thin - 1
            log_likelihood_out[k] = value
            copy(log_w, log_w_out[k])
            copy(mu, mu_out[k])
            copy(A, A_out[k])
        _draw_weights(alpha, counts, rng, log_w)
        scatter[:] = 0.0
        for k in range(K):
            _draw_mean(A[k], counts[k], sums[k], mean_sd, rng, mu[k], Q, L)
            if kind != TIED:
                scatter[:] = 0.0
            _add_scatter(counts, sums, squares, mu, k, scatter)
            if kind != TIED:
                _draw_precision(kind, df, c, counts[k], scatter, rng, A[k], L, T)
        if kind == TIED:
            _draw_precision(kind, df, c, float(X.shape[0]), scatter, rng, A[0], L, T)
            for k in range(1, K):
                copy(A[0], A[k])
        done += 1
    return done
