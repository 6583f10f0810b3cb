r"""Coefficients and one scale in turn, where trajectories of both together take short steps.

Where columns separate the classes, large coefficients lie behind walls, which in units of τ become
steeper as τ grows. The step of a trajectory that moves s = log τ must then suit the largest scale.
With s held fixed each chain has a step of its own, ε τ^-`STEEPENING` up to a factor. In turn:

* s and the coefficients move together, θ_j → loc_j + e^a (θ_j - loc_j) and s → s + a, with normal a
  of two sizes, while the intercepts are multiplied by e^{wa}, with w uniform in (0, 1). Of several
  intercepts these are the deviations from their mean, of which the classes of softmax say nothing.
  These are Metropolis steps whose ratio has the factor e^{(n + wm)a}, for n coefficients and m
  directions of intercepts. Where scales are large the posterior hardly changes along them with
  w = 0, and where the prior of the intercepts does not hold them back, with w = 1.
* s moves alone, given the coefficients, by Metropolis steps that need no row.
* θ moves at fixed s, by Hamiltonian Monte Carlo whose covariance of momenta is the Hessian at the
  nearest place of the path of modes.

Each move leaves the exact posterior invariant, and so does their succession.
"""

import numpy as np

from ..geometry import preconditioning
from ..importance.lockstep import JITTER, chance_of, chosen, drawn_length
from .collapse import REACH

__all__ = ["Alternating"]

STEEPENING = 0.5  # the step at fixed s falls with this power of τ
SIZES = (3.0, 1.5)  # sds of a, in widths of the Laplace marginal of s
TOGETHER = 4  # steps of each size, in a move of s and the coefficients
LONGER = 1.6  # length of trajectories at fixed s, in those of trajectories of all parameters
ALONE = (7.2, 2.4)  # sds of steps of s alone, in units of (2 n)^-½ for n coefficients
FEWEST, MOST = 2, 32  # fewest and most leapfrog steps of a trajectory


class Alternating:
    """Positions x = (φ, s) of all chains, as `skbayes_sg.importance.lockstep` moves them.

    Parameters
    ----------
    potential : ScaledPotential
        Exact in all rows.
    path : skbayes_sg.shrinkage.path.ModePath
    width : float
        Width of the Laplace marginal of s.
    x : array of shape (n_chains, n_parameters + 1)
        Where the chains begin.
    rng : numpy.random.Generator
    """

    work = 0.0  # so low that `lockstep` never goes on with fewer of these chains

    def __init__(self, potential, path, width, x, rng):
        self.potential, self.path, self.rng = potential, path, rng
        self.phi, self.n_gradients, self.width = x, 0, width
        frame, n = potential.base.frame, len(path.scales.group)
        self.intercepts = slice(n, frame.target.n_parameters - frame.target.model.n_extra)
        n_intercepts = self.intercepts.stop - n
        self.n_moved = n, n_intercepts - (n_intercepts > 1)
        self.value = self._values(x)

    def _values(self, x):
        """U(θ, s) at rows x, without warnings of overflow."""
        with np.errstate(all="ignore"):
            return self.potential.values(x)

    def distances(self):
        """log |x|² of each chain."""
        return np.log(np.square(self.phi).sum(axis=1))

    def _accepted(self, x, value, log_ratio):
        """Move the chains that pass the Metropolis test to x, with potentials `value`.

        Return which have moved, and the acceptance probabilities. These are zero beyond `REACH`,
        where θᵀθ at other scales would cancel all digits of U.
        """
        possible = np.abs(x[:, -1] - self.path.log_scales[0]) < REACH
        chance = chance_of(np.where(possible, log_ratio, -np.inf))
        moved = self.rng.random(len(x)) < chance
        self.phi, self.value = chosen(moved, x, self.phi), np.where(moved, value, self.value)
        return moved, chance

    def _rays(self):
        """Of each chain θ_j - loc_j of the coefficients, and the intercepts less their mean, in φ.

        A single intercept is its own ray. The result has the shape (2, n_chains, n_parameters).
        """
        frame, scales, own = self.potential.base.frame, self.path.scales, self.intercepts
        theta = frame.theta(self.phi[:, :-1])
        rays = np.zeros((2, *theta.shape))
        rays[0, :, : own.start] = theta[:, : own.start] - scales.loc
        rays[1, :, own] = theta[:, own]
        if own.stop - own.start > 1:
            rays[1, :, own] -= theta[:, own].mean(axis=1, keepdims=True)
        flat = preconditioning.solve(frame.F, rays.reshape(-1, theta.shape[1]))
        return flat.reshape(rays.shape)

    def move_together(self):
        """Make the Metropolis steps that move s, the coefficients and the intercepts together."""
        begun, rays = self.phi, self._rays()
        values = self.potential.base.along_rays(begun[:, :-1], rays)
        log_factors = np.zeros((2, len(begun)))
        for size in TOGETHER * SIZES:
            a = size * self.width * self.rng.standard_normal(len(begun))
            steps = np.array([a, self.rng.random() * a])
            with np.errstate(all="ignore"):
                x, c = self._scaled(begun, rays, log_factors + steps)
                value = values(c) + self.potential.of_scales(x)
                log_ratio = self.value - value + self.n_moved @ steps
                moved, _ = self._accepted(x, value, log_ratio)
            log_factors += moved * steps

    @staticmethod
    def _scaled(begun, rays, log_factors):
        """x after s and the rays have moved from where they began; and the multiples of the rays.

        `log_factors`, (2, n_chains), are the logarithms of the factors of the rays.
        """
        c = np.expm1(log_factors)[:, :, None]
        phi = begun[:, :-1] + (c * rays).sum(axis=0)
        return np.concatenate([phi, (begun[:, -1] + log_factors[0])[:, None]], axis=1), c

    def move_alone(self):
        """Make the Metropolis steps that move s given the coefficients."""
        for size in ALONE:
            x, n = self.phi.copy(), len(self.path.scales.group)
            x[:, -1] += size / np.sqrt(2.0 * n) * self.rng.standard_normal(len(x))
            with np.errstate(all="ignore"):
                change = self.potential.of_scales(x) - self.potential.of_scales(self.phi)
                self._accepted(x, self.value + change, -change)

    def trajectory(self, epsilon):
        """Move all chains once in each way; return the acceptance probabilities of the last."""
        self.move_together()
        self.move_alone()
        return self.move_coefficients(epsilon)

    def move_coefficients(self, epsilon):
        """Move φ by a trajectory with s fixed; return the acceptance probabilities."""
        x, s, n = self.phi.copy(), self.phi[:, -1], len(self.phi)
        roots, own = self.path.roots_near(s)
        length = LONGER * drawn_length(self.rng)
        n_steps = int(np.clip(round(length / np.median(epsilon)), FEWEST, MOST))
        jitter = 1.0 + JITTER * (2.0 * self.rng.random(n) - 1.0)
        with np.errstate(over="ignore"):
            step = epsilon * np.exp(-STEEPENING * (s - self.path.log_scales[0]))
        step = np.minimum(step * jitter, length / n_steps)[:, None]

        def slope():
            self.n_gradients += n
            return _products(roots, own, self.potential.gradients(x)[:, :-1], transposed=True)

        p = self.rng.standard_normal((n, x.shape[1] - 1))
        before = self.value + 0.5 * np.square(p).sum(axis=1)
        with np.errstate(all="ignore"):
            p -= 0.5 * step * slope()
            for k in range(n_steps):
                x[:, :-1] += step * _products(roots, own, p)
                p -= (1.0 if k < n_steps - 1 else 0.5) * step * slope()
            value = self._values(x)
            change = before - value - 0.5 * np.square(p).sum(axis=1)
            return self._accepted(x, value, change)[1]


def _products(roots, own, rows, transposed=False):
    """L v (Lᵀ v if `transposed`) for each row v, with the root L whose number is in `own`."""
    found = np.empty_like(rows)
    for k in np.unique(own):
        here = own == k
        found[here] = rows[here] @ (roots[k] if transposed else roots[k].T)
    return found
