"""A model whose likelihood is a function that a user gives.

f(η, y, *extras) is the log-likelihood of a row; η is a number if there is one linear predictor, an
array of them if there are several, and the extras are positive parameters. In the predictors
z = (η, log extras) of the engine ℓ = -f, ∂ℓ/∂z = -∂f/∂z, and the product with the Hessian is a
central difference of ∂ℓ/∂z along the direction.
"""

from functools import lru_cache

import numpy as np

from .._base import streams
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..models import Model
from .derivatives import (
    NOT_COMPLEX,
    STEP,
    WrongDerivative,
    compiled,
    differences_of,
    first_difference,
    guarded,
    steps_of,
)
from .frozen_values import frozen

__all__ = ["CustomLaw", "differences_law_of", "law_of"]

PLACES = 64  # number of rows, at most, at which derivatives are compared with differences of f
# `Model.cost` of a row whose derivatives are central differences: four values of f for each
# predictor.
BY_DIFFERENCES = 6.0
TINY = 1e-300  # added to extras: compiled code cannot divide complex numbers by zero


def _head(f, n_linear):
    """Return f as a compiled ``value(z, y, *extras)``; η is the first `n_linear` entries of z."""
    if n_linear == 1:
        return compiled(lambda z, y, *extras: f(z[0], y, *extras))
    return compiled(lambda z, y, *extras: f(z[:n_linear], y, *extras))


def _bound(g, j):
    """Return the function g(z, y, *extras) with its first extra fixed to e^z_j."""
    return compiled(lambda z, y, *extras: g(z, y, np.exp(z[j]) + TINY, *extras))


def _in_predictors(f, n_linear, n_extra):
    """Return ``value(z, y)``, which evaluates f at the predictors z = (η, log extras)."""
    value = _head(compiled(f), n_linear)
    for e in range(n_extra):
        value = _bound(value, n_linear + e)
    return value


def _given_slopes(derivative, n_linear, n_extra):
    """Return ``slopes(z, y, unit, out)``: out = ∂f/∂z from the user's ∂f/∂(η, extras).

    `unit` is not used: it is there so that all slopes have the same signature.
    """
    own = _in_predictors(derivative, n_linear, n_extra)
    if n_linear + n_extra == 1:

        def slopes(z, y, unit, out):
            for k in range(out.shape[0]):
                out[k, 0] = own(z[k], y[k])

    else:

        def slopes(z, y, unit, out):
            for k in range(out.shape[0]):
                found = own(z[k], y[k])
                for j in range(z.shape[1]):
                    out[k, j] = found[j] * (1.0 if j < n_linear else np.exp(z[k, j]))

    return compiled(slopes)


def _kernels(value, slopes, n_linear):
    """Return the kernels loss, derivative and curvature of a `Model` with ℓ = -f.

    `value` is f(z, y), and `slopes` its derivatives in z, for the rows of a block. The unit of the
    linear predictors is the last column of the facts, and the same in all rows.
    """

    def responses(facts, rows, start, stop):
        y = np.empty(stop - start)
        for k in range(stop - start):
            y[k] = facts[rows[start + k], FACT_Y]
        return y

    def units(facts, n):
        unit = np.ones(n)
        for j in range(n_linear):
            unit[j] = facts[0, facts.shape[1] - 1]
        return unit

    responses, units = compiled(responses), compiled(units)

    def loss(facts, rows, start, stop, eta):
        total = 0.0
        for k in range(stop - start):
            i = rows[start + k]
            total -= facts[i, FACT_WEIGHT] * value(eta[k], facts[i, FACT_Y])
        return total

    def derivative(facts, rows, start, stop, eta, terms_out):
        n, K = stop - start, eta.shape[1]
        slopes(eta[:n], responses(facts, rows, start, stop), units(facts, K), terms_out[:n])
        for k in range(n):
            for j in range(K):
                terms_out[k, j] *= -1.0

    # Loops in the place of sums of arrays: Numba would take four seconds to compile these.
    def curvature(facts, rows, start, stop, eta, u_out):
        n, K = stop - start, eta.shape[1]
        u, moved, found, h = u_out[:n].copy(), np.empty((n, K)), np.empty((n, K)), np.zeros(n)
        y, unit = responses(facts, rows, start, stop), units(facts, K)
        for k in range(n):
            size = 0.0
            for j in range(K):
                size = max(size, abs(u[k, j] / unit[j]))
                u_out[k, j] = 0.0
            if size > 0.0:
                h[k] = STEP / size
        for times, c in ((1.0, -8.0), (-1.0, 8.0), (2.0, 1.0), (-2.0, -1.0)):
            for k in range(n):
                for j in range(K):
                    moved[k, j] = eta[k, j] + times * h[k] * u[k, j]
            slopes(moved, y, unit, found)
            for k in range(n):
                for j in range(K):
                    if h[k] > 0.0:
                        u_out[k, j] += c / (12.0 * h[k]) * found[k, j]

    return compiled(loss), compiled(derivative), compiled(curvature)


def _shifted(value):
    """Return the kernel `add_shifted` of a `Model` with one linear predictor.

    Where f is not a number, as may be at predictors far from all rows, a row is impossible.
    """

    def add_shifted(facts, starts, eta, extras, shifts, losses_out):
        z = np.empty(1 + extras.shape[0])
        z[1:] = extras
        for level in range(shifts.shape[0]):
            for i in range(starts[level], starts[level + 1]):
                for k in range(shifts.shape[1]):
                    z[0] = eta[i] + shifts[level, k]
                    loss = -facts[i, FACT_WEIGHT] * value(z, facts[i, FACT_Y])
                    losses_out[level, k] += np.inf if np.isnan(loss) else loss

    return compiled(add_shifted)


def _values(value):
    """Return ``values(z, y, out)``: f at predictors z (rows, draws, K) and responses y (rows,)."""

    def values(z, y, out):
        for i in range(z.shape[0]):
            for s in range(z.shape[1]):
                out[i, s] = value(z[i, s], y[i])

    return compiled(values)


def _spaced(n):
    """Return the numbers of at most `PLACES` of n rows."""
    return np.linspace(0, n - 1, min(PLACES, n)).astype(int)


class CustomLaw(Model):
    """The model whose likelihood is a function of a user; `law_of` makes and caches it."""

    separable = False
    sure_start = False
    n_prior_starts = 10  # nothing is known about the shape of the user's function
    has_edge = True  # nothing is known about the behaviour of the user's function near zero
    cost = 2.0  # of complex steps; differences cost `BY_DIFFERENCES`

    def __init__(self, f, derivative, n_linear, n_extra):
        self.n_linear, self.n_extra = n_linear, n_extra
        self.value = _in_predictors(f, n_linear, n_extra)
        self.differences = differences_of(self.value)
        self.derivatives, self.slopes = self._choose(derivative)
        if self.derivatives == "finite difference":
            self.cost = self.cost_of_many = BY_DIFFERENCES
        self.loss, self.derivative, self.curvature = _kernels(self.value, self.slopes, n_linear)
        self._values = _values(self.value)
        self.add_shifted = _shifted(self.value) if n_linear == 1 else None
        self.more_labels = (1.0,)  # the unit of the linear predictors: see `with_unit`

    def _choose(self, derivative):
        """Return where the derivatives come from, as for `derivatives_`, and their slopes."""
        if derivative is not None:
            return "given", _given_slopes(derivative, self.n_linear, self.n_extra)
        steps, K = steps_of(self.value), self.n_predictors
        try:
            steps(np.zeros((1, K)), np.ones(1), np.ones(K), np.empty((1, K)))
            return "complex step", guarded(steps)
        except NOT_COMPLEX:
            return "finite difference", self.differences

    def with_unit(self, unit):
        """Return a copy of the model whose derivatives take η in another unit."""
        other = object.__new__(CustomLaw)
        vars(other).update(vars(self), more_labels=(float(unit),))
        return other

    def by_differences(self):
        """Return a copy of the model whose derivatives are central differences of f."""
        other = self.with_unit(*self.more_labels)
        other.derivatives, other.slopes = "finite difference", self.differences
        other.cost = other.cost_of_many = BY_DIFFERENCES
        other.loss, other.derivative, other.curvature = _kernels(
            self.value, self.differences, self.n_linear
        )
        return other

    def log_likelihood(self, z, y):
        """Return f, (rows, draws), at predictors z (rows, draws, K) and responses y (rows,)."""
        out = np.empty(z.shape[:2])
        self._values(np.ascontiguousarray(z), y, out)
        return out

    def disagreement(self, y, unit):
        """Return the first place where the slope is not the derivative of f, or None.

        It is a tuple as from `first_difference`. Places lie around η = 0 in units of 1, and around
        the median of the responses y in multiples of `unit`.
        """
        if self.derivatives == "finite difference":
            return None
        rows = y[_spaced(len(y))]
        places = self._places(rows, 0.0, 1.0) + self._places(rows, np.median(y), unit)
        with np.errstate(all="ignore"):
            return first_difference(self.slopes, self.differences, places)

    def check_derivatives(self, target, theta):
        """Raise `WrongDerivative` if the slope is not the derivative of f at predictors of θ."""
        if self.derivatives == "finite difference":
            return
        rows = _spaced(target.n_rows)
        eta, y = target.along(target.design(rows), theta), target.data.facts[rows, FACT_Y]
        units = np.r_[np.full(self.n_linear, self.more_labels[0]), np.ones(self.n_extra)]
        places = [(np.array(z), float(v), units) for z, v in zip(eta, y, strict=True)]
        with np.errstate(all="ignore"):
            wrong = first_difference(self.slopes, self.differences, places)
        if wrong is not None:
            raise WrongDerivative(wrong)

    def _places(self, rows, level, unit):
        """Return random places (z, y, units), one for each response in `rows`.

        Linear predictors have mean `level` and standard deviation `unit`; logarithms of extras have
        mean log(unit) and standard deviation 1.
        """
        units = np.r_[np.full(self.n_linear, unit), np.ones(self.n_extra)]
        centre = np.r_[np.full(self.n_linear, level), np.full(self.n_extra, np.log(unit))]
        normals = streams.fixed().standard_normal((len(rows), len(units)))
        return [(centre + units * x, float(y), units) for x, y in zip(normals, rows, strict=True)]


def law_of(f, derivative, n_linear, n_extra):
    """Return the `CustomLaw` of these functions.

    It is compiled once in a process for the values of the variables that they read.
    """
    return _law_of(frozen(f), frozen(derivative), n_linear, n_extra)


@lru_cache(maxsize=64)
def _law_of(f, derivative, n_linear, n_extra):
    return CustomLaw(f.function, derivative and derivative.function, n_linear, n_extra)


def differences_law_of(f, n_linear, n_extra):
    """Return the `CustomLaw` of f with derivatives by central differences alone."""
    return _differences_law_of(frozen(f), n_linear, n_extra)


@lru_cache(maxsize=64)
def _differences_law_of(f, n_linear, n_extra):
    return _law_of(f, None, n_linear, n_extra).by_differences()
