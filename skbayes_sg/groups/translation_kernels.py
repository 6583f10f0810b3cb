"""Kernels of `translations`: the law of the scales of two factors with all δ integrated out."""

import math
from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inner
from ..priors.table import prior_value
from .covariance import correlation_potential, set_covariance

__all__ = ["Side", "shifted_log_density", "walk_scales"]


class Side(NamedTuple):
    """Sufficient statistics of the effects of one factor: sums over its levels."""

    n_levels: int
    squares: np.ndarray  # (q, q): Σ u uᵀ over all levels
    totals: np.ndarray  # (n_components, q): Σ u over the levels of each component
    sizes: np.ndarray  # (n_components,): the number of levels of each component
    effect: int  # which of the q effects of a level is moved
    sign: float  # 1 if δ is added to the effects, -1 if it is taken from them
    prior: np.ndarray  # (q, 5): prior-table rows of the standard deviations


@inner
def _add_side(side, psi, unit, precision_out, pull_out):
    """Add the terms of one factor to P and P m of each component; return its others in log p."""
    q, e = side.squares.shape[0], side.effect
    C, omega = np.empty((q, q)), np.empty((q, q))
    set_covariance(psi, C, omega)
    value = -prior_value(side.prior, psi[:q] + unit) - correlation_potential(psi, q)
    for i in range(q):
        value -= side.n_levels * math.log(C[i, i])
        for j in range(q):
            value -= 0.5 * omega[i, j] * side.squares[i, j]
        for c in range(pull_out.shape[0]):
            pull_out[c] -= side.sign * omega[e, i] * side.totals[c, i]
    for c in range(pull_out.shape[0]):
        precision_out[c] += side.sizes[c] * omega[e, e]
    return value


@entry
def shifted_log_density(first, second, psi, other, unit, precision_out, pull_out):
    """log p(ψ_k, ψ_l | all but δ), up to a constant; `unit` is added to log standard deviations.

    precision_out ← P, pull_out ← P m of each component.
    """
    precision_out[:], pull_out[:] = 0.0, 0.0
    value = _add_side(first, psi, unit, precision_out, pull_out)
    value += _add_side(second, other, unit, precision_out, pull_out)
    for c in range(pull_out.shape[0]):
        if first.sizes[c] * second.sizes[c] > 0:
            P = precision_out[c]
            value += 0.5 * (pull_out[c] * pull_out[c] / P - math.log(P))
    return value


@entry
def walk_scales(first, second, psi, other, unit, n_sides, widths, normals, log_uniforms):
    """Make Metropolis steps of ψ_k and ψ_l in turn, with δ integrated out.

    `widths` are in units of (2 L)^-½ for L levels. If `n_sides` is 1, only ψ_k moves.
    """
    P, Pm = np.empty(first.sizes.shape[0]), np.empty(first.sizes.shape[0])
    value = shifted_log_density(first, second, psi, other, unit, P, Pm)
    for step in range(widths.shape[0]):
        side, own = (first, psi) if step % n_sides == 0 else (second, other)
        before, width = own.copy(), widths[step] / math.sqrt(2.0 * side.n_levels)
        for i in range(own.shape[0]):
            own[i] += width * normals[step, i]
        proposed = shifted_log_density(first, second, psi, other, unit, P, Pm)
        if log_uniforms[step] < proposed - value:
            value = proposed
        else:
            for i in range(own.shape[0]):
                own[i] = before[i]
