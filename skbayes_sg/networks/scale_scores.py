"""Whether draws have the scales of the posterior, by the gradient of the likelihood.

Chains that all start at scales that are too large, and have not come back yet, agree with each
other. As a function of the log scale u of a layer, τ = e^u, with weights w = τ z and fixed z, the
log posterior has the slope

    f = -Σ_(weights of τ) w ∂L/∂w - 4 + 4/τ²,    L = Σ_i w_i ℓ_i,

since τ² has the prior InvGamma(2, 2). For φ = 1 - (τ/10)², which is zero at the bound of τ,
integration by parts gives E[φ f + ∂φ/∂u] = 0 under the posterior, so that this mean over the draws
tells how far u is off: for a normal law, the distance is the mean times the variance of u. Its
standard error follows from means of batches of consecutive draws.
"""

import numpy as np

from .._base.interrupts import without_interrupts
from .gradient import gradient_at, pieces_of
from .predictor_map import new_scratch
from .prior_scales import LARGEST, RATE, SHAPE

__all__ = ["SIGMAS", "shift_of_scales"]

MOST_DRAWS = 400  # draws of all chains at which the slope is computed, about
# The standard error takes at least BATCHES batch means, at least LEAST_OF_CHAIN of them from each
# chain, and at least LEAST_DRAWS draws in each batch.
BATCHES, LEAST_OF_CHAIN, LEAST_DRAWS = 16, 4, 10
SIGMAS = 5.0  # standard errors beyond which a shift is more than chance


def shift_of_scales(problem, draws, scales):
    """Return how far log τ of the worst layer is off, in posterior sd, and the standard error.

    The worst layer has the largest shift after subtraction of `SIGMAS` standard errors. The dict is
    empty if there are too few draws, or if the user has fixed the scale.

    Parameters
    ----------
    problem : NetworkProblem
    draws : ndarray of shape (n_chains, n_draws, n_parameters)
    scales : ndarray of shape (n_chains, n_draws, n_groups + n_columns)
    """
    step = -(-draws.shape[0] * draws.shape[1] // MOST_DRAWS)
    draws, tau = draws[:, ::step], problem.groups.split(scales[:, ::step])[0]
    n_parts = max(LEAST_OF_CHAIN, -(-BATCHES // len(draws)))
    if problem.prior_scale is not None or draws.shape[1] < LEAST_DRAWS * n_parts:
        return {}
    share, sd = np.square(tau / LARGEST), np.log(tau).std(axis=(0, 1))
    terms = _slopes(problem, draws, tau) * (1.0 - share) - 2.0 * share
    means = np.array([part.mean(axis=1) for part in np.array_split(terms, n_parts, axis=1)])
    means = means.reshape(-1, tau.shape[2])
    off = sd * np.abs(terms.mean(axis=(0, 1)))
    error = sd * means.std(axis=0, ddof=1) / np.sqrt(len(means))
    worst = int(np.argmax(off - SIGMAS * error))
    return {"scale_shift": float(off[worst]), "scale_shift_mcse": float(error[worst])}


def _slopes(problem, draws, tau):
    """Return the slopes f at the draws, in the shape of τ (n_chains, n_draws, n_groups)."""
    found = 2.0 * (RATE / np.square(tau) - SHAPE)
    gradient, n_groups = np.empty(problem.n_parameters), tau.shape[2]
    pieces, scratch = pieces_of(problem.model), new_scratch(problem.network, problem.dtype)
    for place in np.ndindex(draws.shape[:2]):
        theta = draws[place].astype(np.float64)
        with without_interrupts():
            rows, network = problem.all_rows, problem.network
            gradient_at(pieces, network, rows, theta, 1.0, scratch, gradient)
        found[place] -= np.bincount(problem.groups.of_weight, theta * gradient)[:n_groups]
    return found
