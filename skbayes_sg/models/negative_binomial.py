"""Negative binomial regression (NB2): mean μ_i = t_i e^η_i, variance μ_i + α μ_i².

The parameter is s = log α. With φ = 1/α, m = αμ and
A = log Γ(y + φ) - log Γ(φ) - y log φ = Σ_{j<y} log(1 + jα),

    ℓ_i = (y + φ) log(1 + m) - y η - A                        (predictors η, s)

    ∂ℓ/∂η = (μ - y)/(1 + m),     ∂ℓ/∂s = y m/(1 + m) - φ [log(1 + m) - m/(1 + m)] - A',

    ∂²η = μ (1 + αy)/(1 + m)²,   ∂η∂s = (y - μ) m/(1 + m)²,
    ∂²s = y m/(1 + m)² + φ [log(1 + m) - 2m/(1 + m) + m/(1 + m)²] - A'',

    A' = y - φ [ψ(y + φ) - ψ(φ)],     A'' = y - A' + φ² [ψ'(y + φ) - ψ'(φ)].

As α → 0 this becomes Poisson regression, ℓ = μ - y η. Formulas are arranged so that no term is a
difference of large numbers then.
"""

import math

import numpy as np
from scipy.special import betainc, betaincc, gammaln

from .._base.jit import entry, inlined, inner, jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..kernels.polygamma import digamma, trigamma
from ..kernels.sigmoid import HIGHEST as HIGHEST_ETA
from ..kernels.sigmoid import exp
from ..kernels.softplus import log1p, softplus
from ._base import Model
from .poisson import count_cdf as poisson_cdf
from .poisson import poisson_counts

__all__ = ["NegativeBinomial"]

FEW = 16.0  # for whole counts below this, A is computed as the logarithm of a product
LARGE = 16.0  # φ from which on log Γ and its derivatives are computed by Stirling's series
HIGHEST = 1e10  # α up to which the product for A does not overflow
LOWEST = 1e-290  # least α that is used, so that φ = 1/α does not overflow
SMALL = 1e-5  # m up to which log(1 + m)/m is computed by its power series
# For counts beyond HUGE, of which φ is less than the share NEGLIGIBLE, the Poisson noise of a count
# is negligible beside the variation of its rate.
HUGE, NEGLIGIBLE = 1e8, 1e-5
MANY = 30.0  # if φ and the count are larger than this, Temme's expansion is right to 2e-5
MAX_TERMS = 500  # most terms of a series or a continued fraction


@inner
def _is_few(y, alpha):
    """Whether y is a small whole number, so that A is the logarithm of a short product."""
    return y < FEW and alpha < HIGHEST and y == math.floor(y)


@inner
def _rest(x):
    """Return log Γ(x) - [(x - ½) log x - x + ½ log 2π] by Stirling's series, for x >= `LARGE`."""
    f = 1.0 / (x * x)
    return (1 / 12 - f * (1 / 360 - f * (1 / 1260 - f * (1 / 1680 - f / 1188)))) / x


@inner
def _rest_of_digamma(x):
    """Return log x - 1/(2x) - ψ(x) by Stirling's series, for x >= `LARGE`."""
    f = 1.0 / (x * x)
    return f * (1 / 12 - f * (1 / 120 - f * (1 / 252 - f * (1 / 240 - f / 132))))


@inner
def _rest_of_trigamma(x):
    """Return ψ'(x) - 1/x - 1/(2x²) by Stirling's series, for x >= `LARGE`."""
    f = 1.0 / (x * x)
    return f * (1 / 6 - f * (1 / 30 - f * (1 / 42 - f * (1 / 30 - f * (5 / 66))))) / x


@inner
def _rising(y, alpha, phi):
    """Return A = log Γ(y + φ) - log Γ(φ) - y log φ, where `phi` is φ = 1/α."""
    if _is_few(y, alpha):
        product = 1.0
        for j in range(1, int(y)):
            product *= 1.0 + j * alpha
        return math.log(product)
    x = y + phi
    if phi < LARGE:
        return math.lgamma(x) - math.lgamma(phi) - y * math.log(phi)
    return (x - 0.5) * math.log1p(y * alpha) - y + (_rest(x) - _rest(phi))


@inner
def _rising_slope(y, alpha, phi):
    """Return A' = ∂A/∂s = Σ_{j<y} jα/(1 + jα), with s = log α."""
    if _is_few(y, alpha):
        total = 0.0
        for j in range(1, int(y)):
            total += j * alpha / (1.0 + j * alpha)
        return total
    x = y + phi
    if phi < LARGE:
        return y - phi * (digamma(x) - digamma(phi))
    rest = phi * (_rest_of_digamma(x) - _rest_of_digamma(phi))
    return y - phi * math.log1p(y * alpha) - 0.5 * y / x + rest


@inner
def _rising_bend(y, alpha, phi):
    """Return A'' = ∂A'/∂s = Σ_{j<y} jα/(1 + jα)², with s = log α."""
    if _is_few(y, alpha):
        total = 0.0
        for j in range(1, int(y)):
            total += j * alpha / ((1.0 + j * alpha) * (1.0 + j * alpha))
        return total
    x, slope = y + phi, _rising_slope(y, alpha, phi)
    if phi < LARGE:
        return y - slope + phi * phi * (trigamma(x) - trigamma(phi))
    share = phi / x
    rest = phi * phi * (_rest_of_trigamma(x) - _rest_of_trigamma(phi))
    return y - slope - y * share + 0.5 * (share * share - 1.0) + rest


@inner
def _log1p_ratio(m):
    """Return log(1 + m)/m, also for m = 0."""
    return math.log1p(m) / m if m > SMALL else 1.0 - m * (0.5 - m / 3.0)


@inner
def _loss_of(y, eta, mu, alpha):
    """Return the negative log-likelihood ℓ of a count y of mean μ = t e^η, without -y log t."""
    m, phi = alpha * mu, 1.0 / alpha
    if mu == np.inf:
        return np.inf
    return mu * _log1p_ratio(m) + y * (math.log1p(m) - eta) - _rising(y, alpha, phi)


@jit
def _loss(facts, rows, start, stop, eta):
    total, exposure = 0.0, facts.shape[1] - 1
    alpha = math.exp(eta[0, 1]) if stop > start else 1.0
    for k in range(stop - start):
        i = rows[start + k]
        mu = facts[i, exposure] * math.exp(eta[k, 0])
        total += facts[i, FACT_WEIGHT] * _loss_of(facts[i, FACT_Y], eta[k, 0], mu, alpha)
    return total


@inlined
def _sum_of_rising(weight, y, alpha, phi, small_out):
    """Return Σ_i weight_i A_i; `small_out` is scratch for a table of A for the counts 0, 1, ..."""
    for n in range(1, len(small_out)):
        small_out[n] = small_out[n - 1] + math.log1p((n - 1) * alpha)
    total = 0.0
    for k in range(len(y)):
        is_small = y[k] < len(small_out) and y[k] == math.floor(y[k])
        total += weight[k] * (small_out[int(y[k])] if is_small else _rising(y[k], alpha, phi))
    return total


@inlined
def _sum_without_rising(weight, y, exposure, base, moved, alpha, phi):
    """Return Σ_i weight_i (ℓ_i + A_i) at η_i = base_i + moved_i."""
    total = 0.0
    for k in range(moved.shape[0]):
        eta = base[k] + moved[k]
        mu = exposure[k] * exp(max(min(eta, HIGHEST_ETA), -HIGHEST_ETA))
        total += weight[k] * ((y[k] + phi) * log1p(alpha * mu) - y[k] * eta)
    return total


@entry
def _add_losses(facts, base, moved, scratch, values_out):
    """Add the losses at many draws, as `Model` defines it.

    The loop over rows is vectorised, and A of small counts is tabulated.
    """
    weight, y, exposure, small = facts[FACT_WEIGHT], facts[FACT_Y], facts[-1], np.zeros(int(FEW))
    for j in range(moved.shape[1]):
        alpha = max(math.exp(min(base[1, 0] + moved[1, j, 0], HIGHEST_ETA)), LOWEST)
        phi = 1.0 / alpha
        values_out[j] -= _sum_of_rising(weight, y, alpha, phi, small)
        values_out[j] += _sum_without_rising(weight, y, exposure, base[0], moved[0, j], alpha, phi)


@jit
def _add_shifted(facts, starts, eta, extras, shifts, losses_out):
    """Add the losses of levels at many shifts, as `Model` defines it."""
    exposure, alpha, K = facts.shape[1] - 1, max(math.exp(extras[0]), LOWEST), shifts.shape[1]
    phi, factor, means = 1.0 / alpha, np.empty(K), np.empty(eta.shape[0])
    for i in range(eta.shape[0]):
        means[i] = exp(max(min(eta[i], HIGHEST_ETA), -HIGHEST_ETA))
    for level in range(shifts.shape[0]):
        for k in range(K):
            factor[k] = exp(max(min(shifts[level, k], HIGHEST_ETA), -HIGHEST_ETA))
        count, constant = 0.0, 0.0
        for i in range(starts[level], starts[level + 1]):
            weight, y = facts[i, FACT_WEIGHT], facts[i, FACT_Y]
            count += weight * y
            constant += weight * (y * eta[i] + _rising(y, alpha, phi))
            m, power = alpha * facts[i, exposure] * means[i], weight * (y + phi)
            for k in range(K):  # a loop by itself, so that it is vectorised
                losses_out[level, k] += power * log1p(m * factor[k])
        for k in range(K):
            losses_out[level, k] -= constant + count * shifts[level, k]


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    exposure = facts.shape[1] - 1
    alpha = math.exp(eta[0, 1]) if stop > start else 1.0
    phi = 1.0 / alpha
    for k in range(stop - start):
        i = rows[start + k]
        y, mu = facts[i, FACT_Y], facts[i, exposure] * math.exp(eta[k, 0])
        m = alpha * mu
        q = m / (1.0 + m)
        terms_out[k, 0] = (mu - y) / (1.0 + m)
        terms_out[k, 1] = y * q - mu * (_log1p_ratio(m) - 1.0 / (1.0 + m))
        terms_out[k, 1] -= _rising_slope(y, alpha, phi)


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    exposure = facts.shape[1] - 1
    alpha = math.exp(eta[0, 1]) if stop > start else 1.0
    phi = 1.0 / alpha
    for k in range(stop - start):
        i = rows[start + k]
        y, mu = facts[i, FACT_Y], facts[i, exposure] * math.exp(eta[k, 0])
        m = alpha * mu
        r = 1.0 / (1.0 + m)
        q = m * r
        eta_eta, eta_s = mu * r * (1.0 + alpha * y) * r, (y - mu) * r * q
        s_s = y * q * r + mu * (_log1p_ratio(m) - 2.0 * r + r * r) - _rising_bend(y, alpha, phi)
        u, v = u_out[k, 0], u_out[k, 1]
        u_out[k, 0] = eta_eta * u + eta_s * v
        u_out[k, 1] = eta_s * u + s_s * v


@entry
def _log_masses(y, eta, alpha, out):
    """Write log P(Y = y | η, α) + log y! of each place, where m = e^(η + log α) may be of any size.

    With c = log(1 + min(m, 1/m)), log(1 + m) is max(log m, 0) + c.
    """
    for k in range(len(y)):
        a = max(alpha[k], LOWEST)
        phi, log_a = 1.0 / a, math.log(a)
        log_m = eta[k] + log_a
        c = softplus(-abs(log_m))
        rising = _rising(y[k], a, phi)
        out[k] = rising + y[k] * (min(eta[k], -log_a) - c) - phi * (max(log_m, 0.0) + c)


@inner
def _beta_fraction(a, b, x):
    """Return the continued fraction in I_x(a, b) (DLMF 8.17.22), by the modified Lentz method."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d
    for n in range(1, MAX_TERMS):
        even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n))
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        value *= d * c
        odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        value *= d * c
        if abs(d * c - 1.0) < 1e-12:
            break
    return value


@inner
def _by_error_function(b, mu, alpha):
    """Return P(Y < b) by the first two terms of Temme's expansion of I_x(φ, b) (DLMF 8.18.10)."""
    ratio, away = 1.0 + alpha * b, b - mu
    z = alpha * away / (1.0 + alpha * mu)
    half = -b * math.log(mu / b) - ratio * math.log1p(z) / alpha
    u = math.copysign(math.sqrt(max(2.0 * half, 0.0)), away)
    if abs(u) < 1e-3:
        correction = (alpha * b - 1.0) / (3.0 * math.sqrt(b * ratio))
    else:
        correction = 1.0 / u - math.sqrt(b * ratio) * (1.0 + alpha * mu) / (away * ratio)
    density = math.exp(-half) / math.sqrt(2.0 * math.pi)
    return 0.5 * math.erfc(-u / math.sqrt(2.0)) + density * correction


@inner
def _gamma_cdf(a, x):
    """Return P(a, x), the regularised lower incomplete gamma function.

    It is Temme's expansion for a > `MANY` + 1. Otherwise it is the power series for x < a + 1, and
    one minus the continued fraction of Q(a, x) for larger x.
    """
    if a > MANY + 1.0:
        return 1.0 - poisson_cdf(a - 1.0, x, 0.0)
    if x <= 0.0 or x == np.inf:
        return 0.0 if x <= 0.0 else 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a + 1.0))
    if x < a + 1.0:
        term = total = 1.0
        for n in range(1, MAX_TERMS):
            term *= x / (a + n)
            total += term
            if term < 1e-12 * total:
                break
        return scale * total
    b = x + 1.0 - a
    d, c = 1.0 / b, 1e300
    value = d
    for n in range(1, MAX_TERMS):
        b += 2.0
        d, c = 1.0 / (b - n * (n - a) * d), b - n * (n - a) / c
        value *= c * d
        if abs(c * d - 1.0) < 1e-12:
            break
    return 1.0 - scale * a * value


@jit
def _count_cdf(k, mu, alpha):
    """Return P(Y <= k) = I_{1/(1+m)}(φ, k + 1) for a whole number k >= 0, mean μ and dispersion α.

    It is the sum of the probabilities for k < 30, and otherwise a continued fraction or Temme's
    expansion. These lose digits for counts so large that their Poisson noise is negligible beside
    the variation of their rate; there it is P(φ, x/α) with x = (k + 1/2)/μ, the law of the rate.
    """
    m, phi = alpha * mu, 1.0 / alpha
    if k < 30.0:
        term = math.exp(-mu * _log1p_ratio(m))
        total, rate = term, mu / (1.0 + m)
        for j in range(1, int(k) + 1):
            term *= (1.0 + (j - 1.0) * alpha) * rate / j
            total += term
        return total
    b, r = k + 1.0, m / (1.0 + m)
    if b > HUGE and phi < NEGLIGIBLE * b:
        return _gamma_cdf(phi, phi * ((k + 0.5) / mu))
    if min(phi, b) > MANY:
        return _by_error_function(b, mu, alpha)
    mass = math.exp(-_loss_of(b, math.log(mu), mu, alpha) - math.lgamma(b + 1.0))  # P(Y = k + 1)
    if r < (b + 1.0) / (b + phi + 2.0):
        return 1.0 - mass * _beta_fraction(b, phi, r)
    return mass * b * alpha * _beta_fraction(phi, b, 1.0 / (1.0 + m))


class NegativeBinomial(Model):
    """Negative binomial regression: y_i of mean μ_i = t_i e^η_i and variance μ_i + α μ_i².

    The labels of a row are the count y_i and the exposure t_i, which is 1 if it is not given; log α
    is a parameter. ℓ_i is not convex in both predictors, but for every α it is convex in η.

    Examples
    --------
    >>> from skbayes_sg.models import NegativeBinomial
    >>> NegativeBinomial().n_predictors
    2
    """

    n_extra = 1
    more_labels = (1.0,)
    loss = staticmethod(_loss)
    add_losses = staticmethod(_add_losses)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)
    add_shifted = staticmethod(_add_shifted)
    convex_in_first = True
    discrete = True
    has_edge = True
    count_cdf = staticmethod(_count_cdf)

    @staticmethod
    @np.errstate(over="ignore")  # e^η may be of any size
    def mean(eta, alpha):
        """E(y | η) = e^η."""
        del alpha
        return np.exp(eta)

    @staticmethod
    @np.errstate(over="ignore")  # e^η may be of any size
    def variance(eta, alpha):
        """Var(y | η, α) = μ + α μ²."""
        mu = np.exp(eta)
        return mu * (1.0 + alpha * mu)

    @staticmethod
    @np.errstate(over="ignore", invalid="ignore")  # the branch that is not taken may overflow
    def cdf(y, eta, alpha):
        """P(Y <= y | η, α) at whole numbers y >= 0, interpolated by an increasing function."""
        phi, m, b = 1.0 / alpha, alpha * np.exp(eta), np.maximum(y, 0.0) + 1.0
        below = np.where(m < 1.0, betaincc(b, phi, m / (1.0 + m)), betainc(phi, b, 1.0 / (1.0 + m)))
        return np.where(y < 0.0, 0.0, below)

    @staticmethod
    def log_density(y, eta, alpha):
        """log P(Y = y | η, α) = A - log y! + y [η - log(1 + m)] - φ log(1 + m)."""
        y, eta, alpha, factorial = np.broadcast_arrays(y, eta, alpha, gammaln(np.add(y, 1.0)))
        out = np.empty(eta.shape)
        parts = (np.array(part).ravel() for part in (y, eta, alpha))  # views would be read-only
        _log_masses(*parts, out.ravel())
        return out - factorial

    @staticmethod
    def draw(rng, eta, alpha):
        """Draw y ~ Poisson(e^η g), where g has the gamma law of mean 1 and variance α."""
        phi = np.broadcast_to(1.0 / alpha, eta.shape)
        return poisson_counts(rng, np.exp(np.minimum(eta, HIGHEST_ETA)) * rng.gamma(phi) / phi)
