"""The scales of the prior: w ~ N(0, τ_g²/fan_in) for the weights of group g, τ_g² ~ InvGamma(2, 2).

A group is the weights of a layer; if the outputs are a mean and a logarithm of a standard
deviation, the last layer has a group for each. Given its n weights,

    τ² = (2 + fan_in Σ w²/2) / G,  G ~ Gamma(2 + n/2, 1),  truncated to τ <= 10.

The truncation is part of the prior: on separable classes the likelihood grows with the weights, and
τ would run away. Biases are N(0, 1), and an extra is N(-1, 1.5²).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc, gammainccinv

from .architecture import MEAN_LOG_SD, SD_LOG_SD, blocks_of, n_weights

__all__ = ["ScaleGroups", "draw_scales", "make_groups", "prior_of"]

SHAPE, RATE = 2.0, 2.0
LARGEST = 10.0


class ScaleGroups(NamedTuple):
    """Which weights have which scale."""

    of_weight: np.ndarray  # (n_weights,) int64: the group, or n_groups for biases and extras
    fan_in: np.ndarray  # (n_groups,)
    sizes: np.ndarray  # (n_groups,)


def make_groups(network):
    """The `ScaleGroups` of a network."""
    weights = [block for block in blocks_of(network) if len(block.shape) == 2]
    heads = weights[-1].shape[1] if network.log_sd >= 0 and not network.n_extra else 1
    n_groups = len(weights) - 1 + heads
    of_weight = np.full(n_weights(network), n_groups)
    for block in weights:
        columns = np.arange(block.shape[1]) if block is weights[-1] and heads > 1 else 0
        of_weight[block.start : block.stop] = np.broadcast_to(
            block.layer + columns, block.shape
        ).ravel()
    fan_in = np.array([w.shape[0] for w in weights[:-1]] + [weights[-1].shape[0]] * heads, float)
    return ScaleGroups(of_weight, fan_in, np.bincount(of_weight, minlength=n_groups + 1)[:n_groups])


def prior_of(network, groups, tau):
    """Precisions and means of the normal prior of θ, (2, n_weights)."""
    precision = np.append(groups.fan_in / np.square(tau), 1.0)[groups.of_weight]
    prior = np.stack([precision, np.zeros(len(precision))])
    if network.n_extra:
        prior[:, -1] = 1.0 / SD_LOG_SD**2, MEAN_LOG_SD
    return prior


def draw_scales(groups, theta, rng):
    """A draw of all τ given the weights, (n_groups,)."""
    squares = np.bincount(groups.of_weight, theta * theta)[: len(groups.fan_in)]
    shape, rate = SHAPE + 0.5 * groups.sizes, RATE + 0.5 * groups.fan_in * squares
    least = rate / LARGEST**2
    above = rng.random(len(rate)) * gammaincc(shape, least)
    found = gammainccinv(shape, above)  # infinite where the chance of any τ <= 10 underflows
    return np.sqrt(rate / np.where(found < np.inf, np.maximum(found, least), least))
