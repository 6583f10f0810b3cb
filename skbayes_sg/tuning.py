"""Measurements on which the choices of "auto" rest: curvature, gradient noise, chances of rows.

All are made in the coordinates of the chain, θ = centre + F φ, where the posterior has about unit
width. What a row adds to the gradient there is ``Σ_c t_c G_c`` with terms t (one a predictor) and
``G_c = x_c F``, the row in those coordinates.
"""

import numpy as np
from scipy import linalg

from .engine.layout import FACT_PREDICTOR, FACT_WEIGHT, frozen

__all__ = ["Survey"]

# Gauss-Hermite rule for the predictor of a row under a Gaussian posterior.
_Z, _MASS = np.polynomial.hermite_e.hermegauss(15)
_MASS = _MASS / _MASS.sum()

SURVEY_FLOPS = 2e8
"""Work for one weighted sum of outer products; decides how many rows eigenvalues are taken on."""


def estimator_terms(model, gradient, facts, eta):
    """Terms of the gradient estimator at predictors `eta` (n, K) of the rows of `facts`."""
    K, n = model.n_predictors, len(eta)
    rows, terms = np.arange(n), np.empty((n, K))
    model.derivative(facts, rows, 0, n, np.ascontiguousarray(eta), terms)
    if gradient.uses_constant:
        terms -= facts[:, FACT_PREDICTOR + K :]
    if gradient.uses_linear:
        centre = np.ascontiguousarray(facts[:, FACT_PREDICTOR : FACT_PREDICTOR + K])
        u = eta - centre
        model.curvature(facts, rows, 0, n, centre, u)
        terms -= u
    return terms


class Survey:
    """Measurements of a posterior around its centre.

    Parameters
    ----------
    target : Target
    facts : array of shape (n_rows, 2 + 2 K)
        From `Target.terms` at the centre.
    centre : array of shape (n_parameters,)
    F : array
        Coordinates, as in `skbayes_sg.preconditioning`.
    """

    def __init__(self, target, facts, centre, F):
        self.target, self.facts, self.centre = target, facts, centre
        self.F = F if len(F) > 1 else np.diag(F[0])
        self.model, self.K = target.model, target.model.n_predictors
        D = target.n_parameters
        self.n_survey = int(np.clip(SURVEY_FLOPS / (D * D), 2000, 20_000) / self.K)

    def rows_in_phi(self, rows):
        """G of shape (len(rows), K, n_parameters)."""
        A = self.target.design(rows)
        parts = [
            (A if c < self.model.n_linear else np.ones((len(A), 1))) @ self.F[where]
            for c, where in enumerate(self.target.positions())
        ]
        return np.stack(parts, axis=1)

    def predictors(self, rows, thetas):
        """η of the rows at each θ, of shape (len(thetas), len(rows), K)."""
        A = self.target.design(rows)
        parts = [
            thetas[:, where] @ A.T if c < self.model.n_linear
            else np.broadcast_to(thetas[:, where], (len(thetas), len(A)))
            for c, where in enumerate(self.target.positions())
        ]  # fmt: skip
        return np.stack(parts, axis=2)

    def thetas(self, phis):
        """θ at positions φ."""
        return self.centre + phis @ self.F.T

    def second_moments(self, gradient, rows, phis=None, size=None):
        """E t tᵀ of the estimator's terms, (n, K, K), weights of the rows included.

        Over the positions `phis`; or, for a single predictor, over u ~ N(0, size²) by quadrature.
        """
        facts = frozen(self.facts[rows])
        if phis is None:
            centre = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + self.K]
            etas, mass = centre + size[:, None] * _Z[:, None, None], _MASS
        else:
            etas, mass = self.predictors(rows, self.thetas(phis)), np.full(len(phis), 1 / len(phis))
        total = np.zeros((len(facts), self.K, self.K))
        for m, eta in zip(mass, etas, strict=True):
            t = estimator_terms(self.model, gradient, facts, eta)
            total += m * t[:, :, None] * t[:, None, :]
        return facts[:, FACT_WEIGHT, None, None] ** 2 * total

    def row_noise(self, gradient, rows, phis=None):
        """Root mean square of ‖Σ_c t_c G_c‖: what the chance of a row should be proportional to."""
        G = self.rows_in_phi(rows)
        gram = np.matmul(G, G.transpose(0, 2, 1))
        size = np.sqrt(gram[:, 0, 0]) if phis is None else None
        S = self.second_moments(gradient, rows, phis, size)
        return np.sqrt(np.maximum((S * gram).sum(axis=(1, 2)), 0.0))

    def leverage(self, rows):
        """Root of the sum of squares of G."""
        G = self.rows_in_phi(rows)
        return np.sqrt(np.einsum("ncd,ncd->n", G, G))

    def of_all_rows(self, measure, *args):
        """`row_noise` or `leverage` of every row."""
        width = self.K * self.target.n_parameters
        return np.concatenate(self.target.over_chunks(lambda rows: measure(*args, rows), width))

    def sample_rows(self, p, rng):
        """Rows drawn with chances p for a survey, and what each stands for; all if they are few."""
        n, N = self.n_survey, self.target.n_rows
        if N <= n:
            return np.arange(N), np.ones(N)
        rows = np.sort(rng.choice(N, n, p=p))
        return rows, 1.0 / (n * p[rows])

    def noise_eigenvalue(self, gradient, p, sampled, phis=None):
        """Largest eigenvalue of the covariance of the gradient estimated from one row of chance p.

        ``Σ_i p_i (G_iᵀt_i / p_i)(·)ᵀ``, averaged over the positions; n rows divide it by n.
        """
        rows, stands_for = sampled
        G = self.rows_in_phi(rows)
        size = np.sqrt((G**2).sum(axis=(1, 2))) if phis is None else None
        S = self.second_moments(gradient, rows, phis, size)
        scale = stands_for / p[rows]
        return largest_eigenvalue(G, scale[:, None, None] * S)

    def curvatures(self, sampled, phis):
        """Largest eigenvalue of ``Fᵀ[∇²U(θ) - ∇²U(centre)]F`` at each position φ."""
        rows, stands_for = sampled
        part = self.target.take(rows, self.target.weight[rows] * stands_for)
        G, index = self.rows_in_phi(rows), np.arange(len(rows))
        centre = part.weights_at(self.centre, index)
        prior = self.target.prior_curvature(self.centre)
        result = []
        for theta in self.thetas(phis):
            change = self.target.prior_curvature(theta) - prior
            extra = self.F.T @ (change[:, None] * self.F) if change.any() else 0.0
            W = part.weights_at(theta, index) - centre
            result.append(largest_eigenvalue(G, W, extra))
        return np.array(result)


def largest_eigenvalue(G, W, extra=0.0):
    """Largest eigenvalue of ``Σ_i G_iᵀ W_i G_i + extra`` for (n, K, D) and (n, K, K) arrays."""
    D = G.shape[2]
    flat = G.reshape(-1, D)
    M = flat.T @ np.matmul(W, G).reshape(-1, D) + extra
    return float(linalg.eigvalsh(0.5 * (M + M.T), subset_by_index=[D - 1, D - 1])[0])
