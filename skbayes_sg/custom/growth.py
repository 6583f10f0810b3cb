"""Whether a log posterior grows without bound far away, as it does if the sign of f is wrong.

Along one parameter θ_j the log posterior

    g(t) = Σ_i weight_i f_i(θ + t e_j) + log p(θ + t e_j)

is looked at for t = 4^k units, to both sides, far beyond all responses; a positive parameter is
multiplied by 4^k, and divided by it. There is no maximum if g rises there faster than linearly.

A density in y cannot do this: if f(η, y) → ∞ for y of positive measure, its integral over y is
infinite in the limit (Fatou). One parameter is enough, since a function whose sign is wrong is
convex where it should be concave. Linear growth is left alone, since a normal prior outweighs it,
and there may be other rows that do.
"""

from typing import NamedTuple

import numpy as np

from ..kernels.layout import FACT_Y
from ..priors.table import prior_value, starting_point

__all__ = ["Growth", "growth_of_density", "growth_of_regression", "most_in_a_row"]

FACTOR = 4.0  # from one t to the next
NEAREST, FARTHEST = 1.0 / 16.0, 1e12  # t in units, for responses up to 1 in size
POWER = 1.5  # of t; slopes of t^p grow by the factor 4^(p - 1)
SLOPES = 3  # which have to grow
HUGE = 1e50  # what is gained before the range of floats ends, as by e^t
SHOWN = 1e3  # the largest t in messages
ROWS = 2000  # that are looked at first
WORK = 1e6  # rows x values, likewise, for densities
MOST = 3, 20  # columns of a regression without intercept, and parameters of a density
CHUNK = 1 << 15  # rows


class Growth(NamedTuple):
    """Where g grows without bound: the parameter, and parameters nearby and far away."""

    parameter: int
    near: np.ndarray
    far: np.ndarray
    values: tuple[float, float]
    target: object  # of the rows that were looked at


def _values(target, thetas):
    """The log posterior at some θ."""
    total = np.array([-prior_value(target.prior, theta) for theta in thetas])
    for first in range(0, target.n_rows, CHUNK):
        rows = slice(first, min(first + CHUNK, target.n_rows))
        design, facts = target.design(rows), target.data.facts[rows]
        everything = np.arange(len(facts)), 0, len(facts)
        for k, theta in enumerate(thetas):
            eta = np.ascontiguousarray(target.along(design, theta))
            try:
                total[k] -= target.model.loss(facts, *everything, eta)
            except ZeroDivisionError:  # of functions that users have compiled
                total[k] = np.nan
    return total


def _grows(sizes, values):
    """Whether values at growing sizes rise faster than linearly where they end."""
    finite = np.isfinite(values)
    n = len(values) if finite.all() else int(np.argmin(finite))
    if n <= SLOPES:
        return False
    gain = values[n - 1] - values[0]
    slopes = (np.diff(values[:n]) / np.diff(sizes[:n]))[-SLOPES:]
    steeper = slopes[1:] > FACTOR ** (POWER - 1.0) * slopes[:-1]
    least = sizes[-1] if n == len(values) else HUGE
    return bool(gain > least and (slopes > 0.0).all() and steeper.all())


def _ray(base, j, step, positive, size):
    """Sizes t, and θ there."""
    first = 1.0 if positive else NEAREST
    n = int(np.ceil(np.log(FARTHEST * size / first) / np.log(FACTOR)))
    sizes = first * FACTOR ** np.arange(n + 1)
    if not positive:
        sizes = np.r_[0.0, sizes]
    thetas = np.tile(base, (len(sizes), 1))
    thetas[:, j] += step * (np.log(sizes) if positive else sizes)
    return sizes, thetas


def _some_rows(target, n):
    """The posterior with n of the rows, which stand for all."""
    if target.n_rows <= n:
        return target
    rows = np.linspace(0, target.n_rows - 1, n).astype(int)
    weight = target.weight[rows]
    return target.take(rows, weight * (target.weight.sum() / max(weight.sum(), 1e-300)))


def _first_growth(target, some, base, steps, positive):
    """The first `Growth` along parameters with these steps; rows that are left out confirm it."""
    size = max(1.0, float(np.abs(some.labels()).max(initial=0.0)))
    with np.errstate(all="ignore"):
        for j, step in steps:
            for own in (step, -step):
                sizes, thetas = _ray(base, j, own, positive[j], 1.0 if positive[j] else size)
                values = _values(some, thetas)
                if not _grows(sizes, values):
                    continue
                if some is not target and not _grows(sizes, _values(target, thetas)):
                    continue
                k = np.flatnonzero(np.isfinite(values) & (sizes <= SHOWN))[-1]
                shown = float(values[0]), float(values[k])
                return Growth(j, thetas[0], thetas[k], shown, some)
    return None


def growth_of_regression(target):
    """The `Growth` of a regression along its linear predictors and extras, or None."""
    some, n_extra = _some_rows(target, ROWS), target.model.n_extra
    D, d, steps = target.n_parameters, target.n_features, []
    where = target.positions()
    for own in where[: target.model.n_linear]:
        if target.intercept:
            steps.append((int(own[-1]), 1.0))
        elif d:
            _, mean, variance = some.column_moments()
            spread = np.sqrt(mean**2 + variance)
            chosen = np.linspace(0, d - 1, min(d, MOST[0])).astype(int)
            steps += [(int(own[c]), 1.0 / spread[c]) for c in chosen if spread[c] > 0.0]
    steps += [(int(own[0]), 1.0) for own in where[target.model.n_linear :]]
    return _first_growth(
        target, some, starting_point(target.prior), steps, np.arange(D) >= D - n_extra
    )


def growth_of_density(target, start, positive, units):
    """The `Growth` of a density along its parameters, or None."""
    D = target.n_parameters
    chosen = np.unique(np.linspace(0, D - 1, min(D, MOST[1])).astype(int))
    rays = 2 * len(chosen) * np.log(FARTHEST) / np.log(FACTOR)
    some = _some_rows(target, int(max(WORK / rays, 100)))
    steps = [(int(j), 1.0 if positive[j] else float(units[j])) for j in chosen]
    return _first_growth(target, some, start, steps, positive)


def most_in_a_row(growth):
    """((z, f) nearby and far away, y) of the row of a regression that gains most."""
    target, ends = growth.target, []
    y, design = target.data.facts[:, FACT_Y].copy(), target.design(slice(None))
    for theta in (growth.near, growth.far):
        ends.append(np.ascontiguousarray(target.along(design, theta)))
    with np.errstate(all="ignore"):
        near, far = (target.model.log_likelihood(z[:, None], y)[:, 0] for z in ends)
        i = int(np.nanargmax(far - near))
    return [(z[i], float(v[i])) for z, v in zip(ends, (near, far), strict=True)], float(y[i])
