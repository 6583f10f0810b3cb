"""The prior of all parameters together: sums over the rows of a table (see `columns`)."""

import math

import numpy as np

from .._base.jit import entry, inlined
from .columns import KIND, LOC, POWER, SCALE, SHAPE
from .families import FAMILIES, POSITIVE_PRIORS, PRIORS

__all__ = ["powered", "prior_curvature", "prior_gradient", "prior_value", "starting_point"]

REAL, POSITIVE = tuple(PRIORS.values()), tuple(POSITIVE_PRIORS.values())
N_REAL = len(REAL)


def _by_kind(families, name):
    """A kernel that calls the kernel `name` of the family of a kind: one `if` a family."""
    family, *others = families
    kernel, code = getattr(family, name), family._kind
    if not others:
        return inlined(lambda kind, total, z, shape, last: kernel(total, z, shape, last))
    other = _by_kind(others, name)

    @inlined
    def chosen(kind, total, z, shape, last):
        if kind == code:
            return kernel(total, z, shape, last)
        return other(kind, total, z, shape, last)

    return chosen


_value, _slope = (_by_kind(REAL, name) for name in ("value", "slope"))
_positive_value, _positive_slope = (_by_kind(POSITIVE, name) for name in ("value", "slope"))


@entry
def prior_value(prior, theta):
    """-log p(θ), up to a constant."""
    total = 0.0
    for j in range(theta.shape[0]):
        kind, loc, scale, shape = prior[j, KIND], prior[j, LOC], prior[j, SCALE], prior[j, SHAPE]
        if kind < N_REAL:
            total = _value(kind, total, (theta[j] - loc) / scale, shape, prior[j])
        else:
            z, f = math.exp(theta[j]) / scale, loc * math.exp(-theta[j])
            own = _positive_value(kind, 0.5 * f * f, z, shape, theta[j])
            total += prior[j, POWER] * own
    return total


@entry
def prior_gradient(prior, theta, g_out):
    """g_out += ∇(-log p)(θ); zero at the kink of a Laplace prior."""
    for j in range(theta.shape[0]):
        kind, loc, scale, shape = prior[j, KIND], prior[j, LOC], prior[j, SCALE], prior[j, SHAPE]
        if kind < N_REAL:
            g_out[j] = _slope(kind, g_out[j], (theta[j] - loc) / scale, shape, prior[j])
        else:
            z, f = math.exp(theta[j]) / scale, loc * math.exp(-theta[j])
            own = _positive_slope(kind, -f * f, z, shape, theta[j])
            g_out[j] += prior[j, POWER] * own


def prior_curvature(prior, theta):
    """Diagonal of a positive semi-definite ∇²(-log p)(θ).

    For Student's t, whose own second derivative changes sign, it is that of the quadratic that
    touches -log p at θ from above.
    """
    curvature = np.empty(len(prior))
    for family, rows in _rows_by_family(prior):
        _, loc, scale, shape, power = prior[rows].T
        if family._kind < N_REAL:
            z = (theta[rows] - loc) / scale
            curvature[rows] = power * family.curvature(z, shape) / scale**2
        else:
            places = zip(theta[rows], loc, scale, shape, strict=True)
            curvature[rows] = power * [_positive_curvature(family, *place) for place in places]
    return curvature


def _positive_curvature(family, s, floor, scale, shape):
    square = np.exp(2.0 * (s - np.log(scale)))
    return family.curvature(square, shape) + 2.0 * (floor * np.exp(-s)) ** 2


def powered(prior, power):
    """The table of p(θ)^power: a share of a prior, for a part of the rows.

    Normal and Laplace priors stay normal and Laplace, with other scales. Of a positive parameter it
    is a power of the density of its logarithm.
    """
    out = np.array(prior, dtype=np.float64)
    for family, rows in _rows_by_family(out):
        out[rows] = family._power(out[rows], power)
    return out


def starting_point(prior):
    """Where to look for the mode first: the middle of each prior."""
    return np.where(prior[:, KIND] < N_REAL, prior[:, LOC], np.log(prior[:, SCALE]))


def _rows_by_family(prior):
    """(family, positions of its rows) of the families in a table."""
    kinds = np.asarray(prior)[:, KIND].astype(int)
    return [(FAMILIES[kind], np.flatnonzero(kinds == kind)) for kind in np.unique(kinds)]
