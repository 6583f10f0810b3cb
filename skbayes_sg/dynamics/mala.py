"""The Metropolis-adjusted Langevin algorithm (Roberts and Tweedie 1996) on the full data.

Propose φ' = φ - (h/2)∇U(φ) + √h ξ and accept with probability
min(1, π(φ') q(φ | φ') / (π(φ) q(φ' | φ))), q(b | a) = N(b; a - (h/2)∇U(a), h).

This is Hamiltonian Monte Carlo with one leapfrog step of ε = √h: with v = ξ the proposal is the
same, and ΔH is minus the logarithm of that ratio. It therefore runs on the same kernel.
"""

from ._base import Metropolis

__all__ = ["MALA"]


class MALA(Metropolis):
    """Metropolis-adjusted Langevin algorithm on all rows: an exact reference sampler.

    A step of `SGLD` with the full gradient is a proposal, which is accepted or rejected so that the
    posterior is invariant at any step size. "auto" adapts the step to an acceptance rate of 0.574.
    It is `HMC` with a single leapfrog step
    (``tests/engine/test_stationary_laws.py::test_mala_is_one_leapfrog_step``).

    References
    ----------
    G. O. Roberts and R. L. Tweedie (1996). Exponential convergence of Langevin distributions and
    their discrete approximations. Bernoulli 2, 341-363.

    Examples
    --------
    >>> from skbayes_sg.dynamics import MALA
    >>> MALA()
    MALA()
    """

    target_accept = 0.574

    def path(self):
        """Return (0, 0): a trajectory is a single leapfrog step, without jitter of ε."""
        return 0.0, 0.0
