"""R-hat, effective sample size and Monte Carlo errors of draws, computed by ArviZ.

This module orders the axes and splits single chains. Where only the worst parameter matters, it
searches for it among the few that mix slowest. The definitions are those of Vehtari, Gelman,
Simpson, Carpenter and Bürkner (2021). All functions take draws (n_chains, n_draws, ...) and return
an array of the remaining shape, which is NaN for fewer than four draws in a chain. A single chain
is split into two halves, which are compared.

For draws with weights w, the effective sample size is that of the unweighted draws times the factor
(Σw)² / (n Σw²) that holds for independent draws (Kish 1965), and Monte Carlo errors grow by the
root of its inverse. For positively correlated draws this is conservative: a draw with a large
weight represents larger steps, and so depends less on the previous draw, which the factor ignores.
R-hat uses no weights.
"""

import sys
import threading
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.fft import next_fast_len

from .._base.interrupts import without_interrupts

__all__ = [
    "ess_bulk",
    "ess_least",
    "ess_mean",
    "ess_tail",
    "mcse_mean",
    "mcse_sd",
    "pareto_smoothed",
]
__all__ += ["rhat", "tail_shape", "weight_efficiency", "worst", "worst_of_chains"]

CANDIDATES = 8  # number of parameters, those that mix slowest, among which the worst is sought
# Up to this many parameters all have their effective sample size computed; of more, those that mix
# slowest by their values, and as many by their squares.
MOST_LOOKED_AT = 100
# Shape k of a tail above which the fourth moment does not exist, so that an estimated standard
# deviation has no finite Monte Carlo error.
FOURTH_MOMENT = 0.25
# Kurtosis of Laplace's law: the tails of draws with at most this kurtosis count as light, without
# a fit.
PEAKED = 6.0
IN_DOUBT = 0.75  # number of standard errors that are subtracted from an estimated tail shape
# The kinds of effective sample sizes, by what they are for, with the options of ArviZ's `ess`.
KINDS: dict[str, Any] = {
    "bulk": {"method": "bulk"},
    "tail": {"method": "tail", "prob": (0.05, 0.95)},
    "mean": {"method": "mean"},
    "square": {"method": "sd"},
}

BLOCK_NUMBERS = 1 << 22  # number of draws, of all parameters, that a statistic takes at once


@cache
def _stats():
    """The statistics of ArviZ on arrays, imported when they are first needed."""
    with without_interrupts():
        from arviz_stats.base import array_stats, stats_utils  # this import takes 0.3 s

    if sys.flags.optimize > 1:  # ArviZ extends docstrings, which ``python -OO`` has removed
        stats_utils.update_docstring = lambda *_: None

    class Statistics(type(array_stats)):
        """ArviZ's, without its changes of the warning filters, which belong to all threads."""

        def autocov(self, ary, axis=-1):
            n = ary.shape[axis]
            m = next_fast_len(2 * n, real=True)
            of_frequencies = self.rfft(ary - ary.mean(axis, keepdims=True), n=m, axis=axis)
            of_frequencies *= np.conjugate(of_frequencies)
            return self.irfft(of_frequencies, n=m, axis=axis).take(range(n), axis) / n

    return Statistics()


def prepare():
    """Import ArviZ in a thread, while kernels that have released the interpreter lock run."""
    if "arviz_stats.base" not in sys.modules:
        threading.Thread(target=_stats).start()


def _apply(name, draws, scale=1.0, **options):
    """`scale` times the ArviZ statistic `name` of each parameter; NaN for fewer than four draws."""
    draws = np.asarray(draws, dtype=np.float64)
    if len(draws) == 1:  # the two halves of a single chain are compared with each other
        half = draws.shape[1] // 2
        draws = np.stack([draws[0, :half], draws[0, draws.shape[1] - half :]])
    if draws.shape[1] < 4:
        return np.full(draws.shape[2:], np.nan)
    unit = _far_from_one(draws)
    if np.any(unit != 1.0):
        draws, scale = draws / unit, scale * unit if name == "mcse" else scale
    with np.errstate(all="ignore"):
        statistic = partial(getattr(_stats(), name), chain_axis=0, draw_axis=1, **options)
        return np.asarray(scale * _in_blocks(statistic, draws))


def _in_blocks(statistic, draws):
    """A statistic of each parameter, of a few at a time where its copies would take much memory."""
    if draws.ndim != 3 or draws.size <= BLOCK_NUMBERS:
        return statistic(draws)
    blocks = np.array_split(draws, -(-draws.size // BLOCK_NUMBERS), axis=2)
    return np.concatenate([statistic(block) for block in blocks if block.shape[2]])


def _far_from_one(draws):
    """The unit of each parameter in which fourth powers of its draws neither overflow nor vanish.

    It is the largest absolute value where that is above 1e70 or below 1e-70, and 1 elsewhere.
    """
    size = np.maximum(draws.max(axis=(0, 1)), -draws.min(axis=(0, 1)))
    return np.where(np.isfinite(size) & ((size > 1e70) | (size < 1e-70)) & (size > 0.0), size, 1.0)


def pareto_smoothed(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return Pareto-smoothed log weights and the shape k of their tail.

    Parameters
    ----------
    log_weights : array of shape (n_draws,)
        Log weights up to a constant.

    Returns
    -------
    log_weights : array of shape (n_draws,)
        The largest weights are replaced by quantiles of a generalised Pareto law, and the weights
        add up to 1.
    k : float
        The shape of the tail. Averages converge if it is below 0.7, and have a finite variance if
        it is below 0.5. It is infinite where so few weights are positive that there is no tail to
        fit, and the weights are as they were.

    References
    ----------
    A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry (2024). Pareto smoothed importance
    sampling. Journal of Machine Learning Research 25(72), 1-58.
    """
    log_weights = np.asarray(log_weights, dtype=np.float64)
    with np.errstate(all="ignore"):
        try:
            smooth, k = _stats().psislw(-log_weights)  # it expects log p, of weights 1/p
        except ValueError:  # the largest weights are all the same: there is no tail
            smooth, k = log_weights - np.logaddexp.reduce(log_weights), -np.inf
        if np.isnan(smooth).any():
            smooth, k = log_weights - np.logaddexp.reduce(log_weights), np.inf
    return np.asarray(smooth), float(k)


def weight_efficiency(weights: np.ndarray | None) -> float:
    """Factor by which weights reduce an effective sample size: (Σw)² / (n Σw²).

    Parameters
    ----------
    weights : array of shape (n_draws,) or None

    Returns
    -------
    float
        1 if all weights are equal, and for None.

    References
    ----------
    L. Kish (1965). Survey Sampling. Wiley.

    Examples
    --------
    >>> from skbayes_sg.diagnostics.convergence import weight_efficiency
    >>> weight_efficiency([1.0, 1.0, 2.0, 0.0])
    0.666...
    """
    if weights is None:
        return 1.0
    weights = np.asarray(weights, dtype=np.float64)
    return float(weights.mean() ** 2 / (weights**2).mean())


def rhat(draws: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat: 1 when the chains agree.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics.convergence import rhat
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> print(rhat(draws).round(1), rhat(draws + np.arange(4)[:, None]) > 1.3)
    1.0 True
    """
    return _apply("rhat", draws)


def split_rhat(draws):
    """Split R-hat without ranks, √((W + B)/W) of half-chains: quicker than `rhat`, blind to tails.

    W is the variance within the halves and B that between them.
    """
    return _apply("rhat", draws, method="split")


def ess_bulk(draws: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Effective sample size for the centre of the distribution.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.

    Returns
    -------
    array
    """
    return _apply("ess", draws, weight_efficiency(weights), **KINDS["bulk"])


def ess_tail(draws: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Effective sample size in the tails: the smaller of those of the 5 % and 95 % quantiles.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.

    Returns
    -------
    array
    """
    return _apply("ess", draws, weight_efficiency(weights), **KINDS["tail"])


def ess_mean(draws: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Effective sample size for the mean.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.

    Returns
    -------
    array
    """
    return _apply("ess", draws, weight_efficiency(weights), **KINDS["mean"])


def ess_least(draws: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Smallest of four effective sample sizes: those for bulk, tails, mean and standard deviation.

    The bulk size uses ranks, which hide rare and long excursions of a chain: it may be large where
    means and variances are still inaccurate.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.

    Returns
    -------
    array
    """
    sizes = [_apply("ess", draws, **options) for options in KINDS.values()]
    return weight_efficiency(weights) * np.fmin.reduce(sizes)


def mcse_mean(draws: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Monte Carlo standard error of the mean.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.

    Returns
    -------
    array
    """
    return _apply("mcse", draws, weight_efficiency(weights) ** -0.5, method="mean")


def mcse_sd(
    draws: np.ndarray, weights: np.ndarray | None = None, share: float | np.ndarray = 1.0
) -> np.ndarray:
    """Monte Carlo standard error of the standard deviation.

    It is NaN where `tail_shape` exceeds 1/4, so that no finite error exists: standard deviations of
    such draws depend on the few largest, and an error estimated from the draws would be too small.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.
    share : float or array, default=1.0
        Factor on effective sample sizes, below 1 if some of the draws are repeated.

    Returns
    -------
    array
    """
    found = _apply("mcse", draws, (share * weight_efficiency(weights)) ** -0.5, method="sd")
    return np.where(tail_shape(draws, weights, share) > FOURTH_MOMENT, np.nan, found)


def tail_shape(
    draws: np.ndarray, weights: np.ndarray | None = None, share: float | np.ndarray = 1.0
) -> np.ndarray:
    """Lower bound of the shape k of the heavier tail of each parameter; 0 where tails are light.

    A generalised Pareto law is fitted to the largest distances from the median, as it is to
    importance weights (`pareto_smoothed`). A tail of shape k has moments of orders below 1/k: above
    1/4 a standard deviation has no finite Monte Carlo error, above 1/2 it does not exist. Three
    quarters of its standard error are subtracted from the estimate, where dependent draws count as
    the effective sample size of their squares, so that ordinary draws are below 1/4
    (``tests/diagnostics/test_tails.py``).

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, ...)
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.
    share : float or array, default=1.0
        Factor on effective sample sizes, below 1 if some of the draws are repeated.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics.convergence import tail_shape
    >>> draws = np.random.default_rng(0).standard_t([2.0, 50.0], size=(4, 1000, 2))
    >>> print(tail_shape(draws) > 0.25)
    [ True False]
    """
    draws = np.asarray(draws, dtype=np.float64)
    flat = draws.reshape(*draws.shape[:2], -1)
    found = np.zeros(flat.shape[2])
    efficiency = np.broadcast_to(share * weight_efficiency(weights), found.shape)
    for j in np.flatnonzero(_kurtosis(flat) > PEAKED):
        found[j] = _shape_at_least(flat[..., j], efficiency[j])
    return found.reshape(draws.shape[2:])


def _kurtosis(flat):
    """Kurtosis of each parameter over chains and draws: 3 for a normal law."""
    with np.errstate(all="ignore"):
        x = flat - flat.mean(axis=(0, 1))
        x /= np.abs(x).max(axis=(0, 1))
        second = np.square(x, out=x).mean(axis=(0, 1))
        return np.square(x, out=x).mean(axis=(0, 1)) / np.square(second)


def _shape_at_least(x, efficiency):
    """Tail shape k of draws (n_chains, n_draws), less `IN_DOUBT` standard errors; at least 0.

    `efficiency` is the factor by which weights and repetitions reduce effective sample sizes.
    """
    distance = np.abs(x - np.median(x)).ravel()
    _, k = pareto_smoothed(np.log(np.maximum(distance, np.finfo(float).tiny)))
    n_effective = efficiency * min(float(_apply("ess", x, **KINDS["square"])), x.size)
    in_tail = min(0.2, 3.0 * x.size**-0.5) * n_effective  # the share that `pareto_smoothed` fits
    if not (np.isfinite(k) and in_tail > 0.0):
        return 0.0
    return max(k - IN_DOUBT * (1.0 + k) * in_tail**-0.5, 0.0)


def slowest(draws, count=CANDIDATES):
    """Indices of the `count` parameters of largest lag-one autocorrelation, the largest first."""
    x = draws.reshape(draws.shape[0], draws.shape[1], -1)
    centred = x - x.mean(axis=(0, 1))
    variance = np.maximum((centred**2).mean(axis=(0, 1)), np.finfo(float).tiny)
    # The autocorrelation up to a factor that all parameters share.
    lag_one = (centred[:, 1:] * centred[:, :-1]).sum(axis=(0, 1)) / variance
    return np.argsort(-lag_one, kind="stable")[:count]


def slowest_of_two_moments(draws, count=CANDIDATES):
    """Indices of the `count` parameters whose values mix slowest, and of those whose squares do."""
    if draws.shape[2] <= count:
        return np.arange(draws.shape[2])
    squares = np.square(draws - draws.mean(axis=(0, 1)))
    return np.unique(np.concatenate([slowest(x, count) for x in (draws, squares)]))


def least_of_slowest(draws):
    """The smallest `ess_least` among the parameters that mix slowest; infinite if none is known.

    The effective sample sizes of all parameters would take too long.
    """
    sizes = ess_least(draws[..., slowest_of_two_moments(draws)])
    return float(np.nanmin(sizes, initial=np.inf))


def worst(draws: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Smallest bulk ESS and largest R-hat among the parameters that mix slowest.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, n_parameters)

    Returns
    -------
    ess, slowest, ratio, apart : float, int, float, int
        The smallest ESS and the index of its parameter, the largest R-hat and the index of its
        parameter.
    """
    candidates = slowest(draws)
    sizes = ess_bulk(draws[..., candidates])
    if not np.isfinite(sizes).any():
        return np.nan, 0, np.nan, 0
    i = np.nanargmin(sizes)
    return float(sizes[i]), int(candidates[i]), *worst_rhat(draws)


def worst_rhat(draws):
    """Largest R-hat among the parameters that mix slowest, and the index of its parameter."""
    candidates = slowest(draws)
    ratios = rhat(draws[..., candidates])
    j = int(np.argmax(np.where(np.isfinite(ratios), ratios, -np.inf)))
    return float(ratios[j]), int(candidates[j])


def worst_of_chains(draws: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Smallest `ess_least` and largest R-hat of the parameters, with their indices.

    The effective sample size is the smallest over all parameters if there are at most 100. Of more
    parameters, it is that over the 100 with the highest lag-one autocorrelation of their values,
    and the 100 with the highest of their squares.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, n_parameters)

    Returns
    -------
    ess, slowest, ratio, apart : float, int, float, int
        The smallest effective sample size and the index of its parameter, the largest R-hat and the
        index of its parameter.
    """
    ratio, apart = worst_rhat(draws)
    chosen = slowest_of_two_moments(draws, MOST_LOOKED_AT)
    sizes = ess_least(draws[..., chosen])
    if not np.isfinite(sizes).any():
        return np.nan, 0, ratio, apart
    i = int(np.nanargmin(sizes))
    return float(sizes[i]), int(chosen[i]), ratio, apart
