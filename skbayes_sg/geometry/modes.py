r"""The modes of a posterior that may have several, each with the share that Laplace gives it.

U, the negative log posterior, has one minimum if it is convex: if losses are convex in the
predictors and priors are log-concave. Where that is not known (`may_have_modes`), descents begin at
points that are far apart:

* the likelihood alone (a wide normal prior), and the intercept alone (a narrow one): with noise
  that is unknown, the first has little of it and the second much;
* robust regression: fits of parts of the rows, and, from each mode that is found, lines through
  another part (`skbayes_sg.geometry.robust_modes`);
* Student's t priors: each strong coefficient alone, and from each mode that is found, a coefficient
  set to zero, set free, or passed on to a column that is correlated with it;
* draws of the priors, every other one twice as far from the middle, and their mirror images: two
  for each known model, and ten for functions of users.

Minima that lie within a standard deviation of each other, in the metrics of both, are one. The
share of a mode is its Laplace evidence,

    log Z ≈ -U(θ̂) - ½ log det ∇²U(θ̂) + (D/2) log 2π,

which is rough where tails are heavy, so that modes are kept down to a small share.

With many rows the search uses `SEARCH_ROWS` of them, or 20 for each parameter, chosen as for the
centre; only minima that are found beside the centre are followed on all rows. The number of
descents is bounded by a model of their cost, `SEARCH_SECONDS` in all: each takes about `STEPS`
Hessians of these rows. No two runs differ: nothing here depends on the seed.
"""

import heapq
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from .._base import streams
from ..kernels.layout import FACT_PREDICTOR, FACT_Y
from ..priors import Flat, Laplace, Normal, StudentT
from ..priors.columns import KIND, LOC, POWER, SCALE, SHAPE
from ..priors.families import of_family
from ..priors.table import prior_value, starting_point
from . import preconditioning
from .frame import build_frame
from .mode import decrement, find_centre, informative_rows, newton, not_finite
from .robust_modes import robust_starts, turned

__all__ = ["Modes", "find_modes", "in_proportion", "log_laplace", "may_have_modes"]

LEAST_SHARE = 1e-5  # a mode with a smaller share of the Laplace evidence does not matter
SEARCH_ROWS = 2000  # number of rows of the search, unless 20 for each parameter are more
SEARCH_SECONDS = 2.0  # largest predicted time of all descents
STEPS = 15  # predicted number of Newton steps, with a Hessian each, of a descent
FEWEST, MOST = 8, 60  # smallest and largest number of descents
LONGER = 10.0  # the steps of all descents may take so many times as long as is predicted
MOST_MODES = 24  # largest number of minima that are followed on all rows
CUT = 0.3  # noise below this share of that of a mode is excluded where others are left out
FITTED = 1e3  # rows with residuals below so many times a noise at its floor are fitted exactly
NEAR = 1.0  # posterior standard deviations within which two minima are one
EXPANDED = 15.0  # moves begin at modes with log evidence at most so many nats below the best
ON_THE_WAY, SLIGHT = 12, 1e-3  # points on a way from a minimum, and nats by which U has fallen
CONVEX = 4.0  # safety factor in the comparison of curvatures of likelihood and prior
WIDE, NARROW = 1e-4, 1e8  # precisions of normal priors, in units of the likelihood's curvature
STRONG = 2.0  # nats that a coefficient must add to the likelihood to begin a descent
ALONE = 3  # largest number of coefficients that are tried alone
LOSS = 20.0  # nats that a coefficient set to zero may lose beyond what its prior gains
CORRELATED = 0.4  # correlation in the likelihood's Hessian above which a coefficient is passed on
MOST_RELATED = 4  # largest number of columns to which a coefficient is passed on
AT_FLOOR = 1.0  # noise up to so many times its floor is rounding error


@dataclass(frozen=True)
class Modes:
    """The modes that matter, the largest first.

    Parameters
    ----------
    frames : tuple of Frame
        Coordinates around each mode.
    log_evidence : array of shape (n_modes,)
        Log evidence of each mode in Laplace's approximation, up to a constant.
    searched : bool
        Whether other modes were looked for. If not, U has only one by its shape, or it is not known
        whether there are others.
    complete : bool
        Whether the search has ended by itself, and not by a limit.
    degenerate : bool
        Whether a mode was left out in which the noise is rounding error, because some rows are
        fitted exactly.
    """

    frames: tuple
    log_evidence: np.ndarray
    searched: bool = False
    complete: bool = True
    degenerate: bool = False

    def __len__(self):
        return len(self.frames)

    @property
    def frame(self):
        """The frame of the largest mode, in which chains move."""
        return self.frames[0]

    @cached_property
    def shares(self):
        """Share of each mode in the evidence, (n_modes,), with sum one."""
        return np.exp(self.log_evidence - logsumexp(self.log_evidence))

    def nearest(self, theta):
        """Index of the mode whose Laplace approximation is largest at θ, of any leading shape."""
        return np.argmax([log_laplace(frame, theta) for frame in self.frames], axis=0)

    def of_chains(self, n_chains):
        """Index of the mode at which each chain begins: as many at each as its share asks for."""
        return in_proportion(self.shares, n_chains)

    def begun(self, positions):
        """Positions of chains around the centre, each moved to the mode where it begins."""
        own = self.of_chains(len(positions))
        shift = np.array([frame.centre.theta - self.frame.centre.theta for frame in self.frames])
        return (
            positions + preconditioning.solve(self.frame.F, shift)[own] if own.any() else positions
        )


def in_proportion(shares, n):
    """Indices (n,) of which each occurs as often as its share asks for, in increasing order."""
    places = (np.arange(n) + 0.5) / n
    return np.minimum(np.searchsorted(np.cumsum(shares), places), len(shares) - 1)


def log_laplace(frame, theta):
    """Log density of a frame's Laplace approximation at θ, up to a constant that all share."""
    R = frame.laplace_root
    z = preconditioning.solve(R, (theta - frame.centre.theta).reshape(-1, theta.shape[-1]))
    return (-0.5 * np.square(z).sum(axis=1) - log_volume(R)).reshape(theta.shape[:-1])


def log_volume(F):
    """log |det F|."""
    return float(np.log(np.abs(F[0])).sum() if len(F) == 1 else np.linalg.slogdet(F)[1])


# -- where there may be several -------------------------------------------------------------------


def may_have_modes(frame):
    """Whether modes are looked for: U is not known to be convex, and the search can be afforded."""
    target = frame.target
    if not frame.dense or target.memory is not None:  # a quadratic is true around one mode alone
        return False
    if not target.model.convex:  # with fewer rows than coefficients U may have no lower bound
        return target.model.discrete or target.weight.sum() > target.n_parameters
    if of_family(target.prior, Normal, Laplace, Flat).all():
        return False
    return not _outweighed(frame)


def _outweighed(frame):
    """Whether the likelihood bends up, at the centre, by far more than priors ever bend down."""
    prior = frame.target.prior
    heavy = of_family(prior, StudentT)
    if not (heavy | of_family(prior, Normal, Laplace, Flat)).all():
        return False
    bend = np.where(of_family(prior, Normal), frame.prior_curvature, 0.0)
    bend[heavy] = -CONVEX * _largest_bend(prior[heavy])
    return _is_positive(frame.centre.hessian + np.diag(bend))


def _is_positive(H):
    """Whether a matrix is positive definite, in units in which its diagonal is one."""
    size = np.sqrt(np.maximum(np.abs(np.diag(H)), np.finfo(float).tiny))
    try:
        linalg.cholesky(H / size / size[:, None])
    except (linalg.LinAlgError, ValueError):
        return False
    return True


# -- the search -----------------------------------------------------------------------------------


def find_modes(frame):
    """Find the `Modes` of a posterior, beginning with a frame around one of them."""
    if not (frame.centre.is_mode and may_have_modes(frame)):
        return Modes((frame,), np.zeros(1))
    target = frame.target.with_prior(frame.centre.prior)
    n, part = max(SEARCH_ROWS, 20 * target.n_parameters), target
    if target.n_rows > n:
        part = target.take(*informative_rows(target, n, streams.fixed()), n_jobs=target.n_jobs)
    search = _Search(part, frame.centre.theta)
    with np.errstate(all="ignore"):  # descents from far away may overflow, and then end
        search.run()
    frames, at_floor = [frame], []
    for mode in search.others():
        other = _followed(frame, mode, part.n_rows)
        if other is None or any(_is_same_mode(other, known) for known in frames):
            continue
        frames.append(other)
    degenerate = [_is_at_floor(target, own.centre.theta) for own in frames]
    at_floor = [own for own, is_so in zip(frames, degenerate, strict=True) if is_so]
    others = [own for own, is_so in zip(frames, degenerate, strict=True) if not is_so]
    if not others or (degenerate[0] and not _fits_ties(frame)):
        at_floor, others = [], frames
    return _weighed(others, at_floor, search.complete)


def _followed(frame, mode, n_searched):
    """The frame around a minimum that was found near `mode`; None if it is no minimum of all rows.

    If the search has used a part of the rows, `n_searched` of them, a minimum is followed on all
    rows unless U of all rows is far higher there than at the centre.
    """
    target = frame.target
    if n_searched < target.n_rows:
        expected = 10.0 + 5.0 * target.n_parameters * target.n_rows / n_searched
        values = [target.value_and_gradient(theta)[0] for theta in (mode, frame.centre.theta)]
        if values[0] > values[1] + expected:
            return None
    rng = streams.fixed()
    centre = find_centre(target, dense=True, rng=rng, start=mode)
    other = build_frame(target, centre, frame.kind)
    return other if _hessian_at(target.with_prior(centre.prior), centre) is not None else None


def _is_same_mode(one, other):
    """Whether the centres of two frames are within `NEAR` of each other in both metrics."""
    shift = one.centre.theta - other.centre.theta
    steps = [preconditioning.solve(frame.laplace_root, shift) for frame in (one, other)]
    return max(linalg.norm(step) for step in steps) < NEAR


def _is_at_floor(target, theta):
    """Whether the noise of robust regression is at its floor at θ."""
    return bool(target.model.heavy_tailed and np.exp(theta[-2]) < AT_FLOOR * target.prior[-2, LOC])


def _fits_ties(frame):
    """Whether all rows that the centre of a frame fits exactly have the same response.

    Then they are a lump of tied responses among others, and not rows without noise on a line.
    """
    target, theta = frame.target, frame.centre.theta
    y = target.data.facts[:, FACT_Y]
    eta = frame.facts[:, FACT_PREDICTOR]
    fitted = y[np.abs(y - eta) < FITTED * np.exp(theta[-2])]
    return len(fitted) > 0 and np.ptp(fitted) == 0.0


def _weighed(frames, at_floor, complete):
    """The `Modes` of the frames that matter, in order.

    Those at the floor of the noise are left out, and `Modes.degenerate` says whether any matters.
    The floor is raised then, as chains would fall into them.
    """
    evidence = np.array([_log_evidence(frame) for frame in frames])
    total = logsumexp(evidence)
    if not np.isfinite(total):
        raise not_finite(frames[0].centre.theta)
    least = total + np.log(LEAST_SHARE)
    degenerate = any(_log_evidence(frame) > least for frame in at_floor)
    kept = np.flatnonzero(evidence >= least)
    kept = kept[np.argsort(-evidence[kept], kind="stable")]
    own = [frames[m] for m in kept]
    if degenerate:
        own = _cut_off(own)
    return Modes(tuple(own), evidence[kept], True, complete, degenerate)


def _cut_off(frames):
    """The frames with a prior of the noise that is cut off at `CUT` of the least noise of any."""
    prior = frames[0].target.prior.copy()
    least = CUT * min(np.exp(frame.centre.theta[-2]) for frame in frames)
    prior[-2, LOC] = max(prior[-2, LOC], least)
    target, rng = frames[0].target.with_prior(prior), streams.fixed()
    centres = [find_centre(target, dense=True, rng=rng, start=f.centre.theta) for f in frames]
    return [build_frame(target, centre, frames[0].kind) for centre in centres]


def _log_evidence(frame):
    """The log of the Laplace evidence of the mode of a frame, up to a constant."""
    target, centre = frame.target, frame.centre
    H = _hessian_at(target.with_prior(centre.prior), centre)
    H = centre.hessian + np.diag(frame.prior_curvature) if H is None else H
    return -target.value_and_gradient(centre.theta)[0] - 0.5 * np.linalg.slogdet(H)[1]


def _hessian_at(target, centre):
    """∇²U at a centre if it is positive definite, as at a minimum; None at a saddle point."""
    H = centre.hessian + np.diag(_second_derivative(target, centre.theta))
    return H if _is_positive(H) else None


def _second_derivative(target, theta):
    """The second derivative of the prior's -log p in each parameter, by differences.

    `prior_curvature` does not do, since it is never negative.
    """
    step = 1e-4 / np.sqrt(np.maximum(target.prior_curvature(theta), 1e-12))
    step = np.minimum(step, 1e-4 * np.maximum(np.abs(theta), target.prior[:, SCALE]))
    ends = target.prior_gradient(theta + step), target.prior_gradient(theta - step)
    return (ends[0] - ends[1]) / (2.0 * step)


@dataclass(frozen=True)
class _Minimum:
    """A minimum of U that a descent has found."""

    theta: np.ndarray
    value: float  # U there
    hessian: np.ndarray  # of the negative log-likelihood
    F: np.ndarray  # F Fᵀ is about the inverse Hessian of U: the metric around the minimum
    log_evidence: float  # in Laplace's approximation, up to a constant


class _Search:
    """Descents from many points, and the minima that they have found."""

    def __init__(self, target, centre):
        self.target, self.centre = target, centre
        D, self.found, self.complete = target.n_parameters, [], True
        self.heavy = np.flatnonzero(of_family(target.prior, StudentT))
        # Seconds of a descent, by a fixed model of the machine.
        step = 1e-9 * (target.n_rows * (60.0 * target.model.n_predictors + D**2) + 20.0 * D**3)
        self.left = int(np.clip(SEARCH_SECONDS / (STEPS * (step + 3e-4)), FEWEST, MOST))
        self.steps_left = max(FEWEST * STEPS, int(LONGER * SEARCH_SECONDS / step))

    def run(self):
        """Descend from the centre, from all starting points, and from moves away from minima."""
        self.descend(self.centre)
        for start in self._starts():
            self.descend(start)
        if len(self.heavy):
            self._moves(self._moves_from)
        if self.target.model.heavy_tailed:  # not said to be incomplete if time runs out
            self._moves(self._turned_from, told=False)

    def others(self):
        """Positions θ of the minima that matter, without the first, by decreasing evidence."""
        above = [m for m in self.found if not _is_at_floor(self.target, m.theta)] or self.found
        best = max((m.log_evidence for m in above), default=-np.inf)
        rough = np.log(LEAST_SHARE) - 5.0
        others = [m for m in self.found[1:] if m.log_evidence > best + rough]
        others.sort(key=lambda m: -m.log_evidence)
        self.complete &= len(others) <= MOST_MODES
        return [m.theta for m in others[:MOST_MODES]]

    def descend(self, start):
        """Descend from a point; return the `_Minimum` if it is new, else None."""
        if self.left == 0 or not np.isfinite(start).all():
            return None
        self.left -= 1
        radius = np.sqrt(len(start))
        options = {"max_iter": 60, "radius": radius, "known": self._is_known}
        mode = self._minimum(newton(self.target, start, 0.05, **options))
        if mode is None or any(_is_same_minimum(mode, known) for known in self.found):
            return None
        self.found.append(mode)
        return mode

    def _is_known(self, theta, value):
        """Whether a descent need not go on, because it is near a known minimum or takes too long.

        It is asked after each step, which it counts. Where noise can fit as many rows as there are
        columns exactly, descents take far more steps than `STEPS`.
        """
        self.steps_left -= 1
        if self.steps_left < 0:
            return True
        depth = 0.5 * len(theta)
        return any(
            value < known.value + depth
            and linalg.norm(preconditioning.solve(known.F, theta - known.theta)) < 0.5 * NEAR
            for known in self.found
        )

    def _minimum(self, theta):
        """The `_Minimum` at a point; None if U has none there.

        The first point is the centre, and need not be exactly at a minimum.
        """
        target = self.target
        value, g = target.value_and_gradient(theta)
        likelihood = target.likelihood_hessian(theta)
        if not (np.isfinite(value) and np.isfinite(likelihood).all()):
            return None
        H = likelihood + np.diag(_second_derivative(target, theta))
        if self.found and (not _is_positive(H) or decrement(H, g) > NEAR):
            return None
        F, _ = preconditioning.from_any_hessian(likelihood + np.diag(target.prior_curvature(theta)))
        return _Minimum(theta, value, likelihood, F, -value - 0.5 * np.linalg.slogdet(H)[1])

    # -- where to begin -----------------------------------------------------------------------

    def _starts(self):
        """Yield starting points of descents that are far from each other: see the module."""
        target, first = self.target, starting_point(self.target.prior)
        if target.model.heavy_tailed:
            yield from robust_starts(target)
        if len(self.heavy) or not target.model.heavy_tailed:
            yield self._under_normal(first, WIDE)
            null = self._under_normal(first, NARROW)
            yield null
            yield from self._alone(null)
        rng = streams.fixed()
        for k in range(target.model.n_prior_starts):
            away = (1.0 + k % 2) * _prior_draw(target.prior, rng)
            yield first + away
            yield first - away  # a mode that is the mirror image of another is not missed

    def _under_normal(self, start, precision):
        """The mode under normal priors, with a multiple of the likelihood's curvature as precision.

        Flat priors and those of extra parameters remain as they are.
        """
        target = self.target
        curvature = target.likelihood_curvature(start)
        if self.found and target.model.n_extra:
            curvature = np.minimum(curvature, np.diag(self.found[0].hessian))
        prior, normal = target.prior.copy(), Normal()._table((1,))[0]
        given = ~of_family(prior, Flat)
        given[len(prior) - target.model.n_extra :] = False
        prior[given, KIND], prior[given, SHAPE] = normal[KIND], normal[SHAPE]
        curvature = np.maximum(curvature, 1e-12 * max(curvature.max(), 1e-300))
        prior[given, SCALE] = 1.0 / np.sqrt(precision * curvature[given])
        return newton(target.with_prior(prior), start, 0.05, max_iter=60)

    def _alone(self, null):
        """Yield `null` with a single strong coefficient changed, for the strongest one first."""
        steps, gain = self._free_steps(null, self.target.likelihood_hessian(null))
        order = np.argsort(-gain)
        for j in self.heavy[order[gain[order] > STRONG]][:ALONE]:
            yield _moved(null, {j: null[j] + steps[j]})

    def _free_steps(self, theta, H):
        """Newton steps of single coefficients in the likelihood, and gains of `heavy` in nats."""
        _, g = self.target.likelihood(theta)
        h = np.maximum(np.diag(H), np.finfo(float).tiny)
        return -g / h, (0.5 * g**2 / h)[self.heavy]

    # -- from mode to mode --------------------------------------------------------------------

    def _moves(self, moves_from, told=True):
        """Descend from the points that `moves_from` gives for each minimum, the best minimum first.

        New minima take their turn. If a limit ends this, the search is incomplete, if `told` and if
        any point that was not tried may lead to another minimum.
        """
        order, queue = count(), []
        for mode in self.found:
            heapq.heappush(queue, (-mode.log_evidence, next(order), mode))
        while queue:
            _, _, mode = heapq.heappop(queue)
            if mode.log_evidence < max(m.log_evidence for m in self.found) - EXPANDED:
                return
            starts = iter(moves_from(mode))
            for start in starts:
                if len(self.found) > 2 * MOST_MODES or self.left == 0:
                    untried = [(mode, chain([start], starts))]
                    untried += [(other, moves_from(other)) for _, _, other in queue]
                    self.complete &= not (told and self._lead_elsewhere(untried))
                    return
                new = self.descend(start)
                if new is not None:
                    heapq.heappush(queue, (-new.log_evidence, next(order), new))

    def _lead_elsewhere(self, untried):
        """Whether any of the points that were not tried, of each minimum, may lead to another one.

        Descents would return from points between which and the minimum U only rises.
        """
        if len(self.found) > 2 * MOST_MODES:
            return True
        A = self.target.design(slice(0, self.target.n_rows))
        ways = ((mode.theta, start) for mode, starts in untried for start in starts)
        return any(self._has_barrier(A, *way) for way in ways)

    def _has_barrier(self, A, theta, start):
        """Whether U falls anywhere on the straight way from a minimum to a point; A is the design.

        Predictors are linear in θ, so that they are computed at both ends only.
        """
        target, ends = self.target, [self.target.along(A, point) for point in (theta, start)]
        rows, past, values = np.arange(target.n_rows), target.quadratic, []
        for t in np.linspace(0.0, 1.0, ON_THE_WAY):
            place, eta = theta + t * (start - theta), ends[0] + t * (ends[1] - ends[0])
            value = target.model.loss(target.data.facts, rows, 0, len(rows), eta)
            values.append(value + prior_value(target.prior, place))
            values[-1] += 0.0 if past is None else past.value(place)
        return bool((np.diff(values) < -SLIGHT).any())

    def _turned_from(self, mode):
        """Starting points with lines through another part of the rows, if descents are left."""
        return turned(self.target, mode.theta) if self.left else []

    def _moves_from(self, mode):
        """Yield starting points with a coefficient of a minimum set to zero, set free or passed on.

        These are coefficients under Student's t priors; passed on is what a correlated column can
        take over.
        """
        heavy, H, theta = self.heavy, mode.hessian, mode.theta
        prior = self.target.prior[heavy]
        width = linalg.norm(preconditioning.from_any_hessian(H)[0], axis=1)[heavy]
        bistable = np.square(width) * _largest_bend(prior) > 0.5  # the prior may have two minima
        away = theta[heavy] - prior[:, LOC]
        large = np.square(away / prior[:, SCALE]) > prior[:, SHAPE]  # where -log p is concave
        loss = self._of_noise(0.5 * np.square(away / width)) - _price(prior, away)
        size = np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
        for i in np.flatnonzero(large & bistable & (loss < LOSS)):
            j = heavy[i]
            near = np.abs(H[j, heavy]) / size[heavy]
            for k in heavy[np.argsort(-near)][: MOST_RELATED + 1]:
                if k != j and np.abs(H[j, k]) > CORRELATED * size[j] * size[k]:
                    yield _moved(
                        theta, {j: theta[j] - away[i], k: theta[k] + H[j, k] / H[k, k] * away[i]}
                    )
            yield _moved(theta, {j: theta[j] - away[i]})
        steps, gain = self._free_steps(theta, H)
        worth = gain - _price(prior, away + steps[heavy]) > -LOSS
        free = np.flatnonzero(~large & bistable & worth & (gain > STRONG))
        for j in heavy[free[np.argsort(-gain[free])]]:
            yield _moved(theta, {j: theta[j] + steps[j]})

    def _of_noise(self, loss):
        """Losses in nats for losses at the noise of a mode, if the noise can grow instead."""
        W = self.target.weight.sum()
        return 0.5 * W * np.log1p(2.0 * loss / W) if self.target.model.n_extra else loss


def _price(prior, away):
    """-log p of Student's t priors at a distance from their middle, less that in the middle."""
    z = away / prior[:, SCALE]
    df = prior[:, SHAPE]
    return 0.5 * prior[:, POWER] * (df + 1.0) * np.log1p(z**2 / df)


def _largest_bend(prior):
    """How far -log p of Student's t bends down at most: minus its second derivative at z² = 3ν."""
    df = prior[:, SHAPE]
    return prior[:, POWER] * (df + 1.0) / (8.0 * df * prior[:, SCALE] ** 2)


def _is_same_minimum(one, other):
    """Whether two minima are within `NEAR` of each other in both metrics."""
    shift = one.theta - other.theta
    return max(linalg.norm(preconditioning.solve(m.F, shift)) for m in (one, other)) < NEAR


def _moved(theta, values):
    """A copy of θ with some entries, the keys of `values`, replaced."""
    theta = theta.copy()
    for j, value in values.items():
        theta[j] = value
    return theta


def _prior_draw(prior, rng):
    """Draw distances of the parameters from the middle of their priors.

    Student's t is cut off at twenty scales, other priors have a normal law, and flat ones give 0.
    """
    z = rng.standard_normal(len(prior))
    heavy = of_family(prior, StudentT)
    df = prior[heavy, SHAPE]
    z[heavy] = np.clip(z[heavy] / np.sqrt(rng.chisquare(df) / df), -20.0, 20.0)
    real = of_family(prior, Normal, Laplace, StudentT)
    return np.where(real, prior[:, SCALE], ~of_family(prior, Flat)) * z
