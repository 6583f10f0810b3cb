"""Means of functions of K predictors under N(η, C), by 2K points.

E f ≈ (1/2K) Σ_c Σ_± f(η ± √K L e_c),  L Lᵀ = C: exact for polynomials of degree three.
"""

import numpy as np

__all__ = ["sigma_points"]


def sigma_points(eta, C):
    """2K arrays like η (n, K): the points of N(η, C), for C (n, K, K) that may be singular."""
    K = eta.shape[1]
    jitter = 1e-12 * np.einsum("ncc->n", C) + np.finfo(float).tiny
    root = np.sqrt(K) * np.linalg.cholesky(C + jitter[:, None, None] * np.eye(K))
    return [eta + sign * root[:, :, c] for c in range(K) for sign in (-1.0, 1.0)]
