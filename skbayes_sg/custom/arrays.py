"""Log-likelihoods of batches of rows as functions of JAX or of PyTorch.

``f(theta, rows)`` returns the log-likelihood of each row of a batch. Kernels call it in Python, a
block of rows at a time; the gradients of the rows are those of the library, row by row
(`vmap` of `grad`). Both libraries compute in double precision here.
"""

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple

import numba
import numpy as np

from .._base.jit import uncached
from ..exceptions import InvalidParameterError

__all__ = ["BACKENDS", "OVERHEAD", "Functions", "functions_of", "kernels_of"]

# Nanoseconds that each call of the gradients takes in addition to the time for its rows.
OVERHEAD = 5e5


class Functions(NamedTuple):
    """Log-likelihoods of rows, (n_rows,), and their gradients in θ, (n_rows, D).

    Both are called with ``(theta, rows)``, which are NumPy arrays, and return NumPy arrays.
    """

    values: Callable
    gradients: Callable


_registered: list[Functions] = []  # kernels name their functions by the place in this list


def _checked(f, kind, name):
    """Return f with a check of its result.

    It raises a `ValueError` unless f returns an array of the library with one number for each row.
    """

    @wraps(f)
    def of_rows(theta, rows):
        found = f(theta, rows)
        if not isinstance(found, kind):
            got = f"an object of type {type(found).__name__}"
        elif tuple(found.shape) != (len(rows),):
            got = f"the shape {tuple(found.shape)}"
        else:
            return found
        raise ValueError(
            f"With backend={name!r} log_density(theta, rows) must return {name} numbers of shape "
            f"({len(rows)},), the log-likelihood of each of these rows; it has returned {got}."
        )

    return of_rows


def _of_jax(f):
    """Return (values, gradients) of a JAX function, compiled, for NumPy arrays of doubles."""
    import jax

    f = _checked(f, jax.Array, "jax")

    def of_row(theta, row):
        return f(theta, row[None])[0]

    values = jax.jit(f)
    gradients = jax.jit(jax.vmap(jax.grad(of_row), in_axes=(None, 0)))

    def in_double(function):
        def call(theta, rows):
            with jax.enable_x64(True):
                return np.asarray(function(theta, rows), dtype=np.float64)

        return call

    return in_double(values), in_double(gradients)


def _of_torch(f):
    """Return (values, gradients) of a PyTorch function, for NumPy arrays."""
    import torch

    f = _checked(f, torch.Tensor, "torch")

    def of_row(theta, row):
        return f(theta, row[None])[0]

    gradients = torch.func.vmap(torch.func.grad(of_row), in_dims=(None, 0))

    def in_numpy(function):
        def call(theta, rows):
            found = function(torch.from_numpy(theta), torch.from_numpy(rows))
            return found.detach().numpy()

        return call

    return in_numpy(f), in_numpy(gradients)


BACKENDS = {"jax": _of_jax, "torch": _of_torch}


def functions_of(f, backend):
    """Return the `Functions` of f, a function of arrays of the library `backend`."""
    try:
        return Functions(*BACKENDS[backend](f))
    except ImportError as error:
        raise InvalidParameterError(
            f"backend={backend!r} needs the package {backend}, which is not installed: "
            f"pip install {backend}."
        ) from error


def _values(number, theta, rows):
    return _registered[number].values(np.array(theta), np.array(rows))


def _gradients(number, theta, rows, out):
    out[:] = _registered[number].gradients(np.array(theta), np.array(rows))


def kernels_of(functions):
    """Return compiled ``values(theta, rows, out)`` and ``gradients(theta, rows, out)``.

    They call the `Functions` in Python, and write the results to `out`.
    """
    number = len(_registered)
    _registered.append(functions)

    def values(theta, rows, out):
        with numba.objmode():
            out[:] = _values(number, theta, rows)

    def gradients(theta, rows, out):
        with numba.objmode():
            _gradients(number, theta, rows, out)

    # Kernels that call Python hold the GIL; compiled with nogil=True they would warn about that.
    return uncached(values, nogil=False), uncached(gradients, nogil=False)
