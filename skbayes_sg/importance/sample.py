"""Draws of a proposal: weighted, judged by Pareto k and effective sample size, and resampled."""

from dataclasses import dataclass, field

import numpy as np

from ..diagnostics import convergence
from .certificate import LARGEST_K, Certificate, certified, resampled
from .lockstep import ADAPTATION, N_CHAINS, UNLIMITED, draws_of_each, run_lockstep
from .proposal import matched_normals

__all__ = ["CertifiedDraws", "accurate", "certified_draws", "draws_of_chains", "effective"]

LEAST_DRAWS = 1000  # least number of proposed draws, so that Pareto k can be estimated
CHECKED = 32  # draws at which potentials are compared with that of all rows
LEFT = 0.05  # largest sd, in nats, of the log density that rows which are not exact may leave
LEFT_FAR = 0.25  # largest error, in nats, of polynomials far from the centre
LEAST_EFFECTIVE = 0.1  # least share of effective draws for draws to hold, or more to be proposed
WANTED_SHARE = 0.5  # share of effective draws that further proposed draws are to reach
FEW_EFFECTIVE = 0.025  # share of effective draws from which they are better than long chains
USUAL_SDS = 8.0  # U of n parameters is n/2 above its minimum, ± so many times √(n/2)
MOST_HALVINGS = 10  # largest number of times that a starting point is moved half way to the centre
ENOUGH = 0.3  # share of effective draws from which chains in lockstep need not be tried
MOST_PILOT = 10_000  # largest number of draws that tables are made of
SLOW = 0.15  # share of effective draws of chains in lockstep below which they are thinned
MOST_THIN = 8  # largest number of trajectories for each draw of chains in lockstep
MOST_BYTES = 1 << 28  # no further draws are proposed if all would take more memory
N_SERIES = 4  # series to which draws of chains in lockstep are joined, chain after chain
RHAT = 1.1  # limit for chains in lockstep; with 64 draws each, about seven are then worth one


@dataclass
class CertifiedDraws:
    """Draws of equal weight, and why to believe them.

    Attributes
    ----------
    phi : array of shape (n_draws, n_parameters)
    certificate : Certificate
    left : float
        Standard deviation, over draws, of the log density that rows with small remainders would
        add: an omitted remainder of sd δ moves no mean by more than about δ standard deviations.
    n_exact : int
        Number of rows that are exact in the weights of all draws.
    ess : float
        Effective sample size: of the weights, and of the chains in lockstep where there are any.
    rhat : float
        R-hat of the chains in lockstep; 1 for independent draws.
    chains : dict
        Measurements of the chains in lockstep: ``epsilon``, ``acceptance``, and ``n_gradients`` of
        all chains together. It is empty for independent draws.
    shares : array of shape (n_modes,)
        Shares of the modes in the mass, by their weights; empty for draws of one proposal.
    order : int
        Order, 2 or 4, to which the other rows are kept in the weights.
    tried_chains : bool
        Whether chains in lockstep were tried for independent draws, and were no better.
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
    tried_chains: bool = False

    @property
    def holds(self):
        """Whether the draws can be believed, and enough of them are effective."""
        return self.is_sound and self.ess > LEAST_EFFECTIVE * len(self.phi)

    @property
    def share(self):
        """Factor on effective sample sizes that are measured from the draws.

        Measured sizes show that draws of a chain depend on each other, but not that some draws are
        repeated.
        """
        if self.chains:
            return convergence.weight_efficiency(self.certificate.weights)
        return self.ess / len(self.phi)

    @property
    def pareto_k(self):
        """Pareto k of the weights, at least 0: a smaller one says no more."""
        return float(np.fmax(self.certificate.pareto_k, 0.0))

    @property
    def measured(self):
        """What `diagnostics_` says of the draws: sample sizes, R-hat and Pareto k."""
        found = {"min_ess": float(self.ess), "max_rhat": float(self.rhat)}
        return found | {"pareto_k": self.pareto_k, "weights_ess": self.certificate.ess}

    def evidence(self, n_parameters):
        """What `Posterior.evidence` says of each parameter: the same for all of them."""
        told = {"resampled_share": self.share, "pareto_k": self.pareto_k}
        told |= {} if self.chains else {"independent": 1.0}
        return {name: np.full(n_parameters, value) for name, value in told.items()}

    @property
    def is_sound(self):
        """Whether the effective draws can be believed, and are not all too few."""
        some = self.ess > FEW_EFFECTIVE * len(self.phi)
        return self.certificate.pareto_k < LARGEST_K and some and self.rhat < RHAT


def certified_draws(proposal, n_draws, rng, budget_of=lambda proposal: UNLIMITED, light=False):
    """Make `CertifiedDraws` from a proposal: independent ones, or by chains where these fail.

    Parameters
    ----------
    proposal : Proposal
    n_draws : int
    rng : numpy.random.Generator
    budget_of : callable
        ``budget_of(proposal)`` returns the `Budget` of chains in lockstep, which are tried where
        the weights of independent draws cannot be trusted.
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
    independent.tried_chains = True
    start = _starts(proposal, psi, log_weights[: len(psi)], rng)
    del psi, phi  # as large as all draws that the chains will make
    found = _in_lockstep(proposal, start, n_draws, rng, budget_of)
    if cut and found is not None and found.holds:
        return found
    return max(filter(None, (independent, found)), key=lambda draws: (draws.holds, draws.ess))


def draws_of_chains(proposal, n_draws, rng, budget_of):
    """`CertifiedDraws` of chains in lockstep, as in `certified_draws`; None if too dear."""
    psi, phi, log_q = _proposed(proposal, LEAST_DRAWS, rng)
    with np.errstate(all="ignore"):
        log_weights = -accurate(proposal, phi)[0].values(phi) - log_q
    start = _starts(proposal, psi, log_weights, rng)
    return _in_lockstep(proposal, start, n_draws, rng, budget_of)


def _starts(proposal, psi, log_weights, rng):
    """Where chains begin: at proposed draws that are chosen by their weights.

    If a few draws have all of the weight, they are the least bad of draws that may all be far from
    the posterior. Chains then begin at any draws; and wherever U is larger than in a posterior,
    they begin nearer to the centre.
    """
    certificate = certified(log_weights)
    if certificate.ess > N_CHAINS:
        chosen = resampled(rng, certificate.weights)[rng.permutation(len(psi))]
    else:
        chosen = np.arange(len(psi))
    start = psi[chosen[:N_CHAINS]]
    half = 0.5 * proposal.n_parameters
    for _ in range(MOST_HALVINGS):
        with np.errstate(all="ignore"):
            values = proposal.surrogate.values(proposal.warps.position(start)[0])
        is_far = ~(values < half + USUAL_SDS * np.sqrt(half))
        if not is_far.any():
            break
        start[is_far] *= 0.5
    return start


def _proposed(proposal, n, rng):
    """Draw n rows from a proposal: return ψ, φ, and log q(φ) up to a constant."""
    psi = matched_normals(rng, n, proposal.n_parameters)
    phi, log_det = proposal.warps.position(psi)
    return psi, phi, -0.5 * np.square(psi).sum(axis=1) - log_det


def _more(certificate, n_draws, n_bytes):
    """How many further proposed draws make half of `n_draws` effective; 0 where none are made."""
    share = certificate.ess / len(certificate.weights)
    if certificate.pareto_k >= LARGEST_K or share < LEAST_EFFECTIVE or share > WANTED_SHARE:
        return 0
    factor = 1.2 * WANTED_SHARE / share
    return int((factor - 1.0) * n_draws) if factor * n_bytes < MOST_BYTES else 0


def _independent(rng, phi, certificate, n_draws, left, potential):
    """`CertifiedDraws` that are resampled from proposed draws φ, in random order."""
    chosen = rng.permutation(resampled(rng, certificate.weights, n_draws))
    ess = effective(certificate, n_draws)
    n_exact, order = potential.n_exact, potential.order
    return CertifiedDraws(phi[chosen], certificate, left, n_exact, ess, order=order)


def effective(certificate, n_draws):
    """Effective sample size of `n_draws` independent draws, resampled by certified weights."""
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
    """`CertifiedDraws` of chains in lockstep, thinned if these mix slowly; None if too dear."""
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
    found = _weighed(proposal, chains, n_draws, rng)
    if found.ess < SLOW * n_draws or not found.rhat < RHAT:
        chains, found, budget = _on_marginals(proposal, chains, found, n_draws, rng, budget)
    # Short chains overestimate their ess; and longer ones have no better weights.
    while found.ess < SLOW * n_draws and found.certificate.pareto_k < LARGEST_K:
        most = MOST_THIN // chains.thin
        if most < 2 or _needs_more(found.rhat) > most:
            break
        wanted = int(min(np.ceil(ENOUGH * n_draws / max(found.ess, 1.0)), most))
        longer = chains.thinned(range(wanted, 1, -1), budget)
        if longer is None:
            break
        chains = longer
        found = _weighed(proposal, chains, n_draws, rng)
    return found


def _on_marginals(proposal, chains, found, n_draws, rng, budget):
    """Chains on warps to the marginal laws of the later half of draws, if these are better.

    The result is such chains, or those that are given, their `CertifiedDraws`, and the `Budget` for
    all of their gradients, with those before. They move on the U of all rows if the weights for the
    difference of the surrogate from it cannot be trusted.
    """
    draws = _joined(chains.phi[:, chains.phi.shape[1] // 2 :])
    warps = proposal.warps_of_draws(draws[:: -(-len(draws) // MOST_PILOT)])
    if warps is None:
        return chains, found, budget
    psi, _ = warps.inverse(chains.phi[:, -1])
    potential, dearer = proposal.surrogate, 1.0
    if found.certificate.pareto_k >= LARGEST_K:
        dearer = proposal.exact.n_exact / max(potential.n_exact, 1)
        potential = proposal.exact
    left = budget.after(chains.n_gradients).of_dearer(dearer)
    others = run_lockstep(potential, warps, psi, n_draws, rng, left)
    if others is None:
        return chains, found, budget
    better = _weighed(proposal, others, n_draws, rng)
    both = (chains, found, budget.after(dearer * others.n_gradients)), (others, better, left)
    return max(both, key=lambda result: _quality(result[1]))


def _quality(found):
    """What is larger for better draws: whether they can be believed, and effective draws."""
    return found.rhat < RHAT and found.certificate.pareto_k < LARGEST_K, found.ess


def _joined(phi):
    """Draws of all chains, (n_chains, n_draws, n_parameters), chain after chain."""
    return phi.reshape(-1, phi.shape[2])


def _needs_more(rhat):
    """How many times as long chains must be for R-hat to reach its limit: R² - 1 falls like 1/n."""
    return (rhat**2 - 1.0) / (RHAT**2 - 1.0)


def _weighed(proposal, chains, n_draws, rng):
    """`CertifiedDraws` of chains, with weights for the difference of their potential from U."""
    phi, own = _joined(chains.phi), chains.motion.potential
    is_exact = own is proposal.exact
    potential, left = (own, 0.0) if is_exact else accurate(proposal, phi)
    change = 0.0 if potential is own else own.values(phi) - potential.values(phi)
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
    coordinate, but not about how far out they are. R-hat is infinite where a chain has not moved.
    """
    if chains.has_stuck:
        return np.inf
    return max(convergence.worst_rhat(chains.phi)[0], float(convergence.rhat(chains.distances)))


def _effective_of_chains(phi):
    """The smallest effective sample size of a coordinate, from the draws of short chains in order.

    Autocorrelations that reach beyond a short chain cannot be seen in it: the chains are joined to
    a few long series.
    """
    series = phi[: len(phi) // N_SERIES * N_SERIES].reshape(N_SERIES, -1, phi.shape[1])
    return convergence.least_of_slowest(series)
