"""Draws of a proposal, weighed, judged, and resampled."""

from dataclasses import dataclass, field

import numpy as np

from ..diagnostics import convergence
from .certificate import Certificate, certified, resampled
from .lockstep import N_CHAINS, run_lockstep
from .proposal import matched_normals

__all__ = ["CertifiedDraws", "certified_draws"]

LEAST_DRAWS = 1000  # are proposed, so that Pareto k can be told
CHECKED = 32  # draws at which all rows are looked at, where else only some are
LEFT = 0.05  # sd of the log density that the other rows may leave
MIXED = 0.1  # effective draws of the chains in lockstep, as a share
RHAT = 1.05


@dataclass
class CertifiedDraws:
    """Draws that count the same, and why to believe them.

    Attributes
    ----------
    phi : array of shape (n_draws, n_parameters)
    certificate : Certificate
    left : float
        Standard deviation, over draws, of the log density that rows with small remainders would
        add: an omitted remainder of sd δ moves no mean by more than about δ standard deviations.
    n_exact : int
        Rows that are exact in the weights of all draws.
    ess : float
        Effective sample size: of the weights, and of the chains in lockstep where there are any.
    rhat : float
    chains : dict
        Of the chains in lockstep: ``epsilon``, ``acceptance``, ``n_gradients``; else empty.
    """

    phi: np.ndarray
    certificate: Certificate
    left: float
    n_exact: int
    ess: float
    rhat: float = 1.0
    chains: dict = field(default_factory=dict)

    @property
    def holds(self):
        """Whether the draws can be believed."""
        mixed = not self.chains or (self.ess > MIXED * len(self.phi) and self.rhat < RHAT)
        return self.certificate.holds and mixed


def certified_draws(proposal, n_draws, rng, affordable=lambda proposal, n_chains: True):
    """`CertifiedDraws` of a proposal, independent ones if that succeeds.

    Parameters
    ----------
    proposal : Proposal
    n_draws : int
    rng : numpy.random.Generator
    affordable : callable
        ``affordable(proposal, n_chains)``: whether chains in lockstep may be run where the weights
        of independent draws cannot be trusted.
    """
    n_proposed = max(n_draws, LEAST_DRAWS)
    psi = matched_normals(rng, n_proposed, proposal.frame.target.n_parameters)
    phi, log_det = proposal.warps.position(psi)
    log_q = -0.5 * np.square(psi).sum(axis=1) - log_det
    with np.errstate(all="ignore"):
        values, left, n_exact = _values(proposal, phi)
        certificate = certified(-values - log_q)
    if certificate.holds or not affordable(proposal, N_CHAINS):
        chosen = rng.permutation(resampled(rng, certificate.weights, n_draws))
        ess = certificate.ess * n_draws / n_proposed
        return CertifiedDraws(phi[chosen], certificate, left, n_exact, ess)
    start = psi[resampled(rng, certificate.weights)]
    return _in_lockstep(proposal, start[rng.permutation(n_proposed)], n_draws, rng)


def _values(proposal, phi):
    """U at draws, the sd of what it leaves out, and how many rows are exact in it."""
    few = phi[: min(CHECKED, len(phi))]
    exact = proposal.exact.values(few)
    for potential in proposal.potentials(LEFT):
        left = float(np.std(exact - potential.values(few)))
        if left <= LEFT:
            return potential.values(phi), left, potential.n_exact
    return proposal.exact.values(phi), 0.0, proposal.exact.n_exact


def _in_lockstep(proposal, start, n_draws, rng):
    n_chains = min(N_CHAINS, len(start))
    surrogate = proposal.surrogate
    found = run_lockstep(surrogate, proposal.warps, start[:n_chains], -(-n_draws // n_chains), rng)
    ess, _, rhat, _ = convergence.worst(found.phi)
    phi = found.phi.reshape(-1, found.phi.shape[2])[:n_draws]
    certificate, left, n_exact = certified(np.zeros(n_draws)), 0.0, surrogate.n_exact
    if n_exact < proposal.exact.n_exact:
        values, left, n_exact = _values(proposal, phi)
        certificate = certified(surrogate.values(phi) - values)
    share = convergence.weight_efficiency(certificate.weights)
    chosen = resampled(rng, certificate.weights)  # in order: neighbours stay neighbours
    chains = {
        "epsilon": found.epsilon,
        "acceptance": found.acceptance,
        "n_gradients": found.n_gradients,
    }
    return CertifiedDraws(phi[chosen], certificate, left, n_exact, share * ess, rhat, chains)
