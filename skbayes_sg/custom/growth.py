"""Whether a log posterior grows without bound far away, as it does if the sign of f is wrong.

Along one parameter θ_j the log posterior

    g(t) = Σ_i weight_i f_i(θ + t e_j) + log p(θ + t e_j)

is evaluated at t = 4^k units, to both sides, far beyond all responses; a positive parameter is
multiplied by 4^k, and divided by it. There is no maximum if g rises there faster than linearly.

A density in y cannot do this: if f(η, y) → ∞ for y of positive measure, its integral over y is
infinite in the limit (Fatou). One parameter is enough, since a function whose sign is wrong is
convex where it should be concave. Linear growth is not reported, since a normal prior outweighs it,
and rows that are not among those evaluated may do so as well.
"""

from typing import NamedTuple

import numpy as np

from ..kernels.layout import FACT_Y
from ..priors.table import prior_value, starting_point

__all__ = ["Growth", "growth_of_density", "growth_of_regression", "most_in_a_row"]

FACTOR = 4.0  # ratio of each distance t to the one before it
# Smallest and largest t, in units of the parameter. The largest is multiplied by the size of the
# largest response if that exceeds 1.
NEAREST, FARTHEST = 1.0 / 16.0, 1e12
# g grows without bound if it rises faster than t^POWER: slopes of t^p grow by the factor 4^(p - 1)
# from one t to the next.
POWER = 1.5
SLOPES = 3  # the last slopes of g along a ray, which must be positive and grow by that factor
# Where g overflows before the largest t, as e^t does, it must have risen by this many nats before.
HUGE = 1e50
SHOWN = 1e3  # messages show g at the largest t up to this one
ROWS = 2000  # rows of a regression that are evaluated first; the others only confirm a growth
WORK = 1e6  # rows x values of θ of a density that are evaluated first
# Columns of a regression without intercept, and parameters of a density, along which g is examined.
MOST_COLUMNS, MOST_PARAMETERS = 3, 20
CHUNK = 1 << 15  # rows whose predictors are in memory together


class Growth(NamedTuple):
    """A parameter along which g grows without bound, and two points on the ray that show it."""

    parameter: int  # its position in θ
    near: np.ndarray  # θ where the ray begins
    far: np.ndarray  # θ farther along the ray, with t up to `SHOWN`
    values: tuple[float, float]  # g at `near` and at `far`, in nats
    target: object  # the posterior given the rows that were evaluated


def _values(target, thetas):
    """Return the log posterior in nats at each θ of `thetas`, up to a constant."""
    total = np.array([-prior_value(target.prior, theta) for theta in thetas])
    for first in range(0, target.n_rows, CHUNK):
        rows = slice(first, min(first + CHUNK, target.n_rows))
        design, facts = target.design(rows), target.data.facts[rows]
        everything = np.arange(len(facts)), 0, len(facts)
        for k, theta in enumerate(thetas):
            eta = np.ascontiguousarray(target.along(design, theta))
            try:
                total[k] -= target.model.loss(facts, *everything, eta)
            except ZeroDivisionError:  # raised by functions that users have compiled themselves
                total[k] = np.nan
    return total


def _grows(sizes, values):
    """Whether g rises faster than t^POWER at the end of a ray.

    `sizes` are the distances t along the ray, increasing, and `values` are g there; values from the
    first that is not finite are ignored.
    """
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
    """Return the distances t along a ray from `base`, increasing, and θ at each of them.

    A positive parameter j, whose logarithm is θ_j, is multiplied by t if `step` is 1 and divided by
    t if it is -1; any other one moves by t steps. The largest t is about ``FARTHEST * size``.
    """
    first = 1.0 if positive else NEAREST
    n = int(np.ceil(np.log(FARTHEST * size / first) / np.log(FACTOR)))
    sizes = first * FACTOR ** np.arange(n + 1)
    if not positive:
        sizes = np.r_[0.0, sizes]
    thetas = np.tile(base, (len(sizes), 1))
    thetas[:, j] += step * (np.log(sizes) if positive else sizes)
    return sizes, thetas


def _some_rows(target, n):
    """Return the posterior with n of the rows, whose weights are scaled to the total of all."""
    if target.n_rows <= n:
        return target
    rows = np.linspace(0, target.n_rows - 1, n).astype(int)
    weight = target.weight[rows]
    return target.take(rows, weight * (target.weight.sum() / max(weight.sum(), 1e-300)))


def _first_growth(target, some, base, steps, positive):
    """Return the first `Growth` along rays from `base`, or None.

    `steps` are pairs (parameter, size of a step); both directions are tried. A growth that is found
    with the rows of the posterior `some` counts only if it is there with all rows of `target` too.
    """
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
    """Return the first `Growth` of a regression along its linear predictors and extras, or None.

    A linear predictor is moved by its intercept, or else by coefficients, of up to `MOST_COLUMNS`.
    """
    some, n_extra = _some_rows(target, ROWS), target.model.n_extra
    D, d, steps = target.n_parameters, target.n_features, []
    where = target.positions()
    for own in where[: target.model.n_linear]:
        if target.intercept:
            steps.append((int(own[-1]), 1.0))
        elif d:
            _, mean, variance = some.column_moments()
            spread = np.sqrt(mean**2 + variance)
            chosen = np.linspace(0, d - 1, min(d, MOST_COLUMNS)).astype(int)
            steps += [(int(own[c]), 1.0 / spread[c]) for c in chosen if spread[c] > 0.0]
    steps += [(int(own[0]), 1.0) for own in where[target.model.n_linear :]]
    return _first_growth(
        target, some, starting_point(target.prior), steps, np.arange(D) >= D - n_extra
    )


def growth_of_density(target, start, positive, units):
    """Return the first `Growth` of a density along some of its parameters, or None.

    There are up to `MOST_PARAMETERS` of them. Those that are not positive move by steps of their
    `units`.
    """
    D = target.n_parameters
    chosen = np.unique(np.linspace(0, D - 1, min(D, MOST_PARAMETERS)).astype(int))
    rays = 2 * len(chosen) * np.log(FARTHEST) / np.log(FACTOR)
    some = _some_rows(target, int(max(WORK / rays, 100)))
    steps = [(int(j), 1.0 if positive[j] else float(units[j])) for j in chosen]
    return _first_growth(target, some, start, steps, positive)


def most_in_a_row(growth):
    """Return [(z, f) near, (z, f) far] and y of the row of a regression whose f rises most.

    z are the predictors of the row, and f its log-likelihood, at the two ends of the `Growth`.
    """
    target, ends = growth.target, []
    y, design = target.data.facts[:, FACT_Y].copy(), target.design(slice(None))
    for theta in (growth.near, growth.far):
        ends.append(np.ascontiguousarray(target.along(design, theta)))
    with np.errstate(all="ignore"):
        near, far = (target.model.log_likelihood(z[:, None], y)[:, 0] for z in ends)
        i = int(np.nanargmax(far - near))
    return [(z[i], float(v[i])) for z, v in zip(ends, (near, far), strict=True)], float(y[i])
