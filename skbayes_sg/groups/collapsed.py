"""Collapsed coordinates: effects as deviations from what the other parameters make of them.

At a reference predictor with curvatures w_i and slopes g_i of the losses, the working response is
η_i - g_i/w_i. With h_l = Σ w_i, s_l = Σ w_i x_i and t_l = Σ (w_i (η_i - o_i) - g_i) over the rows
of a level, o_i the effects of the other factors,

    u_l = m_l + z_l / √P_l,     P_l = h_l + 1/τ²,     m_l = (t_l - s_l·β) / P_l.

For a normal likelihood z ~ N(0, I) whatever (β, τ) are: there is no funnel, and effects do not hold
β back. For others this is a change of variables, with the law exp(-U) of θ and λ = log τ given z,

    U = Σ w_i ℓ_i + Σ u_l²/(2τ²) + L λ + ½ Σ log P_l - log p(θ) - log p(λ),

    ∂U/∂β = Σ ∂ℓ_i/∂β - Σ (G_l / P_l) s_l - ∂ log p(θ),       G_l = Σ ∂ℓ_i/∂η_i + u_l/τ²,
    ∂U/∂λ = Σ G_l (m_l + u_l) / (τ² P_l) - Σ u_l²/τ² + L - Σ 1/(τ² P_l) - ∂ log p(λ).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._base.jit import interruptible, pointer
from ..kernels.layout import BLOCK, DERIVATIVE, FACT_WEIGHT, LOSS, Likelihood, frozen
from ..priors.table import prior_gradient, prior_value
from .kernels import add_by_level, gradient_pass, losses_of_levels

__all__ = ["CollapsedRows", "Factor", "Reference", "Workspace"]

LEAST_CURVATURE = 1e-8  # of a row, as a share of the largest


class CollapsedRows:
    """The rows of a problem as the kernels see them, those of a level one after the other.

    Parameters
    ----------
    problem : skbayes_sg.groups.problem.GroupProblem
    """

    def __init__(self, problem):
        problem = problem.sorted_by(int(np.argmax(problem.sizes)))
        self.problem, self.target = problem, problem.target
        self.data, model = problem.target.data, problem.target.model
        self.model = Likelihood(pointer(model.loss, LOSS), pointer(model.derivative, DERIVATIVE))
        self.codes = [np.ascontiguousarray(column, dtype=np.int64) for column in problem.codes.T]
        self.orders = [np.argsort(codes, kind="stable") for codes in self.codes]
        self.starts = [
            np.searchsorted(codes[order], np.arange(L + 1))
            for codes, order, L in zip(self.codes, self.orders, problem.sizes, strict=True)
        ]
        self.rows, self.ones = np.arange(self.n_rows), np.ones(self.n_rows)

    @property
    def n_rows(self):
        """N."""
        return self.target.n_rows

    def effects_of_others(self, u, k):
        """o_i: the effects of all factors but k."""
        total = np.zeros(self.n_rows)
        for j, effects in enumerate(u):
            if j != k:
                total += effects[self.codes[j]]
        return total

    def predictors(self, theta, u):
        """All predictors of all rows, (n_rows, n_predictors)."""
        model = self.target.model
        eta = np.empty((self.n_rows, model.n_predictors))
        n = len(theta) - model.n_extra
        eta[:, 0] = self.problem.design @ theta[:n] + self.effects_of_others(u, None)
        eta[:, 1:] = theta[n:]
        return eta

    def by_level(self, values, k):
        """Sums over the rows of each level of factor k."""
        out = np.zeros(self.problem.sizes[k])
        add_by_level(self.codes[k], values, out)
        return out


@dataclass
class Reference:
    """The expansion of the likelihood in which coordinates are collapsed.

    Parameters
    ----------
    rows : CollapsedRows
    theta : ndarray
        Coefficients and extras.
    u : list of ndarray
        Effects.
    """

    rows: CollapsedRows
    theta: np.ndarray
    u: list

    @cached_property
    def _expansion(self):
        """Weighted curvatures in η, all of them (n, K, K), and slopes."""
        target, eta = self.rows.target, self.rows.predictors(self.theta, self.u)
        curvature = target.curvature(target.data.facts, eta)
        slopes = target.derivative(target.data.facts, eta)[:, 0]
        weight = target.data.facts[:, FACT_WEIGHT]
        w = np.maximum(curvature[:, 0, 0], LEAST_CURVATURE * np.abs(curvature[:, 0, 0]).max())
        return curvature, w, w * eta[:, 0] - weight * slopes

    @property
    def curvature(self):
        """w_i ∂²ℓ_i/∂η² for all predictors, (n_rows, K, K)."""
        return self._expansion[0]

    @property
    def w(self):
        """Curvatures in the predictor with effects, none negative."""
        return self._expansion[1]

    @cached_property
    def factors(self):
        """For each factor h, s and Σ (w_i η_i - g_i)."""
        rows, (_, w, q) = self.rows, self._expansion
        weighted = w[:, None] * rows.problem.design
        found = []
        for k in range(rows.problem.n_factors):
            s = np.stack([rows.by_level(column, k) for column in np.ascontiguousarray(weighted.T)])
            found.append((rows.by_level(w, k), np.ascontiguousarray(s.T), rows.by_level(q, k)))
        return found


class Workspace:
    """Working memory of one chain."""

    def __init__(self, rows):
        self.blocks = np.empty((2, BLOCK, rows.target.model.n_predictors))


class Factor:
    """The collapsed coordinates of factor k, given the effects of the others.

    Parameters
    ----------
    reference : Reference
    k : int
    u : list of ndarray
        Effects of all factors.
    work : Workspace
    """

    def __init__(self, reference, k, u, work):
        self.rows, self.k, self.work = reference.rows, k, work
        self.h, self.s, t = reference.factors[k]
        self.offset = self.rows.effects_of_others(u, k)
        alone = self.rows.problem.n_factors == 1
        self.t = t if alone else t - self.rows.by_level(reference.w * self.offset, k)
        self.scale = frozen(self.rows.problem.scales[k : k + 1])

    def law(self, theta, log_tau):
        """m_l and P_l."""
        P = self.h + np.exp(-2.0 * log_tau)
        return (self.t - self.s @ theta[: self.s.shape[1]]) / P, P

    def z_of(self, theta, log_tau, u):
        """z."""
        m, P = self.law(theta, log_tau)
        return (u - m) * np.sqrt(P)

    def u_of(self, theta, log_tau, z):
        """u."""
        m, P = self.law(theta, log_tau)
        return m + z / np.sqrt(P)

    def potential(self, theta, log_tau, z, *, valued=True, loss=None):
        """(U, or None; its gradient in θ and log τ); with the `loss` of the rows if it is known."""
        m, P = self.law(theta, log_tau)
        u, inverse = m + z / np.sqrt(P), np.exp(-2.0 * log_tau)  # 1/τ²
        g, G = np.zeros(len(theta) + 1), np.zeros(len(u))
        value = self._pass(theta, u, valued and loss is None, g, G)
        G += inverse * u
        n, L = self.s.shape[1], len(u)
        g[:n] -= self.s.T @ (G / P)
        prior_gradient(self.rows.target.prior, theta, g)
        squares, share = inverse * (u @ u), inverse / P
        own, place = np.zeros(1), np.array([log_tau])
        prior_gradient(self.scale, place, own)
        g[-1] = (G * (m + u)) @ share - squares + L - share.sum() + own[0]
        if not valued:
            return None, g
        value = value if loss is None else loss
        value += 0.5 * squares + L * log_tau + 0.5 * np.log(P).sum()
        value += prior_value(self.rows.target.prior, theta) + prior_value(self.scale, place)
        return value, g

    def _pass(self, theta, u, valued, g, residuals):
        rows = self.rows
        fixed = rows.rows, rows.ones, self.work.blocks
        with interruptible():
            return gradient_pass(
                rows.data, rows.model, theta, rows.codes[self.k], u, self.offset, *fixed, valued,
                g[:-1], residuals,
            )  # fmt: skip

    def losses(self, theta, u, proposed):
        """The losses of all levels at their effects, and at those proposed, (n_levels, 2)."""
        rows, k, out = self.rows, self.k, np.empty((len(u), 2))
        with interruptible():
            losses_of_levels(
                rows.data, rows.model, theta, self.offset, rows.orders[k], rows.starts[k], u,
                proposed, self.work.blocks, out,
            )  # fmt: skip
        return out
