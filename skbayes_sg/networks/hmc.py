"""Hamiltonian Monte Carlo on all rows, the reference: it leaves the posterior invariant.

In the coordinates θ = s∘z, leapfrog steps of ε for a time of about 1.5 from a fresh momentum, and a
Metropolis test, min(1, e^(-ΔH)). The warm-up adapts ε by dual averaging to an acceptance of 0.8
(Hoffman and Gelman 2014, sec. 3.2). Between trajectories the scales of the prior are redrawn given
the weights, which leaves the posterior invariant as well. Products are in double precision.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base.jit import interruptible
from .._base.threads import raise_if_stopped
from .chain import find_start, redraw_scales, release
from .curvature import curvature_at, rescale
from .gradient import gradient_at, pieces_of

__all__ = ["NetworkHMC"]

LENGTH, JITTER, MOST_STEPS = 1.5, 0.2, 200
TARGET, FIRST_STEP = 0.8, 0.1
LEAPFROGS = 10  # of a trajectory, about, with ε of an ordinary table
GAMMA, T0, KAPPA = 0.05, 10.0, 0.75


@dataclass
class HMCMemory:
    """What a chain has besides its position."""

    scale: np.ndarray
    epsilon: float
    loss: float
    slope: np.ndarray
    curvature: Any = None  # F, where the coordinates are scaled
    accepted: float = 0.0
    counted: int = 0


@dataclass
class NetworkHMC:
    """Metropolis-corrected trajectories.

    Parameters
    ----------
    step : float or None
        ε; None to adapt it.
    n_warmup, thin : int
        Trajectories.
    preconditioned : bool
        Whether the coordinates are scaled.
    factor : int
        Of `thin`, where more draws than asked for were needed.
    """

    step: float | None
    n_warmup: int
    thin: int
    preconditioned: bool = True
    factor: int = 1
    batch_size: None = None  # all rows

    def thin_of(self, chain):
        """Trajectories from one draw to the next."""
        del chain
        return self.factor * self.thin

    def start(self, problem, chain):
        """Prepare nothing: the warm-up finds the start."""

    def n_steps(self, chain, n_draws):
        """Gradients of all rows that a chain computes, about."""
        return LEAPFROGS * (self.n_warmup + n_draws * self.thin_of(chain))

    def warm_up(self, problem, chain):
        """Find a start, and warm up."""
        find_start(problem, chain, self.n_warmup)
        release(problem, chain)
        P = problem.n_parameters
        chain.memory = HMCMemory(np.ones(P), self.step or FIRST_STEP, 0.0, np.empty(P))
        half = self.n_warmup // 2
        self.adapt(problem, chain, half)
        self.adapt(problem, chain, self.n_warmup - half)

    def adapt(self, problem, chain, n_steps=None):
        """Make trajectories, by default a third of the warm-up, that adapt the scales and ε."""
        memory = chain.memory
        if self.preconditioned:
            memory.curvature = curvature_at(problem, chain)
            rescale(chain)
        n_steps = self.n_warmup // 3 if n_steps is None else n_steps
        centre, error, average = math.log(10.0 * memory.epsilon), 0.0, 0.0
        for t in range(1, n_steps + 1):
            chance = self._trajectory(problem, chain)
            if self.step is None:
                error += (TARGET - chance - error) / (t + T0)
                log_epsilon = centre - math.sqrt(t) / GAMMA * error
                average += t**-KAPPA * (log_epsilon - average)
                memory.epsilon = math.exp(log_epsilon)
        if self.step is None and n_steps > 0:
            memory.epsilon = math.exp(average)
        memory.accepted, memory.counted = 0.0, 0

    def run(self, problem, chain, n_steps):
        """Make trajectories."""
        for _ in range(n_steps):
            chain.memory.accepted += self._trajectory(problem, chain)
            chain.memory.counted += 1

    def _gradient(self, problem, chain, theta, slope_out):
        """U(θ), and its gradient."""
        raise_if_stopped()
        with interruptible():
            pieces, rows = pieces_of(problem.model), problem.all_rows
            loss = gradient_at(pieces, problem.network, rows, theta, 1.0, chain.scratch, slope_out)
        off = theta - chain.prior[1]
        slope_out += chain.prior[0] * off
        return loss + 0.5 * (chain.prior[0] * off * off).sum()

    def _trajectory(self, problem, chain):
        """Make one trajectory; the chance with which its end is accepted."""
        memory, rng, scale = chain.memory, chain.streams.noise, chain.memory.scale
        memory.loss = self._gradient(problem, chain, chain.theta, memory.slope)
        epsilon = memory.epsilon * rng.uniform(1.0 - JITTER, 1.0 + JITTER)
        n = int(min(max(1, round(LENGTH / epsilon)), MOST_STEPS))
        theta, slope = chain.theta.copy(), memory.slope.copy()
        v = rng.standard_normal(len(theta))
        before = memory.loss + 0.5 * v @ v
        with np.errstate(all="ignore"):
            for _ in range(n):
                v -= 0.5 * epsilon * scale * slope
                theta += epsilon * scale * v
                loss = self._gradient(problem, chain, theta, slope)
                v -= 0.5 * epsilon * scale * slope
            change = loss + 0.5 * v @ v - before
        chance = math.exp(min(0.0, -change)) if change == change else 0.0
        if rng.random() < chance:
            chain.theta = theta
        redraw_scales(problem, chain)
        rescale(chain)
        return chance

    def step_of(self, chain):
        """ε."""
        return float(chain.memory.epsilon)

    def measured(self, chain):
        """Diagnostics of the sampler."""
        accepted = chain.memory.accepted / max(chain.memory.counted, 1)
        exact = {"kinetic_temperature": 1.0, "noise_inflation": 0.0}
        return exact | {"acceptance": accepted}
