"""The scales in which chains move, and the noise of minibatches, from squares of row gradients.

F_j = Σ_i w_i (∂_jℓ_i)², averaged over the weights, and over the biases, of each layer (of each
output, where the outputs are a mean and a log sd), approximates the curvature of the negative
log-likelihood. With the precision π of the prior,

    s = (π + F)^(-1/2),    V = N s² Σ_i w_i² (∂_jℓ_i)²,

and V is the variance of a one-row gradient in the coordinates θ = s∘φ. Averages over layers hide
noisy directions, and averages over rows hide noisy rows. The size of the kicks that a batch of n
rows gives is therefore measured too: with r_i = (N/n) w_i s∘∇ℓ_i of its rows it is

    q = Σ_ik (r_i·r_k)² / Σ_i |r_i|²,

which is at most the largest eigenvalue of Σ r_i r_iᵀ, and is estimated from rows drawn for this.
"""

import numpy as np

from .._base.interrupts import without_interrupts
from ..kernels.layout import FACT_WEIGHT
from .architecture import blocks_of
from .gradient import add_squares, gradients_of_rows, pieces_of

__all__ = [
    "curvature_at", "noise_of_differences", "noise_of_rows", "rescale", "squares_of_gradients",
    "sums_of_kicks",
]  # fmt: skip

MOST_ROWS = 1024  # F is estimated from this many rows, drawn at random, where there are more
# q is estimated from at most MOST_KICKS rows, whose gradients have at most KICK_NUMBERS entries
# together.
MOST_KICKS, KICK_NUMBERS = 256, 1 << 22


def squares_of_gradients(problem, theta, scratch, rng, power=1.0):
    """Return Σ_i w_i^power (∂_jℓ_i)² over all rows, averaged within layers, (n_parameters,)."""
    N, network = problem.n_rows, problem.network
    some = N > MOST_ROWS
    rows = problem.rows(np.sort(rng.integers(0, N, MOST_ROWS))) if some else problem.all_rows
    squares = np.zeros((2, network.sizes[1:].sum()))
    with without_interrupts():
        pieces = pieces_of(problem.model)
        add_squares(pieces, network, rows, theta, float(power), scratch, squares)
    squares *= N / len(rows.x)
    found = _averaged(problem, squares)
    if network.n_extra:
        found[-1] = 2.0 * (problem.facts[:, FACT_WEIGHT] ** power).sum()
    return found


def _averaged(problem, squares):
    found, first = np.zeros(problem.n_parameters), 0
    blocks = blocks_of(problem.network)
    for weights, biases in zip(blocks[::2], blocks[1::2], strict=True):
        n_in, n_out = weights.shape
        of_units = squares[:, first : first + n_out]
        own_heads = biases is blocks[-1] and problem.network.log_sd >= 0
        if not own_heads:
            of_units = np.repeat(of_units.mean(axis=1, keepdims=True), n_out, axis=1)
        found[weights.start : weights.stop] = np.tile(of_units[0] / n_in, n_in)
        found[biases.start : biases.stop] = of_units[1]
        first += n_out
    return found


def curvature_at(problem, chain):
    """Return F (n_parameters,) at the position of a chain."""
    return squares_of_gradients(problem, chain.theta, chain.scratch, chain.streams.rows)


def rescale(chain):
    """Set s = (π + F)^(-1/2) with the present prior precisions π, if the coordinates are scaled.

    F stays what it was when it was measured, so that s depends on the scales of the prior alone:
    given these, the coordinates are fixed, and the dynamics leaves the posterior invariant.
    """
    if chain.memory.curvature is not None:
        chain.memory.scale = 1.0 / np.sqrt(chain.prior[0] + chain.memory.curvature)


def noise_of_rows(problem, chain, scale):
    """Return V (n_parameters,), the variances of a one-row gradient in scaled coordinates."""
    rng = chain.streams.rows
    squares = squares_of_gradients(problem, chain.theta, chain.scratch, rng, power=2.0)
    return problem.n_rows * squares * scale * scale


def noise_of_differences(problem, chain, scale, anchor):
    """Return the variance over rows of N w_i s∘(∇ℓ_i(θ) - ∇ℓ_i(θ̃)), averaged over parameters."""
    there = _some_gradients(problem, chain, scale, problem.n_rows, (chain.theta, anchor))
    return float((there[0] - there[1]).var(axis=0).mean())


def _some_gradients(problem, chain, scale, c, places):
    """Return c w_i s∘∇ℓ_i of a few random rows, the same at all `places` θ: (places, rows, P)."""
    m = min(MOST_KICKS, max(2, KICK_NUMBERS // len(scale)))
    r = np.empty((len(places), m, len(scale)))
    rows = problem.rows(chain.streams.rows.integers(0, problem.n_rows, m))
    with without_interrupts():
        pieces = pieces_of(problem.model)
        for theta, found in zip(places, r, strict=True):
            gradients_of_rows(pieces, problem.network, rows, theta, c, chain.scratch, found)
    return r * scale


def sums_of_kicks(problem, chain, scale, n):
    """Return numerator and denominator of q for batches of n rows, at the position of the chain.

    Both are estimated from some rows, at least two. A few rows may have most of the noise, so that
    callers add up the two sums of several measurements, instead of averaging ratios.
    """
    (r,) = _some_gradients(problem, chain, scale, problem.n_rows / n, (chain.theta,))
    m = len(r)
    products = r @ r.T
    lengths = np.diag(products)
    alone, all_pairs = np.square(lengths).sum(), np.square(products).sum()
    return np.array([alone + (n - 1) / (m - 1) * (all_pairs - alone), lengths.sum()])
