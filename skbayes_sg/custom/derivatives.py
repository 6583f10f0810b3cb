"""Derivatives of functions that users give, and whether those that they give are right.

Of a function of z that is analytic, the complex step is exact to rounding,

    ∂f/∂z_j = Im f(z + iε e_j) / ε,      ε = 10⁻²⁰,

where f accepts complex numbers. Elsewhere the central difference of fourth order takes its place,

    f'(0) ≈ [8 (f(h) - f(-h)) - (f(2h) - f(-2h))] / (12 h),

and it is also what complex steps and given derivatives are compared with.
"""

import contextlib
import numbers

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from .._base.jit import uncached
from ..exceptions import InvalidParameterError

__all__ = ["compiled", "differences_of", "first_difference", "named_errors", "of_shape", "steps_of"]
__all__ += ["NOT_COMPLEX", "check_call", "check_length"]

TINY = 1e-20
STEP = 1e-3  # of a central difference, in units of the argument
CLOSE = 1e-4  # relative error up to which a derivative is right

# What compiled or plain functions raise for complex numbers; of `max` it is the last.
NOT_COMPLEX = (
    numba.NumbaError,
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    NotImplementedError,
)


def compiled(function):
    """A function of a user as kernels can call it; one that is compiled already is left alone."""
    return function if isinstance(function, Dispatcher) else uncached(function)


def steps_of(value):
    """``slope(z, y, unit, out)``: out = ∂value(z, y)/∂z by complex steps; `unit` is not needed."""

    def slope(z, y, unit, out):
        moved = z.astype(np.complex128)
        for j in range(z.shape[0]):
            moved[j] += 1j * TINY
            out[j] = value(moved, y).imag / TINY
            moved[j] = z[j]

    return compiled(slope)


def differences_of(value):
    """The same by central differences, of a step of `STEP` units of each z_j."""

    def slope(z, y, unit, out):
        moved = z.copy()
        for j in range(z.shape[0]):
            h = STEP * unit[j]
            moved[j] = z[j] + h
            near = value(moved, y)
            moved[j] = z[j] - h
            near -= value(moved, y)
            moved[j] = z[j] + 2.0 * h
            far = value(moved, y)
            moved[j] = z[j] - 2.0 * h
            far -= value(moved, y)
            moved[j] = z[j]
            out[j] = (8.0 * near - far) / (12.0 * h)

    return compiled(slope)


def first_difference(slope, reference, places):
    """The first place (z, y, unit) at which a slope is not the reference, or None.

    Returns (z, y, j, slope_j, reference_j). Places where the reference is not finite, or where
    the differences of `STEP` and of half of it disagree, as at a kink, do not count; nor do those
    where the slope divides by zero.
    """
    for z, y, unit in places:
        found, wanted, finer = np.empty(len(z)), np.empty(len(z)), np.empty(len(z))
        try:
            slope(z, y, unit, found)
        except ZeroDivisionError:  # of compiled complex numbers, where real ones are infinite
            continue
        reference(z, y, unit, wanted)
        reference(z, y, 0.5 * unit, finer)
        size = np.abs(wanted * unit).max() + np.abs(wanted) * unit
        with np.errstate(invalid="ignore"):
            smooth = np.abs(finer - wanted) * unit <= 0.1 * CLOSE * size
            wrong = smooth & ~(np.abs(found - wanted) * unit <= CLOSE * size + 1e-12)
        if wrong.any():
            j = int(np.flatnonzero(wrong)[0])
            return z, y, j, float(found[j]), float(wanted[j])
    return None


def check_call(f, name, arguments):
    """Raise `InvalidParameterError` if a function reads beyond its arguments, or returns no number.

    It is called once as it was written, since compiled code would read whatever lies there.
    """
    try:
        with np.errstate(all="ignore"):
            found = getattr(f, "py_func", f)(*arguments)
    except IndexError as error:
        raise InvalidParameterError(f"The {name} reads beyond its arguments: {error}.") from error
    except (ArithmeticError, AttributeError, TypeError, ValueError):  # compiled code decides
        return
    is_array = isinstance(found, np.ndarray)
    if not is_array and isinstance(found, numbers.Real | np.bool_):
        return
    if not is_array or found.ndim or found.dtype.kind not in "biuf":
        got = f"an array of shape {found.shape}" if is_array and found.ndim else repr(found)
        raise InvalidParameterError(
            f"The {name} must return one number, the logarithm of the likelihood of a row, got "
            f"{got}."
        )


def check_length(derivative, arguments, n, *, bare=False):
    """Raise `InvalidParameterError` if a derivative does not return n numbers.

    It is called once as it was written. `bare` says that one number stands alone, and not in an
    array or a tuple.
    """
    try:
        with np.errstate(all="ignore"):
            shape = np.shape(getattr(derivative, "py_func", derivative)(*arguments))
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
        return  # compiled code decides
    if shape != (() if bare and n == 1 else (n,)):
        wanted = "a number" if bare and n == 1 else f"{n} number{'s' * (n > 1)} in a tuple or array"
        got = f"{shape[0]}" if len(shape) == 1 else f"an array of shape {shape}"
        raise InvalidParameterError(
            f"derivative must return {wanted}, got {got if shape else 'a number'}."
        )


@contextlib.contextmanager
def named_errors(name):
    """Say in one line what Numba says in many."""
    try:
        yield
    except numba.NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        lines = [x for x in lines if x and not x.startswith("Failed in nopython")]
        said = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
        said = said or "no reason"
        raise InvalidParameterError(f"The {name} cannot be compiled: {said}") from error
    except TypeError as error:  # of compiled code, for a branch that returns nothing
        if isinstance(error, InvalidParameterError) or "got None" not in str(error):
            raise
        raise InvalidParameterError(
            f"The {name} has returned None for some row: every branch must return a number."
        ) from error


def of_shape(values, shape, name):
    """What a function has returned, as an array of this shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must return an array of shape {shape}, got {array.shape}.")
    return array
