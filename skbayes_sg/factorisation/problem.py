"""The ratings as kernels read them: one matrix of rows for all columns, grouped by each column.

The categories of all columns are rows of one matrix F: those of column 0 (users), then those of
column 1 (items), and so on. A row is ``[p, b]``: a factor of K numbers, then a bias. With the rows
a_0, ..., a_{C-1} of a rating,

    f = Σ_c b_{a_c} + Σ_{c<c'} p_{a_c} · p_{a_c'},        y = centre + scale (f + noise).

As a function of one of its rows, f is linear: f = z · [p, b] + rest, with

    z = [Σ_{others} p, 1],    rest = Σ_{others} b + Σ_{pairs of others} p · p'.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inlined
from ..kernels.layout import frozen

__all__ = ["Grouped", "RatingProblem", "blocks", "design", "make_problem"]

# Approximate number of ratings of one call of a kernel, which takes some hundredths of a second.
BLOCK = 1 << 19


class Grouped(NamedTuple):
    """Ratings in the order of the categories of one column."""

    indptr: np.ndarray  # (n_categories + 1,) int64: category a has indptr[a]:indptr[a + 1]
    others: np.ndarray  # (n_ratings, C - 1) int32: the rows of F of the other columns
    y: np.ndarray  # (n_ratings,) standardised ratings


@dataclass(frozen=True)
class RatingProblem:
    """Standardised ratings, grouped by each column.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_ratings, C)
        Rows of F of each rating, in the order of the data.
    y : ndarray of shape (n_ratings,)
        ``(rating - centre) / scale``.
    offsets : ndarray of int64, shape (C + 1,)
        The rows of column c are ``offsets[c]:offsets[c + 1]``.
    rank : int
        K, the number of factors.
    groups : tuple of Grouped
        One for each column.
    """

    codes: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    rank: int
    groups: tuple

    @property
    def n_ratings(self):
        """Number of ratings."""
        return len(self.y)

    @property
    def n_columns(self):
        """Number of columns of X."""
        return len(self.offsets) - 1

    @property
    def n_rows(self):
        """Number of rows of F: categories of all columns together."""
        return int(self.offsets[-1])

    @property
    def width(self):
        """Length of a row of F: the factor and the bias."""
        return self.rank + 1

    def rows(self, column):
        """The rows of F that belong to a column."""
        return slice(int(self.offsets[column]), int(self.offsets[column + 1]))

    def counts(self):
        """Number of ratings of each row of F."""
        return np.concatenate([np.diff(grouped.indptr) for grouped in self.groups])


def blocks(indptr):
    """Ranges (first, stop) of the categories of a column, with about `BLOCK` ratings each."""
    if indptr[-1] <= BLOCK:
        return [(0, len(indptr) - 1)]
    cuts = np.searchsorted(indptr, np.arange(BLOCK, indptr[-1], BLOCK))
    cuts = np.unique([0, *cuts.tolist(), len(indptr) - 1])
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


@inlined
def design(others, n, F, root, scale, c, Z, k_out):
    """Write s z of rating n into column `k_out` of Z; return (rest, s).

    s is `scale` times the product of the square roots of the weights (`root`) of the other rows.
    Biases are c times the last entries of the rows, so z is ``[Σ_{others} p, c]``.
    """
    K, C = F.shape[1] - 1, others.shape[1]
    s, rest = scale, 0.0
    if C == 1:
        a = others[n, 0]
        s *= root[a]
        rest = c * F[a, K]
        for k in range(K):
            Z[k, k_out] = s * F[a, k]
    else:
        for k in range(K):
            Z[k, k_out] = 0.0
        for j in range(C):
            a = others[n, j]
            s *= root[a]
            rest += c * F[a, K]
            for k in range(K):
                rest += Z[k, k_out] * F[a, k]
                Z[k, k_out] += F[a, k]
        for k in range(K):
            Z[k, k_out] *= s
    Z[K, k_out] = s * c
    return rest, s


@entry
def _scatter(codes, y, column, first, place, others_out, y_out):
    """Sort the ratings by the codes of one column, keeping the order within each category.

    This is a counting sort: `place` has the next free place of each category, and is changed.
    `first` is the first row of F of the column.
    """
    C = codes.shape[1]
    for n in range(codes.shape[0]):
        a = codes[n, column] - first
        k = place[a]
        place[a] += 1
        y_out[k] = y[n]
        j = 0
        for c in range(C):
            if c != column:
                others_out[k, j] = codes[n, c]
                j += 1


def _group(codes, y, column, offsets):
    first, stop = int(offsets[column]), int(offsets[column + 1])
    counts = np.bincount(codes[:, column] - first, minlength=stop - first)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    n, C = codes.shape
    others, sorted_y = np.empty((n, C - 1), np.int32), np.empty(n)
    _scatter(codes, y, column, first, indptr[:-1].copy(), others, sorted_y)
    return Grouped(frozen(indptr, np.int64), frozen(others, np.int32), frozen(sorted_y))


def make_problem(codes, y, offsets, rank):
    """Return the `RatingProblem` of the standardised ratings y; `codes` are their rows of F."""
    codes, y = frozen(codes, np.int32), frozen(y)
    groups = tuple(_group(codes, y, c, offsets) for c in range(len(offsets) - 1))
    return RatingProblem(codes, y, np.asarray(offsets, np.int64), rank, groups)
