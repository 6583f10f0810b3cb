r"""Linear regression with one learned scale: no chain, independent draws.

With a flat intercept integrated out, W = Σ w_i - 1 (Σ w_i without intercept), y less X loc, and
X diag(u) = U diag(S) Vᵀ, the coefficients are β = loc + u V γ. With λ = τ/σ, c = Uᵀy, and ρ² what
the columns leave of |y|²,

    γ_k | λ, σ ~ N(S_k λ² c_k / p_k, σ² λ² / p_k),     p_k = 1 + S_k² λ²,

    -log p(λ, σ | y) = W log σ + ½ Σ_k log p_k + M(λ)/(2σ²) - log p(σ) σ - log p(τ) τ,
    M(λ) = ρ² + Σ_k c_k²/p_k.

M costs O(d) for each λ, and nothing for each σ. The law of log λ is tabulated, between ends where
its density is `DEPTH` nats below the top (the left tail falls only like τ where there may be no
effect at all), and that of log σ given each log λ of the table. Both are inverted for draws.
"""

import numpy as np

from .._base import streams
from .._base.svd import svd
from ..kernels.layout import frozen
from ..kernels.many_draws import prior_gradients, prior_values
from ..models import Linear
from ..priors import Flat
from ..priors.families import of_family
from ..recipe.closed_form import (
    exact_outcome,
    is_affordable,
    tell_price,
    triangle,
    triangular_factor,
)

__all__ = ["has_quadrature", "is_linear_with_one", "run_quadrature"]

DEPTH = 32.0  # a tabulated density ends where it is this many nats below its maximum
COARSE, PLACES = 120, 400  # nodes of log λ: while its range is looked for, and in the table
NODES = 65  # nodes of log σ for each log λ
FARTHEST = 60.0  # largest distance of log λ from -log of the largest singular value


def has_quadrature(target, scales):
    """Whether this is linear regression with unknown noise, one scale and a flat intercept."""
    rest = target.prior[len(scales.group) : len(target.prior) - target.model.n_extra]
    return is_linear_with_one(target, scales) and bool(of_family(rest, Flat).all())


def is_linear_with_one(target, scales):
    """Whether only the prior of the intercept can be in the way of `has_quadrature`."""
    one = scales.is_common and target.memory is None
    return is_affordable(target) and isinstance(target.model, Linear) and one


class TwoLaws:
    """The joint law of log λ and log σ, and the coefficients given both."""

    def __init__(self, target, scales):
        d, intercept = target.n_features, bool(target.intercept)
        R = triangle(target)
        if intercept:
            columns = [R[:, d : d + 1], R[:, :d], R[:, -1:]]
            R = triangular_factor(np.concatenate(columns, axis=1))
            self.first, R = R[0], R[1:, 1:]
        self.intercept, self.scales = intercept, scales
        self.total = target.total_weight - intercept
        U, self.S, Vt = svd(R[:d, :d] * scales.unit)
        self.V, self.c = Vt.T, U.T @ (R[:d, d] - R[:d, :d] @ scales.loc)
        self.rest = float(R[d, d] ** 2)
        self.prior = frozen(np.concatenate([target.prior[-1:], scales.table]))
        self._tabulate()

    def _precisions(self, log_lambda):
        """p_k at log λ of any shape, with k as the last axis."""
        return 1.0 + np.exp(2.0 * log_lambda)[..., None] * self.S**2

    def _log_det_and_misfit(self, log_lambda):
        """½ Σ_k log p_k and M(λ) at nodes log λ, with which the law of log σ is known."""
        p = self._precisions(log_lambda)
        return 0.5 * np.log(p).sum(axis=-1), self.rest + (self.c**2 / p).sum(axis=-1)

    def _energy(self, s, log_lambda, log_det, misfit):
        """-log p(λ, σ | y) at places s = log σ of any shape, the other arguments of the same."""
        places = np.stack([s.ravel(), (s + log_lambda).ravel()], axis=1)
        found = np.zeros(len(places))
        prior_values(self.prior, places, found)
        with np.errstate(over="ignore"):
            likelihood = self.total * s + log_det + 0.5 * misfit * np.exp(-2.0 * s)
        return likelihood + found.reshape(s.shape)

    def _slope(self, s, log_lambda, misfit):
        """The derivative of `_energy` in s = log σ, at one s for each log λ."""
        places, found = np.stack([s, s + log_lambda], axis=1), np.zeros((len(s), 2))
        prior_gradients(self.prior, places, found)
        with np.errstate(over="ignore"):
            return self.total - misfit * np.exp(-2.0 * s) + found.sum(axis=1)

    def _section(self, log_lambda):
        """For each log λ: nodes of log σ around its mode, and -log p(λ, σ | y) at them."""
        log_det, misfit = self._log_det_and_misfit(log_lambda)
        low, high = np.full(len(log_lambda), -300.0), np.full(len(log_lambda), 300.0)
        for _ in range(60):  # bisections for the zero of the slope, which rises in log σ
            middle = 0.5 * (low + high)
            rising = self._slope(middle, log_lambda, misfit) > 0.0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        mode = 0.5 * (low + high)
        top = self._energy(mode, log_lambda, log_det, misfit)
        ends = []
        for sign in (-1.0, 1.0):
            step = np.full(len(mode), 1e-6)
            for _ in range(60):
                inside = self._energy(mode + sign * step, log_lambda, log_det, misfit) < top + DEPTH
                step = np.where(inside, 1.5 * step, step)
            ends.append(mode + sign * step)
        s = np.linspace(*ends, NODES, axis=1)
        return s, self._energy(s, log_lambda[:, None], log_det[:, None], misfit[:, None])

    def _laws(self, places):
        """For each node log λ: nodes of log σ, conditional densities, and log p(log λ | y)."""
        s, energy = self._section(places)
        low = energy.min(axis=1)
        density = np.exp(low[:, None] - energy)
        log_mass = np.log(np.trapezoid(density, axis=1) * (s[:, -1] - s[:, 0])) - low
        return s, density, log_mass - log_mass.max()

    def _tabulate(self):
        """Tabulate the law of log λ between its ends, and that of log σ given each log λ."""
        middle = -np.log(self.S[0]) if self.S[0] > 0.0 else 0.0  # of columns that are all zero
        places = np.linspace(middle - FARTHEST, middle + FARTHEST, COARSE)
        for n in (COARSE, PLACES):
            inside = np.flatnonzero(self._laws(places)[2] > -DEPTH)
            first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, len(places) - 1)
            places = np.linspace(places[first], places[last], n)
        self.log_lambda = places
        self.s, density, log_density = self._laws(places)
        self.below = _cumulated(np.exp(log_density)[None])[0]
        self.shares = _cumulated(density)

    def draw(self, rng, start, n):
        """Draw coefficients, intercept, log σ and log τ: (n, n_parameters + 1)."""
        log_lambda = np.interp(start.random(n), self.below, self.log_lambda)
        log_sigma = self._log_sigma(log_lambda, start.random(n))
        p, sigma = self._precisions(log_lambda), np.exp(log_sigma)[:, None]
        ratio = np.exp(log_lambda)[:, None]
        # Noise is drawn in the axes of the coefficients: the signs of columns of V do not matter.
        noise = rng.standard_normal(p.shape) @ self.V / np.sqrt(p)
        gamma = self.S * ratio**2 * self.c / p + sigma * ratio * noise
        beta = self.scales.loc + gamma @ self.V.T * self.scales.unit
        found = [beta]
        if self.intercept:
            b = (self.first[-1] - beta @ self.first[1:-1]) / self.first[0]
            found.append(b[:, None] + sigma / self.first[0] * rng.standard_normal((n, 1)))
        return np.concatenate([*found, np.stack([log_sigma, log_lambda + log_sigma], 1)], axis=1)

    def _log_sigma(self, log_lambda, u):
        """The quantiles u of log σ given log λ, interpolated between the two nearest nodes."""
        i = np.clip(np.searchsorted(self.log_lambda, log_lambda) - 1, 0, len(self.log_lambda) - 2)
        step = self.log_lambda[1] - self.log_lambda[0]
        t = (log_lambda - self.log_lambda[i]) / step
        low, high = (self._quantile(i + k, u) for k in (0, 1))
        return (1.0 - t) * low + t * high

    def _quantile(self, rows, u):
        """The quantiles u of log σ at some rows of the table."""
        found = np.empty(len(rows))
        for row in np.unique(rows):
            own = rows == row
            found[own] = np.interp(u[own], self.shares[row], self.s[row])
        return found


def _cumulated(density):
    """The share of the mass below each of evenly spaced nodes, for each row of densities."""
    cells = np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1)
    return np.concatenate([np.zeros((len(cells), 1)), cells], axis=1) / cells[:, -1:]


def run_quadrature(target, scales, request, watch=None):
    """Draw (coefficients, intercept, log σ, log τ) independently; return the `Outcome`."""
    tell_price(target)
    laws = TwoLaws(target, scales)

    def chain(number):
        _, rng, start = streams.of_chain(request.seed, number)
        return laws.draw(rng, start, request.n_draws)

    return exact_outcome(chain, target, request, watch, {})
