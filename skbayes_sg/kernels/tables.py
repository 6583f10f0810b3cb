"""Tables of the gradients of groups of rows along the direction that changes their predictors.

Group g has a place ``s_g = direction_g · (θ - centre)``, knots along it, and at each knot a vector:
the exact sum over its rows. Between knots both the sum and the rows' own terms are interpolated
linearly, so that they agree exactly (see `skbayes_sg.gradients.tabulated`); beyond the last knot
both are constant.
"""

from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inner

__all__ = ["Tables", "add_tables", "find_brackets"]


class Tables(NamedTuple):
    """Directions and values of all groups. All arrays are read-only."""

    directions: np.ndarray  # (n_groups, n_parameters), in θ
    places: np.ndarray  # (n_groups, n_knots), increasing
    values: np.ndarray  # (n_groups, n_knots, n_parameters), in φ


@inner
def _cell(places, place):
    """The k with places[k] <= place < places[k + 1]; `np.searchsorted` takes long to compile."""
    low, high = 0, places.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if places[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@inner
def _bracket(tables, g, theta, centre, bracket_out):
    """Find θ in the table of a group: return the cell, and write its entry of `bracket_out`."""
    place, places = 0.0, tables.places[g]
    for j in range(theta.shape[0]):
        place += tables.directions[g, j] * (theta[j] - centre[j])
    place = min(max(place, places[0]), places[places.shape[0] - 1])
    cell = _cell(places, place)
    bracket_out[g, 0] = places[cell]
    bracket_out[g, 1] = places[cell + 1]
    bracket_out[g, 2] = (place - places[cell]) / (places[cell + 1] - places[cell])
    return cell


@inner
def add_tables(tables, theta, centre, bracket_out, g_out):
    """Add the interpolated values at θ to `g_out`; without tables, do nothing.

    ``bracket_out[g]`` holds the places of the knots on the left and on the right, and the relative
    position between them.
    """
    if tables is not None:
        for g in range(tables.directions.shape[0]):
            cell = _bracket(tables, g, theta, centre, bracket_out)
            between, values = bracket_out[g, 2], tables.values[g]
            for j in range(g_out.shape[0]):
                g_out[j] += (1.0 - between) * values[cell, j] + between * values[cell + 1, j]


@entry
def find_brackets(tables, theta, centre, bracket_out):
    """Write `bracket_out` as `add_tables` does."""
    for g in range(tables.directions.shape[0]):
        _bracket(tables, g, theta, centre, bracket_out)
