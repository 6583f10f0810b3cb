"""The covariance of the effects of a level, and the numbers ψ in which it is sampled.

Σ = C Cᵀ, C = diag(s) L with standard deviations s and the factor L of a correlation matrix, made of
partial correlations. ψ holds log s, then the inverse hyperbolic tangents of the partial
correlations; all correlation matrices are equally likely. Of one effect, ψ is log τ.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..priors.table import prior_gradient, prior_value

__all__ = ["Covariance", "factor_of", "n_scales"]

TINY = 1e-30  # an imaginary step


def n_scales(q):
    """How many numbers ψ has: q standard deviations, and a correlation of each pair."""
    return q * (q + 1) // 2


def _root(psi, q):
    """C, for real or complex ψ."""
    if q == 1:
        return np.exp(psi[:1])[:, None]
    L, z, place = np.zeros((q, q), dtype=psi.dtype), np.tanh(psi[q:]), 0
    rest = 1.0 / np.cosh(psi[q:])  # (1 - z²)^½, without cancellation
    for i in range(q):
        L[i, i] = 1.0
        for j in range(i):
            L[i, j] = z[place] * L[i, i]
            L[i, i] *= rest[place]
            place += 1
    return np.exp(psi[:q])[:, None] * L


def _powers(q):
    """Powers of 1 - z² in the density of the tangents of z."""
    return np.array([1.0 + 0.5 * (q - 2 - j) for i in range(q) for j in range(i)])


def factor_of(log_sd, partial):
    """(C, log p of the partial correlations' inverse hyperbolic tangents, correlations)."""
    own = Covariance(np.concatenate([log_sd, partial]), len(log_sd))
    return own.C, own.log_p, own.correlations


@dataclass
class Covariance:
    """Σ at one ψ.

    Parameters
    ----------
    psi : ndarray of shape (q (q + 1) / 2,)
    q : int
        Effects of a level.
    """

    psi: np.ndarray
    q: int

    @cached_property
    def C(self):
        """The triangular factor of Σ."""
        return _root(self.psi, self.q)

    @cached_property
    def omega(self):
        """Ω = Σ⁻¹."""
        if self.q == 1:
            return np.exp(-2.0 * self.psi)[:, None]
        inverse = np.linalg.inv(self.C)
        return inverse.T @ inverse

    @property
    def log_det(self):
        """log |Ω|."""
        return -2.0 * np.log(np.diagonal(self.C)).sum()

    @cached_property
    def correlations(self):
        """Below the diagonal, row by row."""
        L = self.C * np.exp(-self.psi[: self.q])[:, None]
        return (L @ L.T)[np.tril_indices(self.q, -1)]

    @property
    def log_p(self):
        """log p of the tangents: uniform correlation matrices."""
        if self.q == 1:
            return 0.0
        return -2.0 * float((_powers(self.q) * np.log(np.cosh(self.psi[self.q :]))).sum())

    def gradient(self, M):
        """dU/dψ, for dU = Σ_ij M_ij dΩ_ij."""
        if self.q == 1:
            return -2.0 * (self.omega * M)[0]
        # dΩ = -Ω dΣ Ω, and dΣ = dC Cᵀ + C dCᵀ, with dC by complex steps: exact.
        pulled = self.omega @ (M + M.T) @ self.omega @ self.C
        steps = self.psi + 1j * TINY * np.eye(len(self.psi))
        return np.array([-(pulled * _root(step, self.q).imag).sum() / TINY for step in steps])

    def negative_log_prior(self, scale):
        """-log p(ψ), for the row of the prior of each standard deviation."""
        table = np.repeat(scale[None], self.q, axis=0)
        return prior_value(table, self.psi[: self.q]) - self.log_p

    def prior_gradient(self, scale):
        """The gradient of `negative_log_prior`."""
        table, out = np.repeat(scale[None], self.q, axis=0), np.zeros(len(self.psi))
        prior_gradient(table, self.psi[: self.q], out[: self.q])
        if self.q > 1:
            out[self.q :] += 2.0 * _powers(self.q) * np.tanh(self.psi[self.q :])
        return out
