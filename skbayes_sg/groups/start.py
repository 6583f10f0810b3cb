"""Where chains of group effects begin, and how wide their posterior is.

Newton steps for (θ, u), with u eliminated, alternate with Fisher scoring steps for log τ on the
*marginal* law, because the joint density of (u, log τ) is infinite at τ = 0, u = 0:

    gradient Σ [(u_l² + v_l)/τ² - 1] + ∂ log p,   information 2 Σ (h_l/P_l)² - ∂² log p,

with v_l the variance of u_l. It is a quadratic approximation, a place to start from and no more.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..priors.table import prior_curvature, prior_gradient, prior_value, starting_point
from .collapsed import Reference

__all__ = ["GroupStart", "found_start"]

ROUNDS = 8
LARGEST_STEP = 0.7  # of log τ
LARGEST_MOVE = 1.0  # of an extra, which is a logarithm
HALVINGS = 20  # of a Newton step
FLATTEST = 0.3  # information on log τ beyond that of the rows


@dataclass
class GroupStart:
    """A place, and a precision of θ for each factor with its effects eliminated.

    Parameters
    ----------
    theta : ndarray
    log_tau : ndarray of shape (n_factors,)
    u : list of ndarray
    precisions : list of ndarray of shape (D, D)
    information : ndarray of shape (n_factors,)
        Of log τ.
    """

    theta: np.ndarray
    log_tau: np.ndarray
    u: list
    precisions: list
    information: np.ndarray


def found_start(rows):
    """The `GroupStart` for the rows of a problem."""
    problem = rows.problem
    K, prior = problem.n_factors, rows.target.prior
    theta = _first_theta(rows)
    u = [np.zeros(L) for L in problem.sizes]
    log_tau = np.log(0.3) + starting_point(problem.scales)
    precisions, information = [None] * K, np.ones(K)
    for _ in range(ROUNDS):
        for k in range(K):
            system = _System(Reference(rows, theta, u), k, np.exp(-2.0 * log_tau[k]), prior)
            theta, u[k] = system.step(theta, u)
            precisions[k] = system.precision
            log_tau[k], information[k] = _scored(system, u[k], log_tau[k], problem.scales[k])
    return GroupStart(theta, log_tau, u, precisions, information)


def _first_theta(rows):
    """Zero coefficients, an intercept that explains the mean, and extras in the middle."""
    target = rows.target
    theta = starting_point(target.prior)
    n = rows.problem.n_coefficients
    theta[:n] = 0.0
    y, weight = target.data.facts[:, 0], target.weight
    mean = np.average(y, weights=weight)
    if target.intercept:
        theta[n - 1] = _link(target, mean, weight)
    if target.model.n_extra and not target.model.discrete:
        theta[n] = np.log(np.sqrt(np.average((y - mean) ** 2, weights=weight)) or 1.0)
    return theta


def _link(target, mean, weight):
    """The predictor whose mean response this is, near enough."""
    if target.model.more_labels:
        exposure = np.average(target.data.facts[:, -1], weights=weight)
        return np.log(mean / exposure)
    if target.model.separable:
        return np.log(mean / (1.0 - mean))
    return mean


class _System:
    """The linear system of a Newton step of (θ, u_k)."""

    def __init__(self, reference, k, inverse, prior):
        self.k, self.rows, self.inverse = k, reference.rows, inverse
        self.h, s, _ = reference.factors[k]
        self.P = self.h + inverse
        target = self.rows.target
        W = reference.curvature.copy()
        W[:, 0, 0] = reference.w
        crossed = [s] + [
            self.rows.by_level(np.ascontiguousarray(W[:, 0, e]), k)[:, None]
            for e in range(1, W.shape[1])
        ]
        self.C = np.hstack(crossed)  # (n_levels, D): second derivatives in θ and u_l
        design = target.design(slice(0, target.n_rows))
        H = target.outer_sum(design, W) + np.diag(prior_curvature(prior, reference.theta))
        self.precision = _positive(H - (self.C.T / self.P) @ self.C)
        self.reference, self.prior = reference, prior

    def step(self, theta, u):
        """θ and u_k after a Newton step, shortened until it goes down."""
        target, reference = self.rows.target, self.reference
        terms = target.derivative(target.data.facts, self.rows.predictors(theta, u))
        terms *= target.weight[:, None]
        g = target.row_sum(target.design(slice(0, target.n_rows)), terms)
        prior_gradient(self.prior, theta, g)
        G = self.rows.by_level(np.ascontiguousarray(terms[:, 0]), self.k)
        G += self.inverse * reference.u[self.k]
        move = -linalg.solve(self.precision, g - self.C.T @ (G / self.P), assume_a="pos")
        effect = -(G + self.C @ move) / self.P
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
        """-log p of θ and u_k, up to a constant."""
        target, eta = self.rows.target, self.rows.predictors(theta, u)
        with np.errstate(over="ignore"):
            loss = target.model.loss(target.data.facts, self.rows.rows, 0, len(eta), eta)
        return loss + prior_value(self.prior, theta) + 0.5 * self.inverse * (u[self.k] @ u[self.k])

    def variances(self):
        """Var(u_l) of the quadratic."""
        inner = linalg.solve(self.precision, self.C.T, assume_a="pos")
        return 1.0 / self.P + np.einsum("ld,dl->l", self.C, inner) / self.P**2


def _positive(H):
    """A matrix with the eigenvalues of H in units of its diagonal, none of them negative."""
    size = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    values, axes = np.linalg.eigh(H / np.outer(size, size))
    values = np.maximum(values, 1e-6 * values.max())
    return (axes * values) @ axes.T * np.outer(size, size)


def _scored(system, u, log_tau, scale):
    """log τ after a step of Fisher scoring, and the information on it."""
    place, slope = np.array([log_tau]), np.zeros(1)
    prior_gradient(scale[None], place, slope)
    second = prior_curvature(scale[None], place)[0]
    gradient = (system.inverse * (u**2 + system.variances()) - 1.0).sum() - slope[0]
    information = 2.0 * np.square(system.h / system.P).sum() + max(second, 0.0) + FLATTEST
    step = np.clip(gradient / information, -LARGEST_STEP, LARGEST_STEP)
    return log_tau + step, information
