"""Control variate gradient of SGLD-CV (Baker, Fearnhead, Fox and Nemeth 2019, eq. 6).

G(θ̂) + Σ_k c_k [∇ℓ_k(θ) - ∇ℓ_k(θ̂)], with G the exact gradient of the likelihood at a centre θ̂ near
the mode. Unbiased for any centre; the noise vanishes at θ̂ and grows linearly with ‖θ - θ̂‖.
"""

from .._jit import jit
from ..engine.layout import FACT_PREDICTOR
from ._base import Gradient

__all__ = ["ControlVariate"]


@jit
def _terms(facts, derivative, curvature, rows, start, stop, bracket, eta, extra_out, terms_out):
    K = terms_out.shape[1]
    derivative(facts, rows, start, stop, eta, terms_out)
    for k in range(stop - start):
        for c in range(K):
            terms_out[k, c] -= facts[rows[start + k], FACT_PREDICTOR + K + c]


class ControlVariate(Gradient):
    """t_k = ∂ℓ_k/∂η(θ) - ∂ℓ_k/∂η(θ̂), plus the exact gradient at the centre θ̂.

    Examples
    --------
    >>> from skbayes_sg.gradients import ControlVariate
    >>> ControlVariate()
    ControlVariate()
    """

    terms = staticmethod(_terms)
    uses_constant = True
