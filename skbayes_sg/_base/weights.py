"""Averages of weighted draws.

Without weights (None) all results are NumPy's, to the last bit. Weights belong to axes of the draws
and have the shape of these axes.
"""

import numpy as np
from scipy.special import logsumexp

__all__ = ["chosen_draws", "drawn_at_random", "log_mean_exp", "mean", "normalised", "quantile"]
__all__ += ["representatives", "std"]


def normalised(weights, n_draws):
    """Return the weights divided by their mean; None if they are all the same.

    Raises
    ------
    ValueError
        Unless there are `n_draws` finite nonnegative numbers, not all zero.
    """
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_draws,):
        raise ValueError(f"weights must have the shape ({n_draws},), got {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and (weights > 0.0).any()):
        raise ValueError(
            "weights must be finite and nonnegative, and not all zero; got values from "
            f"{weights.min():g} to {weights.max():g}."
        )
    # Equal weights are dropped: a schedule that gives all draws one step size has the results of a
    # constant step size.
    return None if (weights == weights[0]).all() else weights / weights.mean()


def mean(x, weights, axis):
    """Return the weighted mean Σ w x / Σ w."""
    return x.mean(axis=axis) if weights is None else np.average(x, axis=axis, weights=weights)


def std(x, weights, axis):
    """Return the weighted standard deviation √(Σ w (x - mean)² / Σ w)."""
    if weights is None:
        return x.std(axis=axis)
    centre = np.expand_dims(mean(x, weights, axis), axis)
    return np.sqrt(mean((x - centre) ** 2, weights, axis))


def quantile(x, q, weights, axis, of=np.asarray):
    """Return quantiles: the smallest x with at least the share q of the weight at or below it.

    Without weights quantiles are interpolated between draws; NumPy, too, interpolates only if
    weights are equal. For the values of a monotone function at the quantiles, pass it as `of`: it
    is then evaluated at the few draws next to them.
    """
    if isinstance(axis, tuple):  # the axes are the first ones of x
        x, axis = x.reshape(-1, *x.shape[len(axis) :]), 0
    x, q = np.moveaxis(x, axis, -1), np.asarray(q)
    find = _interpolated if weights is None else _at_share
    found = find(x, q.ravel(), weights, of)
    return found.reshape(q.shape + found.shape[1:])


def _interpolated(x, q, weights, of):
    """Return the results of `numpy.quantile`, by sorting, in a third to a seventh of its time."""
    del weights
    x = np.sort(x, axis=-1)
    place = q * (x.shape[-1] - 1)
    below = np.minimum(place.astype(int), max(x.shape[-1] - 2, 0))
    above = np.minimum(below + 1, x.shape[-1] - 1)
    last = x[..., -1]  # NaN if any value is, since NaN are sorted last
    first, second = (
        of(np.where(np.isnan(last), np.nan, np.moveaxis(x[..., k], -1, 0))) for k in (below, above)
    )
    share = (place - below).reshape(-1, *[1] * (first.ndim - 1))
    with np.errstate(invalid="ignore"):  # differences of infinite numbers are NaN
        step = second - first
        return np.where(share >= 0.5, second - step * (1.0 - share), first + step * share)


def _at_share(x, q, weights, of):
    weights = weights.ravel()
    kept = np.flatnonzero(weights)
    x, weights = x[..., kept], weights[kept]
    order = np.argsort(x, axis=-1)  # NumPy's quantiles with weights take ten times as long
    share = np.cumsum(weights[order], axis=-1)
    share /= share[..., -1:]
    places = np.array([(share < level).sum(axis=-1) for level in q])
    places = np.minimum(places, len(weights) - 1)
    found = np.take_along_axis(x, np.take_along_axis(order, np.moveaxis(places, 0, -1), -1), -1)
    return of(np.moveaxis(found, -1, 0))


def log_mean_exp(x, weights, axis):
    """Return log(Σ w exp(x) / Σ w) along one axis, finite however large x is."""
    if weights is None:
        return logsumexp(x, axis=axis) - np.log(x.shape[axis])
    along = np.expand_dims(weights, [k for k in range(x.ndim) if k != axis])
    return logsumexp(x, axis=axis, b=along) - np.log(weights.sum())


def chosen_draws(weights, n, total):
    """Return the indices of n of `total` draws, each of which stands for 1/n of the weight.

    They are evenly spaced if there are no weights, and otherwise those of `representatives`.
    """
    if weights is None:
        return np.linspace(0, total - 1, n).astype(int)
    return representatives(weights, n)


def drawn_at_random(rng, weights, n, total):
    """Return the indices of n of `total` draws, chosen at random in proportion to their weights.

    Without weights no draw is chosen twice, unless n is larger than `total`.
    """
    if weights is None:
        return rng.choice(total, n, replace=n > total)
    return rng.choice(total, n, p=weights / np.sum(weights))


def representatives(weights, n):
    """Return the indices of n draws, each of which represents 1/n of the weight.

    This is systematic resampling without randomness: draws with large weights may occur several
    times, draws with small weights may not occur.
    """
    share = np.cumsum(weights) / np.sum(weights)
    return np.minimum(np.searchsorted(share, (np.arange(n) + 0.5) / n), len(weights) - 1)
