"""Linear regression with one factor whose levels have slopes of their own.

The effects u_l ~ N(0, C Cᵀ) of a level multiply the columns z = (1, those whose slopes vary), with
C = diag(s) L for standard deviations s and the Cholesky factor L of their correlation matrix, whose
prior is uniform over all correlation matrices. With β and u integrated out (`slope_kernels` has the
formulas) a few numbers are left: ψ, which is log s and the inverse hyperbolic tangents of partial
correlations, and log σ. Independent proposals from a mixture of Student's t laws
(`student_mixtures`) are accepted or rejected as by Metropolis and Hastings. The fit of the mixture
begins at the mode, with the Hessian there, which is not enough: where effects or slopes hardly
vary, log s has a long tail to the left, which no Hessian shows. Proposals do not depend on where a
chain is, so all of them are made at once. Where too few draws are effective, there are twice as
many proposals from one draw to the next, unless `thin` was asked for.
"""

import numpy as np
from scipy import linalg, optimize

from .._base import streams
from .._base.threads import in_threads
from ..diagnostics import convergence
from ..kernels.layout import FACT_Y
from ..posterior.moments import kept_draws
from ..priors import Normal
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family
from ..recipe.closed_form import Conditional, triangle
from .chains import judged, price_of
from .covariance import Covariance, n_scales
from .effect_moments import EffectMoments
from .linear_exact import units_of
from .problem import GroupOutcome
from .slope_kernels import SlopeSums, factor_levels, slope_draws, slope_log_densities
from .student_mixtures import fitted_mixture, n_densities, one_student

__all__ = ["SlopeLaw", "fitted_proposal", "run_slopes"]

STEP = 1e-3  # step of the second differences that make the Hessian at the mode
WARMUP = 50  # first proposals of a chain, whose states are not kept, unless they are given
ENOUGH = 0.25  # share of effective draws from which proposals are not doubled
# There are at most so many proposals from one draw to the next. They are not doubled where that is
# predicted to take more than so many seconds, and no mixture is fitted where that would.
MOST_THIN, MOST_SECONDS = 32, 10.0
# Seconds of an operation, by which prices are predicted. A draw of all effects counts as two
# proposals.
OPERATION = 2e-9
AT_ONCE = 1_000_000  # most numbers in the effects that are drawn together


class SlopeLaw:
    """The law of (log s, partial correlations, log σ) with β and u integrated out.

    Parameters
    ----------
    problem : skbayes_sg.groups.problem.GroupProblem
    """

    def __init__(self, problem):
        target, codes = problem.target, problem.codes[:, 0]
        weight, y = target.weight, target.data.facts[:, FACT_Y]
        rows = np.column_stack([problem.design, y])
        self.units = units_of(rows, weight, bool(target.intercept))
        rows = rows @ np.linalg.inv(self.units)
        z = np.column_stack([np.ones(len(y)), problem.sloped(0)])
        self.K, self.D = z.shape[1], rows.shape[1] - 1
        prior = target.prior
        self.scales = problem.scales[0]
        self.noise = prior[self.D :][:1]  # no row if σ is known
        self.n = n_scales(self.K) + len(self.noise)
        # An improper posterior is an error here.
        Conditional(triangle(target), prior[: self.D], weight.sum(), 1.0)
        root = np.sqrt(weight)[:, None]
        levels = _levels(root * rows, root * z, codes, problem.sizes[0])
        self.sums = self._sums(levels, prior[: self.D], weight.sum())

    def _sums(self, levels, prior, total):
        """The `SlopeSums`, with the prior of β in the standard units of `units_of`."""
        T, unit, normal = self.units[:-1, :-1], self.units[-1, -1], of_family(prior, Normal)
        mean = (T @ np.where(normal, prior[:, LOC], 0.0) - self.units[:-1, -1]) / unit
        root = np.linalg.solve(T.T, np.diag(np.where(normal, unit / prior[:, SCALE], 0.0))).T
        pull = root @ mean
        return SlopeSums(
            *levels, root.T @ root, root.T @ pull, float(pull @ pull), float(total),
            float(np.log(unit)),
        )  # fmt: skip

    def start(self):
        """A first θ, where sds of effects are about their standard errors within a level."""
        sums, theta = self.sums, np.zeros(self.n)
        log_size = 0.5 * np.log(np.square(sums.F).sum(axis=(0, 1)) / len(sums.F))
        theta[: self.K] = -np.where(np.isfinite(log_size), log_size, 0.0)
        if len(self.noise):
            square = sums.within[-1, -1] + np.square(sums.S[:, :, -1]).sum()
            theta[-1] = 0.5 * np.log(square / sums.total) + sums.log_unit
            theta[: self.K] += theta[-1]
        return theta

    def log_densities(self, places):
        """log p(θ | y) at places of shape (m, n), up to a constant; -∞ in the place of NaN."""
        out = np.empty(len(places))
        slope_log_densities(self.sums, self.scales, self.noise, np.ascontiguousarray(places), out)
        return np.where(np.isnan(out), -np.inf, out)

    def coefficients(self, rng, places):
        """Draw β and u given θ, once for each place: arrays (m, D) and (m, n_levels, K)."""
        m, L = len(places), len(self.sums.F)
        normals = rng.standard_normal((m, self.D + L * self.K))
        beta, u = np.empty((m, self.D)), np.empty((m, L, self.K))
        slope_draws(self.sums, self.scales, np.ascontiguousarray(places), normals, beta, u)
        beta = self.units[-1, -1] * beta + self.units[:-1, -1]
        return linalg.solve(self.units[:-1, :-1], beta.T).T, u

    def seconds(self, n):
        """Predicted seconds of n evaluations of the log density."""
        K, D = self.K, self.D
        return n * OPERATION * (len(self.sums.F) * (100 + K * (K * K + K * D + D * D)) + D**3)


def _levels(rows, z, codes, n_levels):
    """F, S and Σ HᵀH of the levels (see `slope_kernels`)."""
    K, D = z.shape[1], rows.shape[1]
    found = np.zeros((n_levels, K, K)), np.zeros((n_levels, K, D)), np.zeros((D, D))
    factor_levels(rows, z, codes, *found)
    return found


def mode_and_width(law):
    """The mode of θ, and R with R Rᵀ the inverse of the Hessian of -log p there.

    Small and negative eigenvalues of the Hessian are raised first.
    """
    start = law.start()
    options = {"maxfev": 400 * law.n, "xatol": 1e-4, "fatol": 1e-4}
    found = optimize.minimize(
        lambda x: -law.log_densities(x[None])[0], start, method="Nelder-Mead", options=options
    )
    mode, n = found.x, law.n
    H, steps = np.zeros((n, n)), STEP * np.eye(n)
    for i in range(n):
        for j in range(i + 1):
            signs = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
            ends = law.log_densities(mode + signs @ np.stack([steps[i], steps[j]]))
            H[i, j] = H[j, i] = -ends @ signs.prod(axis=1) / (4.0 * STEP**2)
    values, axes = linalg.eigh(H)
    return mode, axes / np.sqrt(np.clip(values, 0.3, None))


def _proposed(law, proposal, rng, m):
    """Draw m proposals; return them and their log importance weights, up to a constant."""
    places = proposal.draw(rng, m)
    return places, law.log_densities(places) - proposal.log_density(places)


def fitted_proposal(law, rng):
    """The `StudentMixture` from which proposals are drawn, fitted to the law of θ."""
    first = one_student(*mode_and_width(law))
    return fitted_mixture(law.log_densities, first, rng, _cheap(law))


def _cheap(law):
    """Whether fitting a mixture is predicted to take less than `MOST_SECONDS`."""
    return law.seconds(n_densities(law.n, True)) < MOST_SECONDS


def run_slopes(problem, request, watch=None):
    """Run Metropolis-Hastings chains of independent proposals; return the `GroupOutcome`."""
    law = SlopeLaw(problem)
    n_warmup = _warmup(request)
    n = request.n_chains * (n_warmup + request.n_draws * (2 + (request.thin or 1)))
    price_of(problem).tell(law.seconds(n + n_densities(law.n, _cheap(law))))
    proposal = fitted_proposal(law, streams.of_proposal(request.seed))
    rngs = [streams.of_chain(request.seed, c).noise for c in range(request.n_chains)]
    places, accepted, thin = _visited(law, proposal, rngs, request)
    kept = kept_draws(request.n_draws, request.n_draws if request.keep is None else request.keep)
    effects = np.empty((problem.sizes[0] * law.K, request.n_chains, len(kept)), dtype=np.float32)

    def given(c):
        return _coefficients(law, places[c], rngs[c], kept, effects[:, c])

    found = in_threads(given, range(request.n_chains), request.n_jobs)
    laws = [[Covariance(place, law.K) for place in own[:, : n_scales(law.K)]] for own in places]
    correlations = np.array([[one.correlations for one in own] for own in laws])
    draws = np.concatenate(
        [
            np.stack([beta for beta, _ in found]), places[..., n_scales(law.K) :],
            places[..., : law.K], correlations,
        ],
        axis=2,
    )  # fmt: skip
    moments = EffectMoments.mean_and_sd([own for _, own in found])
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    ess, rhat = judged(draws, request)
    said = {"min_ess": ess, "max_rhat": rhat, "acceptance": accepted}
    factors = np.array([own[k].C for own in laws for k in kept])
    return GroupOutcome(
        draws, [effects], [moments], "independence_mh", said, n_warmup, kept=kept,
        factors=[factors], thin=thin,
    )  # fmt: skip


def _warmup(request):
    return WARMUP if request.n_warmup is None else request.n_warmup


def _visited(law, proposal, rngs, request):
    """Places of all draws (n_chains, n_draws, n), the share of accepted proposals, and `thin`."""
    thin, n_warmup = request.thin or 1, _warmup(request)
    while True:
        n = n_warmup + thin * request.n_draws

        def chain(rng, n=n):
            return _chain(law, proposal, rng, n)

        found = in_threads(chain, rngs, request.n_jobs)
        places = np.stack([own[n_warmup + thin - 1 :: thin] for own, _ in found])
        dear = law.seconds(2.0 * n * len(rngs)) > MOST_SECONDS or 2 * thin > MOST_THIN
        ess = convergence.worst_of_chains(places)[0]
        if request.thin is not None or dear or ess >= ENOUGH * len(rngs) * request.n_draws:
            return places, float(np.mean([share for _, share in found])), thin
        thin *= 2


def _chain(law, proposal, rng, n):
    """The place of a chain after each of n proposals, and the share of them that it accepted."""
    places, log_w = _proposed(law, proposal, rng, n)
    bounds, now, visited = np.log(rng.random(n)), 0, np.zeros(n, dtype=int)
    for k in range(1, n):
        now = k if bounds[k] < log_w[k] - log_w[now] else now
        visited[k] = now
    return places[visited], len(np.unique(visited)) / n


def _coefficients(law, places, rng, kept, out):
    """β for the draws of a chain, and the `EffectMoments` of its effects.

    Effects of the draws `kept` are written to `out`.
    """
    beta, moments = np.empty((len(places), law.D)), EffectMoments.none(len(out))
    at_once = max(1, AT_ONCE // len(out))
    for k in range(0, len(places), at_once):
        part = slice(k, min(k + at_once, len(places)))
        beta[part], u = law.coefficients(rng, places[part])
        u = u.reshape(len(u), -1)
        moments = moments + EffectMoments.of(u)
        own = np.flatnonzero((kept >= part.start) & (kept < part.stop))
        out[:, own] = u[kept[own] - k].T
    return beta, moments
