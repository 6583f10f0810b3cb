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

`collapsed_kernels` has the potential, `algebra` the derivatives. Without slopes Ω = 1/τ², and
ψ = log τ.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._base.jit import pointer
from ..kernels.layout import DERIVATIVE, FACT_WEIGHT, LOSS
from .collapsed_kernels import FactorLaw
from .kernels import GroupLikelihood, SortedRows, add_by_level
from .recentring import recentrings_of
from .robust_moves import robust_moves_of
from .translations import translations_of

__all__ = ["CollapsedRows", "Reference"]

LEAST_CURVATURE = 1e-8  # least curvature w_i of a row, as a share of the largest


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
        self.columns = [np.ascontiguousarray(problem.sloped(k)) for k in range(problem.n_factors)]
        self.orders = [np.argsort(codes, kind="stable") for codes in self.codes]
        self.sorted = [self._sorted(k) for k in range(problem.n_factors)]
        self.translations = translations_of(problem)
        self.robust_moves = robust_moves_of(self)
        # Other models mix as well without recentring, in less time.
        self.recentrings = recentrings_of(problem) if self.robust_moves is not None else []

    def _sorted(self, k):
        """The `SortedRows` of factor k."""
        order, L = self.orders[k], self.problem.sizes[k]
        codes = self.codes[k][order]
        X = np.ascontiguousarray(self.problem.design[order].T)
        facts = np.ascontiguousarray(self.target.data.facts[order])
        starts = np.searchsorted(codes, np.arange(L + 1))
        return SortedRows(X, facts, codes, starts, self.columns[k][order], np.arange(len(order)))

    @property
    def has_moves(self):
        """Whether a sweep is more than a visit to the only factor."""
        moves = self.translations or self.recentrings or self.robust_moves is not None
        return bool(moves) or self.problem.n_factors > 1

    @property
    def n_rows(self):
        """Number of rows."""
        return self.target.n_rows

    def unsorted(self, values, k):
        """Reorder values of the rows from the order of factor k to that of the problem."""
        if k == self.first:
            return values
        out = np.empty(len(values))
        out[self.orders[k]] = values
        return out

    def effects_of(self, k, u):
        """What the effects u of factor k add to the predictors of all rows, (n_rows,)."""
        if not self.columns[k].shape[1]:
            return u[self.codes[k], 0]
        own = u[self.codes[k]]
        return own[:, 0] + np.einsum("ij,ij->i", self.columns[k], own[:, 1:])

    def effects_of_others(self, u, k):
        """o_i: what all factors but k (all, if it is None) add to the predictors, (n_rows,)."""
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
    """The quadratic expansion of the likelihood at one place, by which coordinates collapse.

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

    @property
    def is_convex(self):
        """Whether losses are convex in the predictor, so that effects have one mode."""
        return self.rows.target.model.convex_in_first

    @cached_property
    def _expansion(self):
        """Curvatures of all predictors (n_rows, K, K), w_i, and w_i η_i - g_i."""
        target, eta = self.rows.target, self.rows.predictors(self.theta, self.u)
        curvature = target.curvature(target.data.facts, eta)
        slopes = target.derivative(target.data.facts, eta)[:, 0]
        weight = target.data.facts[:, FACT_WEIGHT]
        w = np.maximum(curvature[:, 0, 0], LEAST_CURVATURE * np.abs(curvature[:, 0, 0]).max())
        return curvature, w, w * eta[:, 0] - weight * slopes

    @property
    def curvature(self):
        """Second derivatives of the weighted losses in all predictors, (n_rows, K, K)."""
        return self._expansion[0]

    @property
    def w(self):
        """w_i: curvatures in the predictor that has the effects, none of them negative."""
        return self._expansion[1]

    @cached_property
    def factors(self):
        """For each factor H, S and Σ z_i (w_i η_i - g_i) of all levels."""
        rows, (_, w, q) = self.rows, self._expansion
        found = []
        for k, columns in enumerate(rows.columns):
            H = [rows.by_level(w * z, k) for z in (1.0, *columns.T)]
            S = [rows.by_level(w * x, k) for x in rows.problem.design.T]
            H, S = (np.ascontiguousarray(np.stack(sums, axis=2)) for sums in (H, S))
            found.append((H, S, rows.by_level(q, k)))
        return found

    def law_of_factor(self, k, u):
        """The `FactorLaw` of factor k, given the effects of the others."""
        rows, (H, S, t) = self.rows, self.factors[k]
        if rows.problem.n_factors == 1:
            return FactorLaw(H, S, t, self._no_offset, *self._priors[k])
        offset = rows.effects_of_others(u, k)
        t = t - rows.by_level(self.w * offset, k)
        return FactorLaw(H, S, t, offset[rows.orders[k]], *self._priors[k])

    @cached_property
    def _no_offset(self):
        """The effects of other factors where there are none: zeros."""
        return np.zeros(self.rows.n_rows)

    @cached_property
    def _priors(self):
        """For each factor the tables of the priors of θ and of its standard deviations."""
        problem = self.rows.problem
        prior = np.array(problem.target.prior, dtype=np.float64)
        return [(prior, own) for own in problem.scales]
