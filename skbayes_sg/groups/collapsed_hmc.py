"""Chains for any likelihood and any number of factors, in collapsed coordinates (`collapsed`).

A sweep visits each factor k:

1. z from u_k, the effects of the other factors given;
2. Hamiltonian Monte Carlo on (θ, log τ_k) given z, with few leapfrog steps of at most a quarter of
   a period together, in coordinates in which the law has about unit width;
3. all u_k at once: independent proposals, of which each level accepts its own,

       0.95 N(m_l, 1.05²/P_l) + 0.05 N(m_l, (2τ)²);

   the wide part bounds the weights where the likelihood has tails as wide as the prior.

Twice in the warm-up the reference moves to the mean of the draws, and the widths to theirs.
"""

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
from .problem import GroupOutcome
from .start import found_start

__all__ = ["run_chains"]

WARMUP = 300
FEW_STEPS, MORE_STEPS = 2, 4
FEW_LEVELS, WIDE = 10, 0.4  # levels, and sd of log τ, for which more leapfrog steps pay
ACCEPTANCE, JITTER = 0.8, 0.2
NARROW, WIDER, BROAD = 0.95, 1.05, 2.0  # share and widths of the proposals of effects
MANY = 100  # parameters, of which only the widths are learnt
SHRUNK = 10  # draws that the first widths count as
PASSES = 4  # over the rows, of a sweep and factor
ROUND_SECONDS = 0.1  # predicted, between two looks at callbacks and Ctrl-C
LOOKED_AT = 100  # effects whose sample sizes are computed


@dataclass
class Setting:
    """What all chains share: the reference, and coordinates (θ, log τ_k) = F_k φ of each factor.

    Parameters
    ----------
    reference : Reference
    roots : list of ndarray of shape (D + 1, D + 1)
        F_k.
    n_steps : list of int
        Leapfrog steps of a trajectory.
    """

    reference: Reference
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
    log_tau: np.ndarray
    u: list
    rng: np.random.Generator
    work: Workspace
    log_step: Any = None  # log ε of each factor
    average: Any = None  # of log ε
    sweeps: int = 0
    accepted: Any = None  # sums of shares of trajectories and of effects
    draws: list = field(default_factory=list)  # (θ, log τ)
    sums: list = field(default_factory=list)  # Σ u and Σ u² of each factor
    loss: Any = None  # of all rows, where it is known

    def forget(self):
        """Begin to count, to add up and to collect anew."""
        self.sweeps, self.accepted, self.draws = 0, np.zeros(2), []
        self.sums = [np.zeros((2, len(effects))) for effects in self.u]

    def collect(self):
        """Keep the parameters as a draw, and add up the effects."""
        self.draws.append(np.append(self.theta, self.log_tau))
        for total, effects in zip(self.sums, self.u, strict=True):
            total[0] += effects
            total[1] += np.square(effects)


def run_chains(problem, request, watch=None):
    """Chains of (θ, log τ) and of all effects: a `GroupOutcome`."""
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
    effects = [np.empty((L, *shape), dtype=np.float32) for L in problem.sizes]
    for chain in chains:
        chain.forget()
        chain.log_step = chain.average

    def look(n_sweeps):
        return watch is not None and watch(lambda: _so_far(chains), n_sweeps / total)

    total = thin * request.n_draws
    options = {"thin": thin, "effects": effects, "kept": kept, "look": look}
    _advance(chains, setting, total, at_once, request.n_jobs, **options)
    return _outcome(chains, effects, kept, n_warmup)


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
        roots.append(linalg.block_diag(root, 1.0 / np.sqrt(information)))
    n_steps = [MORE_STEPS if L <= FEW_LEVELS else FEW_STEPS for L in rows.problem.sizes]
    return Setting(Reference(rows, start.theta, start.u), roots, n_steps)


def _new_chain(rows, start, setting, seed, number):
    """A chain about one standard deviation from the start."""
    rng = streams.of_chain(seed, number).noise
    theta, log_tau = start.theta.copy(), start.log_tau.copy()
    for k, root in enumerate(setting.roots):
        move = root @ rng.standard_normal(len(root))
        log_tau[k] += np.clip(move[-1], -1.0, 1.0)
        theta = start.theta + move[:-1]
    u, work = list(start.u), Workspace(rows)
    for k, L in enumerate(rows.problem.sizes):
        u[k] = Factor(setting.reference, k, u, work).u_of(theta, log_tau[k], rng.standard_normal(L))
    return GroupChain(number, theta, log_tau, u, rng, work)


def _recentred(setting, chains):
    """The reference at the mean of the draws, and coordinates in which they have unit width."""
    rows = setting.reference.rows
    draws = np.concatenate([chain.draws for chain in chains])
    mean, D = draws.mean(axis=0), draws.shape[1] - len(setting.roots)
    u = [sum(chain.sums[k][0] for chain in chains) / len(draws) for k in range(len(setting.roots))]
    roots, n_steps = [], []
    for k, root in enumerate(setting.roots):
        off = np.column_stack([draws[:, :D], draws[:, D + k]]) - np.append(mean[:D], mean[D + k])
        phi = linalg.solve(root, off.T)
        C = np.diag(phi.var(axis=1)) if len(phi) > MANY else phi @ phi.T / len(draws)
        C = (len(draws) * C + SHRUNK * np.eye(len(C))) / (len(draws) + SHRUNK)
        roots.append(root @ linalg.cholesky(C, lower=True))
        wide = rows.problem.sizes[k] <= FEW_LEVELS or draws[:, D + k].std() > WIDE
        n_steps.append(MORE_STEPS if wide else FEW_STEPS)
    return Setting(Reference(rows, mean[:D], u), roots, n_steps)


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
                        own[:, chain.number, place] = values

    for first in range(0, n_sweeps, at_once):
        n = min(at_once, n_sweeps - first)
        in_threads(lambda chain, n=n: work(chain, n), chains, n_jobs)
        if chains[0].draws and look(first + n):
            break


def _sweep(chain, setting, adapts):
    chain.sweeps += 1
    for k in range(len(chain.u)):
        factor = Factor(setting.reference, k, chain.u, chain.work)
        z = factor.z_of(chain.theta, chain.log_tau[k], chain.u[k])
        probability = _move_parameters(chain, setting, factor, z)
        u = factor.u_of(chain.theta, chain.log_tau[k], z)
        chain.u[k], share, chain.loss = moved_effects(
            factor, chain.theta, chain.log_tau[k], u, chain.rng
        )
        chain.accepted += probability, share
        if adapts:
            _adapt(chain, k, probability, setting.longest(k))


def _move_parameters(chain, setting, factor, z):
    """A trajectory of (θ, log τ_k) given z; return the probability of its acceptance."""
    k, rng = factor.k, chain.rng
    root, n_steps = setting.roots[k], setting.n_steps[k]
    x, p = np.append(chain.theta, chain.log_tau[k]), rng.standard_normal(len(root))
    epsilon = math.exp(chain.log_step[k]) * (1.0 + JITTER * (2.0 * rng.random() - 1.0))
    before, g = factor.potential(x[:-1], x[-1], z, loss=chain.loss)
    before += 0.5 * p @ p
    p = p - 0.5 * epsilon * (root.T @ g)
    for step in range(n_steps):
        x = x + epsilon * (root @ p)
        last = step == n_steps - 1
        after, g = factor.potential(x[:-1], x[-1], z, valued=last)
        p = p - (0.5 if last else 1.0) * epsilon * (root.T @ g)
    change = before - (after + 0.5 * p @ p)
    probability = math.exp(min(change, 0.0)) if np.isfinite(change) else 0.0
    if rng.random() < probability:
        chain.theta, chain.log_tau[k] = x[:-1], x[-1]
    return probability


def moved_effects(factor, theta, log_tau, u, rng):
    """Effects after one independent proposal for each level, the share accepted, and the loss."""
    m, P = factor.law(theta, log_tau)
    tau, sd = np.exp(log_tau), WIDER / np.sqrt(P)
    width = np.where(rng.random(len(u)) < NARROW, sd, BROAD * tau)
    proposed = m + width * rng.standard_normal(len(u))
    losses = factor.losses(theta, u, proposed)
    gain = losses[:, 0] - losses[:, 1] + 0.5 * (u**2 - proposed**2) * np.exp(-2.0 * log_tau)
    gain += _log_density(u - m, sd, BROAD * tau) - _log_density(proposed - m, sd, BROAD * tau)
    takes = np.log(rng.random(len(u))) < gain
    loss = np.where(takes, losses[:, 1], losses[:, 0]).sum()
    return np.where(takes, proposed, u), takes.mean(), loss


def _log_density(off, narrow, broad):
    """Log density of the proposals, up to a constant."""
    near = math.log(NARROW) - np.log(narrow) - 0.5 * np.square(off / narrow)
    far = math.log(1.0 - NARROW) - np.log(broad) - 0.5 * np.square(off / broad)
    return np.logaddexp(near, far)


def _adapt(chain, k, probability, longest):
    """Robbins and Monro's step of log ε, and its average by Polyak."""
    t = chain.sweeps
    step = chain.log_step[k] + (probability - ACCEPTANCE) * t**-0.6
    chain.log_step[k] = min(step, longest)
    chain.average[k] += (chain.log_step[k] - chain.average[k]) * t**-0.75


# -- results ----------------------------------------------------------------------------------


def _so_far(chains):
    return np.stack([chain.draws for chain in chains]), None


def _outcome(chains, effects, kept, n_warmup):
    draws, _ = _so_far(chains)
    if not np.isfinite(draws).all():
        raise SamplerDivergedError("The chains of group effects have left the range of floats.")
    C, S = draws.shape[:2]
    moments = []
    for k in range(len(effects)):
        first, second = sum(chain.sums[k] for chain in chains) / (C * S)
        moments.append(np.stack([first, np.sqrt(np.maximum(second - first**2, 0.0))]))
    n_kept = int(np.searchsorted(kept, S))  # fewer where a callback has ended the run
    effects = [own[:, :, :n_kept] for own in effects]
    accepted = sum(chain.accepted / (chain.sweeps * len(effects)) for chain in chains) / C
    ess, _, rhat, _ = convergence.worst(draws)
    found = {"min_ess": ess, "max_rhat": rhat, "acceptance": accepted[0]}
    found |= {"effects_acceptance": accepted[1], "effects_min_ess": _ess_of_effects(effects)}
    step = float(np.exp(np.mean([chain.log_step for chain in chains])))
    kept = kept[:n_kept]
    return GroupOutcome(draws, effects, moments, "collapsed_hmc", found, n_warmup, step, kept)


def _ess_of_effects(effects):
    """The smallest effective sample size of some effects, among the draws that are kept."""
    if effects[0].shape[2] < 8:
        return np.nan
    some = [own[np.linspace(0, len(own) - 1, LOOKED_AT).astype(int)] for own in effects]
    draws = np.concatenate(some).transpose(1, 2, 0).astype(np.float64)
    return float(np.nanmin(convergence.ess_bulk(draws)))
