"""Averages of draws that do not count the same.

A function that is given no weights (None) is NumPy's, to the last bit. Weights belong to axes of
the draws and have the shape of these axes.
"""

import numpy as np
from scipy.special import logsumexp

__all__ = ["log_mean_exp", "mean", "normalised", "quantile", "representatives", "std"]


def normalised(weights, n_draws):
    """Weights with mean 1; None if they are all the same.

    Raises
    ------
    ValueError
        For anything but `n_draws` finite numbers, none negative and not all zero.
    """
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_draws,):
        raise ValueError(f"weights must have the shape ({n_draws},), got {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and (weights > 0.0).any()):
        raise ValueError("weights must be finite, none negative and not all zero.")
    # Equal ones are dropped, so that a varying step whose draws all saw the same value gives the
    # results of the constant step.
    return None if (weights == weights[0]).all() else weights / weights.mean()


def mean(x, weights, axis):
    """Σ w x / Σ w."""
    return x.mean(axis=axis) if weights is None else np.average(x, axis=axis, weights=weights)


def std(x, weights, axis):
    """Root of Σ w (x - mean)² / Σ w."""
    if weights is None:
        return x.std(axis=axis)
    centre = np.expand_dims(mean(x, weights, axis), axis)
    return np.sqrt(mean((x - centre) ** 2, weights, axis))


def quantile(x, q, weights, axis):
    """The smallest x below or at which at least the share q of the weight lies.

    Without weights it is interpolated between draws, which NumPy does for equal weights only.
    """
    if weights is None:
        return np.quantile(x, q, axis=axis)
    return np.quantile(x, q, axis=axis, weights=weights, method="inverted_cdf")


def log_mean_exp(x, weights, axis):
    """log(Σ w exp(x) / Σ w) along one axis, finite however large x is."""
    if weights is None:
        return logsumexp(x, axis=axis) - np.log(x.shape[axis])
    along = np.expand_dims(weights, [k for k in range(x.ndim) if k != axis])
    return logsumexp(x, axis=axis, b=along) - np.log(weights.sum())


def representatives(weights, n):
    """Numbers of n draws that count the same: each stands for 1/n of the weight.

    Systematic resampling without randomness: heavy draws may come several times, light ones not.
    """
    share = np.cumsum(weights) / np.sum(weights)
    return np.minimum(np.searchsorted(share, (np.arange(n) + 0.5) / n), len(weights) - 1)
