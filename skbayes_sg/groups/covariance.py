"""The covariance of the effects of a level, and the numbers ψ in which it is sampled.

Σ = C Cᵀ, C = diag(s) L with standard deviations s and the Cholesky factor L of a correlation
matrix, made of partial correlations. ψ holds log s, then the inverse hyperbolic tangents t of the
partial correlations; all correlation matrices are equally likely. Where a level has one effect, ψ
is log τ.

    C_ij = s_i tanh(t_ij) Π_{k<j} 1/cosh(t_ik),     C_ii = s_i Π_{k<i} 1/cosh(t_ik).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._base.jit import entry, inner
from ..priors.table import prior_gradient, prior_value

__all__ = ["Covariance", "add_gradient", "correlation_potential", "n_scales"]
__all__ += ["negative_log_prior", "set_covariance"]


def n_scales(q):
    """The number of entries of ψ: q standard deviations, and a correlation of each pair."""
    return q * (q + 1) // 2


@entry
def set_covariance(psi, C_out, omega_out):
    """C_out ← C and omega_out ← Ω = Σ⁻¹ at ψ; see the module."""
    q, place, inverse = C_out.shape[0], C_out.shape[0], np.zeros(C_out.shape)
    C_out[:] = 0.0
    for i in range(q):
        rest = math.exp(psi[i])
        for j in range(i):
            C_out[i, j] = math.tanh(psi[place]) * rest
            rest /= math.cosh(psi[place])  # (1 - tanh²)^½, without cancellation
            place += 1
        C_out[i, i] = rest
    for i in range(q):
        inverse[i, i] = 1.0 / C_out[i, i]
        for j in range(i):
            for k in range(j, i):
                inverse[i, j] -= C_out[i, k] * inverse[k, j]
            inverse[i, j] /= C_out[i, i]
    for i in range(q):
        for j in range(q):
            omega_out[i, j] = 0.0
            for k in range(max(i, j), q):
                omega_out[i, j] += inverse[k, i] * inverse[k, j]


@entry
def correlation_potential(psi, q):
    """-log p(t), up to a constant, in ψ = (log s, t), for uniform correlation matrices.

    p(t) ∝ Π (1 - tanh² t_ij)^(1 + (q - 2 - j)/2).
    """
    total, place = 0.0, q
    for i in range(q):
        for j in range(i):
            total += (q - j) * math.log(math.cosh(psi[place]))
            place += 1
    return total


@inner
def negative_log_prior(psi, scales):
    """-log p(ψ); `scales` has a row of a table of priors for each standard deviation."""
    q = scales.shape[0]
    return prior_value(scales, psi[:q]) + correlation_potential(psi, q)


@inner
def _product(A, B):
    """A B, for square matrices."""
    out = np.zeros(A.shape)
    for i in range(A.shape[0]):
        for k in range(A.shape[0]):
            for j in range(A.shape[0]):
                out[i, j] += A[i, k] * B[k, j]
    return out


@inner
def _symmetric(M):
    """M + Mᵀ."""
    out = np.empty(M.shape)
    for i in range(M.shape[0]):
        for j in range(M.shape[0]):
            out[i, j] = M[i, j] + M[j, i]
    return out


@entry
def add_gradient(psi, C, omega, M, scales, g_out):
    """g_out += dU/dψ for dU = Σ_ij M_ij dΩ_ij, and the gradient of `negative_log_prior`.

    dΩ = -Ω dΣ Ω and dΣ = dC Cᵀ + C dCᵀ, so that dU = -Σ_ij T_ij dC_ij with T = Ω (M + Mᵀ) Ω C.
    """
    q, place = C.shape[0], C.shape[0]
    prior_gradient(scales, psi[:q], g_out[:q])
    T = _product(omega, _product(_symmetric(M), _product(omega, C)))
    for i in range(q):
        rest = math.exp(psi[i])
        for j in range(i + 1):
            g_out[i] -= T[i, j] * C[i, j]
        for j in range(i):
            z, shrinks = math.tanh(psi[place]), 1.0 / math.cosh(psi[place])
            change = T[i, j] * rest * shrinks * shrinks
            for k in range(j + 1, i + 1):
                change -= T[i, k] * C[i, k] * z
            g_out[place] += (q - j) * z - change
            rest *= shrinks
            place += 1


@dataclass
class Covariance:
    """Σ at one ψ: its Cholesky factor, its inverse, and its correlations.

    Parameters
    ----------
    psi : ndarray of shape (q (q + 1) / 2,)
    q : int
        Number of effects of a level.
    """

    psi: np.ndarray
    q: int

    @cached_property
    def _both(self):
        both = np.empty((2, self.q, self.q))
        set_covariance(self.psi, both[0], both[1])
        return both

    @property
    def C(self):
        """C, the lower Cholesky factor of Σ."""
        return self._both[0]

    @property
    def omega(self):
        """Ω = Σ⁻¹."""
        return self._both[1]

    @cached_property
    def correlations(self):
        """The correlations below the diagonal of the matrix, row by row."""
        L = self.C * np.exp(-self.psi[: self.q])[:, None]
        return (L @ L.T)[np.tril_indices(self.q, -1)]

    @property
    def log_p(self):
        """log p(t), up to a constant, of the tangents in ψ, for uniform correlation matrices."""
        return -correlation_potential(self.psi, self.q)
