"""A reference for regression with few rows for so many columns, by Gibbs sweeps.

It is for linear regression under Laplace and Student's t priors, and for robust regression. Given
the variances v of the coefficients and the precisions ω of the rows all but log σ is normal. A
sweep draws log σ by a slice with the coefficients integrated out, these given σ, v, log ν by a
slice, and ω: in φ, with the Cholesky factor of P(σ) = AᵀWA/σ² + JᵀV⁻¹J.
"""

import numpy as np
from arviz_stats.base import array_stats
from scipy import linalg
from scipy.special import gammaln

from .density import of_positive
from .references import LEAST_ESS, RHAT, Reference

LARGEST = 60  # coefficients
CHAINS, WARMUP, LENGTH = 4, 500, 4000
WIDTH = 2.0  # of a slice
LOWEST = -14.0  # log σ, below which P cannot be factored


class Sweeps:
    """One chain."""

    def __init__(self, density, rng):
        d, self.rng = density, rng
        self.d, self.w, self.u = d, d.w.copy(), float(np.log(5.0) + rng.normal())
        self.A = np.column_stack([d.X, np.ones(d.n)]) if d.intercept else d.X
        self.v = np.where(d.kinds == "Flat", np.inf, d.scale**2)
        self.s = float(rng.normal())
        self._rows()
        self._prior()

    def _rows(self):
        A, w, y = self.A, self.w, self.d.y
        self.S, self.h, self.yy = (A.T * w) @ A, A.T @ (w * y), float(w @ y**2)

    def _prior(self):
        d, precision = self.d, 1.0 / self.v
        self.M = (d.J.T * precision) @ d.J
        self.drift = d.J.T @ (precision * (d.loc - d.c))

    def _law(self, s):
        """log p(y, s | v) and what draws of φ need."""
        if s < LOWEST:
            return -np.inf, None
        t = np.exp(-2.0 * s)
        L = linalg.cholesky(t * self.S + self.M, lower=True, check_finite=False)
        half = linalg.solve_triangular(L, t * self.h + self.drift, lower=True)
        log_p = -self.d.w.sum() * s - np.log(np.diag(L)).sum() - 0.5 * (t * self.yy - half @ half)
        log_p -= 0.5 * (self.d.floor / self.d.s_y * np.exp(-s)) ** 2
        log_p -= float(of_positive(self.d.positive[0], s + np.log(self.d.s_y))[0])
        return log_p, (L, half)

    def _sliced(self, law, x):
        """A new place under a law, by a slice, and what goes with it."""
        level = law(x)[0] - self.rng.exponential()
        low = x - WIDTH * self.rng.random()
        high = low + WIDTH
        while law(low)[0] > level:
            low -= WIDTH
        while law(high)[0] > level:
            high += WIDTH
        while True:
            new = self.rng.uniform(low, high)
            log_p, parts = law(new)
            if log_p > level:
                return new, parts
            low, high = (new, high) if new < x else (low, new)

    def move(self):
        self.s, (L, half) = self._sliced(self._law, self.s)
        noise = self.rng.normal(size=len(half))
        phi = linalg.solve_triangular(L, half + noise, trans="T", lower=True)
        self._variances(self.d.J @ phi + self.d.c - self.d.loc)
        if self.d.kind == "linear":
            return np.append(phi, self.s)
        z = (self.d.y - self.A @ phi) * np.exp(-self.s)
        self.u, _ = self._sliced(lambda u: (self._law_of_df(u, z), None), self.u)
        nu = np.exp(self.u)
        self.w = np.maximum(self.rng.gamma(0.5 * (nu + 1.0), 2.0 / (nu + z**2)), 1e-12)
        self._rows()
        return np.r_[phi, self.s, self.u]

    def _law_of_df(self, u, z):
        if not -12.0 < u < 12.0:
            return -np.inf
        nu = np.exp(u)
        each = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * u
        log_p = len(z) * each - 0.5 * (nu + 1.0) * np.log1p(z**2 / nu).sum()
        return log_p - float(of_positive(self.d.positive[1], np.float64(u))[0])

    def _variances(self, b):
        d, rng = self.d, self.rng
        one = d.kinds == "Laplace"
        size = np.maximum(np.abs(b[one]), 1e-9 * d.scale[one])
        self.v[one] = 1.0 / rng.wald(1.0 / (d.scale[one] * size), d.scale[one] ** -2.0)
        t = d.kinds == "StudentT"
        rate = 0.5 * (d.shape[t] * d.scale[t] ** 2 + b[t] ** 2)
        self.v[t] = rate / rng.gamma(0.5 * (d.shape[t] + 1.0))
        self._prior()


def sweeps(density, rng):
    """Draws of chains that agree, or None."""
    d = density
    suits = not d.gaussian if d.kind == "linear" else d.kind == "robust" and (d.w == 1.0).all()
    if not suits or d.n > 2 * len(d.J) or len(d.J) > LARGEST:
        return None
    chains = [Sweeps(d, rng) for _ in range(CHAINS)]
    draws = np.empty((CHAINS, LENGTH, d.D))
    try:
        for k in range(-WARMUP, LENGTH):
            for c, chain in enumerate(chains):
                draws[c, k] = chain.move()
    except linalg.LinAlgError:
        return None
    by_parameter = np.moveaxis(draws, 2, 0)
    if array_stats.rhat(by_parameter).max() > RHAT:
        return None
    if array_stats.ess(by_parameter, method="tail", prob=(0.05, 0.95)).min() < LEAST_ESS:
        return None
    points = d.theta(draws.reshape(-1, d.D))
    weights = np.full(len(points), 1.0 / len(points))
    return Reference("sweeps", points, weights, np.inf, points.reshape(CHAINS, LENGTH, -1))
