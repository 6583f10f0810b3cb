"""Student's t prior: -log p = (df + 1)/2 log(1 + z²/df)."""

import math

import numpy as np

from .._base.jit import inlined
from ._base import Prior
from .columns import POWER, SCALE

__all__ = ["StudentT"]


@inlined
def _value(total, z, df, row):
    return total + 0.5 * row[POWER] * (df + 1.0) * math.log1p(z * z / df)


@inlined
def _slope(g, z, df, row):
    slope = row[POWER] * (df + 1.0) * z / (df + z * z)
    return g + slope / row[SCALE]


def _curvature(z, df):
    # This is slope / z, the second derivative of the parabola that touches -log p from above at z.
    return (df + 1.0) / (df + z**2)


class StudentT(Prior):
    """Student's t prior, ``p(θ) ∝ (1 + ((θ - loc) / scale)² / df)^(-(df + 1) / 2)``.

    It has heavy tails: a few large coefficients are shrunk less than under a normal prior. The
    standard deviation of the prior is ``scale * sqrt(df / (df - 2))`` for df > 2, else infinite. It
    is not log-concave: with few data a posterior may have more than one mode, which fits look for.

    Parameters
    ----------
    df : float, default=4.0
        Degrees of freedom, positive. 1 is the Cauchy distribution.
    loc : float or array of shape (n_features,), default=0.0
        Centre.
    scale : float, array of shape (n_features,) or "auto", default=1.0
        Scale, in the units of the coefficients; "auto" as for `Normal`.

    Examples
    --------
    >>> from skbayes_sg.priors import StudentT
    >>> StudentT(df=3, scale=2.5)
    StudentT(df=3, scale=2.5)
    """

    value = staticmethod(_value)
    slope = staticmethod(_slope)
    curvature = staticmethod(_curvature)

    def __init__(
        self,
        *,
        df: float = 4.0,
        loc: float | np.ndarray = 0.0,
        scale: float | np.ndarray | str = 1.0,
    ) -> None:
        self.df = df
        self.loc = loc
        self.scale = scale

    def _shape(self, name):
        return self._positive("df", name)
