"""Improper flat priors, of a parameter and of a positive parameter."""

import numpy as np

from .._base.jit import inlined
from ._base import PositivePrior, Prior

__all__ = ["Flat", "PositiveFlat"]


@inlined
def _unchanged(total, z, shape, row):
    return total


@inlined
def _jacobian(total, z, shape, s):
    """Return total - log(p(v) v) for p(v) = 1: only the Jacobian v = e^s of s = log v remains."""
    return total - s


@inlined
def _jacobian_slope(total, z, shape, s):
    return total - 1.0


def _no_curvature(z, shape):
    return np.zeros_like(z)


class Flat(Prior):
    """Improper flat prior, ``p(θ) ∝ 1``.

    The posterior exists only where the data determine every coefficient; `fit` raises a
    `ValueError` where they do not (dependent columns, separable classes, rows of
    too little weight).

    Examples
    --------
    >>> from skbayes_sg.priors import Flat
    >>> Flat()
    Flat()
    """

    value = staticmethod(_unchanged)
    slope = staticmethod(_unchanged)
    curvature = staticmethod(_no_curvature)


class PositiveFlat(PositivePrior):
    """Improper flat prior of a positive v, ``p(v) ∝ 1``; ``Flat()`` for v means this prior."""

    value = staticmethod(_jacobian)
    slope = staticmethod(_jacobian_slope)
    curvature = staticmethod(_no_curvature)

    @staticmethod
    def _tail(shape):
        return -1.0

    def _scale(self, name):
        return "auto"
