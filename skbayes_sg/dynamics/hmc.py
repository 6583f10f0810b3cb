"""Hamiltonian Monte Carlo on the full data (Neal 2011): leapfrog trajectories, Metropolis test.

v ~ N(0, I); L times { v ← v - (ε/2)∇U, φ ← φ + ε v, v ← v - (ε/2)∇U }; the end is accepted with
probability min(1, exp(-ΔH)), H = U(φ) + ‖v‖²/2. The posterior is invariant for any ε = √h.
Trajectories have random lengths, so that no direction can be in resonance with them.
"""

from .._base.validation import check_within
from ._base import Metropolis

__all__ = ["HMC"]


class HMC(Metropolis):
    """Hamiltonian Monte Carlo on all rows: the exact reference sampler.

    Leapfrog trajectories with steps ε = √h of the step size h, at most 1024 steps each, end in a
    Metropolis test, which leaves the posterior invariant at any step size
    (``tests/engine/test_statistical.py::test_metropolis_samplers_have_the_posterior``). During the
    warm-up, "auto" adapts ε to an acceptance rate of 0.8 and refines the preconditioner by the
    covariance of the draws; then it halves ε while more than 0.2 % of the trajectories diverge.
    Steps that would lead where the density is zero reverse the momentum.

    Parameters
    ----------
    trajectory : float, default=1.5
        Mean length ε L of a trajectory. Each length is this times a number uniform in (0.7, 1.3),
        with ε jittered by 20 %. In whitened coordinates π/2 makes successive means independent;
        beyond 2.2 the squares, and with them the standard deviations, mix slowly.

    Raises
    ------
    InvalidParameterError
        By `fit`, if the trajectory is not a number in (0, 1000).

    References
    ----------
    R. M. Neal (2011). MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo, ch. 5.

    Examples
    --------
    >>> from skbayes_sg.dynamics import HMC
    >>> HMC(trajectory=1.2)
    HMC(trajectory=1.2)
    """

    target_accept = 0.8

    def __init__(self, trajectory: float = 1.5) -> None:
        self.trajectory = trajectory

    def path(self):
        """Return the mean length of a trajectory and the jitter of ε, which is 0.2."""
        return check_within("trajectory", self.trajectory, self, 0.0, 1e3), 0.2
