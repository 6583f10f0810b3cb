"""The posterior of a mixture, by Gibbs sweeps or by the samplers of row densities."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from ..diagnostics import convergence
from ..diagnostics.verdict import RHAT, disagree
from ..exceptions import MultimodalPosteriorWarning, SamplerConvergenceWarning
from .density import density_target
from .fit import sample_density
from .mixture_chains import (
    MixtureDraws,
    best_starts,
    component_log_densities,
    invariants,
    log_densities,
    run_gibbs,
)
from .mixture_density import MixtureDensity, rows_of
from .relabel import permutations_of

__all__ = ["MixtureResult", "classified", "sample_mixture"]

CLASSIFIED = 200  # rows by which labels are aligned


@dataclass(frozen=True)
class MixtureResult:
    """Draws with aligned labels, in standardised columns, and how they were made.

    Weights (C, n, K), means (C, n, K, d), triangles (C, n, K, d, d), log-likelihoods (C, n), and
    what does not depend on labels, (C, n, rows + 1).
    """

    w: np.ndarray
    mu: np.ndarray
    A: np.ndarray
    log_likelihood: np.ndarray
    values: np.ndarray
    chosen: dict
    diagnostics: dict
    outcome: Any = None
    weights: Any = None  # of the draws


def classified(X, w, mu, A):
    """p(component | x_i) of rows under draws, (draws, rows, K)."""
    return softmax(component_log_densities(X, w, mu, A), axis=2)


def sample_mixture(X, mixture, request, *, gibbs, watch=None):
    """Draws from the posterior of a mixture, given standardised rows."""
    with request.timed("Gibbs sweeps" if gibbs else "chains in unconstrained coordinates"):
        if gibbs:
            draws, values, how = run_gibbs(X, mixture, request, watch)
            outcome, weights = None, None
        else:
            outcome = _by_density(X, mixture, request, watch)
            draws, weights, how = _of_coordinates(X, mixture, outcome.draws), outcome.weights, {}
            values = invariants(X, draws)
    ess, _, rhat, _ = convergence.worst_of_chains(values)
    found = {"min_ess": ess, "max_rhat": rhat} | ({} if gibbs else outcome.diagnostics)
    found |= {"min_ess": ess, "max_rhat": rhat}
    _judge(draws.log_likelihood, ess, rhat, request)
    w, mu, A = _aligned(X, draws)
    return MixtureResult(w, mu, A, draws.log_likelihood, values, how, found, outcome, weights)


def _by_density(X, mixture, request, watch):
    """The `Outcome` in unconstrained coordinates, begun at the best of short Gibbs runs."""
    short = replace(request, n_chains=min(request.n_chains, 4))
    chains, values = best_starts(X, mixture, short)
    parts = [np.concatenate([chain.draws[m] for chain in chains]) for m in range(3)]
    best = int(np.argmax(values))
    order = [best, *(k for k in range(len(chains)) if k != best)]
    log_w, mu, A = (part[order] for part in parts)
    P = classified(X[:: -(-len(X) // CLASSIFIED)], np.exp(log_w), mu, A)
    own = permutations_of(P)
    log_w, mu, A = (_permuted(part, own) for part in (log_w, mu, A))
    starts = mixture.pack(log_w, mu, A)
    model, table = MixtureDensity(mixture.n_parameters), mixture.table()
    target = density_target(
        model, rows_of(X, mixture), np.ones(len(X)), table, n_jobs=request.n_jobs
    )
    with warnings.catch_warnings():  # chains are judged by what does not depend on labels
        warnings.simplefilter("ignore", SamplerConvergenceWarning)
        return sample_density(target, starts, request, watch)[0]


def _of_coordinates(X, mixture, theta):
    """The draws of coordinates (C, n, D)."""
    w, mu, A = mixture.unpack(theta.reshape(-1, theta.shape[-1]))
    value = log_densities(X, w, mu, A).sum(axis=1)
    shape = theta.shape[:2]
    with np.errstate(divide="ignore"):
        parts = np.log(w), mu, np.array(A), value
    return MixtureDraws(*(part.reshape(*shape, *part.shape[1:]) for part in parts))


def _permuted(part, own):
    """Components of each draw in the order of its permutation."""
    return np.take_along_axis(part, own.reshape(*own.shape, *[1] * (part.ndim - 2)), axis=1)


def _aligned(X, draws):
    """Weights, means and triangles with the same labels in all draws, heaviest first."""
    log_w, mu, A = draws.flat
    P = classified(X[:: -(-len(X) // CLASSIFIED)], np.exp(log_w), mu, A)
    own = permutations_of(P)
    w, mu, A = _permuted(np.exp(log_w), own), _permuted(mu, own), _permuted(A, own)
    order = np.argsort(-w.mean(axis=0), kind="stable")
    shape = draws.log_likelihood.shape
    return tuple(part[:, order].reshape(*shape, *part.shape[1:]) for part in (w, mu, A))


def _judge(log_likelihood, ess, rhat, request):
    """Warn of chains that disagree, or carry too little, in what does not depend on labels."""
    total = log_likelihood.size
    if rhat > RHAT and total >= 200:
        each = ", ".join(f"{value:.1f}" for value in log_likelihood.mean(axis=1))
        warnings.warn(
            f"The chains have found different modes, or have not met yet (R-hat {rhat:.2f} of the "
            f"log-likelihood and of log densities of rows): their mean log-likelihoods are {each}. "
            "The draws do not tell how much each mode weighs. Use fewer components, more draws or "
            "a larger n_warmup, or another random_state, and compare the scores of held-out rows.",
            MultimodalPosteriorWarning,
            stacklevel=2,
        )
    elif disagree(rhat, ess, total):
        warnings.warn(
            f"The draws are dependent: R-hat is {rhat:.2f}, and the effective sample size is "
            f"{ess:.0f} of {total} draws, of the log-likelihood and of log densities of rows. "
            f"Increase n_draws (now {request.n_draws}) or thin.",
            SamplerConvergenceWarning,
            stacklevel=2,
        )
