"""The loop of the Metropolis-corrected samplers: leapfrog trajectories on the full data.

The unit of work is one leapfrog step, that is one full gradient, and a trajectory may be left
and resumed between any two: so a call costs a bounded time however many rows there are.
"""

import math

import numpy as np

from .._jit import inner, jit
from ..priors import prior_value
from .chain import fill_normal, to_theta
from .layout import BLOCK
from .rows import predictors
from .warps import warp_potential

__all__ = ["new_record", "potential", "run_metropolis"]

# Rows of the state, and entries of the record that goes with it.
POSITION, GRADIENT, PROPOSAL, PROPOSAL_GRADIENT, MOMENTUM = range(5)
(
    POTENTIAL, ENERGY, REMAINING, EPSILON, LOG_STEP, LOG_AVERAGE, ERROR, ADAPTED, ANCHOR, ACCEPTED,
    TRIED, LEAPFROGS,
) = range(12)  # fmt: skip
N_STATE, N_RECORD = 5, 12
MAX_LEAPFROG = 1024

# Dual averaging (Hoffman and Gelman 2014, sec. 3.2).
_GAMMA, _T0, _KAPPA = 0.05, 10.0, 0.75
# Steps lie on a grid, because the feedback is chaotic: it would blow up rounding errors of sums,
# and rows with weights would give other draws than the same rows repeated.
_GRID = 1.0 / 64.0


def new_record(step_size):
    """The record of a chain that has not moved yet, for leapfrog steps of √h."""
    record = np.zeros(N_RECORD)
    record[POTENTIAL] = np.nan  # unknown: `run_metropolis` starts by finding it
    record[LOG_STEP] = record[LOG_AVERAGE] = 0.5 * math.log(step_size)
    record[ANCHOR] = record[LOG_STEP] + math.log(10.0)
    return record


@inner
def potential(problem, loss, z, rows, scratch):
    """U(z) = Σ weight_i ℓ_i - log p - log |det ∂φ/∂z|, over all rows."""
    to_theta(problem, z, scratch.phi, scratch.theta)
    total = prior_value(problem.prior, scratch.theta) + warp_potential(problem.warp, z)
    for start in range(0, rows.shape[0], BLOCK):
        stop = min(start + BLOCK, rows.shape[0])
        predictors(problem.data, scratch.theta, rows, start, stop, scratch.predictors)
        total += loss(problem.data.facts, rows, start, stop, scratch.predictors)
    return total


@inner
def _begin(state, record, rng, length, jitter):
    """Draw momentum, step and number of steps of the next trajectory."""
    fill_normal(rng, state[MOMENTUM])
    kinetic = 0.0
    for j in range(state.shape[1]):
        kinetic += 0.5 * state[MOMENTUM, j] ** 2
        state[PROPOSAL, j] = state[POSITION, j]
        state[PROPOSAL_GRADIENT, j] = state[GRADIENT, j]
    epsilon = math.exp(record[LOG_STEP]) * (1.0 + jitter * (2.0 * rng.random() - 1.0))
    n_steps = round(length * (0.7 + 0.6 * rng.random()) / epsilon)
    record[EPSILON] = epsilon
    record[REMAINING] = min(max(n_steps, 1.0), MAX_LEAPFROG)
    record[ENERGY] = record[POTENTIAL] + kinetic


@inner
def _leapfrog(problem, pieces, state, epsilon, rows, coefficients, scratch):
    g, v = state[PROPOSAL_GRADIENT], state[MOMENTUM]
    for j in range(v.shape[0]):
        v[j] -= 0.5 * epsilon * g[j]
        state[PROPOSAL, j] += epsilon * v[j]
    pieces.gradient(
        problem, pieces.estimator, state[PROPOSAL], rows, rows.shape[0], coefficients, scratch, g
    )  # fmt: skip
    for j in range(v.shape[0]):
        v[j] -= 0.5 * epsilon * g[j]


@inner
def _accept(state, record, proposed, rng):
    """Metropolis test of the end of a trajectory; returns the probability of acceptance."""
    kinetic = 0.0
    for j in range(state.shape[1]):
        kinetic += 0.5 * state[MOMENTUM, j] ** 2
    change = record[ENERGY] - (proposed + kinetic)
    # A comparison, because `isfinite` of a sum is always true once sums may be reordered.
    probability = math.exp(min(change, 0.0)) if abs(change) < math.inf else 0.0
    if rng.random() < probability:
        record[POTENTIAL] = proposed
        for j in range(state.shape[1]):
            state[POSITION, j] = state[PROPOSAL, j]
            state[GRADIENT, j] = state[PROPOSAL_GRADIENT, j]
    return probability


@inner
def _adapt(record, probability, target):
    """One update of dual averaging of log ε towards the target acceptance."""
    record[ADAPTED] += 1.0
    t = record[ADAPTED]
    weight = 1.0 / (t + _T0)
    record[ERROR] = (1.0 - weight) * record[ERROR] + weight * (target - probability)
    step = record[ANCHOR] - math.sqrt(t) / _GAMMA * record[ERROR]
    record[LOG_STEP] = round(step / _GRID) * _GRID
    weight = t**-_KAPPA
    record[LOG_AVERAGE] = weight * record[LOG_STEP] + (1.0 - weight) * record[LOG_AVERAGE]


@jit
def run_metropolis(
    problem, pieces, state, record, rng, length, jitter, target, adapt, thin, budget,
    rows, coefficients, scratch, draws_out, done,
):  # fmt: skip
    """Continue until `draws_out` is full or `budget` gradients are spent.

    Parameters
    ----------
    length, jitter : float
        Mean length of a trajectory (0: a single step) and relative jitter of ε.
    adapt : bool
        Whether ε follows dual averaging towards the acceptance rate `target`.
    done : int
        Trajectories finished so far; draw k is kept after trajectory ``thin * (k + 1)``.

    Returns
    -------
    int
        `done`, updated.
    """
    if math.isnan(record[POTENTIAL]):
        record[POTENTIAL] = potential(problem, pieces.loss, state[POSITION], rows, scratch)
        pieces.gradient(
            problem, pieces.estimator, state[POSITION], rows, rows.shape[0], coefficients, scratch,
            state[GRADIENT],
        )  # fmt: skip
    while done < thin * draws_out.shape[0] and budget > 0:
        if record[REMAINING] == 0.0:
            _begin(state, record, rng, length, jitter)
        _leapfrog(problem, pieces, state, record[EPSILON], rows, coefficients, scratch)
        record[REMAINING] -= 1.0
        record[LEAPFROGS] += 1.0
        budget -= 1
        if record[REMAINING] == 0.0:
            proposed = potential(problem, pieces.loss, state[PROPOSAL], rows, scratch)
            probability = _accept(state, record, proposed, rng)
            record[ACCEPTED] += probability
            record[TRIED] += 1.0
            if adapt:
                _adapt(record, probability, target)
            done += 1
            if done % thin == 0:
                for j in range(state.shape[1]):
                    draws_out[done // thin - 1, j] = state[POSITION, j]
    return done
