"""Along which projections of φ the remainders lie: greedy clusters of directions.

Within a level of a category all rows point the same way. The heaviest row that is left begins a
cluster of the rows with |cos| > 0.8 to it; the mean of their directions, by score and with signs
aligned, is its axis, and the rows with |cos| > 0.8 to that are its members. Axes are made
orthogonal in this order; one that mostly lies in those before it is dropped.
"""

import numpy as np
from scipy import linalg

__all__ = ["cluster_directions", "independent"]

ALIGNED = 0.8  # |cos| within a cluster
LIGHT = 0.02  # a cluster with a smaller total score needs no warp
LEFT = 0.002  # the search ends when this share of all scores is left
INDEPENDENT = 0.6  # an axis is dropped if its part orthogonal to those before it is shorter
AT_ONCE = 32  # seeds of clusters whose cosines to all directions are computed together
ROUNDING = 1e-9  # of cosines
IDLE = 100  # the search ends after so many clusters, one after the other, without an axis


def cluster_directions(vectors, scores, first=()):
    """Find axes along which directions with large scores lie.

    Parameters
    ----------
    vectors : array of shape (n, n_parameters)
        Directions in φ.
    scores : array of shape (n,)
    first : sequence of arrays of shape (n_parameters,)
        Unit vectors that are axes in any case, before all others. They must be `independent`.

    Returns
    -------
    axes : array of shape (n_axes, n_parameters)
        Orthonormal rows.
    members : list of arrays of int
        Indices of the vectors that belong to each axis.
    means : array of shape (n_axes, n_parameters)
        Unit vectors: the axes before they are made orthogonal.
    """
    length = linalg.norm(vectors, axis=1)
    units = vectors / np.where(length > 0.0, length, 1.0)[:, None]
    left = np.where(length > 0.0, scores, 0.0)
    total, axes, members, means = left.sum(), [], [], list(first)
    for axis in first:
        own = (np.abs(units @ axis) > ALIGNED) & (left > 0.0)
        left[own] = 0.0
        axes.append(_orthogonal(axis, axes))
        members.append(np.flatnonzero(own))
    idle = 0
    for seed, cos in _seeds(units, left):
        if left.sum() <= LEFT * total or len(axes) == vectors.shape[1] or idle == IDLE:
            break
        mean, own = _cluster(units, left, seed, cos)
        heavy = left[own].sum() > LIGHT
        left[own] = 0.0
        axis = _orthogonal(mean, axes) if heavy else None
        idle = idle + 1 if axis is None else 0
        if axis is not None:
            axes.append(axis)
            members.append(own)
            means.append(mean)
    shape = (-1, vectors.shape[1])
    return np.array(axes).reshape(shape), members, np.array(means).reshape(shape)


def independent(axes):
    """Those of some unit vectors that do not mostly lie in the span of the ones before them."""
    found, orthogonal = [], []
    for axis in axes:
        own = _orthogonal(axis, orthogonal)
        if own is not None:
            found.append(axis)
            orthogonal.append(own)
    return found


def _seeds(units, left):
    """Yield the heaviest direction that is left, again and again, and the cosines of all to it.

    The caller sets `left` to zero where directions have found a cluster. The cosines of several
    seeds are one product of matrices, which reads the directions once.
    """
    order = np.argsort(-left, kind="stable")
    for first in range(0, len(order), AT_ONCE):
        seeds = order[first : first + AT_ONCE]
        seeds = seeds[left[seeds] > 0.0]
        for seed, cos in zip(seeds, units[seeds] @ units.T, strict=True):
            if left[seed] > 0.0:
                yield seed, cos


def _cluster(units, left, seed, cos):
    """The unit vector along the mean of the cluster of a seed, and the members of the cluster."""
    near = np.flatnonzero((np.abs(cos) > ALIGNED) & (left > 0.0))
    mean = (left * np.sign(cos))[near] @ units[near]
    mean /= linalg.norm(mean)
    # The angle of a member to the seed is at most the sum of its angle to the mean and of the angle
    # from there to the seed: most directions need not be looked at again.
    widest = np.arccos(ALIGNED) + np.arccos(min(abs(mean @ units[seed]), 1.0))
    some = np.flatnonzero((np.abs(cos) > np.cos(widest) - ROUNDING) & (left > 0.0))
    own = some[np.abs(units[some] @ mean) > ALIGNED]
    return mean, np.union1d(own, seed)


def _orthogonal(axis, axes):
    """The part of a unit vector that is orthogonal to others, as a unit vector; None if short."""
    for other in axes:
        axis = axis - (axis @ other) * other
    size = linalg.norm(axis)
    return axis / size if size >= INDEPENDENT else None
