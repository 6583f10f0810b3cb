r"""Whether shards are Gaussian enough, and near enough to each other, to be averaged.

For log densities that are nearly quadratic, the first corrections are known. In white coordinates z
of shard s (mean 0, covariance I) with third and fourth cumulants :math:`\kappa`, mode and curvature
at the mode are, to first order in the cumulants,

.. math::

    \text{mode}_i = -\tfrac12 \sum_k \kappa_{ikk}, \qquad
    (\text{curvature}^{-1})_{ij} = \delta_{ij} - \tfrac12 \sum_k \kappa_{ijkk}.

Third and fourth derivatives of log densities add up over shards, as do curvatures. In units of the
product, which is :math:`\sqrt S` times narrower than a shard, their effect is S times smaller than
in a shard. So of what averages take for the mean of a shard, the share :math:`1 - 1/S` of
:math:`\text{mean} - \text{mode}` is error, and likewise of its covariance. In shards of n rows both
cumulants vanish with n, as :math:`n^{-1/2}` and :math:`n^{-1}`, so that in units of the product the
error is about :math:`S / \sqrt N`: few large shards are right.
"""

import numpy as np
from scipy import linalg, stats

from ._base import as_shards, inverses, moments, product_of_gaussians

__all__ = ["agreement"]


def agreement(draws, effective_size=None):
    r"""What averaging the draws of shards as if they were Gaussian is predicted to get wrong.

    Parameters
    ----------
    draws : sequence of arrays of shape (n_draws, n_parameters)
        Draws of each shard, more than there are parameters; in unconstrained coordinates.
    effective_size : float, optional
        Independent draws that those of a shard are worth; their number if None.

    Returns
    -------
    dict of str to float
        ``mean_shift``: the largest predicted error of a posterior mean, in posterior standard
        deviations, and ``mean_shift_error``, its Monte Carlo error. ``variance_shift``: the largest
        predicted relative error of the variance in any direction, from fourth cumulants, and
        ``variance_shift_error``. ``distance``: the mean squared distance of the shards' means from
        that of the product, in units of what independent rows lead to (1), and ``distance_p``, the
        probability of a larger one; large where shards hold rows of different kinds, or different
        modes of a posterior.

    Notes
    -----
    To first order in skewness and kurtosis of the shards: it tells good from bad, and is no
    correction. Of skewed shards ``variance_shift`` is an upper estimate. Posteriors with several
    modes show in ``variance_shift`` if every shard has found them all, and in ``distance`` if each
    has found one.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.combine import agreement
    >>> rng = np.random.default_rng(0)
    >>> gaussian = agreement(rng.normal(size=(4, 1000, 2)))
    >>> print(gaussian["mean_shift"] < 0.1)
    True
    >>> skewed = agreement(rng.exponential(size=(4, 1000, 2)))
    >>> print(skewed["mean_shift"] > 1.0)  # mean - mode is a standard deviation of a shard
    True
    """
    shards = as_shards(draws)
    S, d = len(shards), shards[0].shape[1]
    means, covariances = moments(shards)
    precisions = inverses(covariances)
    mean, covariance = product_of_gaussians(means, precisions)
    size = min(map(len, shards)) if effective_size is None else effective_size
    share, sd = 1.0 - 1.0 / S, np.sqrt(np.diag(covariance))
    shift, bend = np.zeros(d), np.zeros((d, d))
    for x, m, C, P in zip(shards, means, covariances, precisions, strict=True):
        root = linalg.cholesky(C, lower=True)
        skew, kurtosis = contractions(linalg.solve_triangular(root, (x - m).T, lower=True).T)
        shift += covariance @ P @ root @ skew
        half = covariance @ P @ root
        bend += half @ kurtosis @ half.T
    scaled = linalg.eigh(0.5 * share * bend, covariance, eigvals_only=True)
    chi2 = sum((m - mean) @ P @ (m - mean) for m, P in zip(means, precisions, strict=True))
    return {
        "mean_shift": float(np.abs(0.5 * share * shift / sd).max()),
        "mean_shift_error": float(share * np.sqrt((2 * d + 4) / size) / 2),
        "variance_shift": float(np.abs(scaled).max()),
        "variance_shift_error": float(share * np.sqrt((4 * d + 20) / (S * size)) / 2),
        "distance": float(chi2 / (d * max(S - 1, 1))),
        "distance_p": float(stats.chi2.sf(chi2, d * max(S - 1, 1))),
    }


def contractions(z):
    """Σ_k κ_ikk and Σ_k κ_ijkk of white draws (mean 0, covariance I)."""
    n, d = z.shape
    squares = (z**2).sum(axis=1)
    return squares @ z / n, (z * squares[:, None]).T @ z / n - (d + 2.0) * np.eye(d)
