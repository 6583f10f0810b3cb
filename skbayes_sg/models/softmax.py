"""Multinomial logistic regression: ℓ_i(η) = log Σ_c e^{η_c} - η_{y_i},  y_i in {0, ..., K - 1}.

∂ℓ/∂η = p - e_{y_i} and ∂²ℓ/∂η² u = p∘u - p (p·u) with p = softmax(η). All K predictors are free, as
in scikit-learn's multinomial `LogisticRegression`; the prior identifies their common shift.
"""

import math

from .._base.jit import inner, jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ._base import Model

__all__ = ["Softmax"]


@inner
def _largest(eta, k):
    largest = eta[k, 0]
    for c in range(1, eta.shape[1]):
        largest = max(largest, eta[k, c])
    return largest


@inner
def _log_sum_exp(eta, k):
    largest, total = _largest(eta, k), 0.0
    for c in range(eta.shape[1]):
        total += math.exp(eta[k, c] - largest)
    return largest + math.log(total)


@jit
def _loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(start, stop):
        i = rows[k]
        own = eta[k - start, int(facts[i, FACT_Y])]
        total += facts[i, FACT_WEIGHT] * (_log_sum_exp(eta, k - start) - own)
    return total


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    for k in range(stop - start):
        largest, total = _largest(eta, k), 0.0
        for c in range(eta.shape[1]):
            terms_out[k, c] = math.exp(eta[k, c] - largest)
            total += terms_out[k, c]
        for c in range(eta.shape[1]):
            terms_out[k, c] /= total
        terms_out[k, int(facts[rows[start + k], FACT_Y])] -= 1.0


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    for k in range(stop - start):
        largest, total, mean = _largest(eta, k), 0.0, 0.0
        for c in range(eta.shape[1]):
            p = math.exp(eta[k, c] - largest)
            total += p
            mean += p * u_out[k, c]
        for c in range(eta.shape[1]):
            p = math.exp(eta[k, c] - largest) / total
            u_out[k, c] = p * (u_out[k, c] - mean / total)


class Softmax(Model):
    """Multinomial logistic regression: ℓ_i(η) = log Σ_c e^(η_c) - η_(y_i).

    There are K free predictors, one for each class; `y` is the index of the class. The prior
    determines their common shift, on which the likelihood does not depend.

    Parameters
    ----------
    n_classes : int
        The number of classes, K.

    Examples
    --------
    >>> from skbayes_sg.models import Softmax
    >>> Softmax(3).n_predictors
    3
    """

    convex = True
    loss = staticmethod(_loss)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)

    def __init__(self, n_classes):
        self.n_linear = n_classes
