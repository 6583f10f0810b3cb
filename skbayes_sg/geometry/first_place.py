"""Where the search for a mode begins.

It is the middle of the prior, unless the likelihood is a user's, of which nothing is known. Where
responses are days, a prior of a shape may have its middle at 365, and with predictors of zero
e^(365 log t) overflows, or the search ends in a corner far from all mass. For such a likelihood the
first place is the one with the smallest U among several: intercepts at zero, at the median of the
responses and at its logarithm, each with some sizes of the positive parameters.
"""

from itertools import product

import numpy as np

from ..kernels.layout import FACT_Y
from ..priors.table import starting_point

__all__ = ["first_place", "some_rows"]

COMPARED = 2000  # number of rows, at most, by which places are compared
SHARES = 1.0, 0.1, 0.01  # sizes of positive parameters, as shares of the scales of their priors
SIZES = 0.1, 1.0  # and by themselves, beside the inverse size of the responses


def some_rows(target):
    """The target with at most `COMPARED` of its rows, whose weights stand for all of them."""
    n = target.n_rows
    if n <= COMPARED:
        return target
    rows = np.linspace(0, n - 1, COMPARED).astype(int)
    return target.take(rows, target.weight[rows] * (n / COMPARED))


def first_place(target):
    """The θ at which the search for the mode of a target begins; see the module."""
    middle = starting_point(target.prior)
    if target.model.sure_start:
        return middle
    part = some_rows(target)
    places = [middle, *_places(part, middle)]
    with np.errstate(all="ignore"):
        values = np.array([part.value_and_gradient(place)[0] for place in places])
    return places[np.argmin(np.where(np.isfinite(values), values, np.inf))]


def _places(target, middle):
    """Yield the middle of the prior with other intercepts and positive parameters."""
    model = target.model
    extras = slice(len(middle) - model.n_extra, None)
    logs = [middle[extras] + np.log(share) for share in SHARES]
    sizes = *SIZES, 1.0 / _size(target)
    logs += [np.full(model.n_extra, np.log(size)) for size in sizes]
    for intercepts, own in product(_intercepts(target), logs if model.n_extra else logs[:1]):
        place = middle.copy()
        place[extras] = own
        if target.intercept:
            place[extras.start - model.n_linear : extras.start] = intercepts
        yield place


def _size(target):
    """The median size of the responses; 1 if it is zero."""
    return np.median(np.abs(target.data.facts[:, FACT_Y])) or 1.0


def _intercepts(target):
    """Intercepts: zeros, and sizes of the responses for the first predictor, and for all."""
    K, y = target.model.n_linear, target.data.facts[:, FACT_Y]
    found = [np.zeros(K)]
    for value in (np.median(y), np.log(_size(target))):
        found += [np.r_[value, np.zeros(K - 1)], np.full(K, value)][: min(K, 2)]
    return found
