"""Linear regression: y_i ~ N(η_i, σ²), with σ known or with s = log σ a parameter.

Unknown σ, predictors (η, s):  ℓ_i = s + r²e^{-2s}/2,  r = y_i - η.

    ∂ℓ/∂(η, s)  = (-r e^{-2s}, 1 - r² e^{-2s})
    ∂²ℓ/∂(η, s)² = e^{-2s} [[1, 2r], [2r, 2r²]]

Known σ:  ℓ_i = (η - y_i)²/2 with the weights of the rows divided by σ².
"""

import math

import numpy as np
from scipy.special import ndtr

from .._base.jit import jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ._base import Model

__all__ = ["Linear", "LinearKnownNoise"]

LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


@jit
def _loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(start, stop):
        s = eta[k - start, 1]
        z = (facts[rows[k], FACT_Y] - eta[k - start, 0]) * math.exp(-s)
        total += facts[rows[k], FACT_WEIGHT] * (s + 0.5 * z * z)
    return total


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    for k in range(start, stop):
        scale = math.exp(-eta[k - start, 1])
        z = (facts[rows[k], FACT_Y] - eta[k - start, 0]) * scale
        terms_out[k - start, 0] = -z * scale
        terms_out[k - start, 1] = 1.0 - z * z


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    for k in range(start, stop):
        scale = math.exp(-eta[k - start, 1])
        z = (facts[rows[k], FACT_Y] - eta[k - start, 0]) * scale
        u, v = scale * u_out[k - start, 0], u_out[k - start, 1]
        u_out[k - start, 0] = scale * (u + 2.0 * z * v)
        u_out[k - start, 1] = 2.0 * z * (u + z * v)


@jit
def _known_loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(start, stop):
        r = eta[k - start, 0] - facts[rows[k], FACT_Y]
        total += facts[rows[k], FACT_WEIGHT] * (0.5 * r * r)
    return total


@jit
def _known_derivative(facts, rows, start, stop, eta, terms_out):
    for k in range(start, stop):
        terms_out[k - start, 0] = eta[k - start, 0] - facts[rows[k], FACT_Y]


@jit
def _known_curvature(facts, rows, start, stop, eta, u_out):
    """Leave u as it is, since ∂²ℓ/∂η² = 1."""


class NormalPredictive:
    """The predictive distribution N(η, σ²) of y."""

    @staticmethod
    def mean(eta, sigma):
        """E(y | η, σ) = η."""
        return eta

    @staticmethod
    def variance(eta, sigma):
        """Var(y | η, σ) = σ²."""
        return np.square(sigma)

    @staticmethod
    def cdf(y, eta, sigma):
        """P(Y <= y | η, σ)."""
        return ndtr((y - eta) / sigma)

    @staticmethod
    def log_density(y, eta, sigma):
        """log p(y | η, σ)."""
        return -0.5 * np.square((y - eta) / sigma) - np.log(sigma) - LOG_ROOT_2PI

    @staticmethod
    def draw(rng, eta, sigma):
        """Draw y ~ N(η, σ²)."""
        return eta + sigma * rng.standard_normal(eta.shape)


class Linear(NormalPredictive, Model):
    """Linear regression with unknown noise: y_i ~ N(η_i, σ²), and s = log σ the last parameter.

    ℓ_i(η, s) = s + (y_i - η)² e^(-2s) / 2. It is convex in η for every σ, but not jointly convex;
    the sum over rows is convex near its minimum.

    Examples
    --------
    >>> from skbayes_sg.models import Linear
    >>> Linear().n_predictors
    2
    """

    n_extra = 1
    separable = False
    normal = True
    location_scale = True
    loss = staticmethod(_loss)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)


class LinearKnownNoise(NormalPredictive, Model):
    """Linear regression with known noise: ℓ_i(η) = (η - y_i)² / 2, for weights divided by σ².

    Examples
    --------
    >>> from skbayes_sg.models import LinearKnownNoise
    >>> LinearKnownNoise().n_predictors
    1
    """

    separable = False
    normal = True
    convex = True
    convex_in_first = True
    loss = staticmethod(_known_loss)
    derivative = staticmethod(_known_derivative)
    curvature = staticmethod(_known_curvature)
