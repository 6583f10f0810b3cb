"""Prior distributions of the parameters, and their exact gradient.

The prior is a piece of its own: its gradient is evaluated in full at every step and is never
rescaled by the size of a batch.

Positive parameters v (the standard deviation of noise) are sampled as s = log v, so their priors
are those of s: p(e^s) e^s. All of them are log-concave in s.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ._base.jit import entry, inlined
from .exceptions import InvalidParameterError

__all__ = [
    "Flat", "Gamma", "HalfCauchy", "HalfNormal", "HalfStudentT", "InverseGamma", "Laplace",
    "Normal", "PositivePrior", "Prior", "StudentT", "Units",
]  # fmt: skip

# Columns of a prior table, one row a parameter, and the codes of its first column.
KIND, LOC, SCALE, SHAPE, POWER = 0, 1, 2, 3, 4
N_COLUMNS = 5
FLAT, NORMAL, LAPLACE, STUDENT_T = 0.0, 1.0, 2.0, 3.0
# Priors of a positive v, as functions of s = log v; their loc is a floor below which v cannot be.
HALF_NORMAL, HALF_STUDENT_T, INVERSE_GAMMA, GAMMA, UNIFORM = 4.0, 5.0, 6.0, 7.0, 8.0

AUTO_SCALE = 2.5  # standard deviations of the response for one of the column


@inlined
def positive_value(kind, s, floor, scale, shape):
    """-log(p(e^s) e^s) up to a constant, and (floor e^-s)²/2."""
    z, f = math.exp(s) / scale, floor * math.exp(-s)
    value = 0.5 * f * f
    if kind == HALF_NORMAL:
        value += 0.5 * z * z - s
    elif kind == HALF_STUDENT_T:
        value += 0.5 * (shape + 1.0) * math.log1p(z * z / shape) - s
    elif kind == INVERSE_GAMMA:
        value += 0.5 / (z * z) + 2.0 * shape * s
    elif kind == GAMMA:
        value += z - shape * s
    else:
        value -= s
    return value


@inlined
def positive_slope(kind, s, floor, scale, shape):
    """Its derivative in s."""
    z, f = math.exp(s) / scale, floor * math.exp(-s)
    slope = -f * f
    if kind == HALF_NORMAL:
        slope += z * z - 1.0
    elif kind == HALF_STUDENT_T:
        slope += (shape + 1.0) * z * z / (shape + z * z) - 1.0
    elif kind == INVERSE_GAMMA:
        slope += 2.0 * shape - 1.0 / (z * z)
    elif kind == GAMMA:
        slope += z - shape
    else:
        slope -= 1.0
    return slope


@entry
def prior_value(prior, theta):
    """-log p(θ), up to a constant."""
    total = 0.0
    for j in range(theta.shape[0]):
        kind, shape = prior[j, KIND], prior[j, SHAPE]
        if kind > STUDENT_T:
            own = positive_value(kind, theta[j], prior[j, LOC], prior[j, SCALE], shape)
            total += prior[j, POWER] * own
            continue
        z = (theta[j] - prior[j, LOC]) / prior[j, SCALE]
        if kind == NORMAL:
            total += 0.5 * z * z
        elif kind == LAPLACE:
            total += math.sqrt(z * z + shape * shape)
        elif kind == STUDENT_T:
            total += 0.5 * prior[j, POWER] * (shape + 1.0) * math.log1p(z * z / shape)
    return total


@entry
def prior_gradient(prior, theta, g_out):
    """g_out += ∇(-log p)(θ); zero at the kink of a Laplace prior."""
    for j in range(theta.shape[0]):
        kind, shape = prior[j, KIND], prior[j, SHAPE]
        if kind > STUDENT_T:
            slope = positive_slope(kind, theta[j], prior[j, LOC], prior[j, SCALE], shape)
            g_out[j] += prior[j, POWER] * slope
            continue
        z = (theta[j] - prior[j, LOC]) / prior[j, SCALE]
        if kind == NORMAL:
            g_out[j] += z / prior[j, SCALE]
        elif kind == LAPLACE:
            if z != 0.0:
                g_out[j] += z / math.sqrt(z * z + shape * shape) / prior[j, SCALE]
        elif kind == STUDENT_T:
            slope = prior[j, POWER] * (shape + 1.0) * z / (shape + z * z)
            g_out[j] += slope / prior[j, SCALE]


def prior_curvature(prior, theta):
    """Diagonal of a positive semi-definite ∇²(-log p)(θ).

    For Student's t, whose own second derivative changes sign, it is that of the quadratic that
    touches -log p at θ from above.
    """
    kind, loc, scale, shape, power = np.asarray(prior).T
    z = (theta - loc) / scale
    given = np.where(shape > 0.0, shape, 1.0)  # of kinds that have one
    laplace = given**2 / (z**2 + given**2) ** 1.5
    student = (given + 1.0) / (given + z**2)
    kinds = [kind == NORMAL, (kind == LAPLACE) & (shape > 0.0), kind == STUDENT_T]
    curvature = np.select(kinds, [1.0, laplace, power * student], 0.0) / scale**2
    for j in np.flatnonzero(kind > STUDENT_T):
        own = _positive_curvature(kind[j], theta[j], loc[j], scale[j], shape[j])
        curvature[j] = power[j] * own
    return curvature


def powered(prior, power):
    """The table of p(θ)^power: a share of a prior, for a part of the rows.

    Normal and Laplace priors stay normal and Laplace, with other scales. Of a positive parameter it
    is a power of the density of its logarithm.
    """
    out = np.array(prior, dtype=np.float64)
    kind = out[:, KIND]
    out[kind == NORMAL, SCALE] /= math.sqrt(power)
    out[kind == LAPLACE, SCALE] /= power
    out[kind >= STUDENT_T, POWER] *= power
    return out


def _positive_curvature(kind, s, floor, scale, shape):
    """Second derivative of `positive_value`."""
    square = np.exp(2.0 * (s - np.log(scale)))
    of_kind = {
        HALF_NORMAL: 2.0 * square,
        HALF_STUDENT_T: 2.0 * shape * (shape + 1.0) * square / (shape + square) ** 2,
        INVERSE_GAMMA: 2.0 / square,
        GAMMA: np.sqrt(square),
        UNIFORM: 0.0,
    }
    return of_kind[kind] + 2.0 * (floor * np.exp(-s)) ** 2


def starting_point(prior):
    """Where to look for the mode first: the middle of each prior."""
    positive = prior[:, KIND] > STUDENT_T
    return np.where(positive, np.log(np.where(positive, prior[:, SCALE], 1.0)), prior[:, LOC])


@dataclass(frozen=True)
class Units:
    """What "auto" scales of priors are measured in.

    Parameters
    ----------
    response : float
        Standard deviation of the response; 1 where it has no unit.
    columns : callable
        Gives the standard deviation of each column of X.
    floor : float
        Below which no standard deviation of noise can be: the rounding error of the response.

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
        return AUTO_SCALE * self.response / self.columns()


class Prior(BaseEstimator):
    """Base of all priors: independent over parameters, given by a table of numbers.

    Subclasses set ``_kind`` and store their parameters; ``loc`` and ``scale`` are scalars or
    arrays with one value a feature. The gradient of a prior is exact at every step: it is never
    subsampled, nor rescaled by the number of rows.

    Priors raise an `InvalidParameterError` in `fit`, for a scale that is not positive, for values
    that are not finite, and for arrays of another length than the number of features.
    """

    _kind: float

    def _shape(self):
        return 0.0

    def _table(self, shape, name="prior", units=None):
        """One row (kind, loc, scale, shape, power) for each parameter of an array of `shape`."""
        loc = self._spread("loc", shape, name)
        if _is_auto(getattr(self, "scale", None)) and units is not None:
            scale = np.broadcast_to(units.of_coefficients(), shape)
        else:
            scale = self._spread("scale", shape, name)
        if not (scale > 0.0).all():
            raise InvalidParameterError(
                f"The scale of {name}={self!r} must be positive, got {scale.min()!r}."
            )
        kind, given = np.full_like(loc, self._kind), np.full_like(loc, self._shape())
        columns = kind, loc, scale, given, np.ones_like(loc)
        return np.stack([c.ravel() for c in columns], axis=1)

    def _spread(self, argument, shape, name):
        value = getattr(self, argument, 0.0 if argument == "loc" else 1.0)
        try:
            array = np.asarray(value, dtype=np.float64)
            spread = np.broadcast_to(array, shape)
        except (TypeError, ValueError) as error:
            raise InvalidParameterError(
                f"The {argument} of {name}={self!r} must be a number or hold one value a feature "
                f"(shape {shape}), got {value!r}."
            ) from error
        if not np.isfinite(array).all():
            raise InvalidParameterError(
                f"The {argument} of {name}={self!r} must be finite, got {value!r}."
            )
        return spread


def _is_auto(value):
    return isinstance(value, str) and value == "auto"


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

    _kind = NORMAL

    def __init__(self, loc=0.0, scale=1.0):
        self.loc = loc
        self.scale = scale


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

    _kind = LAPLACE

    def __init__(self, loc=0.0, scale=1.0):
        self.loc = loc
        self.scale = scale


class StudentT(Prior):
    """Student's t prior, ``p(θ) ∝ (1 + ((θ - loc) / scale)² / df)^(-(df + 1) / 2)``.

    Heavy tails: few large coefficients are shrunk less than under a normal prior. The standard
    deviation of the prior is ``scale * sqrt(df / (df - 2))`` for df > 2, else infinite. It is not
    log-concave: with few data a posterior may have more than one mode.

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

    _kind = STUDENT_T

    def __init__(self, df=4.0, loc=0.0, scale=1.0):
        self.df = df
        self.loc = loc
        self.scale = scale

    def _shape(self):
        if not (np.isscalar(self.df) and np.isfinite(self.df) and self.df > 0):
            raise InvalidParameterError(f"The df of {self!r} must be a positive number.")
        return float(self.df)


class Flat(Prior):
    """Improper flat prior, ``p(θ) ∝ 1``.

    The posterior exists only where the data determine every coefficient; `fit` raises a
    `ValueError` where they do not (dependent columns, separable classes).

    Examples
    --------
    >>> from skbayes_sg.priors import Flat
    >>> Flat()
    Flat()
    """

    _kind = FLAT


class PositivePrior(Prior):
    """Base of the priors of positive parameters, such as the standard deviation σ of noise.

    The parameter v is sampled as log v, with the density p(v) v. Below the rounding error of the
    response (`Units.floor`) the density is cut off by a factor exp(-(floor / v)² / 2): without it
    data that are fitted perfectly have no posterior.
    """

    def _table(self, shape, name="noise_prior", units=None):
        """One row (kind, floor, scale, shape, power) a parameter."""
        units = units or Units()
        scale = units.response if _is_auto(self._scale()) else self._positive(self._scale(), name)
        row = [self._kind, units.floor, scale, self._shape(), 1.0]
        return np.tile(np.array(row), (int(np.prod(shape)), 1))

    def _scale(self):
        return self.scale

    def _positive(self, value, name):
        number = np.isscalar(value) and not isinstance(value, (str, bool, np.bool_))
        if not (number and np.isfinite(value) and value > 0):
            raise InvalidParameterError(
                f"The parameters of {name}={self!r} must be positive numbers, got {value!r}."
            )
        return float(value)


class HalfNormal(PositivePrior):
    """Half-normal prior of a positive v, ``p(v) ∝ exp(-v² / (2 scale²))``.

    Parameters
    ----------
    scale : float or "auto", default="auto"
        In the units of v. "auto" is the standard deviation of the response.

    Examples
    --------
    >>> from skbayes_sg.priors import HalfNormal
    >>> HalfNormal(scale=2.0)
    HalfNormal(scale=2.0)
    """

    _kind = HALF_NORMAL

    def __init__(self, scale="auto"):
        self.scale = scale


class HalfStudentT(PositivePrior):
    """Half Student's t prior of a positive v, ``p(v) ∝ (1 + (v / scale)² / df)^(-(df + 1) / 2)``.

    Parameters
    ----------
    df : float, default=3.0
        Degrees of freedom, positive.
    scale : float or "auto", default="auto"
        In the units of v. "auto" is the standard deviation of the response.

    Examples
    --------
    >>> from skbayes_sg.priors import HalfStudentT
    >>> HalfStudentT(df=4.0, scale=2.0)
    HalfStudentT(df=4.0, scale=2.0)
    """

    _kind = HALF_STUDENT_T

    def __init__(self, df=3.0, scale="auto"):
        self.df = df
        self.scale = scale

    def _shape(self):
        return self._positive(self.df, "noise_prior")


class HalfCauchy(PositivePrior):
    """Half-Cauchy prior of a positive v, ``p(v) ∝ 1 / (1 + (v / scale)²)``.

    Parameters
    ----------
    scale : float or "auto", default="auto"
        Median, in the units of v. "auto" is the standard deviation of the response.

    Examples
    --------
    >>> from skbayes_sg.priors import HalfCauchy
    >>> HalfCauchy(scale=5.0)
    HalfCauchy(scale=5.0)
    """

    _kind = HALF_STUDENT_T

    def __init__(self, scale="auto"):
        self.scale = scale

    def _shape(self):
        return 1.0


class InverseGamma(PositivePrior):
    """Inverse gamma prior of v², ``p(v²) ∝ (v²)^(-alpha - 1) exp(-beta / v²)``.

    The conjugate prior of a noise variance. With small alpha and beta it is not vague where v is
    small; a half-normal or half Student's t prior is the better default.

    Parameters
    ----------
    alpha : float, default=1.0
        Positive.
    beta : float, default=1.0
        Positive, in the units of v².

    Examples
    --------
    >>> from skbayes_sg.priors import InverseGamma
    >>> InverseGamma(alpha=2.0, beta=0.5)
    InverseGamma(alpha=2.0, beta=0.5)
    """

    _kind = INVERSE_GAMMA

    def __init__(self, alpha=1.0, beta=1.0):
        self.alpha = alpha
        self.beta = beta

    def _scale(self):
        return math.sqrt(2.0 * self._positive(self.beta, "noise_prior"))

    def _shape(self):
        return self._positive(self.alpha, "noise_prior")


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

    _kind = GAMMA

    def __init__(self, shape=2.0, rate=0.1):
        self.shape = shape
        self.rate = rate

    def _scale(self):
        return 1.0 / self._positive(self.rate, "df_prior")

    def _shape(self):
        return self._positive(self.shape, "df_prior")


class _Uniform(PositivePrior):
    """Improper flat prior of a positive v."""

    _kind = UNIFORM

    def _scale(self):
        return "auto"


PRIORS = {"normal": Normal, "laplace": Laplace, "student_t": StudentT, "flat": Flat}
POSITIVE_PRIORS = {
    "half_normal": HalfNormal, "half_student_t": HalfStudentT, "half_cauchy": HalfCauchy,
    "inverse_gamma": InverseGamma, "flat": _Uniform,
}  # fmt: skip


def resolve(value, name="prior", *, auto=False):
    """The prior object for a string or an object; strings mean scales that are "auto", if so."""
    if isinstance(value, Prior) and not isinstance(value, PositivePrior):
        return value
    if isinstance(value, str) and value in PRIORS:
        return PRIORS[value](scale="auto") if auto and value != "flat" else PRIORS[value]()
    raise InvalidParameterError(
        f"The {name!r} parameter must be one of {sorted(PRIORS)} or a prior object of "
        f"skbayes_sg.priors, got {value!r}."
    )


def resolve_positive(value, name="noise_prior"):
    """The prior object of a positive parameter, for a string or an object."""
    if isinstance(value, Flat):
        return _Uniform()
    if isinstance(value, PositivePrior):
        return value
    if isinstance(value, str) and value in POSITIVE_PRIORS:
        return POSITIVE_PRIORS[value]()
    raise InvalidParameterError(
        f"The {name!r} parameter must be one of {sorted(POSITIVE_PRIORS)} or a prior of a positive "
        f"number of skbayes_sg.priors, such as HalfNormal(scale=2.0), got {value!r}."
    )
