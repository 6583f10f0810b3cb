r"""Whether shards are Gaussian enough, and near enough to each other, to be averaged.

For log densities that are nearly quadratic, the first corrections are known. In white coordinates z
of shard s (mean 0, covariance I), with third and fourth cumulants :math:`\kappa`, the log density
has third derivatives :math:`\kappa_{ijk}`; its mode, and its curvature there, are to first order

.. math::

    \text{mode}_i = -\tfrac12 \sum_k \kappa_{ikk}, \qquad
    (\text{curvature}^{-1})_{ij} = \delta_{ij} - \tfrac12 \sum_k \kappa_{ijkk}.

Derivatives of log densities add up over shards. The product is narrower, so that third derivatives
move its mean S times less than that of a shard; and where its mean is at a distance u from that of
the shard, they change the shard's gradient there. Together, the error that shard s contributes to
an average of the means is, for shards of the same width,

.. math::

    \tfrac12 \sum_{jk} \kappa_{ijk} \bigl( (1 - \tfrac1S)\, \delta_{jk} - u_j u_k \bigr).

Means of independent parts of the same data are at a distance :math:`u \sim N(0, (1 - \frac1S)
I)`, and these errors cancel on average: what remains is noise of the size of a shard's skewness.
For the covariance the error is the share :math:`1 - 1/S` of its correction, and beside it, since
the curvature of a shard is another one at the distance u,

.. math:: -\sum_k \kappa_{ijk} u_k.

Where the shards overshoot, as those of few rows of two classes do, these terms have the same sign
in all of them: each shard lies farther out than the product, where its rows say less, and the
average is too wide. Cumulants of shards of n rows are of order :math:`n^{-1/2}` and :math:`n^{-1}`:
large shards are combined correctly.

A product of densities that are smoothed by kernels of bandwidth h, in units of their standard
deviations, lies between the exact product and the average. Two shards that are kept where they are
within h of each other (see `weierstrass_product`) have, to the same order, the error above with
:math:`\frac{h^2}{1 + h^2}` in front of :math:`1 - \frac1S`, and :math:`1 - (1 + h^2)^{-2}` in front
of :math:`u_j u_k`, which is also taken for the term with one u. Tests compare these predictions
with products that are known in closed form
(``tests/combine/test_combine.py::test_predicted_error_of_the_variance_is_that_of_consensus``,
``tests/combine/test_combine.py::test_predicted_error_of_the_mean_is_that_of_consensus``,
``tests/combine/test_combine.py::test_predicted_error_of_the_mean_is_that_of_weierstrass``).
"""

from typing import Any

import numpy as np
from scipy import linalg, stats

from .._base.validation import check_positive, check_within
from ._base import as_shards, inverses, moments, product_of_gaussians

__all__ = ["agreement"]

LEAST_RIGHT = 0.1  # least share of a combined variance that is right, for the prediction


def agreement(draws: Any, effective_size: float | None = None, bandwidth: float = np.inf) -> Any:
    r"""Predict the errors that come from averaging draws of shards as if these were Gaussian.

    Parameters
    ----------
    draws : sequence of arrays of shape (n_draws, n_parameters)
        Draws of each shard, more than there are parameters; in unconstrained coordinates.
    effective_size : float, optional
        Effective sample size of the draws of a shard; their number if None.
    bandwidth : float, default=inf
        Predict the errors of a product of kernel estimates instead, with kernels of this many
        standard deviations of a shard: there are none for 0, and for infinity they are those of
        averages.

    Returns
    -------
    dict of str to float
        ``mean_shift``: the predicted error of a posterior mean, in posterior standard deviations,
        and ``mean_shift_error``, its Monte Carlo error, which grows with the number of parameters;
        both are of the parameter that stands out most. ``mean_shift_p`` is the probability that
        Gaussian shards have such errors of all means by chance. ``weights_error``: the standard
        deviation of the error that covariances estimated from the draws cause in a mean, in
        posterior standard deviations; it is about :math:`\sqrt{(d + 1)(1 - 1/S)/T}` for shards with
        T draws of d parameters. ``variance_shift``: the largest predicted relative error of the
        variance in any direction, from fourth cumulants, and ``variance_shift_error``: Gaussian
        shards have a shift of four times as much by chance. ``spread_shift``: the predicted
        relative error of variances, on average over all directions, from third cumulants and the
        distances of the shards (negative if they are too small), and ``spread_shift_error``, its
        Monte Carlo error. ``distance``: the mean squared distance
        of the shards' means from that of the product, in units of its expectation for independent
        rows, and ``distance_p``, the probability of a larger one. The distance is large if the
        shards contain rows of different kinds, or have found different modes. ``skewness``: the
        largest one of a parameter in a shard, of which kernels of bandwidth h leave
        :math:`h^2/(1+h^2)`; above 0.8 the predictions are too small, by a factor of up to ten.

    Raises
    ------
    InvalidParameterError
        For an `effective_size` that is not a positive finite number, and a `bandwidth` that is not
        a number of at least 0.
    ValueError
        For draws that are not finite or of different shapes, and for shards without an inverse
        covariance.

    Notes
    -----
    The predictions are of first order in skewness and kurtosis of the shards: they tell good
    combinations from bad ones, and are not accurate enough for a correction. For skewed shards
    ``variance_shift`` is an upper estimate. Several modes show in ``variance_shift`` if every shard
    has found them all, and in ``distance`` if each has found one.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.combine import agreement
    >>> rng = np.random.default_rng(0)
    >>> gaussian = agreement(rng.normal(size=(4, 1000, 2)))
    >>> print(gaussian["mean_shift"] < 0.2)
    True
    >>> skewed = agreement(rng.exponential(size=(4, 1000, 2)))
    >>> print(skewed["mean_shift"] > 1.0)  # mean - mode is a standard deviation of a shard
    True
    """
    shards = as_shards(draws)
    check_within("bandwidth", bandwidth, "agreement", 0.0, np.inf, "[]", "a number of at least 0")
    if effective_size is not None:
        check_positive("effective_size", effective_size, "agreement")
    S, d = len(shards), shards[0].shape[1]
    means, covariances = moments(shards)
    precisions = inverses(covariances)
    mean, covariance = product_of_gaussians(means, precisions)
    size = min(map(len, shards)) if effective_size is None else effective_size
    near, far = smoothing(bandwidth)
    share, sd = near * (1.0 - 1.0 / S), np.sqrt(np.diag(covariance))
    shift, skewness = np.zeros(d), 0.0
    noise, plug_in, bend = np.zeros((3, d, d))
    spread = np.zeros(2)  # a relative error of variances, and the square of its Monte Carlo error
    for x, m, C, P in zip(shards, means, covariances, precisions, strict=True):
        root = linalg.cholesky(C, lower=True)
        z, u = (linalg.solve_triangular(root, v.T, lower=True).T for v in (x - m, mean - m))
        # `effect` turns a shift of the shard's mean, in white units, into that of the product's.
        effect = covariance @ P @ root
        A = share * np.eye(d) - far * np.outer(u, u)
        shift += 0.5 * effect @ third_cumulants(z, A)
        noise += 0.25 / size * effect @ third_cumulants_noise(A) @ effect.T
        plug_in += effect @ (u @ u * np.eye(d) + np.outer(u, u)) @ effect.T / size
        skewness = max(skewness, float(np.abs(stats.skew(x)).max()))
        bend += 0.5 * share * effect @ fourth_cumulants(z) @ effect.T
        E = far / d * effect.T @ P @ root  # P root is the inverse covariance of all, times `effect`
        spread += -u @ third_cumulants(z, E), u @ third_cumulants_noise(E) @ u / size
    found, error = np.abs(shift / sd), np.sqrt(np.diag(noise)) / sd
    worst = int(np.argmax(found - 3.0 * error))
    scaled = linalg.eigh(bend, covariance, eigvals_only=True)
    chi2 = sum((m - mean) @ P @ (m - mean) for m, P in zip(means, precisions, strict=True))
    return {
        "mean_shift": float(found[worst]),
        "mean_shift_error": float(error[worst]),
        "mean_shift_p": _probability(shift, noise),
        "weights_error": float(np.sqrt(np.diag(plug_in) / np.diag(covariance)).max() * near),
        "variance_shift": float(np.abs(scaled).max()),
        "variance_shift_error": float(share * (2.5 + 0.4 * d) / np.sqrt(S * size)),
        **_of_spread(*spread),
        "skewness": near * skewness,
        "distance": float(chi2 / (d * max(S - 1, 1))),
        "distance_p": float(stats.chi2.sf(chi2, d * max(S - 1, 1))),
    }


def _of_spread(lost, square):
    """The error relative to the right variances, of which the combined ones lack this share."""
    right = max(1.0 - lost, LEAST_RIGHT)
    error = np.sqrt(square) / right**2
    return {"spread_shift": float(1.0 / right - 1.0), "spread_shift_error": float(error)}


def _probability(shift, noise):
    """Probability of a larger shift, in its noise's own metric, if the shift is noise."""
    if not noise.any():
        return 1.0
    unit = np.sqrt(np.diag(noise))  # parameters may have very different units
    inverse, rank = linalg.pinvh(noise / np.outer(unit, unit), return_rank=True)
    return float(stats.chi2.sf(shift / unit @ inverse @ (shift / unit), rank))


def smoothing(h):
    """Return the shares h²/(1+h²) and 1 - (1+h²)⁻² of the two errors of averages.

    A product of kernel estimates with bandwidth h, in standard deviations of a shard, has these
    shares of the errors of averages: see the end of the module's docstring.
    """
    left = 1.0 / (1.0 + h**2)
    return 1.0 - left, 1.0 - left**2


def third_cumulants(z, A):
    """Return Σ_jk κ_ijk A_jk for every i, with third cumulants κ of white draws z (n, d)."""
    return z.T @ ((z @ A) * z).sum(axis=1) / len(z)


def third_cumulants_noise(A):
    """Return the covariance (d, d) of `third_cumulants` for a single Gaussian draw."""
    A2 = A @ A
    return 2.0 * np.trace(A2) * np.eye(len(A)) + 4.0 * A2


def fourth_cumulants(z):
    """Return Σ_k κ_ijkk for all i and j, with fourth cumulants κ of white draws z (n, d)."""
    squares = (z**2).sum(axis=1)
    return (z * squares[:, None]).T @ z / len(z) - (z.shape[1] + 2.0) * np.eye(z.shape[1])
