"""Steps with gradients of some rows: any dynamics of `skbayes_sg.dynamics`, plain or anchored.

In the coordinates θ = s∘φ, with n of N rows a step, drawn uniformly with replacement::

    minibatch  ĝ = s∘[(N/n) Σ_k w_k ∇ℓ_k(θ) + ∇prior(θ)]
    anchored   ĝ = s∘[G + (N/n) Σ_k w_k (∇ℓ_k(θ) - ∇ℓ_k(θ̃)) + ∇prior(θ)]

where G is Σ_i w_i ∇ℓ_i(θ̃) or its estimate: control variate, SVRG-LD and vrSG-MCMC.

The noise-corrected dynamics of "auto" is BAOAB with a second friction. Every kick adds δ² C to the
covariance of v, with C = (N²/n) Cov(w s∘∇ℓ) over the rows: about (N/n) times the curvature, so that
stiff directions get far more than others. What keeps the covariance of v at the identity is the
friction δ C/2. It costs no noise and no matrix, since C v is a mean over the rows of the batch
itself: at the last of the k = 2 steps of a cycle, the gradient of row i is multiplied by

    1 + f (N/n) w_i ∇ℓ_i·(s∘v),  at most 2 and at least 0.

With small kicks f is kδ/2. In general, a cycle adds M = δ² Σ r_i r_iᵀ of a batch to the covariance
of v k times, and multiplies v by 1 - (f/δ) M once. The f that keeps the trace of the covariance is

    k tr M + tr (1 - (f/δ) M)² = P:   f = kδ/2 · 2/(1 + √(1 - kδ²q)),  q = tr M²/(δ² tr M).

The other steps of a cycle do not have that friction, so that v is as much too hot before the last
step as it is too cold after it. The step O comes at the last step of a cycle as well::

    v ← v - δ ĝ;  φ ← φ + δ v                                    `kick_and_drift`, k - 1 times

    v ← v - δ ĝ;  φ ← φ + (δ/2) v                                `refresh`
    v ← c v + √(1 - c²) ξ,  c = e^(-γkδ)
    φ ← φ + (δ/2) v

Without the second friction C adds the share I = δ C/(2γ) to the variance of a unit Gaussian; the
second friction is I times γ.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .._base.jit import entry, pointee
from .gradient import Rows, add_likelihood
from .predictor_map import load

__all__ = ["CYCLE", "Batches", "Moves", "advance_stochastic", "friction_for", "kick_and_drift"]
__all__ += ["refresh"]

CYCLE = 2  # k: steps of a cycle
LARGEST_KICK = 0.4  # the δ²q from which on f grows no further


def friction_for(delta, q):
    """Return the friction f for steps δ and kicks of the size q, which is capped at 0.4/δ²."""
    kick = min(delta * delta * q, LARGEST_KICK)
    return CYCLE * delta / (1.0 + math.sqrt(1.0 - CYCLE * kick))


class Batches(NamedTuple):
    """The rows of some steps: step t uses n of them, from row t·stride on."""

    rows: Rows
    n: int
    stride: int
    c: float  # N/n, the factor of the gradient of a batch


class Moves(NamedTuple):
    """The moves of the state: `update` in the last step of a cycle, `between` in the others."""

    update: Any
    between: Any
    cycle: int
    taken: int  # number of earlier steps of the chain, which tells where in a cycle it is
    friction: float  # f, at the last step of each cycle
    h: float  # step size
    parameters: np.ndarray  # the parameters of the dynamics


@entry
def advance_stochastic(
    likelihood, network, batches, moves, n_steps, state, prior, scale, noise, anchor, scratch,
    gradient,
):  # fmt: skip
    """Take steps, and return the sum over them of |v|²/P; 0 for dynamics without momentum.

    The last step of each cycle uses a row of `noise` (cycles, P). `anchor` (2, P) has θ̃ and G, or
    no rows for plain mini-batches.
    """
    rows, n, c, h = batches.rows, batches.n, batches.c, moves.h
    P, total, used = scale.shape[0], 0.0, 0
    theta = gradient[1]
    for t in range(n_steps):
        g, first = gradient[0], t * batches.stride
        is_last = (moves.taken + t + 1) % moves.cycle == 0
        for j in range(P):
            theta[j] = scale[j] * state[0, j]
            g[j] = prior[0, j] * (theta[j] - prior[1, j])
        if anchor.shape[0] > 0:
            for j in range(P):
                g[j] += anchor[1, j]
            load(anchor[0], scratch.weights)
            add_likelihood(likelihood, network, rows, first, first + n, -c, False, scratch, g)
        load(theta, scratch.weights)
        own = moves.friction if is_last else 0.0
        if own > 0.0:
            for j in range(P):
                scratch.velocity[j] = scale[j] * state[1, j]
        add_likelihood(likelihood, network, rows, first, first + n, c, False, scratch, g, own)
        for j in range(P):
            g[j] *= scale[j]
        if is_last:
            moves.update(state, g, noise[used], h, moves.parameters)
            used += 1
        else:
            moves.between(state, g, g, h, moves.parameters)
        if state.shape[0] > 1:
            for j in range(P):
                total += state[1, j] * state[1, j]
    return total / P


@pointee
def kick_and_drift(state_out, gradient, noise, h, parameters):
    """Take a step of the corrected dynamics without O: a kick and a whole drift."""
    phi, v = state_out[0], state_out[1]
    delta = math.sqrt(h)
    for j in range(phi.shape[0]):
        v[j] -= delta * gradient[j]
        phi[j] += delta * v[j]


@pointee
def refresh(state_out, gradient, noise, h, parameters):
    """Take the last step of a cycle, with O, whose friction is γ = ``parameters[0]``."""
    phi, v = state_out[0], state_out[1]
    delta = math.sqrt(h)
    c = math.exp(-parameters[0] * CYCLE * delta)
    added = math.sqrt(1.0 - c * c)
    for j in range(phi.shape[0]):
        v[j] -= delta * gradient[j]
        phi[j] += 0.5 * delta * v[j]
        v[j] = c * v[j] + added * noise[j]
        phi[j] += 0.5 * delta * v[j]
