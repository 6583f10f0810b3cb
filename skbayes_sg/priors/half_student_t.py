"""Half Student's t prior of a positive v: -log(p(v) v) = (df + 1)/2 log(1 + z²/df) - log v."""

import math

from .._base.jit import inlined
from ._base import PositivePrior

__all__ = ["HalfCauchy", "HalfStudentT"]


@inlined
def _value(total, z, df, s):
    return total + (0.5 * (df + 1.0) * math.log1p(z * z / df) - s)


@inlined
def _slope(total, z, df, s):
    return total + ((df + 1.0) * z * z / (df + z * z) - 1.0)


def _curvature(square, df):
    return 2.0 * df * (df + 1.0) * square / (df + square) ** 2


class HalfStudentT(PositivePrior):
    """Half Student's t prior of a positive v, ``p(v) ∝ (1 + (v / scale)² / df)^(-(df + 1) / 2)``.

    Parameters
    ----------
    df : float, default=3.0
        Degrees of freedom, positive.
    scale : float or "auto", default="auto"
        Scale, in the units of v. "auto" is the standard deviation of the response for noise and for
        the parameters of a `CustomRegressor`, and 1 for parameters without a unit.

    Examples
    --------
    >>> from skbayes_sg.priors import HalfStudentT
    >>> HalfStudentT(df=4.0, scale=2.0)
    HalfStudentT(df=4.0, scale=2.0)
    """

    value = staticmethod(_value)
    slope = staticmethod(_slope)
    curvature = staticmethod(_curvature)

    def __init__(self, *, df: float = 3.0, scale: float | str = "auto") -> None:
        self.df = df
        self.scale = scale

    @staticmethod
    def _tail(df):
        return df

    def _shape(self, name):
        return self._positive("df", name)


class HalfCauchy(HalfStudentT):
    """Half-Cauchy prior of a positive v, ``p(v) ∝ 1 / (1 + (v / scale)²)``.

    Parameters
    ----------
    scale : float or "auto", default="auto"
        Median, in the units of v. "auto" is the standard deviation of the response for noise and
        for the parameters of a `CustomRegressor`, and 1 for parameters without a unit.

    Examples
    --------
    >>> from skbayes_sg.priors import HalfCauchy
    >>> HalfCauchy(scale=5.0)
    HalfCauchy(scale=5.0)
    """

    def __init__(self, scale: float | str = "auto") -> None:
        self.scale = scale

    def _shape(self, name):
        return 1.0  # the Cauchy distribution is Student's t with one degree of freedom
