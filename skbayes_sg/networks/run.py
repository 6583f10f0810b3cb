"""Running chains: starts and warm-ups, draws, and more draws until the chains agree."""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._base import streams
from .._base.threads import as_done
from .agreement import LIMIT, N_PROBES, function_rhat
from .chain import new_chain
from .gradient import predict_draws
from .price import tell_more, tell_price

__all__ = ["NetworkOutcome", "predictors_of", "sample"]

ROUNDS = 10  # parts in which the draws are made; `watch` is called after each


@dataclass
class NetworkOutcome:
    """The draws of all chains, and their diagnostics."""

    draws: np.ndarray  # (n_chains, n_draws, n_parameters) float32
    scales: np.ndarray  # (n_chains, n_draws, n_groups + n_columns)
    probes: np.ndarray  # (n_chains, n_draws, n): predictions at some rows of the fit
    rhat: tuple  # of these predictions: the median of R-hat, and its 0.9 quantile
    thin: int  # steps (trajectories of HMC) from one draw to the next, of the first chain
    n_steps: int  # steps (trajectories) of the first chain in production
    step: float  # time step, the mean over chains
    n_returns: int  # moves back to a copy of the state in production, of all chains
    measured: dict  # diagnostics of the sampler, means over chains


def predictors_of(network, draws, x, scratch):
    """Return η (S, n, K) of standardised rows x (n, columns) under draws (S, P)."""
    eta = np.empty((len(draws), len(x), scratch.eta.shape[1]))
    predict_draws(network, draws, x, scratch, eta)
    return eta


def _begin(problem, sampler, request, chain):
    sampler.start(problem, chain)
    if chain.number == 0:
        n_steps = sampler.n_steps(chain, request.n_draws)
        tell_price(problem, request.n_chains, n_steps, sampler.batch_size or problem.n_rows)
    sampler.warm_up(problem, chain)
    return chain


def _extend(problem, sampler, n_draws, chain):
    for _ in range(n_draws):
        sampler.run(problem, chain, sampler.thin_of(chain))
        chain.draws.append(chain.theta.astype(np.float32))
        chain.scales.append(chain.scales_now)
    return chain


def _all(work, chains, n_jobs):
    done = dict(as_done(work, [(chain,) for chain in chains], len(chains), n_jobs))
    return [done[k] for k in range(len(chains))]


def _begin_again(problem, sampler, chain):
    """Discard the draws, whose steps become part of the warm-up, and adapt the sampler anew."""
    chain.draws.clear()
    chain.scales.clear()
    sampler.adapt(problem, chain)
    return chain


def sample(problem, sampler, request, predictions, watch):
    """Run chains until they agree about their predictions, or have been doubled often enough.

    Parameters
    ----------
    problem : NetworkProblem
    sampler : object
        It has the methods of `skbayes_sg.networks.guard.GuardedBAOAB`.
    request : skbayes_sg.networks.request.NetworkRequest
    predictions : callable
        ``predictions(eta)`` returns the predictions that are examined, (..., n'), for predictors
        (..., n, K).
    watch : callable
        ``watch(so_far, share)`` returns whether to stop; ``so_far()`` is the `NetworkOutcome`.
    """
    began = time.perf_counter()
    chains = [new_chain(problem, request.seed, number) for number in range(request.n_chains)]
    chains = _all(partial(_begin, problem, sampler, request), chains, request.n_jobs)
    which = _probes(problem, request.seed)
    so_far = partial(_outcome, problem, sampler, chains, which, predictions)
    for doubling in range(request.max_doublings + 1):
        round_began = time.perf_counter()
        for part in np.array_split(np.arange(request.n_draws), min(ROUNDS, request.n_draws)):
            chains = _all(partial(_extend, problem, sampler, len(part)), chains, request.n_jobs)
            so_far = partial(_outcome, problem, sampler, chains, which, predictions)
            share = len(chains[0].draws) / request.n_draws
            if watch(so_far, share / (request.max_doublings + 1)):
                return so_far()
        outcome = so_far()
        if doubling == request.max_doublings or not outcome.rhat[1] > LIMIT:
            return outcome
        longer = 2 if doubling else 1
        sampler.factor *= longer
        now = time.perf_counter()
        seconds = now - began + longer * (now - round_began)
        tell_more(seconds, sampler.thin_of(chains[0]), outcome.rhat[1])
        chains = _all(partial(_begin_again, problem, sampler), chains, request.n_jobs)
    return outcome


def _probes(problem, seed):
    """Return the standardised rows of the fit at which predictions are examined."""
    rng, N = streams.of_recipe(seed), problem.n_rows
    return problem.rows(np.sort(rng.permutation(N)[:N_PROBES])).x


def _outcome(problem, sampler, chains, probes, predictions):
    draws = np.array([chain.draws for chain in chains])
    scratch, network = chains[0].scratch, problem.network
    eta = [predictors_of(network, own, probes, scratch) for own in draws]
    examined = np.stack([predictions(of_chain) for of_chain in eta])
    found = [sampler.measured(chain) for chain in chains]
    measured = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    step = float(np.mean([sampler.step_of(chain) for chain in chains]))
    return NetworkOutcome(
        draws, np.array([chain.scales for chain in chains]), examined, function_rhat(examined),
        sampler.thin_of(chains[0]), chains[0].memory.counted, step,
        sum(chain.n_returns for chain in chains), measured,
    )  # fmt: skip
