"""The predictor map of a multilayer perceptron: its kernels, and their working memory.

forward   (θ, rows) -> η:   A_0 = X,  A_l = φ(A_{l-1} W_l + b_l),  η = A_{L-1} W_L + b_L
rate      dθ/dt -> J_i dθ/dt:   dA_l = φ'(A_l) ∘ (dA_{l-1} W_l + A_{l-1} dW_l + db_l)
backward  terms -> Σ_i J_iᵀ t_i:   D_L = T,  D_{l-1} = (D_l W_lᵀ) ∘ φ'(A_{l-1}),
          ∂W_l = A_{l-1}ᵀ D_l,  ∂b_l = Σ_i D_l[i]

Rows come in blocks, dense and in the precision of the arithmetic. All products are BLAS, which is
faster than compiled loops even for a hundred rows of eight columns.
"""

from typing import NamedTuple

import numpy as np

from .._base.jit import inner
from ..kernels.layout import BLOCK
from .activations import IDENTITY, activate, damp
from .architecture import n_weights

__all__ = ["NetworkScratch", "backward", "forward", "load", "new_scratch", "rate"]

LARGEST_LOG_SD = 6.0  # predictors that are logarithms of standard deviations are clipped to ±this


class NetworkScratch(NamedTuple):
    """Working memory of one chain for the kernels of the predictor map."""

    weights: np.ndarray  # (n_weights,): θ in the precision of the arithmetic
    values: np.ndarray  # A_l of a block of rows, one layer after the other
    deltas: np.ndarray  # two times (BLOCK, widest layer): D_l and D_{l-1}, in turns
    velocity: np.ndarray  # (n_weights,): dθ/dt in the precision of the arithmetic
    rates: np.ndarray  # three times (BLOCK, widest layer): dA_l and dA_{l-1} in turns; dA_{l-1} W_l
    product: np.ndarray  # A_{l-1}ᵀ D_l of one layer
    sums: np.ndarray  # Σ_i D_l[i] of one layer
    eta: np.ndarray  # (BLOCK, n_predictors) float64: η, and dη/dt after `rate`
    terms: np.ndarray  # (BLOCK, n_predictors) float64: derivatives of the loss of each row by η


def new_scratch(network, dtype):
    """Return the `NetworkScratch` of a network for arithmetic in this precision."""
    sizes = network.sizes
    n, of_block = n_weights(network), BLOCK * sizes[1:].max()
    lengths = n, BLOCK * sizes[1:].sum(), 2 * of_block, n, 3 * of_block
    of_layer = (sizes[:-1] * sizes[1:]).max(), sizes[1:].max()
    arrays = [np.zeros(n, dtype) for n in (*lengths, *of_layer)]
    predictors = np.zeros((2, BLOCK, sizes[-1] + network.n_extra))
    return NetworkScratch(*arrays, *predictors)


@inner
def load(theta, weights):
    """Copy θ to `weights`, in the precision of the arithmetic."""
    for j in range(weights.shape[0]):
        weights[j] = theta[j]


@inner
def forward(network, weights, x, values, eta_out):
    """Set eta_out (n, K) to η of rows x (n, columns); the activations stay in `values`."""
    sizes, n, first, place = network.sizes, x.shape[0], 0, 0
    n_layers, below = sizes.shape[0] - 1, x
    for layer in range(n_layers):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        W = weights[first : first + n_in * n_out].reshape((n_in, n_out))
        first += n_in * n_out
        above = values[place : place + n * n_out].reshape((n, n_out))
        np.dot(below, W, above)
        kind = network.activation if layer + 1 < n_layers else IDENTITY
        activate(above, weights[first : first + n_out], kind)
        first += n_out
        place += n * n_out
        below = above
    for i in range(n):
        for k in range(sizes[n_layers]):
            eta_out[i, k] = below[i, k]
    if network.n_extra > 0:
        for i in range(n):
            eta_out[i, sizes[n_layers]] = weights[first]
    if network.log_sd >= 0:
        for i in range(n):
            s = eta_out[i, network.log_sd]
            eta_out[i, network.log_sd] = min(max(s, -LARGEST_LOG_SD), LARGEST_LOG_SD)


@inner
def rate(network, x, scratch, n, eta_out):
    """Set eta_out to dη/dt (n, K) of rows x whose activations `forward` has left.

    dθ/dt is the velocity in the scratch. The bounds of a log sd are ignored, since the terms of
    rows at a bound are zero.
    """
    sizes, values, rates = network.sizes, scratch.values, scratch.rates
    n_layers, third, first, place, below = sizes.shape[0] - 1, rates.shape[0] // 3, 0, 0, x
    moved = rates[:0].reshape((0, 1))
    for layer in range(n_layers):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        stop, start = first + n_in * n_out, third * (layer % 2)
        above = rates[start : start + n * n_out].reshape((n, n_out))
        np.dot(below, scratch.velocity[first:stop].reshape((n_in, n_out)), above)
        if layer > 0:
            passed, W = rates[2 * third : 2 * third + n * n_out], scratch.weights[first:stop]
            np.dot(moved, W.reshape((n_in, n_out)), passed.reshape((n, n_out)))
            _add(rates[start : start + n * n_out], passed)
        activate(above, scratch.velocity[stop : stop + n_out], IDENTITY)
        below = values[place : place + n * n_out].reshape((n, n_out))
        if layer + 1 < n_layers:
            damp(above, below, network.activation)
        first, place, moved = stop + n_out, place + n * n_out, above
    for i in range(n):
        for k in range(sizes[n_layers]):
            eta_out[i, k] = moved[i, k]
        if network.n_extra > 0:
            eta_out[i, sizes[n_layers]] = scratch.velocity[first]


@inner
def _add(values, others):
    for k in range(values.shape[0]):
        values[k] += others[k]


@inner
def backward(network, x, scratch, n, gradient_out, squares_out):
    """Add Σ_i J_iᵀ terms_i to gradient_out, for n rows x whose activations `forward` has left.

    If `squares_out` (2, units) has columns, then Σ_i δ_i² |a_i|² and Σ_i δ_i² of each unit are
    added to it instead, with a_i the inputs and δ_i the delta of the unit in row i: the sums of
    squares of single-row gradients of its weights, and of its bias.
    """
    sizes, weights, values = network.sizes, scratch.weights, scratch.values
    n_layers = sizes.shape[0] - 1
    first = weights.shape[0] - network.n_extra
    place, unit = n * sizes[1:].sum(), sizes[1:].sum()
    half = scratch.deltas.shape[0] // 2
    K = sizes[n_layers]
    deltas = scratch.deltas[: n * K].reshape((n, K))
    for i in range(n):
        for k in range(K):
            deltas[i, k] = scratch.terms[i, k]
    for up in range(n_layers):
        layer = n_layers - 1 - up
        n_in, n_out = sizes[layer], sizes[layer + 1]
        first -= n_in * n_out + n_out
        place -= n * n_out
        unit -= n_out
        below = x
        if layer > 0:
            below = values[place - n * n_in : place].reshape((n, n_in))
        if squares_out.shape[1] > 0:
            _add_squares(below, deltas, squares_out[:, unit : unit + n_out])
        else:
            product = scratch.product[: n_in * n_out]
            np.dot(below.T, deltas, product.reshape((n_in, n_out)))
            _add(gradient_out[first : first + n_in * n_out], product)
            _add_sums(deltas, scratch.sums, gradient_out[first + n_in * n_out :])
        if layer > 0:
            W = weights[first : first + n_in * n_out].reshape((n_in, n_out))
            start = half * ((up + 1) % 2)
            lower = scratch.deltas[start : start + n * n_in].reshape((n, n_in))
            np.dot(deltas, W.T, lower)
            damp(lower, below, network.activation)
            deltas = lower
    if network.n_extra > 0 and squares_out.shape[1] == 0:
        for i in range(n):
            gradient_out[weights.shape[0] - 1] += scratch.terms[i, K]


@inner
def _add_sums(deltas, sums, gradient_out):
    """Add Σ_i D[i] to gradient_out; `sums` avoids a conversion to float64 in each row."""
    n, n_out = deltas.shape
    sums[:] = 0.0
    for i in range(n):
        for j in range(n_out):
            sums[j] += deltas[i, j]
    for j in range(n_out):
        gradient_out[j] += sums[j]


@inner
def _add_squares(below, deltas, squares_out):
    """Add Σ_i δ_ij² |a_i|² and Σ_i δ_ij² of the units j of a layer to the rows of squares_out."""
    for i in range(deltas.shape[0]):
        norm = 0.0
        for j in range(below.shape[1]):
            norm += below[i, j] * below[i, j]
        for j in range(deltas.shape[1]):
            square = deltas[i, j] * deltas[i, j]
            squares_out[0, j] += square * norm
            squares_out[1, j] += square
