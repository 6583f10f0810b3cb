"""Steps with gradients of some rows: any dynamics of `skbayes_sg.dynamics`, plain or anchored.

In the coordinates θ = s∘φ, with n of N rows a step, drawn uniformly with replacement::

    minibatch  ĝ = s∘[(N/n) Σ_k w_k ∇ℓ_k(θ) + ∇prior(θ)]
    anchored   ĝ = s∘[G + (N/n) Σ_k w_k (∇ℓ_k(θ) - ∇ℓ_k(θ̃)) + ∇prior(θ)]

where G is Σ_i w_i ∇ℓ_i(θ̃) or its estimate: control variate, SVRG-LD and vrSG-MCMC.

The noise-corrected dynamics of "auto" is BAOAB whose injected noise lacks what the gradients have
added. With V_j the variance of s_j N w ∇_jℓ over the rows and x_j = δ² V_j/n, each of the k = 2
kicks of a cycle adds x_j to the variance of v_j, and O, with normals, follows the last one::

    v ← v - δ ĝ;  φ ← φ + δ v                                    `kick_and_drift`, k - 1 times

    v ← v - δ ĝ;  φ ← φ + (δ/2) v                                `corrected_update`
    v ← c v + √(max(0, t_j - c² (t_j + k x_j))) ξ,  c = e^(-γkδ),  t_j = 1 - k x_j/2
    φ ← φ + (δ/2) v

After O the variance of v_j is t_j, and before it t_j + k x_j, so that it is one on average over the
drifts, as the posterior has it. Without the correction V adds the share I = δ V/(2γn) to the
variance of a unit Gaussian. Drawing normals is a third of a step or more: hence k = 2.
"""

import math

from .._base.jit import entry, pointee
from .gradient import add_likelihood
from .predictor_map import load

__all__ = ["CYCLE", "advance_stochastic", "corrected_update", "kick_and_drift"]

CYCLE = 2  # k


@entry
def advance_stochastic(
    likelihood, network, rows, n, stride, c, n_steps, cycle, taken, update, between, state, prior,
    scale, noise, h, parameters, anchor, scratch, gradient,
):  # fmt: skip
    """Take steps, of which every one that fills a `cycle` uses a row of `noise` (cycles, P).

    That is `update`; the others are `between`. The steps that were `taken` before count. Step t
    uses n of the `rows`, from number t `stride` on. `anchor` (2, P) has θ̃ and G, or no rows for
    plain minibatches. Returns Σ v²/P over the steps, of dynamics with momentum.
    """
    P, total, used = scale.shape[0], 0.0, 0
    theta = gradient[1]
    for t in range(n_steps):
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
        if (taken + t + 1) % cycle == 0:
            update(state, g, noise[used], h, parameters)
            used += 1
        else:
            between(state, g, g, h, parameters)
        if state.shape[0] > 1:
            for j in range(P):
                total += state[1, j] * state[1, j]
    return total / P


@pointee
def kick_and_drift(state_out, gradient, noise, h, parameters):
    """A step of the corrected dynamics without O."""
    phi, v = state_out[0], state_out[1]
    delta = math.sqrt(h)
    for j in range(phi.shape[0]):
        v[j] -= delta * gradient[j]
        phi[j] += delta * v[j]


@pointee
def corrected_update(state_out, gradient, noise, h, parameters):
    """The last step of a cycle, with friction γ = ``parameters[0]`` and x = ``parameters[1:]``."""
    phi, v = state_out[0], state_out[1]
    delta = math.sqrt(h)
    c = math.exp(-parameters[0] * CYCLE * delta)
    for j in range(phi.shape[0]):
        added = CYCLE * parameters[1 + j]
        after = 1.0 - 0.5 * added
        v[j] -= delta * gradient[j]
        phi[j] += 0.5 * delta * v[j]
        v[j] = c * v[j] + math.sqrt(max(after - c * c * (after + added), 0.0)) * noise[j]
        phi[j] += 0.5 * delta * v[j]
