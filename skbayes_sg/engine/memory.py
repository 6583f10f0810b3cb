"""Summaries of rows that are no longer kept, with all that a later posterior needs of them.

`Triangle` is for linear regression, and loses nothing. `Quadratic` replaces each row by the
quadratic that has its mean slope and its mean curvature under a normal law N(μ, C), which is that
of the posterior when the row was new:

    Σ_i w_i ℓ_i(θ) ≈ g·(θ - μ) + ½ (θ - μ)ᵀ H (θ - μ),
    g = Σ_i w_i J_iᵀ E ∇ℓ_i,   H = Σ_i w_i J_iᵀ E[∇²ℓ_i] J_i.

Under that law it is the best quadratic in mean square, for each row (Stein's identity). The means
for a row with K predictors are taken over the `sigma_points` of N(η̂, J_i C J_iᵀ).
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..kernels.layout import FACT_WEIGHT
from .sigma_points import sigma_points

__all__ = ["Quadratic", "Triangle", "left_out", "not_negative", "summarised"]


@dataclass(frozen=True)
class Triangle:
    """Summary of rows of linear regression: R with RᵀR = (X, 1, y)ᵀ diag(w) (X, 1, y), and Σ w."""

    R: np.ndarray
    total: float


@dataclass(frozen=True)
class Quadratic:
    """A negative log-likelihood to second order around a point, up to a constant.

    Parameters
    ----------
    origin : array of shape (n_parameters,)
        The point.
    gradient : array of shape (n_parameters,)
        Gradient at the origin.
    hessian : array of shape (n_parameters, n_parameters)
    total : float
        Sum of the weights of the rows.
    """

    origin: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    total: float

    def slope(self, theta):
        """Return the gradient of the quadratic at θ."""
        return self.gradient + self.hessian @ (theta - self.origin)

    def value(self, theta):
        """Return the value of the quadratic at θ less its value at the origin, in nats."""
        return 0.5 * (self.gradient + self.slope(theta)) @ (theta - self.origin)

    def __add__(self, other):
        """Return the sum of both quadratics, around the origin of `other`."""
        H = not_negative(self.hessian + other.hessian)
        gradient = self.slope(other.origin) + other.gradient
        return Quadratic(other.origin, gradient, H, self.total + other.total)


def not_negative(H):
    """Return a Hessian like H, without negative curvature.

    Negative eigenvalues of H, scaled to a unit diagonal, become zero; only losses that are not
    convex cause them. H itself is returned if they are rounding errors.
    """
    size = np.sqrt(np.maximum(np.abs(np.diag(H)), np.finfo(float).tiny))
    values, vectors = linalg.eigh(H / size / size[:, None])
    if values[0] >= -1e-12 * values[-1]:
        return H
    root = size[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return root @ root.T


def summarised(target, mean, covariance):
    """Return the `Quadratic` of the rows of a target under the law N(mean, covariance) of θ."""
    root = _root(covariance)

    def work(rows):
        A, facts = target.design(rows), target.data.facts[rows]
        slopes, weights = _means(target, facts, target.along(A, mean), target.along(A, root))
        return target.row_sum(A, facts[:, FACT_WEIGHT, None] * slopes), target.outer_sum(A, weights)

    width = target.model.n_predictors * target.n_parameters
    gradients, hessians = zip(*target.over_chunks(work, width, least=16), strict=True)
    H = sum(hessians)
    return Quadratic(mean, sum(gradients), 0.5 * (H + H.T), float(target.weight.sum()))


def _root(C):
    """Return L with L Lᵀ = C, for a positive semi-definite C that may be singular."""
    values, vectors = linalg.eigh(C)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _means(target, facts, eta, moved):
    """Return the means over each row's 2K sigma points of ∂ℓ/∂η (n, K) and w ∂²ℓ/∂η² (n, K, K)."""
    points = sigma_points(eta, moved @ moved.transpose(0, 2, 1))
    slopes = sum(target.derivative(facts, point) for point in points)
    curvatures = sum(target.curvature(facts, point) for point in points)
    return slopes / len(points), curvatures / len(points)


def left_out(target, quadratic, draws):
    """Return the standard deviation, over draws, of the error of a `Quadratic` of rows, in nats.

    The error is the log-likelihood of the rows that the quadratic leaves out. To first order, it
    moves the posterior mean of no function by more than this number of standard deviations.
    """
    off = [target.likelihood(theta)[0] - quadratic.value(theta) for theta in draws]
    return float(np.std(off))
