"""Hamiltonian Monte Carlo on the full data (Neal 2011): leapfrog trajectories, Metropolis test.

v ~ N(0, I); L times { v ← v - (ε/2)∇U, φ ← φ + ε v, v ← v - (ε/2)∇U }; the end is accepted with
probability min(1, exp(-ΔH)), H = U(φ) + ‖v‖²/2. Exact for any ε = √h. The number of leapfrog steps
is that of a trajectory of random length, so that no direction can be in resonance with it.
"""

from ..exceptions import InvalidParameterError
from ._base import Metropolis

__all__ = ["HMC"]


class HMC(Metropolis):
    """Hamiltonian Monte Carlo, exact, on all rows: the reference sampler.

    Leapfrog trajectories with steps ε = √h of the step size h, at most 1024 a trajectory, and a
    Metropolis test of their ends. "auto" adapts ε to an acceptance rate of 0.8, and refines the
    preconditioner by the covariance of the draws, while warming up.

    Parameters
    ----------
    trajectory : float, default=1.5
        Mean length ε L of a trajectory; each is this times a number uniform in (0.7, 1.3), with ε
        jittered by 20 %. In whitened coordinates π/2 makes successive means independent; beyond
        2.2 the squares, and so the standard deviations, mix slowly.

    Raises
    ------
    InvalidParameterError
        When it is used with a trajectory outside (0, 1000).

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

    def __init__(self, trajectory=1.5):
        self.trajectory = trajectory

    def path(self):
        """(length, jitter of ε)."""
        if not 0.0 < self.trajectory < 1e3:
            raise InvalidParameterError(
                f"The trajectory of {self!r} must be positive and below 1000."
            )
        return float(self.trajectory), 0.2
