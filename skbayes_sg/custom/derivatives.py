"""Derivatives of functions that users give, and whether those that they give are right.

For a function of z that is analytic and accepts complex numbers, the complex step

    ∂f/∂z_j = Im f(z + iε e_j) / ε,      ε = 10⁻²⁰,

is exact to rounding. For other functions the central difference of fourth order takes its place,

    f'(0) ≈ [8 (f(h) - f(-h)) - (f(2h) - f(-2h))] / (12 h),

and complex steps and given derivatives are compared with it.
"""

import contextlib
import numbers
from types import FunctionType

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from .._base.jit import uncached
from .._base.validation import Parameters
from ..exceptions import InvalidParameterError

__all__ = ["compiled", "differences_of", "first_difference", "guarded", "named_errors", "of_shape"]
__all__ += ["NOT_COMPLEX", "WrongDerivative", "check_calls", "check_function", "check_lengths"]
__all__ += ["steps_of"]

TINY = 1e-20  # ε, the size of a complex step
STEP = 1e-3  # step h of a central difference, in units of the argument
CLOSE = 1e-4  # relative error up to which a derivative agrees with the difference

# Exceptions that compiled or plain functions raise for complex numbers; `max` raises the last one.
NOT_COMPLEX = (
    numba.NumbaError,
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    NotImplementedError,
)


class WrongDerivative(ValueError):
    """A derivative is not that of its function at a `place`, a tuple as of `first_difference`."""

    def __init__(self, place):
        super().__init__(place)
        self.place = place


def compiled(function):
    """Return a function compiled by Numba, so that kernels can call it; a compiled one as it is."""
    return function if isinstance(function, Dispatcher) else uncached(function)


def steps_of(value):
    """Return ``slopes(z, y, unit, out)``: out = ∂value(z, y)/∂z by complex steps, row by row.

    `y` and `out` have a row for each place, and `z` has as many or one for all. `unit` is not used:
    it is there so that all slopes have the same signature.
    """

    def slopes(z, y, unit, out):
        moved = np.empty(z.shape[1], np.complex128)
        for k in range(out.shape[0]):
            at = z[k if z.shape[0] > 1 else 0]
            for j in range(moved.shape[0]):
                moved[j] = at[j]
            for j in range(moved.shape[0]):
                moved[j] += 1j * TINY
                out[k, j] = value(moved, y[k]).imag / TINY
                moved[j] = at[j]

    return compiled(slopes)


def guarded(slopes):
    """Return the function `slopes` with NaN in the rows for which it raises an error.

    A division of complex numbers by zero is an error where that of real numbers gives infinity, as
    for e^-2η at predictors that a search only passes. All rows are tried together first: compiled
    code that may raise an error in each of them is slow.
    """
    slopes = compiled(slopes)

    def tried(z, y, unit, out):
        try:
            slopes(z, y, unit, out)
            return True
        except Exception:
            return False

    tried = compiled(tried)

    def found(z, y, unit, out):
        if tried(z, y, unit, out):
            return
        for k in range(out.shape[0]):
            own = slice(k, k + 1) if z.shape[0] > 1 else slice(0, 1)
            if not tried(z[own], y[k : k + 1], unit, out[k : k + 1]):
                for j in range(out.shape[1]):
                    out[k, j] = np.nan

    return compiled(found)


def differences_of(value):
    """Return ``slopes(z, y, unit, out)``: out = ∂value(z, y)/∂z by central differences.

    The step in z_j is ``STEP * unit[j]``; the arguments are as for `steps_of`.
    """

    def slopes(z, y, unit, out):
        moved = np.empty(z.shape[1])
        for k in range(out.shape[0]):
            at = z[k if z.shape[0] > 1 else 0]
            for j in range(moved.shape[0]):
                moved[j] = at[j]
            for j in range(moved.shape[0]):
                h = STEP * unit[j]
                moved[j] = at[j] + h
                near = value(moved, y[k])
                moved[j] = at[j] - h
                near -= value(moved, y[k])
                moved[j] = at[j] + 2.0 * h
                far = value(moved, y[k])
                moved[j] = at[j] - 2.0 * h
                far -= value(moved, y[k])
                moved[j] = at[j]
                out[k, j] = (8.0 * near - far) / (12.0 * h)

    return compiled(slopes)


def first_difference(slopes, reference, places):
    """Return the first of the places (z, y, unit) at which slopes are not the reference, or None.

    It is returned as (z, y, j, slope_j, reference_j), with the first component j that is wrong.
    Places do not count where the reference, which is by differences, is not finite, or changes if
    its step is halved, as at a kink; nor do those where the slope divides by zero.
    """
    for z, y, unit in places:
        found, wanted, finer = np.empty(len(z)), np.empty(len(z)), np.empty(len(z))
        here = z[None], np.asarray(y)[None]
        try:
            slopes(*here, unit, found[None])
        except ZeroDivisionError:  # raised by functions that users have compiled themselves
            continue
        reference(*here, unit, wanted[None])
        reference(*here, 0.5 * unit, finer[None])
        size = np.abs(wanted * unit).max() + np.abs(wanted) * unit
        with np.errstate(invalid="ignore"):
            smooth = np.abs(finer - wanted) * unit <= 0.1 * CLOSE * size
            wrong = smooth & ~(np.abs(found - wanted) * unit <= CLOSE * size + 1e-12)
        if wrong.any():
            j = int(np.flatnonzero(wrong)[0])
            return z, y, j, float(found[j]), float(wanted[j])
    return None


def check_function(estimator, name, wanted):
    """Raise `InvalidParameterError` if the parameter `name` is no function that Numba can compile.

    `wanted` says what the function must be.
    """
    p, value = Parameters(estimator), getattr(estimator, name)
    if not callable(value):
        p.fail(name, wanted)
    if not isinstance(value, FunctionType | Dispatcher):
        p.fail(
            name,
            f"{wanted}, written with def or lambda, because Numba compiles it. In place of a "
            "partial function, a method or an object that can be called, write a def that reads "
            "the values that are fixed from global variables or from those of a function around it",
        )


def _said_by(f, name, arguments):
    """Return what a function returns as plain Python, or `NotImplemented` if it raises an error.

    Compiled code would read whatever memory lies beyond its arguments; plain Python raises an
    `IndexError`, which becomes an `InvalidParameterError`. Other errors of plain Python may not
    occur in compiled code, and are left to it.
    """
    try:
        return getattr(f, "py_func", f)(*arguments)
    except IndexError as error:
        raise InvalidParameterError(f"The {name} reads beyond its arguments: {error}.") from error
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return NotImplemented


def check_calls(f, name, places):
    """Raise `InvalidParameterError` if f is no function from its arguments to a number.

    It is called as plain Python with each of `places`, tuples of arguments, and must neither read
    beyond them nor change them.
    """
    with np.errstate(all="ignore"):
        for arguments in places:
            found = _said_by_copies(f, name, arguments)
            if found is not NotImplemented:
                _check_number(found, name)
                again = _said_by_copies(f, name, arguments)
                if not np.array_equal(found, again, equal_nan=True):
                    raise InvalidParameterError(
                        f"The {name} must return the same number whenever its arguments are the "
                        f"same, got {found} and then {again}. Random numbers have no place in it."
                    )


def _said_by_copies(f, name, arguments):
    """What `_said_by` returns, and an error if the function changes an array that it is given."""
    copies = [np.copy(x) if isinstance(x, np.ndarray) else x for x in arguments]
    found = _said_by(f, name, copies)
    for k, (copy, own) in enumerate(zip(copies, arguments, strict=True)):
        if not np.array_equal(copy, own, equal_nan=True):
            raise InvalidParameterError(
                f"The {name} changes its argument number {k + 1} in place: {own} becomes {copy}. "
                "Assign the new values to another name."
            )
    return found


def _check_number(found, name):
    """Raise `InvalidParameterError` unless `found`, returned by a function, is one real number."""
    if isinstance(found, numbers.Real | np.bool_):
        return
    library = type(found).__module__.partition(".")[0].removesuffix("lib")
    is_array = isinstance(found, np.ndarray)
    if not is_array or found.ndim or found.dtype.kind not in "biuf":
        got = f"an array of shape {found.shape}" if is_array and found.ndim else repr(found)
        hint = f" Functions of {library} are for CustomDensity(backend={library!r})."
        raise InvalidParameterError(
            f"The {name} must return one number, the logarithm of the likelihood of a row, "
            f"got {got}.{hint if library in ('jax', 'torch') else ''}"
        )


def check_lengths(derivative, name, places, n, *, bare=False):
    """Raise `InvalidParameterError` if a derivative, which is called `name`, returns no n numbers.

    It is called as plain Python with each of `places`, tuples of arguments, and must not read
    beyond them either. With `bare`, a single number (n = 1) must be returned as a number, and not
    in an array or a tuple.
    """
    with np.errstate(all="ignore"):
        for arguments in places:
            found = _said_by(derivative, name, arguments)
            if found is not NotImplemented:
                _check_length(found, name, n, bare)


def _check_length(found, name, n, bare):
    try:
        shape = np.shape(found)
    except ValueError:  # the parts have different shapes, which Numba says better
        return
    is_one, is_number = bare and n == 1, np.asarray(found).dtype.kind in "biufc"
    if shape == (() if is_one else (n,)) and is_number:
        return
    wanted = "a number" if is_one else f"{n} number{'s' * (n > 1)} in a tuple or array"
    got = "a number" if is_number else repr(found)
    if len(shape) == 1:
        got = f"{shape[0]} in a tuple or array"
    elif shape:
        got = f"an array of shape {shape}"
    raise InvalidParameterError(f"The {name} must return {wanted}, got {got}.")


@contextlib.contextmanager
def named_errors(name):
    """Turn the errors of Numba into an `InvalidParameterError` of one line about `name`."""
    try:
        yield
    except numba.NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        lines = [x for x in lines if x and not x.startswith("Failed in nopython")]
        said = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
        said = said or "no reason"
        raise InvalidParameterError(f"The {name} cannot be compiled: {said}") from error
    except TypeError as error:  # raised by compiled code if a branch returns nothing
        if isinstance(error, InvalidParameterError) or "got None" not in str(error):
            raise
        raise InvalidParameterError(
            f"The {name} has returned None for some row: every branch must return a number."
        ) from error


def of_shape(values, shape, name):
    """Return what a function `name` has returned as an array; `ValueError` for another shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must return an array of shape {shape}, got {array.shape}.")
    return array
