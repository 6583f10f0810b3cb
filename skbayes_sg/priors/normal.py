"""Normal prior: -log p = z² / 2."""

import math

import numpy as np

from .._base.jit import inlined
from ._base import Prior
from .columns import SCALE

__all__ = ["Normal"]


@inlined
def _value(total, z, shape, row):
    return total + 0.5 * z * z


@inlined
def _slope(g, z, shape, row):
    return g + z / row[SCALE]


def _curvature(z, shape):
    return np.ones_like(z)


class Normal(Prior):
    """Normal prior, ``p(θ) ∝ exp(-(θ - loc)² / (2 scale²))``.

    ``Normal(scale=s)`` on the coefficients is the ridge penalty of
    `sklearn.linear_model.LogisticRegression` with ``C = s**2``; the default is its default.

    Parameters
    ----------
    loc : float or array of shape (n_features,), default=0.0
        Mean.
    scale : float, array of shape (n_features,) or "auto", default=1.0
        Standard deviation, in the units of the coefficients. "auto" is 2.5 standard deviations of
        the response (of a classifier: 2.5) for a standard deviation of the column.

    Examples
    --------
    >>> from skbayes_sg.priors import Normal
    >>> Normal(scale=2.5)
    Normal(scale=2.5)
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
        rows[:, SCALE] /= math.sqrt(power)  # it stays a normal prior, as closed forms need
        return rows
