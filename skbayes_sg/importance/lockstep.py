"""Hamiltonian Monte Carlo in ψ on the surrogate, many chains in lockstep.

In ψ the posterior is nearly N(0, I), with potential |ψ|²/2 + rest(ψ). A step of size ε is half a
kick by the rest, an exact rotation of (ψ, p) by the angle ε, and half a kick:

    p ← p - (ε/2) ∇rest,  (ψ, p) ← (ψ cos ε + p sin ε, p cos ε - ψ sin ε),  p ← p - (ε/2) ∇rest.

Without a rest it is exact for every ε, so that ε = 1 is not rare. All chains share the number of
steps of a trajectory, and the Metropolis test of each makes its law exactly that of the surrogate;
the weights of the draws make up for the difference from the posterior. While ε is being found each
chain has its own: otherwise one that begins where the potential is steep would never move, and the
others would make up for its acceptance. Draws are made with the median.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["N_CHAINS", "Budget", "chance_of", "chosen", "drawn_length", "draws_of_each"]
__all__ += ["run_lockstep"]

N_CHAINS = 64
FEW_CHAINS = 16  # number of chains that go on where trajectories are long and gradients dear
MANY_STEPS = 8.0  # trajectories with more steps are long
DEAR = 1e6  # gradients with more multiplications are dear: BLAS is as fast for few chains
ADAPTATION = 60  # trajectories of warm-up, in which ε is found
EARLY = 0.25  # share of the allowed gradients that the first third of the warm-up may take
LEAST_EACH = 64  # least number of draws of each chain, so that chains can be compared
TARGET = 0.8  # acceptance rate at which the adaptation of ε aims
LARGEST = 1.0  # largest ε: larger steps make means antithetic, and squares mix slowly
SMALL = 0.5  # median ε below which another motion takes over, where there is one
LENGTH = 1.5  # length of a trajectory, times a number uniform in (0.7, 1.3)
JITTER = 0.2  # in each trajectory ε is multiplied by a number uniform in 1 ± JITTER
MOST_STEPS = 64  # largest number of steps of a trajectory
USUAL_STEPS = 3.0  # predicted steps of a trajectory of chains on all rows
GAIN = 2.0  # gain of the adaptation of log ε


def _nothing(n_gradients):
    """The `tell` of a `Budget` where nobody is to be told of its use."""


@dataclass(frozen=True)
class Budget:
    """The number of gradients that chains in lockstep may take.

    Parameters
    ----------
    most : float
        Largest number of gradients, each of them for one chain.
    tell : callable
        Called as ``tell(n_gradients)`` before so many gradients are taken.
    others : float
        Number of gradients that cost as much as chains on all rows with trajectories of
        `USUAL_STEPS`. Where chains in lockstep need more steps, it is because of the posterior, and
        chains on all rows would need more as well: the limit rises in proportion.
    """

    most: float = np.inf
    tell: Callable = _nothing
    others: float = np.inf

    def after(self, n_gradients):
        """The `Budget` that is left after so many gradients."""
        return replace(self, most=self.most - n_gradients, others=self.others - n_gradients)

    def of_dearer(self, factor):
        """The same `Budget` in gradients that cost so many times as much."""
        most, others = self.most / factor, self.others / factor
        return Budget(most, lambda n_gradients: self.tell(n_gradients * factor), others)

    def allows(self, n_gradients, n_steps):
        """Whether so many gradients may be taken, with trajectories of so many steps."""
        return n_gradients <= min(self.most, self.others * max(n_steps / USUAL_STEPS, 1.0))


UNLIMITED = Budget()


def _n_steps(length, epsilon):
    """Number of steps of a trajectory of some length, by the median of the chains' ε."""
    return float(np.clip(length / np.median(epsilon), 1.0, MOST_STEPS))


@dataclass
class Lockstep:
    """Draws of chains that moved together."""

    phi: np.ndarray  # (n_chains, n_draws, n_parameters)
    distances: np.ndarray  # (n_chains, n_draws): log |ψ|²
    thin: int  # trajectories for each draw
    epsilon: float  # step size
    acceptance: float  # mean acceptance rate
    motion: object  # the `_Motion` that has made the draws, and may go on
    has_stuck: bool  # whether a chain has not moved at all

    @property
    def n_gradients(self):
        """Number of gradients so far, each of them for one chain."""
        return self.motion.n_gradients

    def thinned(self, thins, budget=UNLIMITED):
        """Go on until as many draws are farther apart; return these, or None.

        Every k-th of the draws so far is kept. `thins` are numbers k, the best one first; the first
        is taken that the budget allows, with the trajectories so far. The result is None if it
        allows none of them.
        """
        n_chains, n_draws = self.phi.shape[:2]
        n_steps = _n_steps(LENGTH, self.epsilon)
        for k in thins:
            n_left = n_draws - n_draws // k
            needed = self.n_gradients + n_chains * k * self.thin * n_left * n_steps
            if budget.allows(needed, n_steps):
                budget.tell(needed)
                return self._joined(k, _drawn(self.motion, self.epsilon, n_left, k * self.thin))
        return None

    def _joined(self, k, later):
        """Every k-th of these draws, and `later` ones."""
        n, n_later = self.phi.shape[1], later.phi.shape[1]
        kept = np.arange(k - 1, n, k)
        shares = np.array([n * self.thin, n_later * later.thin])
        acceptance = shares @ (self.acceptance, later.acceptance) / shares.sum()
        return replace(
            later,
            phi=np.concatenate([self.phi[:, kept], later.phi], axis=1),
            distances=np.concatenate([self.distances[:, kept], later.distances], axis=1),
            acceptance=float(acceptance),
            has_stuck=self.has_stuck and later.has_stuck,
        )


class _Motion:
    """Positions, potentials and gradients of all chains, which `trajectory` moves."""

    def __init__(self, potential, warps, psi, rng):
        self.potential, self.warps, self.rng = potential, warps, rng
        self.psi, self.n_gradients, self.work = psi, 0, potential.work
        place, self.rest = self._rest(psi)
        self.phi, self.value = place.phi, self._value(place)

    def _value(self, place):
        """The potential in ψ at a `Place`: U(φ) - log |det ∂φ/∂ψ|."""
        with np.errstate(all="ignore"):
            return self.potential.values(place.phi) - place.log_det

    def keep(self, n):
        """Go on with the first n chains."""
        for name in ("psi", "rest", "phi", "value"):
            setattr(self, name, getattr(self, name)[:n])

    def _rest(self, psi):
        """The `Place` to which the warps carry rows ψ, and ∇rest(ψ)."""
        self.n_gradients += len(psi)
        with np.errstate(all="ignore"):
            place = self.warps.at(psi)
            return place, place.pull_back(self.potential.gradients(place.phi)) - psi

    def distances(self):
        """log |ψ|² of each chain."""
        return np.log(np.square(self.psi).sum(axis=1))

    def trajectory(self, epsilon):
        """Move all chains by a trajectory, each with its ε; return probabilities of acceptance."""
        psi, rest, n = self.psi, self.rest, len(self.psi)
        p = self.rng.standard_normal(psi.shape)
        before = self.value + 0.5 * np.square(p).sum(axis=1)
        epsilon = epsilon[:, None] * (1.0 + JITTER * (2.0 * self.rng.random() - 1.0))
        length = drawn_length(self.rng)
        cos, sin = np.cos(epsilon), np.sin(epsilon)
        for _ in range(round(_n_steps(length, epsilon))):
            p = p - 0.5 * epsilon * rest
            psi, p = psi * cos + p * sin, p * cos - psi * sin
            place, rest = self._rest(psi)
            p = p - 0.5 * epsilon * rest
        phi, value = place.phi, self._value(place)
        with np.errstate(over="ignore"):  # such a trajectory is rejected
            chance = chance_of(before - value - 0.5 * np.square(p).sum(axis=1))
        moved = self.rng.random(n) < chance
        self.psi, self.rest = chosen(moved, psi, self.psi), chosen(moved, rest, self.rest)
        self.phi, self.value = chosen(moved, phi, self.phi), np.where(moved, value, self.value)
        return chance


def chance_of(log_ratio):
    """Acceptance probabilities min(1, e^r) of Metropolis steps; zero where r is not finite."""
    return np.exp(np.minimum(np.where(np.isfinite(log_ratio), log_ratio, -np.inf), 0.0))


def drawn_length(rng):
    """Draw the length of a trajectory."""
    return LENGTH * (0.7 + 0.6 * rng.random())


def chosen(moved, new, old):
    """Rows of new positions for the chains that have moved, of old ones for the others."""
    return np.where(moved[:, None], new, old)


def draws_of_each(n_draws, n_chains):
    """Number of draws that each chain makes for `n_draws` of all, `LEAST_EACH` at least."""
    return max(-(-n_draws // n_chains), LEAST_EACH)


def run_lockstep(potential, warps, psi, n_draws, rng, budget=UNLIMITED, other=None):
    """Run chains in lockstep on a `Potential` from starting points ψ; return `Lockstep` draws.

    The result is None if they need more gradients than the budget allows.

    Parameters
    ----------
    potential : Potential
    warps : Warps
    psi : array of shape (n_chains, n_parameters)
    n_draws : int
        Number of draws of all chains; each chain makes `LEAST_EACH` at least.
    rng : numpy.random.Generator
    budget : Budget
    other : callable, optional
        ``other(phi, rng)`` returns a motion that begins at φ. It takes over where the median ε is
        below `SMALL`.
    """
    return _run(_Motion(potential, warps, psi, rng), n_draws, budget, other)


def _run(motion, n_draws, budget, other=None):
    """Find the step size of a motion, and return its `Lockstep` draws, or None."""
    log_epsilon, average = np.zeros(len(motion.phi)), 0.0
    for t in range(ADAPTATION):
        rates = motion.trajectory(np.exp(log_epsilon))
        log_epsilon += GAIN / np.sqrt(t + 10.0) * (rates - TARGET)
        log_epsilon = np.minimum(log_epsilon, np.log(LARGEST))
        if t >= ADAPTATION // 2:
            average += np.median(log_epsilon) / (ADAPTATION - ADAPTATION // 2)
        known = t >= ADAPTATION // 3  # whether it is about known how long a step can be
        if known and other is not None and np.median(log_epsilon) < np.log(SMALL):
            return _run(other(motion.phi, motion.rng), n_draws, budget)
        n_steps = _n_steps(LENGTH, np.exp(log_epsilon))
        if t == ADAPTATION // 3 and _few_suffice(motion, n_steps):
            motion.keep(FEW_CHAINS)
            log_epsilon = log_epsilon[:FEW_CHAINS]
        needed = motion.n_gradients / EARLY
        if known:
            n_left = ADAPTATION - t - 1 + draws_of_each(n_draws, len(motion.phi))
            needed = motion.n_gradients + len(motion.phi) * n_left * n_steps
        if not budget.allows(needed, n_steps):
            return None
        if t == ADAPTATION // 3:
            budget.tell(needed)
    n_each = draws_of_each(n_draws, len(motion.phi))
    return _drawn(motion, float(np.exp(average)), n_each, 1)


def _few_suffice(motion, n_steps):
    """Whether a few chains had better go on alone, since the warm-up is most of the cost."""
    return n_steps > MANY_STEPS and motion.work > DEAR and len(motion.phi) > FEW_CHAINS


def _drawn(motion, epsilon, n_draws, thin):
    """Make `Lockstep` draws of a motion, with `thin` trajectories for each."""
    n_chains = len(motion.phi)
    phi, rates = np.empty((n_chains, n_draws, motion.phi.shape[1])), np.zeros(n_chains)
    distances, begun = np.empty(phi.shape[:2]), motion.phi
    for k in range(n_draws):
        for _ in range(thin):
            rates += motion.trajectory(np.full(n_chains, epsilon)) / (n_draws * thin)
        phi[:, k], distances[:, k] = motion.phi, motion.distances()
    stuck = any((own == first).all() for own, first in zip(phi, begun, strict=True))
    return Lockstep(phi, distances, thin, epsilon, float(rates.mean()), motion, stuck)
