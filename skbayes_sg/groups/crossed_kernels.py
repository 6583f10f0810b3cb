"""Kernels of `linear_crossed`: the law of (log τ_k, log σ), and random walks in it."""

import math
from typing import NamedTuple

import numpy as np

from .._base.jit import entry
from ..kernels.copies import copy
from ..priors.table import prior_value
from .algebra import triangular

__all__ = ["FactorSums", "crossed_log_density", "random_walks"]


class FactorSums(NamedTuple):
    """Sufficient statistics of the rows for a visit to factor k; see `linear_crossed`."""

    n: np.ndarray  # (n_levels,): total weights
    x: np.ndarray  # (n_levels, D): means of the columns
    y: np.ndarray  # (n_levels,): means of the response less the other effects
    inner: np.ndarray  # (D, D): moments of columns less the mean of their level
    cross: np.ndarray  # (D,): moments of these columns with the response
    square: float  # weighted sum of squares of the response less the mean of its level
    precision: np.ndarray  # Λ
    drift: np.ndarray  # r
    total: float  # W, the sum of all weights


@entry
def crossed_log_density(sums, priors, unit, place, A_out, v_out):
    """log p(log τ_k, log σ | y, other effects), up to a constant.

    A_out ← the lower triangular factor L of Q, v_out ← L⁻¹v. `priors` has the rows of τ and, if it
    is not known, of σ: they are priors in the units of the rows, where the logarithms are those in
    `place` plus `unit`.
    """
    A, v = A_out, v_out
    log_tau, log_sigma, D = place[0], place[1], len(v)
    s2, ratio = math.exp(2.0 * log_sigma), math.exp(2.0 * (log_tau - log_sigma))
    A[:], v[:], c, log_growth = 0.0, 0.0, sums.square, 0.0
    for level in range(len(sums.n)):
        n, y = sums.n[level], sums.y[level]
        share = n / (1.0 + n * ratio)
        log_growth += math.log1p(n * ratio)
        c += share * y * y
        for i in range(D):
            x = share * sums.x[level, i]
            v[i] += x * y
            for j in range(i + 1):
                A[i, j] += x * sums.x[level, j]
    for i in range(D):
        v[i] = (v[i] + sums.cross[i]) / s2 + sums.drift[i]
        for j in range(i + 1):
            A[i, j] = (A[i, j] + sums.inner[i, j]) / s2 + sums.precision[i, j]
    value = -sums.total * log_sigma - 0.5 * (log_growth + c / s2) - triangular(A)
    for i in range(D):
        for k in range(i):
            v[i] -= A[i, k] * v[k]
        v[i] /= A[i, i]
        value += 0.5 * v[i] * v[i]
    return value - prior_value(priors, place[: len(priors)] + unit)


@entry
def random_walks(sums, priors, unit, root, place, normals, log_uniforms):
    """Make Metropolis steps of `place` by `root` times normals; return how many were accepted."""
    D, taken, new = len(sums.drift), 0, place.copy()
    A, v = np.empty((D, D)), np.empty(D)
    before = crossed_log_density(sums, priors, unit, place, A, v)
    for step in range(len(log_uniforms)):
        for i in range(len(root)):
            new[i] = place[i]
            for j in range(i + 1):
                new[i] += root[i, j] * normals[step, j]
        after = crossed_log_density(sums, priors, unit, new, A, v)
        if log_uniforms[step] < after - before:
            before, taken = after, taken + 1
            copy(new, place)
    return taken
