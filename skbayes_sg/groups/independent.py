r"""Independent draws for one column with levels: nested Laplace approximations, and weights.

With the effects integrated out (`marginal`), few parameters are left: θ, the coefficients and
extras, and s = log τ. As in integrated nested Laplace approximations (Rue, Martino and Chopin
2009), at places of s the mode θ̂(s) of the potential U(θ, s) and a precision Q(s) of θ about it give
the marginal

    -log p̂(s) = U(θ̂(s), s) + ½ log |Q(s)|,

which is tabulated, and θ given s is about N(θ̂(s), Q(s)⁻¹), which is interpolated between places.
The table needs rules that are accurate far out as well: what is missing there is missing in all
draws, and no weight tells. Q(s) is that of the quadratic expansion at one reference, with the
effects eliminated, times what differences of U say of it.

Draws (s, θ) of this law are weighted by exp(-U), which corrects it: their Pareto k and effective
sample size say whether they can be trusted. Effects are drawn given them.
"""

import time
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.interpolate import CubicSpline

from .._base import streams
from ..dynamics import Importance
from ..importance.certificate import LIGHT, certified, resampled
from ..importance.proposal import HalfT, matched_normals
from ..importance.sample import LEAST_DRAWS, LEFT_FAR, CertifiedDraws, effective
from ..posterior.moments import kept_draws
from .chains import price_of
from .collapsed import CollapsedRows, Reference
from .covariance import Covariance
from .marginal import MarginalLikelihood
from .problem import GroupOutcome
from .start import System, found_start

__all__ = ["run_independent", "suits_independent"]

MOST_PARAMETERS = 50  # most parameters θ, whose gradients are differences of values
MOST_BYTES = 1 << 30  # most bytes of the effects of all proposed draws
LEVELS_AT_ONCE = 1000  # levels whose draws are resampled together
# Seconds of a draw: of a row, with the `cost` of its model, of a column, and of a level; the factor
# for models without vectorised kernels; and what draws of effects add.
OF_ROW, OF_COLUMN, OF_LEVEL, IN_LOOPS, WITH_EFFECTS = 8e-9, 4e-10, 3e-7, 4.0, 1.6
SETTING_UP, FOR_PEAKS = 600, 3500  # how many draws the preparations cost, without and with peaks
APART = 0.1  # distance of the places for differences, in standard deviations
ROUNDS, FEW = 3, 8  # most rounds in which rules and the law that is found with them change; draws
RESOLVED = 3  # draws at which it is checked that peaks are resolved
STEPS, STILL = 30, 0.1  # most Newton steps to a mode, and a length of steps that ends them
LONGEST_STEP = 3.0  # longest Newton step, in standard deviations
MOST_PAIRED = 10  # most parameters of which the whole Hessian consists of differences
MOST_WRONG = 20.0  # largest factor between a precision of the expansion and that of U
DEEP = 12.0  # the table ends where log p̂(s) is this many nats below its maximum
LONGEST, GROWTH = 0.5, 1.15  # longest first step between places of s; the factor of each step
FARTHER = 1.0  # rules that judge others are chosen for places of s up to so much farther
NEAR = 8.0  # rules are chosen at modes that are up to so many nats less likely
MOST_PLACES = 40  # on either side of the first
CELLS = 2000  # of the table of s
PILOT, EACH = 200, 20  # pilot draws: at least so many, and for each parameter
WANTED, MOST_PROPOSED = 0.6, 4.0  # share of effective draws aimed at; most proposed for each draw
NORMAL = 0.97  # share of effective pilot draws below which z has the tails of Student's t
HOPELESS = 0.05  # share of effective pilot draws below which there are no others


def suits_independent(problem, request):
    """Whether effects can be integrated out one by one, and few enough parameters are left.

    Parameters of chains that were asked for are obeyed by chains.
    """
    target, L = problem.target, problem.sizes[0]
    n_bytes = 4 * L * request.n_chains * request.n_draws
    return (
        problem.n_factors == 1
        and not any(problem.slopes)
        and target.model.add_shifted is not None
        and target.n_parameters <= MOST_PARAMETERS
        and request.thin is None
        and request.n_warmup is None
        and n_bytes <= MOST_BYTES
    )


class _ScalePlace(NamedTuple):
    """A place of s: the mode there, a root of the covariance of θ, and -log p̂(s)."""

    s: float
    theta: np.ndarray
    root: np.ndarray
    height: float


class NestedLaplace:
    """The law of s and of θ given s from which draws are proposed.

    Parameters
    ----------
    potential : MarginalLikelihood
        U, as it is needed for derivatives.
    start : skbayes_sg.groups.start.GroupStart

    Raises
    ------
    ValueError, scipy.linalg.LinAlgError
        If U is not finite, or has no precision, or if no rule reaches as far as the law of s.
    """

    def __init__(self, potential, start):
        self.potential, reference = potential, potential.reference
        self.finest, self.highest = None, -np.inf  # that judges, for places of s up to the highest
        prior = reference.rows.target.prior
        self.system = System(reference, 0, Covariance(start.psi[0], 1), prior)
        first = self._place(start.psi[0][0], start.theta)
        step = min(1.0 / np.sqrt(start.information[0][0]), LONGEST)
        places = [*self._climbed(first, -step)[::-1], first, *self._climbed(first, step)]
        s = np.array([place.s for place in places])
        L = np.array([place.root for place in places])
        r = np.einsum("nii->ni", L)
        self.modes = CubicSpline(s, [place.theta for place in places])
        self.log_r, self.B = CubicSpline(s, np.log(r)), CubicSpline(s, L / r[:, None])
        self.ends = np.linspace(s[0], s[-1], CELLS + 1)
        rows = np.array([np.append(place.theta, place.s) for place in places])
        height = np.array([place.height for place in places])
        self.best, self.places = rows[height.argmin()], rows[height < height.min() + NEAR]
        middles = 0.5 * (self.ends[1:] + self.ends[:-1])
        log_p = -CubicSpline(s, height)(middles)
        mass = np.exp(log_p - log_p.max())
        self.share, self.log_density = np.append(0.0, np.cumsum(mass)) / mass.sum(), log_p
        self.law = None  # of z; None stands for N(0, I)

    def _place(self, s, theta):
        """The `_ScalePlace` at s; the search for the mode begins at θ."""
        H = self.system.H + np.exp(-2.0 * s)
        precision = self.system.precision_with(self.system.C / H)
        L = linalg.cholesky(precision, lower=True)
        root = linalg.solve_triangular(L, np.eye(len(L)), lower=True).T
        root = linalg.cholesky(root @ root.T, lower=True)
        for _ in range(STEPS):
            value, slope, bend = self._derivatives(s, theta, root)
            step = -slope / bend
            theta = theta + root @ step * min(1.0, LONGEST_STEP / max(linalg.norm(step), 1.0))
            if linalg.norm(step) < STILL:
                break
        value, _, bend = self._derivatives(s, theta, root)
        root = root @ self._root_of_rest(s, theta, root, value, bend)
        if s > self.highest:
            self.highest = s + FARTHER
            self.finest = MarginalLikelihood.finest(self.system.reference, self.highest)
        value = self.finest.values(np.append(theta, s)[None])[0]
        return _ScalePlace(s, theta, root, value - np.log(np.diag(root)).sum())

    def _derivatives(self, s, theta, root):
        """U at θ, its gradient, and the diagonal of its Hessian, in units of the root."""
        moves = APART * root.T
        places = np.concatenate([[theta], theta + moves, theta - moves])
        values = self.potential.values(np.column_stack([places, np.full(len(places), s)]))
        above, below = np.split(values[1:], 2)
        slope = (above - below) / (2.0 * APART)
        bend = (above + below - 2.0 * values[0]) / APART**2
        return values[0], slope, np.clip(bend, 1.0 / MOST_WRONG, MOST_WRONG)

    def _root_of_rest(self, s, theta, root, value, bend):
        """A root of the inverse of the Hessian at θ, which has the value U, in units of the root.

        `bend` is its diagonal. Other elements are differences as well if there are few parameters.
        """
        D = len(bend)
        if D > MOST_PAIRED or D == 1:
            return np.diag(1.0 / np.sqrt(bend))
        i, j = np.triu_indices(D, 1)
        moves = APART * (root.T[i] + root.T[j])
        places = np.concatenate([theta + moves, theta - moves])
        values = self.potential.values(np.column_stack([places, np.full(len(places), s)]))
        both = (values[: len(i)] + values[len(i) :] - 2.0 * value) / APART**2
        H = np.diag(bend)
        H[i, j] = H[j, i] = 0.5 * (both - bend[i] - bend[j])
        values, axes = np.linalg.eigh(H)
        values = np.clip(values, 1.0 / MOST_WRONG, MOST_WRONG)
        return linalg.cholesky((axes / values) @ axes.T, lower=True)

    def _climbed(self, first, step):
        """Places on one side of the first, up to one that is `DEEP` above the lowest."""
        found, last, lowest = [], first, first.height
        while len(found) < MOST_PLACES and last.height - lowest < DEEP:
            last = self._place(last.s + step, last.theta)
            found.append(last)
            lowest, step = min(lowest, last.height), GROWTH * step
        if not last.height - lowest >= DEEP:
            raise ValueError(f"The law of log τ does not end before {last.s:.3g}.")
        return found

    def draw(self, rng, n):
        """Draw n rows (θ, s): return them, z in units of the roots, and log q up to a constant."""
        u = (rng.permutation(n) + rng.random(n)) / n
        cells = np.interp(u, self.share, np.arange(CELLS + 1))
        cell = np.minimum(cells.astype(int), CELLS - 1)
        s = self.ends[0] + cells * (self.ends[1] - self.ends[0])
        if self.law is None:
            z = matched_normals(rng, n, self.modes.c.shape[2])
            log_q = -0.5 * np.square(z).sum(axis=1)
        else:
            z = self.law.draw(rng, n)
            log_q = self.law.log_density(z)
        log_r = self.log_r(s)
        theta = self.modes(s) + np.einsum("nij,nj->ni", self.B(s), np.exp(log_r) * z)
        return np.column_stack([theta, s]), z, log_q + self.log_density[cell] - log_r.sum(axis=1)

    def with_tails(self, z, certificate):
        """Give z the tails of Student's t, adapted to certified draws of it."""
        self.law = HalfT.around_zero(z.shape[1]).adapted(z, certificate)


def run_independent(problem, request, watch=None):
    """The `GroupOutcome` of independent draws, or None where chains are worth more."""
    n, price = request.n_chains * request.n_draws, price_of(problem)
    others = SETTING_UP if problem.target.model.convex_in_first else FOR_PEAKS
    price.tell((n + others) * _seconds_of_draw(problem))
    rng = streams.of_proposal(request.seed)
    with np.errstate(all="ignore"):
        potential, law, left = _proposal(problem, rng)
        if left > LEFT_FAR:
            return None
        share, seconds = _piloted(law, potential, rng)
        if share < HOPELESS:
            return None
        proposed = _proposed(max(n, LEAST_DRAWS), share, problem)
        price.tell(WITH_EFFECTS * seconds * proposed)
        found = _weighed(law, potential, proposed, n, rng)
        if not found[0].holds and law.law is None:
            law.with_tails(*found[2:])
            found = _weighed(law, potential, proposed, n, rng)
    return _outcome(*found[:2], request, watch) if found[0].holds else None


def _seconds_of_draw(problem):
    """Predicted seconds to evaluate all levels at one draw, and to draw their effects."""
    target, L = problem.target, problem.sizes[0]
    row = OF_ROW * target.model.n_predictors * target.model.cost
    row *= 1.0 if target.model.add_losses is not None else IN_LOOPS
    return target.n_rows * (row + OF_COLUMN * target.n_features) + L * OF_LEVEL


def _proposed(n, share, problem):
    """Number of proposed draws, so that enough of them are effective and memory suffices."""
    factor = np.clip(WANTED / share, 1.0, MOST_PROPOSED)
    return int(max(n, min(factor * n, MOST_BYTES / (4 * problem.sizes[0]))))


def _proposal(problem, rng):
    """The potential, the `NestedLaplace` of it, and how far its errors at a few draws differ.

    Rules are chosen at modes and draws of the law that was found with other rules, until these were
    accurate. The error is infinite where there is no law.
    """
    rows = CollapsedRows(problem)
    start = found_start(rows)
    reference = Reference(rows, start.theta, start.u)
    width = min(1.0 / np.sqrt(start.information[0][0]), 1.0)
    s = start.psi[0][0] + 2.0 * width * np.array([-1.0, 0.0, 1.0])
    few = np.column_stack([np.tile(start.theta, (len(s), 1)), s])
    law, left = None, np.inf
    try:
        finest = MarginalLikelihood.finest(reference, s[-1])
        potential, _ = MarginalLikelihood.of(finest, few)
        for number in range(ROUNDS):
            before, law = potential, NestedLaplace(potential, start)
            few = np.concatenate([law.draw(rng, FEW)[0], law.places])
            potential, left = MarginalLikelihood.of(_judge(law, few), few)
            is_close = np.ptp(potential.values(few) - before.values(few)) <= LEFT_FAR
            if is_close and (number or reference.is_convex):
                break
    except (linalg.LinAlgError, ValueError):
        return None, None, np.inf
    return potential, law, left


def _judge(law, few):
    """The potential that judges rules where the law is.

    Where levels may have several peaks, its nodes are placed anew about the highest ones, and
    `ValueError` is raised if it does not resolve all of them.
    """
    judge = law.finest
    if not judge.reference.is_convex:
        u = judge.peaks(law.best)[:, None]
        judge = MarginalLikelihood.finest(
            Reference(judge.reference.rows, law.best[:-1], [u]), law.highest
        )
        judge.check_resolution(few[:RESOLVED])
    return judge


def _piloted(law, potential, rng):
    """The share of effective draws of a pilot, and seconds of a draw, which only warnings need.

    Where the share is low, or weights have a heavy tail, z is given the tails of Student's t.
    """
    thetas, z, log_q = law.draw(rng, max(PILOT, EACH * potential.target.n_parameters))
    began = time.perf_counter()
    certificate = certified(-potential.values(thetas) - log_q).regardless_of_small_weights()
    seconds = (time.perf_counter() - began) / len(z)
    share = certificate.ess / len(z)
    if share < NORMAL or certificate.pareto_k > LIGHT:
        law.with_tails(z, certificate)
    return share, seconds


def _weighed(law, potential, proposed, n, rng):
    """n `CertifiedDraws` of so many proposed ones, and their effects; z, and the certificate."""
    thetas, z, log_q = law.draw(rng, proposed)
    values, effects = potential.values_and_effects(thetas, rng)
    certificate = certified(-values - log_q).regardless_of_small_weights()
    chosen = rng.permutation(resampled(rng, certificate.weights, n))
    n_rows, ess = potential.target.n_rows, effective(certificate, n)
    found = CertifiedDraws(thetas[chosen], certificate, 0.0, n_rows, ess)
    return found, (effects, chosen), z, certificate


def _outcome(found, proposed, request, watch):
    """The `GroupOutcome` of certified draws, and of the effects of the proposed draws chosen."""
    effects, chosen = proposed
    C, S = request.n_chains, request.n_draws
    draws = found.phi.reshape(C, S, -1)
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    kept = kept_draws(S, S if request.keep is None else request.keep)
    L, at = effects.shape[1], chosen.reshape(C, S)[:, kept]
    moments, out = np.empty((2, L)), np.empty((L, *at.shape), dtype=np.float32)
    for first in range(0, L, LEVELS_AT_ONCE):
        own = slice(first, first + LEVELS_AT_ONCE)
        some = np.ascontiguousarray(effects[:, own].T)
        every = some[:, chosen].astype(np.float64)
        moments[:, own] = every.mean(axis=1), every.std(axis=1)
        out[own] = some[:, at]
    measured = found.measured | {"effects_min_ess": float(found.ess)}
    evidence = found.evidence(draws.shape[2])
    return GroupOutcome(
        draws, [out], [moments], Importance(), measured, kept=kept, evidence=evidence
    )
