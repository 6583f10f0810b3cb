"""Whether the posterior has a flat tail, at whose far end there are no draws of the proposal.

Where a likelihood has a plateau, as that of counts with more zeros where these are few, nothing but
the prior ends a tail, and all other parameters have more room there than at the mode.
The warps, which are made along lines through the mode, do not see that room, and weights cannot
tell of draws that were not made. U along the axis of each parameter tells that the tail is there.
"""

import numpy as np
from scipy import linalg

__all__ = ["has_flat_tails"]

PLACES = 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0  # in standard deviations, to either side
UNLIKELY = 9.0  # nats below its maximum where the proposal has none of some thousand draws
LIKELY = 6.5  # nats below its maximum where the posterior still has mass that matters
MOST_WORK = 1e7  # largest number of rows times places


def has_flat_tails(proposal):
    """Whether some place along an axis is likely under the posterior but not the proposal.

    The axis of a parameter is the line on which the Laplace approximation has its conditional mean
    given that parameter. Log-concave likelihoods have no plateau. Where U of all rows would take
    long, tails are not looked at.
    """
    frame = proposal.frame
    D, n_rows = frame.target.n_parameters, frame.target.n_rows
    if frame.target.model.convex or n_rows * 2 * len(PLACES) * D > MOST_WORK:
        return False
    axes = frame.F / linalg.norm(frame.F, axis=1, keepdims=True)
    s = np.concatenate([[0.0], PLACES, np.negative(PLACES)])
    phi = np.multiply.outer(s, axes).reshape(-1, D)
    with np.errstate(all="ignore"):  # U may overflow at places that are far out
        values = proposal.exact.values(phi)
        psi, log_det = proposal.warps.inverse(phi)
        proposed = 0.5 * np.square(psi).sum(axis=1) + log_det
        is_unlikely = proposed - proposed[0] > UNLIKELY
        return bool((is_unlikely & (values - values[0] < LIKELY)).any())
