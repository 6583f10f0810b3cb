"""Coordinates of the chain: θ = centre + F φ with F Fᵀ = P, the preconditioner.

In φ every sampler is written without a preconditioner; in θ it is
``θ' = θ - (h/2) P ∇U(θ) + √h P^(1/2) ξ``. With P = H⁻¹, the inverse Hessian at the centre, φ has
unit variance in every direction if the posterior is Gaussian, for any units of the columns and any
dependence between them.
"""

import numpy as np
from scipy import linalg

from .._base import streams

__all__ = ["DENSE_LIMIT", "diagonal", "from_any_hessian", "from_covariance", "from_hessian"]
__all__ += ["identity", "sketch"]

DENSE_LIMIT = 2000
"""Largest number of parameters for which "auto" keeps dense matrices (32 MB each)."""


def from_hessian(H):
    """F with F Fᵀ = H⁻¹, and whether Fᵀ H F is the identity.

    H is equilibrated by its diagonal first, so that units of the columns do not affect accuracy. If
    it is not positive definite in floating point, its diagonal is raised a little.

    Raises
    ------
    scipy.linalg.LinAlgError
        If that does not help: see `from_any_hessian`.
    """
    scale, C, ridge = _root(H)
    inverse = linalg.solve_triangular(C, np.eye(len(H)), lower=True)
    return scale[:, None] * inverse.T, ridge == 0.0


def whitened(H, g):
    """Fᵀg with the F of `from_hessian`, computed without the inverse that F itself takes."""
    scale, C, _ = _root(H)
    return linalg.solve_triangular(C, scale * g, lower=True)


def _root(H):
    """The diagonal S, the lower Cholesky factor C of S H S + ridge I, and the ridge.

    S gives H a unit diagonal; the ridge is zero unless H is not positive definite to rounding.
    """
    if not (np.diag(H) > 0.0).all():
        raise linalg.LinAlgError("the Hessian has a direction without curvature")
    scale = 1.0 / np.sqrt(np.diag(H))
    equilibrated = scale[:, None] * H * scale
    for ridge in (0.0, 1e-12, 1e-10, 1e-8):
        try:
            return scale, linalg.cholesky(equilibrated + ridge * np.eye(len(H)), lower=True), ridge
        except linalg.LinAlgError:
            continue
    raise linalg.LinAlgError("the Hessian at the centre is not positive definite")


def from_any_hessian(H):
    """F and whether Fᵀ H F is the identity, as from `from_hessian`, for any symmetric H.

    If H is not positive definite, F is made of the absolute values of its eigenvalues.
    """
    try:
        return from_hessian(H)
    except linalg.LinAlgError:
        scale = 1.0 / np.sqrt(np.maximum(np.abs(H).max(axis=1), np.finfo(float).tiny))
        values, vectors = linalg.eigh(scale[:, None] * H * scale)
        values = np.maximum(np.abs(values), 1e-8 * np.abs(values).max())
        return scale[:, None] * (vectors / np.sqrt(values)), False


def from_covariance(F, S):
    """A factor of F S Fᵀ, for a covariance S in the coordinates of F."""
    root = linalg.cholesky(S, lower=True)
    return F[0][:, None] * root if len(F) == 1 else F @ root


def diagonal(curvature):
    """F = diag(1/√|curvature|) as one row, for the diagonal of a Hessian."""
    return 1.0 / np.sqrt(np.maximum(np.abs(curvature), np.finfo(float).tiny))[None, :]


def identity(n_parameters):
    """F = I as one row: no preconditioner."""
    return np.ones((1, n_parameters))


def apply(F, phi):
    """F φ for rows φ."""
    return phi * F[0] if len(F) == 1 else phi @ F.T


def solve(F, theta):
    """F⁻¹ θ for rows θ."""
    if len(F) == 1:
        return theta / F[0]
    scale = 1.0 / np.abs(F).max(axis=1)  # so that units of the columns do not make F singular
    return linalg.solve(scale[:, None] * F, (scale * theta).T).T


def push_forward(F, g):
    """F⁻ᵀ g for rows g, the inverse of `pull_back`."""
    if len(F) == 1:
        return g / F[0]
    scale = 1.0 / np.abs(F).max(axis=1)
    return scale * linalg.solve((scale[:, None] * F).T, g.T).T


def pull_back(F, g):
    """Fᵀ g, for one g or for columns g."""
    return (g.T * F[0]).T if len(F) == 1 else F.T @ g


def sketch(F, width):
    """R of shape (n_parameters, width) with ‖g R‖ ≈ ‖g F‖ for every g.

    It is a random projection: the relative error of the square is about sqrt(2/width). It is exact
    if `width` is the number of parameters.
    """
    D = F.shape[1]
    if width < D:
        R = streams.fixed().standard_normal((D, width)) / np.sqrt(width)
    else:
        R = np.eye(D)
    return apply(F, R.T).T
