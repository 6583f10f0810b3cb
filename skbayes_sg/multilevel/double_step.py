"""Two steps of the fine path, one of each coarse path, on the same Brownian motion.

With ``S_{h,τ,ξ}(φ) = φ - (h/2) ĝ_τ(φ) + √h ξ`` (Nagapetyan et al. 2017, eq. 7 and 10, whose h is
half of ours),

    f' = S_{h/2,τ₂,ξ₂}(S_{h/2,τ₁,ξ₁}(f)),      c' = S_{h,τ,(ξ₁+ξ₂)/√2}(c).

A coarse step is the same function as a fine step of the level below. So the coarse path of a level
has the law of the fine path of the level below, and the sum over levels telescopes.
"""

import math
from typing import NamedTuple

from .._base.jit import entry, inner
from ..engine.chain import step
from ..kernels.gradient import fill_normal

__all__ = ["PATH", "UNIT", "Route", "double_step", "move", "run_paths"]

ROOT_HALF = math.sqrt(0.5)

PATH, UNIT = range(2)  # entries of a clock: finished paths, and units of the present one


class Route(NamedTuple):
    """The course of the paths of a level. A unit is a single fine step or a double step."""

    h: float  # step size of the fine path
    n_alone: int  # units of the fine path alone
    n_joint: int  # units of all paths together
    every: int  # units between two instants that are kept; the last instant is the end
    n_coarse: int


@inner
def move(problem, pieces, parameters, state, rows, n, coefficients, noise, h, scratch):
    """Take the step S_{h,τ,ξ} of `state`, in place."""
    step(problem, pieces, state, rows, n, coefficients, noise, h, parameters, scratch)


@inner
def double_step(
    problem, pieces, parameters, states, rows, n, coefficients, noises, h, n_coarse, scratch
):
    """Take two steps of h of the fine path ``states[0]``, and one of 2h of each coarse path."""
    for b in range(2):
        own, c, noise = rows[b], coefficients[b], noises[b]
        move(problem, pieces, parameters, states[0], own, n, c, noise, h, scratch)
    for j in range(noises.shape[1]):
        noises[2, j] = ROOT_HALF * (noises[0, j] + noises[1, j])
    for k in range(n_coarse):
        state, own, c = states[1 + k], rows[2 + k], coefficients[2 + k]
        move(problem, pieces, parameters, state, own, n, c, noises[2], 2.0 * h, scratch)


@inner
def _inside(states, n_states, bounds):
    """Whether all positions of the first n_states are within the bounds; False for NaN."""
    for k in range(n_states):
        for j in range(bounds.shape[0]):
            if not abs(states[k, 0, j]) < bounds[j]:
                return False
    return True


@inner
def _keep(states, left, every, records_out):
    """Store the positions if this is one of the last instants; `left` units remain."""
    n_kept = records_out.shape[0]
    if left % every == 0 and left // every < n_kept:
        place = n_kept - 1 - left // every
        for k in range(records_out.shape[1]):
            for j in range(records_out.shape[2]):
                records_out[place, k, j] = states[k, 0, j]


@entry
def run_paths(
    problem, pieces, couple, subsample, parameters, bounds, route, states, clock, rng_rows,
    rng_noise, rows, coefficients, noises, scratch, budget, records_out,
):  # fmt: skip
    """Continue the paths of a block, one after the other, for at most `budget` units.

    All paths begin at the centre, the coarse ones ``route.n_alone`` units after the fine one.

    Parameters
    ----------
    states : array of shape (3, 1, n_parameters)
        Fine path and coarse paths.
    clock : array of int64
        Entries `PATH` and `UNIT`, updated.
    rows, coefficients : arrays of shape (4, most_rows)
        Batches: see `couplings`.
    records_out : array of shape (n_paths, n_kept, n_states, n_parameters)
        Positions at the last instants of each path.

    Returns
    -------
    bool
        False if a path has left the bounds.
    """
    h, n_alone, n_joint, every, n_coarse = route
    n_units = n_alone + n_joint
    while clock[PATH] < records_out.shape[0] and budget > 0:
        unit = clock[UNIT]
        if unit == 0:
            for k in range(states.shape[0]):
                for j in range(states.shape[2]):
                    states[k, 0, j] = 0.0
        n = pieces.draw(rng_rows, subsample, states[0, 0], rows[0], coefficients[0])
        fill_normal(rng_noise, noises[0])
        if unit < n_alone:
            own, c, noise = rows[0], coefficients[0], noises[0]
            move(problem, pieces, parameters, states[0], own, n, c, noise, h, scratch)
        else:
            pieces.draw(rng_rows, subsample, states[0, 0], rows[1], coefficients[1])
            fill_normal(rng_noise, noises[1])
            couple(rng_rows, n, rows, coefficients)
            c = coefficients
            double_step(
                problem, pieces, parameters, states, rows, n, c, noises, h, n_coarse, scratch
            )
        if not _inside(states, 1 + n_coarse, bounds):
            return False
        if unit >= n_alone or n_joint == 0:
            _keep(states, n_units - 1 - unit, every, records_out[clock[PATH]])
        clock[UNIT] = unit + 1
        if clock[UNIT] == n_units:
            clock[PATH], clock[UNIT] = clock[PATH] + 1, 0
        budget -= 1
    return True
