"""Losses of some rows, and their derivatives, at many draws at once, for importance weights.

A block of rows k and draws j has predictors η_jk = η̂_k + u_jk, with η̂ at the centre. The
u_jk = J_k (θ_j - θ̂), an array (n_predictors, n_draws, n_rows), are computed by BLAS.
"""

import numpy as np

from .._base.jit import entry, inlined
from ..priors.table import prior_gradient, prior_value
from .layout import FACT_WEIGHT, frozen

__all__ = ["add_derivatives", "add_losses", "log_prior", "prior_gradients", "prior_values"]
__all__ += ["row_losses"]

TINY = 1e-30  # derivatives with smaller absolute values are set to zero


@inlined
def _predictors(base, moved, j, eta_out):
    """Write the predictors of all rows of a block at draw j to eta_out, (n_rows, n_predictors)."""
    for c in range(moved.shape[0]):
        for k in range(moved.shape[2]):
            eta_out[k, c] = base[k, c] + moved[c, j, k]


@entry
def add_losses(loss, facts, rows, base, moved, eta, values_out):
    """Add Σ_k weight_k ℓ_k(η_jk), by the `loss` of the model, to ``values_out[j]`` for each draw j.

    `eta` is working memory.
    """
    _, n_draws, n = moved.shape
    for j in range(n_draws):
        _predictors(base, moved, j, eta)
        values_out[j] += loss(facts, rows, 0, n, eta)


@entry
def add_derivatives(derivative, facts, rows, base, moved, eta, terms):
    """Overwrite ``moved[c, j, k]`` by weight_k ∂ℓ_k/∂η_c at η_jk.

    Derivatives smaller than `TINY` become zero: in single precision small probabilities turn into
    subnormal numbers, which BLAS multiplies fifty times as slowly. `eta` and `terms` are working
    memory.
    """
    K, n_draws, n = moved.shape
    for j in range(n_draws):
        _predictors(base, moved, j, eta)
        derivative(facts, rows, 0, n, eta, terms)
        for c in range(K):
            for k in range(n):
                term = facts[rows[k], FACT_WEIGHT] * terms[k, c]
                moved[c, j, k] = term if abs(term) > TINY else 0.0


@entry
def row_losses(loss, facts, rows, base, directions, places, eta, values_out):
    """Write weight_k ℓ_k(η̂_k + s_km v_k) to ``values_out[k, m]``, for each row k and place m.

    The places s_km are multiples of a direction v_k in the space of the row's predictors.
    """
    n, K = base.shape
    for k in range(n):
        for m in range(places.shape[1]):
            for c in range(K):
                eta[0, c] = base[k, c] + places[k, m] * directions[k, c]
            values_out[k, m] = loss(facts, rows, k, k + 1, eta)


@entry
def prior_values(prior, theta, values_out):
    """Add the negative log prior density -log p(θ_j) to ``values_out[j]``, for each row θ_j."""
    for j in range(theta.shape[0]):
        values_out[j] += prior_value(prior, theta[j])


def log_prior(row, places):
    """Return the log density, at places of any shape, of the prior in one row of a prior table.

    For the prior of a positive parameter v, the places are values of log v, and so is the density.
    """
    found = np.zeros(np.size(places))
    prior_values(frozen(row[None]), np.array(places, dtype=np.float64).reshape(-1, 1), found)
    return -found.reshape(np.shape(places))


@entry
def prior_gradients(prior, theta, g_out):
    """Add the gradient of the negative log prior at θ_j to ``g_out[j]``, for each row θ_j."""
    for j in range(theta.shape[0]):
        prior_gradient(prior, theta[j], g_out[j])
