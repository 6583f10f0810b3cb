"""Leave-one-out densities of rows by Pareto-smoothed importance sampling, row by row.

The posterior without row i has the density p(θ | D) p(y_i | θ)^{-a_i} up to a constant, so that
draws θ_s of p(θ | D), with weights v_s, get the importance weights w_s = v_s p(y_i | θ_s)^{-a_i}:

    log p(y_i | D without i) = log Σ_s w̃_s p(y_i | θ_s) - log Σ_s w̃_s.

In w̃ the M largest of the S weights are replaced by quantiles of a generalised Pareto law that is
fitted to them, M = 3 √(S/r_eff), and at most S/5 where there are few draws. The shape k of this law
says whether the sums can be believed.

The numbers are those of `arviz_stats.base.array_stats.loo`, computed in a kernel because ArviZ
takes minutes for hundreds of thousands of rows. The fit of the Pareto law takes logarithms of
products of eight factors, which needs fewer of them.

References
----------
A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry (2024). Pareto smoothed importance sampling.
Journal of Machine Learning Research 25(72), 1-58.

J. Zhang and M. A. Stephens (2009). A new and efficient estimation method for the generalized Pareto
distribution. Technometrics 51(3), 316-325.
"""

import math

import numpy as np

from .._base.jit import entry, inlined, inner
from ..kernels.sigmoid import HIGHEST, exp

__all__ = ["ELPD", "LPPD", "PARETO_K", "leave_one_out", "tail_size"]

ELPD, PARETO_K, LPPD = range(3)  # columns of the results
EQUAL = 1e-9  # log weights (in nats) that all lie closer together count as the same
# Logarithms are taken of products of FACTORS factors. With excesses of at most LARGEST_RATIO times
# their quartile, a factor is at most about 1 + 3 times this ratio, and the products are finite.
FACTORS, LARGEST_RATIO = 8, 1e30
# The estimate of k is pulled towards PRIOR_K as if that had been seen in PRIOR_ROWS excesses.
PRIOR_ROWS, PRIOR_K = 10.0, 0.5
LEAST_TAIL = 5  # with fewer weights in the tail, weights are not smoothed and k is NaN


def tail_size(n_draws, r_eff):
    """The number M of largest weights that are smoothed, as in ArviZ and the R package loo.

    `r_eff` is the number of effective draws as a share of all draws.
    """
    if n_draws * r_eff > 225:
        return int(3.0 * math.sqrt(n_draws / r_eff))
    return n_draws // 5


def leave_one_out(log_likelihood, removed, log_weights, M):
    """Leave-one-out log density, Pareto k and in-sample log predictive density, (n_rows, 3).

    Parameters
    ----------
    log_likelihood : array of shape (n_rows, n_draws)
        log p(y_i | θ_s).
    removed : array of shape (n_rows, n_draws)
        The logarithm of what a row takes with it: of its likelihood as a rule.
    log_weights : array of shape (n_draws,)
        log v_s, the log weights of the draws, with Σ_s v_s = 1.
    M : int
        `tail_size`; below five, weights are not smoothed and k is NaN.
    """
    n, S = log_likelihood.shape
    out, scratch, order = np.empty((n, 3)), np.empty((3, S)), np.empty(S, dtype=np.int64)
    grid = np.empty((3, 30 + math.isqrt(M)))
    log_survival = np.log1p(-(np.arange(M) + 0.5) / max(M, 1))
    _leave_one_out(log_likelihood, removed, log_weights, log_survival, scratch, order, grid, out)
    return out


@entry
def _leave_one_out(ll, removed, log_v, log_survival, scratch, order, grid, out):
    """Fill `out` (n_rows, 3) for all rows; the other arrays are scratch."""
    lw, keys, x = scratch[0], scratch[1], scratch[2]
    for i in range(ll.shape[0]):
        _weigh_row(ll[i], removed[i], log_v, log_survival, lw, keys, x, order, grid, out[i])


@inner
def _weigh_row(ll, removed, log_v, log_survival, lw, keys, x, order, grid, out):
    """Fill the results `out` (3,) of one row, given its log-likelihoods `ll` at the draws.

    `log_survival` has log(1 - u) for the probabilities u of the quantiles that replace the largest
    weights.
    """
    M = log_survival.shape[0]
    low, top, top_p, top_wp = _weights(ll, removed, log_v, lw)
    w, wp, p = _sums(ll, log_v, lw, top, top_p, top_wp)
    out[PARETO_K] = np.nan if M < LEAST_TAIL else -np.inf
    if low < -EQUAL and M >= LEAST_TAIL:
        cutoff = _largest(lw, M, keys, x, order)
        k, sigma = _fitted(x[:M], grid)
        out[PARETO_K] = k
        if abs(k) < np.inf:  # false for NaN as well
            for m in range(M):
                raw, s = x[m] + cutoff, order[m]
                smooth = min(cutoff + sigma * _power(-log_survival[m], k), 1.0)
                w += smooth - raw
                raw_p = exp(max(lw[s] + top + ll[s] - top_wp, -HIGHEST))
                wp += raw_p * (smooth / raw - 1.0)
    out[ELPD] = math.log(wp) + top_wp - math.log(w) - top
    out[LPPD] = math.log(p) + top_p


@inner
def _weights(ll, removed, log_v, lw):
    """Fill `lw` with log importance weights, shifted so that the largest is 0.

    Returned are the smallest of them, the shift, and the largest of log(v_s p_s) and of
    log(w_s p_s), to which `_sums` are relative.
    """
    low, top, top_p, top_wp = np.inf, -np.inf, -np.inf, -np.inf
    for s in range(ll.shape[0]):
        lw[s] = log_v[s] - removed[s]
        low, top = min(low, lw[s]), max(top, lw[s])
        top_p, top_wp = max(top_p, log_v[s] + ll[s]), max(top_wp, lw[s] + ll[s])
    for s in range(ll.shape[0]):
        lw[s] -= top
    return low - top, top, top_p, top_wp


@inner
def _sums(ll, log_v, lw, top, top_p, top_wp):
    """Σ w, Σ w p and Σ v p over the draws, each divided by its largest term."""
    w, wp, p = 0.0, 0.0, 0.0
    for s in range(ll.shape[0]):
        w += exp(max(lw[s], -HIGHEST))
        wp += exp(max(lw[s] + top + ll[s] - top_wp, -HIGHEST))
        p += exp(max(log_v[s] + ll[s] - top_p, -HIGHEST))
    return w, wp, p


@inlined
def _power(u, k):
    """(e^{ku} - 1)/k for u > 0, by its series for k near 0: a Pareto quantile in units of σ."""
    if abs(k) < 1e-5:
        return u + 0.5 * k * u * u
    return (exp(min(k * u, HIGHEST)) - 1.0) / k


@inner
def _largest(lw, M, keys, x, order):
    """The largest weight below the M largest ones, the cutoff of the tail.

    Fills ``x[:M]`` with the excesses of the M largest weights over it, in increasing order, and
    ``order[:M]`` with their draws.
    """
    threshold, n = _threshold(lw, M + 1), 0
    for s in range(lw.shape[0]):
        keys[n], order[n] = lw[s], s
        n += lw[s] > threshold
    up = np.argsort(keys[:n])
    cutoff = exp(max(keys[up[n - M - 1]], -HIGHEST))
    for m in range(M):
        x[m] = exp(max(keys[up[n - M + m]], -HIGHEST)) - cutoff
        up[m] = order[up[n - M + m]]
    order[:M] = up[:M]
    return cutoff


@inner
def _threshold(lw, n):
    """A number that at least n log weights exceed, and as a rule at most n + n/8, by bisection.

    The largest log weight is 0.
    """
    total, square, low, high = 0.0, 0.0, 0.0, 0.0
    for s in range(lw.shape[0]):
        total += lw[s]
        square += lw[s] * lw[s]
        low = min(low, lw[s])
    mean, low = total / lw.shape[0], low - 1.0
    between = mean + 1.7 * math.sqrt(max(square / lw.shape[0] - mean * mean, 0.0))
    for _ in range(60):
        if not low < between < high:
            between = 0.5 * (low + high)
        count = 0
        for s in range(lw.shape[0]):
            count += lw[s] > between
        if count >= n:
            low = between
        else:
            high = between
        if n <= count <= n + n // 8:
            break
        between = 0.5 * (low + high)
    return low


@inner
def _fitted(x, grid):
    """(k, σ) of a generalised Pareto law for sorted excesses x, by Zhang and Stephens.

    k is -inf where all excesses are zero, and inf where the quartile is less than the share
    1/`LARGEST_RATIO` of the largest excess.
    """
    n, G = x.shape[0], grid.shape[1]
    b, mean_log, product = grid[0], grid[1], grid[2]
    quartile = x[int(0.25 * n + 0.5) - 1]
    if x[n - 1] <= 0.0:
        return -np.inf, 0.0
    if quartile < x[n - 1] / LARGEST_RATIO:
        return np.inf, 0.0
    for j in range(G):
        b[j] = 1.0 / x[n - 1] + (1.0 - math.sqrt(G / (j + 0.5))) / (3.0 * quartile)
    _mean_logs(x, b, mean_log, product)
    best = -np.inf
    for j in range(G):
        product[j] = n * (math.log(-b[j] / mean_log[j]) - mean_log[j] - 1.0)
        best = max(best, product[j])
    total, negligible = 0.0, 0.0
    for j in range(G):
        product[j] = math.exp(product[j] - best)
        total += product[j]
    posterior_b = 0.0
    for j in range(G):
        share = product[j] / total
        if share < 10.0 * 2.220446049250313e-16:
            share, negligible = 0.0, negligible + share
        posterior_b += share * b[j]
    b[0] = posterior_b / (1.0 - negligible)
    _mean_logs(x, b[:1], mean_log[:1], product[:1])
    k = mean_log[0]
    sigma = -k / b[0]
    return (n * k + PRIOR_ROWS * PRIOR_K) / (n + PRIOR_ROWS), sigma


@inner
def _mean_logs(x, b, out, product):
    """Fill ``out[j]`` with the mean of log(1 - b_j x), by logarithms of products of few factors."""
    n, G = x.shape[0], b.shape[0]
    out[:], product[:] = 0.0, 1.0
    for m in range(n):
        for j in range(G):
            product[j] *= 1.0 - b[j] * x[m]
        if (m + 1) % FACTORS == 0 or m == n - 1:
            for j in range(G):
                out[j] += math.log(product[j]) / n
            product[:] = 1.0
