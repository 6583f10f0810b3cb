"""Chains for any likelihood, any number of factors and slopes, in collapsed coordinates.

A sweep visits each factor k:

1. ζ from u_k, the effects of the other factors given (`collapsed`);
2. Hamiltonian Monte Carlo on (θ, ψ_k) given ζ. In coordinates φ in which the law is about N(0, I)
   the Hamiltonian is split [1]_: the flow of |φ|²/2 + |p|²/2 is a rotation, and kicks are by the
   gradient of the rest, so that two steps make a quarter of a period;
3. all u_k at once: independent proposals, of which each level accepts its own,

       0.95 N(m_l, 1.05² P_l⁻¹) + 0.05 N(m_l, 2² Ω⁻¹);

   the wide part bounds the weights where the likelihood has tails as wide as the prior.

Effects of nested factors then move against each other (`translations`).

.. [1] B. Shahbaba, S. Lan, W. O. Johnson and R. M. Neal (2014). Split Hamiltonian Monte Carlo.
   Statistics and Computing 24, 339-349.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._base import streams
from .chains import GroupChain, parts_of
from .collapsed import CollapsedRows, Factor, Reference, Workspace
from .start import GroupStart, found_start

__all__ = ["CollapsedHMC"]

FEW_STEPS, MORE_STEPS = 2, 4
FEW_LEVELS, WIDE = 10, 0.4  # levels, and sd of log τ, for which more steps pay
ACCEPTANCE, JITTER = 0.8, 0.2
PROPOSALS = 0.95, 1.05, 2.0  # of effects: share of narrow ones, and both widths
MANY = 100  # parameters, of which only the widths are learnt
SHRUNK = 10  # draws that the first widths count as
FARTHEST = 300.0  # φ, beyond which a trajectory is given up


@dataclass
class CollapsedHMC:
    """What all chains share: the reference, and coordinates (θ, ψ_k) = c_k + F_k φ of each factor.

    Parameters
    ----------
    reference : Reference
    start : GroupStart
    centres : list of ndarray
        c_k.
    roots : list of ndarray
        F_k.
    n_steps : list of int
        Steps of a trajectory.
    """

    reference: Reference
    start: GroupStart
    centres: list
    roots: list
    n_steps: list

    name = "collapsed_hmc"
    passes = 3.0

    @classmethod
    def of(cls, problem):
        """The first setting."""
        rows = CollapsedRows(problem)
        start, roots = found_start(rows), []
        for precision, information in zip(start.precisions, start.information, strict=True):
            root = linalg.solve_triangular(
                linalg.cholesky(precision, lower=True), np.eye(len(precision)), lower=True
            ).T
            roots.append(linalg.block_diag(root, np.diag(1.0 / np.sqrt(information))))
        n_steps = [MORE_STEPS if L <= FEW_LEVELS else FEW_STEPS for L in problem.sizes]
        centres = [np.append(start.theta, psi) for psi in start.psi]
        return cls(Reference(rows, start.theta, start.u), start, centres, roots, n_steps)

    def new_chain(self, seed, number):
        """A chain about one standard deviation from the start."""
        rng, start = streams.of_chain(seed, number).noise, self.start
        D, n = len(start.theta), self.reference.rows.problem.n_coefficients
        theta, psi = start.theta.copy(), list(start.psi)
        for k, root in enumerate(self.roots):
            move = root @ rng.standard_normal(len(root))
            move[n:] = np.clip(move[n:], -1.0, 1.0)  # of logarithms
            psi[k] = psi[k] + move[D:]
            theta = start.theta + move[:D]
        u, work = list(start.u), Workspace(self.reference.rows)
        for k, own in enumerate(start.u):
            factor = Factor(self.reference, k, u, work)
            u[k] = factor.u_of(theta, psi[k], rng.standard_normal(own.shape))
        return GroupChain(number, theta, psi, u, rng, work)

    def longest(self, k):
        """log ε with which a trajectory is a quarter of a period."""
        return math.log(0.5 * math.pi / self.n_steps[k])

    def begin(self, chain):
        """Forget the steps of a chain."""
        chain.log_step = np.array([self.longest(k) for k in range(len(self.roots))])
        chain.average = chain.log_step.copy()

    def sweep(self, chain, adapts):
        """Visit all factors."""
        for k in range(len(chain.u)):
            factor = Factor(self.reference, k, chain.u, chain.work)
            zeta = factor.zeta_of(chain.theta, chain.psi[k], chain.u[k])
            probability = _move_parameters(chain, self, factor, zeta)
            u = factor.u_of(chain.theta, chain.psi[k], zeta)
            chain.u[k], share, chain.state = moved_effects(
                factor, chain.theta, chain.psi[k], u, chain.rng
            )
            chain.accepted += probability, share
            if adapts:
                chain.adapt(k, probability - ACCEPTANCE, self.longest(k))
        rows = self.reference.rows
        for translation in rows.translations:
            translation.move(chain.u, chain.psi, rows.problem.scales, 0.0, chain.rng)

    def recentred(self, chains):
        """The reference at the mean of the draws, and coordinates in which they have unit width."""
        rows = self.reference.rows
        draws, parts = np.concatenate([one.draws for one in chains]), parts_of(rows.problem)
        theta = draws[:, parts[0]]
        u = [
            (sum(chain.sums[k][0] for chain in chains) / len(draws)).reshape(own.shape)
            for k, own in enumerate(chains[0].u)
        ]
        centres, roots, n_steps = [], [], []
        for k, root in enumerate(self.roots):
            own = np.column_stack([theta, draws[:, parts[k + 1]]])
            centres.append(own.mean(axis=0))
            phi = linalg.solve(root, (own - centres[k]).T)
            C = np.diag(phi.var(axis=1)) if len(phi) > MANY else phi @ phi.T / len(draws)
            C = (len(draws) * C + SHRUNK * np.eye(len(C))) / (len(draws) + SHRUNK)
            roots.append(root @ linalg.cholesky(C, lower=True))
            wide = own.std(axis=0)[theta.shape[1] :].max() > WIDE
            few = rows.problem.sizes[k] <= FEW_LEVELS
            n_steps.append(MORE_STEPS if wide or few else FEW_STEPS)
        reference = Reference(rows, theta.mean(axis=0), u)
        return CollapsedHMC(reference, self.start, centres, roots, n_steps)


def _move_parameters(chain, setting, factor, zeta):
    """A trajectory of (θ, ψ_k) given ζ; return the probability of its acceptance."""
    k, rng, D = factor.k, chain.rng, len(chain.theta)
    root, centre = setting.roots[k], setting.centres[k]
    phi = linalg.solve(root, np.append(chain.theta, chain.psi[k]) - centre)
    p, x = rng.standard_normal(len(phi)), centre + root @ phi
    epsilon = math.exp(chain.log_step[k]) * (1.0 + JITTER * (2.0 * rng.random() - 1.0))
    cos, sin = math.cos(epsilon), math.sin(epsilon)
    value, g = factor.potential(x[:D], x[D:], zeta, chain.state)
    before = value + 0.5 * p @ p
    for _ in range(setting.n_steps[k]):
        p = p - 0.5 * epsilon * (root.T @ g - phi)
        phi, p = cos * phi + sin * p, cos * p - sin * phi
        if not np.abs(phi).max() < FARTHEST:
            return 0.0
        x = centre + root @ phi
        value, g = factor.potential(x[:D], x[D:], zeta)
        p = p - 0.5 * epsilon * (root.T @ g - phi)
    change = before - (value + 0.5 * p @ p)
    probability = math.exp(min(change, 0.0)) if np.isfinite(change) else 0.0
    if rng.random() < probability:
        chain.theta, chain.psi[k] = x[:D], x[D:]
    return probability


def moved_effects(factor, theta, psi, u, rng):
    """Effects after one independent proposal for each level, the share accepted, the `RowState`."""
    proposed, gain = factor.proposals(theta, psi, u, rng, PROPOSALS)
    losses = factor.losses(theta, u, proposed)
    takes = np.log(rng.random(len(u))) < gain + losses[:, 0] - losses[:, 1]
    u = np.where(takes[:, None], proposed, u)
    loss = np.where(takes, losses[:, 1], losses[:, 0]).sum()
    return u, takes.mean(), factor.state(theta, u, loss)
