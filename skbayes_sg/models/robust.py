"""Robust linear regression: y_i ~ η_i + σ t_ν, with s = log σ and u = log ν parameters.

With D = e^{-2s-u}, q = r²D, r = y_i - η, w = 1/(1 + q) and a = (ν + 1)/2,

    ℓ_i = s + u/2 + lgΓ(ν/2) - lgΓ(a) + a log(1 + q)          (predictors η, s, u)

    ∂ℓ/∂η = -2 a r D w,   ∂ℓ/∂s = 1 - 2 a q w,
    ∂ℓ/∂u = 1/2 + (ν/2)(ψ(ν/2) - ψ(a)) + (ν/2) log(1 + q) - a q w,

    ∂²η = 2 a D w (1 - 2qw),  ∂η∂s = 4 a r D w²,  ∂η∂u = -2 r D w (ν/2 - a w),
    ∂²s = 4 a q w²,           ∂s∂u = -2 q w (ν/2 - a w),
    ∂²u = (ν/2)(ψ(ν/2) - ψ(a)) + (ν²/4)(ψ'(ν/2) - ψ'(a)) + (ν/2) log(1 + q) - ν q w + a q w².

s and u are the same in all rows, so terms that depend on them alone are computed once in each call.
"""

import math

import numpy as np
from scipy.special import gammaln, stdtr

from .._base.jit import entry, inlined, inner, jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..kernels.polygamma import digamma, trigamma
from ..kernels.softplus import log1p
from ._base import Model

__all__ = ["Robust"]

TOGETHER = 4  # rows of the same weight, the logarithm of whose factors 1 + q is taken at once


@inner
def _of_extras(eta):
    """Return ν, a = (ν + 1)/2 and √D for predictors of rows, which have the same s and u."""
    s, u = eta[0, 1], eta[0, 2]
    nu = math.exp(u)
    return nu, 0.5 * (nu + 1.0), math.exp(-s - 0.5 * u)


@inlined
def _of_row(y, eta, root_D):
    """Return r D, q and w = 1/(1 + q) of a row with the response y and the first predictor η."""
    root = (y - eta) * root_D
    q = root * root
    return root * root_D, q, 1.0 / (1.0 + q)


@jit
def _loss(facts, rows, start, stop, eta):
    if stop == start:
        return 0.0
    nu, a, root_D = _of_extras(eta)
    same = eta[0, 1] + 0.5 * eta[0, 2] + math.lgamma(0.5 * nu) - math.lgamma(a)
    total = 0.0
    for k in range(start, stop):
        _, q, _ = _of_row(facts[rows[k], FACT_Y], eta[k - start, 0], root_D)
        total += facts[rows[k], FACT_WEIGHT] * (same + a * log1p(q))
    return total


@inlined
def _sum_of_logs(weight, y, base, moved, D):
    """Return Σ_i weight_i log(1 + q_i) at η_i = base_i + moved_i, with q = r² D."""
    total = 0.0
    for k in range(moved.shape[0]):
        r = y[k] - base[k] - moved[k]
        total += weight[k] * log1p(r * r * D)
    return total


@entry
def _add_losses(facts, base, moved, scratch, values_out):
    """Add the losses at many draws, as `Model` defines it; the loop over rows is vectorised."""
    weight, y = facts[FACT_WEIGHT], facts[FACT_Y]
    for j in range(moved.shape[1]):
        s, u = base[1, 0] + moved[1, j, 0], base[2, 0] + moved[2, j, 0]
        nu = math.exp(u)
        a = 0.5 * (nu + 1.0)
        same = s + 0.5 * u + math.lgamma(0.5 * nu) - math.lgamma(a)
        logs = _sum_of_logs(weight, y, base[0], moved[0, j], math.exp(-2.0 * s - u))
        values_out[j] += a * logs + same * weight.sum()


@inlined
def _multiply(products, residual, root_D, shifts):
    """Multiply each product by 1 + (r - s_k)² D for the residuals r of some rows."""
    for k in range(products.shape[0]):
        product = 1.0
        for i in range(residual.shape[0]):
            z = (residual[i] - shifts[k]) * root_D
            product *= 1.0 + z * z
        products[k] = product


@jit
def _add_shifted(facts, starts, eta, extras, shifts, losses_out):
    """Add the losses of levels at many shifts, as `Model` defines it.

    Up to `TOGETHER` rows in turn that have the same weight need a single logarithm: that of the
    product of their factors 1 + q.
    """
    s, u, K = extras[0], extras[1], shifts.shape[1]
    nu, root_D, products = math.exp(u), math.exp(-s - 0.5 * u), np.empty(K)
    a = 0.5 * (nu + 1.0)
    same = s + 0.5 * u + math.lgamma(0.5 * nu) - math.lgamma(a)
    for i in range(eta.shape[0]):
        eta[i] = facts[i, FACT_Y] - eta[i]
    for level in range(shifts.shape[0]):
        total, first, stop = 0.0, starts[level], starts[level + 1]
        while first < stop:
            weight, last = facts[first, FACT_WEIGHT], first + 1
            while last < min(first + TOGETHER, stop) and weight == facts[last, FACT_WEIGHT]:
                last += 1
            _multiply(products, eta[first:last], root_D, shifts[level])
            for k in range(K):  # a loop by itself, so that it is vectorised
                losses_out[level, k] += weight * a * log1p(products[k] - 1.0)
            total += weight * (last - first)
            first = last
        for k in range(K):
            losses_out[level, k] += same * total


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    if stop == start:
        return
    nu, a, root_D = _of_extras(eta)
    same = 0.5 + 0.5 * nu * (digamma(0.5 * nu) - digamma(a))
    for k in range(start, stop):
        rD, q, w = _of_row(facts[rows[k], FACT_Y], eta[k - start, 0], root_D)
        terms_out[k - start, 0] = -2.0 * a * rD * w
        terms_out[k - start, 1] = 1.0 - 2.0 * a * q * w
        terms_out[k - start, 2] = same + 0.5 * nu * log1p(q) - a * q * w


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    if stop == start:
        return
    nu, a, root_D = _of_extras(eta)
    D = root_D * root_D
    same = 0.5 * nu * (digamma(0.5 * nu) - digamma(a))
    same += 0.25 * nu * nu * (trigamma(0.5 * nu) - trigamma(a))
    for k in range(start, stop):
        rD, q, w = _of_row(facts[rows[k], FACT_Y], eta[k - start, 0], root_D)
        b = 0.5 * nu - a * w
        eta_eta, eta_s, eta_u = (
            2.0 * a * D * w * (1.0 - 2.0 * q * w),
            4.0 * a * rD * w * w,
            -2.0 * rD * w * b,
        )
        s_s, s_u = 4.0 * a * q * w * w, -2.0 * q * w * b
        u_u = same + 0.5 * nu * log1p(q) - nu * q * w + a * q * w * w
        x, y, z = u_out[k - start, 0], u_out[k - start, 1], u_out[k - start, 2]
        u_out[k - start, 0] = eta_eta * x + eta_s * y + eta_u * z
        u_out[k - start, 1] = eta_s * x + s_s * y + s_u * z
        u_out[k - start, 2] = eta_u * x + s_u * y + u_u * z


class Robust(Model):
    """Linear regression with Student's t noise: y_i ~ η_i + σ t_ν; log σ and log ν are parameters.

    It is not convex: an outlier has negative curvature. The sum over rows is convex near its
    minimum.

    Examples
    --------
    >>> from skbayes_sg.models import Robust
    >>> Robust().n_predictors
    3
    """

    n_extra = 2
    separable = False
    location_scale = True
    heavy_tailed = True
    loss = staticmethod(_loss)
    add_losses = staticmethod(_add_losses)
    add_shifted = staticmethod(_add_shifted)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)

    @staticmethod
    def mean(eta, sigma, nu):
        """E(y | η, σ, ν) = η; for ν <= 1, where there is no mean, the median."""
        return eta

    @staticmethod
    def variance(eta, sigma, nu):
        """Var(y | η, σ, ν) = σ² ν/(ν - 2), infinite for ν <= 2."""
        with np.errstate(divide="ignore"):
            return np.square(sigma) * np.where(nu > 2.0, nu / np.maximum(nu - 2.0, 0.0), np.inf)

    @staticmethod
    def cdf(y, eta, sigma, nu):
        """P(Y <= y | η, σ, ν)."""
        return stdtr(nu, (y - eta) / sigma)

    @staticmethod
    def log_density(y, eta, sigma, nu):
        """log p(y | η, σ, ν)."""
        a, q = 0.5 * (nu + 1.0), np.square((y - eta) / sigma) / nu
        normaliser = gammaln(a) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu) - np.log(sigma)
        return normaliser - a * np.log1p(q)

    @staticmethod
    def draw(rng, eta, sigma, nu):
        """Draw y ~ η + σ t_ν."""
        return eta + sigma * rng.standard_t(np.broadcast_to(nu, eta.shape))
