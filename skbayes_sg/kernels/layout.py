"""The data structures of kernels, named tuples of read-only arrays, and the types of the pieces.

A *row model* sees the parameters θ only through the predictors of a row,

    η_i = (x_i·B_1 + b_1, ..., x_i·B_K + b_K, extras),      θ = (B, b, extras),

so the gradient of its row term is Σ_k (∂ℓ_i/∂η_ik) (x_i, 1): a few scalars times the row itself.
Estimators of the gradient are rules for those scalars, the *terms*; they do not depend on how rows
are stored, nor on how many predictors a model has.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import typeof
from numba.core import types

from .._base.streams import child

__all__ = ["ANCHOR", "BLOCK", "CURVATURE", "DERIVATIVE", "EXTRA", "FACT_PREDICTOR", "FACT_WEIGHT"]
__all__ += ["FACT_Y", "GRADIENT_PHI", "GRADIENT_THETA", "LEFT", "LOSS", "NOISE", "NO_SLOPES"]
__all__ += ["OFFSET", "PERIOD", "PREDICTORS", "PRIOR_CURVATURE", "PRIOR_GRADIENT"]
__all__ += ["SECOND_NOISE", "SEEN", "SHIFTED"]
__all__ += ["TERM", "TERMS", "THETA", "TOTAL", "UPDATE", "Coordinates", "Data", "Estimator"]
__all__ += ["SUMS", "FullPieces", "GradientMemory", "Likelihood", "Pieces", "Problem", "Scratch"]
__all__ += [
    "Sparse",
    "Subsample",
    "Sums",
    "draw_type",
    "frozen",
    "gradient_type",
    "new_memory",
    "potential_type",
]

BLOCK = 256
"""Number of rows that kernels process together, so that rows and terms stay in the L1 cache.

Functions of other libraries have a larger one: see `skbayes_sg.models.Model.block`.
"""

# Columns of `Data.facts`, which keeps together in memory all numbers of a row besides x. From
# column FACT_PREDICTOR on there are K predictors at the centre and K terms at the centre, if these
# are known, and then further labels, if the model has them.
FACT_Y = 0
FACT_WEIGHT = 1
FACT_PREDICTOR = 2


class Sparse(NamedTuple):
    """Rows in CSR form."""

    values: np.ndarray  # float64 or float32, (n_stored,)
    columns: np.ndarray  # int32, (n_stored,)
    starts: np.ndarray  # int64, (n_rows + 1,)


class Data(NamedTuple):
    """The rows as kernels read them. All arrays are read-only."""

    X: Any  # (n_rows, n_features) float64 or float32, C order; or `Sparse`
    facts: np.ndarray  # (n_rows, 2 or more): the columns are listed above
    n_features: int
    n_linear: int  # predictors of the form x·B + b
    intercept: bool  # whether there is a b
    n_extra: int  # parameters that are themselves a predictor of every row (log σ, ...)


NO_SLOPES = np.empty((0, 0))
NO_SLOPES.flags.writeable = False


class Coordinates(NamedTuple):
    """The coordinates φ in which a chain moves, with θ = centre + S factor φ.

    S takes Σ_j slope_kj (B_kj - centre) from the intercept b_k: see `geometry.frame.sheared`.
    """

    centre: np.ndarray  # (n_parameters,)
    factor: np.ndarray  # (n_parameters, n_parameters), or (1, n_parameters) for a diagonal
    slopes: np.ndarray = NO_SLOPES  # (n_linear, n_features), or (0, 0) for S = I


class Problem(NamedTuple):
    """The posterior as a stochastic-gradient chain sees it.

    ``∇_φ U = offset + linear φ + factorᵀ (Σ_k c_k J_kᵀ t_k + ∇prior(θ) - ref(θ))``,
    where ref(θ) is the part of the prior's gradient that `linear` and the offset already contain.
    """

    data: Data
    prior: np.ndarray  # (n_parameters, 5): the columns are in `priors.columns`
    coordinates: Coordinates
    vectors: np.ndarray  # (3 or 4, n_parameters): the rows are listed below
    linear: np.ndarray  # (n_parameters, n_parameters), (1, n_parameters), or (0, 0) for zero


# Rows of `Problem.vectors`: the offset; gradient and curvature of the prior at the centre; and, for
# estimators that interpolate, the share of the exact part.
OFFSET, PRIOR_GRADIENT, PRIOR_CURVATURE, EXACT_SHARE = range(4)


class Subsample(NamedTuple):
    """State of a subsampling scheme for one chain."""

    n_rows: int
    batch_size: int
    least: int  # smallest number of rows of a step, if it varies
    most: int  # largest number of rows of a step
    reach: float  # squared distance from the centre at which a step uses batch_size rows
    chances: np.ndarray  # (n_rows, 2) alias table: threshold, coefficient; or (0, 2)
    alias: np.ndarray  # (n_rows,) int64; or (0,)
    order: np.ndarray  # (n_rows,) int64, changed by draws; or (0,)


class GradientMemory(NamedTuple):
    """The memory of an estimator of the gradient from step to step; each chain has its own."""

    table: np.ndarray  # (n_rows or 0, n_predictors) float32: the terms of each row
    batch: np.ndarray  # (most_rows, n_predictors): terms of the rows of a step
    rows: np.ndarray  # (n_rows,) int64, in any order, from which anchors are drawn; or (0,)
    coefficients: np.ndarray  # (most_rows or rows of an anchor,)
    vectors: np.ndarray  # (2, n_parameters): the rows are listed below
    counts: np.ndarray  # (3,) int64: the entries are listed below
    rng: Any  # the memory's own random stream


# Rows of `GradientMemory.vectors`: Σ weight_i J_iᵀ (remembered term); θ at the last refresh.
TOTAL, ANCHOR = range(2)
# Entries of `GradientMemory.counts`: number of rows in the table; steps until the next refresh;
# steps from one refresh to the next.
SEEN, LEFT, PERIOD = range(3)


def new_memory(setup, rng, *, n_table=0, n_anchor=0, period=0):
    """Return a blank `GradientMemory` for a chain; NaN in its table stands for unknown terms.

    Its table has `n_table` rows, an anchor uses `n_anchor` rows, and `period` steps lie between
    two refreshes; each is 0 for estimators without it.
    """
    N, most, K = setup.n_rows, setup.most_rows, setup.model.n_predictors
    table, batch = np.full((n_table, K), np.nan, dtype=np.float32), np.empty((most, K))
    rows = np.arange(N if n_anchor else 0)
    coefficients = np.full(n_anchor, N / n_anchor) if n_anchor else np.ones(most)
    vectors, counts = np.zeros((2, setup.n_parameters)), np.array([0, 0, period])
    return GradientMemory(table, batch, rows, coefficients, vectors, counts, child(rng))


class Scratch(NamedTuple):
    """Working memory of one chain, in few arrays: each adds a tenth of a second to compilation."""

    rows: np.ndarray  # (most_rows,) int64, or (n_rows,) for Metropolis-corrected chains
    coefficients: np.ndarray  # of the shape of `rows`
    blocks: np.ndarray  # (3, BLOCK, n_predictors): predictors, terms, and one for estimators
    vectors: np.ndarray  # (5, n_parameters): the rows are listed below
    memory: Any  # `GradientMemory`, or None


PREDICTORS, TERM, EXTRA = range(3)  # places in `Scratch.blocks`
THETA, GRADIENT_THETA, GRADIENT_PHI, NOISE, SECOND_NOISE = range(5)  # rows of `Scratch.vectors`


class Estimator(NamedTuple):
    """Kernels that compute the terms of rows, as first-class functions."""

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
    """Kernels of the likelihood of a model, as first-class functions."""

    loss: Any
    derivative: Any


class Sums(NamedTuple):
    """The kernel of a model that adds up the likelihood of all rows, as a first-class function."""

    sums: Any


class FullPieces(NamedTuple):
    """Kernels that meet in the loop of a Metropolis-corrected chain, as first-class functions."""

    model: Likelihood | Sums
    potential: Any


def frozen(array, dtype=np.float64):
    """Return the array as a C-contiguous, read-only, plain ndarray, without a copy if possible.

    Since all arrays are of this kind, kernels are compiled once.
    """
    out = np.ascontiguousarray(array, dtype=dtype).view(np.ndarray)
    if out.flags.writeable:
        out = out.view()
        out.flags.writeable = False
    return out


_f8, _i8 = types.float64, types.int64
_vector, _matrix = types.Array(_f8, 1, "C"), types.Array(_f8, 2, "C")
_indices = types.Array(_i8, 1, "C")
_frozen_indices = types.Array(_i8, 1, "C", readonly=True)
_parameters = types.Array(_f8, 1, "C", readonly=True)
_facts = types.Array(_f8, 2, "C", readonly=True)

# Signatures of the pieces. ``[start, stop)`` are positions in the list `rows`; arrays named
# ``*_out`` are written; row k of a (BLOCK, K) array belongs to ``rows[start + k]``.

LOSS = types.FunctionType(_f8(_facts, _indices, _i8, _i8, _matrix))
"""``loss(facts, rows, start, stop, eta)`` returns Σ weight_i ℓ_i(η_i) over the rows.

ℓ_i is the negative log-likelihood of row i, up to a constant.
"""

DERIVATIVE = types.FunctionType(types.void(_facts, _indices, _i8, _i8, _matrix, _matrix))
"""``derivative(facts, rows, start, stop, eta, terms_out)`` writes ∂ℓ_i/∂η_i, without weights."""

CURVATURE = types.FunctionType(types.void(_facts, _indices, _i8, _i8, _matrix, _matrix))
"""``curvature(facts, rows, start, stop, eta, u_out)`` replaces each u_i by (∂²ℓ_i/∂η_i²) u_i."""

SHIFTED = types.FunctionType(
    types.void(_facts, _frozen_indices, _vector, _parameters, _matrix, _matrix)
)
"""``add_shifted(facts, starts, eta, extras, shifts, losses_out)``.

It adds Σ weight_i ℓ_i(η_i + s_lk) over the rows ``starts[l]:starts[l + 1]`` of level l to
``losses_out[l, k]``, for each of its shifts s_lk. ``eta[i]`` belongs to row i, and may be
overwritten.
"""

SUMS = types.FunctionType(_f8(_facts, _vector, types.boolean, _vector))
"""``sums(facts, theta, valued, g_out)`` adds Σ weight_i ∇ℓ_i over all rows to g_out.

It returns Σ weight_i ℓ_i if `valued`, else 0.
"""

TERMS = types.FunctionType(
    types.void(_facts, DERIVATIVE, CURVATURE, _indices, _i8, _i8, _matrix, _matrix, _matrix)
)
"""``terms(facts, derivative, curvature, rows, start, stop, eta, extra_out, terms_out)``.

It writes the term of each row by which an estimator of the gradient multiplies the row's J_iᵀ.
"""

COUNT_CDF = types.FunctionType(_f8(_f8, _f8, _f8))
"""``count_cdf(k, mean, dispersion)`` returns P(Y <= k) of a count, for whole numbers k >= 0."""

UPDATE = types.FunctionType(types.void(_matrix, _vector, _vector, _f8, _parameters))
"""``update(state_out, gradient, noise, h, parameters)`` takes one step of a dynamics, in place."""


def draw_type(subsample):
    """Return the type of ``draw(rng, subsample, position, rows_out, coefficients_out) -> n``."""
    return types.FunctionType(_i8(types.npy_rng, typeof(subsample), _vector, _indices, _vector))


def gradient_type(problem, estimator, scratch):
    """Return the type of the gradient of a batch of rows.

    Its signature is
    ``gradient(problem, estimator, phi, rows, n, coefficients, scratch, g_out)``. All loops call
    it through a pointer, so that it is compiled once and not inside each loop.
    """
    own, batch = (typeof(problem), typeof(estimator)), (_indices, _i8, _vector)
    return types.FunctionType(types.void(*own, _vector, *batch, typeof(scratch), _vector))


def potential_type(problem, model, scratch):
    """Return the type of the potential of Metropolis-corrected chains.

    Its signature is
    ``potential(data, prior, coordinates, model, phi, scratch, valued, g_out) -> value``.
    """
    own = (problem.data, problem.prior, problem.coordinates, model)
    arguments = (*map(typeof, own), _vector, typeof(scratch), types.boolean, _vector)
    return types.FunctionType(_f8(*arguments))
