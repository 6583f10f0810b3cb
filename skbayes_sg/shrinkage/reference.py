"""The scales around which the posterior is: the mode of their Laplace marginal.

Joint modes of coefficients and log scales are useless: at coefficients of zero the density has no
upper bound as the scale falls. So modes of the coefficients at fixed scales alternate with the mode
of the scales from which the coefficients are integrated out, in the quadratic of the last frame.
"""

import numpy as np
from scipy import optimize

from ..geometry.frame import build_frame
from ..geometry.mode import SUBSAMPLE, find_centre, informative_rows
from .collapse import REACH, collapse_of
from .potential import ScalePrior

__all__ = [
    "at_scales",
    "frame_and_collapse",
    "frame_at",
    "mode_of_scales",
    "negative_log_laplace",
    "reference_of",
    "width_of_scales",
]

ROUNDS = 8  # most rounds: the mode of the coefficients, and then that of the scales
WIDER = 4.0  # of log scales: where the second search begins, above the first
CLOSE = 0.2  # change of the log scales that ends the search, in their standard deviations
LONGEST = 3.0  # longest step in a log scale: a quadratic is not believed far from its centre
# Most Newton steps with changing curvature, and the distance of log scales for their differences.
CLIMBS, SIDE = 4, 0.3
LEAST_BEND = 0.05  # least curvature of -log p in a log scale, whose left tail is a straight line


def at_scales(target, scales, log_scales):
    """The target whose coefficients have normal priors with these scales, which are fixed."""
    rest = target.prior[len(scales.group) :]
    return target.with_prior(np.concatenate([scales.rows(log_scales), rest]))


def reference_of(target, scales, rng, refined=True):
    """The mode of the log scales, and the mode θ of the parameters of a target there.

    If `refined`, and there is one scale, its mode is found with the Hessian at each scale that is
    tried, and not in the quadratic of a single centre. With several scales there may be two modes,
    since coefficients may be noise under a narrow prior: the search begins at narrow and at wide
    scales.
    """
    part = target
    if target.n_rows > 2 * SUBSAMPLE:
        part = target.take(*informative_rows(target, SUBSAMPLE, rng), n_jobs=target.n_jobs)
    s, frame, at = _alternated(part, scales, scales.start, rng)
    if scales.n_scales > 1:
        first = negative_log_laplace(frame, scales, at)
        other, wide, at = _alternated(part, scales, scales.start + WIDER, rng)
        if negative_log_laplace(wide, scales, at) < first:
            s, frame = other, wide
    theta = frame.centre.theta
    if refined and scales.n_scales == 1:
        s, theta = _refined_mode_of_scale(part, scales, s, rng, theta)
    return s, theta


def _alternated(target, scales, s, rng):
    """A mode of the log scales, found from `s`; the last frame, and the log scales of it."""
    theta = None
    for _ in range(ROUNDS):
        frame, collapse = frame_and_collapse(target, scales, s, rng, theta)
        found, width = mode_of_scales(collapse)
        theta, step = frame.centre.theta, np.clip(found - s, -LONGEST, LONGEST)
        at, s = s, s + step
        if (np.abs(step) < CLOSE * width).all():
            break
    return s, frame, at


def _refined_mode_of_scale(target, scales, s, rng, theta):
    """The mode of the Laplace marginal with the curvature of the likelihood at each mode of θ.

    In the quadratic of one centre, scales of few rows or rare classes come out too small.
    """

    def height(s):
        frame = frame_at(target, scales, s, rng, theta)
        return negative_log_laplace(frame, scales, s), frame.centre.theta

    middle, theta = height(s)
    for _ in range(CLIMBS):
        (low, _), (high, _) = height(s - SIDE), height(s + SIDE)
        slope, bend = (high - low) / (2.0 * SIDE), (high - 2.0 * middle + low) / SIDE**2
        step = np.clip(-slope / max(bend, LEAST_BEND), -1.0, 1.0)
        s = s + step
        middle, theta = height(s)
        if abs(step) < CLOSE:
            break
    return s, theta


def negative_log_laplace(frame, scales, s):
    """-log of the Laplace marginal at log scales s, at which the frame is."""
    own = frame.target.value_and_gradient(frame.centre.theta)[0]
    prior = s @ scales.counts + ScalePrior(scales).values(s[None])[0]
    return float(own + prior - np.linalg.slogdet(frame.F)[1])


def frame_at(target, scales, s, rng, theta):
    """The `Frame` of a target at log scales s, with the mode near θ."""
    fixed = at_scales(target, scales, s)
    return build_frame(fixed, find_centre(fixed, dense=True, rng=rng, start=theta), "hessian")


def frame_and_collapse(target, scales, s, rng, theta):
    """The `Frame` of a target at log scales s, and its collapse, with the mode near θ."""
    frame = frame_at(target, scales, s, rng, theta)
    return frame, collapse_of(frame, scales, s, ScalePrior(scales))


def mode_of_scales(collapse):
    """The mode and the widths of the Laplace marginal of the log scales, for one quadratic."""

    def both(s):
        return collapse.negative_log_marginal(s[None])[0], collapse.marginal_slope(s[None])[0]

    start = collapse.log_scales
    bounds = np.stack([start - REACH, start + REACH], axis=1)
    s = optimize.minimize(both, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    return s, width_of_scales(collapse, s)


def width_of_scales(collapse, s):
    """Width of the Laplace marginal at s in each log scale: one over the root of its curvature."""
    step = 1e-3
    ends = s + step * np.array([[1.0], [-1.0]])  # all scales at once: they hardly interact
    slopes = collapse.marginal_slope(ends)
    bend = (slopes[0] - slopes[1]) / (2.0 * step)
    return 1.0 / np.sqrt(np.maximum(bend, LEAST_BEND))
