r"""Coefficients under a horseshoe where the likelihood is nearly that of normal rows.

About a point x̄, the likelihood times the priors of the parameters ψ that are no coefficients is
approximated by exp(-Ũ), where Ũ is quadratic in x = (β, ψ). Under exp(-Ũ) rows are normal, so that

1. the scales make a trajectory with the coefficients integrated out (`collapsed_scales`),
2. the coefficients are drawn given the scales (`normal_rows`), and
3. ψ is drawn given the coefficients.

These steps together are reversible under the posterior with Ũ in the place of U. So as one proposal
of scales, coefficients and ψ they are accepted with the probability

    min(1, exp(U(x) - Ũ(x) - U(x') + Ũ(x'))),

which leaves the exact posterior invariant whatever Ũ is. About as often as proposals are rejected,
a trajectory of all parameters given the scales comes before them (`horseshoe_hmc`).
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..importance.lockstep import chance_of
from ..kernels.layout import FACT_Y
from ..models import Logistic
from .collapsed_scales import CollapsedScales, seconds_of_update
from .horseshoe_hmc import CoefficientsGivenScales
from .normal_rows import NormalRows, lower_root, marginal_of, solved

__all__ = ["ApproximatedCoefficients", "NormalApproximation", "can_approximate"]

MOST_EVERY = 16  # most sweeps from one trajectory given the scales to the next
USUAL_EVERY = 4  # these sweeps, for the predicted seconds
LOOKS = 0.125, 0.25, 0.5, 0.75  # shares of the warm-up after which x̄ is chosen anew
ROUNDING = 1e-12  # eigenvalues below this share of the largest are rounding errors
# Events of a logistic model, or rows, for each column from which this is preferred to latent
# variables; and rows of other models in any case. Where single rows matter, Student's t likelihoods
# are far from normal, and no proposal may be accepted.
EVENTS, ROWS, FEWEST_ROWS = 2.0, 20.0, 200.0
LEAST_ACCEPTED = 0.1  # share of accepted proposals below which latent variables are preferred


def can_approximate(target, n):
    """Whether n coefficients are few beside the rows or, in a logistic model, the rarer events."""
    rows = target.total_weight
    if isinstance(target.model, Logistic):
        events = target.weight @ target.data.facts[:, FACT_Y]
        return min(events, rows - events) >= EVENTS * n or rows >= ROWS * n
    return rows >= max(ROWS * n, FEWEST_ROWS)


@dataclass
class NormalApproximation:
    """Ũ(x) = ½‖z - A β‖² + ½‖Lᵀ(ψ - c + B β)‖² up to a constant, for x = (β, ψ).

    Parameters
    ----------
    A, z : ndarray of shape (r, n), (r,)
    L : ndarray of shape (q, q)
        Lower triangular.
    c, B : ndarray of shape (q,), (q, n)
    """

    A: np.ndarray
    z: np.ndarray
    L: np.ndarray
    c: np.ndarray
    B: np.ndarray

    @classmethod
    def expanded(cls, x, g, H, n):
        """That with the gradient g and the Hessian H at x, with n coefficients."""
        L, B = np.zeros((0, 0)), np.zeros((0, n))
        own, shift, step = H[:n, :n], -g[:n], np.zeros(0)
        if len(x) > n:
            L = lower_root(H[n:, n:])
            B, step = (linalg.cho_solve((L, True), part) for part in (H[n:, :n], -g[n:]))
            own, shift = own - H[:n, n:] @ B, shift - H[:n, n:] @ step
        values, axes = linalg.eigh(own)
        kept = values > ROUNDING * max(values[-1], 0.0)
        root, axes = np.sqrt(values[kept]), axes[:, kept]
        A = root[:, None] * axes.T
        return cls(A, axes.T @ shift / root + A @ x[:n], L, x[n:] + step + B @ x[:n], B)

    def values(self, x):
        """Ũ at the rows of x."""
        beta, psi = np.split(x, [self.A.shape[1]], axis=1)
        rows = self.z - beta @ self.A.T
        others = (psi - self.c + beta @ self.B.T) @ self.L
        return 0.5 * (np.square(rows).sum(axis=1) + np.square(others).sum(axis=1))

    def others(self, beta, rng):
        """Draw ψ given β of all chains: (n_chains, q)."""
        z = rng.standard_normal((len(beta), len(self.c)))
        noise = solved(self.L, z.T, transposed=True).T if len(self.c) else z
        return self.c - beta @ self.B.T + noise


class ApproximatedCoefficients(CoefficientsGivenScales):
    """Parameters of any model; see the module."""

    thin, warmup = 1, 400

    def __init__(self, frame, scales, n_chains, n_warmup, rng):
        super().__init__(frame, scales, n_chains, n_warmup, rng)
        self.scales = CollapsedScales(self.n, None, 0.0, n_warmup, rng)
        self.looks = [int(share * n_warmup) for share in LOOKS]
        self.n_sweeps, self.every, self.seen, self.chances = 0, 1, [], []
        self._expand(self.x[0])
        one = n_chains * seconds_of_update(self.n, self.n) + self.of_rows
        self.seconds = one + (self.seconds + self.of_rows) / USUAL_EVERY

    def update(self, local, warming_up):
        """Make a trajectory given the scales in some sweeps; then propose scales and all else."""
        if self.n_sweeps % self.every == 0:
            super().update(local, warming_up)
        self.n_sweeps += 1
        self._propose(local, warming_up)
        if warming_up:
            self._learn()

    def _propose(self, local, warming_up):
        """Propose scales, coefficients and all other parameters together, for all chains."""
        before, known = (local.log_lambda, local.log_tau), np.zeros(len(self.x))
        self.scales.update(self.rows, self.curvature(), local, known, warming_up)
        beta = self.rows.draws(local.precision, np.ones(len(self.x)), self.rng)
        new = np.column_stack([beta, self.normal.others(beta, self.rng)])
        value = self._value(new)
        gained = self.value - value
        chance = chance_of(gained + self.normal.values(new) - self.normal.values(self.x))
        moved = self.rng.random(len(chance)) < chance
        self._move(new, value, moved)
        local.log_lambda = np.where(moved[:, None], local.log_lambda, before[0])
        local.log_tau = np.where(moved, local.log_tau, before[1])
        self.chances.append(chance.mean())

    def _learn(self):
        """Expand the likelihood anew after shares of the warm-up; see how often that is right."""
        self.seen.append(self.x)
        if self.n_sweeps in self.looks:
            rejected = max(1.0 - np.mean(self.chances), 1.0 / MOST_EVERY)
            self.every = round(1.0 / rejected)
            mean = np.concatenate(self.seen[len(self.seen) // 2 :]).mean(axis=0)
            if np.isfinite(self._value(mean[None])[0]):
                self._expand(mean)
            self.seen, self.chances = [], []

    def _expand(self, x):
        """Approximate the likelihood about x."""
        self.normal = NormalApproximation.expanded(
            x, self._slope(x[None])[0], self._hessian(x), self.n
        )
        self.rows = marginal_of([NormalRows(self.normal.A, self.normal.z)], None)

    @property
    def suits(self):
        """Whether enough proposals were accepted, if there were any, since Ũ was last chosen."""
        return not self.chances or np.mean(self.chances) >= LEAST_ACCEPTED

    @property
    def told(self):
        """Diagnostics: see `acceptance_of`, and the share of accepted proposals."""
        return super().told | {"accepted_proposals": float(np.mean(self.chances))}
