"""Linear regression with one factor: independent draws, without a chain.

With λ = (τ/σ)², the total weight n_l of a level and the weighted means z̄_l of z = (x, 1, y) in it,
the effects u integrated out leave the rows with the moments

    M(λ) = Σ_i w_i (z_i - z̄_l)(z_i - z̄_l)ᵀ + Σ_l n_l / (1 + n_l λ) z̄_l z̄_lᵀ,

so that for a triangular factor R of M(λ) = RᵀR all is as in linear regression without groups
(`skbayes_sg.recipe.closed_form`), with one more factor Π_l (1 + n_l λ)^-½ in the likelihood. The
law of (log √λ, log σ) is two-dimensional: it is tabulated, and inverted. Given both, β is normal,

and u_l ~ N(n_l λ (ȳ_l - x̄_l·β) / (1 + n_l λ),  τ² / (1 + n_l λ)).

As τ goes to 0 the density of log τ falls only like τ: the table goes to where the density is
`DEPTH` nats below its maximum.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from .._base import streams
from .._base.threads import in_threads
from ..diagnostics import convergence
from ..dynamics import Exact
from ..kernels.layout import FACT_Y
from ..kernels.many_draws import log_prior
from ..posterior.moments import kept_draws
from ..recipe.closed_form import Conditional
from .effect_moments import EffectMoments
from .problem import GroupOutcome

__all__ = ["LevelSums", "joint_law", "root_of", "run_exact", "sums_of_levels", "units_of"]

NODES, FINE = 65, 1025  # nodes of a table, and of the density that is interpolated from it
DEPTH = 14.0  # a tabulated density ends where it is this many nats below its maximum
# Range of log τ/σ that is searched, about the one at which effects are as large as the noise in the
# mean of a level.
WIDEST = (-25.0, 25.0)
BLOCK_NUMBERS = 1 << 20  # most draws of effects that are made together


@dataclass
class LevelSums:
    """Sufficient statistics of linear regression for the rows of each level.

    Parameters
    ----------
    weight : ndarray of shape (n_levels,)
        n_l, the total weight of each level.
    means : ndarray of shape (n_levels, D + 1)
        z̄_l, of coefficients' columns and, last, of the response, in standard units.
    within : ndarray of shape (D + 1, D + 1)
        S with SᵀS the first term of M(λ), in the units of the rows.
    units : ndarray of shape (D + 1, D + 1)
        T, with z = Tᵀ z' for z' in standard units.
    """

    weight: np.ndarray
    means: np.ndarray
    within: np.ndarray
    units: np.ndarray

    def shrunken(self, ratio):
        """(R with RᵀR = M(λ), Σ log(1 + n_l λ)) at λ = ratio²."""
        growth = 1.0 + self.weight * ratio**2
        between = (self.means.T * (self.weight / growth)) @ self.means
        rows = np.concatenate([self.within, root_of(between) @ self.units])
        return np.linalg.qr(rows, mode="r"), np.log(growth).sum()

    @cached_property
    def raw_means(self):
        """z̄_l in the units of the rows."""
        return self.means @ self.units


def sums_of_levels(problem):
    """The `LevelSums` of the only factor."""
    target, codes = problem.target, problem.codes[:, 0]
    weight, y = target.weight, target.data.facts[:, FACT_Y]
    Z = np.column_stack([problem.design, y])
    units = units_of(Z, weight, bool(target.intercept))
    Z = Z @ np.linalg.inv(units)
    n = np.bincount(codes, weight, problem.sizes[0])
    sums = [np.bincount(codes, weight * column, problem.sizes[0]) for column in Z.T]
    means = np.stack(sums, axis=1) / np.where(n > 0.0, n, 1.0)[:, None]
    Z -= means[codes]
    return LevelSums(n, means, root_of((Z.T * weight) @ Z) @ units, units)


def root_of(M):
    """S with SᵀS = M, for M positive semi-definite."""
    values, axes = np.linalg.eigh(M)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T


def units_of(Z, weight, intercept):
    """T with Z = Z' T, Z' of standard deviation 1 and, with an intercept, of mean 0."""
    mean = weight @ Z / weight.sum() if intercept else np.zeros(Z.shape[1])
    centred = Z - mean
    sd = np.sqrt(weight @ np.square(centred, out=centred) / weight.sum())
    T = np.diag(np.where(sd > 1e-12 * np.abs(mean), sd, np.where(mean != 0.0, np.abs(mean), 1.0)))
    if intercept:
        one = Z.shape[1] - 2
        T[one], T[:, one] = mean, 0.0
        T[one, one] = 1.0
    return T


# -- the law of the scales --------------------------------------------------------------------


@dataclass
class Node:
    """The law of log σ at one log τ/σ, as a table."""

    conditional: Conditional
    places: np.ndarray  # log σ
    values: np.ndarray  # log densities, jointly with log τ/σ
    log_mass: float  # log of the integral of the densities
    quantiles: Callable | None = field(repr=False, default=None)  # once needed, of `_inverse`

    def quantile(self, u):
        """log σ below which the share u of the mass lies."""
        if len(self.places) == 1:
            return np.full(len(u), self.places[0])
        if self.quantiles is None:
            self.quantiles = _inverse(self.places, self.values)
        return self.quantiles(u)


def resolved(f, first, last):
    """Evenly spaced places where the mass of a log density f lies, and f there.

    The range narrows from (first, last) until nearly all of it is within `DEPTH` of the maximum.
    """
    places = np.linspace(first, last, NODES)
    while True:
        values = f(places)
        near = np.flatnonzero(values > values.max() - DEPTH)
        low, high = places[max(near[0] - 1, 0)], places[min(near[-1] + 1, NODES - 1)]
        if high - low > 0.8 * (places[-1] - places[0]):
            return places, values
        places = np.linspace(low, high, NODES)


def log_integral(places, values):
    """log ∫ exp(values) over the places, by the trapezoidal rule."""
    top = values.max()
    return top + np.log(np.trapezoid(np.exp(values - top), places))


def _inverse(places, values):
    """The quantile function of a tabulated log density."""
    fine = np.linspace(places[0], places[-1], FINE)
    values = np.maximum(values - values.max(), -2.0 * DEPTH)  # so that the spline does not swing
    density = np.exp(CubicSpline(places, values)(fine))
    share = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1])))
    return lambda u: np.interp(u, share / share[-1], fine)


class JointLaw:
    """The law of (log τ/σ, log σ) with β and u integrated out.

    Parameters
    ----------
    sums : LevelSums
    prior : ndarray of shape (D + 0 or 1, 5)
        Prior-table rows of the coefficients and, if it is not known, of σ.
    scale : ndarray of shape (5,)
        The row of the prior of τ.
    """

    def __init__(self, sums, prior, scale):
        D = len(sums.units) - 1
        self.sums, self.prior, self.scale = sums, prior[:D], scale
        self.noise = prior[D] if len(prior) > D else None
        total = sums.weight.sum()
        R = sums.shrunken(0.0)[0]
        size = np.linalg.norm(R[:, -1]) / np.sqrt(total)
        self.reference = 1.0 if self.noise is None else size or 1.0
        self.total = total
        middle = -0.5 * np.log(total / np.count_nonzero(sums.weight))
        self.nodes = {}
        self.places, self.values = resolved(self._marginal, *(middle + np.array(WIDEST)))
        self.row = [self.nodes[place] for place in self.places]
        self.ratio = _inverse(self.places, self.values)

    def _marginal(self, places):
        """Log densities of log τ/σ at places; `nodes` keeps the `Node` of each."""
        for place in places:
            if place not in self.nodes:
                self.nodes[place] = self.node(place)
        return np.array([self.nodes[place].log_mass for place in places])

    def node(self, log_ratio):
        """The `Node` at log τ/σ."""
        R, log_det = self.sums.shrunken(np.exp(log_ratio))
        conditional = Conditional(R, self.prior, self.total, self.reference)
        constant = np.linalg.slogdet(conditional.axes)[1] - 0.5 * log_det

        def f(s):
            found = conditional.log_likelihood(s) + log_prior(self.scale, log_ratio + s) + constant
            return found if self.noise is None else found + log_prior(self.noise, s)

        if self.noise is None:
            value = f(np.zeros(1))
            return Node(conditional, np.zeros(1), value, float(value[0]))
        middle = np.log(self.reference)
        places, values = resolved(f, middle - 25.0, middle + 10.0)
        return Node(conditional, places, values, log_integral(places, values))

    def draw(self, rng, start, n):
        """n draws of (β, log σ if it is not known, log τ)."""
        log_ratio, u = self.ratio(start.random(n)), start.random(n)
        noise = rng.standard_normal((n, len(self.prior)))
        step = self.places[1] - self.places[0]
        share, before = np.modf((log_ratio - self.places[0]) / step)
        before = np.minimum(before.astype(int), len(self.places) - 2)
        beta, log_sigma = np.empty(noise.shape), np.empty(n)
        for j in np.unique(before):
            rows = np.flatnonzero(before == j)
            beta[rows], log_sigma[rows] = self._between(j, share[rows], u[rows], noise[rows])
        columns = [beta] if self.noise is None else [beta, log_sigma]
        return np.column_stack([*columns, log_ratio + log_sigma])

    def _between(self, j, share, u, noise):
        """β and log σ between nodes j and j + 1, from the same quantile and noise at both."""
        below, above = self.row[j : j + 2]
        log_sigma = (1.0 - share) * below.quantile(u) + share * above.quantile(u)
        ends = [node.conditional.placed(noise, log_sigma) for node in (below, above)]
        return (1.0 - share)[:, None] * ends[0] + share[:, None] * ends[1], log_sigma


def joint_law(problem):
    """The `JointLaw` of a problem."""
    return JointLaw(sums_of_levels(problem), problem.target.prior, problem.scales[0][0])


# -- draws ------------------------------------------------------------------------------------


def run_exact(problem, request, watch=None):
    """Make independent draws, with random streams for each chain; return the `GroupOutcome`."""
    law, L = joint_law(problem), problem.sizes[0]
    draws = np.stack([_parameters(law, request, c) for c in range(request.n_chains)])
    keep = request.n_draws if request.keep is None else request.keep
    effects = np.empty((L, request.n_chains, keep), dtype=np.float32)

    def of_chain(number):
        rng = streams.of_chain(request.seed, number).rows
        return draw_effects(law, draws[number], rng, effects[:, number])

    found = in_threads(of_chain, range(request.n_chains), request.n_jobs)
    moments = EffectMoments.mean_and_sd(found)
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    ess, _, rhat, _ = convergence.worst(draws)
    found = {"min_ess": ess, "max_rhat": rhat}
    kept, evidence = kept_draws(request.n_draws, keep), {"independent": np.ones(draws.shape[2])}
    return GroupOutcome(draws, [effects], [moments], Exact(), found, kept=kept, evidence=evidence)


def _parameters(law, request, number):
    """Draws of (β, log σ if it is not known, log τ) of one chain."""
    _, noise, start = streams.of_chain(request.seed, number)
    return law.draw(noise, start, request.n_draws)


def draw_effects(law, draws, rng, out):
    """Draw u for all draws of a chain, and write the kept ones to `out`; return `EffectMoments`."""
    sums, D = law.sums, len(law.prior)
    tau = np.exp(draws[:, -1])
    sigma = np.ones(len(draws)) if law.noise is None else np.exp(draws[:, -2])
    kept = kept_draws(len(draws), out.shape[1])
    moments = np.empty((2, len(sums.weight)))
    step = max(1, BLOCK_NUMBERS // len(draws))
    for first in range(0, len(sums.weight), step):
        rows = slice(first, first + step)
        growth = 1.0 + sums.weight[rows, None] * np.square(tau / sigma)
        residual = sums.raw_means[rows, D, None] - sums.raw_means[rows, :D] @ draws[:, :D].T
        u = rng.standard_normal(growth.shape, dtype=np.float32) * (tau / np.sqrt(growth))
        u += (1.0 - 1.0 / growth) * residual
        own = EffectMoments.of(u.T)
        moments[:, rows] = own.mean, own.squares
        out[rows] = u[:, kept]
    return EffectMoments(len(draws), *moments)
