"""Hamiltonian Monte Carlo in ψ on the surrogate, many chains in lockstep.

In ψ the posterior is nearly N(0, I), with potential |ψ|²/2 + rest(ψ). A step of size ε is half a
kick by the rest, an exact rotation of (ψ, p) by the angle ε, and half a kick:

    p ← p - (ε/2) ∇rest,  (ψ, p) ← (ψ cos ε + p sin ε, p cos ε - ψ sin ε),  p ← p - (ε/2) ∇rest.

Without a rest it is exact for every ε, so that ε = 1 is not rare. All chains share step and length
of a trajectory, and the Metropolis test of each makes its law exact: that of the surrogate, for
which the weights of the draws make up.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["N_CHAINS", "Budget", "chosen", "drawn_length", "draws_of_each", "run_lockstep"]

N_CHAINS = 64
ADAPTATION = 60  # trajectories in which ε is found, and that warm up
EARLY = 0.25  # of the gradients that are allowed, for the first third of these
LEAST_EACH = 64  # draws of each chain, so that chains can be compared
TARGET = 0.8  # acceptance
LARGEST = 1.0  # ε: larger steps make means antithetic, and squares mix slowly
SMALL = 0.5  # ε below which other motions are better, where there are any
LENGTH = 1.5  # of a trajectory, times a number uniform in (0.7, 1.3)
JITTER = 0.2
MOST_STEPS = 64
GAIN = 2.0  # of the adaptation of log ε


def _nothing(n_gradients):
    """What is told where nobody listens."""


@dataclass(frozen=True)
class Budget:
    """What chains in lockstep may take.

    Parameters
    ----------
    most : float
        Gradients, of all chains together.
    tell : callable
        ``tell(n_gradients)`` before so many are taken.
    """

    most: float = np.inf
    tell: Callable = _nothing


UNLIMITED = Budget()


def _n_steps(length, epsilon):
    """Steps of a trajectory."""
    return np.clip(length / epsilon, 1.0, MOST_STEPS)


@dataclass
class Lockstep:
    """Draws of chains that moved together."""

    phi: np.ndarray  # (n_chains, n_draws, n_parameters)
    distances: np.ndarray  # (n_chains, n_draws): log |ψ|²
    epsilon: float
    acceptance: float
    motion: object

    @property
    def n_gradients(self):
        """Gradients so far, of all chains together."""
        return self.motion.n_gradients

    def thinned(self, thin, budget=UNLIMITED):
        """As many further draws with `thin` trajectories from each to the next.

        None if they need more gradients than there may be, with those so far.
        """
        n_draws = self.phi.shape[1]
        needed = self.n_gradients + thin * n_draws * _n_steps(LENGTH, self.epsilon)
        if needed > budget.most:
            return None
        budget.tell(needed)
        return _drawn(self.motion, self.epsilon, n_draws, thin)


class _Motion:
    """Positions, potentials and gradients of all chains."""

    def __init__(self, potential, warps, psi, rng):
        self.potential, self.warps, self.rng = potential, warps, rng
        self.psi, self.n_gradients = psi, 0
        place, self.rest = self._rest(psi)
        self.phi, self.value = place.phi, self._value(place)

    def _value(self, place):
        with np.errstate(all="ignore"):
            return self.potential.values(place.phi) - place.log_det

    def _rest(self, psi):
        """Where ψ is carried, and ∇rest(ψ)."""
        self.n_gradients += 1
        with np.errstate(all="ignore"):
            place = self.warps.at(psi)
            return place, place.pull_back(self.potential.gradients(place.phi)) - psi

    def distances(self):
        """log |ψ|² of each chain."""
        return np.log(np.square(self.psi).sum(axis=1))

    def trajectory(self, epsilon):
        """Move all chains by one; returns the probabilities of acceptance."""
        psi, rest, n = self.psi, self.rest, len(self.psi)
        p = self.rng.standard_normal(psi.shape)
        before = self.value + 0.5 * np.square(p).sum(axis=1)
        epsilon *= 1.0 + JITTER * (2.0 * self.rng.random() - 1.0)
        length = drawn_length(self.rng)
        cos, sin = np.cos(epsilon), np.sin(epsilon)
        for _ in range(round(_n_steps(length, epsilon))):
            p = p - 0.5 * epsilon * rest
            psi, p = psi * cos + p * sin, p * cos - psi * sin
            place, rest = self._rest(psi)
            p = p - 0.5 * epsilon * rest
        phi, value = place.phi, self._value(place)
        with np.errstate(over="ignore"):  # such a trajectory is rejected
            change = value + 0.5 * np.square(p).sum(axis=1) - before
        chance = np.exp(-np.maximum(np.where(np.isfinite(change), change, np.inf), 0.0))
        moved = self.rng.random(n) < chance
        self.psi, self.rest = chosen(moved, psi, self.psi), chosen(moved, rest, self.rest)
        self.phi, self.value = chosen(moved, phi, self.phi), np.where(moved, value, self.value)
        return chance


def drawn_length(rng):
    """The length of a trajectory."""
    return LENGTH * (0.7 + 0.6 * rng.random())


def chosen(moved, new, old):
    """Rows of new positions for the chains that have moved, of old ones for the others."""
    return np.where(moved[:, None], new, old)


def draws_of_each(n_draws, n_chains):
    """Number of draws of each chain for so many in all."""
    return max(-(-n_draws // n_chains), LEAST_EACH)


def run_lockstep(potential, warps, psi, n_draws, rng, budget=UNLIMITED, other=None):
    """`Lockstep` draws, from starting points ψ of all chains, for a `Potential`.

    None if they need more gradients than there may be.

    Parameters
    ----------
    potential : Potential
    warps : Warps
    psi : array of shape (n_chains, n_parameters)
    n_draws : int
        Of each chain.
    rng : numpy.random.Generator
    budget : Budget
    other : callable, optional
        ``other(phi, rng)``: a motion that begins at φ, for where steps would be `SMALL`.
    """
    return _run(_Motion(potential, warps, psi, rng), n_draws, budget, other)


def _run(motion, n_draws, budget, other=None):
    """`Lockstep` draws of a motion, whose step is found first."""
    log_epsilon, average = 0.0, 0.0
    for t in range(ADAPTATION):
        rate = motion.trajectory(np.exp(log_epsilon)).mean()
        log_epsilon += GAIN / np.sqrt(t + 10.0) * (rate - TARGET)
        log_epsilon = min(log_epsilon, np.log(LARGEST))
        if t >= ADAPTATION // 2:
            average += log_epsilon / (ADAPTATION - ADAPTATION // 2)
        known = t >= ADAPTATION // 3  # about how long a step can be
        if known and other is not None and log_epsilon < np.log(SMALL):
            return _run(other(motion.phi, motion.rng), n_draws, budget)
        left = (ADAPTATION - t - 1 + n_draws) * _n_steps(LENGTH, np.exp(log_epsilon))
        needed = motion.n_gradients + left if known else motion.n_gradients / EARLY
        if needed > budget.most:
            return None
        if t == ADAPTATION // 3:
            budget.tell(needed)
    return _drawn(motion, float(np.exp(average)), n_draws, 1)


def _drawn(motion, epsilon, n_draws, thin):
    """`Lockstep` draws, one of `thin` trajectories."""
    phi, rates = np.empty((n_draws, *motion.phi.shape)), []
    distances = np.empty(phi.shape[:2])
    for k in range(n_draws):
        rates += [motion.trajectory(epsilon).mean() for _ in range(thin)]
        phi[k], distances[k] = motion.phi, motion.distances()
    phi, distances = phi.transpose(1, 0, 2), distances.T
    return Lockstep(phi, distances, epsilon, float(np.mean(rates)), motion)
