"""Moves of robust regression in which effects do not follow the coefficients.

In collapsed coordinates effects follow the coefficients as the curvatures of the rows at the
reference say. Outliers, whose likelihood is flat and whose curvature misleads, say it badly, and
trajectories are short. But Student's t noise is normal with a precision ω_i/σ² of each row, and so

1. ω_i given the residuals z_i = (y_i - η_i)/σ is gamma with shape w_i (ν + 1)/2, w_i the weight of
   the row, and rate (ν + z_i²)/2; given ω, the coefficients are normal, with precisions of their
   own where their priors are mixtures of normal laws (`skbayes_sg.priors.scale_mixtures`), and so
   are the effects of each factor given all else;
2. log σ and log ν make Metropolis steps of random size given the predictors, without ω.
"""

from dataclasses import dataclass

import numpy as np

from ..kernels.layout import FACT_Y
from ..models import Robust
from ..priors.columns import LOC, SCALE
from ..priors.scale_mixtures import ScaleMixtures, are_mixtures, t_precisions
from ..priors.table import prior_value
from .covariance import Covariance

__all__ = ["RobustMoves", "robust_moves_of"]

WALKS = 3  # Metropolis steps of each extra in a move
SHORTEST, LONGEST = 0.03, 1.0  # range of the sd of these steps, which is drawn anew for each
LEAST = 1e-100  # least ω, so that no row has the precision zero


@dataclass
class RobustMoves:
    """The two moves of the module, for the rows of a problem.

    Parameters
    ----------
    rows : skbayes_sg.groups.collapsed.CollapsedRows
    mixtures : ScaleMixtures or None
        The priors of the coefficients. The first move is not made without it.
    """

    rows: object
    mixtures: ScaleMixtures | None

    def move(self, theta, u, psi, rng):
        """Change θ and the effects; ψ stays."""
        eta = self.rows.predictors(theta, u)
        if self.mixtures is not None:
            self.move_means(theta, u, psi, eta, rng)
        self.move_extras(theta, eta, rng)

    def move_means(self, theta, u, psi, eta, rng):
        """Draw ω given the residuals; β, and then the effects of each factor, given ω."""
        n, rows = self.rows.problem.n_coefficients, self.rows
        precision, nu = np.exp(-2.0 * theta[n]), np.exp(theta[n + 1])
        y = rows.target.data.facts[:, FACT_Y]
        misfit = y - eta[:, 0]
        omega = t_precisions(precision * misfit**2, nu, rng, rows.target.weight)
        w = precision * np.maximum(omega, LEAST)
        try:
            misfit -= self._moved_coefficients(theta[:n], w, misfit, rng)
            for k in range(len(u)):
                misfit -= self._moved_effects(k, u[k], psi[k], w, misfit, rng)
        except np.linalg.LinAlgError:  # out of the range of floats: the other means stay
            pass
        eta[:, 0] = y - misfit

    def _moved_coefficients(self, beta, w, misfit, rng):
        """β ← a draw given the precisions w of the rows; return by how much predictors rise."""
        A, prior = self.rows.problem.design, self.rows.target.prior[: len(beta)]
        off, scale = beta - prior[:, LOC], prior[:, SCALE]
        own = self.mixtures.precisions(off / scale, rng) / scale**2
        weighted = w[:, None] * A
        H, drift = A.T @ weighted + np.diag(own), weighted.T @ misfit - own * off
        change = _drawn(H[None], drift[None], rng)[0]
        beta += change
        return A @ change

    def _moved_effects(self, k, u, psi, w, misfit, rng):
        """u ← a draw of the effects of factor k given w; return by how much predictors rise."""
        rows, omega = self.rows, Covariance(psi, u.shape[1]).omega
        H = np.stack([rows.by_level(w * z, k) for z in (1.0, *rows.columns[k].T)], axis=2) + omega
        change = _drawn(H, rows.by_level(w * misfit, k) - u @ omega, rng)
        u += change
        return rows.effects_of(k, change)

    def move_extras(self, theta, eta, rng):
        """Metropolis steps of each extra given the predictors."""
        n = self.rows.problem.n_coefficients
        extras, before = np.arange(n, len(theta)), self._potential(theta, eta)
        for j in np.repeat(extras, WALKS):
            size = SHORTEST * (LONGEST / SHORTEST) ** rng.random()
            old = theta[j]
            theta[j] = old + size * rng.standard_normal()
            eta[:, 1 + j - n] = theta[j]
            after = self._potential(theta, eta)
            if np.log(rng.random()) < before - after:
                before = after
            else:
                theta[j] = eta[:, 1 + j - n] = old

    def _potential(self, theta, eta):
        """-log p of the rows and of θ, up to a constant."""
        target = self.rows.target
        numbers = self.rows.sorted[0].numbers
        loss = target.model.loss(target.data.facts, numbers, 0, len(eta), eta)
        return loss + prior_value(target.prior, theta)


def _drawn(H, drift, rng):
    """Draw from N(H⁻¹ drift, H⁻¹) for each of many small matrices H."""
    normals = rng.standard_normal(drift.shape)
    if drift.shape[1] == 1:  # without slopes, in a fifth of the time
        change = drift / H[..., 0] + normals / np.sqrt(H[..., 0])
    else:
        roots = np.linalg.cholesky(H)
        white = np.linalg.solve(roots, drift[..., None]) + normals[..., None]
        change = np.linalg.solve(roots.transpose(0, 2, 1), white)[..., 0]
    if not np.isfinite(change).all():
        raise np.linalg.LinAlgError("A draw is not finite.")
    return change


def robust_moves_of(rows):
    """The `RobustMoves` for the rows of robust regression; None for other models."""
    target, n = rows.target, rows.problem.n_coefficients
    if not isinstance(target.model, Robust):
        return None
    prior = target.prior[:n]
    return RobustMoves(rows, ScaleMixtures(prior) if are_mixtures(prior).all() else None)
