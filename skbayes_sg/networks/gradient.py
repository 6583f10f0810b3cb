"""Loss and gradient of rows under a network: the predictor map, and a likelihood of its predictors.

Σ_i c w_i ℓ_i(η_i(θ)) and its gradient Σ_i c w_i J_iᵀ ∂ℓ_i/∂η_i, with the kernels of
`skbayes_sg.models`. A predictor that is a logarithm of a standard deviation lies within ±6; beyond,
its derivative is zero.
"""

from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inner, pointer
from ..kernels.layout import BLOCK, DERIVATIVE, FACT_WEIGHT, LOSS, Likelihood
from .predictor_map import LARGEST_LOG_SD, backward, forward, load, rate

__all__ = ["Rows", "add_likelihood", "add_squares", "gradient_at", "gradients_of_rows", "pieces_of"]
__all__ += ["predict_draws"]


class Rows(NamedTuple):
    """Some rows of the data, in the form that kernels take."""

    x: np.ndarray  # (n, columns), standardised, in the precision of the arithmetic
    facts: np.ndarray  # (n, 2) float64, read-only: label and weight of each row
    numbers: np.ndarray  # (n,) int64: 0, 1, ..., n - 1


def pieces_of(model):
    """Return the loss and derivative kernels of a model, as first-class functions of Numba."""
    return Likelihood(pointer(model.loss, LOSS), pointer(model.derivative, DERIVATIVE))


@inner
def _weigh(network, rows, start, stop, c, power, scratch):
    """Multiply terms by c w^power; set those of a log sd at an end of its range to zero."""
    terms, s = scratch.terms, network.log_sd
    for k in range(stop - start):
        weight = rows.facts[start + k, FACT_WEIGHT]
        factor = c * (weight if power == 1.0 else weight**power)
        for j in range(terms.shape[1]):
            terms[k, j] *= factor
        if s >= 0 and abs(scratch.eta[k, s]) >= LARGEST_LOG_SD:
            terms[k, s] = 0.0


@inner
def _resist(network, x, n, friction, scratch):
    """Multiply the terms t_i of each row i by 1 + f t_i·dη_i/dt, clipped to [0, 2].

    t_i·dη_i/dt = c w_i ∇ℓ_i·dθ/dt, the gradient of the row along the velocity of θ.
    """
    rate(network, x, scratch, n, scratch.eta)
    for k in range(n):
        along = 0.0
        for j in range(scratch.terms.shape[1]):
            along += scratch.terms[k, j] * scratch.eta[k, j]
        factor = 1.0 + min(max(friction * along, -1.0), 1.0)
        for j in range(scratch.terms.shape[1]):
            scratch.terms[k, j] *= factor


@inner
def add_likelihood(
    likelihood, network, rows, start, stop, c, valued, scratch, gradient_out, friction=0.0
):
    """Add c Σ_i w_i ∇ℓ_i over rows start:stop to gradient_out; return c Σ_i w_i ℓ_i if `valued`.

    Otherwise 0 is returned. θ is what `load` has left in the scratch. With a friction f > 0 the
    gradient of row i is multiplied by 1 + f c w_i ∇ℓ_i·dθ/dt, clipped to [0, 2], where dθ/dt is the
    velocity in the scratch.
    """
    loss, nothing = 0.0, scratch.eta[:2, :0]
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        x = rows.x[first:last]
        forward(network, scratch.weights, x, scratch.values, scratch.eta)
        if valued:
            loss += c * likelihood.loss(rows.facts, rows.numbers, first, last, scratch.eta)
        likelihood.derivative(rows.facts, rows.numbers, first, last, scratch.eta, scratch.terms)
        _weigh(network, rows, first, last, c, 1.0, scratch)
        if friction > 0.0:
            _resist(network, x, last - first, friction, scratch)
        backward(network, x, scratch, last - first, gradient_out, nothing)
    return loss


@entry
def gradient_at(likelihood, network, rows, theta, c, scratch, gradient_out):
    """gradient_out ← c Σ_i w_i ∇ℓ_i(θ) over all `rows`; returns c Σ_i w_i ℓ_i(θ)."""
    load(theta, scratch.weights)
    gradient_out[:] = 0.0
    n = rows.x.shape[0]
    return add_likelihood(likelihood, network, rows, 0, n, c, True, scratch, gradient_out)


@entry
def gradients_of_rows(likelihood, network, rows, theta, c, scratch, gradients_out):
    """gradients_out[k] ← c w_k ∇ℓ_k(θ) for each of the `rows`."""
    load(theta, scratch.weights)
    gradients_out[:] = 0.0
    for k in range(rows.x.shape[0]):
        own = gradients_out[k]
        add_likelihood(likelihood, network, rows, k, k + 1, c, False, scratch, own)


@entry
def add_squares(likelihood, network, rows, theta, power, scratch, squares_out):
    """Add sums of squares of single-row gradients to squares_out (2, units): see `backward`.

    Squares are weighted by w_i^power: 1 for curvature, 2 for the noise of a minibatch.
    """
    load(theta, scratch.weights)
    for first in range(0, rows.x.shape[0], BLOCK):
        last = min(first + BLOCK, rows.x.shape[0])
        x = rows.x[first:last]
        forward(network, scratch.weights, x, scratch.values, scratch.eta)
        likelihood.derivative(rows.facts, rows.numbers, first, last, scratch.eta, scratch.terms)
        _weigh(network, rows, first, last, 1.0, 0.5 * power, scratch)
        backward(network, x, scratch, last - first, scratch.eta[0], squares_out)


@entry
def predict_draws(network, draws, x, scratch, eta_out):
    """Set eta_out (S, n, K) to η of rows x (n, columns) under all draws (S, n_weights)."""
    for s in range(draws.shape[0]):
        load(draws[s], scratch.weights)
        for first in range(0, x.shape[0], BLOCK):
            last = min(first + BLOCK, x.shape[0])
            forward(network, scratch.weights, x[first:last], scratch.values, scratch.eta)
            for i in range(last - first):
                for k in range(scratch.eta.shape[1]):
                    eta_out[s, first + i, k] = scratch.eta[i, k]
