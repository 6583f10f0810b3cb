r"""Coefficients under a horseshoe whose rows are normal given latent variables ω.

* **Logistic regression** whose weights are whole numbers: ω_i ~ PG(w_i, η_i), and given ω the row
  says κ_i/ω_i ~ N(η_i, 1/ω_i), κ_i = w_i (y_i - ½) (`skbayes_sg.kernels.polya_gamma`).
* **Robust regression**: ω_i ~ gamma with shape w_i (ν + 1)/2 and rate (ν + z_i²)/2 with
  z_i = (y_i - η_i)/σ, and given ω the row says y_i ~ N(η_i, σ²/ω_i).

So a sweep makes the trajectory of all parameters given the scales of `horseshoe_hmc`, draws ω, and
then does what is done in linear regression: the scales, and σ, make a trajectory with the
coefficients integrated out, and the coefficients are drawn given both.
"""

import numpy as np
from scipy import sparse

from ..kernels.layout import FACT_Y
from ..kernels.polya_gamma import polya_gamma
from ..models import Logistic, Robust
from ..priors.scale_mixtures import t_precisions
from .collapsed_scales import CollapsedScales, seconds_of_update
from .horseshoe_hmc import CoefficientsGivenScales
from .normal_rows import NormalRows, intercept_prior, marginal_of

__all__ = ["AugmentedCoefficients", "can_augment"]

MOST_ROWS, MOST_NUMBERS = 50_000, 4e6  # most rows, by their weights, and numbers in X, of a sweep
EVERY = 4  # sweeps from one trajectory given the scales to the next
OF_ROWS = 2.8e-7, 1e-10  # seconds of a sweep for each row, and each number that is multiplied
LEAST = 1e-100  # least ω, so that no row has the precision zero


def can_augment(target):
    """Whether rows are normal given latent variables, and few enough to draw them in each sweep."""
    size = max(target.total_weight, target.n_rows)
    if size > MOST_ROWS or target.n_rows * target.n_features > MOST_NUMBERS:
        return False
    if isinstance(target.model, Robust):
        return True
    whole = np.array_equal(target.weight, np.round(target.weight))
    return isinstance(target.model, Logistic) and whole


class AugmentedCoefficients(CoefficientsGivenScales):
    """Parameters of logistic or robust regression; see the module."""

    thin, warmup, suits = 1, 400, True

    def __init__(self, frame, scales, n_chains, n_warmup, rng):
        super().__init__(frame, scales, n_chains, n_warmup, rng)
        target = self.target = frame.target
        A = target.design(slice(None))
        A = (A.toarray() if sparse.issparse(A) else A)[:, : self.n] * self.unit
        self.means = A.mean(axis=0) if target.intercept else np.zeros(self.n)
        self.A = A - self.means
        self.is_robust = isinstance(target.model, Robust)
        self.y, self.weight = target.data.facts[:, FACT_Y], target.weight
        n_rows = target.total_weight - bool(target.intercept)
        self.power, noise = (n_rows, target.prior[-2]) if self.is_robust else (None, None)
        self.scales = CollapsedScales(self.n, noise, n_rows, n_warmup, rng)
        self.n_sweeps = 0
        n, p = self.A.shape
        rows = OF_ROWS[0] * max(n, target.total_weight) + OF_ROWS[1] * n * p * min(n, p)
        self.seconds = self.seconds / EVERY + n_chains * (rows + seconds_of_update(n, p))

    def update(self, local, warming_up):
        """Make a trajectory given the scales in some sweeps; then go on as if rows were normal."""
        if self.n_sweeps % EVERY == 0:
            super().update(local, warming_up)
        self.n_sweeps += 1
        theta = self._theta(self.x)
        log_sigma = theta[:, -2].copy() if self.is_robust else np.zeros(len(theta))
        rows = self._rows(theta)
        self.scales.update(rows, self.curvature(), local, log_sigma, warming_up)
        variance = np.exp(2.0 * log_sigma)
        beta = rows.draws(local.precision, variance, self.rng)
        theta[:, : self.n] = beta * self.unit
        intercepts = rows.intercepts(beta, variance, self.rng)
        theta[:, self.n : self.n + intercepts.shape[1]] = intercepts
        if self.is_robust:
            theta[:, -2] = log_sigma
        self._place(theta)

    def _rows(self, theta):
        """The rows of all chains given ω, which is drawn here."""
        beta = theta[:, : self.n] / self.unit
        eta, options = beta @ self.A.T, {}
        if self.target.intercept:
            eta += (beta @ self.means + theta[:, self.n])[:, None]
            options = {"means": self.means, "prior": intercept_prior(self.target, self.n)}
        latent, sets = self._precisions if self.is_robust else self._tilts, []
        for own, z in zip(theta, eta, strict=True):
            omega, seen = latent(own, z)
            root = np.sqrt(np.maximum(omega, LEAST))
            one = root if self.target.intercept else None
            sets.append(NormalRows(root[:, None] * self.A, root * seen, one, **options))
        return marginal_of(sets, self.power)

    def _tilts(self, theta, eta):
        """ω of logistic rows, and what they say of η."""
        del theta
        omega = np.empty(len(eta))
        polya_gamma(self.weight.astype(np.int64), eta, self.rng, omega)
        omega = np.maximum(omega, LEAST)
        return omega, self.weight * (self.y - 0.5) / omega

    def _precisions(self, theta, eta):
        """ω of the rows of robust regression, and what they say of η."""
        sigma, nu = np.exp(theta[-2:])
        squares = np.square((self.y - eta) / sigma)
        return t_precisions(squares, nu, self.rng, self.weight), self.y
