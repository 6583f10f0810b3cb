"""The step size without gradient noise: the largest with which chains keep their energy.

The curvature near a mode may be a small part of what it is elsewhere, or many times as large. With
little friction nothing takes up the energy that too long steps add, and chains would become hot.
From the place of each chain `N_STEPS` leapfrog steps with fresh velocities are tried, and forgotten
afterwards; e is the error of |v|²/2 + U in a step. The step size h is halved until the mean of e²/P
is at most `ERROR`, for P parameters, as for the networks of `skbayes_sg.networks`, or doubled as
long as it is. That is done before each part of the warm-up and each round of draws. Chains that
diverge run again with a quarter of h and with fresh velocities, and the next part may have longer
steps again.
"""

from dataclasses import dataclass

import numpy as np

from ..exceptions import SamplerDivergedError
from ..schedules import Constant, Schedule

__all__ = ["Pace", "Steady", "accurate_step", "error_of_energy", "retreating"]

# Leapfrog steps of a trial, halvings of h in a search, at most, and parts of the warm-up.
N_STEPS, N_HALVINGS, N_PARTS = 20, 24, 8
ERROR = 1e-3  # largest mean of e²/P
GROWTH = 16.0  # the longest h over the one that the curvature near a mode allows
RETREATS, RETREAT = 8, 4.0  # retreats after a divergence, at most, and the divisor of h in each
STUCK = 1e-6  # the h over the longest one, below which chains do not move
WAIT = 4  # halvings of h in which e² falls by more than 2^WAIT unless it is rounding


def error_of_energy(chain, h):
    """Return the mean of e²/P over trial steps from the place of the chain, which is restored."""
    theta, F, delta = chain.flat.theta, chain.F if chain.F is not None else 1.0, h**0.5
    centre, errors = theta.clone(), []
    v = chain.noise.normal_(generator=chain.generator).clone()
    chain.zero_noise_entry(v)

    def potential():
        found = float(chain.target.potential())
        chain.zero_noise_entry(chain.flat.gradient)
        return found

    before = potential() + 0.5 * float(v @ v)
    for _ in range(N_STEPS):
        v -= 0.5 * delta * F * chain.flat.gradient
        theta += delta * F * v
        value = potential()
        v -= 0.5 * delta * F * chain.flat.gradient
        after = value + 0.5 * float(v @ v)
        errors.append(after - before)
        before = after
    theta.copy_(centre)
    with np.errstate(all="ignore"):
        return float(np.square(errors).mean() / len(theta))


def accurate_step(chains, h, longest=0.0):
    """Return the largest of h, h/2, ... whose error is at most `ERROR` for all chains.

    If the error of h itself is that small, h is doubled as long as this holds, up to `longest`.
    """
    errors = [_largest_error(chains, h)]
    if errors[0] <= ERROR:
        while 2.0 * h <= longest and _largest_error(chains, 2.0 * h) <= ERROR:
            h *= 2.0
        return h
    for _ in range(N_HALVINGS):
        h *= 0.5
        errors.append(_largest_error(chains, h))
        if errors[-1] <= ERROR:  # false for NaN
            return h
        if len(errors) > WAIT and errors[-1] > errors[-1 - WAIT] / 2.0**WAIT:
            return h * 2.0**WAIT  # e² falls like h³, rounding errors do not
    return h


def _largest_error(chains, h):
    return float(np.max([error_of_energy(chain, h) for chain in chains]))


def retreating(chains, h, work):
    """Return the constant step size h that was used, and the result of ``work(schedule)`` with it.

    If a chain diverges, all chains return to where they began, with fresh velocities, since the
    velocities may be the reason, and h becomes a quarter.
    """
    begun = [[row.clone() for row in chain.state] for chain in chains]
    for _ in range(RETREATS):
        try:
            return h, work(Constant(h))
        except SamplerDivergedError:
            h /= RETREAT
            for chain, state in zip(chains, begun, strict=True):
                chain.go_to(state)
    return h, work(Constant(h))


@dataclass
class Steady:
    """The step size of chains that follow a given schedule, whatever happens."""

    schedule: Schedule
    is_stuck = False

    @property
    def h(self):
        """The first step size."""
        return float(self.schedule(np.arange(1))[0])

    def run(self, chains, work):
        """Return ``work(schedule)``."""
        del chains
        return work(self.schedule)


@dataclass
class Pace:
    """The step size of chains on all rows, which follows the error of the energy.

    Parameters
    ----------
    h : float
        The present step size.
    longest : float
        Upper bound of the step size.
    """

    h: float
    longest: float

    def run(self, chains, work):
        """Return ``work(schedule)`` with a step size that keeps the energy, and set `h` to it."""
        for chain in chains:
            chain.set_reference_noise(self.longest)
        start = accurate_step(chains, self.h, self.longest)
        self.h, found = retreating(chains, start, work)
        return found

    @property
    def is_stuck(self):
        """Whether steps are so short that even a thousand of them lead nowhere."""
        return self.h < STUCK * self.longest
