"""Quantiles of predictive distributions, which are mixtures over all draws.

For one row, P(Y <= y) = Σ_s w_s P(Y <= y | η_s, σ_s). Every draw counts, but the sum is not taken
over the draws again for each y: `skbayes_sg.kernels.mixture_nodes` condenses the η_s of the row
into nodes.

The error is that of fourth moments inside of cells, and of a dependence of η and σ inside of
groups: below 0.01 standard deviations of y between the levels 0.01 and 0.99, unless hardly any draw
determines the quantile; then the level that it reaches is off by less than 1 % of its tail
(``tests/models/test_mixture_quantiles.py``).

**Continuous responses** are y = r(η + e) with an increasing function r (`Model.response`). The
noise e depends on the draw but not on the row, so that its distribution function is tabulated once
for all rows, in u = x/(h + |x|) for a scale h of the noise. As the noise of a draw and its η may
depend on each other, draws with similar scales form a group with a table of its own.

**Counts** have a compiled distribution function (`Model.count_cdf`) and no table. Draws with
similar dispersions form a group, in which all have the mean dispersion. Small counts are found by
adding up P(Y = k), which for all nodes together takes less time than one distribution function.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from .._base.jit import entry, inner, pointer
from ..kernels.layout import COUNT_CDF, frozen
from ..kernels.mixture_nodes import N_CELLS, N_SUMS, condense, moments

__all__ = ["PredictiveMixture", "mixture_of"]

# Number of knots of a table of the noise. At three noise scales from the centre the error of a
# quantile is 1e-3 noise scales.
N_KNOTS = 513
# Groups of draws: their largest number, and the widths of the bins of log σ and of log ν.
MAX_GROUPS, SCALE_WIDTH, SHAPE_WIDTH = 64, 0.1, 0.4
# Groups of draws of counts are bins of log(α + SMALL_DISPERSION mean(α)) of this width: differences
# between small α do not matter.
DISPERSION_WIDTH, SMALL_DISPERSION = 0.2, 0.25
MANY_DRAWS = 2000  # with fewer draws than this the bins are narrower in proportion
# Accuracy of quantiles of large counts: in standard deviations, and as a share of the quantile.
COUNT_STEP = 0.002
SMALL_COUNTS = 32  # quantiles up to this count are found by adding up P(Y = k)
# Cells of η are as wide as the noise of log y, in whose variance α counts up to this value: over
# wider cells e^η bends too much.
MOST_DISPERSED = 1.5
# Newton's method ends when a step is smaller than TOLERANCE standard deviations; every search ends
# after MAX_STEPS.
TOLERANCE, MAX_STEPS = 1e-9, 300
WIDTH = 2.0  # the scale h of a table of the noise, in scales of the noise
HIGHEST = 700.0  # largest predictor that is used: e^700 is nearly the greatest float
ROOT_2PI = math.sqrt(2.0 * math.pi)


class PredictiveMixture(NamedTuple):
    """The mixture of all draws, as far as it is the same for the quantiles of all rows.

    Attributes
    ----------
    model : Model
    order : ndarray of int64, shape (n_draws,)
        The draws that have weight, one group after the other.
    weights : ndarray of float64, shape (n_draws,)
        The weights of these draws in this order; their sum is 1.
    starts : ndarray of int64, shape (n_groups + 1,)
        Where groups begin in this order, followed by the number of draws.
    scales : ndarray of float64, shape (n_groups,)
        Scale of the noise in each group; for counts it is the mean dispersion.
    tables : ndarray of float64, shape (n_groups, N_KNOTS)
        P(e <= x) of the noise e of each group at its knots; not used for counts.
    """

    model: object
    order: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    scales: np.ndarray
    tables: np.ndarray

    def quantiles(self, eta, q):
        """Return the smallest y with P(Y <= y) >= q for each row and each level, (n_rows, n_q).

        `eta` are the predictors (n_rows, n_draws), with the draws in the order `self.order`.
        Greater levels never have smaller quantiles.
        """
        up = np.argsort(q)
        levels, out = frozen(q[up]), np.empty((len(eta), len(q)))
        nodes, cells = np.empty((4, 2 * len(self.order))), np.zeros((N_CELLS, N_SUMS))
        common = frozen(eta), self.weights, levels, frozen(ndtri(levels)), self.starts, self.scales
        ends = np.zeros_like(self.starts)
        if self.model.discrete:
            cdf = pointer(self.model.count_cdf, COUNT_CDF)
            _count_quantiles(cdf, *common, cells, nodes, ends, out)
        else:
            _quantiles(*common, self.tables, cells, nodes, ends, out)
            out = self.model.response(out)
        out[:, up] = np.maximum.accumulate(out, axis=1)
        return out


def mixture_of(model, extras, weights, n_draws):
    """Return the `PredictiveMixture` of all draws.

    `extras` are arrays (n_draws,) of the positive parameters of the model; `weights` are those of
    the draws, or None if all are the same.
    """
    weights = np.ones(n_draws) if weights is None else np.asarray(weights, dtype=np.float64)
    order, tables = np.flatnonzero(weights), np.zeros((1, N_KNOTS))
    extras = [np.asarray(values)[order] for values in extras] or [np.zeros(len(order))]
    if model.discrete:
        small = SMALL_DISPERSION * np.average(extras[0], weights=weights[order])
        logs, widths = np.log([extras[0] + (small or 1.0)]), [DISPERSION_WIDTH]
    else:
        logs = np.log(extras)
        widths = [SCALE_WIDTH] + [SHAPE_WIDTH] * (len(logs) - 1)
    group = _groups(logs, np.array(widths))
    among = np.argsort(group, kind="stable")
    order, starts = order[among], np.searchsorted(group[among], np.arange(group.max() + 2))
    own = weights[order] / weights.sum()
    if model.discrete:
        mass = np.add.reduceat(own, starts[:-1])
        scales = np.add.reduceat(own * extras[0][among], starts[:-1]) / mass
    else:
        scales, tables = _tables(model, logs[:, among], own, starts)
    return PredictiveMixture(model, order, frozen(own), starts, scales, tables)


def _groups(logs, widths):
    """Return the number of the group of each draw, 0, 1, ...

    Groups are the bins, with these `widths`, of all rows of `logs` (n_extras, n_draws). Within a
    group η and the noise are taken to be independent, which few draws do not average out: the fewer
    draws, the narrower are the bins, as far as `MAX_GROUPS` allows.
    """
    n = logs.shape[1]
    if not np.ptp(logs):
        return np.zeros(n, int)
    if n <= MAX_GROUPS:
        return np.arange(n)
    widths = widths * min(1.0, n / MANY_DRAWS)
    while True:
        bins = np.floor((logs - logs.min(axis=1, keepdims=True)) / widths[:, None])
        found, group = np.unique(bins, axis=1, return_inverse=True)
        if found.shape[1] <= MAX_GROUPS:
            return group.ravel()
        widths *= 1.25


def _tables(model, logs, weights, starts):
    """Return the scale of the noise in each group, and P(e <= x) of its noise e at the knots.

    Two draws of equal weight stand for a group. They have the means and variances of the logarithms
    of the positive parameters of its draws, and the signs of their covariances with log σ.
    """
    mass = np.add.reduceat(weights, starts[:-1])
    mean = np.add.reduceat(weights * logs, starts[:-1], axis=1) / mass
    off = logs - np.repeat(mean, np.diff(starts), axis=1)
    sd = np.sqrt(np.add.reduceat(weights * off**2, starts[:-1], axis=1) / mass)
    sd *= np.where(np.add.reduceat(weights * off * off[0], starts[:-1], axis=1) < 0.0, -1.0, 1.0)
    extras, scales = np.exp([mean - sd, mean + sd]), np.exp(mean[0])
    u = np.linspace(-1.0, 1.0, N_KNOTS)[1:-1]
    with np.errstate(over="ignore"):
        y = model.response(WIDTH * np.multiply.outer(scales, u / (1.0 - np.abs(u))))
    tables = np.zeros((len(scales), N_KNOTS))
    tables[:, -1] = 1.0
    for part in extras:
        tables[:, 1:-1] += 0.5 * model.cdf(y, 0.0, *part[:, :, None])
    return scales, tables


@inner
def _tail(first, second, x, last):
    """Return the mass of the noise beyond x, which is beyond the last inner knot, and its density.

    `first` and `second` are the masses beyond the last inner knot x_1 and the knot x_2 before it;
    x > 0 is in units of h, for either tail. The tail is a power ``first·(x/x_1)^-a``, as for
    Student's t, with the value `second` at x_2.
    """
    if first <= 0.0:
        return 0.0, 0.0
    x_1, x_2 = 0.5 * last - 1.0, 0.25 * last - 1.0
    a = math.log(second / first) / math.log(x_1 / x_2)
    mass = first * (x_1 / x) ** a
    return mass, a * mass / x


@inner
def _below(y, nodes, masses, ends, scales, tables):
    """Return P(η + e <= y) and its derivative in y.

    P(e <= x) is linear between the knots of the tables, and its tails are powers. The nodes of
    group g are ``nodes[ends[g]:ends[g + 1]]``.
    """
    total, slope, last = 0.0, 0.0, tables.shape[1] - 1
    for g in range(len(scales)):
        width = WIDTH * scales[g]
        for k in range(ends[g], ends[g + 1]):
            x = (y - nodes[k]) / width
            shrink = 1.0 / (1.0 + abs(x))
            place = 0.5 * last * (x * shrink + 1.0)
            i = min(int(place), last - 1)
            if i == 0:
                below, density = _tail(tables[g, 1], tables[g, 2], -x, last)
            elif i == last - 1:
                above = 1.0 - tables[g, i], 1.0 - tables[g, i - 1]
                beyond, density = _tail(above[0], above[1], x, last)
                below = 1.0 - beyond
            else:
                rise = tables[g, i + 1] - tables[g, i]
                below = tables[g, i] + rise * (place - i)
                density = 0.5 * last * rise * shrink * shrink
            total += masses[k] * below
            slope += masses[k] * density / width
    return total, slope


@inner
def _solution(q, guess, spread, nodes, masses, ends, scales, tables):
    """Return y with P(η + e <= y) = q, by Newton's method between bounds.

    The first step is at most `spread`; that limit doubles whenever it is reached.
    """
    y, low, high, longest = guess, -np.inf, np.inf, spread
    for _ in range(MAX_STEPS):
        below, slope = _below(y, nodes, masses, ends, scales, tables)
        if below < q:
            low = y
        else:
            high = y
        step = (q - below) / slope if slope > 0.0 else math.copysign(np.inf, q - below)
        if abs(step) > longest:
            step = math.copysign(longest, step)
            longest *= 2.0
        if abs(step) <= TOLERANCE * spread:
            break
        new = y + step
        if new == y:
            break  # the step is less than a rounding error
        y = new if low < new < high else 0.5 * (low + high)
    return y


@inner
def _centred(nodes_out, masses, n):
    """Subtract the mean from the first n nodes; return the mean and their standard deviation.

    The masses have the sum 1.
    """
    mean, square = 0.0, 0.0
    for k in range(n):
        mean += masses[k] * nodes_out[k]
    for k in range(n):
        nodes_out[k] -= mean
        square += masses[k] * nodes_out[k] * nodes_out[k]
    return mean, math.sqrt(square)


@entry
def _quantiles(eta, weights, q, normal, starts, scales, tables, cells, nodes, ends, out):
    """Write the quantiles of η + e for all rows and levels q to `out`, (rows, levels).

    `normal` has the quantiles of the standard normal distribution at the levels.
    """
    places, masses = nodes[0], nodes[1]
    for i in range(eta.shape[0]):
        noise = 0.0
        for g in range(len(scales)):
            a, b = starts[g], starts[g + 1]
            ends[g + 1] = condense(eta[i], weights, a, b, scales[g], cells, places, masses, ends[g])
            for k in range(ends[g], ends[g + 1]):
                noise += scales[g] * masses[k]
        mean, sd = _centred(places, masses, ends[-1])
        sd = math.sqrt(sd * sd + noise * noise)
        for j in range(q.shape[0]):
            guess = sd * normal[j]
            out[i, j] = mean + _solution(q[j], guess, sd, places, masses, ends, scales, tables)


@inner
def _count_below(cdf, k, nodes, masses, ends, dispersions):
    """Return P(Y <= k) of the mixture of counts whose means are the nodes."""
    total = 0.0
    for g in range(len(dispersions)):
        for m in range(ends[g], ends[g + 1]):
            total += masses[m] * cdf(k, nodes[m], dispersions[g])
    return total


@inner
def _between(low, high, below_low, below_high, q, halve):
    """Return a whole number between `low` and `high`, near the quantile of level q.

    It is the middle if `halve`. Otherwise it is by linear interpolation of the log-odds of
    P(Y <= k), or of P(Y <= k) itself where these are infinite or nearly equal.
    """
    if halve:
        share = 0.5
    elif below_low > 0.0 and below_high < 1.0 and below_high - below_low > 1e-9:
        first = math.log(below_low / (1.0 - below_low))
        last = math.log(below_high / (1.0 - below_high))
        share = (math.log(q / (1.0 - q)) - first) / (last - first)
    else:
        share = (q - below_low) / (below_high - below_low)
    return min(max(np.floor(low + share * (high - low)), low + 1.0), high - 1.0)


@inner
def _add_up(cdf, q, nodes, masses, ends, dispersions, rates, terms, most, out):
    """Write those quantiles to `out` that are at most `most`; return their number and P(Y <= most).

    The levels q are in increasing order; P(Y <= most) is not reached if all quantiles are smaller.
    The recursion is P(Y = k) = P(Y = k - 1) r (1 + (k - 1) α)/k with r = μ/(1 + αμ).
    """
    for g in range(len(dispersions)):
        for m in range(ends[g], ends[g + 1]):
            rates[m] = nodes[m] / (1.0 + dispersions[g] * nodes[m])
            terms[m] = masses[m] * cdf(0.0, nodes[m], dispersions[g])
    below, j, k = 0.0, 0, 0
    for m in range(ends[-1]):
        below += terms[m]
    while True:
        while j < len(q) and below >= q[j]:
            out[j] = k
            j += 1
        if j == len(q) or k == most:
            return j, below
        k += 1
        for g in range(len(dispersions)):
            factor = (1.0 + (k - 1.0) * dispersions[g]) / k
            for m in range(ends[g], ends[g + 1]):
                terms[m] *= factor * rates[m]
                below += terms[m]


@inner
def _count_solution(cdf, q, guess, reach, near, low, below_low, nodes, masses, ends, dispersions):
    """Return a whole number k with P(Y <= k) >= q, at most `near` above the smallest such number.

    Nor is it more than the share `COUNT_STEP` of k above it: where tails are heavy, a small part of
    a standard deviation holds much of the mass. The search begins at `guess`; its first step is
    `reach` times the error of the level. Always P(Y <= low) < q <= P(Y <= high).
    """
    high, below_high, step, bounded = np.inf, 1.0, 0.0, low >= 0.0
    k = np.floor(max(guess, low + 1.0))
    for t in range(MAX_STEPS):
        below = _count_below(cdf, k, nodes, masses, ends, dispersions)
        if below < q:
            low, below_low = k, below
            bounded = True
        else:
            high, below_high = k, below
        if not low + max(min(near, COUNT_STEP * high), 1.0) < high:
            break
        step = 4.0 * step if step > 0.0 else 1.0 + np.floor(reach * abs(below - q))
        if high == np.inf:
            k = low + step
        elif not bounded:
            k = max(high - step, 0.0)
        else:
            k = _between(low, high, below_low, below_high, q, t % 3 == 2)
    return high


@inner
def _spread_of_counts(nodes, masses, ends, dispersions):
    """Return the mean and standard deviation of the mixture of counts whose means are the nodes."""
    mean, noise, square = 0.0, 0.0, 0.0
    for g in range(len(dispersions)):
        for m in range(ends[g], ends[g + 1]):
            mean += masses[m] * nodes[m]
            noise += masses[m] * nodes[m] * (1.0 + dispersions[g] * nodes[m])
    for m in range(ends[-1]):
        square += masses[m] * (nodes[m] - mean) * (nodes[m] - mean)
    return mean, math.sqrt(square + noise)


@inner
def _guess(z, mean, sd, centre, spread):
    """Return an approximate quantile of a count, for the level of the standard normal quantile z.

    It is that of the gamma law with this `mean` and `sd`, by Wilson and Hilferty. For sd > mean,
    where tails are heavy, it is that of the log-normal law whose logarithm has mean `centre` and
    standard deviation `spread`.
    """
    if sd > mean:
        return math.exp(min(centre + z * spread, HIGHEST))
    third = sd / (3.0 * mean)
    return mean * max(1.0 + third * (z - third), 0.0) ** 3


@entry
def _count_quantiles(cdf, eta, weights, q, normal, starts, dispersions, cells, nodes, ends, out):
    """Write the quantiles of counts for all rows and levels q to `out`, (rows, levels).

    `normal` has the quantiles of the standard normal distribution at the levels.
    """
    places, masses = nodes[0], nodes[1]
    for i in range(eta.shape[0]):
        _, mean_eta, sd_eta = moments(eta[i], weights, 0, eta.shape[1])
        # Variance of log y from Poisson noise, at a predictor two deviations above the mean.
        poisson = math.exp(-min(max(mean_eta + 2.0 * sd_eta, 0.0), HIGHEST))
        for g in range(len(dispersions)):
            a, b = starts[g], starts[g + 1]
            noise = math.sqrt(poisson + min(dispersions[g], MOST_DISPERSED))
            ends[g + 1] = condense(eta[i], weights, a, b, noise, cells, places, masses, ends[g])
        for k in range(ends[-1]):
            places[k] = math.exp(min(places[k], HIGHEST))
        mean, sd = _spread_of_counts(places, masses, ends, dispersions)
        near, spread = max(1.0, COUNT_STEP * sd), math.sqrt(sd_eta**2 + 1.0)
        first, low, below = 0, -1.0, 0.0
        if _guess(normal[0], mean, sd, mean_eta, spread) < SMALL_COUNTS:
            low = float(SMALL_COUNTS)
            first, below = _add_up(
                cdf, q, places, masses, ends, dispersions, nodes[2], nodes[3], low, out[i]
            )
        for j in range(first, q.shape[0]):
            guess = _guess(normal[j], mean, sd, mean_eta, spread)
            reach = 1.1 * ROOT_2PI * sd * math.exp(0.5 * min(normal[j] ** 2, 9.0))
            out[i, j] = _count_solution(
                cdf, q[j], guess, reach, near, low, below, places, masses, ends, dispersions
            )
