"""Mixtures of Gaussians: the prior, and coordinates in which it is a prior table.

The columns are centred, and divided by the standard deviation that the prior expects within a
component. There, with precisions P_k = A_k A_kᵀ of the components,

    x ~ Σ_k w_k N(μ_k, P_k⁻¹),   w ~ Dirichlet(α),   μ_kj ~ N(0, m_j²),   P_k ~ Wishart(ν, I/c),

with c = ν - d - 1, so that E P_k⁻¹ = I. The entries of "diag" and "spherical" precisions are
Gamma(ν'/2, c/2) with ν' = ν - d + 1.

Every part is a product over coordinates that are unconstrained: w_k ∝ e^v_k with e^v_k ~ Gamma(α);
and by Bartlett's decomposition A_k = T_k/√c with a lower triangle T_k of standard normals and a
diagonal of T_kjj² ~ Gamma((ν - j)/2, 1/2), j = 0, ..., d - 1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..priors import Gamma, Normal

__all__ = ["KINDS", "ComponentsPrior"]

KINDS = ("full", "diag", "spherical", "tied")
FULL, DIAG, SPHERICAL, TIED = range(4)


@dataclass(frozen=True)
class ComponentsPrior:
    """The prior of a mixture of Gaussians in standardised columns, and its coordinates θ.

    Parameters
    ----------
    kind : int
        The place of the covariance type in `KINDS`.
    K, d : int
        Numbers of components and of columns.
    alpha : float
        Concentration of the weights.
    mean_sd : array of shape (d,)
        Prior standard deviation of the means.
    df : float
        Degrees of freedom of the precisions.
    """

    kind: int
    K: int
    d: int
    alpha: float
    mean_sd: np.ndarray
    df: float

    @property
    def c(self):
        """The scale c = ν - d - 1 of the precisions, for which E P_k⁻¹ = I."""
        return self.df - self.d - 1.0

    @property
    def n_precisions(self):
        """Number of different precision matrices: 1 if all components share one, else K."""
        return 1 if self.kind == TIED else self.K

    @property
    def size(self):
        """Number of coordinates of one precision matrix."""
        return {DIAG: self.d, SPHERICAL: 1}.get(self.kind, self.d * (self.d + 1) // 2)

    @property
    def n_parameters(self):
        """Number of coordinates θ of the whole mixture."""
        return self.K * (1 + self.d) + self.n_precisions * self.size

    @cached_property
    def table(self):
        """The prior table of the coordinates, (n_parameters, 5): see `skbayes_sg.priors`."""
        weights = Gamma(shape=self.alpha, rate=1.0)._table((self.K,))
        means = Normal(scale=self.mean_sd)._table((self.K, self.d))
        one = np.concatenate([_row(*entry) for entry in self._entries()])
        return np.concatenate([weights, means, np.tile(one, (self.n_precisions, 1))])

    def _entries(self):
        """Return (shape, rate) of the prior of each coordinate of one precision matrix.

        They are those of the gamma law of a squared diagonal entry of T. Entries below the diagonal
        have (None, None), which stands for a standard normal law.
        """
        if self.kind in (DIAG, SPHERICAL):
            return [((self.df - self.d + 1.0) / 2.0, 0.5)] * self.size
        places = [(i, j) for i in range(self.d) for j in range(i + 1)]
        return [((self.df - j) / 2.0, 0.5) if i == j else (None, None) for i, j in places]

    def labels(self):
        """Return one name for each coordinate."""
        K, d = range(self.K), range(self.d)
        names = [f"log_weight[{k}]" for k in K] + [f"mean[{k}, {j}]" for k in K for j in d]
        return names + [
            f"precision[{k}, {s}]" for k in range(self.n_precisions) for s in range(self.size)
        ]

    def pack(self, log_w, mu, A):
        """Return the coordinates θ, (S, n_parameters), of S draws of a mixture.

        The draws are given by log weights (S, K), means (S, K, d) and lower triangles A
        (S, K, d, d).
        """
        T = np.sqrt(self.c) * A[:, : self.n_precisions]
        diagonal = np.log(np.einsum("skjj->skj", T) ** 2)
        if self.kind == SPHERICAL:
            parts = diagonal[:, :, :1]
        elif self.kind == DIAG:
            parts = diagonal
        else:
            rows, columns = np.tril_indices(self.d)
            parts = np.where(rows == columns, diagonal[:, :, rows], T[:, :, rows, columns])
        v = log_w + np.log(self.K * self.alpha)  # so that Σ e^v has its prior mean
        S = len(log_w)
        return np.concatenate([v, mu.reshape(S, -1), parts.reshape(S, -1)], axis=1)

    def unpack(self, theta):
        """Return weights (S, K), means (S, K, d) and triangles A (S, K, d, d) of coordinates θ."""
        S, K, d = len(theta), self.K, self.d
        v = theta[:, :K] - theta[:, :K].max(axis=1, keepdims=True)
        w = np.exp(v) / np.exp(v).sum(axis=1, keepdims=True)
        mu = theta[:, K : K + K * d].reshape(S, K, d)
        parts = theta[:, K + K * d :].reshape(S, self.n_precisions, self.size)
        T = np.zeros((S, self.n_precisions, d, d))
        each = np.arange(d)
        if self.kind in (DIAG, SPHERICAL):
            T[:, :, each, each] = np.exp(0.5 * parts)
        else:
            rows, columns = np.tril_indices(d)
            same = rows == columns
            T[:, :, rows, columns] = np.where(same, np.exp(0.5 * np.where(same, parts, 0)), parts)
        A = np.broadcast_to(T / np.sqrt(self.c), (S, K, d, d))
        return w, mu, A

    def covariances(self, A):
        """Return the covariances P⁻¹, (S, K, d, d), for precisions P = A Aᵀ with triangles A."""
        inverse = np.linalg.inv(A)
        return np.swapaxes(inverse, -1, -2) @ inverse


def _row(shape, rate):
    """Return the prior-table row, (1, 5), of one entry of T; see `ComponentsPrior._entries`."""
    return Normal()._table((1,)) if shape is None else Gamma(shape=shape, rate=rate)._table((1,))
