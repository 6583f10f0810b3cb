"""Equal rows of a table, merged into one with the sum of their weights.

A table of a few categorical columns has as many different rows as combinations of their levels
occur, however many rows it has: merging them changes the likelihood by rounding only, and makes
every pass over the rows as much faster.
"""

import numpy as np
from scipy import sparse

from .._base import memmap, streams
from .target import Target

__all__ = ["few_different", "merged", "merged_if_it_pays"]

SEEN = 8_000  # rows that tell whether many are equal
WORTH = 2  # rows for each different one from which merging pays: finding them is a pass of its own
COMPARED = 1 << 14  # rows that are compared at a time


def merged(target):
    """Return the `Target` with equal rows merged, and the rows sorted.

    Applied to few rows, this makes draws that depend, to the last bit, neither on the order of
    the rows nor on whether a row has weight 2 or occurs twice.
    """
    if sparse.issparse(target.X):
        found = _classes(target, target.labels())
        return target if found is None else target.merged(*found)
    table = np.column_stack([target.X, target.labels()])
    rows, of_row = np.unique(table, axis=0, return_inverse=True)
    weight = np.bincount(of_row.ravel(), target.weight)
    X, y = np.ascontiguousarray(rows[:, : target.n_features]), rows[:, target.n_features :]
    options = {"intercept": target.intercept, "n_jobs": target.n_jobs}
    found = Target(X, y, weight, target.model, target.prior, **options)
    found.are_different = target.are_different or found.n_rows < target.n_rows
    return found


def merged_if_it_pays(target):
    """Return the `Target` with equal rows merged, if `few_different` says that it pays."""
    found = few_different(target)
    return target if found is None else target.merged(*found)


def few_different(target, codes=None):
    """Return (rows, weights): one of each class of equal rows, and the sum of their weights.

    The result is None if there are fewer than `WORTH` rows for each different one, or the rows are
    memory-mapped. `codes`, of shape (n_rows, n), are more numbers in which equal rows are equal.
    """
    labels = target.labels()
    labels = labels if codes is None else np.column_stack([labels, codes])
    if memmap.mapped(target.X) is not None or not _seem_equal(target.X, labels):
        return None
    found = _classes(target, labels)
    return None if found is None or WORTH * len(found[0]) > target.n_rows else found


def _classes(target, labels):
    """Return (rows, weights): one of each class of equal rows, and the sum of their weights.

    Rows are told apart by a key, a combination of their numbers. Those with the same key are
    compared in full: if any differ, the result is None. The classes are in the order of their
    keys, which does not depend on that of the rows.
    """
    X, weights = target.X, _weights_of_keys(target.X, labels)
    width = 1 if sparse.issparse(X) else max(target.n_features, 1)
    keys = target.over_chunks(lambda rows: _keys(X[rows], labels[rows], weights), width)
    _, first, of_row = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
    if not _are_equal(X, labels, first[of_row]):
        return None
    return first, np.bincount(of_row, target.weight)


def _weights_of_keys(X, labels):
    """The weights of the columns of X and of the labels in `_keys`."""
    return streams.fixed().standard_normal(X.shape[1] + labels.shape[1])


def _keys(X, labels, weights):
    """A combination of the numbers of each row, the same for equal rows, (n_rows,)."""
    w, v = np.split(weights, [X.shape[1]])
    of_columns = X @ w if sparse.issparse(X) else (X * w).sum(axis=1)  # BLAS rounds rows unequally
    return of_columns + (labels * v).sum(axis=1)


def _seem_equal(X, labels):
    """Whether so many of some rows are equal that merging may pay.

    Of n rows drawn from d different ones, d (1 - exp(-n/d)) are expected to be different.
    """
    most = X.shape[0] / (WORTH - 1)
    rows = np.unique(streams.fixed().integers(X.shape[0], size=SEEN))
    keys = _keys(X[rows], labels[rows], _weights_of_keys(X, labels))
    different = len(np.unique(keys))
    return different <= most * -np.expm1(-len(rows) / most)


def _are_equal(X, labels, twin):
    """Whether each row of X and of the labels is equal to its twin, another row."""
    for start in range(0, len(twin), COMPARED):
        rows, other = slice(start, start + COMPARED), twin[start : start + COMPARED]
        differ = X[rows] != X[other]
        if differ.nnz if sparse.issparse(X) else differ.any():
            return False
        if (labels[rows] != labels[other]).any():
            return False
    return True
