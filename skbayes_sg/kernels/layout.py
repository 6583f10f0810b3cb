"""What the kernels see: a few named tuples of read-only arrays, and the types of the pieces.

A *row model* sees the parameters θ only through the predictors of a row,

    η_i = (x_i·B_1 + b_1, ..., x_i·B_K + b_K, extras),      θ = (B, b, extras),

so the gradient of its row term is Σ_k (∂ℓ_i/∂η_ik) (x_i, 1): a handful of scalars a row times the
row itself. Estimators of the gradient are rules for those scalars (*terms*); how the rows are
stored, and how many predictors a model has, never concerns them.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import typeof
from numba.core import types

from .._base.streams import child

__all__ = [
    "ANCHOR",
    "BLOCK",
    "CURVATURE",
    "DERIVATIVE",
    "EXTRA",
    "FACT_PREDICTOR",
    "FACT_WEIGHT",
    "FACT_Y",
    "GRADIENT_THETA",
    "GRADIENT_Z",
    "LEFT",
    "LOSS",
    "NOISE",
    "OFFSET",
    "PERIOD",
    "PHI",
    "PREDICTORS",
    "PRIOR_CURVATURE",
    "PRIOR_GRADIENT",
    "SECOND_NOISE",
    "SEEN",
    "TERM",
    "TERMS",
    "THETA",
    "TOTAL",
    "UPDATE",
    "Coordinates",
    "Data",
    "Estimator",
    "FullPieces",
    "GradientMemory",
    "Likelihood",
    "Pieces",
    "Problem",
    "Scratch",
    "Sparse",
    "Subsample",
    "draw_type",
    "frozen",
    "gradient_type",
    "new_memory",
    "potential_type",
]

BLOCK = 256
"""Rows handled at once: their terms, and the rows themselves, stay in the first-level cache."""

# Columns of `Data.facts`, one line of memory for all that is known of a row beyond x:
FACT_Y = 0
FACT_WEIGHT = 1
FACT_PREDICTOR = 2  # K columns: predictors at the centre; then K columns: terms at the centre;
# then further labels, if a model has them; then, for tables, the row's group (-1: none).


class Sparse(NamedTuple):
    """Rows in CSR form."""

    values: np.ndarray  # float64 or float32, (n_stored,)
    columns: np.ndarray  # int32, (n_stored,)
    starts: np.ndarray  # int64, (n_rows + 1,)


class Data(NamedTuple):
    """The rows. All arrays are read-only."""

    X: Any  # (n_rows, n_features) float64 or float32, C order; or `Sparse`
    facts: np.ndarray  # (n_rows, 2 or more), columns as above
    n_features: int
    n_linear: int  # predictors of the form x·B + b
    intercept: bool  # whether there is a b
    n_extra: int  # parameters that are themselves a predictor of every row (log σ, ...)


class Coordinates(NamedTuple):
    """θ = centre + factor φ, φ = warp(z); the chain moves in z."""

    centre: np.ndarray  # (n_parameters,)
    factor: np.ndarray  # (n_parameters, n_parameters), or (1, n_parameters): diagonal
    warp: Any  # `Warp` of a few axes; None as a rule


class Problem(NamedTuple):
    """The posterior as a stochastic-gradient chain sees it.

    ``∇_φ U = offset + linear φ + tables(φ) + factorᵀ (Σ_k c_k J_kᵀ t_k + ∇prior(θ) - ref(θ))``,
    where ref, given by `reference`, is the part of the prior that `linear` contains already.
    """

    data: Data
    prior: np.ndarray  # (n_parameters, 5): kind, loc, scale, df, power
    coordinates: Coordinates
    vectors: np.ndarray  # (3, n_parameters), rows as below
    linear: np.ndarray  # (n_parameters, n_parameters), (1, n_parameters), or (0, 0): nothing
    tables: Any  # `Tables` of a few groups of rows; None as a rule


# Rows of `Problem.vectors`: the offset; gradient and curvature of the prior at the centre.
OFFSET, PRIOR_GRADIENT, PRIOR_CURVATURE = range(3)


class Subsample(NamedTuple):
    """State of a subsampling scheme."""

    n_rows: int
    batch_size: int
    least: int  # rows a step, where their number changes: at least, at most, and the squared
    most: int  # distance from the centre at which it is the batch size
    reach: float
    chances: np.ndarray  # (n_rows, 2) alias table: threshold, coefficient; or (0, 2)
    alias: np.ndarray  # (n_rows,) int64; or (0,)
    order: np.ndarray  # (n_rows,) int64, changed by draws; or (0,)


class GradientMemory(NamedTuple):
    """What an estimator of the gradient remembers from step to step; a chain's own."""

    table: np.ndarray  # (n_rows, n_predictors) float32: a term for each row; or (0, n_predictors)
    batch: np.ndarray  # (most_rows, n_predictors): terms of the rows of a step
    rows: np.ndarray  # (n_rows,) int64, in any order, of which anchors take some; or (0,)
    coefficients: np.ndarray  # (most_rows or rows of an anchor,)
    vectors: np.ndarray  # (2, n_parameters), rows as below
    counts: np.ndarray  # (3,) int64, entries as below
    rng: Any  # a stream of its own


TOTAL, ANCHOR = range(2)  # Σ weight_i J_iᵀ (remembered term); θ at the last refresh
SEEN, LEFT, PERIOD = range(3)  # rows in the table; steps to the next refresh, and between two


def new_memory(setup, rng, *, n_table=0, n_anchor=0, period=0):
    """A blank `GradientMemory` for a chain of a set-up, all of its table unknown."""
    N, most, K = setup.n_rows, setup.most_rows, setup.model.n_predictors
    return GradientMemory(
        table=np.full((n_table, K), np.nan, dtype=np.float32), batch=np.empty((most, K)),
        rows=np.arange(N if n_anchor else 0),
        coefficients=np.full(n_anchor, N / n_anchor) if n_anchor else np.ones(most),
        vectors=np.zeros((2, setup.n_parameters)), counts=np.array([0, 0, period]),
        rng=child(rng),
    )  # fmt: skip


class Scratch(NamedTuple):
    """Working memory of one chain, in few arrays: each costs a tenth of a second to compile."""

    rows: np.ndarray  # (batch_size,) int64
    coefficients: np.ndarray  # (batch_size,)
    blocks: np.ndarray  # (3, BLOCK, n_predictors): predictors, terms, and one for estimators
    bracket: np.ndarray  # (n_groups, 3): see `engine.tables`
    vectors: np.ndarray  # (6, n_parameters), rows as below
    memory: Any  # `GradientMemory`, or None


PREDICTORS, TERM, EXTRA = range(3)
THETA, PHI, GRADIENT_THETA, GRADIENT_Z, NOISE, SECOND_NOISE = range(6)


class Estimator(NamedTuple):
    """Kernels that make terms of rows, as first-class functions."""

    derivative: Any
    curvature: Any
    terms: Any


class Pieces(NamedTuple):
    """Kernels that meet in the loop of a stochastic-gradient chain, as first-class functions."""

    estimator: Estimator
    gradient: Any
    draw: Any
    update: Any


class Likelihood(NamedTuple):
    """Kernels of a model, as first-class functions."""

    loss: Any
    derivative: Any


class FullPieces(NamedTuple):
    """Kernels that meet in the loop of a Metropolis-corrected chain."""

    model: Likelihood
    potential: Any


def frozen(array, dtype=np.float64):
    """A C-contiguous read-only view of plain ndarray type: one specialisation of every kernel."""
    out = np.ascontiguousarray(array, dtype=dtype).view(np.ndarray)
    if out.flags.writeable:
        out = out.view()
        out.flags.writeable = False
    return out


_f8, _i8 = types.float64, types.int64
_vector, _matrix = types.Array(_f8, 1, "C"), types.Array(_f8, 2, "C")
_indices = types.Array(_i8, 1, "C")
_parameters = types.Array(_f8, 1, "C", readonly=True)
_facts = types.Array(_f8, 2, "C", readonly=True)

# Signatures of the pieces. ``[start, stop)`` are positions in the list `rows`; arrays named
# ``*_out`` are written; row k of a (BLOCK, K) array belongs to ``rows[start + k]``.

LOSS = types.FunctionType(_f8(_facts, _indices, _i8, _i8, _matrix))
"""``loss(facts, rows, start, stop, eta) -> Σ weight_i ℓ_i(η_i)``"""

DERIVATIVE = types.FunctionType(types.void(_facts, _indices, _i8, _i8, _matrix, _matrix))
"""``derivative(facts, rows, start, stop, eta, terms_out)``: ∂ℓ_i/∂η"""

CURVATURE = types.FunctionType(types.void(_facts, _indices, _i8, _i8, _matrix, _matrix))
"""``curvature(facts, rows, start, stop, eta, u_out)``: u ← (∂²ℓ_i/∂η²) u"""

TERMS = types.FunctionType(
    types.void(
        _facts, DERIVATIVE, CURVATURE, _indices, _i8, _i8, _matrix, _matrix, _matrix, _matrix
    )
)
"""``terms(facts, derivative, curvature, rows, start, stop, bracket, eta, extra_out, terms_out)``"""

UPDATE = types.FunctionType(types.void(_matrix, _vector, _vector, _f8, _parameters))
"""``update(state_out, gradient, noise, h, parameters)``"""


def draw_type(subsample):
    """``draw(rng, subsample, position, rows_out, coefficients_out) -> n``"""
    return types.FunctionType(_i8(types.npy_rng, typeof(subsample), _vector, _indices, _vector))


def gradient_type(problem, estimator, scratch):
    """``gradient(problem, estimator, z, rows, n, coefficients, scratch, g_out)``

    Called through a pointer by all loops, so that it is compiled once and not inside each of them.
    """
    return types.FunctionType(
        types.void(
            typeof(problem), typeof(estimator), _vector, _indices, _i8, _vector, typeof(scratch),
            _vector,
        )
    )  # fmt: skip


def potential_type(problem, model, scratch):
    """``potential(data, prior, coordinates, model, z, scratch, valued, g_out) -> value``"""
    return types.FunctionType(
        _f8(
            typeof(problem.data), typeof(problem.prior), typeof(problem.coordinates),
            typeof(model), _vector, typeof(scratch), types.boolean, _vector,
        )
    )  # fmt: skip
