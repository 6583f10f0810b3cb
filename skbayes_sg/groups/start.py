"""Where chains of group effects begin, and how wide the posterior is there.

Newton steps for (θ, u), with u eliminated, alternate with Fisher scoring steps for log τ on the
*marginal* law, because the joint density of (u, log τ) is infinite at τ = 0, u = 0:

    gradient Σ [(u_l² + v_l)/τ² - 1] + ∂ log p,   information 2 Σ (h_l/P_l)² - ∂² log p,

with v_l the variance of u_l. This is a quadratic approximation, a place to start from and no more.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._base import streams
from ..geometry.mode import find_centre
from ..kernels.layout import FACT_Y
from ..priors.table import prior_curvature, prior_gradient, prior_value, starting_point
from .collapsed import Reference
from .covariance import Covariance, add_gradient, n_scales

__all__ = ["GroupStart", "System", "found_start"]

# Rounds of a Newton step and a scoring step for each factor: at least `ROUNDS`, and up to
# `MOST_ROUNDS` while an extra or a number of ψ, such as log τ, still changes by more than `STILL`.
ROUNDS, MOST_ROUNDS, STILL = 8, 50, 0.1
LARGEST_STEP = 0.7  # largest change of a number of ψ, such as log τ, in a scoring step
LARGEST_MOVE = 1.0  # largest change of an extra, which is a logarithm, in a Newton step
# Least eigenvalue of a precision, as a share of the largest, that rounding errors leave. Columns
# far from zero have small ones.
LEAST_EIGENVALUE = 1e-13
HALVINGS = 20  # most halvings of a Newton step that does not go down
FLATTEST = 0.3  # added to the information on each number of ψ
QUARTILE = 0.6745  # of the absolute values of normal numbers: their median
NO_EVENTS = 0.5  # events that the first intercept explains where there are none


@dataclass
class GroupStart:
    """A place to start from, and for each factor the precision of θ with its effects eliminated.

    Parameters
    ----------
    theta : ndarray
    psi : list of ndarray
        ψ of each factor: see `covariance`.
    u : list of ndarray of shape (n_levels, q)
    precisions : list of ndarray of shape (D, D)
        Precision of θ for each factor.
    information : list of ndarray
        Information on each number of the ψ of each factor.
    """

    theta: np.ndarray
    psi: list
    u: list
    precisions: list
    information: list


def found_start(rows):
    """The `GroupStart` for the rows of a problem."""
    problem = rows.problem
    K, n, prior = problem.n_factors, problem.n_coefficients, rows.target.prior
    theta = _first_theta(rows)
    u = [np.zeros((L, q)) for L, q in zip(problem.sizes, problem.widths, strict=True)]
    if problem.target.model.location_scale:
        _tell_noise_from_effects(rows, theta, u)
    psi = [
        np.append(np.log(0.3) + starting_point(own), np.zeros(n_scales(len(own)) - len(own)))
        for own in problem.scales
    ]
    precisions, information = [None] * K, [None] * K
    for number in range(MOST_ROUNDS):
        before = np.concatenate([*psi, theta[n:]])
        for k in range(K):
            system = System(Reference(rows, theta, u), k, Covariance(psi[k], u[k].shape[1]), prior)
            theta, u[k] = system.step(theta, u)
            precisions[k] = system.precision
            psi[k], information[k] = _scored(system, u[k], psi[k], problem.scales[k])
        moved = np.abs(np.concatenate([*psi, theta[n:]]) - before).max()
        if number + 1 >= ROUNDS and moved < STILL:
            break
    return GroupStart(theta, psi, u, precisions, information)


def _first_theta(rows):
    """θ with coefficients of zero, and an intercept that explains the mean of y.

    Extras are in the middle of their priors. For a likelihood without a known link, or with noise,
    where there may be outliers, it is the mode without groups.
    """
    target, model = rows.target, rows.target.model
    if (model.more_labels or model.n_extra) and not model.discrete:
        return find_centre(target, dense=True, rng=streams.fixed()).theta.copy()
    theta = starting_point(target.prior)
    n = rows.problem.n_coefficients
    theta[:n] = 0.0
    y, weight = target.data.facts[:, 0], target.weight
    mean = np.average(y, weights=weight)
    if target.intercept:
        theta[n - 1] = _link(target, mean, weight)
    return theta


def _tell_noise_from_effects(rows, theta, u):
    """Set the scale of the noise, the first extra, and effects to estimates from medians.

    Without groups the noise contains the effects. Where these are much larger than the noise is
    given them, steps from there stop early under heavy tails, of which all rows are outliers.
    """
    for k, codes in enumerate(rows.codes):
        y = rows.target.data.facts[rows.orders[k], FACT_Y]
        eta = rows.predictors(theta, u)[rows.orders[k], 0]
        residuals, levels = y - eta, codes[rows.orders[k]]
        same = levels[1:] == levels[:-1]
        if not same.any():
            continue
        noise = np.median(np.abs(np.diff(residuals)[same])) / (np.sqrt(2.0) * QUARTILE)
        n = np.bincount(levels, minlength=len(u[k]))
        parts = np.split(residuals, np.cumsum(n)[:-1])
        medians = np.array([np.median(own) if len(own) else 0.0 for own in parts])
        shares = 1.0 / np.maximum(n, 1)
        variance = np.median(np.square(medians)) / QUARTILE**2 - noise**2 * shares.mean()
        if noise > 0.0 and variance > noise**2:
            u[k][:, 0] = medians * variance / (variance + noise**2 * shares)
            theta[rows.problem.n_coefficients] = np.log(noise)


def _link(target, mean, weight):
    """The predictor at which the mean response is about `mean`."""
    if target.model.more_labels:
        exposure = np.average(target.data.facts[:, -1], weights=weight)
        return np.log((mean or NO_EVENTS / weight.sum()) / exposure)
    if target.model.separable:
        return np.log(mean / (1.0 - mean))
    return mean


class System:
    """The linear system of a Newton step of (θ, u_k)."""

    def __init__(self, reference, k, covariance, prior):
        self.k, self.rows, self.omega, self.root = k, reference.rows, covariance.omega, covariance.C
        self.H, S, _ = reference.factors[k]
        self.inverses = np.linalg.inv(self.H + self.omega)  # P_l⁻¹
        target = self.rows.target
        W = reference.curvature.copy()
        W[:, 0, 0] = reference.w
        crossed = [self.rows.by_level(np.ascontiguousarray(w), k)[..., None] for w in W[:, 0, 1:].T]
        self.C = np.concatenate([S, *crossed], axis=2)  # (n_levels, q, D): ∂²/∂u_l ∂θ
        design = target.design(slice(0, target.n_rows))
        self.full = target.outer_sum(design, W) + np.diag(prior_curvature(prior, reference.theta))
        self.gain = self.inverses @ self.C
        self.precision = self.precision_with(self.gain)
        self.reference, self.prior = reference, prior

    def precision_with(self, gain):
        """The precision of θ with u_k eliminated, for the gains P_l⁻¹ ∂²/∂u_l ∂θ."""
        return _positive(self.full - np.einsum("lqi,lqj->ij", self.C, gain))

    def step(self, theta, u):
        """θ and u_k after a Newton step, which is shortened until -log p does not rise."""
        target, reference = self.rows.target, self.reference
        terms = target.derivative(target.data.facts, self.rows.predictors(theta, u))
        terms *= target.weight[:, None]
        g = target.row_sum(target.design(slice(0, target.n_rows)), terms)
        prior_gradient(self.prior, theta, g)
        G = self.rows.by_level(np.ascontiguousarray(terms[:, 0]), self.k)
        G += reference.u[self.k] @ self.omega
        pulled = g - np.einsum("lqd,lq->d", self.gain, G)
        move = -np.linalg.solve(self.precision, pulled)
        effect = -np.einsum("lij,lj->li", self.inverses, G) - self.gain @ move
        farthest = np.abs(move[len(move) - target.model.n_extra :]).max(initial=0.0)
        share, before = 1.0 / max(1.0, farthest / LARGEST_MOVE), self._value(theta, u)
        for _ in range(HALVINGS):
            place = theta + share * move, u[self.k] + share * effect
            after = self._value(place[0], [*u[: self.k], place[1], *u[self.k + 1 :]])
            if after <= before:
                return place
            share *= 0.5
        return theta, u[self.k]

    def _value(self, theta, u):
        """-log p of θ and u_k given the other effects, up to a constant."""
        target, eta = self.rows.target, self.rows.predictors(theta, u)
        with np.errstate(over="ignore"):
            loss = target.model.loss(
                target.data.facts, self.rows.sorted[0].numbers, 0, len(eta), eta
            )
        own = u[self.k]
        return loss + prior_value(self.prior, theta) + 0.5 * (self.omega * (own.T @ own)).sum()

    def squares(self, u):
        """Σ_l E(u_l u_lᵀ) in the quadratic approximation, with variances at most the prior's."""
        inner = np.linalg.solve(self.precision, self.gain.reshape(-1, self.gain.shape[2]).T)
        inner = inner.T.reshape(self.gain.shape)
        variances = self.inverses.sum(axis=0) + np.einsum("lid,ljd->ij", self.gain, inner)
        values, axes = np.linalg.eigh(linalg.solve(self.root, linalg.solve(self.root, variances).T))
        axes = self.root @ axes
        return u.T @ u + (axes * np.minimum(values, len(u))) @ axes.T


def _positive(H):
    """H with eigenvalues, in units of its diagonal, replaced by their sizes, none of them zero.

    Where -log p bends down, along the extras of few rows, the size of its curvature says about how
    far it is to where -log p bends up.
    """
    size = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    values, axes = np.linalg.eigh(H / np.outer(size, size))
    values = np.maximum(np.abs(values), LEAST_EIGENVALUE * values.max())
    return (axes * values) @ axes.T * np.outer(size, size)


def _scored(system, u, psi, scales):
    """ψ after a step of Fisher scoring, and the information on each of its numbers."""
    q, L = u.shape[1], len(u)
    own, slope = Covariance(psi, q), np.zeros(len(psi))
    M = 0.5 * system.squares(u) - 0.5 * L * own.C @ own.C.T
    add_gradient(psi, own.C, own.omega, M, scales, slope)
    second = prior_curvature(scales, psi[:q])
    known = np.clip(1.0 - np.einsum("lij,ji->li", system.inverses, system.omega), 0.0, 1.0)
    pairs = [known[:, i] @ known[:, j] for i in range(q) for j in range(i)]
    information = np.concatenate([2.0 * np.square(known).sum(axis=0) + second.clip(0.0), pairs])
    information += FLATTEST
    step = np.clip(-slope / information, -LARGEST_STEP, LARGEST_STEP)
    return psi + step, information
