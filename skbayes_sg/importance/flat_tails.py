"""Whether the posterior has a flat tail, at whose far end there are no draws of the proposal.

Where a likelihood has a plateau, as that of counts with more zeros where these are few, nothing but
the prior ends a tail, and all other parameters have more room there than at the mode.
The warps, which are made along lines through the mode, do not see that room, and weights cannot
tell of draws that were not made. U along the axis of each parameter tells that the tail is there.
Near the mode a tail is told by its height. Farther away a plateau that is low may still have mass,
as it is wide, and a small mass at a large distance s may still determine the variance: the
integrals of e^(-U) and of s² e^(-U) over the axis tell.
"""

import numpy as np
from scipy import linalg

__all__ = ["component_for", "reach_of_tails"]

PLACES = 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0  # in standard deviations, to either side
UNLIKELY = 9.0  # nats below its maximum where the proposal has none of some thousand draws
LIKELY = 6.5  # nats below its maximum where the posterior still has mass that matters
FAR = tuple(2.0 ** (0.5 * np.arange(8, 21)))  # farther places, 16 to 1024 standard deviations away
# Shares of the mass and of the variance, as they are on a normal law's axis, that matter far away.
FAR_MASS, FAR_VARIANCE = 1e-3, 0.1
HIGHEST = 300.0  # nats above the centre up to which heights are told apart
MOST_WORK = 1e7  # largest number of rows times places


def reach_of_tails(proposal):
    """How far flat tails reach along the axis of each parameter, (D,), or None if there are none.

    It is zero along axes without one. The axis of a parameter is the line on which the Laplace
    approximation has its conditional mean given that parameter; distances are in standard
    deviations. Log-concave likelihoods have no plateau. Where U of all rows would take long, tails
    are not looked at.
    """
    target = proposal.frame.target
    work = 2 * target.n_rows * target.n_parameters
    if target.model.convex or work * len(PLACES) > MOST_WORK:
        return None
    reach = _near(proposal)
    if work * len(FAR) <= MOST_WORK:
        reach = np.maximum(reach, _far(proposal))
    return reach if reach.any() else None


def _near(proposal):
    """The farthest of `PLACES`, on either side, where a tail is told by its height, (D,)."""
    rise, is_unlikely = _along_axes(proposal, PLACES)
    is_tail = is_unlikely & (rise < LIKELY)
    return (is_tail * np.array(PLACES)[:, None]).max(axis=(0, 1))


def _far(proposal):
    """The place of `FAR`, on either side, that has most mass if far places matter, (D,)."""
    rise, is_unlikely = _along_axes(proposal, FAR)
    s, each = np.array(FAR), np.array(FAR)[:, None]
    height = np.exp(np.minimum(-rise, HIGHEST)) / np.sqrt(2.0 * np.pi)
    height = np.where(is_unlikely & np.isfinite(rise), height, 0.0)
    mass, variance = (np.trapezoid(height * each**power, s, axis=1) for power in (0, 2))
    matters = (mass > FAR_MASS) | (variance > FAR_VARIANCE)
    return (matters * s[(height * each).argmax(axis=1)]).max(axis=0)


def component_for(frame, reach):
    """A root of the covariance, in coordinates φ, of a component that reaches into flat tails."""
    wide = _axes(frame) * reach[:, None]
    return linalg.cholesky(np.eye(len(reach)) + wide.T @ wide, lower=True)


def _axes(frame):
    """The axes of all parameters in the coordinates φ, (D, D), of length one."""
    return frame.F / linalg.norm(frame.F, axis=1, keepdims=True)


def _along_axes(proposal, places):
    """How much U is higher than at the centre, and whether the proposal is unlikely there.

    Both have the shape (2, n_places, n_parameters): to either side, along the axis of a parameter.
    """
    D = proposal.frame.target.n_parameters
    s = np.concatenate([[0.0], places, np.negative(places)])
    phi = np.multiply.outer(s, _axes(proposal.frame)).reshape(-1, D)
    with np.errstate(all="ignore"):  # U may overflow at places that are far out
        values = proposal.exact.values(phi)
        psi, log_det = proposal.warps.inverse(phi)
        proposed = 0.5 * np.square(psi).sum(axis=1) + log_det
        rise, is_unlikely = values - values[0], proposed - proposed[0] > UNLIKELY
    return tuple(found[D:].reshape(2, -1, D) for found in (rise, is_unlikely))
