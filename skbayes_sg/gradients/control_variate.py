"""Control variate gradient of SGLD-CV (Baker, Fearnhead, Fox and Nemeth 2019, sec. 4.1, alg. 1).

G(θ̂) + Σ_k c_k [∇ℓ_k(θ) - ∇ℓ_k(θ̂)], with G the exact gradient of the likelihood at a centre θ̂ near
the mode. It is unbiased for any centre; the noise vanishes at θ̂ and its standard deviation grows
linearly with ‖θ - θ̂‖ (eq. 7 of the paper).
"""

from .._base.jit import jit
from ..kernels.layout import FACT_PREDICTOR
from ._base import Gradient

__all__ = ["ControlVariate"]


@jit
def _terms(facts, derivative, curvature, rows, start, stop, eta, extra_out, terms_out):
    K = terms_out.shape[1]
    derivative(facts, rows, start, stop, eta, terms_out)
    for k in range(stop - start):
        for c in range(K):
            terms_out[k, c] -= facts[rows[start + k], FACT_PREDICTOR + K + c]


class ControlVariate(Gradient):
    """Differences to the centre: t_k = ∂ℓ_k/∂η(θ) - ∂ℓ_k/∂η(θ̂), plus the exact gradient at θ̂.

    This is the gradient of SGLD-CV. It is unbiased for any centre θ̂
    (``tests/gradients/test_gradient_estimators.py::test_mean_and_covariance_over_all_batches``).
    The noise is zero there and of first order in the distance; in whitened coordinates its
    covariance is of the order d/n for d parameters and n rows a step, independent of the number of
    rows N. "auto" uses it above 2000 parameters, where the Hessian of the Taylor gradient would be
    too large.

    References
    ----------
    J. Baker, P. Fearnhead, E. B. Fox and C. Nemeth (2019). Control variates for stochastic gradient
    MCMC. Statistics and Computing 29, 599-615, algorithm 1.

    Examples
    --------
    >>> from skbayes_sg.gradients import ControlVariate
    >>> ControlVariate()
    ControlVariate()
    """

    terms = staticmethod(_terms)
    uses_constant = True
    uses_centre = True
