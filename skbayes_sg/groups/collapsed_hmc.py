"""Chains for any likelihood, any number of factors and slopes, in collapsed coordinates.

A sweep visits each factor k:

1. ζ is computed from u_k, the effects of the other factors given (`collapsed`);
2. Hamiltonian Monte Carlo moves (θ, ψ_k) given ζ, split so that two or four steps make a quarter
   of a period (`split_hmc`);
3. all u_k move at once, by independent proposals, of which each level accepts or rejects its own,

       0.95 N(m_l, 1.05² P_l⁻¹) + 0.05 N(m_l, 2² Ω⁻¹);

   the wide part bounds the weights where the likelihood has tails as wide as the prior.

Effects of nested factors then move against each other (`translations`). In robust regression those
of each factor move against the coefficient that they deviate from (`recentring`), and there are
moves by the precisions of the rows (`robust_moves`).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._base import streams
from .._base.interrupts import without_interrupts
from .adaptation import SHRUNK
from .chains import GroupChain, GroupSampler, parts_of
from .collapsed import CollapsedRows, Reference
from .collapsed_kernels import UNKNOWN, new_place, placed
from .effect_moments import EffectMoments
from .split_hmc import StepSizes, VisitNoise, coordinates_of, drawn_noise, visits
from .start import GroupStart, found_start

__all__ = ["CollapsedHMC", "RowState"]

FEW_STEPS, MORE_STEPS = 2, 4  # steps of a trajectory, as a rule and where more pay
# More steps pay with at most so many levels, or if a number of ψ, such as log τ, has a larger sd.
FEW_LEVELS, WIDE = 10, 0.4
MANY = 100  # numbers in (θ, ψ_k), beyond which variances but no covariances are learnt from draws
AT_ONCE = 1 << 18  # most numbers in the effects of sweeps that are made together


@dataclass
class RowState:
    """Losses of the rows at the state of a chain: Σ w_i ℓ_i, its gradient in θ, w_i ∂ℓ_i/∂η_i."""

    loss: float
    gradient: np.ndarray
    residuals: np.ndarray


@dataclass
class CollapsedHMC(GroupSampler):
    """What all chains share: the reference, and coordinates of (θ, ψ_k) for each factor.

    Parameters
    ----------
    reference : Reference
    start : GroupStart
    coordinates : list of Coordinates
    n_steps : list of int
        Steps of a trajectory in a visit to each factor.
    """

    reference: Reference
    start: GroupStart
    coordinates: list
    n_steps: list

    name = "collapsed_hmc"
    passes = 3.0

    @classmethod
    def of(cls, problem):
        """The setting with which the chains of a problem begin."""
        rows = CollapsedRows(problem)
        start, roots = found_start(rows), []
        for precision, information in zip(start.precisions, start.information, strict=True):
            root = linalg.solve_triangular(
                linalg.cholesky(precision, lower=True), np.eye(len(precision)), lower=True
            ).T
            roots.append(linalg.block_diag(root, np.diag(1.0 / np.sqrt(information))))
        n_steps = [MORE_STEPS if L <= FEW_LEVELS else FEW_STEPS for L in problem.sizes]
        centres = [np.append(start.theta, psi) for psi in start.psi]
        coordinates = list(map(coordinates_of, centres, roots))
        return cls(Reference(rows, start.theta, start.u), start, coordinates, n_steps)

    def new_chain(self, seed, number):
        """Start a chain about one standard deviation away from `start`."""
        rng, start = streams.of_chain(seed, number).noise, self.start
        D, n = len(start.theta), self.reference.rows.problem.n_coefficients
        theta, psi = start.theta.copy(), list(start.psi)
        for k, own in enumerate(self.coordinates):
            move = own.factor @ rng.standard_normal(len(own.factor))
            move[n:] = np.clip(move[n:], -1.0, 1.0)  # these are logarithms
            psi[k] = psi[k] + move[D:]
            theta = start.theta + move[:D]
        n_predictors = self.reference.rows.target.model.n_predictors
        work = [
            new_place(effects.shape, len(own.centre), n_predictors)
            for effects, own in zip(start.u, self.coordinates, strict=True)
        ]
        u = list(start.u)
        for k, at in enumerate(work):
            zeta = rng.standard_normal(u[k].shape)
            placed(self.reference.law_of_factor(k, u), np.concatenate([theta, psi[k]]), zeta, at)
            u[k] = at.u.copy()
        return GroupChain(number, theta, psi, u, rng, work)

    def longest(self, k):
        """The largest log ε: a trajectory of factor k is then a quarter of a period."""
        return math.log(0.5 * math.pi / self.n_steps[k])

    def begin(self, chain):
        """Reset the adapted step sizes of a chain to the largest."""
        chain.log_step = np.array([self.longest(k) for k in range(len(chain.u))])
        chain.average = chain.log_step.copy()

    def sweep(self, chain, adapts):
        """Visit all factors in turn, then make the exact moves of the module."""
        for k in range(len(chain.u)):
            chain.accepted += self._visits(chain, k, chain.sweeps, 1, adapts)[2][0]
        rows = self.reference.rows
        for translation in rows.translations:
            translation.move(chain.u, chain.psi, rows.problem.scales, 0.0, chain.rng)
        for recentring in rows.recentrings:
            recentring.move(chain.theta, chain.u, chain.psi, rows.problem.scales, chain.rng)
        if rows.robust_moves is not None:
            rows.robust_moves.move(chain.theta, chain.u, chain.psi, chain.rng)
            chain.state = None  # it belongs to the predictors before these moves

    def sweeps(self, chain, n, adapts):
        """Move a chain by n sweeps: see `GroupSampler`. Many are made at once if visits are all."""
        if self.reference.rows.has_moves:
            yield from super().sweeps(chain, n, adapts)
            return
        D, most = len(chain.theta), max(1, AT_ONCE // chain.u[0].size)
        for first in range(0, n, most):
            found = self._visits(chain, 0, chain.sweeps + 1, min(most, n - first), adapts)
            for x, effects, accepted in zip(*found, strict=True):
                chain.theta, chain.psi[0], chain.u[0] = x[:D], x[D:], effects
                chain.sweeps += 1
                chain.accepted += accepted
                yield

    def _visits(self, chain, k, first, n, adapts):
        """Visit factor k n times; return x, effects and acceptance rates after each visit.

        `first` is the number of the first of these visits in this part of the warm-up.
        """
        rows, at, D = self.reference.rows, chain.work[k], len(chain.theta)
        known = UNKNOWN
        if chain.state is not None:
            known, at.g[:D] = chain.state.loss, chain.state.gradient
            at.G[:] = rows.by_level(chain.state.residuals, k)
        x, residuals = np.concatenate([chain.theta, chain.psi[k]]), np.empty(rows.n_rows)
        noise = [drawn_noise(chain.rng, chain.u[k].shape, len(x)) for _ in range(n)]
        noise = VisitNoise(*map(np.array, zip(*noise, strict=True)))
        factor = self.reference.law_of_factor(k, chain.u)
        steps = chain.log_step[k : k + 1], chain.average[k : k + 1]
        sizes = StepSizes(self.n_steps[k], *steps, first, self.longest(k), adapts)
        found = np.empty((n, len(x))), np.empty((n, *chain.u[k].shape)), np.empty((n, 2))
        with without_interrupts():
            loss = visits(
                factor, rows.sorted[k], rows.model, self.coordinates[k], sizes, noise, x,
                chain.u[k], known, at, residuals, *found,
            )  # fmt: skip
        chain.theta, chain.psi[k] = x[:D], x[D:]
        chain.state = RowState(loss, at.g[:D].copy(), rows.unsorted(residuals, k))
        return found

    def recentred(self, chains):
        """The setting with its reference at the mean of the draws, which have unit width in φ."""
        rows = self.reference.rows
        draws, parts = np.concatenate([one.draws for one in chains]), parts_of(rows.problem)
        theta = draws[:, parts[0]]
        u = [
            EffectMoments.mean_and_sd([chain.moments[k] for chain in chains])[0].reshape(own.shape)
            for k, own in enumerate(chains[0].u)
        ]
        coordinates, n_steps = [], []
        for k, before in enumerate(self.coordinates):
            own = np.column_stack([theta, draws[:, parts[k + 1]]])
            centre = own.mean(axis=0)
            phi = before.inverse @ (own - centre).T
            C = np.diag(phi.var(axis=1)) if len(phi) > MANY else phi @ phi.T / len(draws)
            C = (len(draws) * C + SHRUNK * np.eye(len(C))) / (len(draws) + SHRUNK)
            root = before.factor @ linalg.cholesky(C, lower=True)
            coordinates.append(coordinates_of(centre, root))
            wide = own.std(axis=0)[theta.shape[1] :].max() > WIDE
            few = rows.problem.sizes[k] <= FEW_LEVELS
            n_steps.append(MORE_STEPS if wide or few else FEW_STEPS)
        reference = Reference(rows, theta.mean(axis=0), u)
        return CollapsedHMC(reference, self.start, coordinates, n_steps)
