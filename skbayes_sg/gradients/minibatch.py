"""Minibatch gradient of SGLD (Welling and Teh 2011): Σ_k c_k ∇ℓ_k(θ).

With uniform rows c_k = N/n. The covariance of the noise is N²/n times that of the row gradients and
vanishes nowhere: a step size h inflates the posterior variance by ``h C / 4`` for gradient noise of
covariance C in whitened coordinates.
"""

from .._base.jit import jit
from ._base import Gradient

__all__ = ["Minibatch"]


@jit
def _terms(facts, derivative, curvature, rows, start, stop, eta, extra_out, terms_out):
    derivative(facts, rows, start, stop, eta, terms_out)


class Minibatch(Gradient):
    """The plain stochastic gradient Σ_k c_k ∇ℓ_k(θ): t_k = ∂ℓ_k/∂η(θ), without an exact part.

    In whitened coordinates the covariance of its noise is about N/n for n of N rows a step
    (uniform, with replacement): standard deviations under SGLD with step size h are then too large
    by about the share h N/(8 n)
    (``tests/engine/test_stationary_laws.py::test_noise_inflation_of_langevin_dynamics_exactly``).
    Use a small h, or a gradient with less noise.

    References
    ----------
    M. Welling and Y. W. Teh (2011). Bayesian learning via stochastic gradient Langevin dynamics.
    ICML.

    Examples
    --------
    >>> from skbayes_sg.gradients import Minibatch
    >>> Minibatch()
    Minibatch()
    """

    terms = staticmethod(_terms)
