"""Measurements for the choices of "auto": curvature, gradient noise, probabilities of rows.

All are made in the coordinates of the chain, θ = centre + F φ, where the posterior has about unit
width. What a row adds to the gradient there is ``Σ_c t_c G_c`` with terms t (one a predictor) and
``G_c = x_c F``, the row in those coordinates.
"""

from functools import cached_property

import numpy as np
from scipy import linalg, sparse

from .._base.jit import interruptible, pointer
from ..geometry import preconditioning
from ..geometry.eigenvalues import extreme_eigenvalue
from ..geometry.mode import SKETCH
from ..gradients import Minibatch, Taylor
from ..kernels.layout import CURVATURE, DERIVATIVE, FACT_PREDICTOR, FACT_WEIGHT, frozen
from ..kernels.tables import find_brackets

__all__ = ["Survey"]

# Gauss-Hermite rule for the predictor of a row under a Gaussian posterior.
_Z, _MASS = np.polynomial.hermite_e.hermegauss(15)
_MASS = _MASS / _MASS.sum()

LOAD = 0.1
"""Change of a predictor with skewed parameters (rms) from which on its row is in a group."""

WIDE_SKETCH = 64  # width of random projections of few rows; of all rows: `mode.SKETCH`
MAX_GROUPS, MIN_GROUP, KNOTS, MAX_LEVELS = 64, 5, 65, 16

SURVEY_FLOPS = 1e8
"""Work for one weighted sum of outer products, which limits the rows for eigenvalues."""

DENSE_EIGENVALUE = 200  # largest number of parameters for which eigenvalues use the matrix


class Survey:
    """Measurements of a posterior around its centre, in a frame.

    Positions of chains are called points; ``d = T'(point)`` is the slope of the frame's warping.
    A *design* A is some rows as `Target.design` gives them.
    """

    def __init__(self, frame):
        self.frame, self.target = frame, frame.target
        self.model, self.K = self.target.model, self.target.model.n_predictors
        D = self.target.n_parameters
        self.n_survey = int(np.clip(SURVEY_FLOPS / (D * D), 2000, 10_000))

    # -- rows ---------------------------------------------------------------------------------

    def of_all_rows(self, measure):
        """``measure(rows)`` of every row, in chunks that stay in cache."""
        width = self.target.n_features + SKETCH * self.K
        return np.concatenate(self.target.over_chunks(measure, width))

    def predictors(self, A, phi):
        """G φ of the rows of a design, the change of their predictors with φ, (n, K)."""
        return self.target.along(A, preconditioning.apply(self.frame.F, phi))

    def sketch(self, width, slopes=None):
        """Directions for estimates of norms: see `preconditioning.sketch`."""
        return preconditioning.sketch(self.frame.F, width, slopes)

    @cached_property
    def leverages(self):
        """An estimate of the root of the sum of squares of G for every row."""
        if self.frame.centre.leverages is not None:
            return self.frame.centre.leverages
        R = self.sketch(SKETCH)
        return self.of_all_rows(lambda rows: self.target.norms(self.target.design(rows), R))

    def leverage_chances(self, power, uniform):
        """Probabilities that grow with a power of the leverage, mixed with uniform ones."""
        N = self.target.n_rows
        if N <= self.n_survey:
            return np.full(N, 1.0 / N)
        weight = self.leverages**power
        return uniform / N + (1.0 - uniform) * weight / weight.sum()

    def sample_rows(self, p, rng, n=None):
        """Rows drawn with probabilities p, and how many each represents; all rows if few."""
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
        kernels = pointer(model.derivative, DERIVATIVE), pointer(model.curvature, CURVATURE)
        bracket = np.empty((0, 3)) if bracket is None else bracket
        blocks = np.array(eta, order="C"), np.empty(shape), terms
        with interruptible():
            gradient.terms(frozen(facts), *kernels, np.arange(n), 0, n, bracket, *blocks)
        return terms

    def facts(self, gradient):
        """Facts of the rows as an estimator uses them."""
        return self.frame.groups.facts if gradient.uses_tables else self.frame.facts

    def terms_at(self, gradient, rows, A, points):
        """Weighted terms of the rows with design A at each point: (len(points), n, K)."""
        facts = self.facts(gradient)[rows]
        centre = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + self.K]
        phis, terms = self.frame.warping.position(points), []
        for z, phi in zip(points, phis, strict=True):
            bracket = self._bracket(z) if gradient.uses_tables else None
            terms.append(self.terms(gradient, facts, centre + self.predictors(A, phi), bracket))
        return facts[:, FACT_WEIGHT, None] * np.stack(terms)

    def _bracket(self, z):
        tables, theta = self.frame.groups.tables, self.frame.theta(z)
        out = np.empty((len(tables.places), 3))
        find_brackets(tables, theta, self.frame.centre.theta, out)
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
        """The frame with groups of rows that change much, and equally, with the same parameters.

        Rows are alike if they have the same entries in these columns, as rows of a level have. Of
        several thousand columns' worth of patterns only those with most rows are worth a table.
        """
        frame, where = self.frame, self.target.positions()[0]
        columns = np.flatnonzero(np.isin(where, parameters))
        few = self._entries(slice(0, 4000), columns)
        columns = columns[[len(np.unique(column)) <= MAX_LEVELS for column in few.T]]
        if len(columns) == 0:
            return frame
        entries = self.of_all_rows(lambda rows: self._entries(rows, columns))
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
        members = sparse.csr_array((np.ones(len(rows)), (group, np.arange(len(rows)))))
        sums = members @ self.target.design(rows)
        sums = sums.toarray() if sparse.issparse(sums) else sums
        directions[:, where] = sums / np.bincount(group)[:, None]
        reach = (frame.theta(points) - frame.centre.theta) @ directions.T
        middle, half = reach.mean(axis=0), 10.0 * reach.std(axis=0)
        places = np.stack(
            [
                self._knots(rows[group == g], middle[g] - half[g], middle[g] + half[g])
                for g in range(len(directions))
            ]
        )
        return frame.grouped(rows, group, directions, places, self._terms_at)

    def _entries(self, rows, columns):
        """Some columns of some rows, dense."""
        block = self.target.design(rows)[:, columns]
        return block.toarray() if sparse.issparse(block) else block

    def _knots(self, rows, first, last):
        """Knots for the mean term of some rows, denser where it has more curvature."""
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

    def row_noise(self, gradient, rows, points=None, width=SKETCH):
        """Root mean square of each row's contribution, which should determine its probability.

        Without points: over the Laplace approximation, by quadrature over the single predictor.
        `width` is that of the random projection that norms are taken after.
        """
        A = self.target.design(rows)
        if points is None:
            size = self.target.norms(A, self.sketch(width))
            return size * np.sqrt(self.mean_squares(gradient, rows, size))
        terms = self.terms_at(gradient, rows, A, points)
        axes, squares = self.frame.warping.axes, 0.0
        P = None if axes else self.target.along(A, self.sketch(width))
        for t, d in zip(terms, self.slopes(points), strict=True):
            here = self.target.along(A, self.sketch(width, d)) if axes else P
            squares = squares + (np.einsum("nc,ncw->nw", t, here) ** 2).sum(axis=1)
        return np.sqrt(squares / len(points))

    def gradient_norms(self, rows):
        """‖Fᵀ∇ℓ_i(θ̂)‖: the weights of eq. 11 of Putcha, Nemeth and Fearnhead (2023)."""
        facts = self.frame.facts[rows]
        terms = facts[:, FACT_WEIGHT, None] * facts[:, FACT_PREDICTOR + self.K :][:, : self.K]
        JF = self.target.along(self.target.design(rows), self._matrix(self.frame.F))
        return np.linalg.norm(np.einsum("nk,nkm->nm", terms, JF), axis=1)

    def hessian_norms(self, rows):
        """tr(Fᵀ∇²ℓ_i Σ ∇²ℓ_i F)^½ with Σ of the Laplace approximation: the weights of eq. 16."""
        facts, A = self.frame.facts[rows], self.target.design(rows)
        eta = np.ascontiguousarray(facts[:, FACT_PREDICTOR : FACT_PREDICTOR + self.K])
        W = self.target.curvature(frozen(facts), eta)
        J = [self.target.along(A, self._matrix(R)) for R in (self.frame.F, self.frame.laplace_root)]
        M, S = (np.einsum("nbm,ncm->nbc", J_, J_) for J_ in J)
        return np.sqrt(np.maximum(np.einsum("nab,nbc,ncd,nda->n", W, M, W, S), 0.0))

    def _matrix(self, F):
        return np.diag(F[0]) if len(F) == 1 and self.target.n_parameters > 1 else F

    def slopes(self, points):
        """T' of the warping at the points."""
        return self.frame.warping.derivative(points, 1)

    def grouped_rows(self):
        """The rows that belong to a group."""
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

    def noise_eigenvalue(self, gradient, p, sampled, points=None, absorbed=None):
        """Largest eigenvalue of the covariance of the gradient estimated from one row of chance p.

        ``Σ_i p_i (G_iᵀ t_i / p_i)(·)ᵀ``, averaged over the points; n rows divide it by n. What the
        dynamics has absorbed of it is taken off: see `Dynamics.absorbed`.
        """
        rows, stands_for = sampled
        A, scale = self.target.design(rows), stands_for / p[rows]
        if points is None:
            size = self.target.norms(A, self.sketch(WIDE_SKETCH))
            squares = scale * self.mean_squares(gradient, rows, size)
            return self._largest_left(A, [squares[:, None, None]], absorbed)
        terms = self.terms_at(gradient, rows, A, points)
        squares = [
            (scale / len(points))[:, None, None] * t[:, :, None] * t[:, None, :] for t in terms
        ]
        if self.frame.warping.axes:
            return self._largest_left(A, squares, absorbed, self.slopes(points))
        return self._largest_left(A, [sum(squares)], absorbed)

    def _largest_left(self, A, weights, absorbed, slopes=None):
        """A bound that ignores absorption if there are too many parameters for the matrix."""
        D = self.target.n_parameters
        if absorbed is None or D > DENSE_EIGENVALUE or not absorbed(np.ones(D))[0].any():
            return self.largest(A, weights, slopes)
        slopes = np.ones((len(weights), D)) if slopes is None else slopes
        M = self._congruences(A, weights, slopes, np.zeros(D))
        taken, back = absorbed(np.diag(M))
        values = linalg.eigvalsh(0.5 * (M + M.T) - np.diag(taken))
        return float(np.abs(values).max() + back.max())

    # -- curvature ----------------------------------------------------------------------------

    def growth(self, sampled, points):
        """Largest eigenvalue of ∇²U(point) - I, or minus the curvature at the centre, over points.

        In warped coordinates the Hessian is ``d H d + diag(g T'' - (log T')'')``.
        """
        rows, stands_for = sampled
        part = self.target.take(rows, self.target.weight[rows] * stands_for)
        A, warping = part.design(slice(None)), self.frame.warping
        centre, theta_hat = part.weights_at(self.frame.centre.theta), self.frame.centre.theta
        at_centre, found = self.target.prior_curvature(theta_hat), []
        for point, theta in zip(points, self.frame.theta(points), strict=True):
            W = part.weights_at(theta) - centre
            prior = self.target.prior_curvature(theta) - at_centre
            if not warping.axes:
                found.append(self.largest(A, [W], prior=prior))
                continue
            g = self._gradient_at(sampled, A, point)
            d, bend, third = (warping.derivative(point, k) for k in (1, 2, 3))
            plus = d**2 - 1.0 + g * bend - third / d + (bend / d) ** 2
            found.append(self.largest(A, [W], d[None], prior, plus))
        return max(0.0, *found)

    def _gradient_at(self, sampled, A, point):
        """∇_φ U at a point, with the remainder of the rows estimated from a sample."""
        rows, stands_for = sampled
        terms = self.terms_at(Taylor(), rows, A, point[None])[0]
        remainder = self.target.row_sum(A, stands_for[:, None] * terms)
        remainder = preconditioning.pull_back(self.frame.F, remainder)
        return self.frame.offset + self.frame.warping.position(point) + remainder

    def largest(self, A, weights, slopes=None, prior=None, plus=None):
        """Largest eigenvalue of ``Σ_m d_m Fᵀ(Σ_i J_iᵀ W_mi J_i + diag(prior))F d_m + diag(plus)``.

        The rows i are those of a design A; W_m are the entries of `weights`, d_m those of `slopes`.
        """
        D = self.target.n_parameters
        slopes = np.ones((len(weights), D)) if slopes is None else slopes
        prior, plus = np.zeros(D) if prior is None else prior, np.zeros(D) if plus is None else plus
        if D <= DENSE_EIGENVALUE:
            M = np.diag(plus) + self._congruences(A, weights, slopes, prior)
            return float(linalg.eigvalsh(0.5 * (M + M.T), subset_by_index=[D - 1, D - 1])[0])

        def product(v):
            total = plus * v
            for W, d in zip(weights, slopes, strict=True):
                theta = preconditioning.apply(self.frame.F, d * v)
                pulled = np.einsum("ncb,nb->nc", W, self.target.along(A, theta))
                pulled = self.target.row_sum(A, pulled) + prior * theta
                total = total + d * preconditioning.pull_back(self.frame.F, pulled)
            return total

        return extreme_eigenvalue(product, D, "LA")

    def _congruences(self, A, weights, slopes, prior):
        """``Σ_m d_m Fᵀ(Σ_i J_iᵀ W_mi J_i + diag(prior))F d_m`` as a matrix."""
        M = np.zeros((len(prior), len(prior)))
        for W, d in zip(weights, slopes, strict=True):
            H = self.frame.congruence(self.target.outer_sum(A, W) + np.diag(prior))
            M += d[:, None] * H * d
        return M
