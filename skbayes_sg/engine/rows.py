"""The two operations on rows that everything is made of, for each way of storing them.

`predictors` reads rows (η_i = x_i·B + b), `scatter` adds them up (g += Σ c_i t_i x_i). Written as
loops over scalars because LLVM makes better code of that than of ``X[i] @ theta``, and over slices
that begin at 0 because an index it cannot prove non-negative is not vectorised: 6 ns a row of 55
columns in cache, against 25.
"""

from numba.core import types

from .._jit import inner, overload
from .layout import FACT_WEIGHT, Sparse

__all__ = ["predictors", "scatter"]


def _dot_dense(X, i, part):
    x, total = X[i], 0.0
    for j in range(x.shape[0]):
        total += x[j] * part[j]
    return total


def _dot_sparse(X, i, part):
    total = 0.0
    for k in range(X.starts[i], X.starts[i + 1]):
        total += X.values[k] * part[X.columns[k]]
    return total


def _add_dense(X, i, scale, part_out):
    x = X[i]
    for j in range(x.shape[0]):
        part_out[j] += scale * x[j]


def _add_sparse(X, i, scale, part_out):
    for k in range(X.starts[i], X.starts[i + 1]):
        part_out[X.columns[k]] += scale * X.values[k]


def _dot(X, i, part):
    """x_i · part"""
    return (_dot_sparse if isinstance(X, Sparse) else _dot_dense)(X, i, part)


def _add(X, i, scale, part_out):
    """part_out += scale x_i"""
    (_add_sparse if isinstance(X, Sparse) else _add_dense)(X, i, scale, part_out)


@overload(_dot)
def _overload_dot(X, i, part):
    return _dot_sparse if isinstance(X, types.BaseNamedTuple) else _dot_dense


@overload(_add, inline="always")  # LLVM does not: 4 ns a row
def _overload_add(X, i, scale, part_out):
    return _add_sparse if isinstance(X, types.BaseNamedTuple) else _add_dense


@inner
def predictors(data, theta, rows, start, stop, eta_out):
    """η of the rows ``rows[start:stop]`` into ``eta_out[: stop - start]``."""
    X, d, n_linear, n_extra = data.X, data.n_features, data.n_linear, data.n_extra
    for c in range(n_linear):
        part = theta[c * d : (c + 1) * d]
        b = theta[n_linear * d + c] if data.intercept else 0.0
        for k in range(start, stop):
            eta_out[k - start, c] = _dot(X, rows[k], part) + b
    for e in range(n_extra):
        for k in range(start, stop):
            eta_out[k - start, n_linear + e] = theta[theta.shape[0] - n_extra + e]


@inner
def scatter(data, rows, start, stop, coefficients, terms, g_out):
    """g_out += Σ_k coefficient_k weight_k Σ_c terms_kc ∂η_c/∂θ."""
    X, facts, d, n_linear = data.X, data.facts, data.n_features, data.n_linear
    for c in range(n_linear):
        part, total = g_out[c * d : (c + 1) * d], 0.0
        for k in range(start, stop):
            scale = coefficients[k] * facts[rows[k], FACT_WEIGHT] * terms[k - start, c]
            total += scale
            _add(X, rows[k], scale, part)
        if data.intercept:
            g_out[n_linear * d + c] += total
    for e in range(data.n_extra):
        total = 0.0
        for k in range(start, stop):
            total += coefficients[k] * facts[rows[k], FACT_WEIGHT] * terms[k - start, n_linear + e]
        g_out[g_out.shape[0] - data.n_extra + e] += total
