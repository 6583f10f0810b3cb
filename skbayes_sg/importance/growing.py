r"""Independent draws of few parameters with bent or flat tails: from a mixture that grows.

Where a posterior bends, or a tail reaches far beyond what the curvature at its mode says, warped
Gaussian proposals miss a part of it, and chains make long excursions that are too rare to count.
Of few parameters all places can be covered, by incremental mixture importance sampling (Raftery and
Bao 2010). The proposal is a mixture of Student's t laws,

    q(φ) = Σ_m π_m t_ν(φ; c_m, R_m R_mᵀ),

at first the Laplace approximation of each mode. As long as the weights p/q of its draws are uneven,
a component is added where the largest weight is, as wide as the draws around it say, or now and
then one for all of the weighted draws, and draws of it join the others. They are made for p^⅓ and
p^⅔ first, whose tails reach farther: what is found there is covered when the same goes on for p.
Fresh draws of the last mixture, which nothing was chosen by, are weighted by p/q, and their Pareto
k and effective sample size say whether to believe them.
"""

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from .._base import multivariate_t
from ..geometry import preconditioning
from .certificate import certified, resampled
from .flat_tails import component_for
from .sample import LEAST_DRAWS, CertifiedDraws, effective

__all__ = ["EVALUATED", "MOST_GROWN", "grown_draws"]

MOST_GROWN = 8  # largest number of parameters that a mixture can cover
TEMPERED = 3.0, 1.5, 1.0  # 1/exponents of p for which the mixture grows, one after the other
FIRST, EACH = 1000, 600  # draws of the first component, and of each other one
NEAREST = 20  # draws that give a component its width: at least so many for each parameter
MOST_COMPONENTS, TRIES = 150, 3  # most components; most mixtures of which fresh draws are made
# Share of effective draws at which the mixture need not grow: for powers of p, and for p itself.
EVEN_ENOUGH = 0.15, 0.25
EVEN_DRAWS = 0.5  # share of effective fresh draws from which only large weights make a tail
LEAST_EVEN = 0.05  # the share of draws for p that is enough where no component may be added
TRUSTED = 0.5  # Pareto k of weights that have a variance
WANTED, MOST_PROPOSED = 1.0, 4.0  # share of effective draws aimed at; most proposed for each draw
BY_COUNTS = 0.1  # what the shares π_m have from the numbers of draws, and not from their mass
EVALUATED = 60_000  # about how many times U is evaluated
ALL_OF_IT, WIDER = 4, 1.5  # every so many components one is for all draws, and so much wider
SPREAD = 3.0  # effective draws for each parameter from which all of them have a width
BLOCK = 20_000  # draws whose densities under all components are held together
RIDGE = 1e-9  # added to covariances, as a share of their mean diagonal


class _Mixture:
    """The components, all draws of them so far, and log Σ_m n_m t_m at each, n_m of each."""

    def __init__(self, D, rng, potential):
        self.rng, self.potential = rng, potential
        self.centres, self.roots, self.counts = [], [], []
        self.draws, self.U, self.log_sum = np.empty((0, D)), np.empty(0), np.empty(0)

    def add(self, centre, root, n):
        """Add a component, and n draws of it."""
        new = self._drawn(centre, root, n)
        self.centres.append(centre)
        self.roots.append(root)
        self.counts.append(n)
        old = np.logaddexp(self.log_sum, np.log(n) + self._log_part(-1, self.draws))
        own = logsumexp(self.log_parts(new) + np.log(self.counts)[:, None], axis=0)
        self.draws = np.concatenate([self.draws, new])
        self.U = np.append(self.U, _values(self.potential, new))
        self.log_sum = np.append(old, own)

    def log_parts(self, x):
        """Log densities of all components at rows x, (n_components, n)."""
        parts = [self._log_part(m, x) for m in range(len(self.centres))]
        return np.array(parts).reshape(len(parts), len(x))

    def sample(self, n):
        """Draw about n rows of the mixture for p; return them and log q."""
        shares = self._shares()
        counts = self.rng.multinomial(n, shares)
        parts = zip(self.centres, self.roots, counts, strict=True)
        x = np.concatenate([self._drawn(*part) for part in parts])
        blocks, log_pi = np.array_split(x, -(-len(x) // BLOCK)), np.log(shares)[:, None]
        return x, np.concatenate([logsumexp(self.log_parts(b) + log_pi, axis=0) for b in blocks])

    def log_weights(self, temperature):
        """log p^(1/T)/q of all draws, q being the mixture by their numbers."""
        return -self.U / temperature - self.log_sum + np.log(len(self.draws))

    def grow(self, log_weights):
        """Add a component: now and then for all weighted draws, else at the largest weight."""
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        D, n_effective = self.draws.shape[1], 1.0 / (weights @ weights)
        if len(self.counts) % ALL_OF_IT == 0 and n_effective > SPREAD * D:
            mean = weights @ self.draws
            self.add(mean, _root(WIDER * _spread(self.draws - mean, weights)), EACH)
            return
        centre = self.draws[np.argmax(weights)]
        root = _root(np.atleast_2d(np.cov(self.draws.T)))
        z = linalg.solve_triangular(root, (self.draws - centre).T, lower=True)
        near = np.argpartition(np.square(z).sum(axis=0), max(EACH, NEAREST * D) - 1)
        near = near[: max(EACH, NEAREST * D)]
        share = 0.5 * (weights[near] / weights[near].sum() + 1.0 / len(near))
        self.add(centre, _root(_spread(self.draws[near] - centre, share)), EACH)

    def _shares(self):
        """π_m: the masses of p that the components are responsible for."""
        pi, over = np.array(self.counts) / len(self.draws), self.log_weights(1.0) - self.log_sum
        log_mass = np.log(self.counts) + [
            logsumexp(self._log_part(m, self.draws) + over) for m in range(len(pi))
        ]
        return (1.0 - BY_COUNTS) * np.exp(log_mass - logsumexp(log_mass)) + BY_COUNTS * pi

    def _drawn(self, centre, root, n):
        return centre + multivariate_t.standard_draws(self.rng, n, len(centre)) @ root.T

    def _log_part(self, m, x):
        root = self.roots[m]
        z = linalg.solve_triangular(root, (x - self.centres[m]).T, lower=True, check_finite=False)
        log_det = np.log(np.diag(root)).sum()
        return multivariate_t.log_density(np.square(z).sum(axis=0), x.shape[1], log_det)


def grown_draws(proposals, n_draws, rng, reach=None):
    """`CertifiedDraws` of a mixture that has grown, or None where it does not cover the posterior.

    Parameters
    ----------
    proposals : list of skbayes_sg.importance.proposal.Proposal
        One for each mode. The frame of the first has the coordinates φ, and its `exact` the
        potential.
    n_draws : int
    rng : numpy.random.Generator
    reach : array of shape (D,), optional
        How far flat tails reach: see `skbayes_sg.importance.flat_tails.reach_of_tails`.
    """
    D, potential = proposals[0].n_parameters, proposals[0].exact
    mixture = _Mixture(D, rng, potential)
    mixture.add(np.zeros(D), np.eye(D), FIRST)
    if reach is not None:
        mixture.add(np.zeros(D), component_for(proposals[0].frame, reach), FIRST)
    for other in proposals[1:]:
        mixture.add(*_seen_from(proposals[0].frame, other.frame), FIRST)
    share = _grown(mixture)
    if share is None:
        return None
    proposed = int(np.clip(WANTED / share, 1.0, MOST_PROPOSED) * max(n_draws, LEAST_DRAWS))
    for _ in range(TRIES):
        phi, log_q = mixture.sample(proposed)
        certificate = certified(-_values(potential, phi) - log_q)
        certificate = certificate.regardless_of_small_weights(EVEN_DRAWS)
        chosen = rng.permutation(resampled(rng, certificate.weights, n_draws))
        ess = effective(certificate, n_draws)
        found = CertifiedDraws(phi[chosen], certificate, 0.0, potential.n_exact, ess)
        if found.holds and certificate.pareto_k < TRUSTED:
            return found
        for _ in range(ALL_OF_IT):
            mixture.grow(mixture.log_weights(1.0))
    return None


def _seen_from(frame, other):
    """The centre of another frame in the coordinates φ of one, and a root of its covariance."""
    centre = preconditioning.solve(frame.F, other.centre.theta - frame.centre.theta)
    root = preconditioning.solve(frame.F, other.laplace_root.T).T
    return centre, _root(root @ root.T)


def _grown(mixture):
    """Let a mixture grow; return the share of effective draws, or None if it is too small."""
    for temperature in TEMPERED:
        while True:
            log_weights = mixture.log_weights(temperature)
            certificate = certified(log_weights)
            share = certificate.ess / len(log_weights)
            is_full = len(mixture.counts) >= MOST_COMPONENTS
            enough = EVEN_ENOUGH[temperature == 1.0]
            if is_full and temperature == 1.0:
                enough = LEAST_EVEN
            if share > enough and certificate.pareto_k < TRUSTED:
                break
            if is_full or share == 0.0:
                return None
            mixture.grow(log_weights)
    return share


def _values(potential, phi):
    """U at rows φ: infinite where it is not a number."""
    with np.errstate(all="ignore"):
        found = potential.values(phi)
    return np.where(np.isfinite(found), found, np.inf)


def _spread(away, weights):
    """Σ w a aᵀ over rows a."""
    return (away * weights[:, None]).T @ away


def _root(covariance):
    """The Cholesky factor of a covariance, with a ridge for those that are singular."""
    size = np.trace(covariance) / len(covariance)
    return linalg.cholesky(covariance + RIDGE * size * np.eye(len(covariance)), lower=True)
