"""What a dynamics is: how a gradient and a vector of normals move the state of a chain."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["Dynamics", "Metropolis"]


class Dynamics(BaseEstimator):
    """A sampler that takes one stochastic gradient a step.

    The kernel ``update(state_out, gradient, noise, h, parameters)`` is a pure function: row 0 of
    the state is the position φ, the other rows belong to the dynamics; `noise` is one vector of
    standard normals. The step size h is that of overdamped Langevin dynamics,
    ``φ' = φ - (h/2) ∇U(φ) + √h ξ``, for every sampler; kinetic ones take time steps of √h. Under a
    preconditioner P = F Fᵀ the chain moves in φ with θ = centre + F φ, which is
    ``θ' = θ - (h/2) P ∇U(θ) + √h P^(1/2) ξ``; under the Hessian preconditioner h is dimensionless,
    1 is a step of one posterior standard deviation, and 4 is where Langevin dynamics explodes.

    Attributes
    ----------
    n_rows : int
        Rows of the state.
    exact_on_gaussian : bool
        Whether the position has exactly the target's law when that is Gaussian and the gradient
        has no noise, at any stable step size.
    """

    update: Any = None
    n_rows = 1
    exact_on_gaussian = False

    def parameters(self):
        """The numbers the kernel needs besides the step size."""
        return np.zeros(0)

    def start(self, position, rng):
        """A state at `position`, the other rows drawn from their stationary law."""
        state = rng.standard_normal((self.n_rows, len(position)))
        state[0] = position
        return state

    def relaxation_steps(self, h, slowest=1.0):
        """Steps in which a direction of curvature `slowest` forgets a factor e of its past."""
        return 2.0 / (h * slowest)

    def noise_inflation(self, h):
        """Share by which unit gradient noise raises the variance of a direction of curvature 1."""
        return h / 4.0

    def step_for_inflation(self, inflation):
        """The step size at which `noise_inflation` is `inflation`."""
        return 4.0 * inflation

    def coarse_noise(self, h):
        """(a, b) such that one step of h with noise a ξ1 + b ξ2 follows two of h/s with ξ1, ξ2.

        s is `substep_ratio`: both paths are driven by the same Brownian motion.
        """
        del h
        return np.sqrt(0.5), np.sqrt(0.5)

    substep_ratio = 2.0
    """Half a step in time is a step size of h over this number."""


class Metropolis(BaseEstimator):
    """A sampler on the full data that corrects every move by a Metropolis test: no bias at all.

    Attributes
    ----------
    target_accept : float
        Acceptance rate that the step size is tuned to while warming up.
    """

    target_accept = 0.8

    def path(self):
        """(mean length of a trajectory, jitter of its step); length 0 is a single step."""
        raise NotImplementedError
