"""The likelihood of a mixture of all rows and its derivatives in θ, by products of matrices.

With L_ik = log w_k + log |A_k| - ½‖y_ik‖², z_ik = x_i - μ_k, y_ik = A_kᵀ z_ik, the weights n_ik =
weight_i r_ik, and sums over the rows i,

    N_k = Σ n_ik,   m_k = Σ n_ik z_ik,   S_k = Σ n_ik z_ik z_ikᵀ,

the gradient of the log-likelihood is, in the entries of means and triangles,

    ∂/∂v_k = N_k - w_k Σ weight_i,   ∂/∂μ_k = A_k A_kᵀ m_k,   ∂/∂A_k = N_k A_k⁻ᵀ - S_k A_k,

and its Hessian is that of the components and the covariance of their slopes s_ik = ∂L_ik/∂θ,

    Σ_ik n_ik ∂²L_ik/∂θ² + Σ_i weight_i [Σ_k r_ik s_ik s_ikᵀ - s̄_i s̄_iᵀ],   s̄_i = Σ_k r_ik s_ik,

where the second derivatives of the components are, with δ = 1 for equal indices and 0 for others,

    ∂²L/∂μ∂μ = -A Aᵀ,   ∂²L/∂μ_c∂A_ab = δ_ca y_b + A_cb z_a,
    ∂²L/∂A_ab∂A_cd = -z_a z_c δ_bd - δ_ab δ_cd δ_ac/A_aa².

The slopes in v are (1[k = 1] - w_1, ...); -w does not depend on k and has no part in a covariance.
"""

from dataclasses import dataclass

import numpy as np

from ..kernels.layout import FACT_WEIGHT
from .mixture import DIAG, SPHERICAL, TIED

__all__ = ["loss_and_gradient", "loss_hessian"]

BLOCK_BYTES = 1 << 20  # size in bytes of the largest array of a block of rows, to stay in cache


@dataclass(frozen=True)
class _Triangle:
    """The entries of a triangle A_k that may differ from zero, as functions of its coordinates.

    Diagonal entries are e^(t/2)/√c and the others t/√c; "spherical" has one t for all of them.
    """

    rows: np.ndarray  # places of the entries, (E,)
    columns: np.ndarray
    slopes: np.ndarray  # derivatives of the entries in the coordinates, (E, size)
    bends: np.ndarray  # second derivatives, each in a coordinate of its own, (E, size)

    @classmethod
    def of(cls, mixture, A):
        """Return the entries of A (d, d), one triangle of a mixture."""
        only = mixture.kind in (DIAG, SPHERICAL)
        rows, columns = np.diag_indices(mixture.d) if only else np.tril_indices(mixture.d)
        same, entries = rows == columns, A[rows, columns]
        slopes = np.where(same, 0.5 * entries, 1.0 / np.sqrt(mixture.c))
        bends = np.where(same, 0.25 * entries, 0.0)
        if mixture.kind == SPHERICAL:
            return cls(rows, columns, slopes[:, None], bends[:, None])
        return cls(rows, columns, np.diag(slopes), np.diag(bends))

    def inverse(self, A):
        """Return the entries of A⁻ᵀ, (E,), which are those of the diagonal: zero below it."""
        return np.where(self.rows == self.columns, 1.0 / A[self.rows, self.columns], 0.0)


class _Components:
    """The components of a mixture at θ, and how rows are shared among them."""

    def __init__(self, mixture, theta):
        self.mixture = mixture
        self.w, self.mu, self.A = (part[0] for part in mixture.unpack(theta[None]))
        with np.errstate(divide="ignore"):
            self.log_w = np.log(self.w) + np.log(np.einsum("kjj->kj", self.A)).sum(axis=1)
        self.triangles = [_Triangle.of(mixture, A) for A in self.A]

    def places(self, k):
        """Return the indices in θ of v_k, of μ_k and of the coordinates of A_k, (1 + d + size,)."""
        K, d, size = self.mixture.K, self.mixture.d, self.mixture.size
        first = K * (1 + d) + (0 if self.mixture.kind == TIED else k * size)
        means, own = K + k * d + np.arange(d), first + np.arange(size)
        return np.concatenate([[k], means, own])

    def blocks(self, facts, width):
        """Yield (weights (n,), z and y of each component, r (n, K), log p (n,)) of blocks of rows.

        Blocks are as large as arrays of that `width` may be.
        """
        n, d = facts.shape[1], self.mixture.d
        size = max(64, BLOCK_BYTES // (8 * width))
        for first in range(0, len(facts), size):
            block = facts[first : first + size]
            x, r = block[:, n - 4 - d : n - 4], np.empty((len(block), self.mixture.K))
            z = [x - mu for mu in self.mu]
            y = [away @ A for away, A in zip(z, self.A, strict=True)]
            for k, own in enumerate(y):
                r[:, k] = self.log_w[k] - 0.5 * np.einsum("nj,nj->n", own, own)
            most = r.max(axis=1)
            np.exp(r - most[:, None], out=r)
            total = r.sum(axis=1)
            yield block[:, FACT_WEIGHT], z, y, r / total[:, None], most + np.log(total)


def loss_and_gradient(mixture, facts, theta):
    """Return the negative log-likelihood of rows, without constants, and its gradient in θ.

    Parameters
    ----------
    mixture : skbayes_sg.densities.mixture.ComponentsPrior
    facts : array of shape (n_rows, n_facts)
        Facts of the rows of `skbayes_sg.densities.mixture_density.rows_of`.
    theta : array of shape (n_parameters,)
    """
    at, K, d = _Components(mixture, theta), mixture.K, mixture.d
    value, total, sums = 0.0, 0.0, [_Sums(d) for _ in range(K)]
    for weight, z, _, r, log_p in at.blocks(facts, K * d):
        value, total = value - weight @ log_p, total + weight.sum()
        for k in range(K):
            sums[k].add(weight * r[:, k], z[k])
    g = np.zeros(len(theta))
    for k, (A, own) in enumerate(zip(at.A, sums, strict=True)):
        of_triangle = _slope_of_entries(at, k, own) @ at.triangles[k].slopes
        g[at.places(k)] -= np.concatenate([[own.N - total * at.w[k]], A @ A.T @ own.m, of_triangle])
    return value, g


def loss_hessian(mixture, facts, theta):
    """Return the Hessian in θ of the negative log-likelihood; arguments as above."""
    at, D = _Components(mixture, theta), mixture.n_parameters
    places = [at.places(k) for k in range(mixture.K)]
    H, total, sums = np.zeros((D, D)), 0.0, [_Sums(mixture.d) for _ in places]
    for weight, z, y, r, _ in at.blocks(facts, D):
        mean, total = np.zeros((len(r), D)), total + weight.sum()
        for k, where in enumerate(places):
            slopes, n = _slopes(at, k, z[k], y[k]), weight * r[:, k]
            H[np.ix_(where, where)] -= slopes.T @ (n[:, None] * slopes)
            mean[:, where] += r[:, k, None] * slopes
            sums[k].add(n, z[k])
        H += mean.T @ (weight[:, None] * mean)
    for k, where in enumerate(places):
        H[np.ix_(where[1:], where[1:])] -= _bends(at, k, sums[k])
    v = slice(0, mixture.K)
    H[v, v] += total * (np.diag(at.w) - np.outer(at.w, at.w))
    return 0.5 * (H + H.T)


class _Sums:
    """N = Σ n, m = Σ n z and S = Σ n z zᵀ of one component, over the rows that were added."""

    def __init__(self, d):
        self.N, self.m, self.S = 0.0, np.zeros(d), np.zeros((d, d))

    def add(self, n, z):
        """Add rows with the weights n and the distances z from the mean."""
        own = n[:, None] * z
        self.N, self.m, self.S = self.N + n.sum(), self.m + own.sum(axis=0), self.S + own.T @ z


def _slopes(at, k, z, y):
    """Return the slopes of L_ik in v_k without -w_k, in μ_k and in A_k, (n, 1 + d + size)."""
    A, triangle = at.A[k], at.triangles[k]
    entries = triangle.inverse(A) - z[:, triangle.rows] * y[:, triangle.columns]
    return np.column_stack([np.ones(len(z)), y @ A.T, entries @ triangle.slopes])


def _slope_of_entries(at, k, sums):
    """Return the gradient N A⁻ᵀ - S A of Σ_i n_ik L_ik in the entries of A_k, (E,)."""
    A, triangle = at.A[k], at.triangles[k]
    return sums.N * triangle.inverse(A) - (sums.S @ A)[triangle.rows, triangle.columns]


def _bends(at, k, sums):
    """Return Σ_i n_ik ∂²L_ik in μ_k and the coordinates of A_k, (d + size, d + size)."""
    A, triangle = at.A[k], at.triangles[k]
    rows, columns, inverse = triangle.rows, triangle.columns, triangle.inverse(A)
    mixed = np.eye(len(A))[:, rows] * (A.T @ sums.m)[columns] + A[:, columns] * sums.m[rows]
    squares = -sums.S[np.ix_(rows, rows)] * (columns[:, None] == columns)
    squares -= np.diag(sums.N * inverse**2)
    mixed, bent = mixed @ triangle.slopes, _slope_of_entries(at, k, sums) @ triangle.bends
    own = triangle.slopes.T @ squares @ triangle.slopes + np.diag(bent)
    return np.block([[-sums.N * (A @ A.T), mixed], [mixed.T, own]])
