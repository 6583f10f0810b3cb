"""Row densities that users give: functions of the parameters and the numbers of a row.

f(θ, row) is the log-likelihood of a row. The parameters θ are as users have them; the chain moves
in z, the logarithms of the positive ones, where ∂f/∂z_j = θ_j ∂f/∂θ_j.
"""

from functools import lru_cache

import numpy as np

from .._base import streams
from ..densities.density import RowDensity, numbers_of_rows
from ..kernels.layout import FACT_WEIGHT
from .arrays import OVERHEAD, functions_of, kernels_of
from .derivatives import (
    NOT_COMPLEX,
    WrongDerivative,
    compiled,
    differences_of,
    first_difference,
    guarded,
    steps_of,
)
from .frozen_values import frozen

__all__ = ["RowLaw", "row_law_of"]

PLACES = 32  # number of rows, at most, at which derivatives are compared with differences of f
# The same for functions of JAX and PyTorch, a call of which takes a hundred times as long.
PLACES_OF_LIBRARIES = 4
BLOCK_OF_LIBRARIES = 8192  # rows of one call of a function of JAX or PyTorch, at most
TINY = 1e-300  # added to positive parameters: compiled code cannot divide complex numbers by zero
# Standard deviation of the places of comparison around the start, in units of the parameters.
SPREAD = 0.1


def _natural(positive):
    """Return ``natural(z)``, which gives θ: e^z_j where parameter j is positive, z_j elsewhere."""

    def natural(z):
        theta = z.copy()
        for j in range(z.shape[0]):
            if positive[j]:
                theta[j] = np.exp(z[j]) + TINY
        return theta

    return compiled(natural)


def _batched(of_row):
    """Return ``values(theta, rows, out)``: out = f of each row, from the function f of one row."""

    def values(theta, rows, out):
        for k in range(rows.shape[0]):
            out[k] = of_row(theta, rows[k])

    return compiled(values)


def _gradients_by(slopes, units):
    """Return ``gradients(theta, rows, out)``: out = ∂f/∂θ of each row, (n_rows, D), by `slopes`."""

    def gradients(theta, rows, out):
        slopes(theta.reshape(1, -1), rows, units, out)

    return compiled(gradients)


def _given(derivative):
    """Return ``slopes(theta, rows, unit, out)``: out = the user's ∂f/∂θ at theta (1, D).

    `unit` is not used: it is there so that all slopes have the same signature.
    """
    derivative = compiled(derivative)

    def slopes(theta, rows, unit, out):
        for k in range(rows.shape[0]):
            found = derivative(theta[0], rows[k])
            for j in range(out.shape[1]):
                out[k, j] = found[j]

    return compiled(slopes)


def _slopes_of_rows(functions):
    """Return two functions ``slopes(theta, rows, unit, out)`` in Python, for theta (1, D).

    The first is by the gradients of the `Functions`, the second by differences of their values.
    """

    def value(theta, row):
        return functions.values(theta, row[None])[0]

    def slopes(theta, rows, unit, out):
        out[:] = functions.gradients(theta[0], rows)

    differences = differences_of(value)
    return slopes, getattr(differences, "py_func", differences)


def _kernels(values, gradients, natural, positive):
    """Return a function of `width` that gives the kernels loss and derivative of a `RowDensity`.

    `width` is the number of numbers of a row. The kernels are functions of z, the logarithms of
    positive parameters; `values` and `gradients` are functions of θ.
    """

    def of_width(width):
        def loss(facts, rows, start, stop, eta):
            found = np.empty(stop - start)
            values(natural(eta[0]), numbers_of_rows(facts, rows, start, stop, width), found)
            total = 0.0
            for k in range(stop - start):
                total -= facts[rows[start + k], FACT_WEIGHT] * found[k]
            return total

        def derivative(facts, rows, start, stop, eta, terms_out):
            theta = natural(eta[0])
            block = numbers_of_rows(facts, rows, start, stop, width)
            gradients(theta, block, terms_out[: stop - start])
            for k in range(stop - start):
                for j in range(theta.shape[0]):
                    terms_out[k, j] *= -theta[j] if positive[j] else -1.0

        return compiled(loss), compiled(derivative)

    return of_width


def _kernel_of_sums(sums, natural, positive, width):
    """Return the kernel ``sums(facts, z, valued, g_out)`` of a `RowDensity`.

    It calls ``sums(theta, rows, weights, out)``, which gives the sum and its gradient in θ.
    """

    def kernel(facts, z, valued, g_out):
        theta, slope, rows = natural(z), np.empty(z.shape[0]), facts[:, facts.shape[1] - width :]
        value = sums(theta, rows, facts[:, FACT_WEIGHT], slope)
        for j in range(z.shape[0]):
            g_out[j] -= slope[j] * (theta[j] if positive[j] else 1.0)
        return -value if valued else 0.0

    return compiled(kernel)


class RowLaw(RowDensity):
    """The `RowDensity` of a function of a user; `row_law_of` makes and caches it."""

    cost = 2.0  # of complex steps
    _n_places = PLACES

    def __init__(self, f, derivative, positive, units, width, backend):
        super().__init__(len(positive))
        self.positive, self.units = np.array(positive), np.array(units)
        self._natural = _natural(self.positive)
        if backend == "numba":
            own = compiled(f)
            self._values = _batched(own)
            self._differences = differences_of(own)
            self.derivatives, self._slopes = self._choose(own, derivative, width)
            gradients = _gradients_by(self._slopes, self.units)
        else:
            functions = functions_of(f, backend)
            self._values, gradients, sums = kernels_of(functions)
            self.sums = _kernel_of_sums(sums, self._natural, self.positive, width)
            self._slopes, self._differences = _slopes_of_rows(functions)
            self.derivatives, self.overhead = backend, OVERHEAD[backend]
            self.cost, self.block = 1.0, BLOCK_OF_LIBRARIES
            self._n_places = PLACES_OF_LIBRARIES
        self._gradients, self._width = gradients, width
        self.loss, self.derivative = self._made(gradients)

    def _made(self, gradients):
        """Return the kernels loss and derivative for these gradients of rows."""
        return _kernels(self._values, gradients, self._natural, self.positive)(self._width)

    def _choose(self, f, derivative, width):
        """Return where the derivatives come from, as for `derivatives_`, and their slopes."""
        if derivative is not None:
            return "given", _given(derivative)
        steps, D = steps_of(f), self.n_extra
        try:
            steps(np.ones((1, D)), np.ones((1, width)), np.ones(D), np.empty((1, D)))
            return "complex step", guarded(steps)
        except NOT_COMPLEX:
            return "finite difference", self._differences

    def by_differences(self):
        """Return a copy of the law whose derivatives are central differences of f."""
        other = object.__new__(RowLaw)
        vars(other).update(vars(self), derivatives="finite difference", _slopes=self._differences)
        other.loss, other.derivative = other._made(_gradients_by(self._differences, self.units))
        return other

    def natural(self, z):
        """Return the parameters θ at points z of shape (..., D)."""
        return np.where(self.positive, np.exp(np.where(self.positive, z, 0.0)), z)

    def log_likelihood(self, theta, rows):
        """Return f of each row at one θ, (n_rows,)."""
        out = np.empty(len(rows))
        self._values(np.ascontiguousarray(theta), np.ascontiguousarray(rows), out)
        return out

    def check_derivatives(self, target, theta):
        """Raise `WrongDerivative` if the slope is not the derivative of f at θ, for some rows."""
        wrong = self.disagreement(theta, target.data.facts[:, -self._width :], 0.0)
        if wrong is not None:
            raise WrongDerivative(wrong)

    def disagreement(self, z, rows, spread=SPREAD):
        """Return the first place near z where the slope is not the derivative of f, or None.

        It is a tuple as from `first_difference`. Places are at random as far from z as `spread`
        says, in units of the parameters.
        """
        if self.derivatives == "finite difference":
            return None
        rng = streams.fixed()
        chosen = rows[np.linspace(0, len(rows) - 1, min(self._n_places, len(rows))).astype(int)]
        places = []
        for row in chosen:
            theta = self.natural(z + spread * self.units * rng.standard_normal(len(z)))
            places.append((theta, row, self.units * np.where(self.positive, theta, 1.0)))
        with np.errstate(all="ignore"):
            return first_difference(self._slopes, self._differences, places)


def row_law_of(f, derivative, positive, units, width, backend):
    """Return the `RowLaw` of these functions.

    It is compiled once in a process for the values of the variables that they read.
    """
    f, derivative = frozen(f, backend == "numba"), frozen(derivative)
    return _row_law_of(f, derivative, positive, units, width, backend)


@lru_cache(maxsize=64)
def _row_law_of(f, derivative, positive, units, width, backend):
    own = derivative and derivative.function
    return RowLaw(f.function, own, positive, units, width, backend)


def differences_row_law_of(f, positive, units, width):
    """Return the `RowLaw` of f with derivatives by central differences alone."""
    return _differences_row_law_of(frozen(f), positive, units, width)


@lru_cache(maxsize=64)
def _differences_row_law_of(f, positive, units, width):
    return _row_law_of(f, None, positive, units, width, "numba").by_differences()
