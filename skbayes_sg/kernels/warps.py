"""Warped coordinates: φ_a = T_a(z_a) along a few axes, with cubic splines T_a, linear beyond.

The chain then moves in z, and a gradient in φ becomes one in z by
``∂U/∂z_a = T'_a ∂U/∂φ_a - T''_a/T'_a``; the last term is the derivative of -log T'. If no axis is
warped, the `warp` is None, and nothing in this file is compiled.
"""

import math
from typing import NamedTuple

import numpy as np

from .._base.jit import inner

__all__ = ["Warp", "warp_gradient", "warp_position", "warp_potential"]


class Warp(NamedTuple):
    """Splines of some axes, on uniform knots ``first + k spacing``. All arrays are read-only."""

    axes: np.ndarray  # (m,) int64
    first: np.ndarray  # (m,)
    spacing: np.ndarray  # (m,)
    coefficients: np.ndarray  # (m, n_cells, 4): constant, linear, quadratic, cubic


@inner
def _locate(warp, a, z):
    """(cell, distance from its left knot, distance beyond the first or last knot)."""
    n_cells = warp.coefficients.shape[1]
    s = (z - warp.first[a]) / warp.spacing[a]
    inside = min(max(s, 0.0), float(n_cells))
    cell = min(int(inside), n_cells - 1)
    return cell, (inside - cell) * warp.spacing[a], (s - inside) * warp.spacing[a]


@inner
def _value(warp, a, z):
    cell, x, beyond = _locate(warp, a, z)
    c = warp.coefficients[a, cell]
    slope = c[1] + x * (2.0 * c[2] + x * 3.0 * c[3])
    return c[0] + x * (c[1] + x * (c[2] + x * c[3])) + beyond * slope


@inner
def _slope_and_bend(warp, a, z):
    """T' and T''."""
    cell, x, beyond = _locate(warp, a, z)
    c = warp.coefficients[a, cell]
    bend = 2.0 * c[2] + 6.0 * x * c[3]
    return c[1] + x * (2.0 * c[2] + x * 3.0 * c[3]), bend if beyond == 0.0 else 0.0


@inner
def warp_position(warp, z, phi_out):
    """φ = T(z)."""
    for j in range(z.shape[0]):
        phi_out[j] = z[j]
    if warp is not None:
        for a in range(warp.axes.shape[0]):
            phi_out[warp.axes[a]] = _value(warp, a, z[warp.axes[a]])


@inner
def warp_gradient(warp, z, g_out):
    """Convert a gradient in φ to one in z, in place."""
    if warp is not None:
        for a in range(warp.axes.shape[0]):
            j = warp.axes[a]
            slope, bend = _slope_and_bend(warp, a, z[j])
            g_out[j] = slope * g_out[j] - bend / slope


@inner
def warp_potential(warp, z):
    """-log |det ∂φ/∂z|."""
    total = 0.0
    if warp is not None:
        for a in range(warp.axes.shape[0]):
            slope, _ = _slope_and_bend(warp, a, z[warp.axes[a]])
            total -= math.log(slope)
    return total
