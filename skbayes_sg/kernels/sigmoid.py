"""A logistic function that LLVM vectorises in loops over arrays, unlike one that calls libm."""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .._base.jit import inlined, overload

__all__ = ["exp", "power_of_two", "sigmoid"]

LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453
# Largest |x| of e^x: e^708 is nearly the largest float, and e^-708 nearly the smallest normal one.
HIGHEST = 708.0


@intrinsic
def _float_of_bits(typing_context, bits):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


def power_of_two(k):
    """Return 2**k for a float k that is a whole number."""
    return np.exp2(k)


@overload(power_of_two, inline="always")
def _overload_power_of_two(k):
    return lambda k: _float_of_bits((np.int64(np.int32(k)) + 1023) << 52)


@inlined
def exp(x):
    """e^x for |x| <= 708, to a few units of the last digit: 2^k (1 + r + r² q(r)), |r| <= ln(2)/2.

    q interpolates (e^r - 1 - r)/r² at nine Chebyshev nodes; the relative error of e^r is 1.3e-15.
    """
    k = np.floor(x * LOG2_E + 0.5)
    r = x - k * LN_2
    q = 2.7596668011878e-07 * r + 2.7625057909464e-06
    q = q * r + 2.4801574813528e-05
    q = q * r + 0.00019841208833168
    q = q * r + 0.0013888888878926
    q = q * r + 0.0083333333536793
    q = q * r + 0.041666666666713
    q = q * r + 0.16666666666648
    q = q * r + 0.5
    return ((q * r + 1.0) * r + 1.0) * power_of_two(k)


@inlined
def sigmoid(eta):
    """σ(η) = 1/(1 + e^-η), to full relative precision where it is a normal number."""
    return 1.0 / (1.0 + exp(max(min(-eta, HIGHEST), -HIGHEST)))
