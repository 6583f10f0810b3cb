"""ψ: draws whose mean and covariance are those of N(0, I) to rounding.

Normals and their negatives, times the inverse Cholesky factor of their second moment. Means and
standard deviations of what is nearly linear in them vary less from seed to seed than those of
independent draws, so that Monte Carlo errors as of independent draws are on the safe side.
"""

import numpy as np
from scipy import linalg

__all__ = ["matched_normals"]


def matched_normals(rng, n_draws, n_parameters):
    """(n_draws, n_parameters); unmatched where there are too few draws for a second moment."""
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
