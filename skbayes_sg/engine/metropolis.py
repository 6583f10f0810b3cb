"""The loop of the Metropolis-corrected samplers: leapfrog trajectories on the full data.

The unit of work is one leapfrog step, that is one full gradient. A call may end between any two
steps of a trajectory and the next call resumes it, so a call takes a bounded time for any number of
rows.
"""

import math

import numpy as np

from .._base.jit import entry, inlined, inner, pointee
from ..kernels.copies import copy
from ..kernels.energy import kinetic_energy
from ..kernels.gradient import fill_normal, pull_back, to_theta
from ..kernels.layout import GRADIENT_THETA, PREDICTORS, TERM, THETA
from ..kernels.rows import predictors, scatter
from ..priors.table import prior_gradient, prior_value

__all__ = ["new_record", "potential", "potential_of_sums", "run_metropolis"]
__all__ += ["share_of_trajectories"]

# Rows of the state.
POSITION, GRADIENT, PROPOSAL, PROPOSAL_GRADIENT, MOMENTUM = range(5)
LAST = 5  # of three rows: proposal, its gradient and momentum before a step, if there are walls

# Entries of the record: U at the position; H at the start of the trajectory; leapfrog steps left of
# it, and their size ε; log ε before jitter, and its average over dual averaging.
POTENTIAL, ENERGY, REMAINING, EPSILON, LOG_STEP, LOG_AVERAGE = range(6)
# More entries: average of target less acceptance probability; number of updates of dual averaging;
# log ε for an error of zero; sum of acceptance probabilities; number of trajectories that have
# ended; number of all leapfrog steps.
ERROR, ADAPTED, ANCHOR, ACCEPTED, TRIED, LEAPFROGS = range(6, 12)
# Walls are places where U jumps to infinity. Whether steps that would lead behind them bounce off;
# number of trajectories that have met one, or without bouncing have ended where H is not finite; U
# before the present step; and steps and bounces of the present trajectory. Last, the number of
# trajectories that have diverged.
WALLED, OUTSIDE, BEFORE, STEPS, BOUNCES, DIVERGENT = range(12, 18)
N_STATE, N_RECORD = 8, 18
# Nats of energy by which a trajectory diverges: with steps that suit a place none loses so much.
DIVERGED = 20.0
MAX_LEAPFROG = 1024  # largest number of leapfrog steps of a trajectory
MAX_WALLED = 8  # and between walls, where many would go to and fro on the same path
BOUNCED = 0.4  # by how much the dual averaging lowers acceptance rates if all steps bounce

# γ, t0 and κ of dual averaging (Hoffman and Gelman 2014, sec. 3.2).
_GAMMA, _T0, _KAPPA = 0.05, 10.0, 0.75
# Grid on which log ε lies, because the feedback is chaotic: it would amplify rounding errors of
# sums, and the draws for weighted rows would differ from those for repeated rows.
_GRID = 1.0 / 64.0


def new_record(step_size, walled=False):
    """Return the record of a chain that has not moved yet, with leapfrog steps ε = √step_size."""
    record = np.zeros(N_RECORD)
    record[WALLED] = walled
    record[POTENTIAL] = np.nan  # unknown: `run_metropolis` computes it first
    record[LOG_STEP] = record[LOG_AVERAGE] = 0.5 * math.log(step_size)
    record[ANCHOR] = record[LOG_STEP] + math.log(10.0)
    return record


def share_of_trajectories(chains, entry):
    """Return the count in an entry of all records, as a share of the trajectories that ended."""
    ended = sum(chain.record[TRIED] for chain in chains)
    return sum(chain.record[entry] for chain in chains) / max(ended, 1.0)


@inlined
def add_likelihood(data, model, theta, scratch, valued, g_out):
    """Add Σ weight_i ∇ℓ_i over all rows to g_out; return Σ weight_i ℓ_i if `valued`, else 0."""
    rows, n = scratch.rows, scratch.rows.shape[0]
    eta, terms, total = scratch.blocks[PREDICTORS], scratch.blocks[TERM], 0.0
    size = eta.shape[0]
    for start in range(0, n, size):
        stop = min(start + size, n)
        predictors(data, theta, rows, start, stop, eta)
        if valued:
            total += model.loss(data.facts, rows, start, stop, eta)
        model.derivative(data.facts, rows, start, stop, eta, terms)
        scatter(data, rows, start, stop, scratch.coefficients, terms, g_out)
    return total


@inlined
def _add_prior(prior, coordinates, phi, scratch, valued):
    """Write θ(φ) and -∇ log p to the scratch; return -log p if `valued`, else 0."""
    theta, g = scratch.vectors[THETA], scratch.vectors[GRADIENT_THETA]
    to_theta(coordinates, phi, theta)
    for j in range(phi.shape[0]):
        g[j] = 0.0
    prior_gradient(prior, theta, g)
    return prior_value(prior, theta) if valued else 0.0


@pointee
def potential(data, prior, coordinates, model, phi, scratch, valued, g_out):
    """Write ∇U at φ to g_out; return U = Σ weight_i ℓ_i - log p if `valued`, else 0."""
    total = _add_prior(prior, coordinates, phi, scratch, valued)
    theta, g = scratch.vectors[THETA], scratch.vectors[GRADIENT_THETA]
    total += add_likelihood(data, model, theta, scratch, valued, g)
    pull_back(coordinates, g, g_out)
    return total


@pointee
def potential_of_sums(data, prior, coordinates, model, phi, scratch, valued, g_out):
    """Do the same as `potential` for a model that has a kernel for sums over all rows."""
    total = _add_prior(prior, coordinates, phi, scratch, valued)
    theta, g = scratch.vectors[THETA], scratch.vectors[GRADIENT_THETA]
    total += model.sums(data.facts, theta, valued, g)
    pull_back(coordinates, g, g_out)
    return total


@inner
def _begin_trajectory(state, record, rng, length, jitter):
    """Draw the momentum, the step ε and the number of steps of the next trajectory."""
    fill_normal(rng, state[MOMENTUM])
    copy(state[POSITION:PROPOSAL], state[PROPOSAL:MOMENTUM])
    epsilon = math.exp(record[LOG_STEP]) * (1.0 + jitter * (2.0 * rng.random() - 1.0))
    n_steps = math.floor(length * (0.7 + 0.6 * rng.random()) / epsilon + 0.5)
    record[EPSILON] = epsilon
    most = MAX_LEAPFROG if record[WALLED] == 0.0 else MAX_WALLED
    record[REMAINING] = min(max(n_steps, 1.0), most)
    record[ENERGY] = record[POTENTIAL] + kinetic_energy(state[MOMENTUM])
    record[BEFORE], record[STEPS], record[BOUNCES] = record[POTENTIAL], record[REMAINING], 0.0


@inlined
def _leapfrog(data, prior, coordinates, pieces, state, epsilon, scratch, valued):
    """Take one leapfrog step of the proposal; return U at its end if `valued`, else 0."""
    g, v = state[PROPOSAL_GRADIENT], state[MOMENTUM]
    for j in range(v.shape[0]):
        v[j] -= 0.5 * epsilon * g[j]
        state[PROPOSAL, j] += epsilon * v[j]
    phi = state[PROPOSAL]
    total = pieces.potential(data, prior, coordinates, pieces.model, phi, scratch, valued, g)
    for j in range(v.shape[0]):
        v[j] -= 0.5 * epsilon * g[j]
    return total


@inner
def _bounced(state, record, proposed):
    """Take back a step that has led behind a wall, and reverse the momentum; return U.

    With a leapfrog step F and the reversal R of the momentum, the step Φ is F where F leads to a
    finite U, and else R. Both preserve the volume and (R Φ)² = 1, so that a trajectory remains
    reversible. It goes back on its own path.
    """
    if abs(proposed) < math.inf:
        record[BEFORE] = proposed
        return proposed
    copy(state[LAST:], state[PROPOSAL : MOMENTUM + 1])
    for j in range(state.shape[1]):
        state[MOMENTUM, j] = -state[MOMENTUM, j]
    record[BOUNCES] += 1.0
    return record[BEFORE]


@inner
def _accept(state, record, proposed, rng):
    """Accept or reject the end of a trajectory, where U is `proposed`; return the probability."""
    change = record[ENERGY] - (proposed + kinetic_energy(state[MOMENTUM]))
    # A comparison, because `isfinite` of a sum is always true once sums may be reordered.
    is_inside = abs(change) < math.inf
    if record[BOUNCES] > 0.0 or not is_inside:
        record[OUTSIDE] += 1.0
    probability = math.exp(min(change, 0.0)) if is_inside else 0.0
    if not change >= -DIVERGED:
        record[DIVERGENT] += 1.0
    if rng.random() < probability:
        record[POTENTIAL] = proposed
        copy(state[PROPOSAL:MOMENTUM], state[POSITION:PROPOSAL])
    return probability


@inner
def _adapt(record, probability, target):
    """Update log ε by dual averaging, from the acceptance probability of the last trajectory.

    Bounces off walls shorten the steps as well: else all steps might become so long that they
    bounce, and none would be rejected.
    """
    probability *= 1.0 - BOUNCED * record[BOUNCES] / record[STEPS]
    record[ADAPTED] += 1.0
    t = record[ADAPTED]
    weight = 1.0 / (t + _T0)
    record[ERROR] = (1.0 - weight) * record[ERROR] + weight * (target - probability)
    step = record[ANCHOR] - math.sqrt(t) / _GAMMA * record[ERROR]
    record[LOG_STEP] = round(step / _GRID) * _GRID
    weight = t**-_KAPPA
    record[LOG_AVERAGE] = weight * record[LOG_STEP] + (1.0 - weight) * record[LOG_AVERAGE]


@entry
def run_metropolis(
    data, prior, coordinates, pieces, state, record, rng, path, adapt, thin, budget, scratch,
    slopes_out, draws_out, done,
):  # fmt: skip
    """Continue a chain until `draws_out` is full or `budget` gradients are spent.

    Parameters
    ----------
    path : tuple of float
        Mean length of a trajectory (0 means a single step), relative jitter of ε, and the target
        acceptance rate.
    adapt : bool
        Whether dual averaging adapts ε to that rate.
    done : int
        Trajectories finished so far; draw k is kept after trajectory ``thin * (k + 1)``.
    slopes_out : array of shape (n_draws + 1, n_parameters) or (0, n_parameters)
        Row k is the gradient at draw k - 1. If there are no rows, nothing is kept.

    Returns
    -------
    int
        `done`, updated.
    """
    length, jitter, target = path
    if math.isnan(record[POTENTIAL]):
        phi, g = state[POSITION], state[GRADIENT]
        value = pieces.potential(data, prior, coordinates, pieces.model, phi, scratch, True, g)
        record[POTENTIAL] = value
    while done < thin * draws_out.shape[0] and budget > 0:
        if record[REMAINING] == 0.0:
            _begin_trajectory(state, record, rng, length, jitter)
        record[REMAINING] -= 1.0
        record[LEAPFROGS] += 1.0
        budget -= 1
        ends, walled = record[REMAINING] == 0.0, record[WALLED] > 0.0
        if walled:
            copy(state[PROPOSAL : MOMENTUM + 1], state[LAST:])
        proposed = _leapfrog(
            data, prior, coordinates, pieces, state, record[EPSILON], scratch, ends or walled
        )
        if walled:
            proposed = _bounced(state, record, proposed)
        if ends:
            probability = _accept(state, record, proposed, rng)
            record[ACCEPTED] += probability
            record[TRIED] += 1.0
            if adapt:
                _adapt(record, probability, target)
            done += 1
            if done % thin == 0:
                for j in range(state.shape[1]):
                    draws_out[done // thin - 1, j] = state[POSITION, j]
                if slopes_out.shape[0] > 0:
                    for j in range(state.shape[1]):
                        slopes_out[done // thin, j] = state[GRADIENT, j]
    return done
