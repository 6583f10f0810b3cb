"""Poisson regression with logarithmic link: ℓ_i(η) = e^η - y_i η.

∂ℓ/∂η = e^η - y and ∂²ℓ/∂η² = e^η.
"""

import math

import numpy as np
from scipy.special import gammaincc, gammaln, xlogy

from .._base.jit import jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ._base import Model

__all__ = ["Poisson"]


@jit
def _loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(start, stop):
        i, e = rows[k], eta[k - start, 0]
        total += facts[i, FACT_WEIGHT] * (math.exp(e) - facts[i, FACT_Y] * e)
    return total


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    for k in range(start, stop):
        terms_out[k - start, 0] = math.exp(eta[k - start, 0]) - facts[rows[k], FACT_Y]


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    for k in range(stop - start):
        u_out[k, 0] *= math.exp(eta[k, 0])


class Poisson(Model):
    """Poisson regression: y_i ~ Poisson(e^η_i), ℓ_i(η) = e^η - y_i η.

    Examples
    --------
    >>> from skbayes_sg.models import Poisson
    >>> Poisson().n_predictors
    1
    """

    convex = True
    loss = staticmethod(_loss)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)
    discrete = True

    @staticmethod
    def mean(eta):
        """E(y | η) = e^η."""
        return np.exp(eta)

    variance = mean

    @staticmethod
    def cdf(y, eta):
        """P(Y <= y | η) at whole numbers y >= 0, interpolated by an increasing function."""
        return np.where(y < 0.0, 0.0, gammaincc(np.maximum(y, 0.0) + 1.0, np.exp(eta)))

    @staticmethod
    def log_density(y, eta):
        """log P(Y = y | η)."""
        return xlogy(y, np.exp(eta)) - np.exp(eta) - gammaln(y + 1.0)

    @staticmethod
    def draw(rng, eta):
        """y ~ Poisson(e^η)."""
        return rng.poisson(np.exp(eta)).astype(np.float64)
