"""Kinetic Langevin dynamics by the BAOAB splitting (Leimkuhler and Matthews 2013).

dφ = v dt, dv = -∇U dt - γ v dt + √(2γ) dW, with time step δ = √h::

    B  v ← v - δ ĝ(φ)          (the half kicks of two neighbouring steps share one gradient)
    A  φ ← φ + (δ/2) v
    O  v ← c v + √(1 - c²) ξ,  c = e^(-γδ)
    A  φ ← φ + (δ/2) v

For a Gaussian target and exact gradients the position has exactly the target's law at any stable
step, δ² λ_max < 4 (``tests/engine/test_stationary_laws.py::test_exact_on_gaussian_is_a_fact``).
Gradient noise of covariance C adds δ C/(2γ) to the variance of a unit Gaussian,
to first order in δ (at δ = γ = 1 it is 1.4 times that). The number of steps to mix grows with the
square root of the condition number, and for overdamped dynamics with the condition number itself.
"""

import math

import numpy as np

from .._base.jit import pointee
from .._base.validation import check_positive
from ._base import Dynamics

__all__ = ["BAOAB"]


@pointee
def _update(state_out, gradient, noise, h, parameters):
    phi, v = state_out[0], state_out[1]
    delta = math.sqrt(h)
    c = math.exp(-parameters[0] * delta)
    s = math.sqrt(1.0 - c * c)
    for j in range(phi.shape[0]):
        v[j] -= delta * gradient[j]
        phi[j] += 0.5 * delta * v[j]
        v[j] = c * v[j] + s * noise[j]
        phi[j] += 0.5 * delta * v[j]


class BAOAB(Dynamics):
    """Kinetic Langevin dynamics by the BAOAB splitting, with one gradient a step; "auto" uses it.

    ``dφ = v dt, dv = -∇U dt - γ v dt + √(2γ) dW`` with time steps δ = √h of the step size h: a kick
    ``v - δ ĝ``, half a drift, exact friction and noise, half a drift. For a Gaussian target
    without gradient noise the law of φ is the target at every δ² λ_max < 4
    (``tests/engine/test_stationary_laws.py::test_exact_on_gaussian_is_a_fact``).

    Parameters
    ----------
    friction : float, default=1.0
        γ, in units of one over the whitened time: momentum is forgotten in a time 1/γ. In a
        direction of standard deviation 1, means have the autocorrelation time γ and squares
        (γ + 1/γ)/2, in continuous time: the latter is smallest for γ = 1.

    Raises
    ------
    InvalidParameterError
        By `fit`, if the friction is not a positive finite number.

    References
    ----------
    B. Leimkuhler and C. Matthews (2013). Rational construction of stochastic numerical methods for
    molecular sampling. Applied Mathematics Research eXpress 2013, 34-56.

    Examples
    --------
    >>> from skbayes_sg.dynamics import BAOAB
    >>> BAOAB(friction=2.0)
    BAOAB(friction=2.0)
    """

    update = staticmethod(_update)
    n_rows = 2
    exact_on_gaussian = True
    substep_ratio = 4.0

    def __init__(self, friction: float = 1.0) -> None:
        self.friction = friction

    @property
    def _gamma(self):
        return check_positive("friction", self.friction, self)

    def parameters(self):
        """Return the friction γ, in a vector."""
        return np.array([self._gamma])

    def relaxation_steps(self, h, slowest=1.0):
        """Return the number of steps in which a direction's autocorrelation falls by a factor e."""
        half = 0.5 * self._gamma
        rate = half - np.sqrt(max(half * half - slowest, 0.0))
        return 1.0 / (np.sqrt(h) * rate)

    def noise_inflation(self, h):
        """Return δ/(2γ), as each kick adds gradient noise and friction removes it."""
        return np.sqrt(h) / (2.0 * self._gamma)

    def step_for_inflation(self, inflation):
        """Return the step size h = (2 γ inflation)² with this `noise_inflation`."""
        return (2.0 * self._gamma * inflation) ** 2

    def coarse_noise(self, h):
        """Return the factors (a, b) that combine the Ornstein-Uhlenbeck noise of two half steps."""
        c = np.exp(-self._gamma * np.sqrt(h) / 2.0)
        return c / np.sqrt(1.0 + c * c), 1.0 / np.sqrt(1.0 + c * c)
