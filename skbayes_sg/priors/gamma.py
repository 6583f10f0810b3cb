"""Gamma prior of a positive v: -log(p(v) v) = z - shape log v, where z = rate v."""

import numpy as np

from .._base.jit import inlined
from ._base import PositivePrior

__all__ = ["Gamma"]


@inlined
def _value(total, z, shape, s):
    return total + (z - shape * s)


@inlined
def _slope(total, z, shape, s):
    return total + (z - shape)


def _curvature(square, shape):
    return np.sqrt(square)


class Gamma(PositivePrior):
    """Gamma prior of a positive v, ``p(v) ∝ v^(shape - 1) exp(-rate v)``.

    Parameters
    ----------
    shape : float, default=2.0
        Positive.
    rate : float, default=0.1
        Positive, in the units of 1/v.

    Examples
    --------
    >>> from skbayes_sg.priors import Gamma
    >>> Gamma(shape=3.0)
    Gamma(shape=3.0)
    """

    value = staticmethod(_value)
    slope = staticmethod(_slope)
    curvature = staticmethod(_curvature)

    def __init__(self, shape: float = 2.0, rate: float = 0.1) -> None:
        self.shape = shape
        self.rate = rate

    def _scale(self, name):
        return 1.0 / self._positive("rate", name)

    def _shape(self, name):
        return self._positive("shape", name)
