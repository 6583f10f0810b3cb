"""Passes over the rows of a table with groups; the terms of the likelihood are those of the model.

The predictor of row i is x_i·β + b + o_i + u_l0 + Σ_j z_ij u_lj, with the effects u_l of its level,
z_i the columns whose slopes vary, and o_i the effects of the other factors. Columns are contiguous,
so that loops over rows are vectorised also where columns are few.
"""

from typing import Any, NamedTuple

import numpy as np

from .._base.jit import entry, inlined, inner, typed_once
from ..kernels.layout import BLOCK, FACT_WEIGHT

__all__ = ["SortedRows", "add_by_level", "gradient_pass", "losses_of_levels", "residual_pass"]


class SortedRows(NamedTuple):
    """The rows, sorted by the levels of a factor. All arrays are read-only."""

    X: np.ndarray  # (n_coefficients, n_rows), with a row of ones for an intercept
    facts: np.ndarray  # as in `Data`
    codes: np.ndarray  # (n_rows,) int64
    starts: np.ndarray  # (n_levels + 1,) int64: where the rows of a level begin
    Z: np.ndarray  # (n_rows, q - 1): the columns whose slopes vary
    numbers: np.ndarray  # (n_rows,) int64: 0, 1, 2, ..., the rows of `facts` that kernels look at


@typed_once
class GroupLikelihood(NamedTuple):
    """Kernels of a model, as first-class functions, and how many extras it has."""

    loss: Any
    derivative: Any
    n_extra: int


@inlined
def _effect(u, level, Z, i):
    """What the effects of a level add to the predictor of row i of Z."""
    total = u[level, 0]
    for j in range(Z.shape[1]):
        total += Z[i, j] * u[level, j + 1]
    return total


@inlined
def _add_residual(t, Z, i, level, out):
    """out[level] += t (1, z_i)."""
    out[level, 0] += t
    for j in range(Z.shape[1]):
        out[level, j + 1] += t * Z[i, j]


@inlined
def _linear_part(X, theta, start, stop, line_out):
    """x_i·β + b of the rows ``start:stop``."""
    line_out[:] = 0.0
    for j in range(X.shape[0]):
        x, slope = X[j, start:stop], theta[j]
        for k in range(x.shape[0]):
            line_out[k] += x[k] * slope


@inlined
def _set_extras(theta, n_extra, eta_out):
    """Set the predictors after the first to the extras of θ, which are the same for all rows."""
    for e in range(n_extra):
        for k in range(eta_out.shape[0]):
            eta_out[k, 1 + e] = theta[theta.shape[0] - n_extra + e]


@inlined
def _scatter(rows, n_extra, start, stop, terms, line_out, g_out):
    """g_out += ∂/∂θ of Σ w_i ℓ_i over some rows; line_out ← w_i ∂ℓ_i/∂η_i.

    `terms` has the derivatives of each ℓ_i in its predictors.
    """
    facts, d = rows.facts[start:stop], rows.X.shape[0]
    for k in range(facts.shape[0]):
        line_out[k] = facts[k, FACT_WEIGHT] * terms[k, 0]
    for j in range(d):
        x, total = rows.X[j, start:stop], 0.0
        for k in range(x.shape[0]):
            total += line_out[k] * x[k]
        g_out[j] += total
    for e in range(n_extra):
        for k in range(facts.shape[0]):
            g_out[d + e] += facts[k, FACT_WEIGHT] * terms[k, 1 + e]


@inner
def gradient_pass(rows, model, theta, u, offset, blocks, line, g_out, G_out):
    """Return Σ w_i ℓ_i over all rows; g_out and G_out += its derivatives in θ and in u."""
    total, eta, terms, n_extra = 0.0, blocks[0], blocks[1], model.n_extra
    _set_extras(theta, n_extra, eta)
    for start in range(0, rows.codes.shape[0], BLOCK):
        stop = min(start + BLOCK, rows.codes.shape[0])
        codes, Z, others = rows.codes[start:stop], rows.Z[start:stop], offset[start:stop]
        _linear_part(rows.X, theta, start, stop, line)
        for k in range(codes.shape[0]):
            eta[k, 0] = line[k] + others[k] + _effect(u, codes[k], Z, k)
        total += model.loss(rows.facts, rows.numbers, start, stop, eta)
        model.derivative(rows.facts, rows.numbers, start, stop, eta, terms)
        _scatter(rows, n_extra, start, stop, terms, line, g_out)
        for k in range(codes.shape[0]):
            _add_residual(line[k], Z, k, codes[k], G_out)
    return total


@inner
def losses_of_levels(rows, model, theta, u, proposed, offset, blocks, line, eta_out, losses_out):
    """losses_out[l] += Σ w_i ℓ_i over the rows of level l, at the effects u and at `proposed`.

    ``eta_out[i]`` is x_i·β + b + o_i.
    """
    eta, other = blocks[0], blocks[1]
    _set_extras(theta, model.n_extra, eta)
    _set_extras(theta, model.n_extra, other)
    for start in range(0, rows.codes.shape[0], BLOCK):
        stop = min(start + BLOCK, rows.codes.shape[0])
        codes, Z, own = rows.codes[start:stop], rows.Z[start:stop], eta_out[start:stop]
        others = offset[start:stop]
        _linear_part(rows.X, theta, start, stop, line)
        for k in range(codes.shape[0]):
            own[k] = line[k] + others[k]
            eta[k, 0] = own[k] + _effect(u, codes[k], Z, k)
            other[k, 0] = own[k] + _effect(proposed, codes[k], Z, k)
        first = start
        while first < stop:
            level = rows.codes[first]
            last = min(rows.starts[level + 1], stop)
            a, b = eta[first - start : last - start], other[first - start : last - start]
            losses_out[level, 0] += model.loss(rows.facts, rows.numbers, first, last, a)
            losses_out[level, 1] += model.loss(rows.facts, rows.numbers, first, last, b)
            first = last


@inner
def residual_pass(rows, model, theta, u, eta, blocks, line, g_out, residuals_out):
    """g_out += ∂/∂θ of Σ w_i ℓ_i at the effects u, residuals_out[i] = w_i ∂ℓ_i/∂η_i."""
    own, terms, n_extra = blocks[0], blocks[1], model.n_extra
    _set_extras(theta, n_extra, own)
    for start in range(0, rows.codes.shape[0], BLOCK):
        stop = min(start + BLOCK, rows.codes.shape[0])
        codes, Z, base = rows.codes[start:stop], rows.Z[start:stop], eta[start:stop]
        for k in range(codes.shape[0]):
            own[k, 0] = base[k] + _effect(u, codes[k], Z, k)
        model.derivative(rows.facts, rows.numbers, start, stop, own, terms)
        _scatter(rows, n_extra, start, stop, terms, line, g_out)
        for k in range(codes.shape[0]):
            residuals_out[start + k] = line[k]


@entry
def add_by_level(codes, Z, values, sums_out):
    """sums_out[l] += Σ of v_i (1, z_i) over the rows in level l."""
    for i in range(codes.shape[0]):
        _add_residual(values[i], Z, i, codes[i], sums_out)
