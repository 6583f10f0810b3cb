"""Moves of the scales of the prior together with their weights.

Given the n weights of a scale, a draw of the scale moves by a share of about 1/√(2n), whatever the
data allow, and weights that are large keep their scale large: chains that alternate between both
forget a scale after some ten thousands of steps. Where the likelihood hardly depends on the size of
weights, as where units are saturated, it is quicker to move both (Papaspiliopoulos, Roberts and
Skold 2007). With the scales e^u, and each weight w = e^(u_w) z where u_w is the sum of the log
scales that it has, a proposal u' = u + d of a symmetric d, at the same z, multiplies each weight by
e^(d_w), and is accepted with the probability

    min(1, exp(log p(u') - log p(u) - L(w') + L(w))),    L = Σ_i w_i ℓ_i,

which leaves the posterior invariant: the prior of z does not change. Each move is drawn from three
kinds: τ of one layer; λ of one column; and τ of the first layer against all λ, which changes no
weight. How far scales can move differs by orders of magnitude, so that the standard deviation of d
is drawn anew each time.
"""

import math

import numpy as np

from .._base.interrupts import without_interrupts
from .baoab import LOSS_HERE, THETA, evaluate
from .chain import set_prior
from .gradient import pieces_of
from .prior_scales import factors_of_weights, log_prior_of_logs

__all__ = ["move_scales"]

SMALLEST, LARGEST = 2.0**-5, 2.0  # range of the standard deviation of d, drawn log-uniformly


def move_scales(problem, chain):
    """Propose one move of the scales and their weights, unless the user has fixed the scale."""
    if problem.prior_scale is None:
        n_free = len(problem.groups.fan_in) - int(chain.holds)  # the last is that of held weights
        _propose(problem, chain, _direction(problem.groups, n_free, chain.streams.start))


def _direction(groups, n_free, rng):
    """Return a random direction in which the logarithms of all scales move: entries 1, -1 or 0."""
    n_groups, n_columns = len(groups.fan_in), groups.n_columns
    found = np.zeros(n_groups + n_columns)
    kind = rng.integers(3) if n_columns > 0 else 0
    if kind == 0:
        found[rng.integers(n_free)] = 1.0
    elif kind == 1:
        found[n_groups + rng.integers(n_columns)] = 1.0
    else:
        found[0], found[n_groups:] = 1.0, -1.0
    return found


def _propose(problem, chain, direction):
    """Propose to move the scales and their weights along a direction, and accept or reject it."""
    memory, groups, rng = chain.memory, problem.groups, chain.streams.start
    sd = math.exp(rng.uniform(math.log(SMALLEST), math.log(LARGEST)))
    d = sd * rng.standard_normal() * direction
    logs = np.log(chain.scales_now)
    gain = log_prior_of_logs(groups, logs + d) - log_prior_of_logs(groups, logs)
    bound = -rng.standard_exponential()
    if gain == -np.inf:
        return
    factors, state, numbers = factors_of_weights(groups, d), memory.state, memory.numbers
    if (factors != 1.0).any():
        state, numbers = state.copy(), numbers.copy()
        state[THETA] *= factors
        with without_interrupts():
            pieces, rows = pieces_of(problem.model), problem.all_rows
            evaluate(pieces, problem.network, rows, state, numbers, chain.scratch)
    if bound < gain - numbers[LOSS_HERE] + memory.numbers[LOSS_HERE]:
        memory.state, memory.numbers = state, numbers
        chain.theta, chain.scales_now = state[THETA], np.exp(logs + d)
        set_prior(problem, chain)
