"""Steps on all rows without noise: short enough for the energy to be kept where chains are.

At its start a chain is near a mode, where the curvature may be a small part of what it is later: as
y has little noise, and σ falls. With little friction nothing takes up the energy that steps
then add, and chains would become hot. From each chain `N_STEPS` steps of leapfrog with fresh
velocities, which are forgotten, have errors e of |v|²/2 + U; h is halved until the mean of e²/P is
at most `ERROR`, for P parameters, as for the networks of `skbayes_sg.networks`. That is done before
each part of the warm-up and each round of draws; those that diverge run again with a quarter of h.
"""

from functools import partial

import numpy as np

from ..exceptions import SamplerDivergedError
from ..schedules import Constant

__all__ = ["accurate_step", "error_of_energy", "retreating", "warm_up_in_parts"]

N_STEPS, N_HALVINGS, N_PARTS = 20, 24, 8
ERROR = 1e-3
RETREATS, RETREAT = 8, 4.0


def error_of_energy(chain, h):
    """Mean of e²/P over steps from where the chain is, to which it returns."""
    theta, F, delta = chain.flat.theta, chain.F if chain.F is not None else 1.0, h**0.5
    centre, errors = theta.clone(), []
    v = chain.noise.normal_(generator=chain.generator).clone()
    before = float(chain.target.potential()) + 0.5 * float(v @ v)
    for _ in range(N_STEPS):
        v -= 0.5 * delta * F * chain.flat.gradient
        theta += delta * F * v
        value = float(chain.target.potential())
        v -= 0.5 * delta * F * chain.flat.gradient
        after = value + 0.5 * float(v @ v)
        errors.append(after - before)
        before = after
    theta.copy_(centre)
    with np.errstate(all="ignore"):
        return float(np.square(errors).mean() / len(theta))


def accurate_step(chains, h):
    """The largest of h, h/2, ... whose error is small for all chains."""
    for _ in range(N_HALVINGS):
        if max(error_of_energy(chain, h) for chain in chains) <= ERROR:  # NaN is not
            break
        h *= 0.5
    return h


def retreating(chains, h, work):
    """``work(schedule)`` of chains with a constant step, and that h.

    Where a chain diverges all of them return to where they were, and h becomes a quarter.
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


def warm_up_in_parts(chains, h, n_steps, run):
    """Run chains for so many steps, shorter and shorter ones; the last h.

    Parameters
    ----------
    chains : list of ModuleChain
    h : float
        The longest step.
    n_steps : int
    run : callable
        ``run(schedule, n_steps)`` runs all chains.
    """
    for part in np.array_split(np.arange(n_steps), N_PARTS):
        h, _ = retreating(chains, accurate_step(chains, h), partial(run, n_steps=len(part)))
    return accurate_step(chains, h)
