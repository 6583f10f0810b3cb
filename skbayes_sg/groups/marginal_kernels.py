"""Kernels of `marginal`: integrals over the effect of each level, and draws of it."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._base.jit import entry, inlined, inner
from ..kernels.sigmoid import HIGHEST, decay

__all__ = ["LevelRows", "Rule", "integrate_levels"]

MOST_TRIES = 200  # proposals for an effect, of which about three in four are accepted
LOWEST_BOUND = -2.0  # nats above the highest node that a bound is at most
CAP = 80.0  # nats below its maximum at which a log density is cut off before it is interpolated


class Rule(NamedTuple):
    """A rule of integration, at even steps in x: t = sinh(a x)/a. All arrays are read-only."""

    spacing: float  # distance of nodes in x
    growth: float  # a, or 0 for t = x
    nodes: np.ndarray  # t
    log_steps: np.ndarray  # the logarithms of their weights


class LevelRows(NamedTuple):
    """Some levels and their rows. All arrays are read-only."""

    facts: Any  # (n_rows, 2 or more): as in `Data`
    starts: np.ndarray  # (n_levels + 1,): where the rows of a level begin
    information: np.ndarray  # (n_levels,): H; P = H + 1/τ² is about the precision of an effect


@inlined
def _log_sum(heights):
    """log Σ_k e^-heights_k."""
    lowest, total = heights.min(), 0.0
    for k in range(heights.shape[0]):
        total += decay(lowest - heights[k])
    return math.log(total) - lowest


@inner
def _cubic(heights, cell, share):
    """The cubic through four nodes about a cell of the nodes, at a share of the way through it."""
    first = max(min(cell - 1, heights.shape[0] - 4), 0)
    v = cell - (first + 1) + share
    a, b, c, d = heights[first], heights[first + 1], heights[first + 2], heights[first + 3]
    linear, square = c - a / 3.0 - 0.5 * b - d / 6.0, 0.5 * (a + c) - b
    return b + v * (linear + v * (square + v * ((d - a) / 6.0 + 0.5 * (b - c))))


@inlined
def _set_bounds(heights, lowest, bend, bound, cumulated):
    """Set about the lowest height in each cell, and the sums of e^-bound of the cells so far.

    Heights are those above `lowest`, and at most `CAP`. A convex function falls by at most Δ²/8
    below the ends of a cell.
    """
    n = heights.shape[0]
    for k in range(n):
        heights[k] = min(heights[k] - lowest, CAP)
    bend[0] = bend[n - 1] = 0.0
    for k in range(1, n - 1):
        bend[k] = max(heights[k - 1] - 2.0 * heights[k] + heights[k + 1], 0.0)
    for k in range(n - 1):
        bound[k] = min(heights[k], heights[k + 1]) - 0.15 * max(bend[k], bend[k + 1])
        cumulated[k] = decay(min(LOWEST_BOUND - bound[k], 0.0))
    for k in range(1, n - 1):
        cumulated[k] += cumulated[k - 1]


@inlined
def _drawn(rng, heights, scratch):
    """A draw of x, in steps from the first node, of the density e^-heights between the nodes.

    The cell of a proposal is drawn by the bound of its density, and it is accepted by its density.
    """
    n, bound, cumulated = heights.shape[0], scratch[1], scratch[2]
    _set_bounds(heights, heights.min(), scratch[0], bound, cumulated)
    for _ in range(MOST_TRIES):
        place, cell = cumulated[n - 2] * rng.random(), 0
        while cell < n - 2 and cumulated[cell] < place:
            cell += 1
        share = rng.random()
        if rng.random() < math.exp(bound[cell] - _cubic(heights, cell, share)):
            return cell + share
    return 1.0 * np.argmin(heights)


@inner
def _check(heights, out):
    """out ← how far the ends of a density are below its top, and a relative error of its cubics.

    Their integral is the trapezoidal rule at the middles of the cells, which for a smooth density
    agrees with that at the nodes.
    """
    n, lowest, at_nodes, between = heights.shape[0], heights.min(), 0.0, 0.0
    for k in range(n):
        at_nodes += math.exp(lowest - heights[k])
    for cell in range(n - 1):
        between += math.exp(min(lowest - _cubic(heights, cell, 0.5), HIGHEST))
    out[0] = min(heights[0], heights[n - 1]) - lowest
    out[1] = abs(between / at_nodes - 1.0)


@inlined
def _effect(x, rule, middle, width):
    """The effect at a place x, in steps from the first node of a rule."""
    x = rule.spacing * (x - 0.5 * (rule.nodes.shape[0] - 1))
    return middle + width * (math.sinh(rule.growth * x) / rule.growth if rule.growth > 0.0 else x)


@inlined
def _place(rule, information, middle, precision, width_out, shifts_out):
    """Set the widths P_l^-½ and the nodes of all levels at a draw."""
    for level in range(information.shape[0]):
        width_out[level] = 1.0 / math.sqrt(information[level] + precision)
        for k in range(rule.nodes.shape[0]):
            shifts_out[level, k] = middle[level] + width_out[level] * rule.nodes[k]


@entry
def integrate_levels(
    add_shifted, levels, rule, eta, extras, middle, precision, rng, values_out, effects_out,
    checks_out,
):  # fmt: skip
    """Write -log of the likelihood of each of some levels at draw j to values_out[j].

    Parameters
    ----------
    add_shifted : first-class function
        See `skbayes_sg.models.Model`.
    levels : LevelRows
    rule : Rule
    eta : array of shape (n_draws, n_rows)
        Predictors without effects; overwritten.
    extras : array of shape (n_draws, n_extra)
    middle : array of shape (n_draws, n_levels)
        m, about the modes of the effects.
    precision : array of shape (n_draws,)
        1/τ².
    rng : numpy.random.Generator
    values_out : array of shape (n_draws, n_levels)
    effects_out : array of float32, shape (n_draws or 0, n_levels)
        A draw of the effects given the parameters of each draw, if they are wanted.
    checks_out : array of shape (n_draws or 0, n_levels, 2)
        Whether the density of an effect is known between and beyond the nodes: see `_check`.
    """
    L, K = levels.information.shape[0], rule.nodes.shape[0]
    shifts, heights, scratch = np.empty((L, K)), np.empty((L, K)), np.empty((3, K))
    width = np.empty(L)
    for j in range(eta.shape[0]):
        _place(rule, levels.information, middle[j], precision[j], width, shifts)
        heights[:] = 0.0
        add_shifted(levels.facts, levels.starts, eta[j], extras[j], shifts, heights)
        log_tau = -0.5 * math.log(precision[j])
        for level in range(L):
            own = heights[level]
            for k in range(K):
                s = shifts[level, k]
                own[k] += 0.5 * precision[j] * s * s - rule.log_steps[k]
            values_out[j, level] = log_tau - math.log(width[level]) - _log_sum(own)
            if checks_out.shape[0]:
                _check(own, checks_out[j, level])
            if effects_out.shape[0]:
                x = _drawn(rng, own, scratch)
                effects_out[j, level] = _effect(x, rule, middle[j, level], width[level])
