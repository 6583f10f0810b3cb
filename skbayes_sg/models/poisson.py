"""Poisson regression with logarithmic link: ℓ_i(η) = t_i e^η - y_i η, for an exposure t_i.

∂ℓ/∂η = t e^η - y and ∂²ℓ/∂η² = t e^η. Predictions are for unit exposure: log t is part of their η.
"""

import math

import numpy as np
from scipy.special import gammaincc, gammaln

from .._base.jit import entry, inlined, inner, jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..kernels.sigmoid import HIGHEST, exp
from ._base import Model

__all__ = ["Poisson", "count_cdf", "poisson_counts"]

# Rate beyond which counts are drawn from the normal approximation: a float hardly tells a count
# from the next there, and NumPy refuses rates that are larger still.
LARGEST_RATE = 1e15


@jit
def _loss(facts, rows, start, stop, eta):
    total, exposure = 0.0, facts.shape[1] - 1
    for k in range(stop - start):
        i, e = rows[start + k], eta[k, 0]
        rate = facts[i, exposure] * exp(max(min(e, HIGHEST), -HIGHEST))
        total += facts[i, FACT_WEIGHT] * (rate - facts[i, FACT_Y] * e)
    return total


@inlined
def _sum_of_losses(weight, y, exposure, base, moved):
    """Return Σ_i weight_i ℓ_i at η_i = base_i + moved_i."""
    total = 0.0
    for k in range(moved.shape[0]):
        eta = base[k] + moved[k]
        rate = exposure[k] * exp(max(min(eta, HIGHEST), -HIGHEST))
        total += weight[k] * (rate - y[k] * eta)
    return total


@entry
def _add_losses(facts, base, moved, scratch, values_out):
    """Add the losses at many draws, as `Model` defines it; the loop over rows is vectorised."""
    weight, y, exposure = facts[FACT_WEIGHT], facts[FACT_Y], facts[-1]
    for j in range(moved.shape[1]):
        values_out[j] += _sum_of_losses(weight, y, exposure, base[0], moved[0, j])


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    exposure = facts.shape[1] - 1
    for k in range(stop - start):  # a separate loop, so that it is vectorised
        terms_out[k, 0] = exp(max(min(eta[k, 0], HIGHEST), -HIGHEST))
    for k in range(stop - start):
        i = rows[start + k]
        terms_out[k, 0] = facts[i, exposure] * terms_out[k, 0] - facts[i, FACT_Y]


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    exposure = facts.shape[1] - 1
    for k in range(stop - start):
        u_out[k, 0] *= facts[rows[start + k], exposure] * math.exp(eta[k, 0])


@jit
def _add_shifted(facts, starts, eta, extras, shifts, losses_out):
    """Add the losses of levels at many shifts, as `Model` defines it.

    They are e^s Σ w t e^η - Σ w y (η + s).
    """
    exposure, rates = facts.shape[1] - 1, np.empty(eta.shape[0])
    for i in range(eta.shape[0]):
        rates[i] = exp(max(min(eta[i], HIGHEST), -HIGHEST))
    for level in range(shifts.shape[0]):
        rate, count, sums = 0.0, 0.0, 0.0
        for i in range(starts[level], starts[level + 1]):
            weight = facts[i, FACT_WEIGHT]
            rate += weight * facts[i, exposure] * rates[i]
            count += weight * facts[i, FACT_Y]
            sums += weight * facts[i, FACT_Y] * eta[i]
        for k in range(shifts.shape[1]):
            s = shifts[level, k]
            factor = exp(max(min(s, HIGHEST), -HIGHEST))
            losses_out[level, k] += rate * factor - count * s - sums


@inner
def _corrections(mu, eta):
    """Return c_0 and c_1 of Temme's expansion for λ = a(1 + μ); `eta` is η of DLMF 8.12.

    Near η = 0, where their terms cancel, they are power series in η.
    """
    if abs(eta) < 0.01:
        return -1 / 3 + eta * (1 / 12 - eta * (2 / 135)), -1 / 540 - eta / 288
    c_1 = 1.0 / eta**3 - 1.0 / mu**3 - 1.0 / mu**2 - 1.0 / (12.0 * mu)
    return 1.0 / mu - 1.0 / eta, c_1


@jit
def count_cdf(k, rate, dispersion):
    """Return P(Y <= k) = Q(k + 1, λ) of a Poisson law for a whole number k >= 0 and the rate λ.

    It is the sum of the probabilities for k < 30, and Temme's expansion (DLMF 8.12.4) from there
    on. `dispersion` is not used: it is 0 for a Poisson law.
    """
    a = k + 1.0
    if abs(rate - a) > 12.0 * math.sqrt(max(rate, a)) + 50.0:  # P is 0 or 1 to 1e-17
        return 0.0 if rate > a else 1.0
    if k < 30.0:
        term = total = 1.0
        for j in range(1, int(a)):
            term *= rate / j
            total += term
        return math.exp(-rate) * total
    mu = (rate - a) / a
    half = a * (mu - math.log1p(mu))
    own = math.copysign(math.sqrt(2.0 * half / a), mu)
    c_0, c_1 = _corrections(mu, own)
    correction = math.exp(-half) / math.sqrt(2.0 * math.pi * a) * (c_0 + c_1 / a)
    return 0.5 * math.erfc(math.copysign(math.sqrt(half), mu)) + correction


def poisson_counts(rng, rate):
    """Draw Poisson counts as floats, above `LARGEST_RATE` by the normal approximation."""
    is_large = rate > LARGEST_RATE
    counts = rng.poisson(np.where(is_large, 0.0, rate)).astype(np.float64)
    large = rate[is_large]
    counts[is_large] = np.rint(large * (1.0 + rng.standard_normal(len(large)) / np.sqrt(large)))
    return counts


class Poisson(Model):
    """Poisson regression: y_i ~ Poisson(t_i e^η_i), ℓ_i(η) = t_i e^η - y_i η.

    The labels of a row are the count y_i and the exposure t_i, which is 1 if it is not given.

    Examples
    --------
    >>> from skbayes_sg.models import Poisson
    >>> Poisson().n_predictors
    1
    """

    convex = True
    more_labels = (1.0,)
    loss = staticmethod(_loss)
    add_losses = staticmethod(_add_losses)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)
    add_shifted = staticmethod(_add_shifted)
    convex_in_first = True
    discrete = True
    count_cdf = staticmethod(count_cdf)

    @staticmethod
    @np.errstate(over="ignore")  # e^η may be of any size
    def mean(eta):
        """E(y | η) = e^η."""
        return np.exp(eta)

    variance = mean

    @staticmethod
    @np.errstate(over="ignore")  # e^η may be of any size
    def cdf(y, eta):
        """P(Y <= y | η) at whole numbers y >= 0, interpolated by an increasing function."""
        return np.where(y < 0.0, 0.0, gammaincc(np.maximum(y, 0.0) + 1.0, np.exp(eta)))

    @staticmethod
    def log_density(y, eta):
        """log P(Y = y | η)."""
        with np.errstate(over="ignore"):
            return y * eta - np.exp(eta) - gammaln(y + 1.0)

    @staticmethod
    def draw(rng, eta):
        """Draw y ~ Poisson(e^η)."""
        return poisson_counts(rng, np.exp(np.minimum(eta, HIGHEST)))
