r"""Weierstrass rejection sampling, over pairs of shards.

Smoothed by a Gaussian kernel (its *Weierstrass transform*), the product of two densities is the
margin of a law that can be sampled by rejection from draws :math:`t_1 \sim f_1`, :math:`t_2 \sim
f_2` alone:

.. math::

    (f_1 * N(0, H_1))(\theta)\; (f_2 * N(0, H_2))(\theta)
        = \int f_1(t_1) f_2(t_2)\; a(t_1, t_2)\; N(\theta;\, \bar t, H)\, dt_1\, dt_2,

.. math::

    a(t_1, t_2) \propto e^{-\frac12 (t_1 - t_2)^\top (H_1 + H_2)^{-1} (t_1 - t_2)}, \quad
    H = (H_1^{-1} + H_2^{-1})^{-1}, \quad \bar t = H (H_1^{-1} t_1 + H_2^{-1} t_2).

A pair is kept with probability a, and counts as a draw :math:`\bar t` (or, with `smooth`, as a draw
of :math:`N(\bar t, H)`). Shards are merged two by two, and the results again, until one is left.

The kernels are :math:`H_s = h^2 \Sigma_s` with the covariance of the shard. For Gaussian shards
:math:`\theta` then has precision :math:`\sum_s (\Sigma_s + H_s)^{-1}`, that is the covariance of
the product times :math:`1 + h^2`, and :math:`\bar t` has exactly that of the product, for every h.
For other shards the error vanishes with :math:`h^2`; for large h the method becomes consensus Monte
Carlo. The acceptance rate is :math:`(1 + h^{-2})^{-d/2}` for Gaussian shards of d parameters that
agree; h is chosen to reach a given rate, and grows slowly with d.

X. Wang and D. B. Dunson (2013). Parallelizing MCMC via Weierstrass sampler. arXiv:1312.4605.
This is their rejection sampler. Merging in pairs and averaging follow the authors' own programs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, optimize

from .._base import streams
from .._base.validation import is_real
from ..exceptions import InvalidParameterError
from ._base import Combiner, as_shards, in_order, inverses, moments, number_of_draws, pooled

__all__ = ["Weierstrass", "weierstrass_product"]

BATCH = 1 << 14  # number of pairs that are proposed at once
TRIALS = 1 << 12  # number of pairs from which h is determined
MOST_PAIRS = 1e4  # most pairs that are proposed for each one kept, before an error is raised


@dataclass(frozen=True)
class Pair:
    """Two shards to be merged: the weights of the average, and the metric of the distance."""

    weights: np.ndarray  # (2, d, d): A_1 and A_2 in t̄ = A_1 t_1 + A_2 t_2
    root: np.ndarray  # (d, d): Cholesky factor of Σ_1 + Σ_2
    covariance: np.ndarray  # (d, d): of the Gaussian product; H is h² times this matrix


def pair_of(covariances):
    """Return the `Pair` of two shards with these covariances."""
    precisions = inverses(covariances)
    covariance = inverses(precisions.sum(axis=0)[None])[0]
    return Pair(
        covariance @ precisions, linalg.cholesky(covariances.sum(axis=0), lower=True), covariance
    )


def distances(pair, t1, t2):
    """Return (t_1 - t_2)ᵀ (Σ_1 + Σ_2)⁻¹ (t_1 - t_2) for pairs of rows.

    A pair is accepted with probability a = exp(-½ distance / h²).
    """
    return (linalg.solve_triangular(pair.root, (t1 - t2).T, lower=True) ** 2).sum(axis=0)


def centres(pair, t1, t2):
    """Return t̄, the weighted average of both draws, for pairs of rows."""
    return t1 @ pair.weights[0].T + t2 @ pair.weights[1].T


def bandwidth_for(distance, acceptance):
    """Return the h at which the mean of exp(-½ distance / h²) is the acceptance rate."""

    def excess(log_h):
        return np.exp(-0.5 * distance * np.exp(-2.0 * log_h)).mean() - acceptance

    scale = 0.5 * np.log(np.maximum(distance, 1e-300))
    low, high = scale.min() - 5.0, scale.max() + 5.0
    return float(np.exp(optimize.brentq(excess, low, high))) if excess(low) < 0.0 else np.exp(low)


def _pairs(rng, x1, x2, n):
    return x1[(rng.random(n) * len(x1)).astype(int)], x2[(rng.random(n) * len(x2)).astype(int)]


def merge(rng, x1, x2, n_draws, *, bandwidth=None, acceptance=0.1, smooth=False):
    """Return (draws of the product of two shards, h, acceptance rate of the pairs).

    Without a `bandwidth`, h is chosen for the given rate.
    """
    pair = pair_of(moments([x1, x2])[1])
    h = bandwidth or bandwidth_for(distances(pair, *_pairs(rng, x1, x2, TRIALS)), acceptance)
    kept, found, tried = [], 0, 0
    while found < n_draws:
        t1, t2 = _pairs(rng, x1, x2, BATCH)
        accepted = rng.random(BATCH) < np.exp(-0.5 * distances(pair, t1, t2) / h**2)
        kept.append(centres(pair, t1[accepted], t2[accepted]))
        found, tried = found + len(kept[-1]), tried + BATCH
        if tried > MOST_PAIRS * (found + 10):
            raise ValueError(
                f"Weierstrass sampling with bandwidth={h:.3g} accepts {found} of {tried} pairs of "
                "draws: the shards do not overlap. Use bandwidth=None with acceptance=0.1."
            )
    draws = np.concatenate(kept)[:n_draws]
    if smooth:
        noise = rng.standard_normal(draws.shape)
        draws += h * noise @ linalg.cholesky(pair.covariance, lower=True).T
    return draws, h, found / tried


def _shuffled(shards, rng):
    """Return the shards in a random order, which does not depend on the given order.

    If they were merged in sorted order, shards that are far apart would meet last, and few of their
    pairs are near each other.
    """
    shards = in_order(shards)
    return [shards[s] for s in rng.permutation(len(shards))]


def _merge_all(shards, n_draws, rng, **options):
    """Merge neighbours until one shard is left; return (its draws, largest h, lowest rate).

    The last merger makes `n_draws` draws, and others at least as many as each of their two shards
    has, so that covariances are known.
    """
    widest, lowest = 0.0, 1.0
    while len(shards) > 1:
        merged = []
        for x1, x2 in zip(shards[::2], shards[1::2], strict=False):
            n = n_draws if len(shards) == 2 else max(n_draws, len(x1), len(x2))
            x, h, rate = merge(rng, x1, x2, n, **options)
            widest, lowest = max(widest, h), min(lowest, rate)
            merged.append(x)
        shards = merged + shards[2 * len(merged) :]
    return shards[0], widest, lowest


def check_options(acceptance, bandwidth):
    """Raise `InvalidParameterError` for parameters that are not accepted."""
    if not (is_real(acceptance) and 0.0 < acceptance < 1.0):
        raise InvalidParameterError(
            f"acceptance must lie strictly between 0 and 1, got {acceptance!r}."
        )
    if not (bandwidth is None or (is_real(bandwidth) and 0.0 < bandwidth < np.inf)):
        raise InvalidParameterError(
            f"bandwidth must be None or a positive finite number, got {bandwidth!r}."
        )


def weierstrass_product(
    draws: Any,
    n_draws: int | None = None,
    *,
    acceptance: float = 0.1,
    bandwidth: float | None = None,
    smooth: bool = False,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> np.ndarray:
    r"""Draws of the product of the shards by Weierstrass rejection sampling over pairs.

    The result lies between `kernel_product` (small h) and `consensus_average` (large h). At a given
    acceptance rate, h grows with the number of parameters as :math:`(a^{-2/d} - 1)^{-1/2}`.

    Parameters
    ----------
    draws : sequence of arrays of shape (n_draws, n_parameters)
        Draws of each shard, more than there are parameters; in unconstrained coordinates.
    n_draws : int, optional
        Draws to make; as many as the first shard has if None.
    acceptance : float in (0, 1), default=0.1
        Share of the pairs that are kept, which determines h in every merger: a smaller share gives
        a result nearer to the product, and takes longer.
    bandwidth : float, optional
        The value of h for all mergers, in units of the standard deviations of the two shards.
    smooth : bool, default=False
        Whether to draw from the kernels, as the Weierstrass transform says, instead of taking their
        centres: variances are then larger by the factor :math:`1 + h^2`.
    random_state : int, RandomState, Generator or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_draws, n_parameters)
        For a single shard these are its draws: in a random order if `n_draws` is given, and some of
        them repeatedly if it is more than the shard has.

    Raises
    ------
    InvalidParameterError
        For an `acceptance` or a `bandwidth` outside of its range.
    ValueError
        For draws that are not finite or of different shapes, for an `n_draws` that is not a
        positive int, for shards without an inverse covariance, and for shards that do not overlap.

    References
    ----------
    X. Wang and D. B. Dunson (2013). Parallelizing MCMC via Weierstrass sampler. arXiv:1312.4605.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.combine import weierstrass_product
    >>> rng = np.random.default_rng(0)
    >>> draws = [rng.normal(1.0, 1, (4000, 1)), rng.normal(3.5, 2, (4000, 1))]
    >>> combined = weierstrass_product(draws, 10_000, random_state=0)
    >>> print(combined.mean().round(1), combined.var().round(1))
    1.5 0.8
    """
    shards = as_shards(draws)
    check_options(acceptance, bandwidth)
    if len(shards) == 1 and n_draws is None:
        return shards[0].copy()
    n_draws = number_of_draws(n_draws, shards)
    options = {"acceptance": acceptance, "bandwidth": bandwidth, "smooth": smooth}
    rng = streams.of_user(random_state)
    if len(shards) == 1:
        return _resampled(shards[0], n_draws, rng)
    return _merge_all(_shuffled(shards, rng), n_draws, rng, **options)[0]


def _resampled(x, n_draws, rng):
    """Return `n_draws` random draws of one shard, none of them twice if there are enough."""
    return x[rng.choice(len(x), n_draws, replace=n_draws > len(x))]


class Weierstrass(Combiner):
    """Weierstrass rejection sampling over pairs of shards.

    See `weierstrass_product`.

    Parameters
    ----------
    acceptance : float in (0, 1), default=0.1
        Share of the pairs of draws that are kept.
    bandwidth : float, optional
        Width of the kernels in units of the shards' standard deviations; if None, it follows from
        `acceptance`.
    smooth : bool, default=False
        Whether to draw from the kernels instead of taking their centres.

    Raises
    ------
    InvalidParameterError
        By `fit`, for an `acceptance` or a `bandwidth` outside of its range.
    ValueError
        By `fit`, for shards that do not overlap.

    Examples
    --------
    >>> from skbayes_sg.combine import Weierstrass
    >>> Weierstrass(acceptance=0.02)
    Weierstrass(acceptance=0.02)
    """

    def __init__(
        self, acceptance: float = 0.1, bandwidth: float | None = None, smooth: bool = False
    ) -> None:
        self.acceptance = acceptance
        self.bandwidth = bandwidth
        self.smooth = smooth

    def _check_parameters(self):
        check_options(self.acceptance, self.bandwidth)

    def _combine(self, shards, rng):
        n_chains, n_draws, d = shards.shape[1:]
        draws, h, rate = _merge_all(
            _shuffled(pooled(shards), rng),
            n_chains * n_draws,
            rng,
            **self.get_params(deep=False),
        )
        found = {"bandwidth": h, "acceptance": rate, "widening": h**2 * self.smooth}
        return draws.reshape(n_chains, n_draws, d), found
