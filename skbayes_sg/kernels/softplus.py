"""Logarithms that LLVM vectorises in loops over arrays, unlike those of libm."""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .._base.jit import inlined, overload
from .sigmoid import HIGHEST, LN_2, exp, power_of_two

__all__ = ["log1p", "softplus"]

LARGEST = 1e300  # arguments of `log1p` that are larger are replaced by this one


@intrinsic
def _bits_of_float(typing_context, x):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), codegen


def _exponent(x):
    """Return the float k, a whole number, with 2**k <= x < 2**(k + 1), for x > 0."""
    return np.frexp(x)[1] - 1.0


@overload(_exponent, inline="always")
def _overload_exponent(x):
    return lambda x: np.float64(np.int32(_bits_of_float(x) >> 52) - 1023)


@inlined
def _log1p_to_one(t):
    """log(1 + t) for t in [0, 1], to a relative error of 8e-15.

    The result is t times a polynomial in s = 2t - 1 that interpolates log(1 + t)/t at Chebyshev
    nodes.
    """
    s = 2.0 * t - 1.0
    q = 1.997079412931966e-09 * s - 6.5609166662212954e-09
    q = q * s + 1.2393078400962622e-08
    q = q * s - 3.898523381705876e-08
    q = q * s + 1.4083747361901462e-07
    q = q * s - 4.5775309818312036e-07
    q = q * s + 1.479458942511583e-06
    q = q * s - 4.864596098442567e-06
    q = q * s + 1.6157033829953604e-05
    q = q * s - 5.4261592069922265e-05
    q = q * s + 0.00018490299789776244
    q = q * s - 0.0006421502612589602
    q = q * s + 0.0022882409066810523
    q = q * s - 0.008461080421843348
    q = q * s + 0.03315243843864931
    q = q * s - 0.14426354954949536
    q = q * s + 0.8109302162163278
    return t * q


@inlined
def log1p(t):
    """log(1 + t) for t >= 0, to a relative error of about 1e-14: k log 2 + log((1 + t)/2^k)."""
    x = min(t, LARGEST) + 1.0
    k = _exponent(x)
    return k * LN_2 + _log1p_to_one(t if t < 1.0 else x * power_of_two(-k) - 1.0)


@inlined
def softplus(eta):
    """log(1 + e^η) = max(η, 0) + log(1 + e^-|η|), to an absolute error of about 1e-14."""
    return max(eta, 0.0) + _log1p_to_one(exp(-min(abs(eta), HIGHEST)))
