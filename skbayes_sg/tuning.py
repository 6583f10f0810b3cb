"""Measurements on which the choices of "auto" rest: curvature, gradient noise, chances of rows.

All are made in the coordinates of the chain, θ = centre + F φ, where the posterior has about unit
width. What a row adds to the gradient there is ``Σ_c t_c G_c`` with terms t (one a predictor) and
``G_c = x_c F``, the row in those coordinates.
"""

from functools import cached_property

import numpy as np
from scipy import linalg

from ._jit import pointer
from .engine.layout import CURVATURE, DERIVATIVE, FACT_PREDICTOR, FACT_WEIGHT, frozen
from .engine.tables import add_tables
from .gradients import Minibatch, Taylor

__all__ = ["Survey"]

# Gauss-Hermite rule for the predictor of a row under a Gaussian posterior.
_Z, _MASS = np.polynomial.hermite_e.hermegauss(15)
_MASS = _MASS / _MASS.sum()

LOAD = 0.1
"""How far skewed parameters must move a predictor (rms) for its row to be put in a group."""

SKETCH = 16
MAX_GROUPS, MIN_GROUP, KNOTS, MAX_LEVELS = 64, 5, 65, 16

SURVEY_FLOPS = 1e8
"""Work for one weighted sum of outer products; decides how many rows eigenvalues are taken on."""


class Survey:
    """Measurements of a posterior around its centre, in a frame.

    Positions of chains are called points; ``d = T'(point)`` is the slope of the frame's warping.
    """

    def __init__(self, frame):
        self.frame, self.target = frame, frame.target
        self.F = frame.F if len(frame.F) > 1 else np.diag(frame.F[0])
        self.model, self.K = self.target.model, self.target.model.n_predictors
        D = self.target.n_parameters
        self.n_survey = int(np.clip(SURVEY_FLOPS / (D * D), 2000, 10_000) / self.K)

    # -- rows ---------------------------------------------------------------------------------

    def rows_in_phi(self, rows):
        """G of shape (n, K, n_parameters)."""
        A = self.target.design(rows)
        parts = [
            (A if c < self.model.n_linear else np.ones((len(A), 1))) @ self.F[where]
            for c, where in enumerate(self.target.positions())
        ]
        return np.stack(parts, axis=1)

    def of_all_rows(self, measure):
        """``measure(rows)`` of every row, in chunks that stay in cache."""
        return np.concatenate(self.target.over_chunks(measure, self.K * self.target.n_parameters))

    @cached_property
    def leverages(self):
        """About the root of the sum of squares of G, of every row: by a random projection of G."""
        D = self.target.n_parameters
        directions = np.random.default_rng(0).standard_normal((D, min(D, SKETCH)))
        sketch = self.F @ directions / np.sqrt(directions.shape[1])

        def norms(rows):
            A, total = self.target.design(rows), 0.0
            for c, where in enumerate(self.target.positions()):
                total = total + ((A @ sketch[where]) ** 2).sum(axis=1) if c < self.model.n_linear else total
            return np.sqrt(total)

        return self.of_all_rows(norms)

    def leverage_chances(self, power, uniform):
        """Chances of rows that grow with a power of their leverage, mixed with the uniform law."""
        N = self.target.n_rows
        if N <= self.n_survey:
            return np.full(N, 1.0 / N)
        weight = self.leverages**power
        return uniform / N + (1.0 - uniform) * weight / weight.sum()

    def sample_rows(self, p, rng, n=None):
        """Rows drawn with chances p, and how many each stands for; all rows if they are few."""
        n, N = n or self.n_survey, self.target.n_rows
        if n >= N:
            return np.arange(N), np.ones(N)
        rows = np.sort(rng.choice(N, n, p=p))
        return rows, 1.0 / (n * p[rows])

    # -- terms --------------------------------------------------------------------------------

    def terms(self, gradient, facts, eta, bracket=None):
        """Terms of an estimator at predictors `eta` (n, K) of the rows of `facts`."""
        n, shape = len(eta), eta.shape
        terms, model = np.empty(shape), self.model
        gradient.terms(
            frozen(facts), pointer(model.derivative, DERIVATIVE), pointer(model.curvature, CURVATURE),
            np.arange(n), 0, n, np.empty((0, 3)) if bracket is None else bracket,
            np.array(eta, order="C"), np.empty(shape), terms,
        )  # fmt: skip
        return terms

    def facts(self, gradient):
        """Facts of the rows as an estimator uses them."""
        return self.frame.groups.facts if gradient.uses_tables else self.frame.facts

    def terms_at(self, gradient, rows, G, points):
        """Terms at each point, weights of the rows included: (len(points), n, K)."""
        facts = self.facts(gradient)[rows]
        centre = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + self.K]
        phis, terms = self.frame.warping.position(points), []
        for z, phi in zip(points, phis, strict=True):
            bracket = self._bracket(z) if gradient.uses_tables else None
            terms.append(self.terms(gradient, facts, centre + G @ phi, bracket))
        return facts[:, FACT_WEIGHT, None] * np.stack(terms)

    def _bracket(self, z):
        tables, theta = self.frame.groups.tables, self.frame.theta(z)
        out, ignored = np.empty((len(tables.places), 3)), np.empty(len(theta))
        add_tables(tables, theta, self.frame.centre.theta, out, ignored)
        return out

    def mean_squares(self, gradient, rows, size):
        """Mean squares of the term of a single predictor over u ~ N(0, size²), by quadrature.

        Rows are taken to have no group.
        """
        facts, gradient = self.frame.facts[rows], Taylor() if gradient.uses_tables else gradient
        centre = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + 1]
        total = sum(
            mass * self.terms(gradient, facts, centre + size[:, None] * z) ** 2
            for z, mass in zip(_Z, _MASS, strict=True)
        )
        return facts[:, FACT_WEIGHT] ** 2 * total[:, 0]

    def group_rows(self, parameters, points):
        """The frame with groups: rows that the same few parameters move far, and alike.

        Rows are alike if they have the same entries in these columns, as rows of a level have. Of
        several thousand columns' worth of patterns only those with most rows are worth a table.
        """
        frame, where = self.frame, self.target.positions()[0]
        few = self.target.design(slice(0, 4000))
        levels = np.array([len(np.unique(column)) <= MAX_LEVELS for column in few.T])
        columns = np.flatnonzero(np.isin(where, parameters) & levels)
        if len(columns) == 0:
            return frame
        entries = self.of_all_rows(lambda rows: self.target.design(rows)[:, columns])
        shifts = (frame.theta(points) - frame.centre.theta)[:, where[columns]]
        spread = np.linalg.cholesky(np.cov(shifts.T).reshape(len(columns), -1) + 1e-300)
        rows = np.flatnonzero(np.sqrt(((entries @ spread) ** 2).sum(axis=1)) > LOAD)
        patterns, group, counts = np.unique(
            entries[rows], axis=0, return_inverse=True, return_counts=True
        )
        chosen = np.argsort(-counts, kind="stable")[:MAX_GROUPS]
        number = np.full(len(patterns), -1)
        chosen = chosen[counts[chosen] >= MIN_GROUP]
        number[chosen] = np.arange(len(chosen))
        keep = number[group] >= 0
        if not keep.any():
            return frame
        rows, group = rows[keep], number[group[keep]]
        directions = np.zeros((group.max() + 1, self.target.n_parameters))
        A, size = self.target.design(rows), np.bincount(group)
        for c, column in enumerate(A.T):
            directions[:, where[c]] = np.bincount(group, column) / size
        reach = (frame.theta(points) - frame.centre.theta) @ directions.T
        middle, half = reach.mean(axis=0), 10.0 * reach.std(axis=0)
        places = np.stack(
            [
                self._knots(rows[group == g], middle[g] - half[g], middle[g] + half[g])
                for g in range(len(directions))
            ]
        )
        return frame.grouped(rows, group, directions, places, self._terms_at)

    def _knots(self, rows, first, last):
        """Knots where the mean term of some rows bends, closer the more it does."""
        fine = np.linspace(first, last, 10 * KNOTS)
        mean = self._terms_at(rows[:: -(-len(rows) // 50)], fine).mean(axis=(1, 2))
        bend = np.abs(np.gradient(np.gradient(mean, fine), fine)) ** 0.25
        density = bend + 0.1 * bend.mean() + np.finfo(float).tiny
        share = np.cumsum(density)
        return np.interp(np.linspace(share[0], share[-1], KNOTS), share, fine)

    def _terms_at(self, rows, shifts):
        """Terms with the predictors shifted from the centre, (len(shifts), len(rows), 1)."""
        facts = np.tile(self.frame.facts[rows], (len(shifts), 1))
        eta = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + 1] + np.repeat(shifts, len(rows))[:, None]
        return self.terms(Minibatch(), facts, eta).reshape(len(shifts), -1, 1)

    # -- noise --------------------------------------------------------------------------------

    def row_noise(self, gradient, rows, points=None):
        """Root mean square over the points of what a row adds: what its chance should go with.

        Without points: over the Laplace approximation, by quadrature over the single predictor.
        """
        G = self.rows_in_phi(rows)
        if points is None:
            square = (G[:, 0] ** 2).sum(axis=1)
            return np.sqrt(square * self.mean_squares(gradient, rows, np.sqrt(square)))
        terms = self.terms_at(gradient, rows, G, points)
        slopes = self.frame.warping.derivative(points, 1)
        if self.K == 1:
            squares = terms[:, :, 0] ** 2 * (slopes**2 @ (G[:, 0] ** 2).T)
        else:
            added = [np.einsum("nc,ncd->nd", t, G) * d for t, d in zip(terms, slopes, strict=True)]
            squares = (np.stack(added) ** 2).sum(axis=2)
        return np.sqrt(squares.mean(axis=0))

    def grouped_rows(self):
        """Rows that have a group."""
        groups = self.frame.groups
        return np.flatnonzero(groups.facts[:, -1] >= 0.0) if groups else np.empty(0, dtype=int)

    def level(self, weights):
        """The weights, those of a group's rows not below half of their root mean square.

        Rows of a group are alike; what one of them has not met yet another has.
        """
        rows = self.grouped_rows()
        if len(rows) == 0:
            return weights
        group = self.frame.groups.facts[rows, -1].astype(int)
        square = np.bincount(group, weights[rows] ** 2) / np.maximum(np.bincount(group), 1)
        weights[rows] = np.maximum(weights[rows], 0.5 * np.sqrt(square[group]))
        return weights

    def noise_eigenvalue(self, gradient, p, sampled, points=None):
        """Largest eigenvalue of the covariance of the gradient estimated from one row of chance p.

        ``Σ_i p_i (G_iᵀ t_i / p_i)(·)ᵀ``, averaged over the points; n rows divide it by n.
        """
        rows, stands_for = sampled
        G, scale = self.rows_in_phi(rows), np.sqrt(stands_for / p[rows])
        if points is None:
            size = np.sqrt((G[:, 0] ** 2).sum(axis=1))
            scale = scale * np.sqrt(self.mean_squares(gradient, rows, size))
            return largest_eigenvalue(_gram(scale[:, None] * G[:, 0]))
        slopes = self.frame.warping.derivative(points, 1)
        total = 0.0
        for t, d in zip(self.terms_at(gradient, rows, G, points), slopes, strict=True):
            added = np.einsum("nc,ncd->nd", scale[:, None] * t, G)
            total = total + d[:, None] * _gram(added) * d / len(points)
        return largest_eigenvalue(total)

    # -- curvature ----------------------------------------------------------------------------

    def growth(self, sampled, points):
        """Largest eigenvalue of ∇²U(point) - I, or minus the curvature at the centre, over points.

        In warped coordinates the Hessian is ``d H d + diag(g T'' - (log T')'')``.
        """
        rows, stands_for = sampled
        part = self.target.take(rows, self.target.weight[rows] * stands_for)
        G = self.rows_in_phi(rows)
        centre = part.weights_at(self.frame.centre.theta)
        thetas = self.frame.theta(points)
        warping, found = self.frame.warping, []
        for m, theta in enumerate(thetas):
            W = part.weights_at(theta) - centre
            M = _weighted_gram(G, W) + self._prior_growth(theta)
            if warping.axes:
                g = self._gradient_at(sampled, G, points[m])
                d = warping.derivative(points[m], 1)
                bend = warping.derivative(points[m], 2)
                third = warping.derivative(points[m], 3)
                M = d[:, None] * M * d + np.diag(
                    d**2 - 1.0 + g * bend - third / d + (bend / d) ** 2
                )
            found.append(largest_eigenvalue(M))
        return max(0.0, *found)

    def _prior_growth(self, theta):
        change = self.target.prior_curvature(theta) - self.target.prior_curvature(
            self.frame.centre.theta
        )
        return self.F.T @ (change[:, None] * self.F) if change.any() else 0.0

    def _gradient_at(self, sampled, G, point):
        """∇_φ U at a point, the rows' remainder of it from a sample of rows."""
        rows, stands_for = sampled
        terms = self.terms_at(Taylor(), rows, G, point[None])[0]
        remainder = (stands_for[:, None] * terms).ravel() @ G.reshape(-1, G.shape[2])
        return self.frame.offset + self.frame.warping.position(point) + remainder


def _gram(A):
    return A.T @ A


def _weighted_gram(G, W):
    """Σ_i G_iᵀ W_i G_i for (n, K, D) and (n, K, K) arrays."""
    flat = G.reshape(-1, G.shape[2])
    return flat.T @ np.matmul(W, G).reshape(flat.shape)


def largest_eigenvalue(M):
    """Largest eigenvalue of a symmetric matrix."""
    D = len(M)
    return float(linalg.eigvalsh(0.5 * (M + M.T), subset_by_index=[D - 1, D - 1])[0])
