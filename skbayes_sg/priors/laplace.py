"""Laplace prior: -log p = |z|.

The shape is ε of √(z² + ε²), which replaces |z| during the search for a centre. In the posterior
itself ε is zero.
"""

import math

import numpy as np

from .._base.jit import inlined
from ._base import Prior
from .columns import SCALE

__all__ = ["Laplace"]


@inlined
def _value(total, z, eps, row):
    return total + math.sqrt(z * z + eps * eps)


@inlined
def _slope(g, z, eps, row):
    if z == 0.0:
        return g  # at the kink the derivative is taken to be zero
    return g + z / math.sqrt(z * z + eps * eps) / row[SCALE]


def _curvature(z, eps):
    smooth = eps > 0.0
    eps = np.where(smooth, eps, 1.0)
    return np.where(smooth, eps**2 / (z**2 + eps**2) ** 1.5, 0.0)


class Laplace(Prior):
    """Laplace (double exponential) prior, ``p(θ) ∝ exp(-|θ - loc| / scale)``.

    The mode of the posterior is the lasso; its draws are never exactly sparse. The standard
    deviation of the prior is ``sqrt(2) * scale``. At the kink the gradient is taken to be zero.

    Parameters
    ----------
    loc : float or array of shape (n_features,), default=0.0
        Median.
    scale : float, array of shape (n_features,) or "auto", default=1.0
        Mean absolute deviation, in the units of the coefficients; "auto" as for `Normal`.

    Examples
    --------
    >>> from skbayes_sg.priors import Laplace
    >>> Laplace(scale=0.5)
    Laplace(scale=0.5)
    """

    value = staticmethod(_value)
    slope = staticmethod(_slope)
    curvature = staticmethod(_curvature)

    def __init__(
        self, *, loc: float | np.ndarray = 0.0, scale: float | np.ndarray | str = 1.0
    ) -> None:
        self.loc = loc
        self.scale = scale

    @staticmethod
    def _power(rows, power):
        rows[:, SCALE] /= power
        return rows
