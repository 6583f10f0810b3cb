"""Along which projections of φ the remainders lie: greedy clusters of directions.

Within a level of a category all rows point the same way. The heaviest row that is left begins a
cluster of the rows with |cos| > 0.8 to it; the mean of their directions, by score and with signs
aligned, is its axis, and the rows with |cos| > 0.8 to that are its members. Axes are made
orthogonal in this order; one that mostly lies in those before it is dropped.
"""

import numpy as np
from scipy import linalg

__all__ = ["cluster_directions"]

ALIGNED = 0.8  # |cos| within a cluster
LIGHT = 0.02  # a cluster with a smaller total score needs no warp
LEFT = 0.002  # the search ends when this share of all scores is left
INDEPENDENT = 0.6  # an axis is dropped if its part orthogonal to those before it is shorter
IDLE = 100  # the search ends after so many clusters, one after the other, without an axis


def cluster_directions(vectors, scores, first=()):
    """Return orthonormal axes along which directions with large scores lie, and members of each.

    Parameters
    ----------
    vectors : array of shape (n, n_parameters)
        Directions in φ.
    scores : array of shape (n,)
    first : sequence of arrays of shape (n_parameters,)
        Unit vectors that are axes in any case, before all others.

    Returns
    -------
    axes : array of shape (n_axes, n_parameters)
    members : list of arrays of int
        Indices of the vectors that belong to each axis.
    """
    length = linalg.norm(vectors, axis=1)
    units = vectors / np.where(length > 0.0, length, 1.0)[:, None]
    left = np.where(length > 0.0, scores, 0.0)
    total, axes, members = left.sum(), [], []
    for axis in first:
        own = (np.abs(units @ axis) > ALIGNED) & (left > 0.0)
        left[own] = 0.0
        axes.append(_orthogonal(axis, axes))
        members.append(np.flatnonzero(own))
    idle = 0
    while left.sum() > LEFT * total and len(axes) < vectors.shape[1] and idle < IDLE:
        cos = units @ units[np.argmax(left)]
        near = (np.abs(cos) > ALIGNED) & (left > 0.0)
        mean = (left * np.sign(cos))[near] @ units[near]
        own = (np.abs(units @ (mean / linalg.norm(mean))) > ALIGNED) & (left > 0.0)
        own[np.argmax(left)] = True
        heavy = left[own].sum() > LIGHT
        left[own] = 0.0
        axis = _orthogonal(mean / linalg.norm(mean), axes) if heavy else None
        idle = idle + 1 if axis is None else 0
        if axis is not None:
            axes.append(axis)
            members.append(np.flatnonzero(own))
    return np.array(axes).reshape(-1, vectors.shape[1]), members


def _orthogonal(axis, axes):
    """The part of a unit vector that is orthogonal to others, as a unit vector; None if short."""
    for other in axes:
        axis = axis - (axis @ other) * other
    size = linalg.norm(axis)
    return axis / size if size >= INDEPENDENT else None
