"""The samplers of `skbayes_sg.dynamics` that run on tensors, with the functions that move them."""

import numpy as np

from ..dynamics import BAOAB, SGHMC, SGLD, SGNHT
from . import baoab, sghmc, sgld, sgnht

__all__ = ["MOVES", "is_kinetic", "noise_left", "noise_limit", "step_limit", "velocity_variance"]
__all__ += ["waits"]

MOVES = {SGLD: sgld.update, SGHMC: sghmc.update, SGNHT: sgnht.update, BAOAB: baoab.update}
BIAS = 0.05  # of a variance by the step alone, in the direction of the largest curvature
SHARE = 1.0 / 40.0  # of the limit of stability


def is_kinetic(dynamics):
    """Whether the second row of the state is a velocity."""
    return dynamics.n_rows > 1


def waits(dynamics):
    """Whether a step decides by a number of the device, as when momenta are due to be refreshed."""
    return isinstance(dynamics, SGHMC) and bool(dynamics.refresh)


def step_limit(dynamics):
    """Largest step for a largest curvature of 1 where a search has ended.

    It is far below the limit of stability, because elsewhere the curvature of a network may be
    several times as large, and near the limit predictions become too wide.
    """
    share = SHARE * dynamics.largest_step(1.0)
    return share if dynamics.exact_on_gaussian else min(dynamics.step_for_bias(BIAS), share)


def noise_left(dynamics, noise, mean_noise):
    """The noise that acts on predictions: a thermostat absorbs its mean over all coordinates."""
    taken, back = dynamics.absorbed(np.array([mean_noise]), 0.0)
    return abs(noise - float(taken[0])) + float(back[0])


def noise_limit(dynamics, noise, inflation):
    """Largest step whose predicted inflation by gradient noise is at most `inflation`."""
    return np.inf if noise <= 0.0 else dynamics.step_for_inflation(inflation / noise)


def velocity_variance(dynamics, h):
    """Mean square of a velocity after a step, along a direction without curvature or noise."""
    if isinstance(dynamics, SGHMC):
        return 1.0 / (1.0 - 0.5 * np.sqrt(h) * dynamics.friction)
    return 1.0
