"""The base classes of priors, and the units of their scales."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._base.validation import as_reals, check_positive
from ..exceptions import InvalidParameterError
from .columns import POWER

__all__ = ["PositivePrior", "Prior", "Units"]

AUTO_SCALE = 2.5  # standard deviations of the response for one of the column


@dataclass(frozen=True)
class Units:
    """The units of "auto" scales of priors.

    Parameters
    ----------
    response : float
        Standard deviation of the response; 1 if it has no unit.
    columns : callable
        Returns the standard deviation of each column of X.
    floor : float
        Smallest possible standard deviation of the noise: the rounding error of the response.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.priors import Units
    >>> Units(response=2.0, columns=lambda: np.array([1.0, 10.0])).of_coefficients()
    array([5. , 0.5])
    """

    response: float = 1.0
    columns: Any = None
    floor: float = 0.0

    def of_coefficients(self):
        """Change of the response for a change of each column by one."""
        return AUTO_SCALE * self.of_columns()

    def of_columns(self):
        """A standard deviation of the response for one of each column."""
        return self.response / self.columns()


class Prior(BaseEstimator):
    """Base of all priors: independent over parameters, given by a table of numbers.

    A family stores its parameters and defines -log p(θ), up to a constant, by two kernels and a
    function of arrays. The kernels get one parameter as z = (θ - loc) / scale, and add to a sum:

    ``value(total, z, shape, row) -> float``
        total - log p(θ).
    ``slope(total, z, shape, row) -> float``
        total plus the derivative of -log p(θ) in θ.
    ``curvature(z, shape) -> array``
        The second derivative of -log p in z, or, if that can be negative, of the parabola that
        touches -log p from above.

    `shape` is the result of ``_shape``, and `row` the row (kind, loc, scale, shape, power) of the
    parameter in the table of all parameters. The power of the density is 1, and below 1 for the
    shards of a fit; a family either multiplies by it, or changes its scale in ``_power``.

    ``loc`` and ``scale`` are scalars or arrays with one value for each feature. The gradient of a
    prior is computed in full at every step: it is neither subsampled nor rescaled by the number of
    rows.

    Priors raise an `InvalidParameterError` in `fit`, for a scale that is not positive, for values
    that are no numbers or not finite, and for arrays of another length than the number of features.
    """

    value: Any = None
    slope: Any = None
    curvature: Any = None
    _kind: float  # the code of the family in tables, which `families` sets
    is_learned = False  # whether it has scales that are learned: see `learned`

    @staticmethod
    def _power(rows, power):
        """The rows of this family for p(θ)^power."""
        rows[:, POWER] *= power
        return rows

    def _shape(self, name):
        """The shape; errors call the prior ``name``."""
        return 0.0

    def _positive(self, argument, name):
        """An own argument as a float, if it is a positive finite number."""
        return check_positive(argument, getattr(self, argument), f"{name}={self!r}")

    def _table(self, shape, name="prior", units=None):
        """One row (kind, loc, scale, shape, power) for each parameter of an array of `shape`."""
        loc = self._spread("loc", shape, name)
        if _is_auto(getattr(self, "scale", None)) and units is not None:
            scale = np.broadcast_to(units.of_coefficients(), shape)
        else:
            scale = self._spread("scale", shape, name)
        if not (scale > 0.0).all():
            raise InvalidParameterError(
                f"The scale of {name}={self!r} must be positive, got {float(scale.min())!r}."
            )
        kind, given = np.full_like(loc, self._kind), np.full_like(loc, self._shape(name))
        columns = kind, loc, scale, given, np.ones_like(loc)
        return np.stack([c.ravel() for c in columns], axis=1)

    def _spread(self, argument, shape, name):
        value = getattr(self, argument, 0.0 if argument == "loc" else 1.0)
        if isinstance(value, Prior):
            raise InvalidParameterError(
                f"{name}={self!r} has a prior as its {argument}. Scales are learned only of "
                "coefficients under a normal prior: prior=Normal(scale=HalfCauchy(1.0))."
            )
        try:
            array = as_reals(value)
            spread = np.broadcast_to(array, shape)
        except ValueError as error:
            raise InvalidParameterError(
                f"The {argument} of {name}={self!r} must be a number or have one value for each "
                f"feature (shape {shape}), got {value!r}."
            ) from error
        if not np.isfinite(array).all():
            raise InvalidParameterError(
                f"The {argument} of {name}={self!r} must be finite, got {value!r}."
            )
        return spread


def _is_auto(value):
    return isinstance(value, str) and value == "auto"


class PositivePrior(Prior):
    """Base of the priors of positive parameters, such as the standard deviation σ of noise.

    The parameter v is sampled as s = log v, with the density p(v) v. The functions of a family are
    functions of s, with z = v / scale; they do not use the power:

    ``value(total, z, shape, s) -> float``
        total - log(p(v) v).
    ``slope(total, z, shape, s) -> float``
        total plus the derivative of -log(p(v) v) in s.
    ``curvature(square, shape) -> float``
        The second derivative in s, where `square` is z².

    Below the rounding error of the response (`Units.floor`) a factor exp(-(floor / v)² / 2) cuts
    the density off: without it there is no posterior for data that are fitted perfectly. The table
    contains the floor in place of the location.
    """

    def _table(self, shape, name="noise_prior", units=None):
        """One row (kind, floor, scale, shape, power) a parameter."""
        units = units or Units()
        scale = self._scale(name)
        scale = units.response if _is_auto(scale) else scale
        row = [self._kind, units.floor, scale, self._shape(name), 1.0]
        return np.tile(np.array(row), (int(np.prod(shape)), 1))

    @staticmethod
    def _tail(shape):
        """df where p(v) falls off as v^(-df - 1); infinite where it falls off faster."""
        return np.inf

    def _scale(self, name):
        """The scale, or "auto"; errors call the prior ``name``."""
        return self.scale if _is_auto(self.scale) else self._positive("scale", name)
