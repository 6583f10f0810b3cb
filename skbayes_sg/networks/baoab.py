"""Kinetic Langevin dynamics on all rows by the BAOAB splitting, and the energy error of a step.

In the coordinates θ = s∘z, with U = Σ_i w_i ℓ_i + Σ_j π_j (θ_j - m_j)²/2::

    B  v ← v - (δ/2) s∘∇U(θ)
    A  θ ← θ + (δ/2) s∘v
    O  v ← c v + √(1 - c²) ξ,  c = e^(-γδ)
    A  θ ← θ + (δ/2) s∘v
    B  v ← v - (δ/2) s∘∇U(θ)

The energy error e = Δ(U + |v|²/2), without the change that O makes, tells how exact a step is. δ is
adapted towards E e² = t P for P parameters, by log δ += clip(r (1 - e²/(t P)), -0.3, r), and steps
with |e| > 5 √(t P) + 5, or with e = NaN, are refused: see `skbayes_sg.networks.guard`. With t = 0.1
steps would be barely stable: they heat the chain in its warm-up, and the scales of the prior, which
move slowly, are then too large in the draws, though the chains agree.
"""

import math

from .._base.jit import entry, inner
from ..kernels.energy import kinetic_energy
from .gradient import add_likelihood
from .predictor_map import load

__all__ = [
    "DELTA",
    "ERRORS",
    "LOSS_HERE",
    "N_NUMBERS",
    "RATE",
    "TEMPERATURE",
    "advance",
    "evaluate",
]

FRICTION = 0.1  # γ, per unit of time in whitened coordinates
ERROR = 1e-3  # t: the mean of e²/P to which the step is adapted
REFUSED = 5.0  # steps with an |e| above this number times 1 + √(t P) are refused
# Indices into `numbers`: δ, the loss Σ_i w_i ℓ_i at θ, the rate r of the adaptation, and sums over
# steps of e²/P and |v|²/P; and the length of `numbers`.
DELTA, LOSS_HERE, RATE, ERRORS, TEMPERATURE, N_NUMBERS = range(6)
THETA, VELOCITY, SLOPE = range(3)  # rows of the state (3, P): θ, v, and Σ_i w_i ∇ℓ_i(θ)


@inner
def _prior_energy(theta, prior):
    total = 0.0
    for j in range(theta.shape[0]):
        off = theta[j] - prior[1, j]
        total += 0.5 * prior[0, j] * off * off
    return total


@inner
def _kick(state, prior, scale, half):
    theta, v, slope = state[THETA], state[VELOCITY], state[SLOPE]
    for j in range(theta.shape[0]):
        v[j] -= half * scale[j] * (slope[j] + prior[0, j] * (theta[j] - prior[1, j]))


@inner
def _drift(state, scale, half):
    for j in range(scale.shape[0]):
        state[THETA, j] += half * scale[j] * state[VELOCITY, j]


@inner
def _refresh(v, noise, c):
    s = math.sqrt(1.0 - c * c)
    for j in range(v.shape[0]):
        v[j] = c * v[j] + s * noise[j]


@inner
def _loss_and_slope(likelihood, network, rows, state, scratch):
    load(state[THETA], scratch.weights)
    slope, n = state[SLOPE], rows.x.shape[0]
    slope[:] = 0.0
    return add_likelihood(likelihood, network, rows, 0, n, 1.0, True, scratch, slope)


@entry
def evaluate(likelihood, network, rows, state, numbers, scratch):
    """Set the loss in `numbers`, and the gradient in the state, to those of its position θ."""
    numbers[LOSS_HERE] = _loss_and_slope(likelihood, network, rows, state, scratch)


@entry
def advance(likelihood, network, rows, state, prior, scale, noise, numbers, scratch):
    """Take one step for each row of `noise` (steps, P), and return how many were not refused.

    The steps end with the first one that is refused. `prior` (2, P) has precisions π and means m.
    Of `numbers`, DELTA is the step δ, which is adapted at the rate RATE; ERRORS gains e²/P of each
    step, and TEMPERATURE |v|²/P after its first kick: there the mean of |v|²/P is 1 for a normal
    posterior, while between steps it is 1 - δ²/4 in whitened coordinates.
    """
    P = scale.shape[0]
    for t in range(noise.shape[0]):
        delta = numbers[DELTA]
        energy = numbers[LOSS_HERE] + _prior_energy(state[THETA], prior)
        energy += kinetic_energy(state[VELOCITY])
        _kick(state, prior, scale, 0.5 * delta)
        _drift(state, scale, 0.5 * delta)
        kicked = kinetic_energy(state[VELOCITY])
        energy -= kicked
        _refresh(state[VELOCITY], noise[t], math.exp(-FRICTION * delta))
        energy += kinetic_energy(state[VELOCITY])
        _drift(state, scale, 0.5 * delta)
        numbers[LOSS_HERE] = _loss_and_slope(likelihood, network, rows, state, scratch)
        _kick(state, prior, scale, 0.5 * delta)
        error = numbers[LOSS_HERE] + _prior_energy(state[THETA], prior) - energy
        error += kinetic_energy(state[VELOCITY])
        if numbers[RATE] > 0.0:
            change = numbers[RATE] * (1.0 - error * error / (ERROR * P))
            numbers[DELTA] *= math.exp(max(change, -0.3)) if change == change else 0.7
        if not abs(error) <= REFUSED * math.sqrt(ERROR * P) + REFUSED:
            return t
        numbers[ERRORS] += error * error / P
        numbers[TEMPERATURE] += 2.0 * kicked / P
    return noise.shape[0]
