r"""A centre for robust regression whose noise collapses at the mode, as with few rows a column.

Student's t noise of ν degrees of freedom, with p coefficients and n rows, has an unbounded density
where p rows are fitted exactly and σ goes to zero, for all ν < p/(n - p). With four rows for each
column that is ν < 1/3, a search for the mode ends there, and hardly any mass is there: what counts
is the law of σ and ν with the coefficients integrated out. Given σ and ν,

    log p(σ, ν | y) ≈ -U(β̂, σ, ν) - ½ log |H|,     H = Aᵀ Ω A / σ² + prior curvature,

with β̂ by iterated weighted least squares, Ω = w (ν + 1)/(ν + z²), z = (y - Aβ̂)/σ, and σ from

    σ² = Σ_i Ω_i (y - Aβ̂)_i² / (n - tr(H⁻¹ AᵀΩA/σ²)),

which counts the coefficients that the rows have determined. The centre is the best such point.
"""

import numpy as np
from scipy import linalg

from ..kernels.layout import FACT_WEIGHT, FACT_Y
from .robust_modes import design_of, least_noise, robust_starts

__all__ = ["has_collapsed", "is_near", "may_collapse", "weighted_centre"]

ROWS_EACH = 8  # rows for each parameter up to which a search may end where noise collapses
NEAR = 3.0  # collapse is near if ν is below so many times p/(n - p) ...
SMALL = 0.3  # ... and has begun if σ is below this share of that of the centre
FIRST_NU, OTHER_NU = (0.3, 4.0), (1.0, 2.0, 10.0, 30.0)  # degrees of freedom that are tried
STEPS = 20  # of weighted least squares
ALL_STARTS = 100  # coefficients up to which fits of parts of the rows are tried, too


def may_collapse(target):
    """Whether the noise may collapse: robust regression, with more rows than parameters but few."""
    D, total = target.n_parameters, target.total_weight
    return target.model.heavy_tailed and D < min(total, target.n_rows) <= ROWS_EACH * D


def is_near(target, theta):
    """Whether ν is so small that the density is, or soon will be, unbounded as σ goes to zero."""
    p = target.n_parameters - 2
    return bool(np.exp(theta[-1]) < NEAR * p / (target.n_rows - p))


def has_collapsed(theta, centre):
    """Whether the noise at θ is that of rows which are fitted exactly, compared with a centre."""
    return bool(theta[-2] < centre[-2] + np.log(SMALL))


def weighted_centre(target):
    """Return the θ of largest mass that is found: see the module."""
    starts = list(robust_starts(target)) if target.n_parameters <= ALL_STARTS else [None]
    fit = _Fit(target)
    found = [fit.converged(start, nu) for start in starts for nu in FIRST_NU]
    best = max(found, key=lambda pair: pair[0])
    others = [fit.converged(best[1], nu) for nu in OTHER_NU]
    return max([best, *others], key=lambda pair: pair[0])[1]


class _Fit:
    """Weighted least squares of the rows of a target, under its prior."""

    def __init__(self, target):
        self.target, self.A = target, design_of(target)
        self.y, self.weight = target.data.facts[:, FACT_Y], target.data.facts[:, FACT_WEIGHT]
        self.least = least_noise(self.y)

    def converged(self, theta, nu):
        """The log mass and the θ after `STEPS` steps with ν degrees of freedom.

        They begin at θ, or at least squares if it is None.
        """
        if theta is None:
            theta = np.zeros(self.target.n_parameters)
            theta[-2:] = np.log(max(np.std(self.y), self.least)), np.log(1e6)
            theta = self._step(theta)[1]
        theta = np.append(theta[:-1], np.log(nu))
        for _ in range(STEPS):
            log_mass, theta = self._step(theta)
        return (log_mass if np.isfinite(log_mass) else -np.inf), theta

    def _step(self, theta):
        """Return the log mass at θ up to a constant, and θ after one step of β and σ."""
        D = len(theta) - 2
        sigma, nu, residual = np.exp(theta[-2]), np.exp(theta[-1]), self.y - self.A @ theta[:D]
        precision = self.weight * (nu + 1.0) / (nu + np.square(residual / sigma)) / sigma**2
        of_rows = (self.A.T * precision) @ self.A
        root = linalg.cho_factor(of_rows + np.diag(self.target.prior_curvature(theta)[:D]))
        slope = self.target.prior_gradient(theta)[:D] - self.A.T @ (precision * residual)
        log_mass = -self.target.value_and_gradient(theta)[0] - np.log(np.diag(root[0])).sum()
        beta = theta[:D] - linalg.cho_solve(root, slope)
        determined = np.trace(linalg.cho_solve(root, of_rows))
        residual = self.y - self.A @ beta
        square = sigma**2 * (precision @ np.square(residual))
        square /= max(self.target.total_weight - determined, 1.0)
        log_sd = max(0.5 * np.log(max(square, np.finfo(float).tiny)), np.log(self.least))
        return log_mass, np.concatenate([beta, [log_sd, theta[-1]]])
