"""Base classes of samplers: how a gradient and a vector of normals move the state of a chain."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["Dynamics", "Metropolis"]


class Dynamics(BaseEstimator):
    """A sampler that takes one stochastic gradient a step.

    A subclass gives the kernel ``update(state_out, gradient, noise, h, parameters)``, a pure
    function, with the arguments

    ``state_out`` : array of shape (n_rows, n_parameters), to be changed
        Row 0 is the position φ; the other rows belong to the dynamics.
    ``gradient`` : array of shape (n_parameters,)
        Estimate of ∇U(φ) at the position before the step.
    ``noise`` : array of shape (n_parameters,)
        Independent standard normals, fresh at every step.
    ``h`` : float
        Step size.
    ``parameters`` : array
        The array that the method `parameters` returns.

    The step size h is that of overdamped Langevin dynamics, ``φ' = φ - (h/2) ∇U(φ) + √h ξ``, for
    every sampler; kinetic ones take time steps of √h. Under a preconditioner P = F Fᵀ the chain
    moves in φ with θ = centre + F φ, which is ``θ' = θ - (h/2) P ∇U(θ) + √h P^(1/2) ξ``; under the
    Hessian preconditioner h is dimensionless, 1 is a step of one posterior standard deviation, and
    4 is where Langevin dynamics explodes.

    The other methods tell "auto" what a step does to a Gaussian of unit curvature. The defaults
    hold for overdamped dynamics; other subclasses override them.

    Attributes
    ----------
    n_rows : int
        Number of rows of the state.
    exact_on_gaussian : bool
        Whether the stationary distribution of the position is exactly the target at any stable step
        size if the target is Gaussian and the gradient has no noise
        (``tests/engine/test_stationary_laws.py::test_exact_on_gaussian_is_a_fact``). "auto" then
        limits the step only by the change of the curvature.
    substep_ratio : float
        The step size h divided by this number is the step size of half the time step: 2, or 4 for
        kinetic dynamics, whose time step is √h.
    """

    update: Any = None
    n_rows = 1
    exact_on_gaussian = False
    substep_ratio = 2.0

    def parameters(self):
        """Return the numbers that the kernel needs besides the step size, as a vector of floats."""
        return np.zeros(0)

    def start(self, position, rng):
        """Return a state at `position`, with the other rows from their stationary law, N(0, I).

        Parameters
        ----------
        position : array of shape (n_parameters,)
        rng : numpy.random.Generator

        Returns
        -------
        array of shape (n_rows, n_parameters)
        """
        state = rng.standard_normal((self.n_rows, len(position)))
        state[0] = position
        return state

    def relaxation_steps(self, h, slowest=1.0):
        """Number of steps in which autocorrelations fall by a factor e, to first order in h.

        The default is that of ``φ' = (1 - h slowest/2) φ + noise``.

        Parameters
        ----------
        h : float
            Step size.
        slowest : float, default=1.0
            Curvature of the direction.

        Returns
        -------
        float
        """
        return 2.0 / (h * slowest)

    def largest_step(self, curvature):
        """The step size at which the dynamics becomes unstable.

        Parameters
        ----------
        curvature : float
            Largest curvature.

        Returns
        -------
        float
        """
        return 4.0 / curvature

    def bias(self, h, curvature=1.0):
        """Relative change of a variance by the step alone, to first order in h or better.

        The default is that of `SGLD`, h a/4, or 0 for dynamics that are exact on a Gaussian
        (``tests/engine/test_stationary_laws.py::test_bias_is_that_of_the_law``).

        Parameters
        ----------
        h : float
            Step size.
        curvature : float, default=1.0
            Curvature of the direction.

        Returns
        -------
        float
        """
        return 0.0 if self.exact_on_gaussian else h * curvature / 4.0

    def widening(self, h, curvature=1.0, noise=0.0):
        """Relative change of a variance by step and gradient noise, exact for a Gaussian if known.

        The default is the sum of both to first order.

        Parameters
        ----------
        h : float
            Step size.
        curvature : float, default=1.0
            Curvature of the direction.
        noise : float, default=0.0
            Relative increase by the noise alone, to first order: `noise_inflation` times the noise.

        Returns
        -------
        float
        """
        return self.bias(h, curvature) + noise

    def step_for_bias(self, bias, curvature=1.0):
        """The step size at which `bias` has a given value, for dynamics that are not exact.

        Parameters
        ----------
        bias : float
            The value.
        curvature : float, default=1.0
            Curvature of the direction.

        Returns
        -------
        float
        """
        return 4.0 * bias / curvature

    def noise_inflation(self, h):
        """Relative change of a unit variance by unit gradient noise, to first order in h.

        By default, noise of variance C adds h² C/4 to the variance at every step, and the share h
        of the variance is forgotten, so that h C/4 remains.

        Parameters
        ----------
        h : float
            Step size.

        Returns
        -------
        float
        """
        return h / 4.0

    def step_for_inflation(self, inflation):
        """The step size at which `noise_inflation` has a given value.

        Parameters
        ----------
        inflation : float
            The value.

        Returns
        -------
        float
        """
        return 4.0 * inflation

    def absorbed(self, variances, h):
        """Return how much of the gradient noise the dynamics removes by itself; nothing by default.

        Parameters
        ----------
        variances : array of shape (n_parameters,)
            The diagonal of the covariance of the noise.
        h : float
            Step size.

        Returns
        -------
        taken, back : arrays of shape (n_parameters,)
            The part of the diagonal of the covariance that is removed, and the part of it that has
            an effect all the same. `noise_inflation` applies to the sum of what remains and what
            comes back; it bounds the size of the change, which may be of either sign.
        """
        return np.zeros_like(variances), np.zeros_like(variances)

    def coupled(self):
        """Return the dynamics whose paths the coupled check of "auto" compares; by default itself.

        Returns
        -------
        Dynamics
            Its states have the same rows as those of this object, or fewer.
        """
        return self

    def coarse_noise(self, h):
        """Return the factors (a, b) that combine the normals of two half steps for a whole step.

        A step of h with noise a ξ1 + b ξ2, and two steps of h/s with ξ1 and ξ2, are driven by the
        same Brownian motion; s is the `substep_ratio`. The coupled check of "auto" relies on this.

        Parameters
        ----------
        h : float
            Step size.

        Returns
        -------
        a, b : float
            With a² + b² = 1.
        """
        del h
        return np.sqrt(0.5), np.sqrt(0.5)


class Metropolis(BaseEstimator):
    """A sampler on the full data that corrects every move by a Metropolis test.

    It leaves the posterior invariant
    (``tests/engine/test_statistical.py::test_metropolis_samplers_have_the_posterior``). Subclasses
    are leapfrog trajectories of different lengths in one kernel: see `HMC`. The step size h of the
    estimators is the square of the leapfrog step, ε = √h; "auto" adapts ε to the acceptance rate
    `target_accept` by dual averaging (Hoffman and Gelman 2014, sec. 3.2) during the warm-up, and
    keeps it from then on.

    Attributes
    ----------
    target_accept : float
        Acceptance rate to which the warm-up tunes the step size.
    """

    target_accept = 0.8

    def path(self):
        """Return the length and the jitter of trajectories.

        Returns
        -------
        length : float
            Mean of ε times the number of leapfrog steps; 0 stands for a single step.
        jitter : float
            ε is multiplied by a number uniform in (1 - jitter, 1 + jitter) for each trajectory.
        """
        raise NotImplementedError
