r"""Products of kernel density estimates, sampled by independent Metropolis within Gibbs.

With T draws of each of S shards, the product of their kernel density estimates of bandwidth h is a
mixture of :math:`T^S` Gaussians, one for each choice :math:`t = (t_1, \ldots, t_S)` of a draw from
each shard:

.. math::

    \prod_s \frac1T \sum_{t_s} N(\theta;\, \theta_{t_s}, h^2 I)
        \propto \sum_t w_t\, N\Bigl(\theta;\, \bar\theta_t, \tfrac{h^2}{S} I\Bigr), \qquad
    w_t = \prod_s N(\theta_{t_s};\, \bar\theta_t, h^2 I).

For each shard in turn, a sweep proposes another of its draws, all with the same probability, and
accepts it with probability min(1, ratio of the weights).

The semiparametric estimate of a shard is its Gaussian approximation times a kernel estimate of the
rest, :math:`\frac1T \sum_t N(\theta; \theta_t, h^2 I)\, N(\theta; \hat\mu_s, \hat\Sigma_s) /
N(\theta_t; \hat\mu_s, \hat\Sigma_s)`. With the Gaussian product :math:`N(\hat\mu, \hat\Sigma)`
the mixture becomes

.. math::

    W_t = w_t\, \frac{N(\bar\theta_t;\, \hat\mu, \hat\Sigma + \tfrac{h^2}{S} I)}
                     {\prod_s N(\theta_{t_s};\, \hat\mu_s, \hat\Sigma_s)}, \qquad
    N(\theta;\, \mu_t, \Sigma_t), \quad
    \Sigma_t = \bigl(\tfrac{S}{h^2} I + \hat\Sigma^{-1}\bigr)^{-1}, \quad
    \mu_t = \Sigma_t \bigl(\tfrac{S}{h^2} \bar\theta_t + \hat\Sigma^{-1} \hat\mu\bigr).

All this happens in coordinates in which the average covariance of the shards is the identity, so
that results do not depend on the units of the parameters, and :math:`\hat\Sigma` is diagonal, so
that a proposal costs one pass over the parameters.

W. Neiswanger, C. Wang and E. P. Xing (2014). Asymptotically exact, embarrassingly parallel MCMC.
UAI. Sections 3.2 and 3.3, algorithm 1.
"""

import math
import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from .._base import streams
from .._base.jit import entry, inner
from .._base.validation import is_real, is_whole
from ..exceptions import InvalidParameterError, SubposteriorWarning
from ._base import (
    Combiner,
    as_shards,
    in_order,
    inverses,
    moments,
    number_of_draws,
    pooled,
    product_of_gaussians,
)

__all__ = ["FEWEST", "Nonparametric", "Semiparametric", "kernel_product"]
__all__ += ["semiparametric_product"]

FEWEST = 60  # effective number of draws of a shard, below which the product is not reliable


class Mixture(NamedTuple):
    """The mixture of T^S components: draws of all shards in white coordinates, and Gaussians."""

    points: np.ndarray  # (sum of the numbers of draws, d)
    starts: np.ndarray  # (S + 1,): shard s has the points from starts[s] up to starts[s + 1]
    own: np.ndarray  # log N(point; own shard's Gaussian); zeros for the nonparametric product
    mean: np.ndarray  # (d,) of the Gaussian product
    precision: np.ndarray  # (d,) of the Gaussian product; zeros for the nonparametric product


@inner
def _misfit(mixture, j, mean, variance):
    """Return ½ (θ̄ - μ̂)² / (Σ̂ + h²/S) in coordinate j, for θ̄ = `mean` and h²/S = `variance`.

    The result is 0 for the nonparametric product, which has no Gaussian factor.
    """
    P = mixture.precision[j]
    return 0.5 * (mean - mixture.mean[j]) ** 2 * P / (1.0 + P * variance)


@entry
def log_ratio(mixture, sums, old, new, S, h):
    """Return the log ratio of the weights w_t, or W_t, after and before `new` replaces `old`.

    `old` and `new` are numbers of points, and `sums` (d,) is the sum of the S points before.
    """
    total = mixture.own[old] - mixture.own[new]
    for j in range(sums.shape[0]):
        a, b = mixture.points[old, j], mixture.points[new, j]
        before, after = sums[j] / S, (sums[j] + b - a) / S
        # How much the replacement adds to Σ (θ_s - θ̄)² = Σ θ_s² - S θ̄².
        squares = (b - a) * (b + a - before - after)
        total -= 0.5 * squares / (h * h)
        total -= _misfit(mixture, j, after, h * h / S) - _misfit(mixture, j, before, h * h / S)
    return total


@inner
def _sum_points(mixture, choice, sums_out):
    for j in range(sums_out.shape[0]):
        sums_out[j] = 0.0
        for s in range(choice.shape[0]):
            sums_out[j] += mixture.points[choice[s], j]


@entry
def sweep(rng, mixture, choice_out, sums_out, h):
    """Propose another point for every shard in turn; return how many proposals were accepted."""
    S, accepted = choice_out.shape[0], 0
    # Sums are computed anew at every sweep, so that rounding errors do not accumulate.
    _sum_points(mixture, choice_out, sums_out)
    for s in range(S):
        first, n = mixture.starts[s], mixture.starts[s + 1] - mixture.starts[s]
        old, new = choice_out[s], first + int(rng.random() * n)
        if math.log(rng.random()) < log_ratio(mixture, sums_out, old, new, S, h):
            for j in range(sums_out.shape[0]):
                sums_out[j] += mixture.points[new, j] - mixture.points[old, j]
            choice_out[s] = new
            accepted += 1
    return accepted


@entry
def component(mixture, sums, S, h, mean_out, sd_out):
    """Write the mean μ_t and the standard deviations Σ_t^½ of the component with sum `sums`."""
    for j in range(sums.shape[0]):
        P = S / (h * h) + mixture.precision[j]
        drift = mixture.precision[j] * (mixture.mean[j] - sums[j] / S)
        mean_out[j] = sums[j] / S + drift / P
        sd_out[j] = 1.0 / math.sqrt(P)


@entry
def run(rng, mixture, bandwidths, n_sweeps, n_warmup, choice, means_out, sds_out, visits_out):
    """Run `n_sweeps` sweeps for each bandwidth; return how many proposals were accepted.

    After the first `n_warmup` bandwidths, the mean and the standard deviations of the component are
    written for each. `visits_out` counts, for each point, the sweeps after the warm-up that ended
    with it.
    """
    sums, accepted = np.empty(mixture.points.shape[1]), 0
    for t in range(bandwidths.shape[0]):
        h = bandwidths[t]
        for _ in range(n_sweeps):
            accepted += sweep(rng, mixture, choice, sums, h)
            if t >= n_warmup:
                for s in range(choice.shape[0]):
                    visits_out[choice[s]] += 1
        if t >= n_warmup:
            k = t - n_warmup
            component(mixture, sums, choice.shape[0], h, means_out[k], sds_out[k])
    return accepted


class WhiteCoordinates(NamedTuple):
    """Coordinates z with θ = origin + F z; `axes` are the eigenvectors of `white_coordinates`."""

    origin: np.ndarray
    F: np.ndarray
    axes: np.ndarray


def white_coordinates(means, covariances):
    """Return coordinates with average covariance I in which the Gaussian product is diagonal.

    The result is (`WhiteCoordinates`, mean of the product, precision of the product), the last two
    in these coordinates.
    """
    mean, covariance = product_of_gaussians(means, inverses(covariances))
    root = linalg.cholesky(covariances.mean(axis=0), lower=True)
    half = linalg.solve_triangular(root, covariance, lower=True)
    variances, axes = linalg.eigh(linalg.solve_triangular(root, half.T, lower=True))
    return WhiteCoordinates(mean, root @ axes, axes), np.zeros(len(mean)), 1.0 / variances


def _log_gaussian(z):
    """Return the log density, up to a constant, of each row of z under the rows' own Gaussian."""
    centred = z - z.mean(axis=0)
    covariance = np.cov(z, rowvar=False, ddof=1).reshape(z.shape[1], z.shape[1])
    root = linalg.cholesky(covariance, lower=True)
    return -0.5 * (linalg.solve_triangular(root, centred.T, lower=True) ** 2).sum(axis=0)


def build(shards, semiparametric):
    """Return the `WhiteCoordinates` and the `Mixture` for the draws of the shards."""
    coordinates, mean, precision = white_coordinates(*moments(shards))
    unit = linalg.norm(coordinates.F, axis=1)  # of the parameters, which may differ by far
    F = coordinates.F / unit[:, None]
    white = [linalg.solve(F, ((x - coordinates.origin) / unit).T).T for x in shards]
    own = [_log_gaussian(z) if semiparametric else np.zeros(len(z)) for z in white]
    points, starts = np.ascontiguousarray(np.concatenate(white)), np.cumsum([0, *map(len, white)])
    precision = precision if semiparametric else np.zeros_like(precision)
    return coordinates, Mixture(points, starts, np.concatenate(own), mean, precision)


def annealed(bandwidth, n, d):
    """Return the bandwidths of n draws: constant, or h_i = i^(-1/(4 + d)) for draw i = 1, 2, ..."""
    if bandwidth == "anneal":
        return np.arange(1.0, n + 1.0) ** (-1.0 / (4.0 + d))
    return np.full(n, float(bandwidth))


def check_options(bandwidth, n_sweeps, n_warmup=None):
    """Raise `InvalidParameterError` for parameters that are not accepted."""
    if not (is_real(bandwidth) and 0.0 < bandwidth < np.inf) and bandwidth != "anneal":
        raise InvalidParameterError(
            f"bandwidth must be 'anneal' or a positive finite number, got {bandwidth!r}."
        )
    if not (is_whole(n_sweeps) and n_sweeps >= 1):
        raise InvalidParameterError(f"n_sweeps must be an int of at least 1, got {n_sweeps!r}.")
    if not (n_warmup is None or (is_whole(n_warmup) and n_warmup >= 0)):
        raise InvalidParameterError(
            f"n_warmup must be None or an int of at least 0, got {n_warmup!r}."
        )


def effective_draws(visits, starts):
    """Return the effective number of each shard's draws in the product, (Σ v)² / Σ v² of visits v.

    The points of a shard are weighted by the density of all other shards, so that this is the
    effective size of an importance sample. Where shards hardly overlap, few points have most of the
    weight: Baker et al. (2019), section 3.5, saw the resulting errors.
    """
    own = [visits[a:b].astype(np.float64) for a, b in pairwise(starts)]
    return np.array([v.sum() ** 2 / (v @ v) for v in own])


def _chain(rng, coordinates, mixture, n_draws, bandwidth, n_sweeps, n_warmup=None):
    """Return the draws of one run, the share of accepted proposals, and each point's visits."""
    d, S = mixture.points.shape[1], len(mixture.starts) - 1
    n_warmup = n_draws if n_warmup is None else n_warmup
    bandwidths = annealed(bandwidth, n_warmup + n_draws, d)
    counts = np.diff(mixture.starts)
    choice = mixture.starts[:-1] + (rng.random(S) * counts).astype(np.int64)
    means, sds = np.empty((2, n_draws, d))
    visits = np.zeros(len(mixture.points), np.int64)
    accepted = run(rng, mixture, bandwidths, int(n_sweeps), n_warmup, choice, means, sds, visits)
    # Normals are drawn along fixed axes and then rotated to the eigenvectors: only rounding errors
    # determine the eigenvectors of eigenvalues that are nearly equal, and they would change draws.
    draws = means + sds * (rng.standard_normal((n_draws, d)) @ coordinates.axes)
    rate = accepted / (S * n_sweeps * len(bandwidths))
    return coordinates.origin + draws @ coordinates.F.T, float(rate), visits


def _product(draws, n_draws, bandwidth, n_sweeps, n_warmup, random_state, semiparametric):
    shards, rng = as_shards(draws), streams.of_user(random_state)
    check_options(bandwidth, n_sweeps, n_warmup)
    n_draws = number_of_draws(n_draws, shards)
    ordered = in_order(shards)
    coordinates, mixture = build(ordered, semiparametric)
    found, _, visits = _chain(rng, coordinates, mixture, n_draws, bandwidth, n_sweeps, n_warmup)
    _warn_of_few_draws(effective_draws(visits, mixture.starts), shards, ordered, n_draws)
    return found


def _warn_of_few_draws(effective, shards, ordered, n_draws):
    """Issue a `SubposteriorWarning` if the product rests on few of the draws of a shard.

    The limit is `FEWEST` effective draws, or `n_draws` if fewer draws of the product were made.
    """
    fewest = int(np.argmin(effective))
    if effective[fewest] < min(FEWEST, n_draws):
        s = next(s for s, x in enumerate(shards) if x is ordered[fewest])
        warnings.warn(
            f"The product rests on few draws of shard {s}: their effective number is "
            f"{effective[fewest]:.1f} of {len(shards[s])}, and {FEWEST} are needed. Its means and "
            "standard deviations are not to be believed: the shards hardly overlap, or there are "
            "too few draws for so many shards and parameters. Use more draws of each shard, or "
            "weierstrass_product, or gaussian_product for shards that are nearly Gaussian.",
            SubposteriorWarning,
            stacklevel=4,
        )


def kernel_product(
    draws: Any,
    n_draws: int | None = None,
    *,
    bandwidth: float | str = "anneal",
    n_sweeps: int = 50,
    n_warmup: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> np.ndarray:
    r"""Draws of the product of kernel density estimates of the shards (nonparametric, "KDEMC").

    Its draws have the law of the product of the estimates
    (``tests/combine/test_combine.py::test_density_of_all_64_components_is_the_product``), which
    tends to that of the shards as bandwidths go to zero and draws are added, for shards of any
    shape. But it needs draws of all shards that lie within a bandwidth of each other, so it suits
    few parameters and few shards. Kernels also widen the draws, by a factor of about
    :math:`\sqrt{1 + h^2}`. Bandwidths h are in units of the average standard deviation of the
    shards (:math:`\sqrt S` times the product's).

    Parameters
    ----------
    draws : sequence of arrays of shape (n_draws, n_parameters)
        Draws of each shard, more than there are parameters; in unconstrained coordinates.
    n_draws : int, optional
        Draws to make; as many as the first shard has if None.
    bandwidth : "anneal" or float, default="anneal"
        The standard deviation h of the kernels; "anneal" is :math:`i^{-1/(4 + d)}` for draw i and
        d parameters, as in algorithm 1 of the reference.
    n_sweeps : int, default=50
        Sweeps from one draw to the next; algorithm 1 has 1.
    n_warmup : int, optional
        Draws that are discarded while the bandwidth shrinks; as many as are kept if None.
    random_state : int, RandomState, Generator or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_draws, n_parameters)
        Successive draws are dependent.

    Raises
    ------
    InvalidParameterError
        For a `bandwidth`, `n_sweeps` or `n_warmup` that is not accepted.
    ValueError
        For draws that are not finite or of different shapes, for an `n_draws` that is not a
        positive int, and for shards without an inverse covariance.

    Warns
    -----
    SubposteriorWarning
        The product rests on an effective number of fewer than 60 draws of a shard, because the
        shards hardly overlap or are too many for their draws
        (``tests/combine/test_combine.py::test_products_that_rest_on_few_draws_come_with_a_warning``).

    References
    ----------
    W. Neiswanger, C. Wang and E. P. Xing (2014). Asymptotically exact, embarrassingly parallel
    MCMC. UAI. Section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.combine import kernel_product
    >>> rng = np.random.default_rng(0)
    >>> draws = [rng.normal(1.0, 1, (4000, 1)), rng.normal(3.5, 2, (4000, 1))]
    >>> combined = kernel_product(draws, 20_000, bandwidth=0.2, random_state=0)
    >>> print(abs(combined.mean() - 1.5) < 0.2, abs(combined.var() - 0.8) < 0.2)
    True True
    """
    return _product(draws, n_draws, bandwidth, n_sweeps, n_warmup, random_state, False)


def semiparametric_product(
    draws: Any,
    n_draws: int | None = None,
    *,
    bandwidth: float | str = "anneal",
    n_sweeps: int = 50,
    n_warmup: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> np.ndarray:
    r"""Draws of the product of semiparametric density estimates of the shards.

    The Gaussian approximation of each shard is corrected by a kernel estimate of the remaining
    factor. The result is near `gaussian_product` if the bandwidth is large, and tends to the
    product of the shards as that of `kernel_product` does. A draw in the tail of its shard has a
    large weight in that estimate, so that with more than some three parameters few draws have most
    of the weight, even if the shards are Gaussian: then `weierstrass_product` is more accurate.

    Parameters
    ----------
    draws : sequence of arrays of shape (n_draws, n_parameters)
        Draws of each shard, more than there are parameters; in unconstrained coordinates.
    n_draws : int, optional
        Draws to make; as many as the first shard has if None.
    bandwidth : "anneal" or float, default="anneal"
        As for `kernel_product`.
    n_sweeps : int, default=50
        Sweeps from one draw to the next; algorithm 1 has 1.
    n_warmup : int, optional
        Draws that are discarded while the bandwidth shrinks; as many as are kept if None.
    random_state : int, RandomState, Generator or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_draws, n_parameters)
        Successive draws are dependent.

    Raises
    ------
    InvalidParameterError
        For a `bandwidth`, `n_sweeps` or `n_warmup` that is not accepted.
    ValueError
        For draws that are not finite or of different shapes, for an `n_draws` that is not a
        positive int, and for shards without an inverse covariance.

    Warns
    -----
    SubposteriorWarning
        The product rests on an effective number of fewer than 60 draws of a shard, because the
        shards hardly overlap or are too many for their draws
        (``tests/combine/test_combine.py::test_products_that_rest_on_few_draws_come_with_a_warning``).

    References
    ----------
    W. Neiswanger, C. Wang and E. P. Xing (2014). Asymptotically exact, embarrassingly parallel
    MCMC. UAI. Section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.combine import semiparametric_product
    >>> rng = np.random.default_rng(0)
    >>> draws = [rng.normal(1.0, 1, (4000, 1)), rng.normal(3.5, 2, (4000, 1))]
    >>> combined = semiparametric_product(draws, 20_000, random_state=0)
    >>> print(abs(combined.mean() - 1.5) < 0.2, abs(combined.var() - 0.8) < 0.2)
    True True
    """
    return _product(draws, n_draws, bandwidth, n_sweeps, n_warmup, random_state, True)


class Nonparametric(Combiner):
    """The product of kernel density estimates of the shards: one run for each chain.

    See `kernel_product`.

    Parameters
    ----------
    bandwidth : "anneal" or float, default="anneal"
        Standard deviation of the kernels, in units of those of the shards.
    n_sweeps : int, default=50
        Sweeps from one draw to the next.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a `bandwidth` or `n_sweeps` that is not accepted.

    Examples
    --------
    >>> from skbayes_sg.combine import Nonparametric
    >>> Nonparametric(bandwidth=0.2)
    Nonparametric(bandwidth=0.2)
    """

    _semiparametric = False

    def __init__(self, bandwidth: float | str = "anneal", n_sweeps: int = 50) -> None:
        self.bandwidth = bandwidth
        self.n_sweeps = n_sweeps

    def _check_parameters(self):
        check_options(self.bandwidth, self.n_sweeps)

    def _combine(self, shards, rng):
        n_chains, n_draws, d = shards.shape[1:]
        coordinates, mixture = build(in_order(pooled(shards)), self._semiparametric)
        runs = [
            _chain(stream, coordinates, mixture, n_draws, self.bandwidth, self.n_sweeps)
            for stream in [streams.child(rng) for _ in range(n_chains)]
        ]
        widths = annealed(self.bandwidth, 2 * n_draws, d)[n_draws:]
        squared = float((widths**2).mean())
        found = {"bandwidth": squared**0.5, "widening": squared * (not self._semiparametric)}
        found["acceptance"] = float(np.mean([rate for _, rate, _ in runs]))
        visits = np.sum([visits for _, _, visits in runs], axis=0)
        found["effective_draws"] = float(effective_draws(visits, mixture.starts).min())
        return np.stack([draws for draws, _, _ in runs]), found


class Semiparametric(Nonparametric):
    """The product of semiparametric density estimates of the shards: one run for each chain.

    See `semiparametric_product`.

    Parameters
    ----------
    bandwidth : "anneal" or float, default="anneal"
        Standard deviation of the kernels, in units of those of the shards.
    n_sweeps : int, default=50
        Sweeps from one draw to the next.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a `bandwidth` or `n_sweeps` that is not accepted.

    Examples
    --------
    >>> from skbayes_sg.combine import Semiparametric
    >>> Semiparametric()
    Semiparametric()
    """

    _semiparametric = True
