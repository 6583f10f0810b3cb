"""The scales of a horseshoe given the coefficients: λ_j of each of them, and the global τ.

The slab is taken for data, b_j ~ N(θ_j/u_j, c²) seen as 0, and not for a part of the prior of λ and
τ: so given β = θ/u these depend on β_j/τ alone [1]_. With v_j⁻¹ = (τ λ_j)⁻² + c⁻² the updates are

1. λ_j given β_j and τ, by a slice: η = λ_j⁻², m = β_j²/(2τ²), p(η) ∝ e^{-ηm}/(1 + η), so that
   s ~ U(0, 1/(1 + η)) and then η ~ Exp(m), η < 1/s - 1;
2. a **shift** (log τ + a, log λ_j - a) at fixed β and v, by random walks: costs O(p);
3. log τ given β and λ, by random walks.

.. [1] A. Nishimura and M. A. Suchard (2023). Bayesian Analysis 18, 367-390.
"""

import numpy as np

__all__ = ["BOUND", "LocalScales"]

BOUND = np.log(1e6)  # largest size of log λ
SHIFTS, WALKS = 4, 3  # random-walk steps of an update: shifts, and steps of log τ


class LocalScales:
    """log λ and log τ of all chains, and their updates given β: (n_chains, p) and (n_chains,)."""

    def __init__(self, n_chains, p, tau_zero, slab, rng):
        self.tau_zero, self.slab, self.rng, self.p = tau_zero, slab, rng, p
        self.log_lambda = np.zeros((n_chains, p))
        self.log_tau = np.full(n_chains, np.log(tau_zero)) + 0.5 * rng.standard_normal(n_chains)

    @property
    def precision(self):
        """1/v_j of all chains, (n_chains, p)."""
        return self.precision_at(self.log_lambda, self.log_tau)

    def precision_at(self, log_lambda, log_tau):
        """1/v_j for other scales of all chains."""
        return np.exp(-2.0 * (log_lambda + log_tau[:, None])) + self.slab**-2

    def update(self, beta):
        """Make steps 1 to 3 of the module, given β of all chains, (n_chains, p)."""
        self._slice(beta)
        for _ in range(SHIFTS):
            self._shift()
        for _ in range(WALKS):
            self._walk(beta)

    def _slice(self, beta):
        """Step 1 of the module: draw λ given β and τ, by a slice."""
        u, v = self.rng.random((2, *beta.shape))
        m = 0.5 * np.square(beta * np.exp(-self.log_tau)[:, None])
        highest = 1.0 / (u / (1.0 + np.exp(-2.0 * self.log_lambda))) - 1.0
        inside = -np.expm1(-m * highest)
        with np.errstate(divide="ignore", invalid="ignore"):
            eta = np.where(inside > 1e-12, -np.log1p(-v * inside) / m, v * highest)
        self.log_lambda = np.clip(-0.5 * np.log(np.maximum(eta, 1e-300)), -BOUND, BOUND)

    def _log_prior_tau(self, log_tau):
        """log p(log τ), up to a constant, of each chain."""
        return log_tau - np.log1p(np.square(np.exp(log_tau) / self.tau_zero))

    @staticmethod
    def _log_prior_lambda(log_lambda):
        """Σ_j log p(log λ_j), up to a constant, of each chain."""
        return (log_lambda - np.log1p(np.exp(2.0 * log_lambda))).sum(axis=1)

    def _shift(self):
        """Step 2 of the module: shift log τ against all log λ_j."""
        a = 2.4 * np.sqrt(2.0 / self.p) * self.rng.standard_normal(len(self.log_tau))
        log_tau, log_lambda = self.log_tau + a, self.log_lambda - a[:, None]
        change = self._log_prior_tau(log_tau) - self._log_prior_tau(self.log_tau)
        change += self._log_prior_lambda(log_lambda) - self._log_prior_lambda(self.log_lambda)
        moved = np.log(self.rng.random(len(a))) < change
        moved &= (np.abs(log_lambda) <= BOUND).all(axis=1)
        self.log_tau = np.where(moved, log_tau, self.log_tau)
        self.log_lambda = np.where(moved[:, None], log_lambda, self.log_lambda)

    def _walk(self, beta):
        """Step 3 of the module: a random-walk step of log τ given β and λ."""
        squares = np.square(beta * np.exp(-self.log_lambda)).sum(axis=1)

        def log_p(log_tau):
            normal = -self.p * log_tau - 0.5 * squares * np.exp(-2.0 * log_tau)
            return normal + self._log_prior_tau(log_tau)

        step = 1.7 / np.sqrt(self.p) * self.rng.standard_normal(len(squares))
        moved = np.log(self.rng.random(len(step))) < log_p(self.log_tau + step) - log_p(
            self.log_tau
        )
        self.log_tau = np.where(moved, self.log_tau + step, self.log_tau)
