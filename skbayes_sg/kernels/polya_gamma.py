r"""Draws of the Pólya-Gamma law, under which logistic rows are normal.

With κ = y - ½ and ω ~ PG(1, 0) the likelihood of a row is [1]_

    e^{yη}/(1 + e^η) = ½ e^{κη} E exp(-ω η²/2),

so that given ω the row says N(κ/ω | η, 1/ω), and given η it is ω ~ PG(1, η). PG(w, η) is the sum of
w of these. Draws are exact, by the alternating series of Devroye for 4ω: terms a_n(x) of its
density beyond and below `TURN` bound it from above and below in turn.

.. [1] N. G. Polson, J. G. Scott and J. Windle (2013). Bayesian inference for logistic models using
   Pólya-Gamma latent variables. Journal of the American Statistical Association 108, 1339-1349.
"""

import math

from .._base.jit import entry, inner

__all__ = ["polya_gamma"]

TURN = 0.64  # where one form of the terms of the series gives way to the other
LARGEST = 350.0  # largest |η|/2 of which an exponential is taken; further out ω is as good as known


@inner
def _term(n, x):
    """a_n(x), the n-th term of the series."""
    k = n + 0.5
    if x > TURN:
        return math.pi * k * math.exp(-0.5 * (k * math.pi) ** 2 * x)
    return math.pi * k * (2.0 / (math.pi * x)) ** 1.5 * math.exp(-2.0 * k * k / x)


@inner
def _normal_cdf(x):
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


@inner
def _share_beyond(z):
    """The share of the proposal at tilt z that is beyond `TURN`: an exponential law."""
    z = min(z, LARGEST)
    rate = math.pi**2 / 8.0 + 0.5 * z * z
    root = math.sqrt(1.0 / TURN)
    beyond = 0.5 * math.pi / rate * math.exp(-rate * TURN)
    below = math.exp(-z) * _normal_cdf(root * (TURN * z - 1.0))
    below += math.exp(z) * _normal_cdf(-root * (TURN * z + 1.0))
    return beyond / (beyond + 2.0 * below)


@inner
def _inverse_gaussian(z, rng):
    """Draw from the inverse Gaussian law with mean 1/z and shape 1, below `TURN`."""
    if z * TURN < 1.0:
        while True:
            e = rng.standard_exponential()
            while e * e > 2.0 / TURN * rng.standard_exponential():
                e = rng.standard_exponential()
            x = TURN / (1.0 + TURN * e) ** 2
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
    mean = 1.0 / z
    while True:
        y = mean * rng.standard_normal() ** 2
        x = mean * (1.0 + 0.5 * y - math.sqrt(y + 0.25 * y * y))
        if rng.random() * (mean + x) > mean:
            x = mean * mean / x
        if x < TURN:
            return x


@inner
def _one(z, rng):
    """Draw 4ω for ω ~ PG(1, 2z), z ≥ 0."""
    rate, beyond = math.pi**2 / 8.0 + 0.5 * z * z, _share_beyond(z)
    while True:
        if rng.random() < beyond:
            x = TURN + rng.standard_exponential() / rate
        else:
            x = _inverse_gaussian(z, rng)
        total, n = _term(0, x), 0
        level = rng.random() * total
        while True:
            n += 1
            if n % 2 == 1:
                total -= _term(n, x)
                if level <= total:
                    return x
            else:
                total += _term(n, x)
                if level > total:
                    break


@entry
def polya_gamma(weights, eta, rng, out):
    """Draw ω_i ~ PG(w_i, η_i) for whole numbers w_i, (n,), into `out`."""
    for i in range(len(out)):
        total, z = 0.0, 0.5 * abs(eta[i])
        for _ in range(weights[i]):
            total += _one(z, rng)
        out[i] = 0.25 * total
