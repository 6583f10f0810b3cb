"""ψ and ψ', the derivatives of log Γ, by recurrence and asymptotic series; errors of a few ulp."""

import math

from .._base.jit import inner

__all__ = ["digamma", "trigamma"]


@inner
def digamma(x):
    """ψ(x), x > 0: ψ(x + 1) = ψ(x) + 1/x up to 10, then its asymptotic series."""
    total = 0.0
    while x < 10.0:
        total -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    tail = f * (1 / 12 - f * (1 / 120 - f * (1 / 252 - f * (1 / 240 - f * (1 / 132)))))
    return total + math.log(x) - 0.5 / x - tail


@inner
def trigamma(x):
    """ψ'(x), x > 0: ψ'(x + 1) = ψ'(x) - 1/x² up to 10, then its asymptotic series."""
    total = 0.0
    while x < 10.0:
        total += 1.0 / (x * x)
        x += 1.0
    f = 1.0 / (x * x)
    tail = f * (1 / 6 - f * (1 / 30 - f * (1 / 42 - f * (1 / 30 - f * (5 / 66)))))
    return total + (1.0 + 0.5 / x + tail) / x
