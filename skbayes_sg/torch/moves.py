"""The dynamics of `skbayes_sg.dynamics` that run on tensors: their updates and step limits."""

import numpy as np

from ..dynamics import BAOAB, SGHMC, SGLD, SGNHT
from . import baoab, sghmc, sgld, sgnht

__all__ = ["MOVES", "is_kinetic", "noise_left", "noise_limit", "step_limit", "velocity_variance"]
__all__ += ["waits"]

MOVES = {SGLD: sgld.update, SGHMC: sghmc.update, SGNHT: sgnht.update, BAOAB: baoab.update}
BIAS = 0.05  # relative bias of a variance by the step alone, where the curvature is largest
SHARE = 1.0 / 40.0  # the longest step as a share of the limit of stability


def is_kinetic(dynamics):
    """Whether the second row of the state is a velocity."""
    return dynamics.n_rows > 1


def waits(dynamics):
    """Whether a step reads a number from the device, as SGHMC does to refresh its momentum."""
    return isinstance(dynamics, SGHMC) and bool(dynamics.refresh)


def step_limit(dynamics):
    """Return the largest step size h if the largest curvature where a search has ended is 1.

    It is far below the limit of stability, because elsewhere the curvature of a network may be
    several times as large, and near the limit predictions become too wide.
    """
    share = SHARE * dynamics.largest_step(1.0)
    return share if dynamics.exact_on_gaussian else min(dynamics.step_for_bias(BIAS), share)


def noise_left(dynamics, noise, mean_noise):
    """Return the variance of noise that acts on predictions beyond what the dynamics absorbs.

    A thermostat absorbs the mean variance over all coordinates.
    """
    taken, back = dynamics.absorbed(np.array([mean_noise]), 0.0)
    return abs(noise - float(taken[0])) + float(back[0])


def noise_limit(dynamics, noise, inflation):
    """Return the largest h at which noise of this variance adds `inflation` to a variance."""
    return np.inf if noise <= 0.0 else dynamics.step_for_inflation(inflation / noise)


def velocity_variance(dynamics, h):
    """Return the mean square of a velocity after a step, without curvature or gradient noise."""
    if isinstance(dynamics, SGHMC):
        return 1.0 / (1.0 - 0.5 * np.sqrt(h) * dynamics.friction)
    return 1.0
