"""Minibatch gradient of SGLD (Welling and Teh 2011): Σ_k c_k ∇ℓ_k(θ).

With uniform rows c_k = N/n. The covariance is that of the row gradients themselves, N²/n times
their spread, and does not vanish anywhere: a step size h inflates the posterior variance by
``h C / 4`` for gradient noise of covariance C in whitened coordinates.
"""

from .._jit import jit
from ..engine.rows import predictors, scatter
from ._base import Gradient

__all__ = ["Minibatch"]


@jit
def _estimate(data, derivative, curvature, theta, rows, start, stop, coefficients, scratch, g_out):
    predictors(data, theta, rows, start, stop, scratch.predictors)
    derivative(data.facts, rows, start, stop, scratch.predictors, scratch.terms)
    scatter(data, rows, start, stop, coefficients, scratch.terms, g_out)


class Minibatch(Gradient):
    """The plain stochastic gradient: t_k = ∂ℓ_k/∂η(θ).

    Examples
    --------
    >>> from skbayes_sg.gradients import Minibatch
    >>> Minibatch()
    Minibatch()
    """

    estimate = staticmethod(_estimate)
