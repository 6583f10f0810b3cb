"""The posterior of a mixture, by Gibbs sweeps or by the samplers of row densities."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from .._base import streams
from ..diagnostics import convergence
from ..diagnostics.verdict import RHAT, disagree
from ..exceptions import MultimodalPosteriorWarning, SamplerConvergenceWarning
from ..recipe.crossing import cross
from .density import density_target
from .fit import sample_density
from .mixture_chains import (
    MixtureDraws,
    PriceOfSweeps,
    component_log_densities,
    invariants,
    log_densities,
    run_gibbs,
    short_runs,
)
from .mixture_density import MixtureDensity, rows_of
from .mixture_modes import find_modes, seconds_of_search
from .relabel import permutations_of

__all__ = ["MixtureResult", "classified", "sample_mixture"]

CLASSIFIED = 200  # number of rows, at most, whose classification aligns the labels of draws
FEW = 200  # with fewer draws than this there are no warnings about modes
NAMED = 3  # number of modes, at most, that a warning describes


@dataclass(frozen=True)
class MixtureResult:
    """Draws with aligned labels, in standardised columns, and how they were made.

    Shapes are those of C chains of n draws each, with K components in d columns.
    """

    w: np.ndarray  # weights of the components, (C, n, K)
    mu: np.ndarray  # means, (C, n, K, d)
    A: np.ndarray  # lower triangles, (C, n, K, d, d), of the precisions A Aᵀ
    log_likelihood: np.ndarray  # (C, n)
    values: np.ndarray  # quantities that do not depend on labels, (C, n, rows + 1): `invariants`
    chosen: dict  # numbers of sweeps before the first draw and between draws; else empty
    diagnostics: dict
    outcome: Any = None  # the `Outcome` of `sample_density`; None for Gibbs sweeps
    weights: Any = None  # weights of the draws, or None if all are the same


def classified(X, w, mu, A):
    """Return p(component | x_i) of rows under draws, (draws, rows, K)."""
    return softmax(component_log_densities(X, w, mu, A), axis=2)


def sample_mixture(X, mixture, request, *, gibbs, units=(0.0, 1.0), watch=None):
    """Draw from the posterior of a mixture given standardised rows X; return the `MixtureResult`.

    With `gibbs` the draws are by Gibbs sweeps, and else by the sampler of the request for the
    density of the rows. `units` are the centre and the unit of the columns before standardisation,
    in which warnings describe modes.
    """
    target = density_target(
        MixtureDensity(mixture),
        rows_of(X, mixture),
        np.ones(len(X)),
        mixture.table,
        n_jobs=request.n_jobs,
    )
    price = PriceOfSweeps(X, mixture, request.n_chains)
    if gibbs:
        price.tell_run(request, seconds_of_search(mixture, len(X)))
    with request.timed("short runs"):
        chains, modes = _begun(X, mixture, target, request)
    with request.timed("Gibbs sweeps" if gibbs else "chains in unconstrained coordinates"):
        if gibbs:
            draws, values, how = run_gibbs(X, mixture, chains, modes, request, price, watch)
            outcome, weights = None, None
        else:
            outcome = _by_density(X, mixture, target, chains, modes, request, watch)
            draws, weights, how = _of_coordinates(X, mixture, outcome.draws), outcome.weights, {}
            values = invariants(X, draws)
    ess, _, rhat, _ = convergence.worst_of_chains(values)
    found = ({} if gibbs else outcome.diagnostics) | {"min_ess": ess, "max_rhat": rhat}
    if modes is None or not _judge_modes(modes, draws, found, units):
        _judge(draws.log_likelihood, ess, rhat, request)
    w, mu, A = _aligned(X, draws)
    return MixtureResult(w, mu, A, draws.log_likelihood, values, how, found, outcome, weights)


def _begun(X, mixture, target, request):
    """Return a `MixtureChain` for each chain where it begins, and the `MixtureModes` or None.

    If several modes matter, chains begin at these. Otherwise each begins where the best of its
    short runs ended, apart from those near modes that do not matter.
    """
    runs, values = short_runs(X, mixture, request)
    ends = [mixture.pack(c.log_w[None], c.mu[None], c.A[None])[0] for own in runs for c in own]
    rng = streams.of_proposal(request.seed)
    modes, near = find_modes(mixture, target, np.array(ends), values.ravel(), rng)
    values = np.where(near.reshape(values.shape), values, -np.inf)
    best = runs[int(values.max(axis=1).argmax())][int(values.max(axis=0).argmax())]
    chains = [own[int(np.argmax(v))] for own, v in zip(runs, values, strict=True)]
    for chain, own in zip(chains, values, strict=True):
        if np.isneginf(own).all():
            chain.log_w, chain.mu, chain.A = best.log_w.copy(), best.mu.copy(), best.A.copy()
    if modes is not None:
        for chain, m in zip(chains, modes.of_chains(len(chains)), strict=True):
            modes.place(chain, modes.centres[m])
    return chains, modes


def _by_density(X, mixture, target, chains, modes, request, watch):
    """Return the `Outcome` of `sample_density`, begun at the modes or else where the chains are."""
    if modes is not None:
        starts = modes.centres
    else:
        parts = zip(*((chain.log_w, chain.mu, chain.A) for chain in chains), strict=True)
        log_w, mu, A = map(np.array, parts)
        P = classified(X[:: -(-len(X) // CLASSIFIED)], np.exp(log_w), mu, A)
        own = permutations_of(P)
        starts = mixture.pack(*(_permuted(part, own) for part in (log_w, mu, A)))
    request = replace(request, comparable=False)  # chains are judged by their `invariants`
    return sample_density(target, starts, request, watch)[0]


def _of_coordinates(X, mixture, theta):
    """Return the `MixtureDraws` for coordinates θ (n_chains, n_draws, D)."""
    w, mu, A = mixture.unpack(theta.reshape(-1, theta.shape[-1]))
    value = log_densities(X, w, mu, A).sum(axis=1)
    shape = theta.shape[:2]
    with np.errstate(divide="ignore"):
        parts = np.log(w), mu, np.array(A), value
    return MixtureDraws(*(part.reshape(*shape, *part.shape[1:]) for part in parts))


def _permuted(part, own):
    """Return `part` (draws, K, ...) with the components of each draw in the order of `own`."""
    return np.take_along_axis(part, own.reshape(*own.shape, *[1] * (part.ndim - 2)), axis=1)


def _aligned(X, draws):
    """Return weights, means and triangles with the same labels in all draws.

    The component with the largest mean weight comes first.
    """
    log_w, mu, A = draws.flat
    P = classified(X[:: -(-len(X) // CLASSIFIED)], np.exp(log_w), mu, A)
    own = permutations_of(P)
    w, mu, A = _permuted(np.exp(log_w), own), _permuted(mu, own), _permuted(A, own)
    order = np.argsort(-w.mean(axis=0), kind="stable")
    shape = draws.log_likelihood.shape
    return tuple(part[:, order].reshape(*shape, *part.shape[1:]) for part in (w, mu, A))


def _judge_modes(modes, draws, found, units):
    """Add the modes to the diagnostics `found`, and warn if chains do not cross between them.

    Return whether there was a warning.
    """
    shape = draws.log_likelihood.shape
    member = modes.members(modes.mixture.pack(*draws.flat)).reshape(shape)
    of_mode = member[..., None] == np.arange(len(modes))
    shares = of_mode.mean(axis=(0, 1))
    found["n_modes"] = float(len(modes))
    found |= {f"mode_share_{m}": float(share) for m, share in enumerate(shares)}
    if member.size < FEW or cross(of_mode.astype(float), modes.shares, shares):
        return False
    said = "; ".join(
        f"{modes.described(m, units)}, with about {modes.shares[m]:.0%} of the posterior and "
        f"{shares[m]:.0%} of the draws"
        for m in range(min(len(modes), NAMED))
    )
    warnings.warn(
        f"The posterior has {len(modes)} modes, and the chains do not cross between them: their "
        f"draws do not tell how much each mode weighs. They have {said}. Use fewer components, "
        "more draws or more informative priors, and compare the scores of held-out rows.",
        MultimodalPosteriorWarning,
        stacklevel=2,
    )
    return True


def _judge(log_likelihood, ess, rhat, request):
    """Warn if chains disagree, or their effective sample size is too small.

    `ess` and `rhat` are the worst of the quantities that do not depend on labels.
    """
    total = log_likelihood.size
    if rhat > RHAT and total >= FEW:
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
