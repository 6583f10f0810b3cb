"""The base classes of priors, and the units of their scales."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._base.validation import as_reals, check_positive
from ..exceptions import InvalidParameterError
from .columns import POWER

__all__ = ["PositivePrior", "Prior", "Units"]

# An "auto" scale of a coefficient is this many standard deviations of the response for one standard
# deviation of the column.
AUTO_SCALE = 2.5


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
        """Return the "auto" scale of each coefficient, (n_columns,).

        It is 2.5 standard deviations of the response for one standard deviation of the column.
        """
        return AUTO_SCALE * self.of_columns()

    def of_columns(self):
        """Return sd(response) / sd(column) for each column, (n_columns,)."""
        return self.response / self.columns()


class Prior(BaseEstimator):
    """Base of all priors: independent over parameters, given by a table of numbers.

    A family stores its parameters and defines -log p(θ), up to a constant, by two kernels and a
    function of arrays. The kernels get one parameter as z = (θ - loc) / scale, and add to a sum:

    ``value(total, z, shape, row) -> float``
        Returns total - log p(θ).
    ``slope(total, z, shape, row) -> float``
        Returns total plus the derivative of -log p(θ) in θ.
    ``curvature(z, shape) -> array``
        The second derivative of -log p in z, or, if that can be negative, of the parabola that
        touches -log p from above.

    `shape` is the result of ``_shape``, and `row` the row (kind, loc, scale, shape, power) of the
    parameter in the table of all parameters. The density is raised to the power, which is 1 except
    for shards of a fit, where it is less; a family either multiplies -log p by it, or changes its
    scale in ``_power`` instead.

    ``loc`` and ``scale`` are scalars or arrays with one value for each feature. The gradient of a
    prior is computed in full at every step: it is neither subsampled nor rescaled by the number of
    rows.

    Priors raise an `InvalidParameterError` in `fit`, for a scale that is not positive, for values
    that are no numbers or not finite, and for arrays of another length than the number of features.
    """

    value: Any = None
    slope: Any = None
    curvature: Any = None
    _kind: float  # the code of the family in prior tables, which `families` sets
    is_learned = False  # whether scales of the prior are parameters themselves: see `learned`

    @staticmethod
    def _power(rows, power):
        """Return the rows of a prior table, all of this family, changed in place to p(θ)^power."""
        rows[:, POWER] *= power
        return rows

    def _shape(self, name):
        """Return the shape parameter, 0 for families without one; errors call the prior `name`."""
        return 0.0

    def _positive(self, argument, name):
        """Return an argument of this prior as a float; raise if it is not positive and finite."""
        return check_positive(argument, getattr(self, argument), f"{name}={self!r}")

    def _table(self, shape, name="prior", units=None):
        """Return prior-table rows (kind, loc, scale, shape, power) for parameters of this `shape`.

        A scale of "auto" follows from the `units`; errors call the prior `name`.
        """
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
        """Return `loc` or `scale` as an array of `shape`, after a check that it is finite."""
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
        Returns total - log(p(v) v).
    ``slope(total, z, shape, s) -> float``
        Returns total plus the derivative of -log(p(v) v) in s.
    ``curvature(square, shape) -> float``
        Returns the second derivative of -log(p(v) v) in s, where `square` is z².

    Below the rounding error of the response (`Units.floor`) a factor exp(-(floor / v)² / 2) cuts
    the density off: without it there is no posterior for data that are fitted perfectly. The prior
    table contains the floor in place of the location.
    """

    def _table(self, shape, name="noise_prior", units=None):
        """Return prior-table rows (kind, floor, scale, shape, power), one for each parameter."""
        units = units or Units()
        scale = self._scale(name)
        scale = units.response if _is_auto(scale) else scale
        row = [self._kind, units.floor, scale, self._shape(name), 1.0]
        return np.tile(np.array(row), (int(np.prod(shape)), 1))

    @staticmethod
    def _tail(shape):
        """Return df if p(v) falls off as v^(-df - 1) for large v, or inf if it falls faster."""
        return np.inf

    def _scale(self, name):
        """Return the scale as a float, or "auto"; errors call the prior `name`."""
        return self.scale if _is_auto(self.scale) else self._positive("scale", name)
