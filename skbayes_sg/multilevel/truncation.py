"""Randomised truncation (Rhee and Glynn 2015): there is no finest level, and so no bias.

    E Σ_{l ≥ 1} Δ_l = E Δ_K / p_K,        P(K = l) = p_l = (1 - r) r^(l-1),   r = 2^-3/2,

for a random level K ≥ 1. The variance ``Σ (V_l + m_l²)/p_l - (Σ m_l)²`` and the cost ``Σ p_l C_l``
are finite if V_l = O(h^β) with β > 3/2 and costs grow as 1/h: for β = 2, but not for β = 1. Level 0
is sampled separately, so that a large mean does not increase the variance.
"""

import warnings

import numpy as np

from .._base import streams
from ..exceptions import SamplerConvergenceWarning
from .adaptive_levels import BLOCK, PILOT, order_of_variances
from .giles import optimal_numbers

__all__ = ["randomised"]

RATIO = 2.0**-1.5  # r, the ratio of the probabilities of a level and of the one below
PILOTS = 4  # number of levels, with level 0, that have pilot samples
# Order β of the variances above which variance and cost of the estimate are finite.
LEAST_ORDER_RANDOMISED = 1.5
TERMS = 60  # terms in sums over all levels: the others are below double precision


def chance(level):
    """Probability p_l of a level l ≥ 1."""
    return (1.0 - RATIO) * RATIO ** (level - 1.0)


def _variance_and_cost_of_a_term(sampler):
    """Return the variance of each component of Δ_K / p_K, and its expected cost in rows.

    Beyond the levels with pilot samples, variances are assumed to fall as h², and means as h.
    """
    V, m = sampler.variances, sampler.means
    beyond = np.arange(PILOTS, TERMS)[:, None]
    V = np.concatenate([V[1:], V[-1] * 4.0 ** (PILOTS - 1.0 - beyond)])
    m = np.concatenate([m[1:], m[-1] * 2.0 ** (PILOTS - 1.0 - beyond)])
    level = np.arange(1, TERMS)
    p = chance(level)
    costs = [sampler.paths.hierarchy.cost(int(k)) for k in level]
    return ((V + m**2) / p[:, None]).sum(axis=0) - m.sum(axis=0) ** 2, float(p @ costs)


def _fresh(sampler, level, n):
    """Return n new samples of Δ_l, (n, n_components); those of the pilot are not used again."""
    first = sampler.levels[level].n_blocks if level < PILOTS else PILOT // BLOCK
    blocks = list(sampler.samples(level, first, n))
    return np.concatenate(blocks) if n else np.empty((0, sampler.means.shape[1]))


def _terms(sampler, n, seed):
    """Return samples of Δ_K for n random levels K, as one array for each level from 1 on."""
    rng = streams.of_random_levels(seed)
    counts = np.bincount(rng.geometric(1.0 - RATIO, n))
    return [_fresh(sampler, level, int(counts[level])) for level in range(1, len(counts))]


def randomised(sampler, tolerance, seed):
    """Return the estimate from fresh samples; the pilots only determine how many there are.

    The aim is a variance of half of the squared tolerance, in case a pilot underestimates it.
    """
    while len(sampler.levels) < PILOTS:
        sampler.add_level()
    order = order_of_variances(sampler, LEAST_ORDER_RANDOMISED)
    budget = np.square(tolerance.of(sampler.value)) / 2.0
    variance, cost = _variance_and_cost_of_a_term(sampler)
    costs = np.array([sampler.levels[0].cost, cost])
    numbers = optimal_numbers(np.stack([sampler.variances[0], variance]), costs, budget)
    numbers = np.maximum(np.ceil(numbers), PILOT)
    sampler.expected = sampler.cost + float(numbers @ costs)
    sampler.tell_price(tolerance)
    sampler.afford(numbers @ costs)
    n_0, n = (int(number) for number in numbers)
    return _estimate(sampler, tolerance, _fresh(sampler, 0, n_0), _terms(sampler, n, seed), order)


def _estimate(sampler, tolerance, first, terms, order):
    """Return the `Expectation`: the mean of level 0 plus the mean of Δ_K / p_K, with its errors."""
    weighted = np.concatenate(
        [samples / chance(level) for level, samples in enumerate(terms, start=1)]
    )
    value = first.mean(axis=0) + weighted.mean(axis=0)
    error = np.sqrt(
        first.var(axis=0, ddof=1) / len(first) + weighted.var(axis=0, ddof=1) / len(weighted)
    )
    if (error > tolerance.of(value)).any():
        _warn(tolerance, (error / tolerance.of(value)).max())
    by_level = [first, *terms]
    numbers = np.array([len(samples) for samples in by_level])
    costs = [sampler.paths.hierarchy.cost(level) for level in range(len(by_level))]
    means = [first.mean(axis=0)]
    means += [s.sum(axis=0) / chance(k) / len(weighted) for k, s in enumerate(terms, start=1)]
    none = np.full_like(value, np.nan)
    variances = [s.var(axis=0, ddof=1) if len(s) > 1 else none for s in by_level]
    errors, levels = (error, np.zeros_like(value)), (numbers, np.array(means), np.array(variances))
    cost = sampler.cost + int(numbers @ costs)
    return sampler.made(value, *errors, tolerance, *levels, order, cost)


def _warn(tolerance, ratio):
    warnings.warn(
        f"{tolerance} was not reached: the standard error of the random estimate is {ratio:.2g} "
        "times the tolerance, because the pilot samples underestimated its variance. Use a larger "
        "tolerance, or truncation='adaptive'.",
        SamplerConvergenceWarning,
        stacklevel=2,
    )
