"""The Leimkuhler-Matthews scheme (Leimkuhler and Matthews 2013): Langevin steps, averaged noise.

φ' = φ - (h/2) ĝ(φ) + √h (ξ_k + ξ_{k+1})/2, where each normal is used in two steps.

For a Gaussian target and exact gradients the stationary law is exactly the target at any stable
step, h λ_max < 4 (``tests/engine/test_stationary_laws.py::test_exact_on_gaussian_is_a_fact``).
Gradient noise of covariance C adds ``(h C/4) / (a (1 - h a/4))`` to the variance
1/a of a direction of curvature a. It is the limit of BAOAB for large friction.
"""

import math

from .._base.jit import pointee
from ._base import Dynamics

__all__ = ["LeimkuhlerMatthews"]


@pointee
def _update(state_out, gradient, noise, h, parameters):
    phi, last = state_out[0], state_out[1]
    for j in range(phi.shape[0]):
        phi[j] += -0.5 * h * gradient[j] + math.sqrt(h) * 0.5 * (last[j] + noise[j])
        last[j] = noise[j]


class LeimkuhlerMatthews(Dynamics):
    """Langevin dynamics with averaged noise: the cost of SGLD without its bias on Gaussians.

    ``φ' = φ - (h/2) ĝ(φ) + √h (ξ_k + ξ_{k+1})/2``, where each normal is used in two steps. For a
    Gaussian target without gradient noise the stationary law is the target at every stable step
    size, h λ_max < 4 (``tests/engine/test_stationary_laws.py::test_exact_on_gaussian_is_a_fact``);
    for other targets the bias is of second order in h, as the reference shows.

    References
    ----------
    B. Leimkuhler and C. Matthews (2013). Rational construction of stochastic numerical methods for
    molecular sampling. Applied Mathematics Research eXpress 2013, 34-56.

    Examples
    --------
    >>> from skbayes_sg.dynamics import LeimkuhlerMatthews
    >>> LeimkuhlerMatthews()
    LeimkuhlerMatthews()
    """

    update = staticmethod(_update)
    n_rows = 2
    exact_on_gaussian = True
