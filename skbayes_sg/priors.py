"""Prior distributions of the parameters, and their exact gradient.

The prior is a piece of its own: its gradient is evaluated in full at every step and is never
rescaled by the size of a batch.
"""

import math

import numpy as np
from sklearn.base import BaseEstimator

from ._jit import entry
from .exceptions import InvalidParameterError

__all__ = ["Flat", "Laplace", "Normal", "Prior", "StudentT"]

# Columns of a prior table, one row a parameter, and the codes of its first column.
KIND, LOC, SCALE, SHAPE = 0, 1, 2, 3
FLAT, NORMAL, LAPLACE, STUDENT_T = 0.0, 1.0, 2.0, 3.0


@entry
def prior_value(prior, theta):
    """-log p(θ), up to a constant."""
    total = 0.0
    for j in range(theta.shape[0]):
        kind, shape = prior[j, KIND], prior[j, SHAPE]
        z = (theta[j] - prior[j, LOC]) / prior[j, SCALE]
        if kind == NORMAL:
            total += 0.5 * z * z
        elif kind == LAPLACE:
            total += math.sqrt(z * z + shape * shape)
        elif kind == STUDENT_T:
            total += 0.5 * (shape + 1.0) * math.log1p(z * z / shape)
    return total


@entry
def prior_gradient(prior, theta, g_out):
    """g_out += ∇(-log p)(θ); zero at the kink of a Laplace prior."""
    for j in range(theta.shape[0]):
        kind, shape = prior[j, KIND], prior[j, SHAPE]
        z = (theta[j] - prior[j, LOC]) / prior[j, SCALE]
        if kind == NORMAL:
            g_out[j] += z / prior[j, SCALE]
        elif kind == LAPLACE:
            if z != 0.0:
                g_out[j] += z / math.sqrt(z * z + shape * shape) / prior[j, SCALE]
        elif kind == STUDENT_T:
            g_out[j] += (shape + 1.0) * z / (shape + z * z) / prior[j, SCALE]


def prior_curvature(prior, theta):
    """Diagonal of a positive semi-definite ∇²(-log p)(θ).

    For Student's t, whose own second derivative changes sign, it is that of the quadratic that
    touches -log p at θ from above.
    """
    kind, loc, scale, shape = np.asarray(prior).T
    z = (theta - loc) / scale
    given = np.where(shape > 0.0, shape, 1.0)  # of kinds that have one
    laplace = given**2 / (z**2 + given**2) ** 1.5
    student = (given + 1.0) / (given + z**2)
    kinds = [kind == NORMAL, (kind == LAPLACE) & (shape > 0.0), kind == STUDENT_T]
    return np.select(kinds, [1.0, laplace, student], 0.0) / scale**2


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

    def _table(self, shape, name="prior"):
        """One row (kind, loc, scale, shape) for each of the parameters of an array of `shape`."""
        loc = self._spread("loc", shape, name)
        scale = self._spread("scale", shape, name)
        if not (scale > 0.0).all():
            raise InvalidParameterError(
                f"The scale of {name}={self!r} must be positive, got {scale.min()!r}."
            )
        columns = np.full_like(loc, self._kind), loc, scale, np.full_like(loc, self._shape())
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


class Normal(Prior):
    """Normal prior, ``p(θ) ∝ exp(-(θ - loc)² / (2 scale²))``.

    ``Normal(scale=s)`` on the coefficients is the ridge penalty of
    `sklearn.linear_model.LogisticRegression` with ``C = s**2``; the default is its default.

    Parameters
    ----------
    loc : float or array of shape (n_features,), default=0.0
        Mean.
    scale : float or array of shape (n_features,), default=1.0
        Standard deviation, in the units of the coefficients.

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
    scale : float or array of shape (n_features,), default=1.0
        Mean absolute deviation, in the units of the coefficients.

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
    scale : float or array of shape (n_features,), default=1.0
        Scale, in the units of the coefficients.

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


PRIORS = {"normal": Normal, "laplace": Laplace, "student_t": StudentT, "flat": Flat}


def resolve(value, name="prior"):
    """The prior object for a string or an object."""
    if isinstance(value, Prior):
        return value
    if isinstance(value, str) and value in PRIORS:
        return PRIORS[value]()
    raise InvalidParameterError(
        f"The {name!r} parameter must be one of {sorted(PRIORS)} or a prior object of "
        f"skbayes_sg.priors, got {value!r}."
    )
