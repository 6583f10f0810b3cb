"""A logistic function that LLVM vectorises in loops over arrays, unlike one that calls libm."""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .._base.jit import inlined, overload

__all__ = ["decay", "exp", "power_of_two", "sigmoid"]

LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453
# Largest |x| of e^x: e^708 is nearly the largest float, and e^-708 nearly the smallest normal one.
HIGHEST = 708.0
# The same constants in single precision, and the coefficients of `decay`, the highest power first.
SINGLE_LOG2_E, SINGLE_LN_2 = np.float32(LOG2_E), np.float32(LN_2)
SINGLE_LOWEST, SINGLE_HALF, SINGLE_ONE = np.float32(-80.0), np.float32(0.5), np.float32(1.0)
C4, C3 = np.float32(0.00139262), np.float32(0.00836317)
C2, C1 = np.float32(0.04166655), np.float32(0.16666577)


@intrinsic
def _float_of_bits(typing_context, bits):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def _single_of_bits(typing_context, bits):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), codegen


def power_of_two(k):
    """Return 2**k for a float k that is a whole number."""
    return np.exp2(k)


@overload(power_of_two, inline="always")
def _overload_power_of_two(k):
    if k == types.float32:
        return lambda k: _single_of_bits(np.int32((np.int32(k) + np.int32(127)) << np.int32(23)))
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


def decay(x):
    """Return e^x for x <= 0 in the precision of x, which is taken to be at least -708 or -80.

    In single precision it is as `exp`, with five Chebyshev nodes; the relative error is
    1e-7 (1 + |x|).
    """
    return exp(max(x, -HIGHEST))


@inlined
def _single_decay(x):
    x = max(x, SINGLE_LOWEST)
    k = np.floor(x * SINGLE_LOG2_E + SINGLE_HALF)
    r = x - k * SINGLE_LN_2
    q = (((C4 * r + C3) * r + C2) * r + C1) * r + SINGLE_HALF
    return ((q * r + SINGLE_ONE) * r + SINGLE_ONE) * power_of_two(k)


@overload(decay, inline="always")
def _overload_decay(x):
    if x == types.float32:
        return lambda x: _single_decay(x)
    return lambda x: exp(max(x, -HIGHEST))


@inlined
def sigmoid(eta):
    """σ(η) = 1/(1 + e^-η), to full relative precision where it is a normal number."""
    return 1.0 / (1.0 + exp(max(min(-eta, HIGHEST), -HIGHEST)))
