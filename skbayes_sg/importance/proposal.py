"""Draws ψ whose mean and covariance are those of N(0, I) to rounding.

They are normals and their negatives, times the inverse Cholesky factor of their second moment.
Means and standard deviations of functions that are nearly linear in ψ vary less from seed to seed
than with independent draws, so that Monte Carlo errors computed as if the draws were independent
are on the safe side.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._base import multivariate_t

__all__ = ["HalfT", "matched_normals"]

# A t is so many times as wide as its pilot draws, so that no weight is large where they are few.
WIDER = 1.3


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


@dataclass
class HalfT:
    """The law of ψ: half N(0, I), and half Student's t with a mean and a root of its scale.

    By the t, weights are bounded where the posterior has heavier tails than a normal law.
    """

    mean: np.ndarray
    root: np.ndarray

    @classmethod
    def around_zero(cls, n_parameters):
        """The law whose t has the mean 0 and the scale I."""
        return cls(np.zeros(n_parameters), np.eye(n_parameters))

    def draw(self, rng, n):
        """Draw n rows ψ, in random order, so that the first few are of both kinds."""
        D = len(self.mean)
        normals = matched_normals(rng, n - n // 2, D)
        z = multivariate_t.standard_draws(rng, n // 2, D)
        return rng.permutation(np.concatenate([normals, self.mean + z @ self.root.T]))

    def log_density(self, psi):
        """Log density at rows ψ, up to a constant that is the same for all laws."""
        D = len(self.mean)
        options = {"lower": True, "check_finite": False}
        z = linalg.solve_triangular(self.root, (psi - self.mean).T, **options)
        log_det = np.log(np.diag(self.root)).sum()
        log_t = multivariate_t.log_density(np.square(z).sum(axis=0), D, log_det)
        log_normal = -0.5 * (np.square(psi).sum(axis=1) + D * np.log(2.0 * np.pi))
        return np.logaddexp(log_normal, log_t)

    def adapted(self, psi, certificate):
        """The law whose t has the mean and the widened covariance of certified draws ψ.

        Where few of these are effective, the law remains as it was.
        """
        if certificate.ess < 10 * len(self.mean):
            return self
        mean = certificate.weights @ psi / len(psi)
        centred = psi - mean
        S = (certificate.weights[:, None] * centred).T @ centred / len(centred)
        return HalfT(mean, WIDER * linalg.cholesky(S, lower=True))
