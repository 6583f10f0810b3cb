"""Samplers with gradients of batches: the noise-corrected one of "auto", and those of users.

The step of "auto" follows from the noise of the gradient. With V the largest variance of a one-row
gradient in the coordinates of the chain (`skbayes_sg.networks.curvature`) and γ = 1, gradient noise
adds the share I = δ V/(2γn) to a variance; I = 0.9 gives δ = 2γ n I/V. The friction that takes the
noise out, see `skbayes_sg.networks.stochastic`, wants small kicks: δ² q <= 0.3, with the q of
batches that `skbayes_sg.networks.curvature` measures. Where few rows have most of the noise, as
those of rare levels and those that are hard to classify have, this is a far smaller step. And δ is
at most 0.15. Time units, not steps, are what chains need: 300 to warm up, and 800 for the draws.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.jit import interruptible, pointer
from .._base.threads import raise_if_stopped
from ..dynamics import BAOAB
from ..exceptions import SamplerDivergedError
from ..gradients import SVRG, ControlVariate, Minibatch
from ..kernels.layout import UPDATE, frozen
from .chain import find_start, redraw_scales, release
from .curvature import (
    curvature_at,
    noise_of_differences,
    noise_of_rows,
    rescale,
    sums_of_kicks,
)
from .gradient import gradient_at, pieces_of
from .stochastic import (
    CYCLE,
    Batches,
    Moves,
    advance_stochastic,
    friction_for,
    kick_and_drift,
    refresh,
)

__all__ = ["CorrectedBAOAB", "MinibatchSampler", "corrected"]

FRICTION, INFLATION, KICKS, LARGEST_STEP = 1.0, 0.9, 0.3, 0.15
SHARE_OF_USERS = 0.2  # of a variance, for the step of dynamics without correction
WARMUP, PRODUCTION = 300.0, 800.0  # time units
PARTS = 4  # of the warm-up, before each of which scales and noise are measured
START_PASSES, START_STEPS = 20, 500
GIBBS, COPY, CHUNK_NUMBERS = 50, 1000, 1 << 20
HOT, SHRINK = 10.0, 0.8  # kinetic temperature at which a chain has diverged
KEPT = 0.25  # of earlier measurements of kicks, at each adaptation
QUIET = 1e-6  # variance of gradients below which their noise does not matter


@dataclass
class BatchMemory:
    """What a chain has besides its position."""

    state: np.ndarray  # (rows of the dynamics, P), in the coordinates θ = s∘φ
    scale: np.ndarray
    h: float
    noise: np.ndarray  # V
    anchor: np.ndarray  # (2, P): position and Σ w ∇ℓ there; or (0, P)
    kicks: np.ndarray = field(default_factory=lambda: np.zeros(2))  # sums whose ratio is q
    shared: float = 0.0  # noise of the anchor's rows, in units of that of one row
    differences: list = field(default_factory=list)  # their mean variances, of one row
    most: float = math.inf  # h, after returns
    curvature: Any = None  # F, where the coordinates are scaled
    left: int = 0  # steps to the next anchor
    taken: int = 0
    counted: int = 0
    temperature: float = 0.0
    copy: Any = None
    thin: int = 1

    @property
    def q(self):
        """The size of the kicks of a batch; 0 where nothing depends on it."""
        return float(self.kicks[0] / max(self.kicks[1], 1e-300))


@dataclass
class MinibatchSampler:
    """Any dynamics with stochastic gradients.

    Parameters
    ----------
    dynamics : skbayes_sg.dynamics.Dynamics
    batch_size : int
    h : float or None
        The step size; None to compute it from the noise of the gradient.
    n_warmup, thin : int or None
        None for 300 and 800 time units.
    n_draws : int
    preconditioned : bool
        Whether the coordinates are scaled; else θ = φ.
    gradient : skbayes_sg.gradients.Gradient
        Of `ControlVariate` and `SVRG` gradients are differences to those at an anchor: the end of
        the search, or a recent position.
    """

    dynamics: Any
    batch_size: int
    h: float | None = None
    n_warmup: int | None = None
    thin: int | None = None
    n_draws: int = 100
    preconditioned: bool = True
    gradient: Any = field(default_factory=Minibatch)
    factor: int = 1

    @property
    def anchored(self):
        """Whether gradients are differences to those at an anchor."""
        return isinstance(self.gradient, (SVRG, ControlVariate))

    @property
    def anchor_moves(self):
        """Whether the anchor is a recent position of the chain."""
        return isinstance(self.gradient, SVRG)

    def start(self, problem, chain):
        """Find a start, and measure there."""
        n, N = self.batch_size, problem.n_rows
        n_steps = max(START_STEPS, START_PASSES * -(-N // n))
        n_steps = n_steps if self.n_warmup is None else self.n_warmup // 3
        find_start(problem, chain, n_steps, n if n < N else None)
        if chain.holds:
            release(problem, chain)
            find_start(problem, chain, n_steps // 2, n if n < N else None)
        self._measure(problem, chain)
        if self.anchored and not self.anchor_moves:
            self._set_anchor(problem, chain)

    def n_steps(self, chain, n_draws):
        """Steps of a chain, as far as is known after its start."""
        return self._n_warmup(chain) + n_draws * self.factor * self._thin(chain)

    def _n_warmup(self, chain):
        if self.n_warmup is not None:
            return self.n_warmup
        return math.ceil(WARMUP / self._time_step(chain))

    def _thin(self, chain):
        if self.thin is not None:
            return self.thin
        return math.ceil(PRODUCTION / self.n_draws / self._time_step(chain))

    def warm_up(self, problem, chain):
        """Warm up, in parts."""
        total = self._n_warmup(chain)
        for part in range(PARTS):
            if part > 0:
                self._measure(problem, chain)
            self.run(problem, chain, total * (part + 1) // PARTS - total * part // PARTS)
        if total > 0:
            self._measure(problem, chain)
        self._forget(problem, chain)
        chain.memory.thin = self._thin(chain)

    def adapt(self, problem, chain):
        """Measure scales and noise anew."""
        self._measure(problem, chain)
        self._forget(problem, chain)

    def _forget(self, problem, chain):
        chain.memory.counted = chain.n_returns = 0
        chain.memory.temperature = 0.0
        chain.memory.differences.clear()
        self._listen(problem, chain)

    def _time_step(self, chain):
        """The time that a step takes: of overdamped dynamics, h/2."""
        h = chain.memory.h
        return math.sqrt(h) if self.dynamics.n_rows > 1 else 0.5 * h

    def thin_of(self, chain):
        """Steps from one draw to the next."""
        return self.factor * chain.memory.thin

    def _measure(self, problem, chain):
        """Measure scales, noise and the step at the position of the chain."""
        ones = np.ones(problem.n_parameters)
        if chain.memory is None:
            state = self.dynamics.start(chain.theta, chain.streams.noise)
            anchor = np.zeros((2 if self.anchored else 0, len(ones)))
            chain.memory = BatchMemory(state, ones, 0.0, ones, anchor)
        memory = chain.memory
        if self.preconditioned:
            memory.curvature = curvature_at(problem, chain)
        rescale(chain)
        memory.noise = noise_of_rows(problem, chain, memory.scale)
        memory.shared = self.gradient.shared_noise(problem.n_rows, self.batch_size)
        memory.kicks = KEPT * memory.kicks + self._kicks(problem, chain)
        memory.h = self.h if self.h is not None else self._step_for(memory)
        memory.state[0] = chain.theta / memory.scale
        self._keep(chain)

    def _redraw(self, problem, chain):
        """Redraw the scales of the prior, and follow them with the coordinates."""
        memory, before = chain.memory, chain.memory.scale
        redraw_scales(problem, chain)
        rescale(chain)
        memory.noise = memory.noise * np.square(memory.scale / before)
        memory.state[0] = chain.theta / memory.scale

    def _kicks(self, problem, chain):
        """Sums for the size of the kicks of a batch, where something depends on it."""
        return np.zeros(2)

    def _step_for(self, memory):
        """The step size at which the noise adds a given share to a variance."""
        noise = max(memory.noise.max(), QUIET) * (1.0 / self.batch_size + memory.shared)
        h = self.dynamics.step_for_inflation(SHARE_OF_USERS / noise)
        return float(min(h, LARGEST_STEP**2))

    def _updates(self, chain):
        """Steps of a cycle, friction along the noise, the last step of a cycle, and the others."""
        del chain
        return 1, 0.0, self.dynamics.update, self.dynamics.update

    def _set_anchor(self, problem, chain):
        """Make the position of the chain the anchor, with its gradient from all rows or some."""
        memory, N = chain.memory, problem.n_rows
        n1 = getattr(self.gradient, "anchor_size", None) or N
        rows, c = problem.all_rows, N / n1
        if n1 < N:
            rows = problem.rows(chain.streams.rows.choice(N, n1, replace=False))
        memory.anchor[0] = chain.theta
        with interruptible():
            pieces = pieces_of(problem.model)
            gradient_at(
                pieces, problem.network, rows, chain.theta, c, chain.scratch, memory.anchor[1]
            )
        if self.anchor_moves:
            memory.left = self.gradient.period(N, self.batch_size)

    def _chunk(self, problem, chain, n_steps):
        """Number of steps taken together."""
        memory = chain.memory
        of_a_step = problem.n_parameters + self.batch_size * problem.X.shape[1]
        most = max(1, CHUNK_NUMBERS // of_a_step)
        n = min(n_steps, GIBBS - memory.taken % GIBBS, most)
        return min(n, memory.left) if self.anchor_moves else n

    def run(self, problem, chain, n_steps):
        """Take steps."""
        gradient = np.empty((2, problem.n_parameters))
        while n_steps > 0:
            raise_if_stopped()
            memory = chain.memory
            if self.anchor_moves and memory.left == 0:
                self._set_anchor(problem, chain)
            n = self._chunk(problem, chain, n_steps)
            heat = self._steps(problem, chain, n, gradient)
            if not heat < HOT * n or not np.isfinite(memory.state[0]).all():
                self._recover(chain)
                continue
            n_steps -= n
            memory.taken += n
            memory.counted += n
            memory.temperature += heat
            memory.left -= n
            chain.theta = memory.scale * memory.state[0]
            if memory.taken % GIBBS == 0:
                self._redraw(problem, chain)
            if memory.taken % COPY == 0:
                self._listen(problem, chain)
                self._keep(chain)

    def _listen(self, problem, chain):
        """Measure the noise anew, where something depends on it."""
        if self.anchored and (chain.memory.taken or not self.anchor_moves):
            memory = chain.memory
            found = noise_of_differences(problem, chain, memory.scale, memory.anchor[0])
            memory.differences.append(found)

    def _steps(self, problem, chain, n_steps, gradient):
        """Take steps with fresh batches; the sum of their kinetic temperatures."""
        memory, n, N = chain.memory, self.batch_size, problem.n_rows
        rows, stride = problem.all_rows if n >= N else None, 0
        if rows is None:
            rows, stride = problem.rows(chain.streams.rows.integers(0, N, n_steps * n)), n
        cycle, friction, *updates = self._updates(chain)
        update, between = (pointer(function, UPDATE) for function in updates)
        parameters = frozen(self.dynamics.parameters())
        friction = friction if n < N else 0.0
        moves = Moves(update, between, cycle, memory.taken, friction, memory.h, parameters)
        n_noisy = (memory.taken + n_steps) // cycle - memory.taken // cycle
        noise = chain.streams.noise.standard_normal((n_noisy, problem.n_parameters))
        with interruptible():
            return advance_stochastic(
                pieces_of(problem.model), problem.network, Batches(rows, n, stride, N / n), moves,
                n_steps, memory.state, chain.prior, memory.scale, noise, memory.anchor,
                chain.scratch, gradient,
            )  # fmt: skip

    def _keep(self, chain):
        memory = chain.memory
        memory.copy = memory.state.copy(), memory.scale, memory.noise, chain.scales_now, chain.prior

    def _recover(self, chain):
        raise SamplerDivergedError(
            f"chain {chain.number} diverged with sampler={self.dynamics!r} and step size "
            f"{chain.memory.h:.3g}. Use a smaller step_size, or sampler='auto'."
        )

    def step_of(self, chain):
        """The time step δ = √h."""
        return math.sqrt(chain.memory.h)

    def _inflation(self, chain):
        """Predicted share that the noise of the gradient adds to a variance, the mean over θ."""
        memory, plain = chain.memory, float(chain.memory.noise.mean())
        own = plain
        if self.anchored:
            own = float(np.mean(memory.differences)) if memory.differences else np.nan
        noise = own / self.batch_size + plain * memory.shared
        return self.dynamics.noise_inflation(memory.h) * noise

    def measured(self, chain):
        """Diagnostics of the dynamics."""
        memory, kinetic = chain.memory, self.dynamics.n_rows > 1
        heat = memory.temperature / max(memory.counted, 1)
        return {
            "kinetic_temperature": heat if kinetic else np.nan,
            "noise_inflation": self._inflation(chain),
        }


class CorrectedBAOAB(MinibatchSampler):
    """BAOAB with friction along the noise of the gradient: "auto" on many rows."""

    def _kicks(self, problem, chain):
        if self.batch_size >= problem.n_rows:
            return np.zeros(2)
        return sums_of_kicks(problem, chain, chain.memory.scale, self.batch_size)

    def _step_for(self, memory):
        few = self.batch_size / max(memory.noise.max(), QUIET)
        small = math.sqrt(KICKS / max(memory.q, QUIET))
        return min(min(2.0 * FRICTION * INFLATION * few, small, LARGEST_STEP) ** 2, memory.most)

    def _updates(self, chain):
        f = friction_for(self.step_of(chain), chain.memory.q)
        return CYCLE, f, refresh, kick_and_drift

    def _listen(self, problem, chain):
        """Follow the noise, which depends on where the chain is, with the step.

        The few rows of one measurement may miss those that have most of it, so that all since the
        last adaptation count; the step changes less and less.
        """
        memory = chain.memory
        memory.noise = 0.5 * (memory.noise + noise_of_rows(problem, chain, memory.scale))
        memory.kicks = memory.kicks + self._kicks(problem, chain)
        if self.h is None:
            memory.h = self._step_for(memory)

    def measured(self, chain):
        """Diagnostics of the dynamics, and δ²q."""
        return super().measured(chain) | {"size_of_kicks": chain.memory.h * chain.memory.q}

    def _recover(self, chain):
        """Return to the copy, with a new momentum and a smaller step."""
        memory = chain.memory
        state, memory.scale, memory.noise, chain.scales_now, chain.prior = memory.copy
        memory.state[:] = state
        memory.state[1] = chain.streams.noise.standard_normal(state.shape[1])
        chain.theta = memory.scale * memory.state[0]
        memory.h = memory.most = SHRINK * memory.h
        chain.n_returns += 1


def corrected(batch_size, **settings):
    """The sampler of "auto" on many rows."""
    return CorrectedBAOAB(BAOAB(friction=FRICTION), batch_size, **settings)
