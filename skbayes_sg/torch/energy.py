"""Steps on all rows without noise: as long as the energy is kept where chains are.

The curvature near a mode may be a small part of what it is elsewhere, or many times as large. With
little friction nothing takes up the energy that too long steps add, and chains would become hot.
From each chain `N_STEPS` steps of leapfrog with fresh velocities, which are forgotten, have errors
e of |v|²/2 + U; h is halved until the mean of e²/P is at most `ERROR`, for P parameters, as for the
networks of `skbayes_sg.networks`, or doubled as long as it is. That is done before each part of the
warm-up and each round of draws. Chains that diverge run again with a quarter of h and with fresh
velocities, and the next part may have longer steps again.
"""

from dataclasses import dataclass

import numpy as np

from ..exceptions import SamplerDivergedError
from ..schedules import Constant, Schedule

__all__ = ["Pace", "Steady", "accurate_step", "error_of_energy", "retreating"]

N_STEPS, N_HALVINGS, N_PARTS = 20, 24, 8
ERROR = 1e-3
GROWTH = 16.0  # of the step that the curvature near a mode allows, if the energy is kept
RETREATS, RETREAT = 8, 4.0
STUCK = 1e-6  # of the longest step
WAIT = 4  # halvings, in which an error that is not rounding falls many times


def error_of_energy(chain, h):
    """Mean of e²/P over steps from where the chain is, to which it returns."""
    theta, F, delta = chain.flat.theta, chain.F if chain.F is not None else 1.0, h**0.5
    centre, errors = theta.clone(), []
    v = chain.noise.normal_(generator=chain.generator).clone()
    chain.hold(v)

    def potential():
        found = float(chain.target.potential())
        chain.hold(chain.flat.gradient)
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
    """The step whose error is small for all chains: the largest of h, h/2, ...

    Where that of h is small, h is doubled as long as it stays so and h is at most `longest`.
    """
    errors = [_largest_error(chains, h)]
    if errors[0] <= ERROR:
        while 2.0 * h <= longest and _largest_error(chains, 2.0 * h) <= ERROR:
            h *= 2.0
        return h
    for _ in range(N_HALVINGS):
        h *= 0.5
        errors.append(_largest_error(chains, h))
        if errors[-1] <= ERROR:  # NaN is not
            return h
        if len(errors) > WAIT and errors[-1] > errors[-1 - WAIT] / 2.0**WAIT:
            return h * 2.0**WAIT  # e² falls with h³: what is left is rounding
    return h


def _largest_error(chains, h):
    return float(np.max([error_of_energy(chain, h) for chain in chains]))


def retreating(chains, h, work):
    """``work(schedule)`` of chains with a constant step, and that h.

    Where a chain diverges all of them return to where they were, with fresh velocities, for theirs
    may be why, and h becomes a quarter.
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
    """Steps that follow a schedule, whatever happens."""

    schedule: Schedule
    is_stuck = False

    @property
    def h(self):
        """The first step."""
        return float(self.schedule(np.arange(1))[0])

    def run(self, chains, work):
        """``work(schedule)``."""
        del chains
        return work(self.schedule)


@dataclass
class Pace:
    """The step of chains on all rows, which changes on the way.

    Parameters
    ----------
    h : float
    longest : float
        Beyond which it does not grow.
    """

    h: float
    longest: float

    def run(self, chains, work):
        """``work(schedule)`` with a step that keeps the energy."""
        for chain in chains:
            chain.refer(self.longest)
        start = accurate_step(chains, self.h, self.longest)
        self.h, found = retreating(chains, start, work)
        return found

    @property
    def is_stuck(self):
        """Whether steps are so short that a thousand of them lead nowhere."""
        return self.h < STUCK * self.longest
