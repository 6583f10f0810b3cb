"""Stochastic gradient Langevin dynamics (Welling and Teh 2011; Baker et al. 2019, eq. 3).

φ' = φ - (h/2) ĝ(φ) + √h ξ, the Euler-Maruyama step of the Langevin diffusion.

Stationary law for a Gaussian target N(μ, A⁻¹) and exact gradients: mean μ, covariance
A⁻¹(I - hA/4)⁻¹, stable for h λ_max(A) < 4. Gradient noise of covariance C multiplies the variance
of a direction of curvature a by 1 + hC/4.
"""

import math

from .._jit import jit
from ._base import Dynamics

__all__ = ["SGLD"]


@jit
def _update(state_out, gradient, noise, h, parameters):
    phi = state_out[0]
    for j in range(phi.shape[0]):
        phi[j] += -0.5 * h * gradient[j] + math.sqrt(h) * noise[j]


class SGLD(Dynamics):
    """Stochastic gradient Langevin dynamics. Biased by O(h): the variance is 1/(1 - h/4) too large.

    Examples
    --------
    >>> from skbayes_sg.dynamics import SGLD
    >>> SGLD()
    SGLD()
    """

    update = staticmethod(_update)
