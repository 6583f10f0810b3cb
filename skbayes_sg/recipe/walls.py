"""Walls: places where the posterior ends although its density is still large.

A log-likelihood that is -inf outside a support which depends on the parameters makes them. A
trajectory that ends behind a wall is rejected, however short its steps are, so that the adaptation
would shorten them for ever. Chains that meet walls bounce off instead (`engine.metropolis`). And
the identities of scores, by which draws are judged, hold only for a density that falls to zero.
"""

from dataclasses import replace

import numpy as np

from .._base import streams
from ..diagnostics.verdict import WALL
from ..engine import metropolis

__all__ = ["are_bounced_off", "are_met", "judged"]

FAR = 2.0  # standard deviations, in each coordinate, of the points at which walls are looked for
POINTS = 16  # number of such points for each chain
HALVINGS = 40  # of the distance to a point behind a wall
# Nats by which U rises on the near side of a wall at most. Where a smooth U overflows, it rises by
# more than any such number before.
RISE = 1e6


def are_bounced_off(chains):
    """Whether the chains bounce off walls."""
    return any(chain.record[metropolis.WALLED] for chain in chains)


def judged(outcome, frame, chains, seed):
    """The `Outcome` of chains, without scores if too many trajectories have met walls."""
    met = metropolis.share_of_trajectories(chains, metropolis.OUTSIDE)
    if met <= WALL or not are_met(frame, chains, seed):
        return outcome
    diagnostics, evidence = outcome.diagnostics | {"wall": met}, {"wall": np.array([met])}
    return replace(
        outcome, scores=None, diagnostics=diagnostics, evidence=outcome.evidence | evidence
    )


def are_met(frame, chains, seed):
    """Whether U jumps from moderate values to infinity within the reach of the chains.

    Each chain looks from its position at random points. Towards the first at which U is not finite,
    the distance is bisected.
    """
    if metropolis.share_of_trajectories(chains, metropolis.OUTSIDE) == 0.0:
        return False
    rng = streams.of_walls(seed)
    with np.errstate(all="ignore"):
        return any(_sees_wall(frame, chain.state[metropolis.POSITION], rng) for chain in chains)


def _sees_wall(frame, phi, rng):
    """Whether there is a wall between a position and one of some random points around it."""

    def U(point):
        return frame.target.value_and_gradient(frame.theta(point[None])[0])[0]

    here = U(phi)
    for away in FAR * rng.standard_normal((POINTS, len(phi))):
        if not np.isfinite(U(phi + away)):
            return _highest_before(U, phi, away) < here + RISE
    return False


def _highest_before(U, phi, away):
    """U at the last point between φ and φ + away at which it is finite, up to bisection."""
    inside, outside = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        if np.isfinite(U(phi + middle * away)):
            inside = middle
        else:
            outside = middle
    return U(phi + inside * away)
