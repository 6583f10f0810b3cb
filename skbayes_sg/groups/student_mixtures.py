"""Mixtures of Student's t laws that are fitted to a density, for independent proposals.

Population Monte Carlo (Cappé, Douc, Guillin, Marin and Robert 2008, section 3.2, for Student's t):
draws x of the mixture q = Σ_k α_k q_k have the weights w ∝ p(x) / q(x), and with ρ_k = α_k q_k / q
and γ_k = (ν + n) / (ν + |R_k⁻¹ (x - m_k)|²) the next mixture is

    α_k = Σ w ρ_k,   m_k = Σ w ρ_k γ_k x / Σ w ρ_k γ_k,
    R_k R_kᵀ = Σ w ρ_k γ_k (x - m_k)(x - m_k)ᵀ / α_k,

which lowers the Kullback-Leibler divergence from p to q. The first component is a guard, which is
never fitted: it has the mean of all weighted draws and is `WIDE` times as wide as they are, so that
no place far out has a weight without bound.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from .._base import multivariate_t
from .._base.multivariate_t import DF
from ..diagnostics.convergence import weight_efficiency

__all__ = ["StudentMixture", "fitted_mixture", "n_densities", "one_student"]

ROUNDS, PILOT = 10, 500  # most rounds of a mixture, and draws of a round for each dimension
FIRST_ROUNDS, FIRST_PILOT = 6, 100  # those of the single law that is fitted before the mixture
# Share of effective draws with which a round is the last: for a mixture, and for the single law.
ENOUGH, FIRST_ENOUGH = 0.75, 0.5
# Most components of a mixture, and most numbers in all their centres; two components are allowed.
COMPONENTS, NUMBERS = 8, 64
APART = 1.5  # sd of the first centres about that of the single law, in its widths
FEW = 0.1  # least share of effective draws of a round: with fewer, weights are made flatter
RARE, GUARD = 0.01, 0.1  # the least share of a component, and the share of the guard
WIDE, WIDER = 2.0, 1.15  # widths of the guard and of a single law, in those of weighted draws
RIDGE = 1e-6  # share of each variance that is added, so that covariances have Cholesky factors


class StudentMixture(NamedTuple):
    """The mixture q = Σ_k α_k t_ν(m_k, R_k R_kᵀ)."""

    share: np.ndarray  # α, (n_components,)
    centre: np.ndarray  # m, (n_components, n)
    root: np.ndarray  # R, lower triangular, (n_components, n, n)

    def draw(self, rng, m):
        """m draws, of shape (m, n)."""
        own = rng.choice(len(self.share), m, p=self.share)
        x = multivariate_t.standard_draws(rng, m, self.centre.shape[1])
        return self.centre[own] + np.einsum("mij,mj->mi", self.root[own], x)

    def parts(self, places):
        """log α_k q_k(x) and |R_k⁻¹ (x - m_k)|² at places x: two arrays (n_components, m)."""
        n = places.shape[1]
        white = [
            linalg.solve_triangular(R, (places - m).T, lower=True)
            for m, R in zip(self.centre, self.root, strict=True)
        ]
        square = np.square(white).sum(axis=1)
        log_det = np.log(np.abs(np.diagonal(self.root, axis1=1, axis2=2))).sum(axis=1)
        log_t = multivariate_t.log_density(square, n, log_det[:, None])
        return np.log(self.share)[:, None] + log_t, square

    def log_density(self, places):
        """log q(x) at places x, (m,)."""
        return logsumexp(self.parts(places)[0], axis=0)


def one_student(centre, root):
    """The mixture of one component, t_ν(centre, root rootᵀ), for any square root."""
    return StudentMixture(np.ones(1), centre[None], linalg.qr(root.T, mode="r")[0].T[None])


def _flat_enough(log_w):
    """Importance weights that add up to one, and the share of the draws that is effective.

    Where this share is below `FEW`, the weights returned are a power of the importance weights,
    flat enough for `FEW`.
    """
    log_w = log_w - log_w.max()
    power, w = 1.0, np.exp(log_w)
    share = weight_efficiency(w)
    while weight_efficiency(w) < FEW:
        power *= 0.7
        w = np.exp(power * log_w)
    return w / w.sum(), share


def _widened(mixture, places, parts, square, w):
    """The single law with the mean of weighted draws, and `WIDER` times as wide as they are."""
    return one_student(w @ places, WIDER * _root(places, w))


def _spread(mixture, rng):
    """A mixture of copies of the only component: one at its centre, the others around it."""
    centre, root = mixture.centre[0], mixture.root[0]
    n = len(centre)
    m = max(2, min(COMPONENTS, NUMBERS // n))
    away = APART * rng.standard_normal((m, n)) @ root.T
    away[0] = 0.0
    return StudentMixture(np.full(m, 1.0 / m), centre + away, np.repeat(root[None], m, axis=0))


def _fitted(mixture, places, parts, square, w):
    """The mixture after one round: see the module for the formulas and the guard."""
    n = places.shape[1]
    rho = w * np.exp(parts - logsumexp(parts, axis=0))
    share, gamma = rho.sum(axis=1), rho * (DF + n) / (DF + square)
    centre, root = mixture.centre.copy(), mixture.root.copy()
    for k in np.flatnonzero(share > 0.1 * RARE):
        centre[k] = gamma[k] @ places / gamma[k].sum()
        root[k] = _root(places, gamma[k] / gamma[k].sum()) * np.sqrt(gamma[k].sum() / share[k])
    centre[0], root[0] = w @ places, WIDE * _root(places, w)
    share = np.maximum(share, RARE)
    share[0] = GUARD / (1.0 - GUARD) * share[1:].sum()
    return StudentMixture(share / share.sum(), centre, root)


def _root(places, w):
    """The lower Cholesky factor of the covariance of weighted places, with a small ridge."""
    off = places - w @ places
    C = (off.T * w) @ off
    return linalg.cholesky(C + RIDGE * np.diag(np.diag(C)), lower=True)


def _after(log_density, mixture, step, rounds, pilot, rng, enough):
    """The mixture of the last round; the best of all rounds would be one with lucky draws."""
    for _ in range(rounds):
        places = mixture.draw(rng, pilot * mixture.centre.shape[1])
        parts, square = mixture.parts(places)
        w, share = _flat_enough(log_density(places) - logsumexp(parts, axis=0))
        mixture = step(mixture, places, parts, square, w)
        if share > enough:
            break
    return mixture


def n_densities(n, cheap):
    """The most densities that `fitted_mixture` evaluates in n dimensions."""
    return n * (FIRST_ROUNDS * FIRST_PILOT + cheap * ROUNDS * PILOT)


def fitted_mixture(log_density, first, rng, cheap=True):
    """Fit a `StudentMixture` to a density, from which independent proposals can be drawn.

    Parameters
    ----------
    log_density : callable
        log p of places, an array (m, n), up to a constant.
    first : StudentMixture
        A single component, with which the fit begins.
    rng : numpy.random.Generator
    cheap : bool
        Whether a mixture can be afforded; if not, it is one component with the moments of its
        draws.
    """
    rounds = FIRST_ROUNDS, FIRST_PILOT
    one = _after(log_density, first, _widened, *rounds, rng, FIRST_ENOUGH)
    if not cheap:
        return one
    return _after(log_density, _spread(one, rng), _fitted, ROUNDS, PILOT, rng, ENOUGH)
