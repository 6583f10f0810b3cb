"""Kernels of `collapsed`: effects of a place x = (θ, ψ), and the potential there."""

import math
from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inlined, inner
from ..kernels.layout import BLOCK
from ..priors.table import prior_gradient, prior_value
from .algebra import place_effects, pull_back, white_effects
from .covariance import add_gradient, negative_log_prior, set_covariance
from .kernels import gradient_pass

__all__ = ["UNKNOWN", "FactorLaw", "FactorPlace", "new_place", "placed", "potential", "whitened"]

UNKNOWN = math.nan  # a loss that has not been computed


class FactorLaw(NamedTuple):
    """The law of a factor given the effects of the others. All arrays are read-only."""

    H: np.ndarray  # (n_levels, q, q)
    S: np.ndarray  # (n_levels, q, n_coefficients)
    t: np.ndarray  # (n_levels, q)
    offset: np.ndarray  # (n_rows,): o_i, in the order of the factor
    prior: np.ndarray  # the table of the priors of θ
    scales: np.ndarray  # q rows of a table: the priors of the standard deviations


class FactorPlace(NamedTuple):
    """Quantities computed at a place x = (θ, ψ), and scratch arrays."""

    C: np.ndarray  # (q, q)
    omega: np.ndarray
    M: np.ndarray  # dU = Σ_ij M_ij dΩ_ij
    m: np.ndarray  # (n_levels, q)
    u: np.ndarray
    G: np.ndarray  # derivatives of Σ w_i ℓ_i in u
    g: np.ndarray  # (dimension,): those of Σ w_i ℓ_i in θ at first, and then of U in x
    squares: np.ndarray  # (3, q, q): scratch of `algebra`
    blocks: np.ndarray  # (2, BLOCK, n_predictors)
    line: np.ndarray  # (BLOCK,)


def new_place(shape, dimension, n_predictors):
    """A `FactorPlace` of arrays that are not yet set, for effects of shape (n_levels, q)."""
    q = shape[1]
    arrays = *np.empty((3, q, q)), *np.empty((3, *shape)), np.empty(dimension), np.empty((3, q, q))
    return FactorPlace(*arrays, np.empty((2, BLOCK, n_predictors)), np.empty(BLOCK))


@inlined
def whitened(factor, x, u, at, zeta_out):
    """zeta_out ← the ζ of effects u at x."""
    D, n = factor.prior.shape[0], factor.S.shape[2]
    set_covariance(x[D:], at.C, at.omega)
    white_effects(factor.H, factor.S, factor.t, at.omega, x[:n], u, at.squares, zeta_out)


@entry
def placed(factor, x, zeta, at):
    """Set C, Ω, m and u in `at` for x and ζ; return ½ Σ log |P_l|."""
    D, n = factor.prior.shape[0], factor.S.shape[2]
    set_covariance(x[D:], at.C, at.omega)
    return place_effects(
        factor.H, factor.S, factor.t, at.omega, x[:n], zeta, at.squares, at.m, at.u
    )


@inlined
def _add_law_of_effects(at):
    """Return ½ Σ uᵀ Ω u - ½ L log |Ω|; at.M += the derivative -½ L Σ of the second term in Ω."""
    total, L = 0.0, at.u.shape[0]
    for i in range(at.C.shape[0]):
        total += L * math.log(at.C[i, i])
        for j in range(at.C.shape[0]):
            square, variance = 0.0, 0.0
            for level in range(L):
                square += at.u[level, i] * at.u[level, j]
            for k in range(min(i, j) + 1):
                variance += at.C[i, k] * at.C[j, k]
            total += 0.5 * at.omega[i, j] * square
            at.M[i, j] -= 0.5 * L * variance
    return total


@inner
def potential(factor, rows, model, x, zeta, known, at):
    """Return U at x given ζ; at.g ← its gradient in x.

    `known` is Σ w_i ℓ_i at x, with its derivatives in at.g and at.G, or `UNKNOWN`.
    """
    D, n = factor.prior.shape[0], factor.S.shape[2]
    value = placed(factor, x, zeta, at)
    if math.isnan(known):
        at.g[:D], at.G[:] = 0.0, 0.0
        known = gradient_pass(
            rows, model, x[:D], at.u, factor.offset, at.blocks, at.line, at.g[:D], at.G
        )
    at.g[D:], at.M[:] = 0.0, 0.0
    pull_back(factor.H, factor.S, at.omega, at.m, at.u, zeta, at.G, at.squares, at.g[:n], at.M)
    value += known + _add_law_of_effects(at)
    prior_gradient(factor.prior, x[:D], at.g[:D])
    add_gradient(x[D:], at.C, at.omega, at.M, factor.scales, at.g[D:])
    return value + prior_value(factor.prior, x[:D]) + negative_log_prior(x[D:], factor.scales)
