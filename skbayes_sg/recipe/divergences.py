"""Divergences: trajectories that lose so much energy that their steps do not suit the place.

The acceptance rate of most of the posterior is fine with steps that are too long where it is
narrow, as at the thin ends of a ridge or in the neck of a funnel. There trajectories diverge and
are rejected, so that chains do not enter, R-hat and effective sample sizes are good, and the draws
lack the ends. That trajectories diverge is all that shows it.
"""

from dataclasses import replace

import numpy as np

from ..diagnostics.verdict import DIVERGENT
from ..engine import metropolis
from . import walls

__all__ = ["are_many", "forget", "told"]

HALVINGS = 4  # of steps at most
TRIAL = 250  # trajectories of each chain with the adapted step, and after each halving
# Counts of trajectories in the record of a chain.
COUNTS = [metropolis.ACCEPTED, metropolis.TRIED, metropolis.OUTSIDE, metropolis.DIVERGENT]


def forget(chains):
    """Let the counts of trajectories begin anew."""
    for chain in chains:
        chain.record[COUNTS] = 0.0


def are_many(chains):
    """Whether more trajectories have diverged than do by chance."""
    return _share(chains) > DIVERGENT


def told(outcome, chains):
    """The `Outcome` with the share of the trajectories that have diverged, if any have."""
    share = _share(chains)
    if share == 0.0:
        return outcome
    diagnostics = outcome.diagnostics | {"divergent": share}
    evidence = outcome.evidence | {"divergent": np.array([share])}
    return replace(outcome, diagnostics=diagnostics, evidence=evidence)


def _share(chains):
    """The share of the trajectories that have diverged; 0 between walls.

    Derivatives may be infinite next to a wall, where steps of any size diverge.
    """
    if walls.are_bounced_off(chains):
        return 0.0
    return metropolis.share_of_trajectories(chains, metropolis.DIVERGENT)
