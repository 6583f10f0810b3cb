"""What all combiners share: draws as arrays, moments of shards, and the base class."""

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator

from .._base.validation import check_count
from ..exceptions import InvalidParameterError

__all__ = ["Combiner", "as_shards", "in_order", "inverses", "moments"]
__all__ += ["number_of_draws", "pooled", "product_of_gaussians"]


class Combiner(BaseEstimator):
    """Turns draws from shards into draws from the product of their densities.

    A subclass stores its parameters and defines ``_combine(shards, rng)``, where `shards` holds
    draws in unconstrained coordinates, an array (n_shards, n_chains, n_draws, n_parameters), and
    `rng` is a `numpy.random.Generator`. The method returns draws (n_chains, n_draws, n_parameters)
    and a dict of the floats that it has measured.
    """

    assumes_gaussian = False
    """Whether the result depends on the means and covariances of the shards alone."""

    def _combine(self, shards, rng):
        raise NotImplementedError

    def _check(self, name):
        """Raise `InvalidParameterError` for a parameter of the combiner that is not accepted.

        The message begins with `name`, the estimator's parameter that holds the combiner.
        """
        try:
            self._check_parameters()
        except InvalidParameterError as error:
            raise InvalidParameterError(f"The {name!r} parameter: {error}") from None

    def _check_parameters(self):
        """Raise `InvalidParameterError` for a parameter that is not accepted."""


def as_shards(draws):
    """Return a list with the draws of each shard as a (n_draws, n_parameters) array of floats.

    Draws that are not finite or not of this shape raise a `ValueError`.
    """
    shards = [np.asarray(x, dtype=np.float64) for x in draws]
    if len(shards) == 0:
        raise ValueError("draws must contain the draws of at least one shard, but it is empty.")
    for s, x in enumerate(shards):
        if x.ndim != 2 or x.shape[1] != shards[0].shape[-1] or len(x) == 0:
            raise ValueError(
                "draws must contain one array (n_draws, n_parameters) for each shard, with the "
                f"same parameters; the array of shard {s} has the shape {x.shape}."
            )
        if not np.isfinite(x).all():
            raise ValueError(f"The draws of shard {s} must be finite.")
    return shards


def number_of_draws(n_draws, shards):
    """Return the number of draws to make, by default that of the first shard."""
    if n_draws is None:
        return len(shards[0])
    check_count("n_draws", n_draws)
    return n_draws


def moments(shards):
    """Return the mean (n_shards, d) and the covariance (n_shards, d, d) of each shard's draws."""
    d = shards[0].shape[1]
    for s, x in enumerate(shards):
        if len(x) <= d:
            raise ValueError(
                f"Shard {s} has {len(x)} draws of {d} parameters, so that its covariance matrix is "
                "singular. Use more draws than parameters, or consensus with diagonal=True."
            )
    covariances = np.stack([np.cov(x, rowvar=False, ddof=1).reshape(d, d) for x in shards])
    return np.stack([x.mean(axis=0) for x in shards]), covariances


def inverses(matrices):
    """Return the inverses of positive definite matrices; a `ValueError` names a singular one."""
    out = np.empty_like(matrices)
    for s, matrix in enumerate(matrices):
        scale = np.sqrt(np.diag(matrix))
        scale = np.where(scale > 0.0, scale, 1.0)
        try:
            factor = linalg.cho_factor(matrix / np.outer(scale, scale))
        except linalg.LinAlgError:
            raise ValueError(
                f"The covariance matrix of the draws of shard {s} is singular. Drop parameters "
                "that are functions of others, or use consensus with diagonal=True."
            ) from None
        out[s] = linalg.cho_solve(factor, np.eye(len(scale))) / np.outer(scale, scale)
    return out


def product_of_gaussians(means, precisions):
    """Return the mean and covariance of Π_s N(m_s, P_s⁻¹): μ = Σ (Σ_s P_s m_s), Σ = (Σ_s P_s)⁻¹."""
    covariance = inverses(precisions.sum(axis=0)[None])[0]
    return covariance @ np.einsum("sij,sj->i", precisions, means), covariance


def in_order(shards):
    """Return the shards sorted by their means, so that results do not depend on their order."""
    keys = [(x.mean(axis=0).tolist(), len(x)) for x in shards]
    return [shards[s] for s in sorted(range(len(shards)), key=keys.__getitem__)]


def pooled(shards):
    """Return, for each shard, the draws of its chains one after the other: a list of (n, d)."""
    return list(shards.reshape(len(shards), -1, shards.shape[-1]))
