"""Means and variances of the columns of a matrix, by the weights of its rows.

All sums are over differences to one value of the column. So the mean of a constant column is the
constant itself and its variance is zero, to the last bit, and no digits of the variance are lost
where the column is far from zero.
"""

import numpy as np
from scipy import sparse

from . import memmap

__all__ = ["block_moments", "merged", "weighted_moments"]

BLOCK = 1 << 20  # number of entries of X that are processed at a time


def weighted_moments(X, weight):
    """Return (Σ w, mean, variance) of the columns of X, computed block by block."""
    step, found = max(1, BLOCK // X.shape[1]), []
    for first in range(0, X.shape[0], step):
        found.append(block_moments(X[first : first + step], weight[first : first + step]))
        memmap.forget(X, first, min(first + step, X.shape[0]))
    return merged(found)


def block_moments(X, weight):
    """Return (Σ w, mean, variance) of the columns of a block of rows, dense or CSR."""
    total = weight.sum()
    safe = total if total > 0.0 else 1.0
    of = _of_stored if sparse.issparse(X) else _of_dense
    return total, *of(X, weight, safe)


def _of_dense(X, weight, total):
    first = X[0].astype(np.float64)
    # In C order whatever the order of X is, so that sums are the same to the last bit.
    off = np.subtract(X, first, order="C")
    moved = off.T @ weight / total
    return first + moved, np.square(off - moved).T @ weight / total


def _of_stored(X, weight, total):
    """Return the means and variances of the columns of a CSR matrix.

    They are sums over the stored values; the zeros that are not stored enter by their total weight.
    """
    d, w = X.shape[1], np.repeat(weight, np.diff(X.indptr))
    counts = np.bincount(X.indices, minlength=d)
    absent = np.where(counts < X.shape[0], total - np.bincount(X.indices, w, d), 0.0)
    first = np.zeros(d)
    first[X.indices] = X.data
    mean = np.bincount(X.indices, w * (X.data - first[X.indices]), d)
    mean = first + (mean - absent * first) / total
    squares = np.bincount(X.indices, w * np.square(X.data - mean[X.indices]), d)
    return mean, (squares + np.maximum(absent, 0.0) * np.square(mean)) / total


def merged(moments):
    """Return (Σ w, mean, variance) of all rows, from a sequence of those of disjoint parts."""
    columns = zip(*moments, strict=True)
    total, means, variances = (np.array(values, dtype=np.float64) for values in columns)
    share = total / total.sum()
    mean = means[0] + share @ (means - means[0])
    return total.sum(), mean, share @ (variances + (means - mean) ** 2)
