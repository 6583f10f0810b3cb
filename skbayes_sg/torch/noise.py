"""The noise given all other parameters: exact draws of σ between steps of these.

Where a module may fit all rows, the posterior of (θ, log σ) has a neck at small σ. There the
curvature in θ grows like 1/σ², and steps that suit the rest of the posterior throw a chain out of
it, with any energy. Therefore log σ is held fixed while θ moves, and every `EVERY` steps s = log σ
is drawn from its law given θ, with n numbers and the sum S of their squared residuals, by weight,

    p(s | θ) ∝ exp(-(n s + S e^(-2s)/2)/T) p(σ = e^s)^(1/T) e^(s/T),

by inversion of its distribution function on a grid. While σ is fixed, steps may be as short as it
requires: h (σ/σ₀)² where h was found for σ₀, with the ratio (σ/σ₀)² rounded to a power of two.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from .likelihoods import LOG_2PI

__all__ = ["NoiseDraws", "draw_log_noise"]

EVERY = 10  # steps from one draw of log σ to the next
POINTS = 1000  # points of the grid
LEAST = 1e-20  # lower bound of the mean square of residuals: less than that is rounding
NATS = 40.0  # the grid ends where the log density is about this many nats below its maximum


def draw_log_noise(n, squares, prior_value, temperature, u):
    """Return the u-quantile of log σ given n numbers and the sum of their squared residuals.

    Parameters
    ----------
    n : float
    squares : float
        The sum S of squared residuals.
    prior_value : callable
        ``prior_value(s) -> -log(p(σ) σ)`` of a tensor.
    temperature : float
        T.
    u : float in [0, 1)
    """
    squares, T = max(squares, n * LEAST), temperature / n
    mode = 0.5 * math.log(squares / n)
    below = min(math.sqrt(NATS * T), 0.5 * math.log(2.0 + 4.0 * NATS * T))
    s = np.linspace(mode - below, mode + math.sqrt(1.5 * NATS * T) + 1.2 * NATS * T, POINTS)
    value = n * s + 0.5 * squares * np.exp(-2.0 * s)
    value += prior_value(torch.from_numpy(s)).numpy()
    p = np.exp((value.min() - value) / temperature)
    up_to = np.concatenate([[0.0], np.cumsum(p[1:] + p[:-1])])
    return float(np.interp(u * up_to[-1], up_to, s))


@dataclass
class NoiseDraws:
    """Draws of log σ for a chain whose gradients are those of all rows.

    Parameters
    ----------
    target : ModuleTarget
    n : float
        Count of the numbers in the responses, by weight.
    log_unit : float
        log σ₀, with the σ₀ to which step sizes refer.
    longest : float
        Step size beyond which steps do not grow with σ, since the prior has a curvature as well.
    """

    target: object
    n: float
    log_unit: float
    longest: float = 0.0

    @classmethod
    def of(cls, target):
        """Return the `NoiseDraws` of a target, with σ₀ the present σ."""
        index, n = np.arange(target.rows.n_rows), 0.0
        for part in np.array_split(index, -(-len(index) // target.block)):
            _, y, weight = target.rows.batch(part)
            each = y[0].numel()
            n += each * (len(y) if weight is None else float(weight.double().sum()))
        return cls(target, n, float(target.flat.theta[-1]))

    def drawn(self, value, u):
        """Return the u-quantile of log σ given the other parameters, where Σ w ℓ/T is `value`."""
        s, T = float(self.target.flat.theta[-1]), self.target.temperature
        rest = float(value) * T - self.n * (s + 0.5 * LOG_2PI)
        squares = 2.0 * math.exp(2.0 * s) * max(rest, 0.0)
        prior_value = self.target.likelihood.prior_values
        return draw_log_noise(self.n, squares, prior_value, T, u)

    def set_reference_noise(self, longest):
        """Let step sizes refer to the present σ from now on, with a new upper bound."""
        self.log_unit, self.longest = float(self.target.flat.theta[-1]), longest

    def step(self, h):
        """Return the step size for the present σ, given the h for σ₀."""
        away = 2.0 * (float(self.target.flat.theta[-1]) - self.log_unit) / math.log(2.0)
        return min(h * 2.0 ** round(away), max(h, self.longest))

    def friction(self, friction, h):
        """Return the friction γ for which a step of size h takes up as much as the longest one."""
        return friction * max(1.0, math.sqrt(self.longest / h))
