r"""Coefficients and one scale in turn, where trajectories of both together take short steps.

Where columns separate the classes, large coefficients lie behind walls, which in units of τ become
steeper as τ grows. The step of a trajectory that moves s = log τ must then suit the largest scale.
With s held fixed each chain has a step of its own, ε τ^-`STEEPENING` up to a factor. In turn:

* s and the coefficients move together, θ_j → loc_j + e^a (θ_j - loc_j) and s → s + a, with normal a
  of two sizes, each with the intercepts as they are and also times e^a. These are Metropolis steps
  whose ratio has the factor e^{ma}, for the m parameters that move. In the limit of infinite scales
  the posterior hardly changes along them.
* s moves alone, given the coefficients, by Metropolis steps that need no row.
* θ moves at fixed s, by Hamiltonian Monte Carlo whose covariance of momenta is the Hessian at the
  nearest place of the path of modes.

Each move leaves the exact posterior invariant, and so does their succession.
"""

import numpy as np

from ..geometry import preconditioning
from ..importance.lockstep import JITTER, chosen, drawn_length
from .collapse import REACH

__all__ = ["Alternating"]

STEEPENING = 0.7  # the step at fixed s falls with this power of τ
SIZES = (3.0, 1.5)  # sds of a, in widths of the Laplace marginal of s
ALONE = (7.2, 2.4)  # sds of steps of s alone, in units of (2 n)^-½ for n coefficients
FEWEST, MOST = 2, 16  # fewest and most leapfrog steps of a trajectory


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
        model = frame.target.model
        n_moved = (n, frame.target.n_parameters - model.n_extra)
        self.moved = [np.arange(frame.target.n_parameters) < m for m in n_moved]
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

        Return the acceptance probabilities. They are zero beyond `REACH`, where θᵀθ at other scales
        would cancel all digits of U.
        """
        possible = np.isfinite(log_ratio) & (np.abs(x[:, -1] - self.path.log_scales[0]) < REACH)
        change = np.where(possible, log_ratio, -np.inf)
        chance = np.exp(np.minimum(change, 0.0))
        moved = self.rng.random(len(x)) < chance
        self.phi, self.value = chosen(moved, x, self.phi), np.where(moved, value, self.value)
        return chance

    def _scaled(self, x, a, moved):
        """x after a step a: the parameters that move, less their loc, times e^a; and s + a."""
        frame, scales = self.potential.base.frame, self.path.scales
        theta = frame.theta(x[:, :-1])
        about = np.zeros(theta.shape[1])
        about[: len(scales.loc)] = scales.loc
        theta += moved * np.expm1(a)[:, None] * (theta - about)
        phi = preconditioning.solve(frame.F, theta - frame.centre.theta)
        return np.concatenate([phi, x[:, -1:] + a[:, None]], axis=1)

    def move_together(self):
        """Make the Metropolis steps that move s and the coefficients together."""
        for moved in self.moved:
            for size in SIZES:
                a = size * self.width * self.rng.standard_normal(len(self.phi))
                with np.errstate(all="ignore"):
                    x = self._scaled(self.phi, a, moved)
                    value = self._values(x)
                    self._accepted(x, value, self.value - value + moved.sum() * a)

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
        length = drawn_length(self.rng)
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
            return self._accepted(x, value, before - value - 0.5 * np.square(p).sum(axis=1))


def _products(roots, own, rows, transposed=False):
    """L v (Lᵀ v if `transposed`) for each row v, with the root L whose number is in `own`."""
    found = np.empty_like(rows)
    for k in np.unique(own):
        here = own == k
        found[here] = rows[here] @ (roots[k] if transposed else roots[k].T)
    return found
