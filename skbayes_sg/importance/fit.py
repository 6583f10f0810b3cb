"""The proposal: which rows are exact, which projections are warped, and how."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import linalg

from ..kernels import many_draws
from ..kernels.layout import FACT_PREDICTOR, FACT_WEIGHT, frozen
from ..priors import Flat, Normal
from ..priors.families import of_family
from .directions import cluster_directions
from .fourth_order import FourthOrder, seconds_of_fourth_order
from .potential import NearAndFar, Potential
from .remainders import (
    NODES,
    chosen_rows,
    lines_of_rows,
    remainders_along,
    root_mean_square,
    row_factors,
    row_laws,
)
from .warps import Warps, fit_warp, unwarped

__all__ = ["Proposal", "fit_proposal"]

TAIL = 0.5  # sum of the scores of the rows that are not exact
MOST_HARD = 20_000
MOST_WARPED = 300  # parameters, beyond which finding directions takes longer than it gains
SURE = 0.2  # standard deviation of a logarithm up to which the parameter is clear of zero
LEAST_MORE = 2_000  # rows that are exact, if the hard ones are not enough
FEW_ROWS = 4_000  # up to which all are
STRONG = 0.1  # score from which a row is exact beside others to fourth order
FAR = 0.003, 0.015, 0.06, 0.25  # shares of draws at which polynomials are not believed
LOSS = 3e-9  # seconds, of a row at a draw
CHEAP = 0.01  # seconds, in which all rows are exact


@dataclass
class Proposal:
    """A frame with warps, and the potentials by which draws of it are judged.

    Attributes
    ----------
    frame : Frame
    scores : array of shape (n_rows,)
        How far each row is from its quadratic.
    drifts : array of shape (n_rows, n_predictors)
        What the average slope of each row is beyond that at the centre; 0 for hard rows.
    hard : array of int
        Rows that are not quadratic, by which the warps are made.
    warps : Warps
    sections : list of _Section
        Axes along which all potentials are exact.
    """

    frame: object
    scores: np.ndarray
    drifts: np.ndarray
    hard: np.ndarray
    warps: Warps
    sections: list = field(default_factory=list)
    other_motion = None  # of chains in lockstep, where their steps are short

    @property
    def n_parameters(self):
        """Number of entries of ψ."""
        return self.frame.target.n_parameters

    @cached_property
    def surrogate(self):
        """U by which chains in lockstep move: exact in the hard rows, or in all if they are few.

        In tails all rows leave their quadratics, and chains that do not go there cannot say so.
        """
        few = self.frame.target.n_rows <= LEAST_MORE
        return self.exact if few else self.of_hard_rows

    @cached_property
    def of_hard_rows(self):
        """U, exact in the hard rows."""
        return self.potential(len(self.hard))

    @cached_property
    def order(self):
        """All rows, those of the largest scores first."""
        return np.argsort(-self.scores, kind="stable")

    @cached_property
    def to_fourth_order(self):
        """U, exact in rows with large scores, to fourth order in the others."""
        strong = self.scores > STRONG
        beyond = FourthOrder(self.frame, strong)
        return Potential(self.frame, np.flatnonzero(strong), beyond=beyond)

    def _near_and_far(self, phi):
        """Potentials to fourth order that are exact at more and more of the draws."""
        distance = linalg.norm(phi, axis=1)
        for share in FAR:
            radius = np.quantile(distance, 1.0 - share)
            yield NearAndFar(self.to_fourth_order, self.exact, radius)

    def numbers_exact(self, left):
        """Numbers of rows that may be exact, more and more, but not nearly all.

        Those that leave more than `left` if the remainders of the rows have nothing in common are
        passed over.
        """
        n, n_rows = len(self.hard), len(self.scores)
        while n < n_rows / 2:
            if np.square(self.scores[self.order[n:]] if n else self.scores).sum() <= left**2:
                yield n
            n = max(2 * n, LEAST_MORE)

    def potentials(self, left, phi):
        """Potentials by which draws may be judged, cheaper than that of all rows.

        Those of `numbers_exact`, and where that is cheaper to fourth order.
        """
        seconds = LOSS * len(phi)  # of a row
        price = self._price_of_fourth_order(len(phi))
        for n in self.numbers_exact(left):
            if price < n * seconds:
                yield from self._near_and_far(phi)
                price = np.inf
            yield self.of_second_order(n)
        if price < len(self.scores) * seconds:
            yield from self._near_and_far(phi)

    def _price_of_fourth_order(self, n_draws):
        """Infinite where it is not possible or all rows may just as well be exact."""
        n_rows, target = len(self.scores), self.frame.target
        is_dear = n_rows * n_draws * LOSS > CHEAP and len(self.hard) < n_rows / 2
        if target.model.n_predictors > 1 or not is_dear:
            return np.inf
        return seconds_of_fourth_order(n_rows, n_draws, self.n_parameters)

    @cached_property
    def exact(self):
        """U, exact in all rows."""
        return Potential(self.frame)

    @cached_property
    def drift(self):
        """Σ_i J_iᵀ drift_i over all rows."""
        target = self.frame.target

        def work(rows):
            return target.row_sum(target.design(rows), self.drifts[rows])

        return sum(target.over_chunks(work, max(target.n_features, 1)))

    def of_second_order(self, n):
        """As `potential`, of the hard rows the one that is made already."""
        return self.of_hard_rows if n == len(self.hard) else self.potential(n)

    def potential(self, n):
        """U, exact in the n rows of the largest scores."""
        if n >= len(self.scores):
            return Potential(self.frame)
        rows, target = np.sort(self.order[:n]) if n else np.arange(0), self.frame.target
        own = target.row_sum(target.design(rows), self.drifts[rows])
        found = Potential(self.frame, rows, self.drift - own)
        for section in self.sections:
            found.correct_along(section.axis, section.places, section.values, section.slopes)
        return found


def fit_proposal(frame, local=False):
    """The `Proposal` of a frame in Hessian coordinates; of its own mode alone if `local`."""
    by_predictor, drifts = row_laws(frame)
    sections = [_Section(frame, axis) for axis in _edges(frame)]
    if sections and frame.target.n_rows > FEW_ROWS:  # along which rows need not be exact
        by_predictor[:, frame.target.model.n_linear :] = 0.0
    scores = by_predictor.sum(axis=1)
    few = frame.target.n_rows <= FEW_ROWS
    left = 0.0 if local and few else TAIL  # in a heavy tail no row is quadratic
    hard = np.sort(chosen_rows(scores, left, MOST_HARD))
    drifts[hard] = 0.0
    if frame.target.n_parameters > MOST_WARPED:
        none = unwarped(frame.target.n_parameters)
        return Proposal(frame, scores, drifts, hard, none)
    lines = _Lines(frame, hard, by_predictor[hard])
    if len(hard) == MOST_HARD:  # they represent the others as well
        lines.stand_for = scores.sum() / scores[hard].sum()
    axes, members = cluster_directions(lines.vectors, lines.scores, [s.axis for s in sections])
    splines = [
        fit_warp(sections[a] if a < len(sections) else lines.along(axis, own), local)
        for a, (axis, own) in enumerate(zip(axes, members, strict=True))
    ]
    kept = [a for a, spline in enumerate(splines) if spline is not None]
    warps = Warps(axes[kept], [splines[a] for a in kept])
    return Proposal(frame, scores, drifts, hard, warps, sections)


def _edges(frame):
    """Axes along which the logarithms of positive parameters that may be zero change.

    As such a logarithm falls, only the prior ends its tail, in which rows that are kept to second
    order would bend away, each hardly at all, and all together by far.
    """
    model, D = frame.target.model, frame.target.n_parameters
    width = [(linalg.norm(frame.F[j]), j) for j in range(D - model.n_extra, D)]
    return [frame.F[j] / size for size, j in width if model.has_edge and size > SURE]


class _Section:
    """f(s), exact in all rows, along an axis; and where it was evaluated last."""

    def __init__(self, frame, axis):
        self.potential, self.axis = Potential(frame), axis

    def __call__(self, s):
        self.places, self.values = s, self.potential.values(np.multiply.outer(s, self.axis))
        return self.values

    @cached_property
    def slopes(self):
        """∇U at the places."""
        return self.potential.gradients(np.multiply.outer(self.places, self.axis))


class _Lines:
    """What has a remainder, each with its direction in φ: hard rows, and priors of coordinates."""

    def __init__(self, frame, hard, scores):
        self.frame, self.target = frame, frame.target
        self.facts = frozen(frame.facts[hard])
        self.part = self.target.take(hard, self.facts[:, FACT_WEIGHT])
        K = self.target.model.n_predictors
        eta = np.ascontiguousarray(self.facts[:, FACT_PREDICTOR : FACT_PREDICTOR + K])
        self.weights = self.target.curvature(self.facts, eta)
        self.rows = np.arange(len(hard))
        self.J = row_factors(frame, self.part.design(self.rows))
        units = list(lines_of_rows(self.J, self.weights))
        self.stand_for = 1.0  # number of rows that each row represents
        self.priors = np.flatnonzero(~of_family(self.target.prior, Normal, Flat))
        self.vectors = np.concatenate([*units, frame.F[self.priors]])
        self.scores = np.concatenate([*scores.T, self._prior_scores()])
        self.row_of = np.concatenate([np.tile(self.rows, K), np.full(len(self.priors), -1)])

    def _prior_scores(self):
        if len(self.priors) == 0:
            return np.empty(0)
        width = np.sqrt(np.square(self.frame.F[self.priors]).sum(axis=1))
        r = [self._prior_remainder(j, w * NODES) for j, w in zip(self.priors, width, strict=True)]
        return root_mean_square(np.array(r))

    def _prior_remainder(self, j, shift):
        """The remainder of -log p(θ_j) beyond the quadratic of the frame, at θ̂_j + shift."""
        theta = self.frame.centre.theta[j]
        places = np.append(theta + shift, theta)[:, None]
        values = np.zeros(len(places))
        many_draws.prior_values(frozen(self.target.prior[j : j + 1]), places, values)
        slope, bend = self.frame.prior_gradient[j], self.frame.prior_curvature[j]
        return values[:-1] - values[-1] - slope * shift - 0.5 * bend * shift**2

    def along(self, axis, members):
        """f(s) along an axis, from the remainders of some of the lines."""
        rows, n_lines = np.unique(self.row_of[members]), len(self.rows) * len(self.J)
        rows, priors = rows[rows >= 0], members[members >= n_lines] - n_lines
        directions = np.stack([J[rows] @ axis for J in self.J], axis=1)
        facts, weights = frozen(self.facts[rows]), self.weights[rows]
        slope = self.frame.offset @ axis

        def f(s):
            r = remainders_along(self.target, facts, weights, directions, s[None])
            with np.errstate(over="ignore"):  # far out, where f may be infinite
                total = slope * s + 0.5 * s**2 + self.stand_for * r.sum(axis=0)
            for j in self.priors[priors]:
                total = total + self._prior_remainder(j, s * (self.frame.F[j] @ axis))
            return total

        return f
