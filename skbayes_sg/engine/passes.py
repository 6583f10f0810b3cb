"""Kernels that pass over a range of rows once: value, gradient, curvature, terms at a point."""

import numpy as np

from .._jit import jit
from .layout import BLOCK, FACT_PREDICTOR, FACT_WEIGHT
from .rows import predictors, scatter

__all__ = ["curvature_weights", "loss_and_gradient", "terms_at"]


@jit
def loss_and_gradient(data, loss, derivative, theta, rows, start, stop, g_out):
    """Σ weight_i ℓ_i over ``rows[start:stop]``; its gradient is added to `g_out`."""
    n_predictors = data.n_linear + data.n_extra
    eta, terms = np.empty((BLOCK, n_predictors)), np.empty((BLOCK, n_predictors))
    ones = np.ones(stop)
    total = 0.0
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        predictors(data, theta, rows, first, last, eta)
        total += loss(data.facts, rows, first, last, eta)
        derivative(data.facts, rows, first, last, eta, terms)
        scatter(data, rows, first, last, ones, terms, g_out)
    return total


@jit
def curvature_weights(data, curvature, theta, rows, start, stop, weights_out):
    """weight_i ∂²ℓ_i/∂η² of ``rows[start:stop]`` at θ into `weights_out` (n, K, K)."""
    n_predictors = data.n_linear + data.n_extra
    eta, column = np.empty((BLOCK, n_predictors)), np.empty((BLOCK, n_predictors))
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        predictors(data, theta, rows, first, last, eta)
        for c in range(n_predictors):
            column[:, :] = 0.0
            column[:, c] = 1.0
            curvature(data.facts, rows, first, last, eta, column)
            for k in range(first, last):
                for b in range(n_predictors):
                    weights_out[k - start, b, c] = (
                        data.facts[rows[k], FACT_WEIGHT] * column[k - first, b]
                    )


@jit
def terms_at(data, derivative, theta, rows, start, stop, facts_out):
    """Predictors and terms at θ, side by side, into the columns of `facts_out`."""
    n_predictors = data.n_linear + data.n_extra
    eta, terms = np.empty((BLOCK, n_predictors)), np.empty((BLOCK, n_predictors))
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        predictors(data, theta, rows, first, last, eta)
        derivative(data.facts, rows, first, last, eta, terms)
        for k in range(first, last):
            for c in range(n_predictors):
                facts_out[rows[k], FACT_PREDICTOR + c] = eta[k - first, c]
                facts_out[rows[k], FACT_PREDICTOR + n_predictors + c] = terms[k - first, c]
