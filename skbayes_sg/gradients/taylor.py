"""Taylor based gradient (Nagapetyan et al., sec. 3.4): the remainder of a second-order expansion.

G(θ̂) + H(θ̂)(θ - θ̂) + Σ_k c_k [∇ℓ_k(θ) - ∇ℓ_k(θ̂) - ∇²ℓ_k(θ̂)(θ - θ̂)], with the exact gradient G and
Hessian H of the likelihood at a centre θ̂. Unbiased for any centre; the noise is of second order in
‖θ - θ̂‖, and zero for a quadratic likelihood.
"""

from .._jit import jit
from ..engine.layout import FACT_PREDICTOR
from ..engine.rows import predictors, scatter
from ._base import Gradient

__all__ = ["Taylor"]


@jit
def _estimate(data, derivative, curvature, theta, rows, start, stop, coefficients, scratch, g_out):
    eta, terms, u = scratch.predictors, scratch.terms, scratch.extra
    K = terms.shape[1]
    predictors(data, theta, rows, start, stop, eta)
    derivative(data.facts, rows, start, stop, eta, terms)
    for k in range(start, stop):
        for c in range(K):
            centre = data.facts[rows[k], FACT_PREDICTOR + c]
            u[k - start, c] = eta[k - start, c] - centre
            eta[k - start, c] = centre
    curvature(data.facts, rows, start, stop, eta, u)
    for k in range(start, stop):
        for c in range(K):
            terms[k - start, c] -= data.facts[rows[k], FACT_PREDICTOR + K + c] + u[k - start, c]
    scatter(data, rows, start, stop, coefficients, terms, g_out)


class Taylor(Gradient):
    """t_k = ∂ℓ_k/∂η(θ) - ∂ℓ_k/∂η(θ̂) - ∂²ℓ_k/∂η²(θ̂) u_k with u_k = η_k(θ) - η_k(θ̂).

    Examples
    --------
    >>> from skbayes_sg.gradients import Taylor
    >>> Taylor()
    Taylor()
    """

    estimate = staticmethod(_estimate)
    uses_constant = True
    uses_linear = True
