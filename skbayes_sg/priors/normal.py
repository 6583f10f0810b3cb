"""Normal prior: -log p = z² / 2; its scale may be learned, with a prior of its own."""

import math
from collections.abc import Sequence

import numpy as np

from .._base.jit import inlined
from ..exceptions import InvalidParameterError
from ._base import Prior
from .columns import SCALE
from .learned import learned_scales

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
    scale : float, array of shape (n_features,), "auto" or PositivePrior, default=1.0
        Standard deviation, in the units of the coefficients. "auto" is 2.5 standard deviations of
        the response (for a classifier: 2.5) for a standard deviation of the column. With a prior,
        as in ``Normal(scale=HalfCauchy(1.0))``, the scale is unknown, and is sampled with the
        coefficients. If that prior has the scale "auto", as ``HalfCauchy()`` has, its unit is a
        standard deviation of the response (for a classifier: 1) for one of the column.
    scale_groups : None, "columns", dict or list, default=None
        Which columns share a scale that is learned: all (None); none, so that each has its own
        ("columns", automatic relevance determination); or blocks of columns. Blocks are given as
        one label for each column, as lists of names or numbers of columns, or as a dict of such
        lists, whose keys name the scales.

    Examples
    --------
    >>> from skbayes_sg.priors import Normal
    >>> Normal(scale=2.5)
    Normal(scale=2.5)
    >>> from skbayes_sg.priors import HalfCauchy
    >>> Normal(scale=HalfCauchy(1.0), scale_groups={"pixels": [0, 1, 2], "age": [3]})
    Normal(scale=HalfCauchy(scale=1.0),
           scale_groups={'age': [3], 'pixels': [0, 1, 2]})
    """

    value = staticmethod(_value)
    slope = staticmethod(_slope)
    curvature = staticmethod(_curvature)

    def __init__(
        self,
        *,
        loc: float | np.ndarray = 0.0,
        scale: float | np.ndarray | str | Prior = 1.0,
        scale_groups: str | dict | Sequence | None = None,
    ) -> None:
        self.loc = loc
        self.scale = scale
        self.scale_groups = scale_groups

    @property
    def is_learned(self):
        """Whether the scale has a prior, and is sampled with the coefficients."""
        return isinstance(self.scale, Prior)

    def _learned(self, shape, units, names=None):
        """Return the `LearnedScales` of coefficients of `shape`, whose last axis is the columns."""
        one = Normal(loc=self.loc)._table(shape)
        return learned_scales(repr(self), one, shape, units, names, self.scale, self.scale_groups)

    def _table(self, shape, name="prior", units=None):
        if self.scale_groups is not None and not self.is_learned:
            raise InvalidParameterError(
                f"{name}={self!r} has scale_groups, but its scale is fixed. Learn it, as in "
                "Normal(scale=HalfCauchy(1.0), scale_groups='columns'), or drop scale_groups."
            )
        return super()._table(shape, name, units)

    @staticmethod
    def _power(rows, power):
        rows[:, SCALE] /= math.sqrt(power)  # the power is a normal prior, as closed forms need
        return rows
