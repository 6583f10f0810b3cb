r"""The product of Gaussian approximations of the shards.

:math:`\Sigma = (\sum_s \Sigma_s^{-1})^{-1}` and :math:`\mu = \Sigma \sum_s \Sigma_s^{-1} \mu_s`.
"""

from typing import Any

import numpy as np
from scipy import linalg

from .._base import streams
from ._base import Combiner, as_shards, in_order, inverses, moments, number_of_draws, pooled
from ._base import product_of_gaussians as product

__all__ = ["Parametric", "gaussian_product"]


def gaussian_product(
    draws: Any,
    n_draws: int | None = None,
    *,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> np.ndarray:
    r"""Draws of the product of Gaussians with the means and covariances of the shards.

    .. math::

        \theta \sim N(\mu, \Sigma), \quad \Sigma^{-1} = \sum_s \Sigma_s^{-1}, \quad
        \mu = \Sigma \sum_s \Sigma_s^{-1} \mu_s

    The mean is that of `consensus_average`; the result is Gaussian whatever the shards are.

    Parameters
    ----------
    draws : sequence of arrays of shape (n_draws, n_parameters)
        Draws of each shard, more than there are parameters; in unconstrained coordinates.
    n_draws : int, optional
        Draws to make; as many as the first shard has if None.
    random_state : int, RandomState, Generator or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_draws, n_parameters)

    Raises
    ------
    ValueError
        For draws that are not finite or of different shapes, for an `n_draws` that is not a
        positive int, and for shards without an inverse covariance.

    References
    ----------
    W. Neiswanger, C. Wang and E. P. Xing (2014). Asymptotically exact, embarrassingly parallel
    MCMC. UAI. Section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.combine import gaussian_product
    >>> rng = np.random.default_rng(0)
    >>> draws = [rng.normal(1.0, 1, (4000, 1)), rng.normal(3.5, 2, (4000, 1))]
    >>> combined = gaussian_product(draws, 10_000, random_state=0)
    >>> print(combined.mean().round(1), combined.var().round(1))
    1.5 0.8
    """
    shards = as_shards(draws)
    n_draws = number_of_draws(n_draws, shards)
    return _draw(in_order(shards), n_draws, streams.of_user(random_state))


def _draw(shards, n_draws, rng):
    means, covariances = moments(shards)
    mean, covariance = product(means, inverses(covariances))
    root = linalg.cholesky(covariance, lower=True)
    return mean + rng.standard_normal((n_draws, len(mean))) @ root.T


class Parametric(Combiner):
    """The product of Gaussians with the means and covariances of the shards.

    See `gaussian_product`.

    Examples
    --------
    >>> from skbayes_sg.combine import Parametric
    >>> Parametric()
    Parametric()
    """

    assumes_gaussian = True

    def _combine(self, shards, rng):
        n_chains, n_draws, d = shards.shape[1:]
        draws = _draw(in_order(pooled(shards)), n_chains * n_draws, rng)
        return np.reshape(draws, (n_chains, n_draws, d)), {}
