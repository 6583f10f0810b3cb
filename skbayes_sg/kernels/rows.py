"""The two basic operations on rows, for dense and for sparse rows.

`predictors` reads rows (η_i = x_i·B + b), `scatter` adds them up (g += Σ c_i t_i x_i). They are
loops over scalars because LLVM compiles these to better code than ``X[i] @ theta``, and over slices
that begin at 0 because LLVM does not vectorise an index that it cannot prove non-negative. Dense
rows are processed four at a time: they are
fetched from memory together, no sum waits for another, and g is read and written once for all four.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .._base.jit import inner, overload
from .layout import FACT_WEIGHT, Sparse

__all__ = ["fetch", "predictors", "scatter"]

AHEAD = 32  # number of rows at the start of a batch that are prefetched
LINE = 64  # size of a cache line in bytes


def _predict_dense(X, rows, start, stop, part, b, c, eta_out):
    grouped = stop - (stop - start) % 4
    for k in range(start, grouped, 4):
        x0, x1, x2, x3 = X[rows[k]], X[rows[k + 1]], X[rows[k + 2]], X[rows[k + 3]]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(part.shape[0]):
            s0 += x0[j] * part[j]
            s1 += x1[j] * part[j]
            s2 += x2[j] * part[j]
            s3 += x3[j] * part[j]
        eta_out[k - start, c], eta_out[k + 1 - start, c] = s0 + b, s1 + b
        eta_out[k + 2 - start, c], eta_out[k + 3 - start, c] = s2 + b, s3 + b
    for k in range(grouped, stop):
        x, s = X[rows[k]], 0.0
        for j in range(part.shape[0]):
            s += x[j] * part[j]
        eta_out[k - start, c] = s + b


def _predict_sparse(X, rows, start, stop, part, b, c, eta_out):
    for k in range(start, stop):
        i, s = rows[k], 0.0
        for m in range(X.starts[i], X.starts[i + 1]):
            s += X.values[m] * part[X.columns[m]]
        eta_out[k - start, c] = s + b


def _add_dense(X, rows, start, stop, scales, c, part_out):
    grouped = stop - (stop - start) % 4
    for k in range(start, grouped, 4):
        x0, x1, x2, x3 = X[rows[k]], X[rows[k + 1]], X[rows[k + 2]], X[rows[k + 3]]
        s0, s1 = scales[k - start, c], scales[k + 1 - start, c]
        s2, s3 = scales[k + 2 - start, c], scales[k + 3 - start, c]
        for j in range(part_out.shape[0]):
            part_out[j] += (s0 * x0[j] + s1 * x1[j]) + (s2 * x2[j] + s3 * x3[j])
    for k in range(grouped, stop):
        x, s = X[rows[k]], scales[k - start, c]
        for j in range(part_out.shape[0]):
            part_out[j] += s * x[j]


def _add_sparse(X, rows, start, stop, scales, c, part_out):
    for k in range(start, stop):
        i = rows[k]
        for m in range(X.starts[i], X.starts[i + 1]):
            part_out[X.columns[m]] += scales[k - start, c] * X.values[m]


def _predict(X, rows, start, stop, part, b, c, eta_out):
    """Write x_i · part + b for the rows ``rows[start:stop]`` to column c of eta_out."""
    kernel = _predict_sparse if isinstance(X, Sparse) else _predict_dense
    kernel(X, rows, start, stop, part, b, c, eta_out)


def _add(X, rows, start, stop, scales, c, part_out):
    """Add Σ_i scale_ic x_i over the rows ``rows[start:stop]`` to part_out."""
    kernel = _add_sparse if isinstance(X, Sparse) else _add_dense
    kernel(X, rows, start, stop, scales, c, part_out)


@overload(_predict)
def _overload_predict(X, rows, start, stop, part, b, c, eta_out):
    return _predict_sparse if isinstance(X, types.BaseNamedTuple) else _predict_dense


@overload(_add)
def _overload_add(X, rows, start, stop, scales, c, part_out):
    return _add_sparse if isinstance(X, types.BaseNamedTuple) else _add_dense


@intrinsic
def _prefetch(typing_context, array, i, j):
    def codegen(context, builder, signature, arguments):
        kind, pointer, number = signature.args[0], ir.IntType(8).as_pointer(), ir.IntType(32)
        own = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, own, arguments[1:])
        call = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], call)
        to_read, near, data = number(0), number(3), number(1)
        builder.call(function, [builder.bitcast(place, pointer), to_read, near, data])
        return context.get_dummy_value()

    return types.void(array, i, j), codegen


def _fetch_row(X, i):
    """Prefetch row i of X; in plain Python, do nothing."""


@overload(_fetch_row)
def _overload_fetch_row(X, i):
    if isinstance(X, types.BaseNamedTuple):
        return lambda X, i: None
    step = LINE // (X.dtype.bitwidth // 8)

    def fetch_row(X, i):
        for j in range(0, X.shape[1], step):
            _prefetch(X, i, j)

    return fetch_row


@inner
def fetch(data, rows, n):
    """Prefetch the first rows of a batch, so that they arrive during other computations."""
    for k in range(min(n, AHEAD)):
        _fetch_row(data.X, rows[k])
        _fetch_row(data.facts, rows[k])


@inner
def predictors(data, theta, rows, start, stop, eta_out):
    """Write the predictors η of the rows ``rows[start:stop]`` to ``eta_out[: stop - start]``."""
    X, d, n_linear, n_extra = data.X, data.n_features, data.n_linear, data.n_extra
    if n_linear == 0:  # a model without linear predictors: every row's predictors are θ itself
        for k in range(stop - start):
            for e in range(n_extra):
                eta_out[k, e] = theta[e]
        return
    for c in range(n_linear):
        b = theta[n_linear * d + c] if data.intercept else 0.0
        _predict(X, rows, start, stop, theta[c * d : (c + 1) * d], b, c, eta_out)
    for e in range(n_extra):
        for k in range(stop - start):
            eta_out[k, n_linear + e] = theta[theta.shape[0] - n_extra + e]


@inner
def scatter(data, rows, start, stop, coefficients, terms, g_out):
    """Add Σ_k coefficient_k weight_k Σ_c terms_kc ∂η_c/∂θ to g_out; scale `terms` in place."""
    X, facts, d, n_linear = data.X, data.facts, data.n_features, data.n_linear
    for k in range(start, stop):
        scale = coefficients[k] * facts[rows[k], FACT_WEIGHT]
        for c in range(terms.shape[1]):
            terms[k - start, c] *= scale
    if n_linear == 0:
        for k in range(stop - start):
            for e in range(data.n_extra):
                g_out[e] += terms[k, e]
        return
    for c in range(n_linear):
        _add(X, rows, start, stop, terms, c, g_out[c * d : (c + 1) * d])
        if data.intercept:
            for k in range(stop - start):
                g_out[n_linear * d + c] += terms[k, c]
    for e in range(data.n_extra):
        for k in range(stop - start):
            g_out[g_out.shape[0] - data.n_extra + e] += terms[k, n_linear + e]
