"""Stochastic gradient Langevin dynamics (Welling and Teh 2011; Baker et al. 2019, eq. 4 and 5).

φ' = φ - (h/2) ĝ(φ) + √h ξ, the Euler-Maruyama step of the Langevin diffusion.

Stationary law for a Gaussian target N(μ, A⁻¹) and exact gradients: mean μ, covariance
A⁻¹(I - hA/4)⁻¹, stable for h λ_max(A) < 4. Gradient noise of covariance C multiplies the variance
of a direction of curvature a by 1 + hC/4.
"""

import math

from .._base.jit import pointee
from ._base import Dynamics

__all__ = ["SGLD"]


@pointee
def _update(state_out, gradient, noise, h, parameters):
    phi = state_out[0]
    for j in range(phi.shape[0]):
        phi[j] += -0.5 * h * gradient[j] + math.sqrt(h) * noise[j]


class SGLD(Dynamics):
    """Stochastic gradient Langevin dynamics: φ' = φ - (h/2) ĝ(φ) + √h ξ.

    It is biased at any constant step: on a Gaussian target, with gradient noise of covariance C, a
    direction of curvature a has the variance ``(1/a) (1 + h C/4) / (1 - h a/4)`` instead of 1/a;
    the mean is correct (``tests/engine/test_stationary_laws.py::test_law_is_that_of_the_formula``,
    ``tests/engine/test_stationary_laws.py::test_law_under_random_batches``). In whitened
    coordinates a = 1: at h = 0.08 standard deviations are 1 % too large. Prefer
    `LeimkuhlerMatthews`, which costs the same without the denominator, or `BAOAB`.

    References
    ----------
    M. Welling and Y. W. Teh (2011). Bayesian learning via stochastic gradient Langevin dynamics.
    ICML.

    Examples
    --------
    >>> from skbayes_sg.dynamics import SGLD
    >>> SGLD()
    SGLD()
    """

    update = staticmethod(_update)

    def widening(self, h, curvature=1.0, noise=0.0):
        """Return (1 + noise) / (1 - h a/4) - 1; infinity where steps are not stable."""
        stable = 1.0 - h * curvature / 4.0
        return (1.0 + noise) / stable - 1.0 if stable > 0.0 else math.inf
