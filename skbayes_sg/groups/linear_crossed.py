"""Linear regression with several crossed factors: Gibbs sampling of one factor after the other.

With the effects of the other factors taken from y, linear regression with one factor remains
(`linear_exact`). For λ = (τ_k/σ)², weighted means z̄_l of z = (x, 1, y) in the levels of factor k
and their total weights n_l, the moments of the rows with u_k integrated out are

    M(λ) = Σ_i w_i (z_i - z̄_l)(z_i - z̄_l)ᵀ + Σ_l n_l / (1 + n_l λ) z̄_l z̄_lᵀ = [[A, b], [bᵀ, c]],

and with the prior N(Λ⁻¹r, Λ⁻¹) of β also integrated out, Q = A/σ² + Λ, v = b/σ² + r, W = Σ w_i,

    log p = -W log σ - ½ Σ log(1 + n_l λ) - c/(2σ²) + ½ vᵀQ⁻¹v - ½ log |Q| + log p(τ_k) + log p(σ).

The effects of the other factors and X b, at the last draw b of the coefficients, are taken from y
first, and Q is the precision of what is then added to b: so c is about as large as the noise, and
nothing cancels however small the noise is. A visit to factor k makes random walks of
(log τ_k, log σ) in this law, and then draws β and all u_k given both, which is exact. Effects of
nested factors move against each other after each sweep (`translations`). Without collapsing, an
intercept would hardly move: Papaspiliopoulos, Roberts and Zanella (2020), Scalable inference for
crossed random effects models, Biometrika 107, 25-40.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._base import streams
from ..kernels.layout import FACT_Y
from ..priors import Normal
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family
from ..recipe.closed_form import conditional_of
from .adaptation import SHRUNK
from .chains import GroupChain, GroupSampler
from .crossed_kernels import FactorSums, crossed_log_density, random_walks
from .linear_exact import units_of
from .translations import translations_of

__all__ = ["CrossedGibbs", "CrossedRows"]

WALKS = 6  # random-walk steps of the scales in a visit
# Acceptance rate that random walks in two dimensions aim at, and their first width in units of the
# roots of covariances.
ACCEPTANCE, STEP = 0.35, 1.7
FIRST = 6  # sweeps before a chain starts, in which its scales are set
LEAST_TAU, LEAST_SIGMA = 1e-3, 1e-6  # at the start, in standard deviations of the response


class CrossedRows:
    """The rows in standard units, with what does not change from sweep to sweep.

    Parameters
    ----------
    problem : skbayes_sg.groups.problem.GroupProblem
    """

    def __init__(self, problem):
        target, self.problem = problem.target, problem
        self.weight, self.D = target.weight, problem.n_coefficients
        Z = np.column_stack([problem.design, target.data.facts[:, FACT_Y]])
        T, D = units_of(Z, self.weight, bool(target.intercept)), self.D
        Z = Z @ np.linalg.inv(T)
        self.X, self.y, self.unit = np.ascontiguousarray(Z[:, :D]), Z[:, D].copy(), T[D, D]
        inverse = np.linalg.inv(T[:D, :D])
        self.to_raw, self.at_zero = (
            inverse * self.unit,
            inverse @ T[:D, D],
        )  # β = to_raw b + at_zero
        prior = target.prior[:D]
        precision = np.where(of_family(prior, Normal), prior[:, SCALE] ** -2.0, 0.0)
        loc = np.where(precision > 0.0, prior[:, LOC], 0.0)
        self.precision = (self.to_raw.T * precision) @ self.to_raw
        self.drift = self.to_raw.T @ (precision * (loc - self.at_zero))
        self.total, self.codes = self.weight.sum(), list(problem.codes.T.astype(np.int64))
        self.noise = target.prior[D] if len(target.prior) > D else None
        self.priors = [np.stack([own[0], *target.prior[D:]]) for own in problem.scales]
        self.sums = [self._sums(k) for k in range(problem.n_factors)]
        self.translations = translations_of(problem)

    def _sums(self, k):
        """n, x̄, weighted rows less the mean of their level of factor k, and moments of these."""
        codes, L = self.codes[k], self.problem.sizes[k]
        n = np.bincount(codes, self.weight, L)
        means = np.stack([self.means(self.weight * x, k, n) for x in self.X.T], axis=1)
        off = self.X - means[codes]
        weighted = off * self.weight[:, None]
        return n, means, np.ascontiguousarray(weighted.T), weighted.T @ off

    def means(self, values, k, n):
        """Σ values / n over the rows of each level of factor k; zero for levels without rows."""
        return np.bincount(self.codes[k], values, len(n)) / np.where(n > 0.0, n, 1.0)


class Visit:
    """The law of (log τ_k, log σ) given the effects of the other factors, and b and u_k given both.

    Effects, σ and τ are in units of the response's standard deviation. The argument `b` is the last
    draw of b.
    """

    def __init__(self, rows, k, u, b):
        self.rows, self.k, self.unit, self.b = rows, k, math.log(rows.unit), b
        self.n, self.x, weighted, self.inner = rows.sums[k]
        y = rows.y - rows.X @ b - sum(u[j][rows.codes[j]] for j in range(len(u)) if j != k)
        wy = rows.weight * y
        self.y = rows.means(wy, k, self.n)
        self.cross = weighted @ y
        off = y - self.y[rows.codes[k]]
        self.square = off @ (rows.weight * off)

    @property
    def sums(self):
        """The `FactorSums` of this visit, which kernels take."""
        rows = self.rows
        return FactorSums(
            self.n, self.x, self.y, self.inner, self.cross, self.square, rows.precision,
            rows.drift - rows.precision @ self.b, rows.total,
        )  # fmt: skip

    def draw(self, log_tau, log_sigma, rng):
        """Draw b and u_k given log τ_k and log σ."""
        D, place = self.rows.D, np.array([log_tau, log_sigma])
        factor, white = np.empty((D, D)), np.empty(D)
        crossed_log_density(self.sums, self.rows.priors[self.k], self.unit, place, factor, white)
        white += rng.standard_normal(D)
        more = linalg.solve_triangular(factor, white, lower=True, trans="T", check_finite=False)
        growth = 1.0 + self.n * math.exp(2.0 * (log_tau - log_sigma))
        u = math.exp(log_tau) / np.sqrt(growth) * rng.standard_normal(len(growth))
        return self.b + more, u + (1.0 - 1.0 / growth) * (self.y - self.x @ more)


@dataclass
class CrossedGibbs(GroupSampler):
    """The sampler: its sweep, and the widths of its random walks.

    Parameters
    ----------
    rows : CrossedRows
    roots : list of ndarray of shape (2, 2) or (1, 1)
        For each factor a triangular factor of the covariance of (log τ_k, log σ).
    """

    rows: CrossedRows
    roots: list

    name = "collapsed_gibbs"
    passes = 2.0

    @classmethod
    def of(cls, problem):
        """The setting with which the chains of a problem begin."""
        conditional_of(problem.target)  # raises where flat priors leave no posterior
        rows = CrossedRows(problem)
        widths = [1.0 / np.sqrt(2.0 * L) for L in problem.sizes]
        noise = [] if rows.noise is None else [1.0 / np.sqrt(2.0 * rows.total)]
        return cls(rows, [np.diag([width, *noise]) for width in widths])

    def new_chain(self, seed, number):
        """Start a chain: a few sweeps, with the sizes of effects and residuals as scales."""
        rows, problem = self.rows, self.rows.problem
        rng = streams.of_chain(seed, number).noise
        u, b = [np.zeros(L) for L in problem.sizes], np.zeros(rows.D)
        log_tau = np.log(0.3) * np.ones(len(u))
        log_sigma = -0.3 if rows.noise is not None else -math.log(rows.unit)
        for _ in range(FIRST):
            for k in range(len(u)):
                b, u[k] = Visit(rows, k, u, b).draw(log_tau[k], log_sigma, rng)
                log_tau[k] = 0.5 * math.log(np.square(u[k]).mean() + LEAST_TAU**2)
                if rows.noise is not None:
                    off = (
                        rows.y - rows.X @ b - sum(e[c] for e, c in zip(u, rows.codes, strict=True))
                    )
                    rest = off @ (rows.weight * off) / rows.total
                    log_sigma = 0.5 * math.log(rest + LEAST_SIGMA**2)
        for k, root in enumerate(self.roots):
            log_tau[k] += root[0, 0] * rng.standard_normal()
        chain = GroupChain(number, np.empty(0), [None] * len(u), [None] * len(u), rng)
        chain.state = log_tau, log_sigma, u, b
        self._told(chain)
        return chain

    def begin(self, chain):
        """Reset the adapted step sizes of a chain."""
        chain.log_step, chain.average = np.zeros((2, len(self.roots)))

    def sweep(self, chain, adapts):
        """Visit all factors in turn, then translate effects of pairs of factors."""
        log_tau, log_sigma, u, b = chain.state
        for k, root in enumerate(self.roots):
            visit = Visit(self.rows, k, u, b)
            log_tau[k], log_sigma, share = self._walks(chain, visit, root, log_tau[k], log_sigma)
            b, u[k] = visit.draw(log_tau[k], log_sigma, chain.rng)
            chain.accepted += share, 1.0
            if adapts:
                chain.adapt(k, share - ACCEPTANCE, 3.0)
        self._translate(u, log_tau, chain.rng)
        chain.state = log_tau, log_sigma, u, b
        self._told(chain)

    def _translate(self, u, log_tau, rng):
        """Move the effects of two factors against each other, and their scales."""
        rows, columns, psi = self.rows, [own[:, None] for own in u], list(log_tau[:, None])
        for translation in rows.translations:
            translation.move(columns, psi, rows.problem.scales, math.log(rows.unit), rng)
        log_tau[:] = np.concatenate(psi)

    def _walks(self, chain, visit, root, log_tau, log_sigma):
        """log τ_k and log σ after the random walks of a visit, and their acceptance rate."""
        rows, rng, place = self.rows, chain.rng, np.array([log_tau, log_sigma])
        root = STEP * math.exp(chain.log_step[visit.k]) * root
        noise = rng.standard_normal((WALKS, len(root))), np.log(rng.random(WALKS))
        taken = random_walks(visit.sums, rows.priors[visit.k], visit.unit, root, place, *noise)
        return place[0], place[1], taken / WALKS

    def _told(self, chain):
        """Set θ, ψ and effects of a chain, in the units of the rows, from its state."""
        (log_tau, log_sigma, u, b), rows, unit = chain.state, self.rows, math.log(self.rows.unit)
        beta = rows.to_raw @ b + rows.at_zero
        chain.theta = beta if rows.noise is None else np.append(beta, log_sigma + unit)
        chain.psi = [log_tau[k : k + 1] + unit for k in range(len(u))]
        chain.u = [own[:, None] * rows.unit for own in u]

    def recentred(self, chains):
        """The sampler with random walks whose covariances are learnt from the draws so far."""
        draws = np.concatenate([chain.draws for chain in chains])
        known, D, roots = self.rows.noise is None, self.rows.D, []
        for k, root in enumerate(self.roots):
            own = draws[:, [D + k]] if known else draws[:, [D + 1 + k, D]]
            C = len(own) * np.atleast_2d(np.cov(own.T)) + SHRUNK * root @ root.T
            roots.append(np.linalg.cholesky(C / (len(own) + SHRUNK)))
        return CrossedGibbs(self.rows, roots)
