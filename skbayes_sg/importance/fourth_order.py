r"""The sum of the remainders of many rows to fourth order, as one polynomial of φ.

In φ a row with a single predictor has u_i = z_i·φ with z_i = (J_i F)ᵀ, and under the Laplace
approximation u_i = s ‖z_i‖, s ~ N(0, 1). The slope of its remainder beyond the quadratic at the
centre is replaced by the cubic that agrees with it at the four nodes of the Gauss-Hermite rule,

    r_i'(u) ≈ a_i0 + a_i1 u + a_i2 u² + a_i3 u³,

which is closer where the posterior is than a Taylor series. Let S(z) be the products z_j z_k of all
j ≤ k, and B the diagonal matrix of how often each occurs in (z·φ)² = S(z)ᵀB S(φ): once where j = k,
else twice. Then

    Σ_i r_i(u_i) ≈ m·φ + qᵀS(φ)/2 + S(φ)ᵀM φ/3 + S(φ)ᵀT S(φ)/4,
    m = Σ a_i0 z_i,  q = B Σ a_i1 S(z_i),  M = B Σ a_i2 S(z_i) z_iᵀ,  T = B Σ a_i3 S(z_i) S(z_i)ᵀ B.

With D parameters there are D(D + 1)/2 products. The time of an evaluation does not depend on the
number of rows: this is for few columns and any number of rows. In the far tails a polynomial may be
anything; whoever uses it must check it there.
"""

import numpy as np

from ..kernels.layout import FACT_PREDICTOR, frozen
from .remainders import row_factors, slopes_of_remainders

__all__ = ["FourthOrder", "seconds_of_fourth_order"]

NODES = np.polynomial.hermite_e.hermegauss(4)[0]
TO_SLOPES = np.linalg.inv(np.vander(NODES, increasing=True))  # values at nodes to coefficients
BLOCK_DRAWS = 1024  # draws that are evaluated together
ROOM = 4  # a chunk of rows has so many numbers in cache for each product of a row
MULTIPLICATION = 1.5e-10  # predicted seconds of one multiplication


def seconds_of_fourth_order(n_rows, n_draws, n_parameters):
    """Predicted seconds on one processor for the sums over the rows and the values at draws."""
    products = n_parameters * (n_parameters + 1) / 2
    return (n_rows + n_draws) * products * (products + n_parameters) * MULTIPLICATION


class FourthOrder:
    """Σ r_i(z_i·φ) over rows of a frame, and its gradient.

    Parameters
    ----------
    frame : Frame
        A frame of a target whose model has a single predictor.
    left_out : array of bool, shape (n_rows,)
        Rows that are not in the sum.
    """

    def __init__(self, frame, left_out):
        def work(rows):
            (Z,) = row_factors(frame, frame.target.design(rows))
            a, S = _coefficients(frame, rows, Z), _products(Z.T)
            a[:, left_out[rows]] = 0.0
            return a[0] @ Z, S @ a[1], S @ (a[2, :, None] * Z), S @ (a[3] * S).T

        self.pairs = np.triu_indices(frame.target.n_parameters)
        width = ROOM * len(self.pairs[0])
        sums = zip(*frame.target.over_chunks(work, width), strict=True)
        self.m, self.q, self.M, self.T = (sum(parts) for parts in sums)
        often = np.where(self.pairs[0] == self.pairs[1], 1.0, 2.0)
        self.q, self.M = often * self.q, often[:, None] * self.M
        self.T = often[:, None] * self.T * often

    def values(self, phi):
        """Σ r_i at the rows of `phi`, (n_draws,)."""
        return np.concatenate([self._values(block.T) for block in _blocks(phi)])

    def _values(self, phi):
        S = _products(phi)
        by_product = self.q[:, None] / 2.0 + self.M @ phi / 3.0 + self.T @ S / 4.0
        return self.m @ phi + np.einsum("pn,pn->n", S, by_product)

    def gradients(self, phi):
        """∇_φ Σ r_i at the rows of `phi`, (n_draws, n_parameters)."""
        return np.concatenate([self._gradients(block.T).T for block in _blocks(phi)])

    def _gradients(self, phi):
        S = _products(phi)
        by_product = self.q[:, None] / 2.0 + self.M @ phi / 3.0 + self.T @ S / 2.0
        g = self.m[:, None] + self.M.T @ S / 3.0
        for weight, j, k in zip(by_product, *self.pairs, strict=True):
            g[j] += weight * phi[k]
            g[k] += weight * phi[j]
        return g


def _products(phi):
    """φ_j φ_k of columns φ for all j <= k, (n_products, n)."""
    D, n = phi.shape
    S, first = np.empty((D * (D + 1) // 2, n)), 0
    for j in range(D):
        np.multiply(phi[j], phi[j:], out=S[first : first + D - j])
        first += D - j
    return S


def _blocks(phi):
    return [phi[first : first + BLOCK_DRAWS] for first in range(0, len(phi), BLOCK_DRAWS)]


def _coefficients(frame, rows, Z):
    """Coefficients a_i0, ..., a_i3 of some rows, (4, n_rows); zeros where a row does not move."""
    target, own = frame.target, frozen(frame.facts[rows])
    eta = np.ascontiguousarray(own[:, FACT_PREDICTOR])
    bend = target.curvature(own, eta[:, None])[:, 0, 0]
    v = np.sqrt(np.einsum("nd,nd->n", Z, Z))
    with np.errstate(all="ignore"):
        found = np.array([slopes_of_remainders(target, own, bend, s * v) for s in NODES])
        a = (TO_SLOPES @ found) / v ** np.arange(len(NODES))[:, None]
    return np.where(np.isfinite(a), a, 0.0)
