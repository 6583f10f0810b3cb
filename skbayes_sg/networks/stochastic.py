"""Steps with gradients of some rows: any dynamics of `skbayes_sg.dynamics`, plain or anchored.

In the coordinates θ = s∘φ, with n of N rows a step, drawn uniformly with replacement::

    minibatch  ĝ = s∘[(N/n) Σ_k w_k ∇ℓ_k(θ) + ∇prior(θ)]
    anchored   ĝ = s∘[G + (N/n) Σ_k w_k (∇ℓ_k(θ) - ∇ℓ_k(θ̃)) + ∇prior(θ)]

where G is Σ_i w_i ∇ℓ_i(θ̃) or its estimate: control variate, SVRG-LD and vrSG-MCMC. `update` of the
noise-corrected dynamics is BAOAB whose injected noise lacks what the gradient has added: with V_j
the variance of s_j N w ∇_jℓ over the rows,

    v ← v - δ ĝ;  φ ← φ + (δ/2) v;  v ← c v + √(max(0, 1 - c² - c² δ² V_j/n)) ξ;  φ ← φ + (δ/2) v.

Without that, V adds the share I = δ V/(2γn) to the variance of a unit Gaussian.
"""

import math

from .._base.jit import entry, pointee
from .gradient import add_likelihood
from .predictor_map import load

__all__ = ["advance_stochastic", "corrected_update"]


@entry
def advance_stochastic(
    likelihood, network, rows, n, stride, c, update, state, prior, scale, noise, h, parameters,
    anchor, scratch, gradient,
):  # fmt: skip
    """Take one step for each row of `noise` (steps, P).

    Step t uses n of the `rows`, from number t `stride` on. `anchor` (2, P) has θ̃ and G, or no rows
    for plain minibatches. Returns Σ v²/P over the steps, of dynamics with momentum.
    """
    P, total = scale.shape[0], 0.0
    theta = gradient[1]
    for t in range(noise.shape[0]):
        g, first = gradient[0], t * stride
        for j in range(P):
            theta[j] = scale[j] * state[0, j]
            g[j] = prior[0, j] * (theta[j] - prior[1, j])
        if anchor.shape[0] > 0:
            for j in range(P):
                g[j] += anchor[1, j]
            load(anchor[0], scratch.weights)
            add_likelihood(likelihood, network, rows, first, first + n, -c, False, scratch, g)
        load(theta, scratch.weights)
        add_likelihood(likelihood, network, rows, first, first + n, c, False, scratch, g)
        for j in range(P):
            g[j] *= scale[j]
        update(state, g, noise[t], h, parameters)
        if state.shape[0] > 1:
            for j in range(P):
                total += state[1, j] * state[1, j]
    return total / P


@pointee
def corrected_update(state_out, gradient, noise, h, parameters):
    """BAOAB with friction ``parameters[0]``, less gradient noise of variance ``parameters[1:]``."""
    phi, v = state_out[0], state_out[1]
    delta = math.sqrt(h)
    c = math.exp(-parameters[0] * delta)
    for j in range(phi.shape[0]):
        v[j] -= delta * gradient[j]
        phi[j] += 0.5 * delta * v[j]
        v[j] = c * v[j] + math.sqrt(max(1.0 - c * c - c * c * parameters[1 + j], 0.0)) * noise[j]
        phi[j] += 0.5 * delta * v[j]
