"""Measurements for the choices of "auto": curvature, gradient noise, probabilities of rows.

All are made in the coordinates of the chain, θ = centre + F φ, where the posterior has about unit
width. What a row adds to the gradient there is ``Σ_c t_c G_c``, with one term t_c for each
predictor and ``G_c = x_c F``, the row in those coordinates.
"""

from functools import cached_property

import numpy as np
from scipy import linalg

from .._base.interrupts import without_interrupts
from .._base.jit import pointer
from ..geometry import preconditioning
from ..geometry.eigenvalues import extreme_eigenvalue
from ..kernels.layout import CURVATURE, DERIVATIVE, FACT_PREDICTOR, FACT_WEIGHT, frozen

__all__ = ["Survey"]

# Gauss-Hermite rule for the predictor of a row under a Gaussian posterior.
_Z, _MASS = np.polynomial.hermite_e.hermegauss(15)
_MASS = _MASS / _MASS.sum()

SKETCH = 16  # width of random projections by which norms are estimated, for all rows
WIDE_SKETCH = 64  # width of random projections for few rows

SURVEY_FLOPS = 1e8
"""Floating-point operations for a weighted sum of outer products of rows.

They limit the number of rows from which eigenvalues are measured.
"""

DENSE_EIGENVALUE = 200  # largest number of parameters for which eigenvalues use the matrix


class Survey:
    """Measurements of a posterior around its centre, in a frame.

    Positions of chains are called points. A *design* A is some rows as `Target.design` gives them.
    """

    def __init__(self, frame):
        self.frame, self.target = frame, frame.target
        self.model, self.K = self.target.model, self.target.model.n_predictors
        D = self.target.n_parameters
        self.n_survey = int(np.clip(SURVEY_FLOPS / (D * D), 2000, 10_000))

    # -- rows ---------------------------------------------------------------------------------

    def of_all_rows(self, measure):
        """The results of ``measure(rows)`` for all rows, computed in chunks that stay in cache."""
        width = self.target.n_features + SKETCH * self.K
        return np.concatenate(self.target.over_chunks(measure, width))

    def predictors(self, A, phi):
        """G φ of the rows of a design, the change of their predictors from the centre: (n, K)."""
        return self.target.along(A, preconditioning.apply(self.frame.F, phi))

    def sketch(self, width):
        """Random directions by which norms ‖G‖ are estimated: see `preconditioning.sketch`."""
        return preconditioning.sketch(self.frame.F, width)

    @cached_property
    def leverages(self):
        """Estimated leverage of every row: the root of the sum of squares of its G."""
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
        """Draw rows with probabilities p; return them and how many each represents. All, if few."""
        n, N = n or self.n_survey, self.target.n_rows
        if n >= N:
            return np.arange(N), np.ones(N)
        rows = np.sort(rng.choice(N, n, p=p))
        return rows, 1.0 / (n * p[rows])

    # -- terms --------------------------------------------------------------------------------

    def terms(self, gradient, facts, eta):
        """Terms t (n, K) of an estimator for the rows of `facts` at predictors `eta` (n, K)."""
        n, shape = len(eta), eta.shape
        terms, model = np.empty(shape), self.model
        kernels = pointer(model.derivative, DERIVATIVE), pointer(model.curvature, CURVATURE)
        blocks = np.array(eta, order="C"), np.empty(shape), terms
        with without_interrupts():
            gradient.terms(frozen(facts), *kernels, np.arange(n), 0, n, *blocks)
        return terms

    def terms_at(self, gradient, rows, A, points):
        """Weighted terms of the rows with design A at each point: (len(points), n, K)."""
        facts = self.frame.facts[rows]
        centre = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + self.K]
        terms = [self.terms(gradient, facts, centre + self.predictors(A, phi)) for phi in points]
        return facts[:, FACT_WEIGHT, None] * np.stack(terms)

    def mean_squares(self, gradient, rows, size):
        """Weighted mean square of each row's term at predictors η̂ + N(0, size²), by quadrature.

        It is for models with a single predictor, η̂ at the centre.
        """
        facts = self.frame.facts[rows]
        centre = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + 1]
        total = sum(
            mass * self.terms(gradient, facts, centre + size[:, None] * z) ** 2
            for z, mass in zip(_Z, _MASS, strict=True)
        )
        return facts[:, FACT_WEIGHT] ** 2 * total[:, 0]

    # -- noise --------------------------------------------------------------------------------

    def row_noise(self, gradient, rows, points=None, width=SKETCH):
        """Root mean square of each row's contribution, which should determine its probability.

        The mean is over the points; without points it is over the Laplace approximation, by
        quadrature, for models with a single predictor. `width` is that of the random projection by
        which norms are estimated.
        """
        A = self.target.design(rows)
        if points is None:
            size = self.target.norms(A, self.sketch(width))
            return size * np.sqrt(self.mean_squares(gradient, rows, size))
        terms = self.terms_at(gradient, rows, A, points)
        P = self.target.along(A, self.sketch(width))
        squares = sum((np.einsum("nc,ncw->nw", t, P) ** 2).sum(axis=1) for t in terms)
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
        """F as a matrix, also if only its diagonal is stored, as one row."""
        return np.diag(F[0]) if len(F) == 1 and self.target.n_parameters > 1 else F

    def noise_eigenvalue(self, gradient, p, sampled, points=None, absorbed=None):
        """Largest eigenvalue of the covariance of the gradient estimated from one row, drawn by p.

        The covariance is ``Σ_i p_i (G_iᵀ t_i / p_i)(·)ᵀ``, averaged over the points, or over the
        Laplace approximation without points; with n rows it is n times smaller. What the dynamics
        absorbs of it is subtracted: see `Dynamics.absorbed`.
        """
        rows, stands_for = sampled
        A, scale = self.target.design(rows), stands_for / p[rows]
        if points is None:
            size = self.target.norms(A, self.sketch(WIDE_SKETCH))
            squares = scale * self.mean_squares(gradient, rows, size)
            return self._largest_left(A, squares[:, None, None], absorbed)
        terms = self.terms_at(gradient, rows, A, points)
        share = (scale / len(points))[:, None, None]
        squares = sum(share * t[:, :, None] * t[:, None, :] for t in terms)
        return self._largest_left(A, squares, absorbed)

    def noise_draws(self, gradient, p, sampled, points, rng, n=4):
        """Draw n vectors in φ for each point, with the covariance of the gradient from one row.

        It is that of `noise_eigenvalue` at the point, before the dynamics absorbs anything.
        """
        rows, stands_for = sampled
        A, scale = self.target.design(rows), np.sqrt(stands_for / p[rows])[:, None]
        found = []
        for terms in self.terms_at(gradient, rows, A, points):
            for signs in rng.standard_normal((n, len(rows), 1)):
                found.append(self.target.row_sum(A, signs * scale * terms))
        return np.stack([preconditioning.pull_back(self.frame.F, g) for g in found])

    def _largest_left(self, A, W, absorbed):
        """Largest eigenvalue of ``Fᵀ(Σ_i J_iᵀ W_i J_i)F`` less what the dynamics absorbs.

        With too many parameters for a matrix, it is a bound that ignores absorption.
        """
        D = self.target.n_parameters
        if absorbed is None or D > DENSE_EIGENVALUE or not absorbed(np.ones(D))[0].any():
            return self.largest(A, W)
        M = self._congruence(A, W)
        if not np.isfinite(M).all():
            return np.inf
        taken, back = absorbed(np.diag(M))
        values = linalg.eigvalsh(0.5 * (M + M.T) - np.diag(taken))
        return float(np.abs(values).max() + back.max())

    # -- curvature ----------------------------------------------------------------------------

    def growth(self, sampled, points):
        """Largest eigenvalue in φ of ∇²U(point) - ∇²U(centre) over some points; at least 0."""
        rows, stands_for = sampled
        part = self.target.take(rows, self.target.weight[rows] * stands_for)
        A = part.design(slice(None))
        centre, theta_hat = part.weights_at(self.frame.centre.theta), self.frame.centre.theta
        at_centre, found = self.target.prior_curvature(theta_hat), []
        for theta in self.frame.theta(points):
            W = part.weights_at(theta) - centre
            prior = self.target.prior_curvature(theta) - at_centre
            found.append(self.largest(A, W, prior))
        return max(0.0, *found)

    def largest(self, A, W, prior=0.0):
        """Largest eigenvalue of ``Fᵀ(Σ_i J_iᵀ W_i J_i + diag(prior))F`` over rows of a design A."""
        D = self.target.n_parameters
        if D <= DENSE_EIGENVALUE:
            M = self._congruence(A, W, prior)
            if not np.isfinite(M).all():
                return np.inf  # products have overflowed
            return float(linalg.eigvalsh(0.5 * (M + M.T), subset_by_index=[D - 1, D - 1])[0])

        def product(v):
            theta = preconditioning.apply(self.frame.F, v)
            pulled = np.einsum("ncb,nb->nc", W, self.target.along(A, theta))
            pulled = self.target.row_sum(A, pulled) + prior * theta
            return preconditioning.pull_back(self.frame.F, pulled)

        return extreme_eigenvalue(product, D, "LA")

    def _congruence(self, A, W, prior=0.0):
        """``Fᵀ(Σ_i J_iᵀ W_i J_i + diag(prior))F`` as a matrix."""
        H = self.target.outer_sum(A, W)
        H[np.diag_indices_from(H)] += prior
        return self.frame.congruence(H)
