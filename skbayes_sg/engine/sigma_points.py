"""Means of functions of K predictors under N(η, C), as averages over 2K points.

E f ≈ (1/2K) Σ_c Σ_± f(η ± √K L e_c),  L Lᵀ = C: exact for polynomials of degree three.
"""

import numpy as np

__all__ = ["sigma_points"]


def sigma_points(eta, C):
    """Return the 2K sigma points of N(η, C), a list of arrays (n, K); C may be singular.

    There is one law for each of the n rows of η (n, K) and C (n, K, K).
    """
    K = eta.shape[1]
    jitter = 1e-12 * np.einsum("ncc->n", C) + np.finfo(float).tiny
    root = np.sqrt(K) * np.linalg.cholesky(C + jitter[:, None, None] * np.eye(K))
    return [eta + sign * root[:, :, c] for c in range(K) for sign in (-1.0, 1.0)]
