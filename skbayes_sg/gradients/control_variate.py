"""Control variate gradient of SGLD-CV (Baker, Fearnhead, Fox and Nemeth 2019, eq. 6).

G(θ̂) + Σ_k c_k [∇ℓ_k(θ) - ∇ℓ_k(θ̂)], with G the exact gradient of the likelihood at a centre θ̂ near
the mode. Unbiased for any centre; the noise vanishes at θ̂ and grows linearly with ‖θ - θ̂‖.
"""

from .._jit import jit
from ..engine.layout import FACT_PREDICTOR
from ..engine.rows import predictors, scatter
from ._base import Gradient

__all__ = ["ControlVariate"]


@jit
def _estimate(data, derivative, curvature, theta, rows, start, stop, coefficients, scratch, g_out):
    eta, terms = scratch.predictors, scratch.terms
    K = terms.shape[1]
    predictors(data, theta, rows, start, stop, eta)
    derivative(data.facts, rows, start, stop, eta, terms)
    for k in range(start, stop):
        for c in range(K):
            terms[k - start, c] -= data.facts[rows[k], FACT_PREDICTOR + K + c]
    scatter(data, rows, start, stop, coefficients, terms, g_out)


class ControlVariate(Gradient):
    """t_k = ∂ℓ_k/∂η(θ) - ∂ℓ_k/∂η(θ̂), plus the exact gradient at the centre θ̂.

    Examples
    --------
    >>> from skbayes_sg.gradients import ControlVariate
    >>> ControlVariate()
    ControlVariate()
    """

    estimate = staticmethod(_estimate)
    uses_constant = True
