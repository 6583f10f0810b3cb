"""Where the modes of a row density are: descents from many points, and more as long as it pays.

The chance that a further descent ends at a mode that no descent has found is about the share of the
descents whose mode no other has found (Good 1953), and the chance that this mode matters is about
the share of those that do. Descents go on until the product is small and each mode that matters has
been found twice, up to a number that limits their work. If more than a share `UNSEEN` of them have
ended alone at modes that matter then, the search is incomplete, and the verdict says so.
"""

import warnings

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from ..exceptions import SamplerConvergenceWarning
from ..geometry import preconditioning
from ..geometry.modes import LEAST_SHARE, Modes
from .around import (
    frame_around,
    is_unbounded,
    log_laplace_evidence,
    mode_near,
    reaches,
    without_maximum,
)

__all__ = ["modes_at", "modes_near"]

TRIED = 3  # starting points without a maximum nearby after which the posterior is called improper
# Points are left out if their log density is more than HOPELESS (1 + D) nats below that of the best
# point, for D parameters.
HOPELESS = 50.0
# Chance of a new mode that matters down to which there are further descents: a mode with 2 % of the
# mass in the tails of the prior, where one descent in a hundred begins, may be 30 deviations away.
SMALL = 5e-4
UNSEEN = 0.02  # share of descents alone at modes that matter up to which a search is complete
MATTERS = 1e-3  # share of the evidence of all modes from which a new one would matter
# Number of all descents, at most, and their work: rows x parameters x descents.
MOST, WORK = 500, 1e6
CLOSE = 0.1  # standard deviations from a mode within which a point is at it, whatever its metric


class _Found:
    """Frames around the modes that have been found, and how many descents have ended at each."""

    def __init__(self, target, kind):
        self.target, self.kind = target, kind
        self.frames, self.evidence, self.heights, self.counts = [], [], [], []

    def add(self, points):
        """Add the ends of descents, the highest first; those that are hopelessly low are left out.

        No volume of the posterior around these could make up for their density: see `HOPELESS`.
        """
        with np.errstate(all="ignore"):
            log_p = np.array([-self.target.value_and_gradient(theta)[0] for theta in points])
        log_p[np.isnan(log_p)] = -np.inf
        reach = HOPELESS * (1 + self.target.n_parameters)
        for k in np.argsort(-log_p, kind="stable"):
            if not self.frames or log_p[k] >= max(self.heights) - reach:
                self._add_one(points[k], log_p[k])

    def _add_one(self, theta, height):
        for m, known in enumerate(self.frames):
            if linalg.norm(_apart(known, theta)) < CLOSE:
                self.counts[m] += 1
                return
        self.target.model.check_derivatives(self.target, theta)
        frame = frame_around(self.target, theta, self.kind)
        for m, known in enumerate(self.frames):
            if _is_same_mode(frame, known):
                self.counts[m] += 1
                return
        self.frames.append(frame)
        evidence = log_laplace_evidence(frame)
        self.evidence.append(evidence if np.isfinite(evidence) else -np.inf)
        self.heights.append(height)
        self.counts.append(1)

    def _alone(self):
        """Return shares: of descents alone at modes, of modes that matter, and of both together."""
        counts, least = np.array(self.counts), logsumexp(self.evidence) + np.log(MATTERS)
        once, matters = counts == 1, np.array(self.evidence) > least
        return once.sum() / counts.sum(), matters.mean(), (once & matters).sum() / counts.sum()

    @property
    def wants_more(self):
        """Whether further descents may find a mode that matters."""
        once, matters, both = self._alone()
        return both > 0.0 or once * matters > SMALL

    @property
    def is_complete(self):
        """Whether it is unlikely that another mode matters."""
        return self._alone()[2] <= UNSEEN

    def modes(self, searched, complete=True):
        """Return the `Modes`, the one of largest evidence first, without negligible ones."""
        if len(self.frames) == 1:
            return Modes(tuple(self.frames), np.zeros(1), searched, complete)
        evidence = np.array(self.evidence)
        order = np.argsort(evidence)[::-1]
        kept = [k for k in order if evidence[k] > evidence[order[0]] + np.log(LEAST_SHARE)]
        frames = tuple(self.frames[k] for k in kept)
        return Modes(frames, evidence[kept], searched, complete)


def modes_at(target, points, kind):
    """Return the `Modes` at some points, of which those near each other are one.

    `kind` is the preconditioner of their frames.
    """
    found = _Found(target, kind)
    found.add(list(points))
    return found.modes(searched=len(points) > 1)


def modes_near(target, starts, further, request, kind):
    """Return the `Modes` where descents end, from some points and further ones: see the module.

    Where the density rises without bound, the best starting point takes their place. `ValueError`
    if flat priors leave no maximum.
    """
    ends = _maxima(target, starts, request)
    best = _best(target, starts)
    bounded = _bounded(target, best, ends)
    if not bounded:
        _warn_unbounded(target, best, ends[0], request)
        return modes_at(target, [best], kind)
    found, n = _Found(target, kind), len(starts)
    found.add(bounded)
    most = min(MOST, WORK / (target.n_rows * target.n_parameters))
    while further is not None and n < most and found.wants_more:
        more = next(further)
        n += len(more)
        ends = [mode_near(target, start) for start in more]
        ends = [theta for theta in ends if not without_maximum(target, theta).any()]
        found.add(_bounded(target, best, ends))
    complete = further is None or found.is_complete
    return found.modes(n > 1, complete)


def _maxima(target, starts, request):
    """Return the maxima near the starting points; raise `ValueError` if flat priors leave none."""
    ends, labels = [], set()
    for tried, start in enumerate(starts):
        theta = mode_near(target, start)
        open_ended = without_maximum(target, theta)
        if not open_ended.any():
            ends.append(theta)
        labels |= set(np.flatnonzero(open_ended))
        if not ends and tried + 1 == min(TRIED, len(starts)):
            said = " and ".join(f"`{request.name_of(j)}`" for j in sorted(labels))
            raise ValueError(
                "The posterior is improper: the density has no maximum, or does not depend on all "
                f"of its parameters. Give {said} a proper prior, such as Normal(scale=100.0)."
            )
    return ends


def _bounded(target, best, ends):
    """Return the ends of searches that have not followed a density that rises without bound."""
    return [theta for theta in ends if not is_unbounded(target, best, theta)]


def _best(target, starts):
    """Return the starting point at which the density is largest."""
    with np.errstate(all="ignore"):
        heights = [target.value_and_gradient(theta)[0] for theta in starts]
    return starts[int(np.argmin(np.nan_to_num(heights, nan=np.inf)))]


def _warn_unbounded(target, best, end, request):
    """Warn that the density has no maximum: where a search ended, from the `best` start."""
    farthest = request.name_of(np.argmax(np.abs(end - best) / reaches(target, best)))
    warnings.warn(
        "The density has no maximum: it rises without bound while it becomes narrower (the search "
        f"went farthest in `{farthest}`), as that of effects does whose scale becomes zero. Chains "
        "begin at the starting point instead. Steps that are right elsewhere are too long where it "
        "is narrow: write effects as multiples of their scale (mu + tau * z in the "
        "place of theta), or use a prior that vanishes at zero for the scale (InverseGamma).",
        SamplerConvergenceWarning,
        stacklevel=2,
    )


def _apart(frame, theta):
    """Return where θ is in the coordinates of a frame."""
    return preconditioning.solve(frame.F, (theta - frame.centre.theta)[None])[0]


def _is_same_mode(one, other):
    """Whether the centres of two frames are within a standard deviation, in the metrics of both."""
    near = np.sqrt(len(one.centre.theta))
    ends = (_apart(one, other.centre.theta), _apart(other, one.centre.theta))
    return all(linalg.norm(end) < near for end in ends)
