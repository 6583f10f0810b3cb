"""Inverse gamma prior of v², for a positive v: -log(p(v²) v²) = beta/v² + 2 alpha log v.

With scale = √(2 beta) the first term is 1/(2 z²).
"""

import math

from .._base.jit import inlined
from ._base import PositivePrior

__all__ = ["InverseGamma"]


@inlined
def _value(total, z, alpha, s):
    return total + (0.5 / (z * z) + 2.0 * alpha * s)


@inlined
def _slope(total, z, alpha, s):
    return total + (2.0 * alpha - 1.0 / (z * z))


def _curvature(square, alpha):
    return 2.0 / square


class InverseGamma(PositivePrior):
    """Inverse gamma prior of v², ``p(v²) ∝ (v²)^(-alpha - 1) exp(-beta / v²)``.

    This is the conjugate prior of a noise variance. With small alpha and beta it is not vague where
    v is small; a half-normal or half Student's t prior is the better default.

    Parameters
    ----------
    alpha : float, default=1.0
        Positive.
    beta : float, default=1.0
        Positive, in the units of v².

    Examples
    --------
    >>> from skbayes_sg.priors import InverseGamma
    >>> InverseGamma(alpha=2.0, beta=0.5)
    InverseGamma(alpha=2.0, beta=0.5)
    """

    value = staticmethod(_value)
    slope = staticmethod(_slope)
    curvature = staticmethod(_curvature)

    def __init__(self, alpha: float = 1.0, beta: float = 1.0) -> None:
        self.alpha = alpha
        self.beta = beta

    @staticmethod
    def _tail(alpha):
        return 2.0 * alpha

    def _scale(self, name):
        return math.sqrt(2.0 * self._positive("beta", name))

    def _shape(self, name):
        return self._positive("alpha", name)
