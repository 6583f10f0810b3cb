"""Levels and samples a level, chosen as they are seen: see `giles` for the formulas."""

import numpy as np

from ..exceptions import AccuracyNotReachedError, CouplingError
from .giles import optimal_numbers, regularised, remaining_bias, variance_order
from .moments import Level
from .paths import BLOCK, Diverged
from .result import Expectation

__all__ = [
    "PILOT",
    "EndedByCallback",
    "Exhausted",
    "LevelSampler",
    "adapt",
    "not_meeting",
    "stopped",
    "too_dear",
]

PILOT = 2 * BLOCK  # samples of a level before anything is concluded from them
COARSEST = 2  # finest level to begin with
GROWTH = 4.0  # by which samples of a level grow at most before it is looked at again
MEETING = 0.5  # β below which paths do not meet: it is 1 or 2 where they do


class EndedByCallback(Exception):
    """A callback has ended the run."""


class Exhausted(Exception):
    """The next samples would touch more rows than are allowed."""


class LevelSampler:
    """Fills levels with samples of paths.

    Parameters
    ----------
    paths : Paths
    integrand : Integrand
    theta : callable
        Parameters of positions.
    watch : callable, optional
        ``watch(share) -> stop`` between chunks of work.
    spent : int
        Rows that earlier attempts have touched.
    max_cost : float
        Rows that may be touched.
    """

    def __init__(self, paths, integrand, theta, watch=None, spent=0, max_cost=np.inf):
        self.paths, self.integrand, self.theta, self.watch = paths, integrand, theta, watch
        self.levels, self.spent, self.max_cost = [], spent, max_cost
        self.expected = np.inf  # rows in all, as far as that is known

    @property
    def cost(self):
        """Rows touched so far."""
        return self.spent + sum(level.n * level.cost for level in self.levels)

    def add_level(self):
        """Open the next level, with its pilot samples."""
        level = Level(self.paths.hierarchy.cost(len(self.levels)))
        self.afford(PILOT * level.cost)
        self.levels.append(level)
        self.fill(len(self.levels) - 1, PILOT)

    def afford(self, cost):
        """`Exhausted` if so many rows more are not allowed."""
        total = self.cost + cost
        if total > self.max_cost:
            self.expected = max(total, self.expected if np.isfinite(self.expected) else 0.0)
            raise Exhausted

    def fill(self, level, n):
        """Sample a level up to `n` samples, or a block more."""
        known = self.levels[level]
        n_more = -(-max(0, n - known.n) // BLOCK) * BLOCK
        for samples in self.samples(level, known.n_blocks, n_more):
            known.add(samples)

    def samples(self, level, first, n_paths):
        """Blocks of Δ_l of paths."""
        try:
            for positions in self.paths.positions(level, first, n_paths, self._tick):
                yield self.integrand.differences(self.theta(positions))
        except Diverged:
            self.spent += n_paths * self.paths.hierarchy.cost(level)  # at most
            raise

    def _tick(self):
        if self.watch is not None and self.watch(min(self.cost / self.expected, 1.0)):
            raise EndedByCallback

    # -- what the levels say together ----------------------------------------------------------

    @property
    def costs(self):
        """Rows of a sample, by level."""
        return np.array([level.cost for level in self.levels])

    @property
    def numbers(self):
        """Samples, by level."""
        return np.array([level.n for level in self.levels])

    @property
    def means(self):
        """Of shape (n_levels, n_components)."""
        return np.array([level.mean for level in self.levels])

    @property
    def variances(self):
        """Of shape (n_levels, n_components), regularised."""
        return regularised([level.variance for level in self.levels], self.paths.coupling.order)

    @property
    def value(self):
        """Σ_l of the means."""
        return self.means.sum(axis=0)

    def result(self, tolerance):
        """The estimate with its errors."""
        errors = np.sqrt(self.variances / self.numbers[:, None])
        return self.made(
            self.value, np.sqrt(np.square(errors).sum(axis=0)),
            remaining_bias(self.means, errors), tolerance, self.numbers, self.means,
            self.variances, variance_order(self.levels)[0], self.cost,
        )  # fmt: skip

    def made(
        self, value, error, bias, tolerance, numbers, means, variances, order, cost
    ):  # fmt: skip
        """An `Expectation`, in the shape of a value."""
        shape, steps = self.integrand.shape, self.paths.hierarchy.step_size

        def shaped(array):
            array = np.reshape(array, (*np.shape(array)[:-1], *shape))
            return array if array.ndim else float(array)

        return Expectation(
            shaped(value), shaped(error), shaped(bias), shaped(tolerance.of(value)),
            np.array([steps(level) for level in range(len(numbers))]), np.array(numbers),
            shaped(means), shaped(variances), order, int(cost), cost / self.paths.setup.n_rows,
        )  # fmt: skip


def adapt(sampler, tolerance, max_level):
    """Sample until variance and bias meet the tolerance: half of its square for each.

    Raises
    ------
    CouplingError
        The variances of the levels do not fall.
    AccuracyNotReachedError
        It would take more levels than are allowed.
    Exhausted
        It would take more rows.
    """
    while len(sampler.levels) <= COARSEST:
        sampler.add_level()
    while not _settled(sampler, tolerance):
        if len(sampler.levels) > max_level:
            raise not_reached(sampler, tolerance, f"needs levels beyond max_level={max_level}")
        sampler.add_level()
    return sampler.result(tolerance)


def _settled(sampler, tolerance):
    """Sample the levels there are; whether they are fine enough."""
    while True:
        order, error = variance_order(sampler.levels)
        if order + 2.0 * error < MEETING:
            raise not_meeting(sampler, order, error)
        budget = np.square(tolerance.of(sampler.value)) / 2.0
        wanted = optimal_numbers(sampler.variances, sampler.costs, budget)
        sampler.expected = float(np.maximum(wanted, sampler.numbers) @ sampler.costs)
        if (wanted <= sampler.numbers).all():
            break
        wanted = np.minimum(np.ceil(wanted), GROWTH * sampler.numbers)
        sampler.afford(np.maximum(wanted - sampler.numbers, 0.0) @ sampler.costs)
        for level, n in enumerate(wanted):
            sampler.fill(level, int(n))
    errors = np.sqrt(sampler.variances / sampler.numbers[:, None])
    bias = remaining_bias(sampler.means, errors)
    return order >= MEETING and bool((np.square(bias) <= budget).all())


def not_reached(sampler, tolerance, why):
    """An error; with what was estimated, if there is anything to say."""
    result = reached = None
    if len(sampler.levels) > COARSEST and sampler.levels[-1].n >= PILOT:
        result = sampler.result(tolerance)
        reached = f" So far the estimated error is {np.max(result.error):.2g} at most: see the "
        reached += "attribute `result` of this error."
    return AccuracyNotReachedError(
        f"{tolerance} {why}.{reached or ''} Ask for less accuracy (a value near zero has none that "
        "is relative: use atol), use more rows a step where rare ones matter, or draws: "
        "posterior_.expectation(func).",
        result,
    )


def stopped(sampler, tolerance):
    """The error for a callback that has ended the run."""
    return not_reached(sampler, tolerance, "is not reached: a callback ended the run")


def too_dear(sampler, tolerance):
    """The error for an accuracy that costs more than is allowed."""
    why = f"takes about {sampler.expected:.2g} rows or more, and max_cost={sampler.max_cost:g}"
    return not_reached(sampler, tolerance, why)


def not_meeting(sampler, order, error):
    """The error for paths that do not meet."""
    unit = np.maximum(sampler.levels[0].variance, np.finfo(float).tiny)
    shares = [float((level.variance / unit).max()) for level in sampler.levels[1:]]
    return CouplingError(
        "Coupled paths do not meet: the variances of the differences of levels 1, 2, ... are "
        f"{', '.join(f'{share:.2g}' for share in shares)} of that of level 0, which is an order of "
        f"{order:.2g} (standard error {error:.2g}) and should be {sampler.paths.coupling.order:g}. "
        "The posterior has several modes, or forgets slowly where a path began. Use a longer "
        "`shift` or a smaller `step_size` of MultilevelSGLD, more rows a step, or draws: "
        "posterior_.expectation(func) with sampler='hmc'."
    )
