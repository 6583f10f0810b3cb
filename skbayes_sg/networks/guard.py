"""The sampler of "auto" on all rows: BAOAB, with a step that keeps the error of the energy small.

Only the first steps of each part of the warm-up adapt the step δ to this error. A step that went on
to follow the state would be short where the posterior is stiff, so that a chain, whose draws are
equally many steps apart, would stay there for too long. With scales of the prior near their bound
it is thirty times shorter than elsewhere, and chains ended there after long warm-ups, all of them
alike. Between steps the scales of the prior are redrawn given the weights, and moved together with
these (`skbayes_sg.networks.scale_moves`). Every 50 steps a copy of the state is kept. After a step
whose energy jumps the chain returns to the copy, with a new momentum, and δ shrinks by a tenth:
where the posterior is stiffer than elsewhere, a chain without this guard diverges sooner or later.
A return in production breaks the invariance of the posterior slightly, so that returns are
counted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base.interrupts import without_interrupts
from .._base.threads import raise_if_stopped
from ..exceptions import SamplerDivergedError
from .baoab import (
    DELTA,
    ERRORS,
    LOSS_HERE,
    N_NUMBERS,
    RATE,
    TEMPERATURE,
    THETA,
    VELOCITY,
    advance,
    evaluate,
)
from .chain import find_start, redraw_scales, release
from .curvature import curvature_at, rescale
from .gradient import pieces_of
from .scale_moves import move_scales

__all__ = ["GuardedBAOAB"]

FIRST_STEP, ADAPTATION = 0.1, 0.05  # δ before its adaptation, and the rate r of the adaptation
WARMUP = 1500  # default steps of the warm-up
ADAPTING_STEPS = 375  # first steps of each part of the warm-up, which adapt δ
# Steps between redraws of the scales of the prior, and between copies of the state.
REDRAW_EVERY, COPY_EVERY = 10, 50
SHRINK = 0.9  # factor of δ at each return to the copy
MOST_REFUSED = 500  # returns in succession, after which no step helps; of `minibatches`, too


@dataclass
class Memory:
    """The state of the dynamics of one chain, and what adapts and guards it."""

    state: np.ndarray  # (3, P): θ, v, and the gradient of the loss, as in `baoab`
    scale: np.ndarray  # (P,): s of the coordinates θ = s∘z
    numbers: np.ndarray  # (N_NUMBERS,): step size, loss and sums, as in `baoab`
    curvature: Any = None  # F, where the coordinates are scaled
    copy: Any = None  # state, loss, scales and prior to which a refused step returns
    taken: int = 0  # steps so far, without refused ones
    counted: int = 0  # steps whose errors and temperatures are in `numbers`


@dataclass
class GuardedBAOAB:
    """Kinetic Langevin dynamics on all rows.

    Parameters
    ----------
    step : float or None
        The step size δ; None to adapt it in the warm-up.
    n_warmup : int or None
        Steps before the first draw; None is `WARMUP`, and half as many more where the weights of
        log σ are held for two thirds of them.
    thin : int
        Steps from one draw to the next.
    preconditioned : bool
        Whether the coordinates are scaled by s.
    factor : int
        Factor of `thin`, which `skbayes_sg.networks.run.sample` doubles from its second repetition
        of a run on.
    """

    step: float | None
    n_warmup: int | None
    thin: int
    preconditioned: bool = True
    factor: int = 1
    batch_size: None = None  # all rows

    def thin_of(self, chain):
        """Return the number of steps from one draw to the next."""
        del chain
        return self.factor * self.thin

    def start(self, problem, chain):
        """Prepare nothing: the warm-up finds the start."""

    def n_steps(self, chain, n_draws):
        """Return how many gradients of all rows a chain computes for `n_draws` draws."""
        return self._n_short + sum(self._parts(chain)) + n_draws * self.thin_of(chain)

    @property
    def _n_short(self):
        """Steps of Adam at the start, and of `adapt` by default: a third of the usual warm-up."""
        return (WARMUP if self.n_warmup is None else self.n_warmup) // 3

    def _parts(self, chain):
        """Return the steps of each part of the warm-up; s is measured anew before each part."""
        n_parts = 3 if chain.holds else 2
        n = n_parts * WARMUP // 2 if self.n_warmup is None else self.n_warmup
        return [n // n_parts] * (n_parts - 1) + [n - (n_parts - 1) * (n // n_parts)]

    def warm_up(self, problem, chain):
        """Find a start with Adam, and warm up; weights of log σ are released for the last part."""
        *first, last = self._parts(chain)
        find_start(problem, chain, self._n_short)
        P = problem.n_parameters
        state = np.zeros((3, P))
        state[THETA], state[VELOCITY] = chain.theta, chain.streams.noise.standard_normal(P)
        memory = chain.memory = Memory(state, np.ones(P), np.zeros(N_NUMBERS))
        memory.numbers[DELTA] = self.step or FIRST_STEP
        with without_interrupts():
            rows, pieces = problem.all_rows, pieces_of(problem.model)
            evaluate(pieces, problem.network, rows, state, memory.numbers, chain.scratch)
        _keep(chain)
        for n in first:
            self.adapt(problem, chain, n)
        release(problem, chain)
        _keep(chain)
        self.adapt(problem, chain, last)

    def adapt(self, problem, chain, n_steps=None):
        """Measure the scales s, and take `n_steps` steps, by default a third of the warm-up.

        The first of them adapt δ.
        """
        n_steps, memory = self._n_short if n_steps is None else n_steps, chain.memory
        if self.preconditioned:
            memory.curvature = curvature_at(problem, chain)
            rescale(chain)
        n_first = min(n_steps, ADAPTING_STEPS) if self.step is None else 0
        memory.numbers[RATE] = ADAPTATION
        self.run(problem, chain, n_first)
        memory.numbers[RATE] = 0.0
        self.run(problem, chain, n_steps - n_first)
        memory.numbers[[ERRORS, TEMPERATURE]] = 0.0
        memory.counted = chain.n_returns = 0

    def run(self, problem, chain, n_steps):
        """Take `n_steps` steps, not counting those that are refused."""
        memory, pieces, refused = chain.memory, pieces_of(problem.model), 0
        while n_steps > 0:
            raise_if_stopped()
            n = min(n_steps, REDRAW_EVERY - memory.taken % REDRAW_EVERY)
            noise = chain.streams.noise.standard_normal((n, problem.n_parameters))
            with without_interrupts():
                good = advance(
                    pieces, problem.network, problem.all_rows, memory.state, chain.prior,
                    memory.scale, noise, memory.numbers, chain.scratch,
                )  # fmt: skip
            memory.taken += good
            memory.counted += good
            n_steps -= good
            refused = refused + 1 if good < n else 0
            if refused > MOST_REFUSED:
                raise SamplerDivergedError(
                    f"chain {chain.number} cannot move: its loss is {memory.numbers[LOSS_HERE]:.3g}"
                    ", and no step is small enough to conserve the energy. Standardise X."
                )
            if good < n:
                _go_back(chain)
                rescale(chain)
                continue
            chain.theta = memory.state[THETA]
            if memory.taken % REDRAW_EVERY == 0:
                redraw_scales(problem, chain)
                move_scales(problem, chain)
                rescale(chain)
            if memory.taken % COPY_EVERY == 0:
                _keep(chain)

    def step_of(self, chain):
        """Return the step size δ."""
        return float(chain.memory.numbers[DELTA])

    def measured(self, chain):
        """Return diagnostics of the dynamics: |v|²/P and e²/P, averaged over steps."""
        heat, error = chain.memory.numbers[[TEMPERATURE, ERRORS]] / max(chain.memory.counted, 1)
        return {"kinetic_temperature": heat, "energy_error": error, "noise_inflation": 0.0}


def _keep(chain):
    memory = chain.memory
    memory.copy = memory.state.copy(), memory.numbers[LOSS_HERE], chain.scales_now, chain.prior


def _go_back(chain):
    """Return to the copy, with a new momentum and a smaller step."""
    memory = chain.memory
    state, memory.numbers[LOSS_HERE], chain.scales_now, chain.prior = memory.copy
    memory.state[:] = state
    chain.theta = memory.state[THETA]
    memory.state[VELOCITY] = chain.streams.noise.standard_normal(state.shape[1])
    memory.numbers[DELTA] *= SHRINK
    chain.n_returns += 1
