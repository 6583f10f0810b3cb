"""Draws ψ whose mean and covariance are those of N(0, I) to rounding.

They are normals and their negatives, times the inverse Cholesky factor of their second moment.
Means and standard deviations of functions that are nearly linear in ψ vary less from seed to seed
than with independent draws, so that Monte Carlo errors computed as if the draws were independent
are on the safe side.
"""

import numpy as np
from scipy import linalg

__all__ = ["matched_normals"]


def matched_normals(rng, n_draws, n_parameters):
    """Draw ψ, (n_draws, n_parameters); plain normals if there are few draws for a second moment."""
    if n_draws < 4 * n_parameters:
        return rng.standard_normal((n_draws, n_parameters))
    half = rng.standard_normal(((n_draws + 1) // 2, n_parameters))
    if n_draws % 2 == 0:
        root = linalg.cholesky(half.T @ half / len(half), lower=True)
        half = linalg.solve_triangular(root, half.T, lower=True).T
        return np.concatenate([half, -half])
    psi = np.concatenate([half, -half])[:n_draws]
    psi -= psi.mean(axis=0)
    root = linalg.cholesky(psi.T @ psi / n_draws, lower=True)
    return linalg.solve_triangular(root, psi.T, lower=True).T
