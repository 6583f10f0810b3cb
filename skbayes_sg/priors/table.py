"""The prior of all parameters together: sums over the rows of a prior table (see `columns`)."""

import math

import numpy as np

from .._base.jit import entry, inlined
from .columns import KIND, LOC, POWER, SCALE, SHAPE
from .families import FAMILIES, POSITIVE_PRIORS, PRIORS

__all__ = ["powered", "prior_curvature", "prior_gradient", "prior_value", "starting_point"]

# Families of real parameters have the codes below N_REAL, those of positive ones the codes from it.
REAL, POSITIVE = tuple(PRIORS.values()), tuple(POSITIVE_PRIORS.values())
N_REAL = len(REAL)


def _by_kind(families, name):
    """Return a kernel ``chosen(kind, total, z, shape, last)`` for all of these families.

    It calls the kernel `name` ("value" or "slope") of the family whose code is `kind`, which it
    finds by one comparison for each family.
    """
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
    """Return -log p(θ) in nats, up to a constant, under the prior table `prior`."""
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
    """Add ∇(-log p)(θ) to `g_out`; at the kink of a Laplace prior it counts as zero."""
    for j in range(theta.shape[0]):
        kind, loc, scale, shape = prior[j, KIND], prior[j, LOC], prior[j, SCALE], prior[j, SHAPE]
        if kind < N_REAL:
            g_out[j] = _slope(kind, g_out[j], (theta[j] - loc) / scale, shape, prior[j])
        else:
            z, f = math.exp(theta[j]) / scale, loc * math.exp(-theta[j])
            own = _positive_slope(kind, -f * f, z, shape, theta[j])
            g_out[j] += prior[j, POWER] * own


def prior_curvature(prior, theta):
    """Return the diagonal of a positive semi-definite ∇²(-log p)(θ), (n_parameters,).

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
    """Return the second derivative of -log(p(v) v) in s = log v, with the cut-off at the floor."""
    square = np.exp(2.0 * (s - np.log(scale)))
    return family.curvature(square, shape) + 2.0 * (floor * np.exp(-s)) ** 2


def powered(prior, power):
    """Return the prior table of p(θ)^power, such as the share of a prior in a shard of the rows.

    Normal and Laplace priors stay normal and Laplace, with other scales. For a positive parameter
    the density of its logarithm is raised to the power.
    """
    out = np.array(prior, dtype=np.float64)
    for family, rows in _rows_by_family(out):
        out[rows] = family._power(out[rows], power)
    return out


def starting_point(prior):
    """Return the middle of each prior, (n_parameters,), where the search for the mode starts.

    It is the location, or for the logarithm of a positive parameter the logarithm of the scale.
    """
    return np.where(prior[:, KIND] < N_REAL, prior[:, LOC], np.log(prior[:, SCALE]))


def _rows_by_family(prior):
    """Return a list of (family, positions of its rows) for the families in a prior table."""
    kinds = np.asarray(prior)[:, KIND].astype(int)
    return [(FAMILIES[kind], np.flatnonzero(kinds == kind)) for kind in np.unique(kinds)]
