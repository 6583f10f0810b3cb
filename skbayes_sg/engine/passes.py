"""Kernels that pass over a range of rows once: value, gradient, second-order expansion."""

import numpy as np

from .._jit import jit
from .layout import BLOCK, FACT_PREDICTOR, FACT_WEIGHT
from .rows import predictors, scatter

__all__ = ["expand", "loss_and_gradient"]


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
def expand(data, derivative, curvature, theta, rows, start, stop, facts_out, weights_out):
    """Second-order expansion of ``rows[start:stop]`` in their predictors at θ.

    Row k of `facts_out` gets predictors and terms ∂ℓ/∂η in its columns for them; row k of
    `weights_out` (n, K, K) gets weight_i ∂²ℓ_i/∂η². Either may have no rows.
    """
    K = data.n_linear + data.n_extra
    eta, terms, column = np.empty((BLOCK, K)), np.empty((BLOCK, K)), np.empty((BLOCK, K))
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        predictors(data, theta, rows, first, last, eta)
        if facts_out.shape[0] > 0:
            derivative(data.facts, rows, first, last, eta, terms)
            for k in range(first, last):
                for c in range(K):
                    facts_out[k, FACT_PREDICTOR + c] = eta[k - first, c]
                    facts_out[k, FACT_PREDICTOR + K + c] = terms[k - first, c]
        for c in range(K if weights_out.shape[0] > 0 else 0):
            column[:, :] = 0.0
            column[:, c] = 1.0
            curvature(data.facts, rows, first, last, eta, column)
            for k in range(first, last):
                weight = data.facts[rows[k], FACT_WEIGHT]
                for b in range(K):
                    weights_out[k, b, c] = weight * column[k - first, b]
