r"""Locations of points in space: posteriors with heavy tails, several modes, or a bent shape.

These are the comparison targets of Baker et al. (2019, section 3), for tests of samplers and of
combinations of subposteriors. A row is a point :math:`x_i`, and all parameters are predictors of
every row (``n_extra``), so there is no X. The labels of a row are the point, then a precision
matrix A. With :math:`q_i(\theta) = (x_i - \theta)^\top A (x_i - \theta)`,

* `GaussianLocation`: :math:`\ell_i = \tfrac12 q_i(\theta)`;
* `TLocation`: :math:`\ell_i = \tfrac12 (\nu + d) \log(1 + q_i(\theta) / \nu)`;
* `MixtureLocations`: :math:`\ell_i = -\log \sum_{k=1,2} \tfrac12 e^{-q_i(\theta_k)/2}`;
* `WarpedLocation`: :math:`\ell_i = (x_i - \theta_1 - \theta_2^2)^2 / (2 \sigma^2)`, for numbers.

The curvatures of these models are those of quadratic upper bounds of :math:`\ell_i` (Gauss-Newton
for the warped one), which give samplers a metric even if a posterior is not log-concave.
"""

import math

import numpy as np

from .._base.jit import inner, jit
from ..engine.target import Target
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..models._base import Model
from ..priors import Normal

__all__ = ["GaussianLocation", "MixtureLocations", "TLocation", "WarpedLocation"]
__all__ += ["location_posterior"]


@inner
def _label(facts, i, number, n_labels):
    """Label `number` of row i: label 0 has a column of its own, the others are the last columns."""
    return facts[i, FACT_Y] if number == 0 else facts[i, facts.shape[1] - n_labels + number]


@inner
def _pull(facts, i, theta, first, d, j):
    """Component j of A (θ - x_i), with θ in ``theta[first : first + d]``."""
    total, n_labels = 0.0, d + d * d
    for c in range(d):
        a = _label(facts, i, d + j * d + c, n_labels)
        total += a * (theta[first + c] - _label(facts, i, c, n_labels))
    return total


@inner
def _form(facts, i, theta, first, d):
    """The quadratic form q_i(θ), with θ in ``theta[first : first + d]``."""
    total = 0.0
    for j in range(d):
        apart = theta[first + j] - _label(facts, i, j, d + d * d)
        total += apart * _pull(facts, i, theta, first, d, j)
    return total


@inner
def _times_precision(facts, i, u, first, d, scale, work):
    """Replace u by scale A u, in ``u[first : first + d]``; `work` is scratch of length d."""
    n_labels = d + d * d
    for j in range(d):
        work[j] = 0.0
        for c in range(d):
            work[j] += _label(facts, i, d + j * d + c, n_labels) * u[first + c]
    for j in range(d):
        u[first + j] = scale * work[j]


# -- Gaussian -------------------------------------------------------------------------------------


@jit
def _gaussian_loss(facts, rows, start, stop, eta):
    total, d = 0.0, eta.shape[1]
    for k in range(start, stop):
        total += facts[rows[k], FACT_WEIGHT] * 0.5 * _form(facts, rows[k], eta[k - start], 0, d)
    return total


@jit
def _gaussian_derivative(facts, rows, start, stop, eta, terms_out):
    d = eta.shape[1]
    for k in range(start, stop):
        for j in range(d):
            terms_out[k - start, j] = _pull(facts, rows[k], eta[k - start], 0, d, j)


@jit
def _gaussian_curvature(facts, rows, start, stop, eta, u_out):
    d = eta.shape[1]
    work = np.empty(d)
    for k in range(start, stop):
        _times_precision(facts, rows[k], u_out[k - start], 0, d, 1.0, work)


# -- Student's t: the labels have A/ν in place of A, and the weights the factor ν + d --------------


@jit
def _t_loss(facts, rows, start, stop, eta):
    total, d = 0.0, eta.shape[1]
    for k in range(start, stop):
        q = _form(facts, rows[k], eta[k - start], 0, d)
        total += facts[rows[k], FACT_WEIGHT] * 0.5 * math.log1p(q)
    return total


@jit
def _t_derivative(facts, rows, start, stop, eta, terms_out):
    d = eta.shape[1]
    for k in range(start, stop):
        share = 1.0 / (1.0 + _form(facts, rows[k], eta[k - start], 0, d))
        for j in range(d):
            terms_out[k - start, j] = share * _pull(facts, rows[k], eta[k - start], 0, d, j)


@jit
def _t_curvature(facts, rows, start, stop, eta, u_out):
    d = eta.shape[1]
    work = np.empty(d)
    for k in range(start, stop):
        share = 1.0 / (1.0 + _form(facts, rows[k], eta[k - start], 0, d))
        _times_precision(facts, rows[k], u_out[k - start], 0, d, share, work)


# -- mixture --------------------------------------------------------------------------------------


@inner
def _first_share(facts, i, theta, d):
    """Probability that row i belongs to the first location."""
    change = 0.5 * (_form(facts, i, theta, 0, d) - _form(facts, i, theta, d, d))
    z = math.exp(-abs(change))  # never overflows
    return (z if change >= 0.0 else 1.0) / (1.0 + z)


@jit
def _mixture_loss(facts, rows, start, stop, eta):
    total, d = 0.0, eta.shape[1] // 2
    for k in range(start, stop):
        one = 0.5 * _form(facts, rows[k], eta[k - start], 0, d)
        other = 0.5 * _form(facts, rows[k], eta[k - start], d, d)
        below = min(one, other) - math.log1p(math.exp(-abs(one - other)))
        total += facts[rows[k], FACT_WEIGHT] * below
    return total


@jit
def _mixture_derivative(facts, rows, start, stop, eta, terms_out):
    d = eta.shape[1] // 2
    for k in range(start, stop):
        p = _first_share(facts, rows[k], eta[k - start], d)
        for j in range(d):
            terms_out[k - start, j] = p * _pull(facts, rows[k], eta[k - start], 0, d, j)
            terms_out[k - start, d + j] = (1.0 - p) * _pull(facts, rows[k], eta[k - start], d, d, j)


@jit
def _mixture_curvature(facts, rows, start, stop, eta, u_out):
    d = eta.shape[1] // 2
    work = np.empty(d)
    for k in range(start, stop):
        p = _first_share(facts, rows[k], eta[k - start], d)
        _times_precision(facts, rows[k], u_out[k - start], 0, d, p, work)
        _times_precision(facts, rows[k], u_out[k - start], d, d, 1.0 - p, work)


# -- warped: the weights have the factor 1/σ² ------------------------------------------------------


@jit
def _warped_loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(start, stop):
        apart = eta[k - start, 0] + eta[k - start, 1] ** 2 - facts[rows[k], FACT_Y]
        total += facts[rows[k], FACT_WEIGHT] * 0.5 * apart * apart
    return total


@jit
def _warped_derivative(facts, rows, start, stop, eta, terms_out):
    for k in range(start, stop):
        apart = eta[k - start, 0] + eta[k - start, 1] ** 2 - facts[rows[k], FACT_Y]
        terms_out[k - start, 0] = apart
        terms_out[k - start, 1] = 2.0 * eta[k - start, 1] * apart


@jit
def _warped_curvature(facts, rows, start, stop, eta, u_out):
    for k in range(stop - start):
        slope = 2.0 * eta[k, 1]
        along = u_out[k, 0] + slope * u_out[k, 1]
        u_out[k, 0], u_out[k, 1] = along, slope * along


# -- models ---------------------------------------------------------------------------------------


class _Location(Model):
    """Base of the models: all parameters are predictors of every row, and there is no X."""

    n_linear = 0
    separable = False

    def rows(self, x):
        """Labels and weights of the rows for points x of shape (n_rows, d)."""
        x = np.asarray(x, dtype=np.float64).reshape(len(x), -1)
        if x.shape[1] != self.n_dimensions:
            raise ValueError(f"x must have {self.n_dimensions} columns, got {x.shape[1]}.")
        A = np.broadcast_to(self.precision.ravel(), (len(x), self.precision.size))
        return np.concatenate([x, A], axis=1), np.full(len(x), self.weight)


def _inverse(scale):
    """The inverse of a square matrix; `ValueError` for other shapes."""
    scale = np.atleast_2d(np.asarray(scale, dtype=np.float64))
    if scale.ndim != 2 or scale.shape[0] != scale.shape[1]:
        raise ValueError(f"scale must be a square matrix, got the shape {scale.shape}.")
    return np.linalg.inv(scale)


class GaussianLocation(_Location):
    """Location of Gaussian points: x_i ~ N(θ, scale).

    Parameters
    ----------
    scale : array of shape (d, d)
        Known covariance matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.inspection.known_posteriors import GaussianLocation
    >>> GaussianLocation(np.eye(3)).n_predictors
    3
    """

    loss = staticmethod(_gaussian_loss)
    derivative = staticmethod(_gaussian_derivative)
    curvature = staticmethod(_gaussian_curvature)
    weight = 1.0

    def __init__(self, scale):
        self.precision = _inverse(scale)
        self.n_dimensions = self.n_extra = len(self.precision)


class TLocation(_Location):
    """Location of points with a multivariate Student's t distribution: heavy tails.

    Parameters
    ----------
    scale : array of shape (d, d)
        Known scale matrix.
    df : float
        Known degrees of freedom ν, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.inspection.known_posteriors import TLocation
    >>> TLocation(np.eye(2), df=3.0).n_predictors
    2
    """

    loss = staticmethod(_t_loss)
    derivative = staticmethod(_t_derivative)
    curvature = staticmethod(_t_curvature)

    def __init__(self, scale, df):
        self.precision = _inverse(scale) / df
        self.n_dimensions = self.n_extra = len(self.precision)
        self.weight = df + self.n_dimensions


class MixtureLocations(_Location):
    """Two locations of points that have either with equal probability: x_i ~ ½ N(θ₁) + ½ N(θ₂).

    The locations can be exchanged. So a posterior has two modes, or one between them, unless the
    prior distinguishes the locations. The parameters are θ₁, then θ₂.

    Parameters
    ----------
    scale : array of shape (d, d)
        Known covariance matrix of both.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.inspection.known_posteriors import MixtureLocations
    >>> MixtureLocations(np.eye(2)).n_predictors
    4
    """

    loss = staticmethod(_mixture_loss)
    derivative = staticmethod(_mixture_derivative)
    curvature = staticmethod(_mixture_curvature)
    weight = 1.0

    def __init__(self, scale):
        self.precision = _inverse(scale)
        self.n_dimensions = len(self.precision)
        self.n_extra = 2 * self.n_dimensions


class WarpedLocation(_Location):
    """A bent ridge: numbers x_i ~ N(θ₁ + θ₂², sd²) determine one combination of two parameters.

    Parameters
    ----------
    sd : float
        Known standard deviation.

    Examples
    --------
    >>> from skbayes_sg.inspection.known_posteriors import WarpedLocation
    >>> WarpedLocation(sd=2.0).weight
    0.25
    """

    loss = staticmethod(_warped_loss)
    derivative = staticmethod(_warped_derivative)
    curvature = staticmethod(_warped_curvature)
    n_extra = 2
    n_dimensions = 1
    precision = np.empty((0, 0))

    def __init__(self, sd):
        self.weight = 1.0 / float(sd) ** 2


def location_posterior(model, x, prior=None):
    """Return the posterior of a model of this module as a target for samplers.

    Parameters
    ----------
    model : GaussianLocation, TLocation, MixtureLocations or WarpedLocation
    x : array of shape (n_rows, n_dimensions)
        The points.
    prior : Prior, optional
        Prior of every parameter; ``Normal(scale=100.0)`` if None.

    Returns
    -------
    skbayes_sg.engine.target.Target
        For `skbayes_sg.recipe.choose.sample_posterior`, and for `skbayes_sg.shards.sample.Sharded`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.recipe.choose import sample_posterior
    >>> from skbayes_sg.dynamics import HMC
    >>> from skbayes_sg.inspection.known_posteriors import TLocation, location_posterior
    >>> from skbayes_sg.recipe.request import Request
    >>> x = np.random.default_rng(0).standard_t(3.0, size=(500, 2))
    >>> target = location_posterior(TLocation(np.eye(2), df=3.0), x)
    >>> draws = sample_posterior(target, Request(sampler=HMC(), n_draws=500)).draws
    >>> draws.shape
    (4, 500, 2)
    """
    labels, weight = model.rows(x)
    table = (Normal(scale=100.0) if prior is None else prior)._table((model.n_extra,))
    nothing = np.zeros((len(labels), 1))
    return Target(nothing, labels, weight, model, table, intercept=False)
