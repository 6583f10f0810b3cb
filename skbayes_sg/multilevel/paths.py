"""Paths of a level, run in blocks on threads.

Each block of paths has its own random streams, which depend only on the seed, the level and the
number of the block: not on `n_jobs`, nor on how many paths are requested at a time.
"""

from dataclasses import dataclass, field
from functools import partial

import joblib
import numpy as np

from .._base import memmap, streams
from .._base.jit import pointer
from ..engine.rounds import run_rounds
from ..engine.run import Setup, pieces, scratch_of
from ..kernels.layout import frozen
from .couplings import COUPLE
from .double_step import PATH, run_paths
from .hierarchy import Hierarchy

__all__ = ["BLOCK", "Block", "Diverged", "Paths"]

BLOCK = 16  # paths of a block
FIRST_UNITS = 256  # units (see `double_step.Route`) of a group of blocks in the first round
BATCH_BYTES = 1 << 24  # approximate size of the positions that are computed before any is yielded


class Diverged(Exception):
    """A path of a level left the bounds."""

    def __init__(self, level, position):
        super().__init__(level, position)
        self.level, self.position = level, position


@dataclass
class Block:
    """A block of paths of a level, and how far they have come."""

    level: int
    number: int
    records: np.ndarray  # (n_paths, n_kept, n_states, n_parameters)
    states: np.ndarray
    rng_rows: np.random.Generator
    rng_noise: np.random.Generator
    clock: np.ndarray = field(default_factory=lambda: np.zeros(2, np.int64))
    diverged: bool = False

    @property
    def done(self):
        """Whether no work remains: all paths are finished, or one has diverged."""
        return self.diverged or self.clock[PATH] == len(self.records)


def _advance(paths, budget, blocks):
    """Continue blocks, in order, for `budget` units in total; to the end if `budget` is None."""
    workspace = paths.workspace()
    for block in blocks:
        if block.done:
            continue
        units = len(block.records) * paths.hierarchy.n_units(block.level)
        left = units if budget is None else budget
        before = block.clock.copy()
        paths.run(block, left, workspace)
        if budget is not None:
            spent = (block.clock - before) @ (paths.hierarchy.n_units(block.level), 1)
            budget -= int(spent)
            if budget <= 0:
                break
    return blocks


def _in_order(groups):
    """Return the blocks of all groups, sorted by their numbers."""
    return sorted((block for group in groups for block in group), key=lambda block: block.number)


@dataclass
class Paths:
    """Coupled paths of any level of a hierarchy.

    Parameters
    ----------
    setup : Setup
        Settings of the steps: problem, model, gradient, subsampling, dynamics, batch size, bounds.
    coupling : Coupling
    hierarchy : Hierarchy
    seed : int
    n_jobs : int or None
    """

    setup: Setup
    coupling: object
    hierarchy: Hierarchy
    seed: int
    n_jobs: int | None = None

    def block(self, level, number, n_paths=BLOCK):
        """Return a new block of paths, at the start, with its own random streams."""
        D = self.setup.n_parameters
        shape = (n_paths, self.hierarchy.kept, self.hierarchy.n_states(level), D)
        rngs = streams.of_paths(self.seed, level, number)
        return Block(level, number, np.empty(shape), np.zeros((3, 1, D)), *rngs)

    def workspace(self):
        """Return the subsampling state and the working memory of one thread."""
        setup, most = self.setup, self.setup.most_rows
        subsample = setup.subsampling.state(setup.n_rows, setup.batch_size)
        rows, coefficients = np.full((4, most), -1), np.ones((4, most))
        return subsample, rows, coefficients, np.empty((3, setup.n_parameters)), scratch_of(setup)

    def run(self, block, budget, workspace):
        """Continue a block for at most `budget` units; mark it if a path has diverged."""
        subsample, rows, coefficients, noises, scratch = workspace
        setup = self.setup
        made = pieces(setup, subsample, scratch), pointer(self.coupling.couple, COUPLE)
        numbers = frozen(setup.dynamics.parameters()), frozen(setup.bounds)
        route, rngs = self.hierarchy.route(block.level), (block.rng_rows, block.rng_noise)
        state = subsample, *numbers, route, block.states, block.clock, *rngs
        room = rows, coefficients, noises, scratch
        block.diverged = not run_paths(
            setup.problem, *made, *state, *room, int(budget), block.records
        )

    def positions(self, level, first, n_paths, tick=None):
        """Yield positions (n, n_kept, n_states, n_parameters) of paths, one block at a time.

        Parameters
        ----------
        level : int
        first : int
            Number of the first block.
        n_paths : int
            Number of paths; the last block may have fewer paths than the others.
        tick : callable, optional
            Called between chunks of work.

        Yields
        ------
        array

        Raises
        ------
        Diverged
        """
        sizes = [min(BLOCK, n_paths - k) for k in range(0, n_paths, BLOCK)]
        few = max(2, BATCH_BYTES // self.block(level, 0).records.nbytes)
        for k in range(0, len(sizes), few):
            part = enumerate(sizes[k : k + few], start=first + k)
            blocks = [self.block(level, number, size) for number, size in part]
            for block in self._finish(blocks, tick):
                yield block.records

    def _finish(self, blocks, tick):
        """Run blocks to their end, a group of blocks for each worker; return them in order."""
        n_groups = min(joblib.effective_n_jobs(self.n_jobs), len(blocks))
        groups = [blocks[k::n_groups] for k in range(n_groups)]

        def between(groups):
            memmap.forget(self.setup.problem.data.X, 0, self.setup.n_rows)
            for block in _in_order(groups):
                if block.diverged:
                    raise Diverged(block.level, block.states[:, 0])
            if tick is not None:
                tick()

        groups = run_rounds(
            partial(_advance, self),
            groups,
            FIRST_UNITS,
            is_done=lambda groups: all(block.done for block in _in_order(groups)),
            stop=between,
            n_jobs=self.n_jobs,
        )
        return _in_order(groups)
