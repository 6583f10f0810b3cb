r"""Independent draws from a posterior with several modes: one proposal a mode, and exact weights.

Each proposal m draws from its own warped Gaussian q_m, and is responsible for the share r_m of the
posterior density p, a *partition of unity*

    r_m(θ) = π_m t_m(θ) / Σ_l π_l t_l(θ),        Σ_m r_m(θ) = 1 for all θ.

With weights w = p r_m / q_m its draws have the mean weight Z_m = ∫ p r_m, and with n_m draws of
each m

    Σ_m (1/n_m) Σ_i w_mi f(θ_mi)  →  Σ_m ∫ f p r_m = ∫ f p

for any functions t_m and any numbers π_m, as long as q_m is positive wherever r_m p is: nothing but
the identity Σ_m r_m = 1 is needed besides. The choice of t_m and π_m decides the efficiency alone.
With t_m = q_m and π_m ∝ n_m these are the weights of draws from the mixture Σ_m π_m q_m (the
balance heuristic, Veach and Guibas 1995; Owen and Zhou 2000). Here t_m is q_m with its warps
inverted by tables.

Half of the draws ψ of a proposal are normal, and half are of a multivariate Student's t, so that
weights are bounded where the posterior has heavier tails than a normal law. The warps of a mode end
at the barriers around it, axis by axis, so the boxes that they fill need not hold all of the mass:
each mode has a second proposal without warps, whose t reaches everywhere. Pilot draws, as many of
each proposal, give each t its mean and covariance, and estimates of the Z_m, which the n_m follow.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from ..geometry import preconditioning
from ..geometry.modes import log_volume
from .certificate import Certificate, certified, resampled
from .proposal import HalfT
from .sample import LEAST_DRAWS, CertifiedDraws, accurate, effective
from .warps import unwarped

__all__ = ["mixed_draws"]

PILOT = 500  # least number of pilot draws of each proposal
NEGLIGIBLE = 1e-4  # a proposal with a smaller share of the mass is left out: others take over
SMALL = 0.02  # a proposal with a smaller share of the mass needs no Pareto k of its own
EACH = 500  # least number of draws of each proposal
# The Pareto k of a proposal does not count if its largest weight is at most this share of its sum.
HARMLESS = 0.02


@dataclass
class _Component:
    """A proposal of a mode, with its warps or without, and its law of ψ."""

    mode: int
    proposal: object
    warps: object
    law: HalfT
    height: float  # U at the mode, which potentials leave out

    @classmethod
    def around(cls, mode, proposal):
        """The components of a mode, with and without warps, each t with mean 0 and scale I."""
        D = proposal.frame.target.n_parameters
        law, warps = HalfT.around_zero(D), proposal.warps
        height, _ = proposal.frame.target.value_and_gradient(proposal.frame.centre.theta)
        every = [warps, unwarped(D)] if len(warps) else [warps]
        return [cls(mode, proposal, one, law, height) for one in every]

    def draw(self, rng, n):
        """Draw n rows: return ψ, φ, and log q_m at each."""
        psi = self.law.draw(rng, n)
        phi, log_det = self.warps.position(psi)
        return psi, phi, self._log_density(psi, log_det)

    def log_t(self, theta):
        """log t_m(θ), which is log q_m up to the accuracy of the tables that invert the warps."""
        frame = self.proposal.frame
        phi = preconditioning.solve(frame.F, theta - frame.centre.theta)
        return self._log_density(*self.warps.inverse(phi))

    def _log_density(self, psi, log_det):
        """Log density in θ of the law of ψ, with log |det ∂φ/∂ψ| of the warps."""
        return self.law.log_density(psi) - log_det - log_volume(self.proposal.frame.F)

    def log_p(self, phi):
        """Return log p(θ), the sd of what it leaves out, and the potential that gives it."""
        potential, left = accurate(self.proposal, phi)
        return -potential.values(phi) - self.height, left, potential


@dataclass
class _Part:
    """Draws of one component, with their weights."""

    psi: np.ndarray
    theta: np.ndarray
    log_weights: np.ndarray  # log of p r_m / q_m
    left: float  # standard deviation of what log p leaves out
    potential: object  # that gives log p

    @property
    def log_mass(self):
        """log Z_m, the log of the mean weight."""
        return logsumexp(self.log_weights) - np.log(len(self.log_weights))


def mixed_draws(proposals, n_draws, rng):
    """Make `CertifiedDraws` from several proposals, in the coordinates φ of the first of them.

    Parameters
    ----------
    proposals : list of Proposal
        One proposal for each mode, all of the same target.
    n_draws : int
    rng : numpy.random.Generator
    """
    components = [
        one for m, proposal in enumerate(proposals) for one in _Component.around(m, proposal)
    ]
    n_pilot = max(PILOT, 10 * proposals[0].frame.target.n_parameters)
    pilots = _drawn(components, np.full(len(components), n_pilot), rng)
    shares = _shares(pilots)
    kept = np.flatnonzero(shares >= NEGLIGIBLE)
    adapted = [replace(components[k], law=_adapted(components[k].law, pilots[k])) for k in kept]
    counts = np.ceil(max(n_draws, LEAST_DRAWS) * shares[kept] / shares[kept].sum()) + EACH
    counts = counts.astype(int)
    parts = _drawn(adapted, counts, rng)
    certificate = _certified(parts)
    chosen = rng.permutation(resampled(rng, certificate.weights, n_draws))
    theta = np.concatenate([part.theta for part in parts])
    modes = [component.mode for component in adapted]
    masses = np.bincount(modes, weights=_shares(parts), minlength=len(proposals))
    first = proposals[0].frame
    return CertifiedDraws(
        preconditioning.solve(first.F, theta[chosen] - first.centre.theta),
        certificate,
        max(part.left for part in parts),
        min(part.potential.n_exact for part in parts),
        effective(certificate, n_draws),
        shares=masses,
        order=min(part.potential.order for part in parts),
    )


def _drawn(components, counts, rng):
    """Make a `_Part` of each component: n_m draws, weighted with π_m ∝ n_m."""
    parts, log_pi = [], np.log(counts)
    for m, (component, n) in enumerate(zip(components, counts, strict=True)):
        psi, phi, log_q = component.draw(rng, n)
        theta = component.proposal.frame.theta(phi)
        with np.errstate(all="ignore"):
            log_p, left, potential = component.log_p(phi)
            log_w = log_p + _log_partition(components, log_pi, theta)[m] - log_q
        log_w = np.where(np.isfinite(log_w), log_w, -np.inf)
        parts.append(_Part(psi, theta, log_w, left, potential))
    return parts


def _log_partition(components, log_pi, theta):
    """log r_m(θ) of all components, (n_components, n_draws)."""
    log_t = np.array([component.log_t(theta) for component in components])
    log_t += log_pi[:, None]
    return log_t - logsumexp(log_t, axis=0)


def _shares(parts):
    """The masses Z_m of the parts, scaled to the sum one."""
    log_mass = np.array([part.log_mass for part in parts])
    return np.exp(log_mass - logsumexp(log_mass))


def _adapted(law, pilot):
    """The law adapted to weighted pilot draws."""
    return law.adapted(pilot.psi, certified(pilot.log_weights))


def _certified(parts):
    """The `Certificate` of all weights; k is the largest of all and of each part that matters.

    The k of a part does not count where its largest weight is harmless: k describes the shape of a
    tail, whatever its size.
    """
    log_weights = [part.log_weights - np.log(len(part.theta)) for part in parts]
    pooled = certified(np.concatenate(log_weights))
    k = [pooled.pareto_k]
    for part, share in zip(parts, _shares(parts), strict=True):
        largest = np.exp(part.log_weights.max() - logsumexp(part.log_weights))
        if share > SMALL and largest > HARMLESS:
            k.append(certified(part.log_weights).pareto_k)
    return Certificate(float(np.fmax.reduce(k)), pooled.ess, pooled.weights)
