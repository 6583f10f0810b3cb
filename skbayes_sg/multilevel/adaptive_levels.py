"""Adaptive choice of levels and of their numbers of samples; `giles` has the formulas."""

import time

import numpy as np

from ..exceptions import AccuracyNotReachedError, CouplingError
from ..recipe.price import Price
from .giles import optimal_numbers, regularised, remaining_bias, seen, variance_order
from .level_moments import Level
from .paths import BLOCK, Diverged
from .result import Expectation

__all__ = ["PILOT", "EndedByCallback", "Exhausted", "LevelSampler", "adapt", "order_of_variances"]
__all__ += ["stopped", "too_dear"]

PILOT = 2 * BLOCK  # samples of a level before conclusions are drawn from them
FIRST_FINEST = 2  # finest level at the beginning
SURE = 1024  # samples before a function is believed to be constant, or variances not to fall
GROWTH = 4.0  # largest factor by which the samples of a level grow before the next check
LEAST_ORDER = 0.5  # smallest order β of variances of paths that meet; it should be 1 or 2


class EndedByCallback(Exception):
    """A callback has ended the run."""


class Exhausted(Exception):
    """The next samples would read more rows than are allowed."""


class LevelSampler:
    """Fills levels with samples from paths.

    Parameters
    ----------
    paths : Paths
    integrand : Integrand
    theta : callable
        A function that converts positions to parameters.
    watch : callable, optional
        ``watch(share)`` is called between chunks of work and returns whether to stop.
    spent : int
        Number of rows that earlier attempts have read.
    max_cost : float
        Number of rows that may be read.
    """

    def __init__(self, paths, integrand, theta, watch=None, spent=0, max_cost=np.inf):
        self.paths, self.integrand, self.theta, self.watch = paths, integrand, theta, watch
        self.levels, self.spent, self.max_cost = [], spent, max_cost
        self.expected = np.inf  # estimated number of rows in total
        self._began, self._price = (np.nan, 0), None  # time and cost after the first pilot

    @property
    def cost(self):
        """Number of rows read so far."""
        return self.spent + sum(level.n * level.cost for level in self.levels)

    def add_level(self):
        """Add the next level, with its pilot samples."""
        level = Level(self.paths.hierarchy.cost(len(self.levels)))
        self.afford(PILOT * level.cost)
        self.levels.append(level)
        self.fill(len(self.levels) - 1, PILOT)
        if len(self.levels) == 1:
            self._began = time.perf_counter(), self.cost
            while level.n < SURE and not np.all(level.variance):  # a rare event, perhaps
                self.afford(level.n * level.cost)
                self.fill(0, 2 * level.n)

    def afford(self, cost):
        """Raise `Exhausted` if reading `cost` more rows is not allowed."""
        total = self.cost + cost
        if total > self.max_cost:
            self.expected = max(total, self.expected if np.isfinite(self.expected) else 0.0)
            raise Exhausted

    def tell_price(self, tolerance):
        """`LongRunWarning` if the rows that are still expected are predicted to take long.

        The seconds are those of the rows so far, and only enter warnings: results must not depend
        on time.
        """
        began, cost = self._began
        seconds = (time.perf_counter() - began) * (self.expected - cost) / (self.cost - cost)
        if self._price is None:
            remedy = "Use a larger tolerance, or the draws: posterior_.expectation(func)."
            self._price = Price(f"An expectation with {tolerance}", remedy)
        self._price.tell(seconds)

    def fill(self, level, n):
        """Sample a level until it has `n` samples, rounded up to whole blocks."""
        known = self.levels[level]
        n_more = -(-max(0, n - known.n) // BLOCK) * BLOCK
        for samples in self.samples(level, known.n_blocks, n_more):
            known.add(samples)

    def samples(self, level, first, n_paths):
        """Yield blocks of samples of Δ_l, beginning with the block that has the number `first`."""
        try:
            for positions in self.paths.positions(level, first, n_paths, self._tick):
                yield self.integrand.differences(self.theta(positions))
        except Diverged:
            self.spent += n_paths * self.paths.hierarchy.cost(level)  # an upper bound
            raise

    def _tick(self):
        if self.watch is not None and self.watch(min(self.cost / self.expected, 1.0)):
            raise EndedByCallback

    # -- estimates from all levels -------------------------------------------------------------

    @property
    def costs(self):
        """Number of rows of a sample of each level."""
        return np.array([level.cost for level in self.levels])

    @property
    def numbers(self):
        """Number of samples of each level."""
        return np.array([level.n for level in self.levels])

    @property
    def means(self):
        """Means of the levels, (n_levels, n_components)."""
        return np.array([level.mean for level in self.levels])

    @property
    def variances(self):
        """Regularised variances of the levels, (n_levels, n_components)."""
        V = seen([level.variance for level in self.levels], self.numbers, self.integrand.spread)
        return regularised(V, self.paths.coupling.order)

    @property
    def value(self):
        """The sum of the means over the levels."""
        return self.means.sum(axis=0)

    def result(self, tolerance):
        """Return the estimate with its errors, an `Expectation`."""
        errors = np.sqrt(self.variances / self.numbers[:, None])
        error, bias = np.sqrt(np.square(errors).sum(axis=0)), remaining_bias(self.means, errors)
        levels, order = (self.numbers, self.means, self.variances), variance_order(self.levels)[0]
        return self.made(self.value, error, bias, tolerance, *levels, order, self.cost)

    def made(self, value, error, bias, tolerance, numbers, means, variances, order, cost):
        """Return an `Expectation` whose arrays have the shape of a value of the function."""
        shape, n_rows = self.integrand.shape, self.paths.setup.n_rows
        steps = [self.paths.hierarchy.step_size(level) for level in range(len(numbers))]

        def shaped(array):
            array = np.reshape(array, (*np.shape(array)[:-1], *shape))
            return array if array.ndim else float(array)

        own = map(shaped, (value, error, bias, tolerance.of(value)))
        levels = np.array(steps), np.array(numbers), shaped(means), shaped(variances)
        return Expectation(*own, *levels, order, int(cost), cost / n_rows)


def adapt(sampler, tolerance, max_level):
    """Add and sample levels until the estimate is accurate; return the `Expectation`.

    Its variance and squared bias are then each at most half of the squared tolerance.

    Raises
    ------
    CouplingError
        The variances of the levels do not fall.
    AccuracyNotReachedError
        More levels would be needed than are allowed.
    Exhausted
        More rows would be needed than are allowed.
    """
    while len(sampler.levels) <= FIRST_FINEST:
        sampler.add_level()
    while not _settled(sampler, tolerance):
        if len(sampler.levels) > max_level:
            raise not_reached(sampler, tolerance, f"needs levels beyond max_level={max_level}")
        sampler.add_level()
    return sampler.result(tolerance)


def _settled(sampler, tolerance):
    """Sample the existing levels until the variance is small enough.

    Return whether the bias is small enough as well, so that no finer level is needed.
    """
    while True:
        order = order_of_variances(sampler, LEAST_ORDER)
        budget = np.square(tolerance.of(sampler.value)) / 2.0
        wanted = optimal_numbers(sampler.variances, sampler.costs, budget)
        sampler.expected = float(np.maximum(wanted, sampler.numbers) @ sampler.costs)
        sampler.tell_price(tolerance)
        if (wanted <= sampler.numbers).all():
            break
        wanted = np.minimum(np.ceil(wanted), GROWTH * sampler.numbers)
        sampler.afford(np.maximum(wanted - sampler.numbers, 0.0) @ sampler.costs)
        for level, n in enumerate(wanted):
            sampler.fill(level, int(n))
    errors = np.sqrt(sampler.variances / sampler.numbers[:, None])
    bias = remaining_bias(sampler.means, errors)
    return order >= LEAST_ORDER and bool((np.square(bias) <= budget).all())


def order_of_variances(sampler, least):
    """Return the order β of the variances; raise `CouplingError` if it is less than `least`.

    The standard error of β cannot be trusted where few samples of a level are not zero, as those of
    a probability: `SURE` samples of each level are made before the error is raised.
    """
    order, error = variance_order(sampler.levels)
    few = [level for level, n in enumerate(sampler.numbers) if 0 < level and n < SURE]
    if order + 2.0 * error >= least:
        return order
    if not few:
        raise _not_meeting(sampler, order, error)
    sampler.afford(sum((SURE - sampler.numbers[level]) * sampler.costs[level] for level in few))
    for level in few:
        sampler.fill(level, SURE)
    return order_of_variances(sampler, least)


def not_reached(sampler, tolerance, why):
    """Return the error for an accuracy that is not reached, with the estimate if there is one."""
    result = reached = None
    if len(sampler.levels) > FIRST_FINEST and sampler.levels[-1].n >= PILOT:
        result = sampler.result(tolerance)
        reached = f" So far the largest estimated error is {np.max(result.error):.2g}: see the "
        reached += "attribute `result` of this error."
    return AccuracyNotReachedError(
        f"{tolerance} {why}.{reached or ''} Use a larger tolerance (atol for a value near zero), "
        "more rows a step if rare rows matter, or the draws: posterior_.expectation(func).",
        result,
    )


def stopped(sampler, tolerance):
    """Return the error for a run that a callback has ended."""
    return not_reached(sampler, tolerance, "is not reached: a callback ended the run")


def too_dear(sampler, tolerance):
    """Return the error for an accuracy that costs more rows than are allowed."""
    why = f"needs about {sampler.expected:.2g} rows or more, but max_cost={sampler.max_cost:g}"
    return not_reached(sampler, tolerance, why)


def _not_meeting(sampler, order, error):
    """Return the error for coupled paths that do not meet."""
    unit = np.maximum(sampler.levels[0].variance, np.finfo(float).tiny)
    shares = [float((level.variance / unit).max()) for level in sampler.levels[1:]]
    return CouplingError(
        "Coupled paths do not meet: relative to level 0, the variances of levels 1, 2, ... are "
        f"{', '.join(f'{share:.2g}' for share in shares)}. Their order in the step size is "
        f"{order:.2g} (standard error {error:.2g}) and should be {sampler.paths.coupling.order:g}. "
        "The posterior has several modes, or forgets starting points slowly. Use a longer `shift` "
        "or a smaller `step_size` of MultilevelSGLD, more rows a step, or the draws: "
        "posterior_.expectation(func) with sampler='hmc'."
    )
