"""Half-normal prior of a positive v: -log(p(v) v) = z²/2 - log v."""

from .._base.jit import inlined
from ._base import PositivePrior

__all__ = ["HalfNormal"]


@inlined
def _value(total, z, shape, s):
    return total + (0.5 * z * z - s)


@inlined
def _slope(total, z, shape, s):
    return total + (z * z - 1.0)


def _curvature(square, shape):
    return 2.0 * square


class HalfNormal(PositivePrior):
    """Half-normal prior of a positive v, ``p(v) ∝ exp(-v² / (2 scale²))``.

    Parameters
    ----------
    scale : float or "auto", default="auto"
        Scale, in the units of v. "auto" is the standard deviation of the response for noise and for
        the parameters of a `CustomRegressor`, and 1 for parameters without a unit.

    Examples
    --------
    >>> from skbayes_sg.priors import HalfNormal
    >>> HalfNormal(scale=2.0)
    HalfNormal(scale=2.0)
    """

    value = staticmethod(_value)
    slope = staticmethod(_slope)
    curvature = staticmethod(_curvature)

    def __init__(self, scale: float | str = "auto") -> None:
        self.scale = scale
