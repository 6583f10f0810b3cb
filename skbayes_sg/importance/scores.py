r"""Gradients of U at draws, by which draws are judged: exact where expansions would mislead.

Where E[(θ_j - θ̂_j) ∂U/∂θ_j] is 1, the variance of θ_j is right. With gradients off by e it is off
by E[(θ_j - θ̂_j) e_j], and right draws may look wrong. An expansion of the rows around the centre
has the largest errors at the farthest draws. So draws are divided into rings by |φ|. Beginning with
the innermost, the sum of this error over rings is estimated from a few draws of each, whose
gradients are exact, and from the ring where it exceeds `ALLOWED` all draws have exact gradients.
"""

from itertools import pairwise

import numpy as np
from scipy import linalg

from ..geometry import preconditioning

__all__ = ["gradients_for_scores"]

RINGS = 0.0, 0.75, 0.94, 0.985, 0.997, 1.0  # shares of draws, the nearest first, between rings
LOOKED_AT = 16  # draws of a ring at which gradients are compared
ALLOWED = 0.02  # largest error of a variance, as a share of it, that expansions may cause
# Gradients of larger tables (rows x predictors x parameters) are not compared. They have many
# parameters, each of which moves the rows little.
MOST_COMPARED = 6e6


def gradients_for_scores(proposal, potential, phi, most):
    """∇_φ U at rows φ, by a cheap potential or exactly, and how many of them are exact.

    Parameters
    ----------
    proposal : Proposal
    potential : Potential
        An expansion, or the exact potential.
    phi : array of shape (n_draws, n_parameters)
    most : float
        Largest number of exact gradients.

    Returns
    -------
    (array of shape (n_draws, n_parameters), int) or None
        None if more than `most` draws would need exact gradients.
    """
    g, target = potential.gradients(phi), proposal.frame.target
    if potential.n_exact == target.n_rows:
        return g, len(g)
    work = target.n_rows * target.model.n_predictors * target.n_parameters
    if work > MOST_COMPARED:
        return g, 0
    order = np.argsort(linalg.norm(phi, axis=1), kind="stable")
    far = order[_n_near(proposal, g, phi, order) :]
    if len(far) > most:
        return None
    if len(far):
        g[far] = proposal.exact.gradients(phi[far])
    return g, len(far)


def _n_near(proposal, g, phi, order):
    """How many of the draws, in increasing order of |φ|, may have the gradients g."""
    ends = np.round(np.array(RINGS) * len(order)).astype(int)
    error = 0.0
    for first, end in pairwise(ends):
        if first == end:
            continue
        ring = order[first:end]
        few = ring[np.unique(np.linspace(0, len(ring) - 1, LOOKED_AT).astype(int))]
        of_few = _products(proposal.frame, phi[few], g[few] - proposal.exact.gradients(phi[few]))
        error = error + len(ring) / len(order) * of_few.mean(axis=0)
        if not np.abs(error).max() <= ALLOWED:
            return first
    return len(order)


def _products(frame, phi, e):
    """(θ_j - θ̂_j) e_j in θ, for rows φ and errors e of gradients in φ."""
    return preconditioning.apply(frame.F, phi) * preconditioning.push_forward(frame.F, e)
