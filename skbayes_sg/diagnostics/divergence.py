r"""Distances between two distributions: exact for Gaussians, estimated for samples.

Divergences are in nats. Between one-dimensional Gaussians, means that differ by one standard
deviation have a divergence of 0.5 nats, variances of ratio 1.05 one of 0.0006.
"""

from typing import Any

import numpy as np
from scipy import linalg

from .._base.validation import is_whole
from ._draws import as_matrix

__all__ = ["gaussian_kl", "gaussian_wasserstein2", "nearest_neighbour_kl"]

SYMMETRIC = 1e-6  # largest difference of a covariance and its transpose, in standard deviations


def gaussian_kl(mean0: Any, cov0: Any, mean1: Any, cov1: Any) -> float:
    r"""Kullback-Leibler divergence KL(N₀ ‖ N₁) of two Gaussians, in nats.

    .. math::

        \tfrac12 \bigl[ \operatorname{tr} \Sigma_1^{-1} \Sigma_0
        + (\mu_1 - \mu_0)^\top \Sigma_1^{-1} (\mu_1 - \mu_0) - d
        + \log |\Sigma_1| / |\Sigma_0| \bigr]

    It is zero if and only if they are equal, additive over independent blocks, and the same in all
    coordinates.

    Parameters
    ----------
    mean0, cov0 : arrays of shapes (d,) and (d, d)
    mean1, cov1 : arrays of shapes (d,) and (d, d)
        Covariances are symmetric and positive definite.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If shapes do not match, or a covariance is not symmetric and positive definite.

    Examples
    --------
    >>> from skbayes_sg.diagnostics import gaussian_kl
    >>> print(gaussian_kl([0.0], [[1.0]], [1.0], [[1.0]]))
    0.5
    """
    mean0, C0 = _gaussian("0", mean0, cov0)
    mean1, C1 = _gaussian("1", mean1, cov1)
    _same_size(mean0, mean1)
    d = len(mean0)
    M = linalg.solve_triangular(C1, C0, lower=True)
    shift = linalg.solve_triangular(C1, mean1 - mean0, lower=True)
    log_ratio = 2.0 * np.sum(np.log(np.diag(C1) / np.diag(C0)))
    return float(0.5 * (np.sum(M * M) + shift @ shift - d + log_ratio))


def gaussian_wasserstein2(mean0: Any, cov0: Any, mean1: Any, cov1: Any) -> float:
    r"""Wasserstein-2 distance of two Gaussians, in the units of the parameters.

    .. math::

        W_2^2 = \|\mu_0 - \mu_1\|^2 + \operatorname{tr} \bigl( \Sigma_0 + \Sigma_1
        - 2 (\Sigma_1^{1/2} \Sigma_0 \Sigma_1^{1/2})^{1/2} \bigr)

    Parameters
    ----------
    mean0, cov0 : arrays of shapes (d,) and (d, d)
    mean1, cov1 : arrays of shapes (d,) and (d, d)
        Covariances are symmetric and positive definite.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If shapes do not match, or a covariance is not symmetric and positive definite.

    Examples
    --------
    Standard deviations 1 and 3 in two dimensions:

    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import gaussian_wasserstein2
    >>> print(round(gaussian_wasserstein2([0, 0], np.eye(2), [0, 0], 9 * np.eye(2)) ** 2, 12))
    8.0
    """
    mean0, C0 = _gaussian("0", mean0, cov0)
    mean1, C1 = _gaussian("1", mean1, cov1)
    _same_size(mean0, mean1)
    # (Σ1^½ Σ0 Σ1^½)^½ has the eigenvalues that C1ᵀ C0 has as singular values
    cross = linalg.svdvals(C1.T @ C0).sum()
    squared = np.sum((mean0 - mean1) ** 2) + np.sum(C0 * C0) + np.sum(C1 * C1) - 2.0 * cross
    return float(np.sqrt(max(squared, 0.0)))


def _gaussian(number, mean, cov):
    """The checked mean, and the lower Cholesky factor of the covariance.

    `number` is the end of the arguments' names in error messages.
    """
    mean, cov = np.asarray(mean, dtype=np.float64), np.asarray(cov, dtype=np.float64)
    if mean.ndim != 1 or cov.shape != (len(mean), len(mean)):
        raise ValueError(
            f"mean{number} must have the shape (d,) and cov{number} (d, d), got {mean.shape} and "
            f"{cov.shape}."
        )
    try:
        root = linalg.cholesky(cov, lower=True)
    except (linalg.LinAlgError, ValueError) as error:
        raise ValueError(f"cov{number} must be finite and positive definite.") from error
    sd = np.sqrt(np.diag(cov))
    apart = np.abs(cov - cov.T) / np.outer(sd, sd)
    if apart.max(initial=0.0) > SYMMETRIC:
        i, j = np.unravel_index(np.argmax(apart), apart.shape)
        raise ValueError(
            f"cov{number} must be symmetric, but has {cov[i, j]:g} in row {i} and column {j}, and "
            f"{cov[j, i]:g} in row {j} and column {i}."
        )
    return mean, root


def _same_size(mean0, mean1):
    """Raise `ValueError` if two means have different lengths."""
    if len(mean0) != len(mean1):
        raise ValueError(f"The means must have the same length, got {len(mean0)} and {len(mean1)}.")


def nearest_neighbour_kl(
    sample0: np.ndarray, sample1: np.ndarray, *, n_neighbours: int = 5
) -> float:
    r"""Estimate KL(P₀ ‖ P₁) in nats from a sample of each, by distances to nearest neighbours.

    .. math::

        \frac{d}{n_0} \sum_{i=1}^{n_0} \log \frac{\nu_k(x_i)}{\rho_k(x_i)}
        + \log \frac{n_1}{n_0 - 1}

    with :math:`\rho_k(x_i)` the distance from :math:`x_i` to its k-th neighbour among the other
    draws of its own sample, and :math:`\nu_k(x_i)` among the other sample. The estimate is
    consistent as samples grow, without assumptions about the distributions. Its bias for finite
    samples grows with d, so that differences between samplers are more reliable than values. If the
    parameters have different units, divide them by their posterior standard deviations.

    Parameters
    ----------
    sample0, sample1 : arrays of shape (n_draws, d) or (n_chains, n_draws, d)
        Draws, none of which may equal k or more others.
    n_neighbours : int, default=5
        The number k: more neighbours give less variance and more bias.

    Returns
    -------
    float
        It may be negative by chance.

    Raises
    ------
    ValueError
        If the samples have different parameters, are too small, or have repeated draws, and for an
        `n_neighbours` that is not a positive int.

    References
    ----------
    S. Boltz, E. Debreuve and M. Barlaud (2009). High-dimensional statistical measure for
    region-of-interest tracking. IEEE Transactions on Image Processing 18, 1266-1283. Used by
    J. Baker et al. (2019), sec. 3, to compare samplers.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import nearest_neighbour_kl
    >>> rng = np.random.default_rng(0)
    >>> kl = nearest_neighbour_kl(rng.normal(size=(4000, 1)), rng.normal(1.0, 1.0, size=(4000, 1)))
    >>> print(round(kl, 1))  # exactly: 0.5
    0.5
    """
    from scipy.spatial import cKDTree  # slow to import

    x, y = as_matrix("sample0", sample0), as_matrix("sample1", sample1)
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            f"The samples must have the same parameters, got {x.shape[1]} and {y.shape[1]} columns."
        )
    most = min(len(x) - 1, len(y))
    if not (is_whole(n_neighbours) and 1 <= n_neighbours <= most):
        raise ValueError(f"n_neighbours must be an int in [1, {most}], got {n_neighbours!r}.")
    # The nearest neighbour of a draw in its own sample is the draw itself.
    own = cKDTree(x).query(x, [n_neighbours + 1])[0][:, 0]
    other = cKDTree(y).query(x, [n_neighbours])[0][:, 0]
    if (own == 0.0).any() or (other == 0.0).any():
        raise ValueError(
            f"{int(((own == 0.0) | (other == 0.0)).sum())} draws are repeated {n_neighbours} times "
            "or more, as after rejected moves: thin the draws or raise n_neighbours."
        )
    return float(x.shape[1] * np.mean(np.log(other / own)) + np.log(len(y) / (len(x) - 1)))
