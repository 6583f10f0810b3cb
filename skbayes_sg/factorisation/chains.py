"""Chains: their parts, and the loop that runs them.

A chain depends only on the seed and its number, not on `n_jobs` or the joblib backend: the random
numbers of a pass are drawn before the rows are divided among threads. A pass over many ratings
consists of calls that take a tenth of a second, between which Ctrl-C takes effect.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from .._base import streams
from .._base.threads import in_workers, shares_memory
from ..exceptions import SamplerDivergedError
from . import noise as noises
from .draws import snapshot
from .gibbs_updates import sweep
from .problem import RatingProblem
from .step_check import SWEEPS, Continued

__all__ = ["N_PROBES", "FactorChain", "FactorSetup", "Noise", "RatingModel", "new_chain", "run"]

N_PROBES = 50  # number of ratings whose predictions are traced; they tell whether chains agree
START = 0.1  # standard deviation of the entries of the factors at the start


@dataclass(frozen=True)
class RatingModel:
    """The ratings and the assumptions about them.

    Parameters
    ----------
    problem : RatingProblem
    hyperprior : skbayes_sg.factorisation.Hyperprior
    noise : str
        See `skbayes_sg.factorisation.noise`.
    alpha : float
        Precision of the noise of standardised ratings: its first or its known value.
    """

    problem: RatingProblem
    hyperprior: Any
    noise: str = noises.HIERARCHICAL
    alpha: float = 1.0


@dataclass
class Noise:
    """The factors α and w of the precision of the ratings, and the shapes ν of the laws of w."""

    alpha: float
    w: np.ndarray
    shapes: np.ndarray


@dataclass
class FactorChain:
    """The state of one chain."""

    number: int
    F: np.ndarray  # (n_rows, D): the rows [p, b] of all columns
    means: np.ndarray  # conditional means of the rows of column 0 given all else
    noise: Noise
    hyper: list  # (μ, Λ) of each column
    rng: np.random.Generator
    passes: int = 0
    n_warmup: int = 0
    memory: Any = None  # what the sampler keeps from pass to pass
    kept: Any = None  # FactorDraws or Moments
    # (n_draws, 2 + N_PROBES): the standardised quantities that `_keep` traces
    trace: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    continued: Continued = field(default_factory=lambda: Continued.empty(0, 0))


@dataclass
class FactorSetup:
    """The settings that the chains of a run share."""

    model: RatingModel
    sampler: Any
    n_draws: int
    thin: int
    n_warmup: int
    # (n, C): rows of F of the ratings whose average noise is traced; the predictions of the first
    # N_PROBES of them are traced as well
    probes: np.ndarray
    n_jobs: int | None = None
    # Numbers of the draws from which Gibbs sweeps begin: see `step_check`.
    examined: np.ndarray = field(default_factory=lambda: np.empty(0, int))


def new_chain(model, seed, number):
    """Return a chain at its random start, with small factors, zero biases and weights of one."""
    problem = model.problem
    rng = streams.of_chain(seed, number).noise
    F = np.zeros((problem.n_rows, problem.width))
    F[:, :-1] = START * rng.standard_normal((problem.n_rows, problem.rank))
    C = problem.n_columns
    shape = noises.GRID[4] if model.noise == noises.HIERARCHICAL else noises.EQUAL
    noise = Noise(model.alpha, np.ones(problem.n_rows), np.full(C, shape))
    hyper = [(np.zeros(problem.width), np.eye(problem.width)) for _ in range(C)]
    return FactorChain(number, F, F[problem.rows(0)].copy(), noise, hyper, rng)


def _diverged(setup, chain):
    return SamplerDivergedError(
        f"chain {chain.number} diverged in pass {chain.passes} with sampler={setup.sampler!r}: "
        "its factors are not finite, or a million times larger than the ratings. Use "
        "sampler='gibbs', or a smaller step_size."
    )


def _sweep(setup, n_jobs, chain):
    """Make a pass of a chain; raise `SamplerDivergedError` if its factors diverge."""
    try:
        setup.sampler.sweep(setup.model, chain, n_jobs)
    except np.linalg.LinAlgError as error:  # from the covariance of diverged factors
        raise _diverged(setup, chain) from error
    chain.passes += 1
    if not np.abs(chain.F).max() < 1e6:  # also for NaN
        raise _diverged(setup, chain)


def predictions(rows):
    """Return f, the expected standardised ratings (n,), given their rows of F, (n, C, D)."""
    total, squares = rows.sum(axis=1), (rows[..., :-1] ** 2).sum(axis=(1, 2))
    return total[:, -1] + 0.5 * ((total[:, :-1] ** 2).sum(axis=1) - squares)


def _look(setup, chain):
    """Predictions of the probes, and the logarithm of the root mean square of all residuals."""
    squares = noises.squares_of_residuals(setup.model.problem, chain.F)
    return predictions(chain.F[setup.probes]), 0.5 * np.log(squares.mean())


def _examine(setup, chain, n_jobs):
    """Look at the state, and at the one to which Gibbs sweeps lead from it; see `step_check`.

    The chain does not change.
    """
    noise = replace(chain.noise, w=chain.noise.w.copy(), shapes=chain.noise.shapes.copy())
    own = {"F": chain.F.copy(), "noise": noise, "hyper": list(chain.hyper)}
    own = replace(chain, **own, rng=streams.child(chain.rng))
    before = _look(setup, own)
    for _ in range(SWEEPS):
        sweep(setup.model, own, n_jobs)
    return Continued(*map(np.stack, zip(before, _look(setup, own), strict=True)))


def _keep(setup, chain, k, n_jobs):
    """Keep the state as draw k, and trace its noise and predictions.

    Traced are the standard deviation of the noise, the expected rating of new categories, and those
    of the first `N_PROBES` probes.
    """
    chain.kept.write(k, snapshot(chain, setup.sampler.has_means))
    mu = np.stack([mean for mean, _ in chain.hyper])
    expected = predictions(np.concatenate([mu[None], chain.F[setup.probes[:N_PROBES]]]))
    variance = (1.0 / chain.noise.w)[setup.probes].prod(axis=1).mean() / chain.noise.alpha
    chain.trace[k] = [np.sqrt(variance), *expected]
    for place in np.flatnonzero(setup.examined == k):
        for array, value in zip(chain.continued, _examine(setup, chain, n_jobs), strict=True):
            array[place] = value


def _advance(setup, n_passes, n_jobs, chain):
    """Make `n_passes` passes of a chain, and keep every `thin`-th state after the warm-up."""
    if chain.passes == 0:
        setup.sampler.begin(setup.model, chain, n_jobs)
    for _ in range(n_passes):
        _sweep(setup, n_jobs, chain)
        after = chain.passes - setup.n_warmup
        if after > 0 and after % setup.thin == 0:
            _keep(setup, chain, after // setup.thin - 1, n_jobs)
    return chain


def run(setup, chains, watch=None):
    """Run what is left of the warm-up of every chain, and its draws.

    Parameters
    ----------
    setup : FactorSetup
    chains : list of FactorChain
        With the arrays for their draws.
    watch : callable, optional
        ``watch(done)`` is called with the number of draws that all chains have; if it returns
        true, the run stops.

    Returns
    -------
    chains : list of FactorChain
    done : int
        Number of draws of each chain.
    """
    total, done = setup.n_warmup + setup.thin * setup.n_draws - chains[0].passes, 0
    own_threads = setup.n_jobs if len(chains) == 1 else None
    at_once = 1 if shares_memory() else total
    for start in range(0, total, at_once):
        advance = partial(_advance, setup, min(at_once, total - start), own_threads)
        chains = in_workers(advance, chains, setup.n_jobs)
        done = max(0, (chains[0].passes - setup.n_warmup) // setup.thin)
        if watch is not None and done > 0 and watch(done):
            break
    return chains, done
