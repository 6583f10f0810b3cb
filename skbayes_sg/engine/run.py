"""Chains: their states and random streams, and the functions that run them.

A chain depends only on the seed and its number: not on `n_jobs`, the joblib backend, or the points
at which one call of a kernel ends and the next begins (`engine.rounds`).
"""

import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numba
import numpy as np

from .._base import memmap, streams
from .._base.jit import pointer
from ..dynamics import Metropolis
from ..kernels.layout import (
    CURVATURE,
    DERIVATIVE,
    LOSS,
    SUMS,
    TERMS,
    UPDATE,
    Estimator,
    FullPieces,
    Likelihood,
    Pieces,
    Problem,
    Scratch,
    Sums,
    draw_type,
    frozen,
    gradient_type,
    potential_type,
)
from ..schedules import Constant, first_step
from . import metropolis
from .chain import run_chain
from .metropolis import potential, potential_of_sums, run_metropolis
from .rounds import run_rounds

__all__ = ["Chain", "Setup", "attach", "new_chains", "sample", "sample_coupled", "scratch_of"]
__all__ += ["slopes_at", "slopes_at_draws"]

FIRST_WORK = 1e7  # approximate number of multiplications of a chain in the first round


@dataclass
class Setup:
    """All that the chains of a run share. It is picklable, because workers receive it."""

    problem: Problem
    model: Any
    gradient: Any
    subsampling: Any
    dynamics: Any
    batch_size: int
    step_size: Any = None  # a schedule h(t); Metropolis samplers use h(0), or adapt it
    bounds: Any = None  # |φ_j| beyond which a chain has diverged
    chances: Any = None  # probabilities of the rows, for preferential subsampling
    reach: float = 1.0  # squared distance from the centre at which adaptive steps use batch_size
    mix: tuple = (1.0, 0.0)  # weights of the normals in the noise of a step: see `run_chain`
    adapt: bool = False  # Metropolis samplers: whether ε follows dual averaging
    keep_slopes: bool = False  # whether chains keep the gradients at their draws
    _pointers: dict = field(init=False, default_factory=dict, repr=False, compare=False)

    def __getstate__(self):
        return vars(self) | {"_pointers": {}}  # addresses are valid in this process only

    @property
    def n_rows(self):
        """Number of rows of the data."""
        return self.problem.data.facts.shape[0]

    @property
    def most_rows(self):
        """Largest number of rows of a step."""
        return self.subsampling.most_rows(self.n_rows, self.batch_size)

    @property
    def n_parameters(self):
        """Number of parameters of the posterior."""
        return self.problem.prior.shape[0]

    @property
    def first_step(self):
        """The step size h(0) of the first step."""
        return first_step(self.step_size)

    @property
    def is_metropolis(self):
        """Whether the chains are Metropolis-corrected."""
        return isinstance(self.dynamics, Metropolis)


@dataclass
class Chain:
    """One chain: its state and streams, and the draws of the current phase."""

    number: int
    state: np.ndarray
    rng_rows: np.random.Generator
    rng_noise: np.random.Generator
    subsample: Any = None
    memory: Any = None  # memory of the gradient, if it has one: see `layout.GradientMemory`
    record: Any = None  # numbers that Metropolis samplers keep: see `engine.metropolis`
    total: int = 0  # steps since the chain began, the step number t of a schedule
    done: int = 0  # steps, or trajectories, that are done of this phase
    draws: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    used: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # rows of each draw
    slopes: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # see `run_chain`
    diverged: bool = False

    def begin(self, n_draws, keep_slopes=False):
        """Start a phase of `n_draws` draws."""
        D = self.state.shape[1]
        self.done, self.draws = 0, np.empty((n_draws, D))
        self.used = np.zeros(n_draws, np.int64)
        self.slopes = np.empty((n_draws + 1 if keep_slopes else 0, D))


def new_chains(setup, positions, seed, first=0):
    """Return one new chain for each row of `positions`, numbered from `first`."""
    chains = []
    for number, position in enumerate(positions, start=first):
        rng_rows, rng_noise, rng_start = streams.of_chain(seed, number)
        state = np.zeros((metropolis.N_STATE, len(position)))
        if not setup.is_metropolis:
            state = setup.dynamics.start(position, rng_start)
        state[0] = position
        chains.append(Chain(number, state, rng_rows, rng_noise))
    return attach(setup, chains)


def attach(setup, chains):
    """Give chains a fresh state of the subsampling scheme or Metropolis sampler; return them."""
    if setup.is_metropolis:
        for chain in chains:
            chain.record = metropolis.new_record(setup.first_step)
        return chains
    scheme, options = setup.subsampling, {}
    if scheme.needs_reach:
        options["reach"] = setup.reach
    subsample = scheme.state(setup.n_rows, setup.batch_size, setup.chances, **options)
    for chain in chains:  # tables are shared and read-only; each chain has its own list of rows
        chain.subsample = subsample._replace(order=subsample.order.copy())
        chain.memory = setup.gradient.memory(setup, chain.rng_rows)
    return chains


def scratch_of(setup, memory=None):
    """Return new working memory for a chain, with the given memory of its gradient."""
    n = setup.n_rows if setup.is_metropolis else setup.most_rows
    return Scratch(
        rows=np.arange(n),
        coefficients=np.ones(n),
        blocks=np.empty((3, setup.model.block, setup.model.n_predictors)),
        vectors=np.empty((5, setup.n_parameters)),
        memory=memory,
    )


def _gradient(setup, scratch):
    """Return the `Estimator` and the kernel of the gradient, as pointers.

    They are kept, because finding the Numba type of a problem takes as long as many steps.
    """
    if "gradient" not in setup._pointers:
        setup._pointers["gradient"] = _make_gradient(setup, scratch)
    return setup._pointers["gradient"]


def _make_gradient(setup, scratch):
    model = setup.model
    estimator = Estimator(
        pointer(model.derivative, DERIVATIVE),
        pointer(model.curvature, CURVATURE),
        pointer(setup.gradient.terms, TERMS),
    )
    kernel = setup.gradient.kernel
    if numba.config.DISABLE_JIT:
        return estimator, kernel
    return estimator, pointer(kernel, gradient_type(setup.problem, estimator, scratch))


def pieces(setup, subsample, scratch):
    """Return the `Pieces` of a stochastic-gradient chain."""
    if "draw" not in setup._pointers:
        setup._pointers["draw"] = pointer(setup.subsampling.draw, draw_type(subsample))
    update = pointer(setup.dynamics.update, UPDATE)
    return Pieces(*_gradient(setup, scratch), setup._pointers["draw"], update)


def full_pieces(setup, scratch):
    """Return the `FullPieces` of a Metropolis-corrected chain."""
    if "potential" not in setup._pointers:
        setup._pointers["potential"] = _make_full_pieces(setup, scratch)
    return setup._pointers["potential"]


def _make_full_pieces(setup, scratch):
    own = setup.model
    if own.sums is not None:
        model, kernel = Sums(pointer(own.sums, SUMS)), potential_of_sums
    else:
        model = Likelihood(pointer(own.loss, LOSS), pointer(own.derivative, DERIVATIVE))
        kernel = potential
    if numba.config.DISABLE_JIT:
        return FullPieces(model, kernel)
    return FullPieces(model, pointer(kernel, potential_type(setup.problem, model, scratch)))


def _advance_langevin(setup, chain, thin, n_steps, scratch):
    n_steps = min(n_steps, thin * len(chain.draws) - chain.done)
    h = setup.step_size(np.arange(chain.total, chain.total + n_steps))
    made, before = pieces(setup, chain.subsample, scratch), chain.done
    setup.gradient.prepare(setup, chain, made.estimator, scratch)
    state = chain.subsample, chain.state, chain.rng_rows, chain.rng_noise
    numbers = setup.mix, frozen(h), frozen(setup.dynamics.parameters()), frozen(setup.bounds)
    out = chain.used, chain.slopes, chain.draws
    chain.done = run_chain(
        setup.problem, made, *state, *numbers, thin, before, n_steps, scratch, *out
    )
    chain.total += chain.done - before
    chain.diverged = chain.done < before + n_steps
    return chain


def _advance_metropolis(setup, chain, thin, budget, scratch):
    problem, dynamics = setup.problem, setup.dynamics
    path = tuple(map(float, (*dynamics.path(), dynamics.target_accept)))
    posterior = problem.data, problem.prior, problem.coordinates, full_pieces(setup, scratch)
    state = chain.state, chain.record, chain.rng_noise
    out = chain.slopes, chain.draws, chain.done
    chain.done = run_metropolis(*posterior, *state, path, setup.adapt, thin, budget, scratch, *out)
    return chain


def _advance(setup, thin, work, chain):
    """Advance a chain by `work` steps or leapfrog steps; to the end of the phase if it is None."""
    advance = _advance_metropolis if setup.is_metropolis else _advance_langevin
    scratch = scratch_of(setup, chain.memory)
    if work is not None:
        return advance(setup, chain, thin, work, scratch)
    while chain.done < thin * len(chain.draws) and not chain.diverged:
        chain = advance(setup, chain, thin, 1000, scratch)
    return chain


def _first_work(setup):
    """Return the number of steps of the first round, when their speed is not known yet.

    They take roughly some hundredths of a second.
    """
    data = setup.problem.data
    rows = setup.n_rows if setup.is_metropolis else setup.batch_size
    cost = rows * (data.n_linear * data.n_features + 10) + 3 * setup.n_parameters**2
    return int(np.clip(FIRST_WORK / cost, 1, 256))


def sample(setup, chains, n_draws, thin, *, n_jobs=None, watch=None):
    """Make `n_draws` more draws of every chain, `thin` steps apart.

    Parameters
    ----------
    watch : callable, optional
        ``watch(chains, done)`` is called between rounds with the number of draws that all chains
        have; a true result ends the phase.

    Returns
    -------
    draws : array of shape (n_chains, n_draws, n_parameters)
        Positions.
    chains : list of Chain
        The chains, which can continue.
    """
    for chain in chains:
        chain.begin(n_draws, setup.keep_slopes)

    def done(chains):
        return min(chain.done for chain in chains) // thin

    def stop(chains):
        memmap.forget(setup.problem.data.X, 0, setup.n_rows)
        asked = watch is not None and watch(chains, done(chains))
        return asked or any(chain.diverged for chain in chains)

    chains = run_rounds(
        partial(_advance, setup, thin),
        chains,
        _first_work(setup),
        is_done=lambda chains: done(chains) >= n_draws,
        stop=stop,
        n_jobs=n_jobs,
    )
    return np.stack([chain.draws[: done(chains)] for chain in chains]), chains


def slopes_at_draws(setup, chains, n_draws, thin):
    """Return the gradients in φ at the last phase's draws, (n_chains, n_draws, n_parameters).

    These are the gradients that the sampler used. That at the last draw comes from a copy of the
    chain, which takes the step that would follow.
    """
    for chain in chains:
        if not setup.is_metropolis and chain.done == thin * n_draws:
            chain.slopes[n_draws] = slopes_at(setup, chain, chain.state[:1], chain.rng_rows)[0]
    return np.stack([chain.slopes[1 : n_draws + 1] for chain in chains])


def _copied(chain, rng_rows, memory):
    """Return a copy of a chain with the given stream of rows and memory, and the same noise."""
    subsample = chain.subsample._replace(order=chain.subsample.order.copy())
    own = {"state": chain.state.copy(), "rng_noise": copy.deepcopy(chain.rng_noise)}
    return replace(chain, **own, rng_rows=rng_rows, memory=memory, subsample=subsample)


def slopes_at(setup, chain, positions, rng_rows):
    """Return the gradients in φ at the positions, as a chain would estimate them.

    The result has the shape (n_positions, n_parameters). The chain does not change.
    """
    twin = _double(chain, rng_rows)
    scratch, found = scratch_of(setup, twin.memory), np.empty((len(positions), setup.n_parameters))
    for slope, position in zip(found, positions, strict=True):
        twin.begin(1, keep_slopes=True)
        twin.state[0] = position
        slope[:] = _advance_langevin(setup, twin, 1, 1, scratch).slopes[0]
    memmap.forget(setup.problem.data.X, 0, setup.n_rows)
    return found


def _double(chain, rng_rows=None):
    """Return a copy of a chain that makes the same moves; with another stream of rows if given."""
    rng_rows = copy.deepcopy(chain.rng_rows if rng_rows is None else rng_rows)
    return _copied(chain, rng_rows, copy.deepcopy(chain.memory))


def _twin(chain):
    """Return a copy of a chain with the same Brownian motion and other batches of rows."""
    return _copied(chain, streams.child(chain.rng_rows), _twin_memory(chain.memory))


def _twin_memory(memory):
    """Return a copy of the memory of a gradient that continues with other rows, or None."""
    if memory is None:
        return None
    return copy.deepcopy(memory)._replace(rng=streams.child(memory.rng))


def sample_coupled(setup, chains, h, n_draws, thin, *, n_jobs=None):
    """Return draws of chains with step h, and of twins with half the time step and the same noise.

    Batches are independent, so both gradient noise and step size contribute to the distance between
    the two. The result is an array (2, n_chains, n_draws, n_parameters); draws that are missing
    because a chain diverged are infinite. The chains stay where they are: whether a run moves those
    that it is given, or copies in other processes, depends on the backend of joblib.
    """
    setup = replace(setup, dynamics=setup.dynamics.coupled())
    mix = tuple(map(float, setup.dynamics.coarse_noise(h)))
    whole = replace(setup, step_size=Constant(h), mix=mix)
    half = replace(setup, step_size=Constant(h / setup.dynamics.substep_ratio))
    twins = [_twin(chain) for chain in chains]
    found = np.full((2, len(chains), n_draws, setup.n_parameters), np.inf)
    runs = (whole, [_double(chain) for chain in chains], thin), (half, twins, 2 * thin)
    for out, (own, members, every) in zip(found, runs, strict=True):
        draws, _ = sample(own, members, n_draws, every, n_jobs=n_jobs)
        out[:, : draws.shape[1]] = draws
    return found
