r"""Trajectories of the scales of a horseshoe with the coefficients integrated out.

Given β the global scale τ hardly moves: p coefficients hold it. Where rows are normal, β can be
integrated out (`normal_rows`), and Hamiltonian Monte Carlo moves x = log λ, t = log τ and s = log σ
under their marginal law; with l_j = x_j + t and the slab as data its derivatives are

    ∂ log p/∂ l_j = (1 - v_j/c²) (E β_j²/v_j - 1) - v_j/c²,

and -tanh x_j, -tanh(t - log τ₀) of the half-Cauchy priors. Where the rows know l_j, x_j and t are
opposites of each other, and where they do not, x_j has its prior whatever t is; so trajectories
move x_j + κ_j t, with κ_j = I_j/(I_j + 0.4), where I_j = 2 (E (1 + 1/(h_j v_j))⁻¹)² is the
information of the rows on l_j, and 0.4 that of the prior on x_j.
"""

import numpy as np

from ..importance.lockstep import chance_of
from ..kernels.layout import frozen
from ..kernels.many_draws import prior_gradients, prior_values
from .local_scales import BOUND

__all__ = ["CollapsedScales", "seconds_of_update"]

LENGTH, MOST_STEPS = 1.6, 25  # length of a trajectory in standard deviations; most steps of it
FIRST_STEP = 0.3  # leapfrog step at first, in standard deviations
# Share of trajectories with shorter steps, and how much shorter they are: where rows are nearly
# fitted exactly, other trajectories are rejected.
SHORT = 0.2, 0.2
ACCEPTANCE, GAIN = 0.8, 0.1  # acceptance rate aimed at, and gain of the adaptation of the log step
LOOKS = 0.125, 0.25, 0.5  # shares of the warm-up after which the coordinates are chosen anew
SDS = 1.5, 0.3  # standard deviations at first, of x and t
LEAST = 0.3, 0.02  # least standard deviations, of x and of t and s
PRIOR_INFORMATION = 0.4
# Gradients of an update, and seconds of one with p columns and m rows, or m = p if these are more:
# in any case, for each of m p numbers, and for each of m² p multiplications.
GRADIENTS, SECONDS = 6.5, (7e-5, 1.6e-8, 5e-11)
FARTHEST = 200.0  # largest size of log τ and log σ


class CollapsedScales:
    """The trajectories of all chains, with one step, and coordinates of their own.

    Parameters
    ----------
    p : int
    noise : ndarray of shape (5,) or None
        The prior of σ, a row of a prior table; None if the noise is known.
    n_rows : float
        Rows that the noise is learned from.
    n_warmup : int
        Updates of the warm-up.
    rng : Generator
    """

    def __init__(self, p, noise, n_rows, n_warmup, rng):
        self.p, self.rng = p, rng
        self.noise = None if noise is None else frozen(noise[None])
        self.kappa = np.zeros(p)
        of_noise = [] if noise is None else [1.0 / np.sqrt(2.0 * max(n_rows, 1.0))]
        self.sd = np.array([*np.full(p, SDS[0]), SDS[1], *of_noise])
        self.log_step, self.accepted, self.done = np.log(FIRST_STEP), [], 0
        self.looks = [int(share * n_warmup) for share in LOOKS]
        self.seen, self.shares = [], []

    def update(self, rows, curvature, local, log_sigma, warming_up):
        """Move the scales of `local`, and log σ, by a trajectory given the rows.

        Parameters
        ----------
        rows : FewColumns or FewRows
        curvature : ndarray of shape (n_chains, p)
            Curvature h_j of the rows along β_j.
        local : LocalScales
        log_sigma : ndarray of shape (n_chains,)
        warming_up : bool
            Whether the step and the coordinates are still adapted.
        """
        q = np.column_stack([local.log_lambda, local.log_tau, log_sigma])[:, : len(self.sd)]
        q[:, : self.p] += self.kappa * q[:, self.p, None]
        jitter = 1.0 + 0.2 * (2.0 * self.rng.random() - 1.0)
        is_short = self.rng.random() < SHORT[0]
        h = np.exp(self.log_step) * jitter * (SHORT[1] if is_short else 1.0) * self.sd
        n_steps = int(np.clip(np.ceil(LENGTH / np.exp(self.log_step)), 1, MOST_STEPS))
        momentum = self.rng.standard_normal(q.shape)
        new, (value, gradient) = q, self._law(q, rows, local, log_sigma)
        before, p = value - 0.5 * np.square(momentum).sum(axis=1), momentum
        for _ in range(n_steps):
            p = p + 0.5 * h * gradient
            new = new + h * p
            value, gradient = self._law(new, rows, local, log_sigma)
            p = p + 0.5 * h * gradient
        with np.errstate(invalid="ignore"):
            chance = chance_of(value - 0.5 * np.square(p).sum(axis=1) - before)
        moved = self.rng.random(len(q)) < chance
        self._place(np.where(moved[:, None], new, q), local, log_sigma)
        self._adapt(None if is_short else chance.mean(), curvature, local, log_sigma, warming_up)

    def _place(self, q, local, log_sigma):
        """Write the scales at the positions q."""
        local.log_tau = q[:, self.p].copy()
        local.log_lambda = q[:, : self.p] - self.kappa * local.log_tau[:, None]
        if self.noise is not None:
            log_sigma[:] = q[:, -1]

    def _law(self, q, rows, local, log_sigma):
        """The log density at positions q, and its gradient."""
        p, t = self.p, q[:, self.p]
        x = q[:, :p] - self.kappa * t[:, None]
        s = log_sigma if self.noise is None else q[:, -1]
        outside = (np.abs(x) > BOUND).any(axis=1) | (np.abs(t) > FARTHEST) | (np.abs(s) > FARTHEST)
        x, t = np.clip(x, -BOUND, BOUND), np.clip(t, -FARTHEST, FARTHEST)
        s = np.clip(s, -FARTHEST, FARTHEST)
        log_scale, precision = x + t[:, None], local.precision_at(x, t)
        slab = local.slab**-2 / precision  # v/c²
        value, of_scales, of_noise = rows.marginal(precision, np.exp(2.0 * s))
        z = t - np.log(local.tau_zero)
        value += (x - np.logaddexp(0.0, 2.0 * x) - log_scale - 0.5 * np.log(precision)).sum(axis=1)
        value += z - np.logaddexp(0.0, 2.0 * z)
        own = 2.0 * (1.0 - slab) * of_scales - slab
        g = own - np.tanh(x)
        gradient = [g, own.sum(axis=1) - np.tanh(z) - g @ self.kappa]
        if self.noise is not None:
            lost, slope = _of_prior(self.noise, s)
            value -= lost
            gradient.append(of_noise - slope)
        return np.where(outside, -np.inf, value), np.column_stack(gradient)

    def _adapt(self, chance, curvature, local, log_sigma, warming_up):
        """Adapt the step; after some shares of the warm-up also κ and the standard deviations."""
        if not warming_up:
            self.accepted += [] if chance is None else [chance]
            return
        self.log_step += 0.0 if chance is None else GAIN * (chance - ACCEPTANCE)
        self.done += 1
        scales = [local.log_lambda, local.log_tau, log_sigma]
        self.seen.append(np.column_stack(scales)[:, : len(self.sd)])
        self.shares.append(curvature / (curvature + local.precision))
        if self.done in self.looks:
            late = len(self.seen) // 2
            q, share = np.concatenate(self.seen[late:]), np.concatenate(self.shares[late:])
            information = 2.0 * np.square(share.mean(axis=0))
            self.kappa = information / (information + PRIOR_INFORMATION)
            q[:, : self.p] += self.kappa * q[:, self.p, None]
            least = np.where(np.arange(len(self.sd)) < self.p, *LEAST)
            self.sd = np.maximum(q.std(axis=0), least)
            self.seen, self.shares = [], []


def _of_prior(noise, s):
    """-log p(s) of each chain under the prior of the noise, and its derivatives."""
    at, value, slope = s.reshape(-1, 1).copy(), np.zeros(len(s)), np.zeros((len(s), 1))
    prior_values(noise, at, value)
    prior_gradients(noise, at, slope)
    return value, slope[:, 0]


def seconds_of_update(n, p):
    """Predicted seconds of an update of one chain with n rows and p columns."""
    fewer = min(n, p)
    return GRADIENTS * (SECONDS[0] + (SECONDS[1] + SECONDS[2] * fewer) * fewer * p)
