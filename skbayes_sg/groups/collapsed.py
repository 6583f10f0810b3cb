"""Collapsed coordinates: effects as deviations from what the other parameters make of them.

At a reference predictor with curvatures w_i and slopes g_i of the losses, the working response is
η_i - g_i/w_i. With z_i = (1, the columns whose slopes vary), H_l = Σ w_i z_i z_iᵀ, S_l = Σ w_i z_i
x_iᵀ and t_l = Σ z_i (w_i (η_i - o_i) - g_i) over the rows of a level, o_i the effects of the other
factors, and Ω the inverse of the covariance of the effects of a level,

    u_l = m_l + R_l⁻ᵀ ζ_l,     P_l = H_l + Ω = R_l R_lᵀ,     m_l = P_l⁻¹ (t_l - S_l β).

For a normal likelihood ζ ~ N(0, I) whatever (β, Ω) are: there is no funnel, and effects do not hold
β back. For others this is a change of variables, with the law exp(-U) of θ and ψ (`covariance`)
given ζ,

    U = Σ w_i ℓ_i + ½ Σ u_lᵀ Ω u_l - ½ L log |Ω| + ½ Σ log |P_l| - log p(θ) - log p(ψ).

`algebra` has the derivatives. Without slopes Ω = 1/τ², and ψ = log τ.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._base.jit import interruptible, pointer
from ..kernels.layout import BLOCK, DERIVATIVE, FACT_WEIGHT, LOSS
from ..priors.table import prior_gradient, prior_value
from .algebra import place_effects, propose_effects, pull_back, white_effects
from .covariance import Covariance
from .kernels import (
    GroupLikelihood,
    SortedRows,
    add_by_level,
    gradient_pass,
    losses_of_levels,
    residual_pass,
)
from .translations import translations_of

__all__ = ["CollapsedRows", "Factor", "Reference", "RowState", "Workspace"]

LEAST_CURVATURE = 1e-8  # of a row, as a share of the largest


class CollapsedRows:
    """The rows of a problem as the kernels see them, those of a level one after the other.

    Parameters
    ----------
    problem : skbayes_sg.groups.problem.GroupProblem
    """

    def __init__(self, problem):
        self.first = int(np.argmax(problem.sizes))
        problem = problem.sorted_by(self.first)
        self.problem, self.target = problem, problem.target
        model = problem.target.model
        kernels = pointer(model.loss, LOSS), pointer(model.derivative, DERIVATIVE)
        self.model = GroupLikelihood(*kernels, model.n_extra)
        self.codes = [np.ascontiguousarray(column, dtype=np.int64) for column in problem.codes.T]
        self.columns = [np.ascontiguousarray(problem.design[:, own]) for own in problem.slopes]
        self.orders = [np.argsort(codes, kind="stable") for codes in self.codes]
        self.sorted = [self._sorted(k) for k in range(problem.n_factors)]
        self.translations = translations_of(problem)

    def _sorted(self, k):
        """The `SortedRows` of factor k."""
        order, L = self.orders[k], self.problem.sizes[k]
        codes = self.codes[k][order]
        X = np.ascontiguousarray(self.problem.design[order].T)
        facts = np.ascontiguousarray(self.target.data.facts[order])
        starts = np.searchsorted(codes, np.arange(L + 1))
        return SortedRows(X, facts, codes, starts, self.columns[k][order], np.arange(len(order)))

    @property
    def n_rows(self):
        """Number of rows."""
        return self.target.n_rows

    def unsorted(self, values, k):
        """Values of the rows in the order of factor k, in the order of the problem."""
        if k == self.first:
            return values
        out = np.empty(len(values))
        out[self.orders[k]] = values
        return out

    def effects_of(self, k, u):
        """What factor k adds to the predictors of all rows."""
        if not self.columns[k].shape[1]:
            return u[self.codes[k], 0]
        own = u[self.codes[k]]
        return own[:, 0] + np.einsum("ij,ij->i", self.columns[k], own[:, 1:])

    def effects_of_others(self, u, k):
        """o_i: the effects of all factors but k."""
        total = np.zeros(self.n_rows)
        for j, effects in enumerate(u):
            if j != k:
                total += self.effects_of(j, effects)
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
        """Σ v_i z_i over the rows of each level of factor k, (n_levels, q)."""
        out = np.zeros((self.problem.sizes[k], self.problem.widths[k]))
        add_by_level(self.codes[k], self.columns[k], values, out)
        return out


@dataclass
class Reference:
    """The expansion of the likelihood in which coordinates are collapsed.

    Parameters
    ----------
    rows : CollapsedRows
    theta : ndarray
        Coefficients and extras.
    u : list of ndarray of shape (n_levels, q)
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
        """For each factor H, S and Σ z_i (w_i η_i - g_i)."""
        rows, (_, w, q) = self.rows, self._expansion
        found = []
        for k, columns in enumerate(rows.columns):
            H = [rows.by_level(w * z, k) for z in (1.0, *columns.T)]
            S = [rows.by_level(w * x, k) for x in rows.problem.design.T]
            H, S = (np.ascontiguousarray(np.stack(sums, axis=2)) for sums in (H, S))
            found.append((H, S, rows.by_level(q, k)))
        return found


class Workspace:
    """Working memory of one chain."""

    def __init__(self, rows):
        q = max(rows.problem.widths)
        self.blocks = np.empty((2, BLOCK, rows.target.model.n_predictors))
        self.squares, self.line, self.eta = np.empty((3, q, q)), np.empty(BLOCK), None

    def of_width(self, q):
        """Scratch of the `algebra` of q effects."""
        return np.ascontiguousarray(self.squares[:, :q, :q])


@dataclass
class RowState:
    """What the rows say at a place: Σ w_i ℓ_i, its gradient in θ, and w_i ∂ℓ_i/∂η_i."""

    loss: float
    gradient: np.ndarray
    residuals: np.ndarray


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
        self.H, self.S, t = reference.factors[k]
        self.q, self.squares = self.H.shape[1], work.of_width(self.H.shape[1])
        offset, alone = self.rows.effects_of_others(u, k), self.rows.problem.n_factors == 1
        self.t = t if alone else t - self.rows.by_level(reference.w * offset, k)
        self.offset = offset if alone else offset[self.rows.orders[k]]
        self.scale = self.rows.problem.scales[k]

    def _law(self, theta, psi):
        return self.H, self.S, self.t, Covariance(psi, self.q).omega, theta[: self.S.shape[2]]

    def zeta_of(self, theta, psi, u):
        """ζ."""
        zeta = np.empty(u.shape)
        white_effects(*self._law(theta, psi), u, self.squares, zeta)
        return zeta

    def u_of(self, theta, psi, zeta):
        """u."""
        m, u = np.empty((2, *zeta.shape))
        place_effects(*self._law(theta, psi), zeta, self.squares, m, u)
        return u

    def potential(self, theta, psi, zeta, state=None):
        """U and its gradient in θ and ψ; with what the rows say if it is known."""
        prior, law = Covariance(psi, self.q), self._law(theta, psi)
        m, u = np.empty((2, *zeta.shape))
        value = place_effects(*law, zeta, self.squares, m, u)
        if state is None:
            g, G = np.zeros(len(theta)), np.zeros(u.shape)
            value += self._pass(theta, u, g, G)
        else:
            g, G = state.gradient.copy(), self.rows.by_level(state.residuals, self.k)
            value += state.loss
        M, L, n = np.zeros((self.q, self.q)), len(u), self.S.shape[2]
        pull_back(self.H, self.S, prior.omega, m, u, zeta, G, self.squares, g[:n], M)
        M -= 0.5 * L * prior.C @ prior.C.T
        prior_gradient(self.rows.target.prior, theta, g)
        value += 0.5 * (prior.omega * (u.T @ u)).sum() - 0.5 * L * prior.log_det
        value += prior_value(self.rows.target.prior, theta) + prior.negative_log_prior(self.scale)
        return value, np.concatenate([g, prior.gradient(M) + prior.prior_gradient(self.scale)])

    def _pass(self, theta, u, g, G):
        rows, work = self.rows, self.work
        with interruptible():
            return gradient_pass(
                rows.sorted[self.k], rows.model, theta, u, self.offset, work.blocks, work.line, g, G
            )

    def proposals(self, theta, psi, u, rng, law):
        """New effects of all levels, and log (target without the rows / proposal), new less old."""
        prior, proposed, gain = Covariance(psi, self.q), np.empty(u.shape), np.empty(len(u))
        H, S, t, omega, beta = self._law(theta, psi)
        noise = rng.random(len(u)), rng.standard_normal(u.shape), law
        propose_effects(H, S, t, omega, prior.C, beta, u, *noise, self.squares, proposed, gain)
        return proposed, gain

    def losses(self, theta, u, proposed):
        """The losses of all levels at their effects, and at those proposed, (n_levels, 2)."""
        rows, work, out = self.rows, self.work, np.zeros((len(u), 2))
        work.eta = np.empty(rows.n_rows)
        with interruptible():
            losses_of_levels(
                rows.sorted[self.k], rows.model, theta, u, proposed, self.offset, work.blocks,
                work.line, work.eta, out,
            )  # fmt: skip
        return out

    def state(self, theta, u, loss):
        """The `RowState` at effects u, right after `losses` at the same θ."""
        rows, work, g = self.rows, self.work, np.zeros(len(theta))
        own = np.empty(rows.n_rows)
        with interruptible():
            residual_pass(
                rows.sorted[self.k], rows.model, theta, u, work.eta, work.blocks, work.line, g, own
            )
        return RowState(loss, g, rows.unsorted(own, self.k))
