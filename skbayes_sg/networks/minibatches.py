"""Samplers on mini-batches: the noise-corrected one of "auto", and dynamics that users choose.

The step δ of "auto" follows from the noise of the gradient. With V the largest variance of a
one-row gradient in the coordinates of the chain (`skbayes_sg.networks.curvature`) and γ = 1,
gradient noise adds the share I = δ V/(2γn) to a variance; I = 0.9 gives δ = 2γ n I/V. The friction
that takes the noise out, see `skbayes_sg.networks.stochastic`, needs small kicks: δ² q <= 0.3, with
the q of batches that `skbayes_sg.networks.curvature` measures. Where few rows have most of the
noise, as rows of rare levels and rows that are hard to classify do, this is a far smaller step. And
δ is at most 0.15. What chains need is counted in units of time, not in steps: 300 to warm up, and
800 for the draws.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.interrupts import without_interrupts
from .._base.jit import pointer
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
from .guard import MOST_REFUSED
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

# For the step of "auto": γ, the share I that noise would add to a variance without correction, the
# largest δ² q, and the largest δ.
FRICTION, INFLATION, KICKS, LARGEST_STEP = 1.0, 0.9, 0.3, 0.15
# Share that gradient noise adds to a variance under dynamics without correction, which sets h. With
# twice as much the kinetic temperature of small networks exceeds its limit.
INFLATION_UNCORRECTED = 0.1
WARMUP, PRODUCTION = 300.0, 800.0  # units of time of the warm-up, and of all draws of a chain
PARTS = 4  # parts of the warm-up, before each of which the scales s and the noise are measured
START_PASSES, START_STEPS = 20, 500  # passes and steps of Adam at the start, at least
# Steps between redraws of the scales of the prior, and between copies of the state; and the largest
# count of numbers (entries of noise and of rows) in memory for steps that are taken together.
REDRAW_EVERY, COPY_EVERY, CHUNK_NUMBERS = 50, 1000, 1 << 20
# A chain whose kinetic temperature reaches HOT has diverged; "auto" then multiplies h by SHRINK.
HOT, SHRINK = 10.0, 0.8
KEPT = 0.25  # weight of the earlier measurements of kicks, at each adaptation
QUIET = 1e-6  # lower bound of V and q: smaller noise of gradients does not matter


@dataclass
class BatchMemory:
    """The state of the dynamics of one chain, and what adapts and guards it."""

    state: np.ndarray  # (rows of the dynamics, P), in the coordinates θ = s∘φ
    scale: np.ndarray  # (P,): s
    h: float  # step size; δ = √h
    noise: np.ndarray  # (P,): V, the variances of a one-row gradient in the coordinates φ
    anchor: np.ndarray  # (2, P): position and Σ w ∇ℓ there; or (0, P) without anchor
    kicks: np.ndarray = field(default_factory=lambda: np.zeros(2))  # sums whose ratio is q
    shared: float = 0.0  # noise of the anchor's rows, as new in each step, in units of one row's
    # Variances of one-row differences to the gradient at the anchor, each a mean over parameters.
    differences: list = field(default_factory=list)
    largest_h: float = math.inf  # upper bound of h, set at each return to the copy
    curvature: Any = None  # F, where the coordinates are scaled
    steps_to_anchor: int = 0  # until the next anchor
    taken: int = 0  # steps so far
    counted: int = 0  # steps since the last adaptation
    temperature: float = 0.0  # sum over these of the kinetic temperature |v|²/P
    copy: Any = None  # state, s, V, scales and prior to which a chain that diverged returns
    thin: int = 1  # steps from one draw to the next, before `factor`

    @property
    def q(self):
        """The size q of the kicks of a batch; 0 where it is not measured."""
        return float(self.kicks[0] / max(self.kicks[1], 1e-300))


@dataclass
class MinibatchSampler:
    """Chains of any dynamics with stochastic gradients.

    Parameters
    ----------
    dynamics : skbayes_sg.dynamics.Dynamics
    batch_size : int
    h : float or None
        The step size; None to compute it from the noise of the gradient.
    n_warmup, thin : int or None
        Steps of the warm-up, and from one draw to the next. None for 300 units of time of warm-up,
        and 800 for all draws of a chain.
    n_draws : int
    preconditioned : bool
        Whether the coordinates are scaled by s; otherwise θ = φ.
    gradient : skbayes_sg.gradients.Gradient
        With `ControlVariate` and `SVRG`, batches give differences to gradients at an anchor: the
        end of the search for a start, or a recent position of the chain.
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
        """Whether batches give differences to gradients at an anchor."""
        return isinstance(self.gradient, (SVRG, ControlVariate))

    @property
    def anchor_moves(self):
        """Whether the anchor is a recent position of the chain."""
        return isinstance(self.gradient, SVRG)

    def start(self, problem, chain):
        """Find a start with Adam, and measure the scales s, the noise and the step there."""
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
        """Return the number of steps of a chain, as far as is known after its start."""
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
        """Warm up in parts, with new measurements after each; then reset the diagnostics."""
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
        """Measure the scales s, the noise and the step anew, and reset the diagnostics."""
        self._measure(problem, chain)
        self._forget(problem, chain)

    def _forget(self, problem, chain):
        chain.memory.counted = chain.n_returns = 0
        chain.memory.temperature = 0.0
        chain.memory.differences.clear()
        self._remeasure(problem, chain)

    def _time_step(self, chain):
        """Return the time that a step simulates: √h, or h/2 for overdamped dynamics."""
        h = chain.memory.h
        return math.sqrt(h) if self.dynamics.n_rows > 1 else 0.5 * h

    def thin_of(self, chain):
        """Return the number of steps from one draw to the next."""
        return self.factor * chain.memory.thin

    def _measure(self, problem, chain):
        """Measure s, noise and step at the position of the chain, and keep a copy of its state."""
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
        """Redraw the scales of the prior, and change s, V and φ accordingly; θ stays."""
        memory, before = chain.memory, chain.memory.scale
        redraw_scales(problem, chain)
        rescale(chain)
        memory.noise = memory.noise * np.square(memory.scale / before)
        memory.state[0] = chain.theta / memory.scale

    def _kicks(self, problem, chain):
        """Return the two sums whose ratio is q; zero here, where nothing depends on q."""
        return np.zeros(2)

    def _step_for(self, memory):
        """Return the h at which noise adds `INFLATION_UNCORRECTED` to a variance.

        It is at most LARGEST_STEP².
        """
        noise = max(memory.noise.max(), QUIET) * (1.0 / self.batch_size + memory.shared)
        h = self.dynamics.step_for_inflation(INFLATION_UNCORRECTED / noise)
        return float(min(h, LARGEST_STEP**2))

    def _updates(self, chain):
        """Return the length of a cycle, the friction f, and the updates of last and other steps."""
        del chain
        return 1, 0.0, self.dynamics.update, self.dynamics.update

    def _set_anchor(self, problem, chain):
        """Make the position of the chain the anchor, and compute the gradient there.

        All rows are used, or a random `anchor_size` of them if the gradient has one.
        """
        memory, N = chain.memory, problem.n_rows
        n1 = getattr(self.gradient, "anchor_size", None) or N
        rows, c = problem.all_rows, N / n1
        if n1 < N:
            rows = problem.rows(chain.streams.rows.choice(N, n1, replace=False))
        memory.anchor[0] = chain.theta
        with without_interrupts():
            pieces = pieces_of(problem.model)
            gradient_at(
                pieces, problem.network, rows, chain.theta, c, chain.scratch, memory.anchor[1]
            )
        if self.anchor_moves:
            memory.steps_to_anchor = self.gradient.period(N, self.batch_size)

    def _chunk(self, problem, chain, n_steps):
        """Return how many steps to take together, limited by redraws, anchors and memory."""
        memory = chain.memory
        of_a_step = problem.n_parameters + self.batch_size * problem.X.shape[1]
        most = max(1, CHUNK_NUMBERS // of_a_step)
        n = min(n_steps, REDRAW_EVERY - memory.taken % REDRAW_EVERY, most)
        return min(n, memory.steps_to_anchor) if self.anchor_moves else n

    def run(self, problem, chain, n_steps):
        """Take `n_steps` steps; an overheated chain returns to its copy, or raises an error."""
        gradient, refused = np.empty((2, problem.n_parameters)), 0
        while n_steps > 0:
            raise_if_stopped()
            memory = chain.memory
            if self.anchor_moves and memory.steps_to_anchor == 0:
                self._set_anchor(problem, chain)
            n = self._chunk(problem, chain, n_steps)
            heat = self._steps(problem, chain, n, gradient)
            if not heat < HOT * n or not np.isfinite(memory.state[0]).all():
                refused += 1
                self._recover(chain) if refused <= MOST_REFUSED else self._give_up(chain)
                continue
            n_steps, refused = n_steps - n, 0
            memory.taken += n
            memory.counted += n
            memory.temperature += heat
            memory.steps_to_anchor -= n
            chain.theta = memory.scale * memory.state[0]
            if memory.taken % REDRAW_EVERY == 0:
                self._redraw(problem, chain)
            if memory.taken % COPY_EVERY == 0:
                self._remeasure(problem, chain)
                self._keep(chain)

    def _remeasure(self, problem, chain):
        """Measure the noise of differences to the anchor, if there is one, for the diagnostics."""
        if self.anchored and (chain.memory.taken or not self.anchor_moves):
            memory = chain.memory
            found = noise_of_differences(problem, chain, memory.scale, memory.anchor[0])
            memory.differences.append(found)

    def _steps(self, problem, chain, n_steps, gradient):
        """Take steps with fresh batches, and return the sum of their kinetic temperatures."""
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
        with without_interrupts():
            return advance_stochastic(
                pieces_of(problem.model), problem.network, Batches(rows, n, stride, N / n), moves,
                n_steps, memory.state, chain.prior, memory.scale, noise, memory.anchor,
                chain.scratch, gradient,
            )  # fmt: skip

    def _keep(self, chain):
        memory = chain.memory
        memory.copy = memory.state.copy(), memory.scale, memory.noise, chain.scales_now, chain.prior

    def _recover(self, chain):
        self._give_up(chain)

    def _give_up(self, chain):
        raise SamplerDivergedError(
            f"chain {chain.number} diverged with sampler={self.dynamics!r} and step size "
            f"{chain.memory.h:.3g}. Use a smaller step_size, or sampler='auto'."
        )

    def step_of(self, chain):
        """Return the time step δ = √h."""
        return math.sqrt(chain.memory.h)

    def _inflation(self, chain):
        """Return the share that gradient noise is predicted to add to a variance, a mean over θ."""
        memory, plain = chain.memory, float(chain.memory.noise.mean())
        own = plain
        if self.anchored:
            own = float(np.mean(memory.differences)) if memory.differences else np.nan
        noise = own / self.batch_size + plain * memory.shared
        return self.dynamics.noise_inflation(memory.h) * noise

    def measured(self, chain):
        """Return the mean kinetic temperature (NaN without momentum) and the noise inflation."""
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
        step = min(2.0 * FRICTION * INFLATION * few, small, LARGEST_STEP)
        return min(step**2, memory.largest_h)

    def _updates(self, chain):
        f = friction_for(self.step_of(chain), chain.memory.q)
        return CYCLE, f, refresh, kick_and_drift

    def _remeasure(self, problem, chain):
        """Measure the noise, which depends on where the chain is, and adapt the step to it.

        The few rows of one measurement may miss those that have most of the noise, so that the sums
        of kicks of all measurements since the last adaptation are added up; the step changes less
        and less.
        """
        memory = chain.memory
        memory.noise = 0.5 * (memory.noise + noise_of_rows(problem, chain, memory.scale))
        memory.kicks = memory.kicks + self._kicks(problem, chain)
        if self.h is None:
            memory.h = self._step_for(memory)

    def measured(self, chain):
        """Return the diagnostics of the dynamics, and δ²q."""
        return super().measured(chain) | {"size_of_kicks": chain.memory.h * chain.memory.q}

    def _recover(self, chain):
        """Return to the copy, with a new momentum and a smaller step."""
        memory = chain.memory
        state, memory.scale, memory.noise, chain.scales_now, chain.prior = memory.copy
        memory.state[:] = state
        memory.state[1] = chain.streams.noise.standard_normal(state.shape[1])
        chain.theta = memory.scale * memory.state[0]
        memory.h = memory.largest_h = SHRINK * memory.h
        chain.n_returns += 1


def corrected(batch_size, **settings):
    """Return the sampler of "auto" on many rows."""
    return CorrectedBAOAB(BAOAB(friction=FRICTION), batch_size, **settings)
