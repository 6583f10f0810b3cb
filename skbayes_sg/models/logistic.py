"""Binary logistic regression: ℓ_i(η) = log(1 + e^η) - y_i η,  y_i in {0, 1}.

∂ℓ/∂η = σ(η) - y and ∂²ℓ/∂η² = σ(η)(1 - σ(η)) with σ(η) = 1/(1 + e^-η).
"""

from .._base.jit import entry, inlined, jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..kernels.sigmoid import sigmoid
from ..kernels.softplus import softplus
from ._base import Model

__all__ = ["Logistic"]


@jit
def _loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(stop - start):
        i = rows[start + k]
        total += facts[i, FACT_WEIGHT] * (softplus(eta[k, 0]) - facts[i, FACT_Y] * eta[k, 0])
    return total


@inlined
def _sum_of_losses(weight, y, base, moved):
    """Return Σ_i weight_i ℓ_i at η_i = base_i + moved_i."""
    total = 0.0
    for k in range(moved.shape[0]):
        eta = base[k] + moved[k]
        total += weight[k] * (softplus(eta) - y[k] * eta)
    return total


@entry
def _add_losses(facts, base, moved, scratch, values_out):
    """Add the losses at many draws, as `Model` defines it; the loop over rows is vectorised."""
    weight, y = facts[FACT_WEIGHT], facts[FACT_Y]
    for j in range(moved.shape[1]):
        values_out[j] += _sum_of_losses(weight, y, base[0], moved[0, j])


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    for k in range(stop - start):  # a separate loop, so that it is vectorised
        terms_out[k, 0] = sigmoid(eta[k, 0])
    for k in range(stop - start):
        terms_out[k, 0] -= facts[rows[start + k], FACT_Y]


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    for k in range(stop - start):
        p = sigmoid(eta[k, 0])
        u_out[k, 0] *= p * (1.0 - p)


class Logistic(Model):
    """Binary logistic regression: ℓ_i(η) = log(1 + e^η) - y_i η; `y` is 0 or 1.

    There is one predictor η, the log-odds of y = 1.

    Examples
    --------
    >>> from skbayes_sg.models import Logistic
    >>> Logistic().n_predictors
    1
    """

    convex = True
    loss = staticmethod(_loss)
    add_losses = staticmethod(_add_losses)
    derivative = staticmethod(_derivative)
    curvature = staticmethod(_curvature)
