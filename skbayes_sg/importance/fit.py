"""The proposal: which rows are exact, which projections are warped, and how."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import linalg, sparse

from ..kernels import many_draws
from ..kernels.layout import FACT_PREDICTOR, FACT_WEIGHT, frozen
from ..priors import Flat, Normal
from ..priors.families import of_family
from .directions import cluster_directions, independent
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
from .warps import Warps, fit_warp, unwarped, warps_of_draws

__all__ = ["Proposal", "fit_proposal"]

TAIL = 0.5  # largest sum of the scores of the rows that are not hard
MOST_HARD = 20_000  # largest number of hard rows
MOST_WARPED = 300  # with more parameters, finding directions takes longer than it gains
MOST_OF_LEVELS = 1000  # the same where most columns are levels
SEEN_ROWS = 1000  # first rows, which tell whether columns are levels
SURE = 0.2  # standard deviation of a logarithm up to which the parameter is clear of zero
ALL_IN_LOCKSTEP = 2_000  # with at most so many rows, chains in lockstep are exact in all
LEAST_MORE = 2_000  # least number of exact rows where the hard rows are not enough
FEW_ROWS = 4_000  # with at most so many rows, all of them may be hard
STRONG = 0.1  # rows with a larger score are exact where the others are kept to fourth order
FAR = 0.003, 0.015, 0.06, 0.25  # shares of draws, the farthest, at which all rows are exact
LOSS = 3e-9  # predicted seconds for the loss of one row at one draw
CHEAP = 0.01  # predicted seconds up to which all rows are exact and polynomials gain nothing


@dataclass
class Proposal:
    """A frame with warps, and the potentials by which draws of it are judged.

    Attributes
    ----------
    frame : Frame
    scores : array of shape (n_rows,)
        How far each row is from its quadratic.
    drifts : array of shape (n_rows, n_predictors)
        Mean slope of each row under the Laplace approximation, less that at the centre; 0 for hard
        rows.
    hard : array of int
        Indices of the hard rows, which are not nearly quadratic and by which the warps are made.
    warps : Warps
    means : array of shape (n_axes, n_parameters)
        Unit vectors along the mean directions of clusters of hard rows, which are not orthogonal.
    sections : list of _Section
        Axes along which all potentials are exact.
    """

    frame: object
    scores: np.ndarray
    drifts: np.ndarray
    hard: np.ndarray
    warps: Warps
    means: np.ndarray
    sections: list = field(default_factory=list)
    other_motion = None  # `other` of `run_lockstep`: a motion for chains with short steps

    @property
    def n_parameters(self):
        """Number of entries of ψ."""
        return self.frame.target.n_parameters

    @cached_property
    def surrogate(self):
        """The U of chains in lockstep: exact in the hard rows, or in all if few or most are hard.

        In tails all rows leave their quadratics, and chains that do not go there cannot say so. If
        there are more hard rows than `MOST_HARD`, weights could not make up for the others.
        """
        n_rows, n_hard = self.frame.target.n_rows, len(self.hard)
        is_exact = n_rows <= ALL_IN_LOCKSTEP or n_hard > n_rows / 2 or n_hard == MOST_HARD
        return self.exact if is_exact else self.of_hard_rows

    def warps_of_draws(self, phi):
        """Warps along `means` to the marginal laws of draws φ; None where there are no directions.

        The tables of `warps` hold along lines through the centre. Where many rows are walls, the
        mass is elsewhere, and the walls stand in other places.
        """
        return warps_of_draws(self.means, phi) if len(self.means) else None

    @cached_property
    def of_hard_rows(self):
        """The `Potential` that is exact in the hard rows."""
        return self.potential(len(self.hard))

    @cached_property
    def order(self):
        """Indices of all rows, those with the largest scores first."""
        return np.argsort(-self.scores, kind="stable")

    @cached_property
    def to_fourth_order(self):
        """The `Potential` that is exact in rows with large scores, else of fourth order."""
        strong = self.scores > STRONG
        beyond = FourthOrder(self.frame, strong)
        return Potential(self.frame, np.flatnonzero(strong), beyond=beyond)

    def _near_and_far(self, phi):
        """Yield potentials of fourth order that are exact at more and more of the far draws."""
        distance = linalg.norm(phi, axis=1)
        for share in FAR:
            radius = np.quantile(distance, 1.0 - share)
            yield NearAndFar(self.to_fourth_order, self.exact, radius)

    def numbers_exact(self, left):
        """Yield increasing numbers of rows that may be exact, from the hard ones to half of all.

        Numbers are passed over if the other rows would leave more than `left` even if their
        remainders had nothing in common.
        """
        n, n_rows = len(self.hard), len(self.scores)
        while n < n_rows / 2:
            if np.square(self.scores[self.order[n:]] if n else self.scores).sum() <= left**2:
                yield n
            n = max(2 * n, LEAST_MORE)

    def potentials(self, left, phi):
        """Yield potentials by which draws may be judged, all cheaper than that of all rows.

        They are exact in the numbers of rows that `numbers_exact` gives; those to fourth order come
        in between, before the first that is dearer.
        """
        seconds = LOSS * len(phi)  # predicted for one row at all draws
        price = self._price_of_fourth_order(len(phi))
        for n in self.numbers_exact(left):
            if price < n * seconds:
                yield from self._near_and_far(phi)
                price = np.inf
            yield self.of_second_order(n)
        if price < len(self.scores) * seconds:
            yield from self._near_and_far(phi)

    def _price_of_fourth_order(self, n_draws):
        """Predicted seconds of potentials to fourth order at so many draws.

        They are infinite where these are impossible, or all rows may just as well be exact.
        """
        n_rows, target = len(self.scores), self.frame.target
        is_dear = n_rows * n_draws * LOSS > CHEAP and len(self.hard) < n_rows / 2
        if target.model.n_predictors > 1 or not is_dear:
            return np.inf
        return seconds_of_fourth_order(n_rows, n_draws, self.n_parameters)

    @cached_property
    def exact(self):
        """The `Potential` that is exact in all rows."""
        return Potential(self.frame)

    @cached_property
    def drift(self):
        """Σ_i J_iᵀ drift_i over all rows: a gradient in θ, for rows kept to second order."""
        target = self.frame.target

        def work(rows):
            return target.row_sum(target.design(rows), self.drifts[rows])

        return sum(target.over_chunks(work, max(target.n_features, 1)))

    def of_second_order(self, n):
        """The `Potential` that is exact in n rows, made only once if these are the hard rows."""
        return self.of_hard_rows if n == len(self.hard) else self.potential(n)

    def potential(self, n):
        """A new `Potential` that is exact in the n rows with the largest scores."""
        if n >= len(self.scores):
            return Potential(self.frame)
        rows, target = np.sort(self.order[:n]) if n else np.arange(0), self.frame.target
        own = target.row_sum(target.design(rows), self.drifts[rows])
        found = Potential(self.frame, rows, self.drift - own)
        for section in self.sections:
            found.correct_along(section.axis, section.places, section.values, section.slopes)
        return found


def fit_proposal(frame, local=False):
    """Fit a `Proposal` to a frame in Hessian coordinates; if `local`, to its own mode alone."""
    by_predictor, drifts = row_laws(frame)
    sections = [_Section(frame, axis) for axis in _edges(frame)]
    if sections and frame.target.n_rows > FEW_ROWS:  # along sections rows need not be exact then
        by_predictor[:, frame.target.model.n_linear :] = 0.0
    scores = by_predictor.sum(axis=1)
    few = frame.target.n_rows <= FEW_ROWS
    left = 0.0 if local and few else TAIL  # in a heavy tail no row is quadratic
    hard = np.sort(chosen_rows(scores, left, MOST_HARD))
    drifts[hard] = 0.0
    if not _is_warped(frame.target):
        none = unwarped(frame.target.n_parameters)
        return Proposal(frame, scores, drifts, hard, none, none.axes)
    lines = _Lines(frame, hard, by_predictor[hard])
    if len(hard) == MOST_HARD:  # the hard rows represent the others as well
        lines.stand_for = scores.sum() / scores[hard].sum()
    first = [section.axis for section in sections]
    axes, members, means = cluster_directions(lines.vectors, lines.scores, first)
    splines = [
        fit_warp(sections[a] if a < len(sections) else lines.along(axis, own), local)
        for a, (axis, own) in enumerate(zip(axes, members, strict=True))
    ]
    kept = [a for a, spline in enumerate(splines) if spline is not None]
    warps = Warps(axes[kept], [splines[a] for a in kept])
    return Proposal(frame, scores, drifts, hard, warps, means, sections)


def _is_warped(target):
    """Whether directions are warped: parameters are few, or most columns are levels.

    Coefficients of levels with few rows are skewed one by one, so that each has a direction of its
    own; in other tables of so many columns hardly any direction is far from normal.
    """
    D = target.n_parameters
    if D <= MOST_WARPED or D > MOST_OF_LEVELS or target.keeps_sparse:
        return D <= MOST_OF_LEVELS
    X = target.X[:SEEN_ROWS]
    X = X.toarray() if sparse.issparse(X) else X
    takes_two_values = ((X.min(axis=0) == X) | (X.max(axis=0) == X)).all(axis=0)
    return takes_two_values.mean() > 0.5


def _edges(frame):
    """Axes along which the logarithms of positive parameters that may be zero change.

    As such a logarithm falls, only the prior ends its tail, in which rows that are kept to second
    order would bend away, each hardly at all, and all together by far.
    """
    model, D = frame.target.model, frame.target.n_parameters
    width = [(linalg.norm(frame.F[j]), j) for j in range(D - model.n_extra, D)]
    return independent(frame.F[j] / size for size, j in width if model.has_edge and size > SURE)


class _Section:
    """f(s) = U(θ̂ + s F axis) - U(θ̂), exact in all rows; it keeps the s of its last call."""

    def __init__(self, frame, axis):
        self.potential, self.axis = Potential(frame), axis

    def __call__(self, s):
        """f at an array of places s."""
        self.places, self.values = s, self.potential.values(np.multiply.outer(s, self.axis))
        return self.values

    @cached_property
    def slopes(self):
        """∇_φ U at the places where f was evaluated last, (n_places, n_parameters)."""
        return self.potential.gradients(np.multiply.outer(self.places, self.axis))


class _Lines:
    """Hard rows and priors that are not normal: all that has a remainder, with directions in φ.

    A row is a line for each of its predictors, and so is such a prior; `vectors` are the directions
    of the lines and `scores` those of their remainders.
    """

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
        """The score of each of `priors`: the root mean square of its remainder, as of a row."""
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
        """Return f(s), U along an axis up to a constant, with the remainders of some lines only."""
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
