"""Draws of a proposal, weighed, judged, and resampled."""

from dataclasses import dataclass, field

import numpy as np

from ..diagnostics import convergence
from .certificate import LARGEST_K, LEAST_SHARE, Certificate, certified, resampled
from .lockstep import ADAPTATION, N_CHAINS, draws_of_each, run_lockstep
from .proposal import matched_normals

__all__ = ["CertifiedDraws", "certified_draws"]

LEAST_DRAWS = 1000  # are proposed, so that Pareto k can be told
CHECKED = 32  # draws at which all rows are looked at, where else only some are
LEFT = 0.05  # sd of the log density that the other rows may leave
LEAST_EFFECTIVE = 0.1  # effective draws, as a share
ENOUGH = 0.3  # of them, so that chains need not be tried
MOST_BYTES = 1 << 28  # of all proposals, where the first are not enough
RHAT = 1.1  # with 64 draws of a chain, when about seven of them are worth one


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
    shares : array of shape (n_modes,)
        Of the modes, by their weights; empty where there is one.
    """

    phi: np.ndarray
    certificate: Certificate
    left: float
    n_exact: int
    ess: float
    rhat: float = 1.0
    chains: dict = field(default_factory=dict)
    shares: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def holds(self):
        """Whether the draws can be believed, as many as are effective."""
        enough = self.ess > LEAST_EFFECTIVE * len(self.phi)
        return self.certificate.pareto_k < LARGEST_K and enough and self.rhat < RHAT


def certified_draws(proposal, n_draws, rng, most_gradients=lambda proposal, n_chains: np.inf):
    """`CertifiedDraws` of a proposal, independent ones if that succeeds.

    Parameters
    ----------
    proposal : Proposal
    n_draws : int
    rng : numpy.random.Generator
    most_gradients : callable
        ``most_gradients(proposal, n_chains)``: how many gradients, of all chains together, chains
        in lockstep may take where the weights of independent draws cannot be trusted.
    """
    psi, phi, log_q = _proposed(proposal, max(n_draws, LEAST_DRAWS), rng)
    with np.errstate(all="ignore"):
        potential, left = _accurate(proposal, phi)
        log_weights = -potential.values(phi) - log_q
        certificate = certified(log_weights)
        n_more = _more(certificate, n_draws, phi.nbytes)
        if n_more:
            _, further, log_q = _proposed(proposal, n_more, rng)
            phi = np.concatenate([phi, further])
            log_weights = np.append(log_weights, -potential.values(further) - log_q)
            certificate = certified(log_weights)
    independent = _independent(rng, phi, certificate, n_draws, left, potential.n_exact)
    if independent.holds and independent.ess > ENOUGH * n_draws:
        return independent
    start = psi[resampled(rng, certified(log_weights[: len(psi)]).weights)]
    start = start[rng.permutation(len(psi))]
    found = _in_lockstep(proposal, start, n_draws, rng, most_gradients)
    return independent if found is None or (independent.holds and not found.holds) else found


def _proposed(proposal, n, rng):
    """ψ, φ and log q(φ) of draws of a proposal, the last up to a constant."""
    psi = matched_normals(rng, n, proposal.frame.target.n_parameters)
    phi, log_det = proposal.warps.position(psi)
    return psi, phi, -0.5 * np.square(psi).sum(axis=1) - log_det


def _more(certificate, n_draws, n_bytes):
    """How many further proposals make half of the draws effective; 0 where they would not."""
    share = certificate.ess / len(certificate.weights)
    if certificate.pareto_k >= LARGEST_K or share < LEAST_EFFECTIVE or share > LEAST_SHARE:
        return 0
    factor = 1.2 * LEAST_SHARE / share
    return int((factor - 1.0) * n_draws) if factor * n_bytes < MOST_BYTES else 0


def _independent(rng, phi, certificate, n_draws, left, n_exact):
    chosen = rng.permutation(resampled(rng, certificate.weights, n_draws))
    lost = 1.0 / certificate.ess + 1.0 / n_draws - 1.0 / len(phi) if certificate.ess else np.inf
    return CertifiedDraws(phi[chosen], certificate, left, n_exact, 1.0 / lost)


def _accurate(proposal, phi):
    """The cheapest potential that is accurate at the draws, and the sd of what it leaves out."""
    few = phi[:CHECKED]
    exact = proposal.exact.values(few)
    for potential in proposal.potentials(LEFT):
        left = float(np.std(exact - potential.values(few)))
        if left <= LEFT:
            return potential, left
    return proposal.exact, 0.0


def _in_lockstep(proposal, start, n_draws, rng, most_gradients):
    n_chains, surrogate = min(N_CHAINS, len(start)), proposal.surrogate
    n_each, most = draws_of_each(n_draws, n_chains), most_gradients(proposal, n_chains)
    if most < ADAPTATION + n_each:
        return None
    found = run_lockstep(surrogate, proposal.warps, start[:n_chains], n_each, rng, most)
    if found is None:
        return None
    # Means may be antithetic; squares mix slowest.
    squares = np.square(found.phi - found.phi.mean(axis=(0, 1)))
    ess, _, rhat, _ = convergence.worst(np.concatenate([found.phi, squares], axis=2))
    phi = found.phi.reshape(-1, found.phi.shape[2])
    phi = phi[np.linspace(0, len(phi) - 1, n_draws).astype(int)]
    potential, left = _accurate(proposal, phi)
    change = 0.0 if potential is surrogate else surrogate.values(phi) - potential.values(phi)
    certificate = certified(change + np.zeros(n_draws))
    share = convergence.weight_efficiency(certificate.weights)
    chosen = resampled(rng, certificate.weights)  # in order: neighbours stay neighbours
    chains = {
        "epsilon": found.epsilon,
        "acceptance": found.acceptance,
        "n_gradients": found.n_gradients,
    }
    return CertifiedDraws(
        phi[chosen], certificate, left, potential.n_exact, share * min(ess, n_draws), rhat, chains
    )
