"""Taylor-based gradient (Nagapetyan et al. 2017, eq. 11): sample the remainder of an expansion.

G(θ̂) + H(θ̂)(θ - θ̂) + Σ_k c_k [∇ℓ_k(θ) - ∇ℓ_k(θ̂) - ∇²ℓ_k(θ̂)(θ - θ̂)], with the exact gradient G and
Hessian H of the likelihood at a centre θ̂. It is unbiased for any centre; the noise is of second
order in ‖θ - θ̂‖, and zero for a quadratic likelihood.
"""

from .._base.jit import jit
from ..kernels.layout import FACT_PREDICTOR
from ._base import Gradient

__all__ = ["Taylor"]


@jit
def _terms(facts, derivative, curvature, rows, start, stop, eta, extra_out, terms_out):
    K, u = terms_out.shape[1], extra_out
    derivative(facts, rows, start, stop, eta, terms_out)
    for k in range(stop - start):
        for c in range(K):
            centre = facts[rows[start + k], FACT_PREDICTOR + c]
            u[k, c] = eta[k, c] - centre
            eta[k, c] = centre
    curvature(facts, rows, start, stop, eta, u)
    for k in range(stop - start):
        for c in range(K):
            terms_out[k, c] -= facts[rows[start + k], FACT_PREDICTOR + K + c] + u[k, c]


class Taylor(Gradient):
    """Remainders of the rows' expansions at the centre; the sum of the expansions is exact.

    ``t_k = ∂ℓ_k/∂η(θ) - ∂ℓ_k/∂η(θ̂) - ∂²ℓ_k/∂η²(θ̂) u_k`` with ``u_k = η_k(θ) - η_k(θ̂)``, plus
    ``G(θ̂) + H(θ̂)(θ - θ̂)`` of all rows. It is unbiased for any centre θ̂. In whitened coordinates
    the covariance of the noise is of the order d²/(n N): ten rows a step are enough for most large
    data. Each step also needs the product with the Hessian, a matrix of d² numbers. "auto" uses
    this gradient.

    References
    ----------
    T. Nagapetyan, L. Szpruch, S. J. Vollmer, K. Zygalakis and M. Giles (2017). Multilevel Monte
    Carlo for scalable Bayesian computations. arXiv:1609.06144, sec. 3.4.

    Examples
    --------
    >>> from skbayes_sg.gradients import Taylor
    >>> Taylor()
    Taylor()
    """

    terms = staticmethod(_terms)
    uses_constant = True
    uses_centre = True
    uses_linear = True
