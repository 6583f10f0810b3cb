"""A reference for linear regression under Laplace and Student's t priors, by Gibbs sweeps.

Given the variances v of the coefficients all but log σ is normal. A sweep draws log σ by a slice
with the coefficients integrated out, these given σ, and then v: in φ, with the Cholesky factor of
P(σ) = AᵀWA/σ² + JᵀV⁻¹J.
"""

import numpy as np
from arviz_stats.base import array_stats
from scipy import linalg

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
        self.d = d
        A = np.column_stack([d.X, np.ones(d.n)]) if d.intercept else d.X
        self.S, self.h, self.yy = (A.T * d.w) @ A, A.T @ (d.w * d.y), float(d.w @ d.y**2)
        self.v = np.where(d.kinds == "Flat", np.inf, d.scale**2)
        self.s = float(rng.normal())
        self._prior()

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

    def move(self):
        level = self._law(self.s)[0] - self.rng.exponential()
        low = self.s - WIDTH * self.rng.random()
        high = low + WIDTH
        while self._law(low)[0] > level:
            low -= WIDTH
        while self._law(high)[0] > level:
            high += WIDTH
        while True:
            s = self.rng.uniform(low, high)
            log_p, parts = self._law(s)
            if log_p > level:
                break
            low, high = (s, high) if s < self.s else (low, s)
        self.s, (L, half) = s, parts
        noise = self.rng.normal(size=len(half))
        phi = linalg.solve_triangular(L, half + noise, trans="T", lower=True)
        self._variances(self.d.J @ phi + self.d.c - self.d.loc)
        return np.append(phi, s)

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
    suits = d.kind == "linear" and not d.gaussian and len(d.J) <= LARGEST
    if not suits or d.n > len(d.J):
        return None
    chains = [Sweeps(d, rng) for _ in range(CHAINS)]
    draws = np.empty((CHAINS, LENGTH, d.D))
    try:
        for k in range(-WARMUP, LENGTH):
            for c, chain in enumerate(chains):
                draws[c, k] = chain.move()
    except linalg.LinAlgError:
        return None
    draws[..., -1] = np.maximum(draws[..., -1], LOWEST)
    by_parameter = np.moveaxis(draws, 2, 0)
    if array_stats.rhat(by_parameter).max() > RHAT:
        return None
    if array_stats.ess(by_parameter, method="tail", prob=(0.05, 0.95)).min() < LEAST_ESS:
        return None
    points = d.theta(draws.reshape(-1, d.D))
    weights = np.full(len(points), 1.0 / len(points))
    return Reference("sweeps", points, weights, np.inf, points.reshape(CHAINS, LENGTH, -1))
