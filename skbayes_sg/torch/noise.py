"""The noise given all else: exact draws of σ between steps of the other parameters.

Where a module may fit all rows, the posterior of (θ, log σ) has a neck at small σ. There the
curvature in θ grows like 1/σ², and steps that suit the rest of the posterior throw a chain out of
it, with any energy. So log σ stands still while θ moves, and every `EVERY` steps it is drawn from
its law given θ, with n numbers and the sum S of their squared residuals, by weight,

    p(s | θ) ∝ exp(-(n s + S e^(-2s)/2)/T) p(σ = e^s)^(1/T) e^(s/T),

by its distribution function on a grid. While σ stands still, steps may be as short as it asks for:
h (σ/σ₀)² where h was found for σ₀, with the ratio rounded to a power of two.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from .likelihoods import LOG_2PI

__all__ = ["NoiseOfRows", "draw_log_noise"]

EVERY = 10  # steps
POINTS = 1000
LEAST = 1e-20  # mean square of residuals, below which they are rounding
NATS = 40.0  # of the density, that the grid leaves out


def draw_log_noise(n, squares, prior_value, temperature, u):
    """The u-quantile of log σ given n numbers with a sum of squared residuals.

    Parameters
    ----------
    n : float
    squares : float
        S.
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
class NoiseOfRows:
    """Draws of log σ for a chain whose gradients are those of all rows.

    Parameters
    ----------
    target : ModuleTarget
    n : float
        Numbers in the responses, by weight.
    log_unit : float
        log σ₀.
    longest : float
        Beyond which steps do not grow with σ, since the prior has a curvature as well.
    """

    target: object
    n: float
    log_unit: float
    longest: float = 0.0

    @classmethod
    def of(cls, target):
        """The one of a target where it stands."""
        index, n = np.arange(target.rows.n_rows), 0.0
        for part in np.array_split(index, -(-len(index) // target.block)):
            _, y, weight = target.rows.batch(part)
            each = y[0].numel()
            n += each * (len(y) if weight is None else float(weight.double().sum()))
        return cls(target, n, float(target.flat.theta[-1]))

    def drawn(self, value, u):
        """log σ given the θ at which the likelihood has the value Σ w ℓ/T."""
        s, T = float(self.target.flat.theta[-1]), self.target.temperature
        rest = float(value) * T - self.n * (s + 0.5 * LOG_2PI)
        squares = 2.0 * math.exp(2.0 * s) * max(rest, 0.0)
        prior_value = self.target.likelihood.prior_values
        return draw_log_noise(self.n, squares, prior_value, T, u)

    def refer(self, longest):
        """From now on steps are those for the present σ."""
        self.log_unit, self.longest = float(self.target.flat.theta[-1]), longest

    def step(self, h):
        """The step for the present σ."""
        away = 2.0 * (float(self.target.flat.theta[-1]) - self.log_unit) / math.log(2.0)
        return min(h * 2.0 ** round(away), max(h, self.longest))

    def friction(self, friction, h):
        """That which takes up as much in a step of any length as it does in the longest one."""
        return friction * max(1.0, math.sqrt(self.longest / h))
