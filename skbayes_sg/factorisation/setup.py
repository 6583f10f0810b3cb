"""The set-up of a run: from a request and the ratings to chains that are ready."""

import numpy as np

from .._base import streams
from ..recipe.price import LONG_SECONDS, warn_if_long
from .chains import N_PROBES, FactorSetup, RatingModel, new_chain
from .draws import FactorDraws, Moments
from .step_check import STEPS, SWEEPS, Continued, places

__all__ = ["prepare", "seconds_of", "tell_price"]

N_SAMPLED = 1000  # ratings from which the reported noise is computed
# Predicted seconds of a pass over any ratings, for each of them, and for each pair of its factors;
# and for the square and the cube of the length of each row of F, whose precision is factored.
LEAST_SECONDS, PASS_SECONDS, RANK_SECONDS, ROW_SECONDS = 5e-4, 3e-8, 3e-11, (4e-9, 2.5e-11)


def tell_price(request, problem):
    """Warn with `LongRunWarning` if all requested passes are predicted to take long."""
    passes, examined = _passes(request)
    seconds = seconds_of(request, problem, passes, len(examined))
    what = f"A run of {request.n_chains * passes} passes over {problem.n_ratings} ratings"
    warn_if_long(seconds, what, "Use n_jobs=-1, fewer draws, or a lower rank.", LONG_SECONDS)


def seconds_of(request, problem, passes, n_examined=0):
    """Predicted seconds of so many passes of all chains, of which some draws are examined."""
    ratings = problem.n_ratings * (PASS_SECONDS + RANK_SECONDS * request.rank**2)
    rows = problem.n_rows * problem.width**2 * (ROW_SECONDS[0] + ROW_SECONDS[1] * problem.width)
    exact = ratings + rows
    of_a_pass = exact if request.sampler.is_exact else STEPS * ratings
    seconds = passes * (LEAST_SECONDS + of_a_pass)
    return request.n_chains * (seconds + SWEEPS * n_examined * (LEAST_SECONDS + exact))


def _passes(request):
    """The number of passes of a chain, and the numbers of its draws that are examined."""
    passes = request.n_warmup + request.thin * request.n_draws
    return passes, places(request.sampler, request.n_chains, request.n_draws, passes)


def prepare(request, problem, scale, known=None):
    """Return the settings of the chains, the chains, and the store of their draws.

    Parameters
    ----------
    request : skbayes_sg.factorisation.request.FactorisationRequest
    problem : skbayes_sg.factorisation.problem.RatingProblem
    scale : float
        Standard deviation of the ratings.
    known : ndarray of int32, shape (n, C), optional
        Codes of the ratings whose running moments are kept instead of draws.

    Returns
    -------
    setup : skbayes_sg.factorisation.chains.FactorSetup
    chains : list of skbayes_sg.factorisation.chains.FactorChain
    store : FactorDraws or None
    """
    alpha = 1.0 if request.noise_std is None else (scale / request.noise_std) ** 2
    model, sampler = RatingModel(problem, request.prior, request.noise, alpha), request.sampler
    rng = streams.of_recipe(request.seed)
    probes = problem.codes[rng.integers(0, problem.n_ratings, N_SAMPLED)]
    schedule = request.n_draws, request.thin, request.n_warmup
    _, examined = _passes(request)
    setup = FactorSetup(model, sampler, *schedule, probes, request.n_jobs, examined)
    store = None
    if known is None:
        store = FactorDraws.empty(problem, (request.n_chains, request.n_draws), sampler.has_means)
    chains = [new_chain(model, request.seed, number) for number in range(request.n_chains)]
    for chain in chains:
        chain.kept = Moments(known) if store is None else store.at(chain.number)
        chain.n_warmup = request.n_warmup
        chain.trace = np.empty((request.n_draws, 2 + N_PROBES))
        chain.continued = Continued.empty(len(examined), len(probes))
    return setup, chains, store
