"""Log-likelihoods of batches of rows as functions of JAX or of PyTorch.

``f(theta, rows)`` returns the log-likelihood of each row of a batch. Kernels call it in Python, a
block of rows at a time; the gradients of the rows are those of the library, row by row
(`vmap` of `grad`). Both libraries compute in double precision here.
"""

from collections.abc import Callable

import numba
import numpy as np

from .._base.jit import uncached
from ..exceptions import InvalidParameterError

__all__ = ["BACKENDS", "kernels_of"]

_registered: list[tuple[Callable, Callable]] = []  # (values, gradients) of each function


def _of_jax(f):
    import jax

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
    import torch

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


def _register(f, backend):
    try:
        _registered.append(BACKENDS[backend](f))
    except ImportError as error:
        raise InvalidParameterError(
            f"backend={backend!r} needs the package {backend}, which is not installed: "
            f"pip install {backend}."
        ) from error
    return len(_registered) - 1


def _values(number, theta, rows):
    return _registered[number][0](np.array(theta), np.array(rows))


def _gradients(number, theta, rows, out):
    out[:] = _registered[number][1](np.array(theta), np.array(rows))


def kernels_of(f, backend):
    """``values(theta, rows, out)`` and ``gradients(theta, rows, out)`` of a function."""
    number = _register(f, backend)

    def values(theta, rows, out):
        with numba.objmode():
            out[:] = _values(number, theta, rows)

    def gradients(theta, rows, out):
        with numba.objmode():
            _gradients(number, theta, rows, out)

    return uncached(values), uncached(gradients)
