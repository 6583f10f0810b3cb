"""A model of the tests' own, in one file: linear regression with unit noise, whose laws are exact.

ℓ_i(η) = (Σ_c η_c - y_i)²/2. With an extra parameter, every row has it as a second predictor.
"""

from skbayes_sg._base.jit import jit
from skbayes_sg.kernels.layout import FACT_WEIGHT, FACT_Y
from skbayes_sg.models import Model


@jit
def _residual(facts, i, eta, k):
    total = -facts[i, FACT_Y]
    for c in range(eta.shape[1]):
        total += eta[k, c]
    return total


@jit
def _loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(start, stop):
        total += 0.5 * facts[rows[k], FACT_WEIGHT] * _residual(facts, rows[k], eta, k - start) ** 2
    return total


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    for k in range(start, stop):
        residual = _residual(facts, rows[k], eta, k - start)
        for c in range(eta.shape[1]):
            terms_out[k - start, c] = residual


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    for k in range(stop - start):
        total = 0.0
        for c in range(u_out.shape[1]):
            total += u_out[k, c]
        for c in range(u_out.shape[1]):
            u_out[k, c] = total


class Gaussian(Model):
    """Linear regression with noise of variance 1 / weight."""

    loss = staticmethod(_loss)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)

    def __init__(self, n_extra=0):
        self.n_extra = n_extra
