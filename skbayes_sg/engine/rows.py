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


def _dot_dense(X, i, theta, first):
    x, part = X[i], theta[first : first + X.shape[1]]
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * part[j]
    return total


def _dot_sparse(X, i, theta, first):
    total = 0.0
    for k in range(X.starts[i], X.starts[i + 1]):
        total += X.values[k] * theta[first + X.columns[k]]
    return total


def _add_dense(X, i, scale, g_out, first):
    x, part = X[i], g_out[first : first + X.shape[1]]
    for j in range(x.shape[0]):
        part[j] += scale * x[j]


def _add_sparse(X, i, scale, g_out, first):
    for k in range(X.starts[i], X.starts[i + 1]):
        g_out[first + X.columns[k]] += scale * X.values[k]


def _dot(X, i, theta, first):
    """x_i · theta[first : first + n_features]"""
    return (_dot_sparse if isinstance(X, Sparse) else _dot_dense)(X, i, theta, first)


def _add(X, i, scale, g_out, first):
    """g_out[first : first + n_features] += scale x_i"""
    (_add_sparse if isinstance(X, Sparse) else _add_dense)(X, i, scale, g_out, first)


@overload(_dot)
def _overload_dot(X, i, theta, first):
    return _dot_sparse if isinstance(X, types.BaseNamedTuple) else _dot_dense


@overload(_add)
def _overload_add(X, i, scale, g_out, first):
    return _add_sparse if isinstance(X, types.BaseNamedTuple) else _add_dense


@inner
def predictors(data, theta, rows, start, stop, eta_out):
    """η of the rows ``rows[start:stop]`` into ``eta_out[: stop - start]``."""
    X, n_linear, n_extra = data.X, data.n_linear, data.n_extra  # hoisted: tuples count references
    d, intercepts = data.n_features, data.n_linear * data.n_features
    for k in range(start, stop):
        for c in range(n_linear):
            eta_out[k - start, c] = _dot(X, rows[k], theta, c * d)
        if data.intercept:
            for c in range(n_linear):
                eta_out[k - start, c] += theta[intercepts + c]
        for e in range(n_extra):
            eta_out[k - start, n_linear + e] = theta[theta.shape[0] - n_extra + e]


@inner
def scatter(data, rows, start, stop, coefficients, terms, g_out):
    """g_out += Σ_k coefficient_k weight_k Σ_c terms_kc ∂η_c/∂θ."""
    X, facts, n_linear, n_extra = data.X, data.facts, data.n_linear, data.n_extra
    d, intercepts = data.n_features, data.n_linear * data.n_features
    for k in range(start, stop):
        scale = coefficients[k] * facts[rows[k], FACT_WEIGHT]
        for c in range(n_linear):
            _add(X, rows[k], scale * terms[k - start, c], g_out, c * d)
        if data.intercept:
            for c in range(n_linear):
                g_out[intercepts + c] += scale * terms[k - start, c]
        for e in range(n_extra):
            g_out[g_out.shape[0] - n_extra + e] += scale * terms[k - start, n_linear + e]
