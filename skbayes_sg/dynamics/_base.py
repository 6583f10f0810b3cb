"""What a dynamics is: how a gradient and a vector of normals move the state of a chain."""

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
        Estimate of ∇U(φ), at the position that is handed over.
    ``noise`` : array of shape (n_parameters,)
        Independent standard normals, fresh at every step.
    ``h`` : float
        Step size.
    ``parameters`` : array
        What the method `parameters` returns.

    The step size h is that of overdamped Langevin dynamics, ``φ' = φ - (h/2) ∇U(φ) + √h ξ``, for
    every sampler; kinetic ones take time steps of √h. Under a preconditioner P = F Fᵀ the chain
    moves in φ with θ = centre + F φ, which is ``θ' = θ - (h/2) P ∇U(θ) + √h P^(1/2) ξ``; under the
    Hessian preconditioner h is dimensionless, 1 is a step of one posterior standard deviation, and
    4 is where Langevin dynamics explodes.

    The other methods tell "auto" what a step does to a Gaussian of unit curvature. What is here
    holds for overdamped dynamics; other subclasses override what differs.

    Attributes
    ----------
    n_rows : int
        Rows of the state.
    exact_on_gaussian : bool
        Whether the position has exactly the target's law when that is Gaussian and the gradient
        has no noise, at any stable step size. "auto" then limits the step by the change of the
        curvature alone.
    substep_ratio : float
        Half a step in time is a step size of h over this number: 2, or 4 for kinetic dynamics.
    """

    update: Any = None
    n_rows = 1
    exact_on_gaussian = False
    substep_ratio = 2.0

    def parameters(self):
        """The numbers that the kernel needs besides the step size, a vector of floats."""
        return np.zeros(0)

    def start(self, position, rng):
        """A state at `position`, the other rows drawn from their stationary law, N(0, I).

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
        """Steps in which a direction forgets a factor e of its past, to first order in h.

        Here that of ``φ' = (1 - h slowest/2) φ + noise``.

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
        """The step size at which a direction of some curvature explodes.

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
        """Share by which the step alone raises a variance, to first order in h or better.

        Here that of `SGLD`, h a/4, or 0 for what is exact on a Gaussian.

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

    def step_for_bias(self, bias, curvature=1.0):
        """The step size at which `bias` has a value, for dynamics that are not exact.

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
        """Share by which unit gradient noise raises a unit variance, to first order in h.

        Here noise of variance C adds h² C/4 to the variance at every step, and a share h of what
        is there is forgotten: h C/4 remains.

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
        """The step size at which `noise_inflation` has a value.

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
        """How much of the gradient's noise the dynamics takes out again by itself; here nothing.

        Parameters
        ----------
        variances : array of shape (n_parameters,)
            The diagonal of the covariance of the noise.
        h : float
            Step size.

        Returns
        -------
        taken, back : arrays of shape (n_parameters,)
            What is taken off the diagonal of the covariance, and how much of it has an effect all
            the same. `noise_inflation` is for the sum of what remains and what comes back, in size:
            variances may be raised or lowered by it.
        """
        return np.zeros_like(variances), np.zeros_like(variances)

    def coupled(self):
        """The dynamics whose paths the coupled check of "auto" compares: as a rule, this one.

        Returns
        -------
        Dynamics
            With states of the same rows, or fewer.
        """
        return self

    def coarse_noise(self, h):
        """How the normals of two half steps make that of a whole one.

        A step of h with noise a ξ1 + b ξ2, and two of h/s with ξ1 and ξ2, s the `substep_ratio`,
        are driven by the same Brownian motion. The coupled check of "auto" rests on it.

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
    """A sampler on the full data that corrects every move by a Metropolis test: no bias at all.

    Subclasses are leapfrog trajectories of different lengths, on one kernel: see `HMC`. The step
    size h of the estimators is the square of the leapfrog step, ε = √h; "auto" adapts ε to the
    acceptance rate `target_accept` by dual averaging (Hoffman and Gelman 2014, sec. 3.2) while
    warming up, and then keeps it.

    Attributes
    ----------
    target_accept : float
        Acceptance rate that the step size is tuned to while warming up.
    """

    target_accept = 0.8

    def path(self):
        """What a trajectory looks like.

        Returns
        -------
        length : float
            Mean of ε times the number of leapfrog steps; 0 is a single step always.
        jitter : float
            ε is multiplied by a number uniform in (1 - jitter, 1 + jitter), anew each time.
        """
        raise NotImplementedError
