"""Log-likelihoods of batches of rows as functions of JAX or of PyTorch.

``f(theta, rows)`` returns the log-likelihood of each row of a batch. Kernels call it in Python: for
sums over all rows once, with the gradient of the sum; else a block of rows at a time, and the
gradients of the rows are those of the library, row by row (`vmap` of `grad`). Both libraries
compute in double precision here.
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
OVERHEAD = {"jax": 1e5, "torch": 5e5}


class Functions(NamedTuple):
    """Log-likelihoods of rows, (n_rows,), their gradients in θ, (n_rows, D), and weighted sums.

    The first two are called with ``(theta, rows)``, the third with ``(theta, rows, weights)``; it
    returns the sum of the log-likelihoods and its gradient. They take and return NumPy arrays.
    """

    values: Callable
    gradients: Callable
    sums: Callable


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
    """Return the `Functions` of a JAX function, compiled, for NumPy arrays of doubles."""
    import jax

    f = _checked(f, jax.Array, "jax")

    def of_row(theta, row):
        return f(theta, row[None])[0]

    def sum_of(theta, rows, weights):
        return (weights * f(theta, rows)).sum()

    gradients = jax.vmap(jax.grad(of_row), in_axes=(None, 0))

    def in_double(function):
        function = jax.jit(function)

        def call(*arrays):
            with jax.enable_x64(True):
                found = function(*arrays)
                return jax.tree.map(lambda own: np.asarray(own, dtype=np.float64), found)

        return call

    return Functions(*map(in_double, (f, gradients, jax.value_and_grad(sum_of))))


def _of_torch(f):
    """Return the `Functions` of a PyTorch function, for NumPy arrays."""
    import torch
    from torch.utils._pytree import tree_map

    f = _checked(f, torch.Tensor, "torch")

    def of_row(theta, row):
        return f(theta, row[None])[0]

    def sums(theta, rows, weights):  # a third of the time of torch.func.grad_and_value
        theta.requires_grad_()
        value = (weights * f(theta, rows)).sum()
        slope = torch.autograd.grad(value, theta)[0] if value.requires_grad else 0.0 * theta
        return value, slope

    gradients = torch.func.vmap(torch.func.grad(of_row), in_dims=(None, 0))

    def in_numpy(function):
        def call(*arrays):
            found = function(*map(torch.from_numpy, arrays))
            return tree_map(lambda own: own.detach().numpy(), found)

        return call

    return Functions(*map(in_numpy, (f, gradients, sums)))


BACKENDS = {"jax": _of_jax, "torch": _of_torch}


def functions_of(f, backend):
    """Return the `Functions` of f, a function of arrays of the library `backend`."""
    try:
        return BACKENDS[backend](f)
    except ImportError as error:
        raise InvalidParameterError(
            f"backend={backend!r} needs the package {backend}, which is not installed: "
            f"pip install {backend}."
        ) from error


def _values(number, theta, rows):
    return _registered[number].values(np.array(theta), np.array(rows))


def _gradients(number, theta, rows, out):
    out[:] = _registered[number].gradients(np.array(theta), np.array(rows))


def _sums(number, theta, rows, weights, out):
    arrays = np.array(theta), np.array(rows), np.array(weights)
    value, out[:] = _registered[number].sums(*arrays)
    return float(value)


def kernels_of(functions):
    """Return three compiled functions that call the `Functions` in Python.

    ``values(theta, rows, out)`` and ``gradients(theta, rows, out)`` write the results to `out`.
    ``sums(theta, rows, weights, out)`` writes the gradient to `out` and returns the sum.
    """
    number = len(_registered)
    _registered.append(functions)

    def values(theta, rows, out):
        with numba.objmode():
            out[:] = _values(number, theta, rows)

    def gradients(theta, rows, out):
        with numba.objmode():
            _gradients(number, theta, rows, out)

    def sums(theta, rows, weights, out):
        with numba.objmode(value="float64"):
            value = _sums(number, theta, rows, weights, out)
        return value

    # Kernels that call Python hold the GIL; compiled with nogil=True they would warn about that.
    return tuple(uncached(kernel, nogil=False) for kernel in (values, gradients, sums))
