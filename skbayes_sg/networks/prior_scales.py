"""The scales of the prior: w ~ N(0, λ_j² τ_g²/fan_in) for weights of group g from column j.

A group consists of the weights of a layer, with τ_g² ~ InvGamma(2, 2); if the outputs are a mean
and a logarithm of a standard deviation, the last layer has a group for each. In the first layer λ_j
is half-Cauchy, the root of InvGamma(1/2, 1/ν_j) with ν_j ~ InvGamma(1/2, 1), so that columns that
tell nothing are left out (automatic relevance determination; Neal 1996, sec. 4.3); elsewhere λ = 1.
Given the n weights of a group, and the n weights of a column,

    τ² = (2 + fan_in Σ (w/λ)²/2) / G,         G ~ Gamma(2 + n/2, 1),
    ν = (1 + 1/λ²) / E,                       E ~ Gamma(1, 1),
    λ² = (1/ν + fan_in Σ w²/(2 τ²)) / G,      G ~ Gamma((1 + n)/2, 1),

with τ and λ truncated to at most 10. The truncation is part of the prior: on separable classes the
likelihood grows with the weights, and scales would grow without bound. Biases are N(0, 1), and an
extra is N(-1, 1.5²).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc, gammainccinv

from .architecture import MEAN_LOG_SD, SD_LOG_SD, blocks_of, n_weights

__all__ = [
    "ScaleGroups", "draw_scales", "factors_of_weights", "log_prior_of_logs", "make_groups",
    "prior_of",
]  # fmt: skip

SHAPE, RATE = 2.0, 2.0  # parameters of the inverse gamma prior of τ²
LARGEST = 10.0  # upper bound of τ and λ, where their priors are truncated
# Units of the first hidden layer with which columns have a λ. A column with fewer weights tells
# little about its λ, which then mixes badly.
LEAST_UNITS = 8


class ScaleGroups(NamedTuple):
    """The scales of each weight. Scales are kept in one array: τ of all groups, and then λ."""

    of_weight: np.ndarray  # (n_weights,) int64: index of the group; n_groups for biases and extras
    column: np.ndarray  # (n_weights,) int64: index of the column whose λ it has; n_columns if none
    fan_in: np.ndarray  # (n_groups,): inputs of a unit
    sizes: np.ndarray  # (n_groups,): number of weights
    n_columns: int  # number of columns with a λ: all, or zero

    def split(self, scales):
        """Return τ (..., n_groups) and λ (..., n_columns) from an array of all scales."""
        n_groups = len(self.fan_in)
        return scales[..., :n_groups], scales[..., n_groups:]


def make_groups(network, columns=True):
    """Return the `ScaleGroups` of a network; `columns` is whether columns may have a scale λ."""
    weights = [block for block in blocks_of(network) if len(block.shape) == 2]
    first, last = weights[0], weights[-1]
    heads = last.shape[1] if network.log_sd >= 0 and not network.n_extra else 1
    n_groups = len(weights) - 1 + heads
    of_weight = np.full(n_weights(network), n_groups)
    for block in weights:
        outputs = np.arange(block.shape[1]) if block is last and heads > 1 else 0
        of_weight[block.start : block.stop] = np.broadcast_to(
            block.layer + outputs, block.shape
        ).ravel()
    fan_in = np.array([w.shape[0] for w in weights[:-1]] + [last.shape[0]] * heads, float)
    sizes = np.bincount(of_weight, minlength=n_groups + 1)[:n_groups]
    n_in, n_out = first.shape
    n_columns = n_in if columns and first is not last and n_out >= LEAST_UNITS else 0
    column = np.full(len(of_weight), n_columns)
    if n_columns:
        column[first.start : first.stop] = np.repeat(np.arange(n_in), n_out)
    return ScaleGroups(of_weight, column, fan_in, sizes, n_columns)


def prior_of(network, groups, scales):
    """Return precisions and means of the normal prior of θ given its scales, (2, n_weights)."""
    tau, of_column = groups.split(scales)
    precision = np.append(groups.fan_in / np.square(tau), 1.0)[groups.of_weight]
    precision /= np.append(np.square(of_column), 1.0)[groups.column]
    prior = np.stack([precision, np.zeros(len(precision))])
    if network.n_extra:
        prior[:, -1] = 1.0 / SD_LOG_SD**2, MEAN_LOG_SD
    return prior


def log_prior_of_logs(groups, logs):
    """Return the log prior density of log τ and log λ, up to an additive constant."""
    if (logs > math.log(LARGEST)).any():
        return -np.inf
    tau, of_column = groups.split(logs)
    total = -(2.0 * SHAPE * tau + RATE * np.exp(-2.0 * tau)).sum()
    return total + (of_column - np.logaddexp(0.0, 2.0 * of_column)).sum()


def factors_of_weights(groups, logs):
    """Return the factors (n_weights,) of the weights when the scales are multiplied by e^logs."""
    of_groups, of_columns = groups.split(logs)
    found = np.append(of_groups, 0.0)[groups.of_weight]
    return np.exp(found + np.append(of_columns, 0.0)[groups.column])


def draw_scales(groups, theta, rng, scales):
    """Draw all τ given the weights and λ, then all λ given the weights and these τ; one array."""
    _, of_column = groups.split(scales)
    own = theta / np.append(of_column, 1.0)[groups.column]
    squares = np.bincount(groups.of_weight, own * own)[: len(groups.fan_in)]
    shape, rate = SHAPE + 0.5 * groups.sizes, RATE + 0.5 * groups.fan_in * squares
    tau = _truncated(shape, rate, rng)
    if groups.n_columns == 0:
        return tau
    return np.append(tau, _draw_of_columns(groups, theta, rng, tau[0], of_column))


def _draw_of_columns(groups, theta, rng, tau, of_column):
    n = groups.n_columns
    squares = np.bincount(groups.column, theta * theta)[:n]
    one_over_nu = -np.log1p(-rng.random(n)) / (1.0 + of_column**-2.0)
    shape = np.full(n, 0.5 + 0.5 * groups.sizes[0] / n)
    return _truncated(shape, one_over_nu + 0.5 * groups.fan_in[0] * squares / tau**2, rng)


def _truncated(shape, rate, rng):
    """Draw from InvGamma(shape, rate) truncated to `LARGEST`², and return the square roots."""
    least = rate / LARGEST**2
    above = rng.random(len(rate)) * gammaincc(shape, least)
    found = gammainccinv(shape, above)  # infinite where the mass below the bound underflows
    return np.sqrt(rate / np.where(found < np.inf, np.maximum(found, least), least))
