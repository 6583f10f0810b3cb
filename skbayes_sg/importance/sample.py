"""Draws of a proposal, weighed, judged, and resampled."""

from dataclasses import dataclass, field

import numpy as np

from ..diagnostics import convergence
from .certificate import LARGEST_K, LEAST_SHARE, Certificate, certified, resampled
from .lockstep import ADAPTATION, N_CHAINS, UNLIMITED, draws_of_each, run_lockstep
from .proposal import matched_normals

__all__ = ["CertifiedDraws", "accurate", "certified_draws", "effective"]

LEAST_DRAWS = 1000  # are proposed, so that Pareto k can be told
CHECKED = 32  # draws at which all rows are looked at, where else only some are
LEFT = 0.05  # sd of the log density that the other rows may leave
LEFT_FAR = 0.25  # by how much polynomials may be off far from the centre
LEAST_EFFECTIVE = 0.1  # effective draws, as a share
FEW_EFFECTIVE = 0.025  # with which draws are better than chains that take long
ENOUGH = 0.3  # of them, so that chains need not be tried
SLOW = 0.15  # share of effective draws of chains, below which they are thinned
MOST_THIN = 8
MOST_BYTES = 1 << 28  # of all proposals, where the first are not enough
N_SERIES = 4  # of chains in lockstep, one after the other
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
        Of the chains in lockstep: ``epsilon``, ``acceptance``, and ``n_gradients`` of all chains
        together; else empty.
    shares : array of shape (n_modes,)
        Of the modes, by their weights; empty where there is one.
    order : int
        To which the others are kept there, 2 or 4.
    """

    phi: np.ndarray
    certificate: Certificate
    left: float
    n_exact: int
    ess: float
    rhat: float = 1.0
    chains: dict = field(default_factory=dict)
    shares: np.ndarray = field(default_factory=lambda: np.empty(0))
    order: int = 2

    @property
    def holds(self):
        """Whether the draws can be believed, and enough of them are effective."""
        return self.is_sound and self.ess > LEAST_EFFECTIVE * len(self.phi)

    @property
    def share(self):
        """Factor on effective sample sizes that are measured from the draws.

        Those see that draws of a chain depend on each other, but not that some draws are repeated.
        """
        if self.chains:
            return convergence.weight_efficiency(self.certificate.weights)
        return self.ess / len(self.phi)

    @property
    def is_sound(self):
        """Whether the draws can be believed, as many as are effective, and there are some."""
        some = self.ess > FEW_EFFECTIVE * len(self.phi)
        return self.certificate.pareto_k < LARGEST_K and some and self.rhat < RHAT


def certified_draws(proposal, n_draws, rng, budget_of=lambda proposal: UNLIMITED, light=False):
    """`CertifiedDraws` of a proposal, independent ones if that succeeds.

    Parameters
    ----------
    proposal : Proposal
    n_draws : int
    rng : numpy.random.Generator
    budget_of : callable
        ``budget_of(proposal)``: the `Budget` of chains in lockstep, where the weights of
        independent draws cannot be trusted.
    light : bool
        Whether chains in lockstep are preferred to independent draws whose weights have a heavy
        tail.
    """
    psi, phi, log_q = _proposed(proposal, max(n_draws, LEAST_DRAWS), rng)
    with np.errstate(all="ignore"):
        potential, left = accurate(proposal, phi)
        log_weights = -potential.values(phi) - log_q
        certificate = certified(log_weights)
        n_more = _more(certificate, n_draws, phi.nbytes)
        if n_more:
            _, further, log_q = _proposed(proposal, n_more, rng)
            phi = np.concatenate([phi, further])
            log_weights = np.append(log_weights, -potential.values(further) - log_q)
            certificate = certified(log_weights)
    independent = _independent(rng, phi, certificate, n_draws, left, potential)
    cut = light and certificate.has_heavy_tail
    if independent.holds and independent.ess > ENOUGH * n_draws and not cut:
        return independent
    start = psi[resampled(rng, certified(log_weights[: len(psi)]).weights)]
    start = start[rng.permutation(len(psi))]
    found = _in_lockstep(proposal, start, n_draws, rng, budget_of)
    if cut and found is not None and found.holds:
        return found
    return max(filter(None, (independent, found)), key=lambda draws: (draws.holds, draws.ess))


def _proposed(proposal, n, rng):
    """ψ, φ and log q(φ) of draws of a proposal, the last up to a constant."""
    psi = matched_normals(rng, n, proposal.n_parameters)
    phi, log_det = proposal.warps.position(psi)
    return psi, phi, -0.5 * np.square(psi).sum(axis=1) - log_det


def _more(certificate, n_draws, n_bytes):
    """How many further proposals make half of the draws effective; 0 where they would not."""
    share = certificate.ess / len(certificate.weights)
    if certificate.pareto_k >= LARGEST_K or share < LEAST_EFFECTIVE or share > LEAST_SHARE:
        return 0
    factor = 1.2 * LEAST_SHARE / share
    return int((factor - 1.0) * n_draws) if factor * n_bytes < MOST_BYTES else 0


def _independent(rng, phi, certificate, n_draws, left, potential):
    chosen = rng.permutation(resampled(rng, certificate.weights, n_draws))
    ess = effective(certificate, n_draws)
    n_exact, order = potential.n_exact, potential.order
    return CertifiedDraws(phi[chosen], certificate, left, n_exact, ess, order=order)


def effective(certificate, n_draws):
    """Effective sample size of so many independent draws that are resampled by their weights."""
    if certificate.ess == 0.0:
        return 0.0
    lost = 1.0 / certificate.ess + 1.0 / n_draws - 1.0 / len(certificate.weights)
    return min(1.0 / lost, float(n_draws), certificate.ess)


def accurate(proposal, phi):
    """The cheapest potential that is accurate at the draws, and the sd of what it leaves out."""
    few = phi[:CHECKED]
    exact = proposal.exact.values(few)
    for potential in proposal.potentials(LEFT, phi):
        left = float(np.std(exact - potential.values(few)))
        if left <= LEFT and potential.error_far(phi) <= LEFT_FAR:
            return potential, left
    return proposal.exact, 0.0


def _in_lockstep(proposal, start, n_draws, rng, budget_of):
    """Draws of chains in lockstep, thinned if they mix slowly; None if they take too long."""
    n_chains = min(N_CHAINS, len(start))
    budget = budget_of(proposal)
    if budget.most < n_chains * (ADAPTATION + draws_of_each(n_draws, n_chains)):
        return None
    chains = run_lockstep(
        proposal.surrogate, proposal.warps, start[:n_chains], n_draws, rng, budget,
        proposal.other_motion,
    )  # fmt: skip
    if chains is None:
        return None
    found, thin = _weighed(proposal, chains, n_draws, rng), 1
    while found.ess < SLOW * n_draws and thin < MOST_THIN:  # short chains overestimate it
        thin = int(min(np.ceil(thin * ENOUGH * n_draws / max(found.ess, 1.0)), MOST_THIN))
        longer = chains.thinned(thin, budget)
        if longer is None:
            break
        found = _weighed(proposal, longer, n_draws, rng)
    return found


def _weighed(proposal, chains, n_draws, rng):
    """`CertifiedDraws` of chains that have the law of the surrogate."""
    phi, surrogate = chains.phi.reshape(-1, chains.phi.shape[2]), proposal.surrogate
    is_exact = surrogate is proposal.exact
    potential, left = (surrogate, 0.0) if is_exact else accurate(proposal, phi)
    change = 0.0 if potential is surrogate else surrogate.values(phi) - potential.values(phi)
    certificate = certified(change + np.zeros(len(phi)))
    share = convergence.weight_efficiency(certificate.weights)
    phi = phi[resampled(rng, certificate.weights)]  # keeps the order of the chains
    ess, rhat = min(_effective_of_chains(phi), n_draws), _rhat(chains)
    told = {
        "epsilon": chains.epsilon,
        "acceptance": chains.acceptance,
        "n_gradients": chains.n_gradients,
    }
    phi = phi[np.linspace(0, len(phi) - 1, n_draws).astype(int)]
    return CertifiedDraws(phi, certificate, left, potential.n_exact, share * ess, rhat, told)


def _rhat(chains):
    """The largest R-hat of a coordinate, or that of the distance from the centre, log |ψ|².

    Chains that begin at proposals and move outwards for longer than they run agree about each
    coordinate, but not about how far out they are. It is infinite where one has not moved at all.
    """
    if chains.has_stuck:
        return np.inf
    return max(convergence.worst_rhat(chains.phi)[0], float(convergence.rhat(chains.distances)))


def _effective_of_chains(phi):
    """The smallest effective sample size of short chains that follow one another.

    Autocorrelations that reach beyond a short chain cannot be seen in it, but in a few long series.
    """
    series = phi[: len(phi) // N_SERIES * N_SERIES].reshape(N_SERIES, -1, phi.shape[1])
    return convergence.least_of_slowest(series)
