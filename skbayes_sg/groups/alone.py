"""Likelihoods of rows with the effects of levels integrated out that no other row has informed.

Only its own row informs the effect u of a level with a single row. The posterior without the row
has u ~ N(0, v), and importance weights reach it badly or not at all from draws that know y. With u
integrated out, the posterior of all other parameters φ is the same, and the likelihood of the row
is

    p(y | φ) = ∫ p(y | η + u) N(u; 0, v) du,

with v = τ², or the sum of the τ_k² of all columns in which the row is alone. This likelihood has no
u, so that leaving out the row is as harmless as for any other row. A row of weight a < 1 takes
∫ p^a N du with it. The integral is also the likelihood of a row of a new level.

It is computed by the trapezoidal rule in x, t = c + w sinh(ax)/a, for predictors t = η + u about a
place c with a width w. Away from c the nodes grow apart, since one side may be flat as far as the
prior reaches, as for a class that is certain or a count of zero.

Where log p is concave and u was drawn, c is near the only peak of the integrand and w is its width
there, by Newton steps from the effect as it was drawn, for each row and each draw. With τ up to 3
errors are below 0.001 for any such row, and with τ = 10 below 0.1 for the flat ones
(``tests/groups/test_alone.py``).

Elsewhere, as in robust regression, for functions of users and for new levels, the integrand may
have a peak where the prior is, one or two others where the likelihood is large, or one between.
Rules about each of these share the integral. A rule with spacing h_r(t) = √(w_r² + a²(t - c_r)²)
between nodes takes the part h_r⁻²/Σ_q h_q⁻² of the integrand, which is smooth for each of them, and
most of it near narrow peaks that only one of them resolves. Errors are below 0.05.
"""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Alone"]

# Newton steps towards the peak, and the longest of them in standard deviations of the draws of t.
NEWTON_STEPS, LONGEST_STEP = 5, 3.0
# Distance of the places for finite differences, in the smaller of this unit and √v.
APART = 0.03
SPACING, GROWTH = 0.6, 0.5  # spacing of the nodes in x; a
FAR, FAR_PRIORS = 60.0, 8.0  # how far nodes reach: in widths of the peak, and in those of the prior
# Peaks of a likelihood are looked for at a few draws: at these places in units of √v, and from the
# two best of them by so many steps, each twice as long as the one before if it led upwards, and
# half as long if not, up to FARTHEST √v away.
FEW_DRAWS, GRID, STEPS, FARTHEST = 8, np.linspace(-8.0, 8.0, 33), 80, 1e9
MOST_THIRDS = 20  # times that a width is divided by three
# Where the integrand is looked at on the way from the prior to a peak of the likelihood, and steps
# of the search for its maximum there.
AFAR, NEAR = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95), (1e-2, 1e-3, 1e-5, 1e-7, 1e-9)
BETWEEN = np.append(AFAR, 1.0 - np.array(NEAR))
GOLDEN_STEPS = 60


class _Few(NamedTuple):
    """Some of the draws, as components of a mixture."""

    places: np.ndarray

    def values(self, values):
        """The values of a parameter at these draws."""
        return values[self.places]


class Alone(NamedTuple):
    """Likelihoods of rows that are alone in their level, with its effect integrated out.

    Parameters
    ----------
    mean : ndarray of shape (n_rows, n_draws)
        η, the predictors without the effects that are integrated out.
    variance : ndarray of shape (n_rows, n_draws)
        v, the prior variance of these effects.
    one_peak : bool
        Whether log p is known to be concave in t, and effects were drawn.
    """

    mean: Any
    variance: Any
    one_peak: bool = True

    def values(self, values):
        """Return the values of a parameter unchanged: each draw remains a single component."""
        return values

    def log_likelihood(self, of_predictors, eta, powers=1.0):
        """log ∫ p^a N du, (rows, draws), for powers a (rows, 1), of which 1 makes it log p(y | φ).

        Predictors `eta` (rows, draws, 1) have effects as they were drawn.
        """

        def log_p(t, components=self):
            return powers * of_predictors(t[:, :, None], components)

        def log_joint(t):
            return log_p(t) - 0.5 * np.square(t - self.mean) / self.variance

        with np.errstate(over="ignore", invalid="ignore"):  # likelihoods of e^t that are zero
            if self.one_peak:
                rules, far = [_peak(log_joint, eta[:, :, 0], self.variance)], FAR
            else:
                rules = self._rules(log_p, log_joint)
                far = FAR_PRIORS * max(np.max(rules[-1][1] / width) for _, width in rules)
            return _log_integral(log_joint, rules, far) - 0.5 * np.log(2.0 * np.pi * self.variance)

    def removed(self, of_predictors, eta, log_likelihood, powers):
        """What rows take with them that are left out with these powers (rows,), as logarithms."""
        if (powers == 1.0).all():
            return log_likelihood
        return self.log_likelihood(of_predictors, eta, powers[:, None])

    def _rules(self, log_p, log_joint):
        """Pairs of places and widths (rows, draws): of peaks of the likelihood, then of the prior.

        Where a peak is as wide as the prior for all rows, the rule of the prior does without. A
        response that is far from the prior has the peak of the integrand between the two.
        """
        root, rules = np.sqrt(self.variance), []
        for place in self._peaks(log_p):
            t = place[:, None] + np.zeros(root.shape)
            width = _width(log_p, t, root)
            if (width < root).any():
                rules.append((t, width))
            heights = [log_joint(self.mean + s * (t - self.mean)) for s in (0.0, 1.0, *BETWEEN)]
            if (np.fmax.reduce(heights[2:]) > np.fmax(heights[0], heights[1]) + 1.0).any():
                t = _highest_between(log_joint, self.mean, t)
                rules.append((t, _width(log_joint, t, root)))
        return [*rules, (self.mean, root)]

    def _peaks(self, log_p):
        """The place of the highest peak of the likelihood of each row, and of the next if any has.

        They are arrays (rows,). Where a row has one peak, it is also the next.
        """
        S = self.mean.shape[1]
        few = _Few(np.unique(np.linspace(0, S - 1, FEW_DRAWS).astype(int)))
        centre, unit = self.mean.mean(axis=1), np.sqrt(self.variance.max(axis=1))

        def height(t):
            found = log_p(np.repeat(t[:, None], len(few.places), axis=1), few)
            return np.fmax(found, -np.inf).mean(axis=1)

        heights = np.array([height(centre + x * unit) for x in GRID])
        beside = np.pad(heights, ((1, 1), (0, 0)), constant_values=-np.inf)
        best = heights.argmax(axis=0)
        is_peak = (heights > beside[:-2]) & (heights > beside[2:])
        is_peak[best, np.arange(len(best))] = False
        second = np.where(is_peak, heights, -np.inf).argmax(axis=0)
        second = np.where(is_peak.any(axis=0), second, best)
        chosen = [best] if (second == best).all() else [best, second]
        return [_climbed(height, centre, unit, centre + GRID[own] * unit) for own in chosen]


def _width(f, t, root):
    """The largest √v/3^k within which f falls by at most half a nat from t; `root` is √v."""
    top, width = f(t), root
    for _ in range(MOST_THIRDS):
        falls = np.fmin(f(t - width), f(t + width)) < top - 0.5
        if not falls.any():
            break
        width = np.where(falls, width / 3.0, width)
    return width


def _highest_between(f, low, high):
    """Places (rows, draws) of the maximum of a concave f between two others, by golden section."""
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)
    for _ in range(GOLDEN_STEPS):
        at = [high - ratio * (high - low), low + ratio * (high - low)]
        is_low = f(at[0]) > f(at[1])
        low, high = np.where(is_low, low, at[0]), np.where(is_low, at[1], high)
    return 0.5 * (low + high)


def _climbed(height, centre, unit, t):
    """Places (rows,) of maxima of `height`, by steps upwards from t."""
    top, step = height(t), 0.25 * unit
    for _ in range(STEPS):
        moved = np.zeros(len(t), dtype=bool)
        for sign in (-1.0, 1.0):
            place = np.clip(t + sign * step, centre - FARTHEST * unit, centre + FARTHEST * unit)
            found = height(place)
            higher = found > top
            t, top, moved = np.where(higher, place, t), np.where(higher, found, top), moved | higher
        step = np.where(moved, 2.0 * step, 0.5 * step)
    return t


def _nodes(far):
    """Pairs of sinh(ax)/a and its derivative times the spacing, until the former exceeds `far`."""
    last = int(np.arcsinh(GROWTH * far) / GROWTH / SPACING) + 1
    x = SPACING * np.arange(-last, last + 1)
    return zip(np.sinh(GROWTH * x) / GROWTH, SPACING * np.cosh(GROWTH * x), strict=True)


def _log_integral(log_joint, rules, far):
    """log ∫ e^f dt, (rows, draws), for f = `log_joint`, by rules of places and widths.

    Terms are relative to the largest f at the places, which f hardly ever exceeds by much.
    """
    top = np.fmax.reduce([log_joint(t) for t, _ in rules])
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.zeros(top.shape)
    for node, stretch in _nodes(far):
        for k, (t, width) in enumerate(rules):
            place = t + width * node
            terms = np.exp(log_joint(place) - top)
            terms *= stretch * width * _share(k, node, rules, place)
            total += np.where(np.isnan(terms), 0.0, terms)
    with np.errstate(divide="ignore"):
        return top + np.log(total)


def _share(k, node, rules, place):
    """The share h_k⁻²/Σ_q h_q⁻² of rule k in the integrand at the places of one of its nodes."""
    own, total = np.square(rules[k][1]) * (1.0 + (GROWTH * node) ** 2), 1.0
    for centre, width in rules[:k] + rules[k + 1 :]:
        total = total + own / (np.square(width) + np.square(GROWTH * (place - centre)))
    return 1.0 / total


def _peak(log_joint, t, variance):
    """Places near the modes of log-concave functions of t, and the widths of their peaks there."""
    unit = t.std(axis=1, keepdims=True)
    unit = np.where(unit > 0.0, unit, np.sqrt(variance))
    apart = APART * np.minimum(unit, np.sqrt(variance))
    for _ in range(NEWTON_STEPS):
        slope, bend = _differences(log_joint, t, apart, variance)
        t = t + np.nan_to_num(np.clip(slope / bend, -LONGEST_STEP * unit, LONGEST_STEP * unit))
    return t, 1.0 / np.sqrt(_differences(log_joint, t, apart, variance)[1])


def _differences(log_joint, t, apart, variance):
    """First and negative second derivatives of `log_joint`; the latter at least 1/`variance`."""
    below, here, above = log_joint(t - apart), log_joint(t), log_joint(t + apart)
    bend = (2.0 * here - below - above) / np.square(apart)
    return (above - below) / (2.0 * apart), np.fmax(bend, 1.0 / variance)
