"""Binary logistic regression: ℓ_i(η) = log(1 + e^η) - y_i η,  y_i in {0, 1}.

∂ℓ/∂η = σ(η) - y and ∂²ℓ/∂η² = σ(η)(1 - σ(η)) with σ(η) = 1/(1 + e^-η).
"""

import numpy as np

from .._base.jit import entry, inlined, jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..kernels.sigmoid import HIGHEST, LN_2, exp, sigmoid
from ..kernels.softplus import log1p, softplus
from ._base import Model

__all__ = ["Logistic"]

# Factors 1 + e^η are multiplied if all η are less than LARGEST_LOG_FACTOR, and not so many of them
# that the logarithm of the product might exceed LARGEST_LOG.
LARGEST_LOG_FACTOR, LARGEST_LOG = 40.0, 700.0
TOGETHER = 4  # rows whose factors are multiplied in one loop over the shifts


@jit
def _loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(stop - start):
        i = rows[start + k]
        total += facts[i, FACT_WEIGHT] * (softplus(eta[k, 0]) - facts[i, FACT_Y] * eta[k, 0])
    return total


@inlined
def _sum_of_losses(weight, y, base, moved):
    """Return Σ_i weight_i ℓ_i at η_i = base_i + moved_i."""
    total = 0.0
    for k in range(moved.shape[0]):
        eta = base[k] + moved[k]
        total += weight[k] * (softplus(eta) - y[k] * eta)
    return total


@entry
def _add_losses(facts, base, moved, scratch, values_out):
    """Add the losses at many draws, as `Model` defines it; the loop over rows is vectorised."""
    weight, y = facts[FACT_WEIGHT], facts[FACT_Y]
    for j in range(moved.shape[1]):
        values_out[j] += _sum_of_losses(weight, y, base[0], moved[0, j])


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    for k in range(stop - start):  # a separate loop, so that it is vectorised
        terms_out[k, 0] = sigmoid(eta[k, 0])
    for k in range(stop - start):
        terms_out[k, 0] -= facts[rows[start + k], FACT_Y]


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    for k in range(stop - start):
        p = sigmoid(eta[k, 0])
        u_out[k, 0] *= p * (1.0 - p)


@inlined
def _add_logarithms(product, losses_out, level):
    """Add the logarithms of products to the losses of a level, and set the products to one."""
    for k in range(product.shape[0]):
        losses_out[level, k] += log1p(product[k] - 1.0)
        product[k] = 1.0


@inlined
def _multiply(odds, start, stop, factor, product):
    """Multiply product[k] by 1 + odds_i factor_k, for all rows ``start:stop``."""
    i = start
    while i + TOGETHER <= stop:
        a, b, c, d = odds[i], odds[i + 1], odds[i + 2], odds[i + 3]
        for k in range(factor.shape[0]):
            f = factor[k]
            product[k] *= (1.0 + a * f) * (1.0 + b * f) * ((1.0 + c * f) * (1.0 + d * f))
        i += TOGETHER
    for last in range(i, stop):
        for k in range(factor.shape[0]):
            product[k] *= 1.0 + odds[last] * factor[k]


@inlined
def _add_products(odds, start, stop, most, factor, product, losses_out, level):
    """Add Σ_i log(1 + odds_i factor_k) to the losses of a level, by products of `most` factors."""
    first = start
    while first < stop:
        last = min(first + most, stop)
        _multiply(odds, first, last, factor, product)
        _add_logarithms(product, losses_out, level)
        first = last


@jit
def _add_shifted(facts, starts, eta, extras, shifts, losses_out):
    """Add the losses of levels at many shifts, as `Model` defines it.

    The product of factors 1 + e^η_i e^s_k of the rows of a level needs a single logarithm, if all
    weights are one. Loops over shifts are vectorised.
    """
    n_levels, K = shifts.shape
    factor, product, odds = np.empty(K), np.ones(K), np.empty(eta.shape[0])
    for i in range(eta.shape[0]):
        odds[i] = exp(max(min(eta[i], HIGHEST), -HIGHEST))
    for level in range(n_levels):
        start, stop = starts[level], starts[level + 1]
        ones, sums, top, uneven = 0.0, 0.0, -HIGHEST, 0.0
        for i in range(start, stop):
            weight, label = facts[i, FACT_WEIGHT], facts[i, FACT_Y]
            ones += weight * label
            sums += weight * label * eta[i]
            top, uneven = max(top, eta[i]), max(uneven, abs(weight - 1.0))
        highest = -HIGHEST
        for k in range(K):
            losses_out[level, k] -= sums + ones * shifts[level, k]
            highest = max(highest, shifts[level, k])
        top += highest
        if uneven > 0.0 or top > LARGEST_LOG_FACTOR:
            for i in range(start, stop):
                for k in range(K):
                    loss = softplus(eta[i] + shifts[level, k])
                    losses_out[level, k] += facts[i, FACT_WEIGHT] * loss
            continue
        for k in range(K):
            factor[k] = exp(max(shifts[level, k], -HIGHEST))
        most = TOGETHER * int(LARGEST_LOG / (TOGETHER * (max(top, 0.0) + LN_2)))
        _add_products(odds, start, stop, most, factor, product, losses_out, level)


class Logistic(Model):
    """Binary logistic regression: ℓ_i(η) = log(1 + e^η) - y_i η; `y` is 0 or 1.

    There is one predictor η, the log-odds of y = 1.

    Examples
    --------
    >>> from skbayes_sg.models import Logistic
    >>> Logistic().n_predictors
    1
    """

    convex = True
    loss = staticmethod(_loss)
    add_losses = staticmethod(_add_losses)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)
    add_shifted = staticmethod(_add_shifted)
    convex_in_first = True
