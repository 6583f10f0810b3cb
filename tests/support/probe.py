"""The kernels of the engine as pure functions: the only file of the tests that can call them.

A `Probe` is one combination of pieces in one frame. Its methods take all their randomness as
arguments and leave their arguments as they were, except for a `memory`: what an estimator of the
gradient remembers from step to step is changed where it is given. Without one, such an estimator
remembers the centre, every time anew.
"""

import copy
import dataclasses
from functools import cached_property
from types import FunctionType, SimpleNamespace

import numpy as np
from scipy import sparse

from skbayes_sg._base import streams
from skbayes_sg._base.jit import jit, pointer
from skbayes_sg.dynamics import SGLD
from skbayes_sg.engine import chain, metropolis, run
from skbayes_sg.engine.target import Target
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import Centre
from skbayes_sg.gradients import Full
from skbayes_sg.kernels.layout import ANCHOR, LEFT, SEEN, TOTAL, UPDATE, draw_type, frozen
from skbayes_sg.priors import Laplace
from skbayes_sg.priors.columns import LOC, SHAPE
from skbayes_sg.priors.families import of_family
from skbayes_sg.schedules import Constant
from skbayes_sg.subsampling import AllRows, Uniform

# -- kernels that only kernels call, made to be called from here ----------------------------------


@jit
def _gradient(problem, pieces, z, rows, n, coefficients, scratch, g_out):
    pieces.gradient(problem, pieces.estimator, z, rows, n, coefficients, scratch, g_out)


@jit
def _step(problem, pieces, state, rows, n, coefficients, noise, h, parameters, scratch):
    chain.step(problem, pieces, state, rows, n, coefficients, noise, h, parameters, scratch)


@jit
def _update(update, state, gradient, noise, h, parameters):
    update(state, gradient, noise, h, parameters)


@jit
def _potential(problem, pieces, z, scratch, valued, g_out):
    return pieces.potential(
        problem.data, problem.prior, problem.coordinates, pieces.model, z, scratch, valued, g_out
    )


@jit
def _leapfrog(problem, pieces, state, epsilon, scratch, valued):
    return metropolis._leapfrog(
        problem.data, problem.prior, problem.coordinates, pieces, state, epsilon, scratch, valued
    )


@jit
def _accept(state, record, proposed, rng):
    return metropolis._accept(state, record, proposed, rng)


# -- targets and frames ---------------------------------------------------------------------------


def stored(X, storage):
    """X as float64, as float32, or as CSR."""
    return sparse.csr_matrix(X) if storage == "csr" else np.ascontiguousarray(X, dtype=storage)


def prior_table(model, n_features, intercept, prior, intercept_prior):
    """One row a parameter: coefficients, intercepts, extras."""
    tables = [prior._table((model.n_linear, n_features))]
    if intercept:
        tables.append(intercept_prior._table((model.n_linear,)))
    tables.append(intercept_prior._table((model.n_extra,)))
    return np.concatenate(tables)


def make_target(model, X, y, weight, prior, *, intercept=True, storage="float64", n_jobs=None):
    """The posterior of a model; `prior` is a table, see `prior_table`."""
    return Target(stored(X, storage), y, weight, model, prior, intercept=intercept, n_jobs=n_jobs)


def centre_at(target, theta, *, dense=True):
    """A centre at any point; Laplace priors are smoothed over one of their scales."""
    prior = target.prior.copy()
    prior[of_family(prior, Laplace), SHAPE] = 1.0
    theta = np.array(theta, dtype=np.float64)
    return Centre(theta, *target.expansion(theta, dense=dense), frozen(prior), np.nan)


def frame_at(target, theta, kind="none", *, dense=True):
    """Coordinates around any point."""
    return build_frame(target, centre_at(target, theta, dense=dense), kind)


def prior_location(target):
    """The point where each parameter's prior is centred."""
    return target.prior[:, LOC].copy()


# -- one combination of pieces --------------------------------------------------------------------


class Probe:
    """Gradient, subsampling and dynamics in a frame."""

    def __init__(
        self, frame, gradient=None, subsampling=None, dynamics=None, batch_size=None, chances=None
    ):  # fmt: skip
        target = frame.target
        self.frame, self.dimension = frame, target.n_parameters
        self.setup = run.Setup(
            frame.problem(gradient or Full()), target.model, gradient or Full(),
            subsampling or AllRows(), dynamics or SGLD(), batch_size or target.n_rows,
            step_size=Constant(1.0), bounds=np.full(target.n_parameters, np.inf), chances=chances,
        )  # fmt: skip

    @property
    def all_rows(self):
        """Every row with coefficient 1."""
        return np.arange(self.setup.n_rows), np.ones(self.setup.n_rows)

    def blank_memory(self, seed=0):
        """What the gradient remembers at first; None if it remembers nothing."""
        return self.setup.gradient.memory(self.setup, np.random.Generator(np.random.SFC64(seed)))

    def memory_at(self, position, seed=0):
        """What it remembers of a position: a table that was filled there, or an anchor there."""
        memory = self.blank_memory(seed)
        if memory is not None:
            position = np.array(position, dtype=np.float64)
            chain_ = SimpleNamespace(memory=memory, state=position[None])
            scratch = run.scratch_of(self.setup, memory)
            self.setup.gradient.prepare(self.setup, chain_, self._pieces.estimator, scratch)
            self.estimate(position, [], [], memory=memory)
        return memory

    def memory_with_terms(self, terms):
        """A table of given terms, which are to be exact in single precision."""
        memory, target = self.blank_memory(), self.frame.target
        memory.table[:] = terms
        if not np.array_equal(memory.table, terms):
            raise ValueError("terms that single precision rounds")
        memory.counts[SEEN] = len(terms)
        weighted = target.weight[:, None] * terms
        memory.vectors[TOTAL] = target.row_sum(target.design(slice(None)), weighted)
        return memory

    def estimate(self, z, rows=None, coefficients=None, *, memory=None):
        """The estimate of ∇_z U from a batch; from all rows if none is given."""
        rows, coefficients = self.all_rows if rows is None else (rows, coefficients)
        rows, coefficients = self._batch(rows, coefficients)
        out = np.empty(self.dimension)
        _gradient(
            self.setup.problem, self._pieces, np.array(z, dtype=np.float64), rows, len(rows),
            coefficients, self._scratch(memory), out,
        )  # fmt: skip
        return out

    def step(self, state, rows, coefficients, noise, h, *, memory=None):
        """The state after one step."""
        rows, coefficients = self._batch(rows, coefficients)
        state = np.array(state, dtype=np.float64)
        _step(
            self.setup.problem, self._pieces, state, rows, len(rows), coefficients,
            np.array(noise, dtype=np.float64), float(h),
            frozen(self.setup.dynamics.parameters()), self._scratch(memory),
        )  # fmt: skip
        return state

    def update(self, state, gradient, noise, h):
        """The state after the dynamics has met a gradient."""
        state = np.array(state, dtype=np.float64)
        dynamics = self.setup.dynamics
        _update(
            pointer(dynamics.update, UPDATE), state, gradient, noise, h,
            frozen(dynamics.parameters()),
        )  # fmt: skip
        return state

    def potential(self, z):
        """U(z), up to a constant."""
        return self.potential_and_gradient(z)[0]

    def potential_and_gradient(self, z, valued=True):
        """U(z) and ∇U(z) as the Metropolis-corrected samplers compute them."""
        setup, g = self._full_setup, np.empty(self.dimension)
        value = _potential(
            setup.problem, self._full_pieces, np.array(z, dtype=np.float64), run.scratch_of(setup),
            valued, g,
        )  # fmt: skip
        return value, g

    def leapfrog(self, position, momentum, epsilon, valued=True):
        """(position, momentum, potential) after one leapfrog step on all rows."""
        state = np.zeros((metropolis.N_STATE, self.dimension))
        state[metropolis.PROPOSAL], state[metropolis.MOMENTUM] = position, momentum
        state[metropolis.PROPOSAL_GRADIENT] = self.potential_and_gradient(position)[1]
        setup = self._full_setup
        value = _leapfrog(
            setup.problem, self._full_pieces, state, float(epsilon), run.scratch_of(setup), valued
        )
        return state[metropolis.PROPOSAL].copy(), state[metropolis.MOMENTUM].copy(), value

    def acceptance(self, energy, proposed, momentum):
        """Probability with which a trajectory of that energy accepts a proposal (its potential)."""
        state, record = np.zeros((metropolis.N_STATE, self.dimension)), metropolis.new_record(1.0)
        state[metropolis.MOMENTUM], record[metropolis.ENERGY] = momentum, energy
        rng = np.random.Generator(np.random.SFC64(0))
        return _accept(state, record, float(proposed), rng)

    def start(self, position):
        """A state of the dynamics at a position, its other rows zero."""
        state = np.zeros((self.setup.dynamics.n_rows, self.dimension))
        state[0] = position
        return state

    def batches(self, n_batches, rng):
        """Batches as the chain draws them: rows and coefficients, (n_batches, batch_size) each."""
        setup = self.setup
        subsample = fresh(setup.subsampling.state(setup.n_rows, setup.batch_size, setup.chances))
        draw = pointer(setup.subsampling.draw, draw_type(subsample))
        rows = np.full((n_batches, setup.batch_size), -1)
        coefficients = np.empty(rows.shape)
        _draw_many(draw, rng, subsample, at_reach(self.dimension), rows, coefficients)
        return rows, coefficients

    def batch(self, position, rng):
        """One batch, as a chain at this position draws it."""
        setup = self.setup
        options = {"reach": setup.reach} if setup.subsampling.needs_reach else {}
        subsample = fresh(
            setup.subsampling.state(setup.n_rows, setup.batch_size, setup.chances, **options)
        )
        rows, coefficients = np.full(setup.most_rows, -1), np.empty(setup.most_rows)
        draw = pointer(setup.subsampling.draw, draw_type(subsample))
        n = _draw_one(draw, rng, subsample, np.array(position), rows, coefficients)
        return rows[:n], coefficients[:n]

    def sample(self, positions, seed, n_draws, thin=1, *, n_jobs=None, **options):
        """Draws of whole chains, (n_chains, n_draws, n_parameters), and the chains."""
        setup = dataclasses.replace(self.setup, **options)
        chains = run.new_chains(setup, np.atleast_2d(positions), seed)
        return run.sample(setup, chains, n_draws, thin, n_jobs=n_jobs)

    def sample_split(self, positions, seed, n_draws, sizes, **options):
        """Draws of whole chains, made by calls of so many steps each."""
        setup = dataclasses.replace(self.setup, **options)
        chains = run.new_chains(setup, np.atleast_2d(positions), seed)
        for chain_ in chains:
            chain_.begin(n_draws)
            for size in sizes:
                run._advance(setup, 1, size, chain_)
        return np.stack([chain_.draws for chain_ in chains])

    def sample_coupled(self, position, seed, h, n_draws, thin):
        """Draws of a chain and of its twin with half the time step, (2, 1, n_draws, D)."""
        chains = run.new_chains(self.setup, position[None], seed)
        return run.sample_coupled(self.setup, chains, h, n_draws, thin)

    def start_of_chain(self, position, seed):
        """State of chain 0, twice, and its stream of normals."""
        _, noise, start = streams.of_chain(seed, 0)
        state = self.setup.dynamics.start(position, start)
        return state, state.copy(), noise

    def _batch(self, rows, coefficients):
        if self._remembers and len(rows) > self.setup.most_rows:
            raise ValueError("the memory has no room for so many rows")
        return np.array(rows, dtype=np.int64), np.array(coefficients, dtype=np.float64)

    def _scratch(self, memory=None):
        if self._remembers and memory is None:
            memory = copy.deepcopy(self._memory_of_the_centre)
        return run.scratch_of(self.setup, memory)

    @cached_property
    def _remembers(self):
        return self.blank_memory() is not None

    @cached_property
    def _memory_of_the_centre(self):
        return self.memory_at(np.zeros(self.dimension))

    @cached_property
    def _pieces(self):
        # One type for all schemes, so that `step` is compiled once: it does not draw.
        dynamics = SGLD() if self.setup.is_metropolis else self.setup.dynamics
        setup = dataclasses.replace(self.setup, subsampling=Uniform(), dynamics=dynamics)
        scratch = run.scratch_of(setup, self.blank_memory())
        return run.pieces(setup, Uniform().state(setup.n_rows, setup.batch_size), scratch)

    @cached_property
    def _full_setup(self):
        return dataclasses.replace(self.setup, batch_size=self.setup.n_rows)

    @cached_property
    def _full_pieces(self):
        return run.full_pieces(self._full_setup, run.scratch_of(self._full_setup))


def twin(chain):
    """The other chain of a coupled pair."""
    return run._twin(chain)


def remembered(memory):
    """(table, running total, anchor, rows seen, steps to the next refresh), as they are now."""
    return SimpleNamespace(
        table=memory.table.astype(np.float64), total=memory.vectors[TOTAL].copy(),
        anchor=memory.vectors[ANCHOR].copy(), n_seen=int(memory.counts[SEEN]),
        left=int(memory.counts[LEFT]), rows=memory.rows[: len(memory.coefficients)].copy(),
    )  # fmt: skip


def at_reach(dimension):
    """A position at unit distance: where adaptive schemes use just the batch size."""
    return np.eye(dimension)[0]


def fresh(subsample):
    """A subsampling state that shares nothing that draws change."""
    return subsample._replace(order=subsample.order.copy())


@jit
def _draw_many(draw, rng, subsample, position, rows_out, coefficients_out):
    for b in range(rows_out.shape[0]):
        draw(rng, subsample, position, rows_out[b], coefficients_out[b])


@jit
def _draw_one(draw, rng, subsample, position, rows_out, coefficients_out):
    return draw(rng, subsample, position, rows_out, coefficients_out)


# -- exact laws of the schemes --------------------------------------------------------------------


def source_of(kernel):
    """The Python source of a kernel, and of those that it calls."""
    source = getattr(kernel, "py_func", kernel)
    names = {name: getattr(f, "py_func", f) for name, f in source.__globals__.items()}
    return FunctionType(source.__code__, names)


def scripted_batch(scheme, subsample, uniforms, position=None):
    """The batch that the *source* of a scheme's kernel makes of given uniform numbers."""
    source = source_of(scheme.draw)
    most = max(subsample.batch_size, subsample.most)
    rows, coefficients, stream = np.full(most, -1), np.empty(most), iter(uniforms)
    n = source(
        SimpleNamespace(random=lambda: next(stream)),
        fresh(subsample),
        at_reach(1) if position is None else position,
        rows,
        coefficients,
    )
    return tuple(rows[:n].tolist()), tuple(coefficients[:n].tolist())
