"""Chains for any likelihood, any number of factors and slopes, in collapsed coordinates.

A sweep visits each factor k:

1. ζ from u_k, the effects of the other factors given (`collapsed`);
2. Hamiltonian Monte Carlo on (θ, ψ_k) given ζ. In coordinates φ in which the law is about N(0, I)
   the Hamiltonian is split [1]_: the flow of |φ|²/2 + |p|²/2 is a rotation, and kicks are by the
   gradient of the rest, so that two steps make a quarter of a period;
3. all u_k at once: independent proposals, of which each level accepts its own,

       0.95 N(m_l, 1.05² P_l⁻¹) + 0.05 N(m_l, 2² Ω⁻¹);

   the wide part bounds the weights where the likelihood has tails as wide as the prior.

Twice in the warm-up the reference moves to the mean of the draws, and the widths to theirs.

.. [1] B. Shahbaba, S. Lan, W. O. Johnson and R. M. Neal (2014). Split Hamiltonian Monte Carlo.
   Statistics and Computing 24, 339-349.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg

from .._base import streams
from .._base.threads import in_threads
from ..diagnostics import convergence
from ..exceptions import SamplerDivergedError
from ..posterior.moments import kept_draws
from ..recipe.price import seconds_of_steps, warn_if_long
from .collapsed import CollapsedRows, Factor, Reference, Workspace
from .covariance import Covariance, n_scales
from .problem import GroupOutcome
from .start import found_start

__all__ = ["run_chains"]

WARMUP = 300
FEW_STEPS, MORE_STEPS = 2, 4
FEW_LEVELS, WIDE = 10, 0.4  # levels, and sd of log τ, for which more steps pay
ACCEPTANCE, JITTER = 0.8, 0.2
PROPOSALS = 0.95, 1.05, 2.0  # of effects: share of narrow ones, and both widths
MANY = 100  # parameters, of which only the widths are learnt
SHRUNK = 10  # draws that the first widths count as
PASSES = 3  # over the rows, of a sweep and factor
FARTHEST = 300.0  # φ, beyond which a trajectory is given up
ROUND_SECONDS = 0.1  # predicted, between two looks at callbacks and Ctrl-C
LOOKED_AT = 100  # effects whose sample sizes are computed


@dataclass
class Setting:
    """What all chains share: the reference, and coordinates (θ, ψ_k) = c_k + F_k φ of each factor.

    Parameters
    ----------
    reference : Reference
    centres : list of ndarray
        c_k.
    roots : list of ndarray
        F_k.
    n_steps : list of int
        Steps of a trajectory.
    """

    reference: Reference
    centres: list
    roots: list
    n_steps: list

    def longest(self, k):
        """log ε with which a trajectory is a quarter of a period."""
        return math.log(0.5 * math.pi / self.n_steps[k])


@dataclass
class GroupChain:
    """The state of a chain, and what it has left behind since `forget`."""

    number: int
    theta: np.ndarray
    psi: list
    u: list
    rng: np.random.Generator
    work: Workspace
    log_step: Any = None  # log ε of each factor
    average: Any = None  # of log ε
    sweeps: int = 0
    accepted: Any = None  # sums of shares of trajectories and of effects
    draws: list = field(default_factory=list)  # (θ, ψ of all factors)
    sums: list = field(default_factory=list)  # Σ u and Σ u² of each factor
    state: Any = None  # `RowState`, where it is known

    def forget(self):
        """Begin to count, to add up and to collect anew."""
        self.sweeps, self.accepted, self.draws = 0, np.zeros(2), []
        self.sums = [np.zeros((2, effects.size)) for effects in self.u]

    def collect(self):
        """Keep the parameters as a draw, and add up the effects."""
        self.draws.append(np.concatenate([self.theta, *self.psi]))
        for total, effects in zip(self.sums, self.u, strict=True):
            total[0] += effects.ravel()
            total[1] += np.square(effects.ravel())


def run_chains(problem, request, watch=None):
    """Chains of (θ, ψ) and of all effects: a `GroupOutcome`."""
    rows, thin = CollapsedRows(problem), request.thin or 1
    n_warmup = WARMUP if request.n_warmup is None else request.n_warmup
    at_once = _sweeps_at_once(problem, request, n_warmup + thin * request.n_draws)
    start = found_start(rows)
    setting = _first_setting(rows, start)
    chains = [_new_chain(rows, start, setting, request.seed, c) for c in range(request.n_chains)]
    for part, length in enumerate(_parts(n_warmup)):
        for chain in chains:
            chain.forget()
            chain.log_step = np.array([setting.longest(k) for k in range(problem.n_factors)])
            chain.average = chain.log_step.copy()
        _advance(chains, setting, length, at_once, request.n_jobs, adapts=True)
        if part < 2 and length > 1:
            setting = _recentred(setting, chains)
    kept = kept_draws(request.n_draws, request.n_draws if request.keep is None else request.keep)
    shape = request.n_chains, len(kept)
    n_effects = [L * q for L, q in zip(problem.sizes, problem.widths, strict=True)]
    effects = [np.empty((n, *shape), dtype=np.float32) for n in n_effects]
    for chain in chains:
        chain.forget()
        chain.log_step = chain.average

    def look(n_sweeps):
        return watch is not None and watch(lambda: (_told(chains, problem), None), n_sweeps / total)

    total = thin * request.n_draws
    options = {"thin": thin, "effects": effects, "kept": kept, "look": look}
    _advance(chains, setting, total, at_once, request.n_jobs, **options)
    return _outcome(chains, problem, effects, kept, n_warmup)


def _sweeps_at_once(problem, request, n_sweeps):
    """Sweeps between two looks at callbacks; a run that is predicted to be long is told."""
    target = problem.target
    n_passes = PASSES * problem.n_factors * request.n_chains
    seconds = seconds_of_steps(target, n_passes, target.n_rows)  # of a sweep of all chains
    what = f"Sampling {sum(problem.sizes)} group effects from {target.n_rows} rows"
    warn_if_long(seconds * n_sweeps, what, "Use n_jobs=-1, fewer chains, or fewer draws.")
    return max(1, int(ROUND_SECONDS / seconds))


def _parts(n_warmup):
    third = n_warmup // 3
    return [third, third, n_warmup - 2 * third]


# -- where chains are -------------------------------------------------------------------------


def _first_setting(rows, start):
    roots = []
    for precision, information in zip(start.precisions, start.information, strict=True):
        root = linalg.solve_triangular(
            linalg.cholesky(precision, lower=True), np.eye(len(precision)), lower=True
        ).T
        roots.append(linalg.block_diag(root, np.diag(1.0 / np.sqrt(information))))
    n_steps = [MORE_STEPS if L <= FEW_LEVELS else FEW_STEPS for L in rows.problem.sizes]
    centres = [np.append(start.theta, psi) for psi in start.psi]
    return Setting(Reference(rows, start.theta, start.u), centres, roots, n_steps)


def _new_chain(rows, start, setting, seed, number):
    """A chain about one standard deviation from the start."""
    rng, D = streams.of_chain(seed, number).noise, len(start.theta)
    theta, psi = start.theta.copy(), list(start.psi)
    for k, root in enumerate(setting.roots):
        move = root @ rng.standard_normal(len(root))
        psi[k] = psi[k] + np.clip(move[D:], -1.0, 1.0)
        theta = start.theta + move[:D]
    u, work = list(start.u), Workspace(rows)
    for k, own in enumerate(start.u):
        factor = Factor(setting.reference, k, u, work)
        u[k] = factor.u_of(theta, psi[k], rng.standard_normal(own.shape))
    return GroupChain(number, theta, psi, u, rng, work)


def _recentred(setting, chains):
    """The reference at the mean of the draws, and coordinates in which they have unit width."""
    rows = setting.reference.rows
    draws = np.concatenate([chain.draws for chain in chains])
    parts = _parts_of(rows.problem)
    theta = draws[:, parts[0]]
    u = [
        (sum(chain.sums[k][0] for chain in chains) / len(draws)).reshape(own.shape)
        for k, own in enumerate(chains[0].u)
    ]
    centres, roots, n_steps = [], [], []
    for k, root in enumerate(setting.roots):
        own = np.column_stack([theta, draws[:, parts[k + 1]]])
        centres.append(own.mean(axis=0))
        phi = linalg.solve(root, (own - centres[k]).T)
        C = np.diag(phi.var(axis=1)) if len(phi) > MANY else phi @ phi.T / len(draws)
        C = (len(draws) * C + SHRUNK * np.eye(len(C))) / (len(draws) + SHRUNK)
        roots.append(root @ linalg.cholesky(C, lower=True))
        wide = own.std(axis=0)[theta.shape[1] :].max() > WIDE
        few = rows.problem.sizes[k] <= FEW_LEVELS
        n_steps.append(MORE_STEPS if wide or few else FEW_STEPS)
    return Setting(Reference(rows, theta.mean(axis=0), u), centres, roots, n_steps)


def _parts_of(problem):
    """Where θ is in a row of draws, and where the ψ of each factor are."""
    ends = np.cumsum([0, problem.target.n_parameters, *map(n_scales, problem.widths)])
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


# -- sweeps -----------------------------------------------------------------------------------


def _advance(
    chains, setting, n_sweeps, at_once, n_jobs, *, adapts=False, thin=1, effects=(), kept=(),
    look=lambda n_sweeps: False,
):  # fmt: skip
    """Make sweeps of all chains; keep each `thin`-th state, and the effects of some of them."""
    places = {int(draw): place for place, draw in enumerate(kept)}

    def work(chain, n):
        with np.errstate(all="ignore"):  # trajectories that leave the range of floats are rejected
            for _ in range(n):
                _sweep(chain, setting, adapts)
                if chain.sweeps % thin:
                    continue
                place = places.get(len(chain.draws))
                chain.collect()
                for own, values in zip(effects, chain.u, strict=False):
                    if place is not None:
                        own[:, chain.number, place] = values.ravel()

    for first in range(0, n_sweeps, at_once):
        n = min(at_once, n_sweeps - first)
        in_threads(lambda chain, n=n: work(chain, n), chains, n_jobs)
        if chains[0].draws and look(first + n):
            break


def _sweep(chain, setting, adapts):
    chain.sweeps += 1
    for k in range(len(chain.u)):
        factor = Factor(setting.reference, k, chain.u, chain.work)
        zeta = factor.zeta_of(chain.theta, chain.psi[k], chain.u[k])
        probability = _move_parameters(chain, setting, factor, zeta)
        u = factor.u_of(chain.theta, chain.psi[k], zeta)
        chain.u[k], share, chain.state = moved_effects(
            factor, chain.theta, chain.psi[k], u, chain.rng
        )
        chain.accepted += probability, share
        if adapts:
            _adapt(chain, k, probability, setting.longest(k))


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


def _adapt(chain, k, probability, longest):
    """Robbins and Monro's step of log ε, and its average by Polyak."""
    t = chain.sweeps
    step = chain.log_step[k] + (probability - ACCEPTANCE) * t**-0.6
    chain.log_step[k] = min(step, longest)
    chain.average[k] += (chain.log_step[k] - chain.average[k]) * t**-0.75


# -- results ----------------------------------------------------------------------------------


def _told(chains, problem):
    """Draws of θ, of the log standard deviations of all effects, then slopes, and correlations."""
    draws, parts = np.stack([chain.draws for chain in chains]), _parts_of(problem)
    psi = [draws[..., part] for part in parts[1:]]
    pairs = list(zip(psi, problem.widths, strict=True))
    told = [draws[..., parts[0]], *(own[..., :1] for own in psi)]
    told += [own[..., 1:q] for own, q in pairs]
    for own, q in pairs:
        if q > 1:
            found = [Covariance(row, q).correlations for row in own.reshape(-1, own.shape[-1])]
            told.append(np.reshape(found, (*own.shape[:2], -1)))
    return np.concatenate(told, axis=2)


def _factors(chains, problem, kept):
    """Triangular factors of the covariances of effects, of the draws whose effects are kept."""
    draws = np.concatenate([np.stack(chain.draws)[kept] for chain in chains])
    return [
        np.reshape([Covariance(row[part], q).C for row in draws], (-1, q, q))
        for part, q in zip(_parts_of(problem)[1:], problem.widths, strict=True)
    ]


def _outcome(chains, problem, effects, kept, n_warmup):
    draws = _told(chains, problem)
    if not np.isfinite(draws).all():
        raise SamplerDivergedError("The chains of group effects have left the range of floats.")
    C, S = draws.shape[:2]
    moments = []
    for k in range(len(effects)):
        first, second = sum(chain.sums[k] for chain in chains) / (C * S)
        moments.append(np.stack([first, np.sqrt(np.maximum(second - first**2, 0.0))]))
    kept = kept[: int(np.searchsorted(kept, S))]  # fewer where a callback has ended the run
    effects = [own[:, :, : len(kept)] for own in effects]
    accepted = sum(chain.accepted / (chain.sweeps * len(effects)) for chain in chains) / C
    ess, _, rhat, _ = convergence.worst(draws)
    found = {"min_ess": ess, "max_rhat": rhat, "acceptance": accepted[0]}
    found |= {"effects_acceptance": accepted[1], "effects_min_ess": _ess_of_effects(effects)}
    step = float(np.exp(np.mean([chain.log_step for chain in chains])))
    factors = _factors(chains, problem, kept) if any(problem.slopes) else None
    return GroupOutcome(
        draws, effects, moments, "collapsed_hmc", found, n_warmup, step, kept, factors
    )


def _ess_of_effects(effects):
    """The smallest effective sample size of some effects, among the draws that are kept."""
    if effects[0].shape[2] < 8:
        return np.nan
    some = [own[np.linspace(0, len(own) - 1, LOOKED_AT).astype(int)] for own in effects]
    draws = np.concatenate(some).transpose(1, 2, 0).astype(np.float64)
    return float(np.nanmin(convergence.ess_bulk(draws)))
