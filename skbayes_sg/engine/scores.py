"""Gradients of the log posterior (scores) at many draws, from all rows."""

import numpy as np
import sklearn

from ..kernels.layout import FACT_WEIGHT
from ..kernels.many_draws import prior_gradients

__all__ = ["scores_of_all_rows", "scores_of_rows"]

MOST_ROWS = 4096  # largest number of rows that are processed together


def scores_of_all_rows(target, thetas):
    """Return the gradient of log p(θ | rows of the target) at each row θ of `thetas`, (n, D)."""
    slopes = scores_of_rows(target, thetas)
    prior_gradients(target.prior, np.ascontiguousarray(thetas, dtype=np.float64), slopes)
    return -slopes


def scores_of_rows(target, thetas):
    """Return Σ weight_i ∇ℓ_i over all data, at each row θ of `thetas`, (n, D)."""
    K, n = target.model.n_predictors, len(thetas)
    room = sklearn.get_config()["working_memory"] * 2**20 / (4 * 8 * n * K)
    size, total = int(np.clip(room, 1, MOST_ROWS)), np.zeros_like(thetas)
    for first in range(0, target.n_rows, size):
        rows = slice(first, min(first + size, target.n_rows))
        A, facts = target.design(rows), target.data.facts[rows]
        eta = np.ascontiguousarray(np.moveaxis(target.along(A, thetas.T), 2, 0))
        for k in range(n):
            eta[k] = facts[:, FACT_WEIGHT, None] * target.derivative(facts, eta[k])
        for J, where, terms in zip(
            target.factors(A), target.positions(), np.moveaxis(eta, 2, 0), strict=True
        ):
            total[:, where] += (J.T @ terms.T).T
    return total
