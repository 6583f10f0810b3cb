"""Hamiltonian Monte Carlo on all rows, the reference: it leaves the posterior invariant.

A trajectory takes leapfrog steps of size ε in the coordinates θ = s∘z, for a time of about 1.5 from
a fresh momentum; its end is accepted with the probability min(1, e^(-ΔH)). The warm-up adapts ε by
dual averaging to an acceptance rate of 0.8 (Hoffman and Gelman 2014, sec. 3.2). Between
trajectories the scales of the prior are redrawn given the weights, which leaves the posterior
invariant as well. Products are in double precision.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base.interrupts import without_interrupts
from .._base.threads import raise_if_stopped
from .chain import find_start, redraw_scales, release
from .curvature import curvature_at, rescale
from .gradient import gradient_at, pieces_of

__all__ = ["NetworkHMC"]

# Time of a trajectory in the coordinates z; relative half-width of the random factor of ε, and thus
# of this time; leapfrog steps of a trajectory, at most.
LENGTH, JITTER, MOST_STEPS = 1.5, 0.2, 200
TARGET, FIRST_STEP = 0.8, 0.1  # acceptance rate to which ε is adapted, and ε before that
LEAPFROGS = 10  # typical number of leapfrog steps of a trajectory, to predict the cost of a run
GAMMA, T0, KAPPA = 0.05, 10.0, 0.75  # γ, t_0 and κ of dual averaging


@dataclass
class HMCMemory:
    """What the sampler keeps of one chain besides its position."""

    scale: np.ndarray  # (P,): s of the coordinates θ = s∘z
    epsilon: float  # ε
    potential: float  # U at the start of the last trajectory
    slope: np.ndarray  # (P,): gradient of U there
    curvature: Any = None  # F, where the coordinates are scaled
    accepted: float = 0.0  # sum of the acceptance probabilities of the counted trajectories
    counted: int = 0  # trajectories since the last adaptation


@dataclass
class NetworkHMC:
    """Metropolis-corrected trajectories.

    Parameters
    ----------
    step : float or None
        The step size ε; None to adapt it in the warm-up.
    n_warmup, thin : int
        Trajectories of the warm-up, and from one draw to the next.
    preconditioned : bool
        Whether the coordinates are scaled by s.
    factor : int
        Factor of `thin`, which `skbayes_sg.networks.run.sample` doubles from its second repetition
        of a run on.
    """

    step: float | None
    n_warmup: int
    thin: int
    preconditioned: bool = True
    factor: int = 1
    batch_size: None = None  # all rows

    def thin_of(self, chain):
        """Return the number of trajectories from one draw to the next."""
        del chain
        return self.factor * self.thin

    def start(self, problem, chain):
        """Prepare nothing: the warm-up finds the start."""

    def n_steps(self, chain, n_draws):
        """Return about how many gradients of all rows a chain computes for `n_draws` draws."""
        return LEAPFROGS * (self.n_warmup + n_draws * self.thin_of(chain))

    def warm_up(self, problem, chain):
        """Find a start with Adam, and run the two halves of the warm-up."""
        find_start(problem, chain, self.n_warmup)
        release(problem, chain)
        P = problem.n_parameters
        chain.memory = HMCMemory(np.ones(P), self.step or FIRST_STEP, 0.0, np.empty(P))
        half = self.n_warmup // 2
        self.adapt(problem, chain, half)
        self.adapt(problem, chain, self.n_warmup - half)

    def adapt(self, problem, chain, n_steps=None):
        """Measure the scales s, and make trajectories that adapt ε.

        Their number is by default a third of the warm-up.
        """
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
        """Make `n_steps` trajectories, and count their acceptance probabilities."""
        for _ in range(n_steps):
            chain.memory.accepted += self._trajectory(problem, chain)
            chain.memory.counted += 1

    def _gradient(self, problem, chain, theta, slope_out):
        """Return U(θ) = Σ_i w_i ℓ_i + Σ_j π_j (θ_j - m_j)²/2; set slope_out to its gradient."""
        raise_if_stopped()
        with without_interrupts():
            pieces, rows = pieces_of(problem.model), problem.all_rows
            loss = gradient_at(pieces, problem.network, rows, theta, 1.0, chain.scratch, slope_out)
        off = theta - chain.prior[1]
        slope_out += chain.prior[0] * off
        return loss + 0.5 * (chain.prior[0] * off * off).sum()

    def _trajectory(self, problem, chain):
        """Make one trajectory, and return the probability with which its end was accepted."""
        memory, rng, scale = chain.memory, chain.streams.noise, chain.memory.scale
        memory.potential = self._gradient(problem, chain, chain.theta, memory.slope)
        epsilon = memory.epsilon * rng.uniform(1.0 - JITTER, 1.0 + JITTER)
        n = int(min(max(1, round(LENGTH / memory.epsilon)), MOST_STEPS))
        theta, slope = chain.theta.copy(), memory.slope.copy()
        v = rng.standard_normal(len(theta))
        before = memory.potential + 0.5 * v @ v
        with np.errstate(all="ignore"):
            for _ in range(n):
                v -= 0.5 * epsilon * scale * slope
                theta += epsilon * scale * v
                potential = self._gradient(problem, chain, theta, slope)
                v -= 0.5 * epsilon * scale * slope
            change = potential + 0.5 * v @ v - before
        chance = math.exp(min(0.0, -change)) if change == change else 0.0
        if rng.random() < chance:
            chain.theta = theta
        redraw_scales(problem, chain)
        rescale(chain)
        return chance

    def step_of(self, chain):
        """Return the step size ε."""
        return float(chain.memory.epsilon)

    def measured(self, chain):
        """Return diagnostics of the sampler: the mean acceptance probability, and constants."""
        accepted = chain.memory.accepted / max(chain.memory.counted, 1)
        exact = {"kinetic_temperature": 1.0, "noise_inflation": 0.0}
        return exact | {"acceptance": accepted}
