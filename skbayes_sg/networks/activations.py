"""Activation functions, and their derivatives as functions of their values.

tanh:      a = tanh(z),           a' = 1 - a²
relu:      a = max(z, 0),         a' = 1 where a > 0
logistic:  a = ½ + ½ tanh(z/2),   a' = a (1 - a)
identity:  a = z,                 a' = 1

For single precision tanh is a quotient of polynomials of degrees 13 and 6, that of Eigen, which
LLVM vectorises and whose error is a few units of the last digit.
"""

import numpy as np
from numba.core import types

from .._base.jit import inner, overload
from ..kernels.sigmoid import exp

__all__ = ["ACTIVATIONS", "IDENTITY", "activate", "damp"]

TANH, RELU, LOGISTIC, IDENTITY = range(4)
ACTIVATIONS = {"tanh": TANH, "relu": RELU, "logistic": LOGISTIC, "identity": IDENTITY}

# Beyond ±FLAT the single-precision tanh is constant; exp takes no arguments beyond ±LARGEST. P and
# Q are the coefficients of the numerator and the denominator, by power.
ONE, HALF, FLAT, LARGEST = np.float32(1.0), np.float32(0.5), np.float32(7.9053111), 350.0
P1, P3, P5 = np.float32(4.89352456e-03), np.float32(6.37261929e-04), np.float32(1.48572236e-05)
P7, P9 = np.float32(5.12229709e-08), np.float32(-8.60467152e-11)
P11, P13 = np.float32(2.00018790e-13), np.float32(-2.76076848e-16)
Q0, Q2 = np.float32(4.89352519e-03), np.float32(2.26843463e-03)
Q4, Q6 = np.float32(1.18534706e-04), np.float32(1.19825839e-06)


def _tanh(x):
    """Return tanh(x) in the precision of x."""
    return np.tanh(x)


def _single(x):
    x = min(max(x, -FLAT), FLAT)
    u = x * x
    p = ((((((P13 * u + P11) * u + P9) * u + P7) * u + P5) * u + P3) * u + P1) * x
    return p / (((Q6 * u + Q4) * u + Q2) * u + Q0)


def _double(x):
    return 1.0 - 2.0 / (1.0 + exp(min(max(2.0 * x, -LARGEST), LARGEST)))


@overload(_tanh, inline="always")
def _overload_tanh(x):
    return _single if x == types.float32 else _double


@inner
def activate(values, biases, kind):
    """Overwrite `values` (n, units) by activation(values + biases)."""
    n, units = values.shape
    if kind == TANH:
        for i in range(n):
            for j in range(units):
                values[i, j] = _tanh(values[i, j] + biases[j])
    elif kind == RELU:
        for i in range(n):
            for j in range(units):
                values[i, j] = max(values[i, j] + biases[j], values.dtype.type(0.0))
    elif kind == LOGISTIC:
        for i in range(n):
            for j in range(units):
                values[i, j] = HALF + HALF * _tanh(HALF * (values[i, j] + biases[j]))
    else:
        for i in range(n):
            for j in range(units):
                values[i, j] += biases[j]


@inner
def damp(deltas, values, kind):
    """Multiply `deltas` (n, units) by the derivative of the activation whose `values` are given."""
    n, units = values.shape
    if kind == TANH:
        for i in range(n):
            for j in range(units):
                deltas[i, j] *= ONE - values[i, j] * values[i, j]
    elif kind == RELU:
        for i in range(n):
            for j in range(units):
                deltas[i, j] = deltas[i, j] if values[i, j] > 0.0 else values.dtype.type(0.0)
    elif kind == LOGISTIC:
        for i in range(n):
            for j in range(units):
                deltas[i, j] *= values[i, j] * (ONE - values[i, j])
