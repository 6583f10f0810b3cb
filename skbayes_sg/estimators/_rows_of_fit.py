"""Sums over the rows of a fit, from which it can be told later whether other rows are the same.

An estimator does not keep its rows. With a projection p = (x - c)·ρ of the columns, in which each
has about the same share, and the labels y of a row, the sums are G = Σ_i w_i z_i z_iᵀ for
z = (1, p, y). They do not depend on the order of the rows, and they differ for other columns, for
other labels, and for labels that belong to other rows.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from .._base import streams

__all__ = ["RowsOfFit"]

SOME = 1000  # number of rows from which centres and spreads of the columns are estimated
BLOCK = 1 << 18  # numbers of X that are multiplied together
ROUNDED = 1e-3  # size of p as a share of 1 + |c·ρ|, below which p may consist of rounding errors
SAME = 1e-9  # largest relative difference of sums over the same rows in another order
SAME_COLUMNS = 1e-5  # largest relative difference of sums with p, whose rows may be float32


class RowsOfFit(NamedTuple):
    """The sums that an estimator keeps in place of the rows of its fit."""

    direction: np.ndarray  # ρ, (n_features,)
    offset: float  # c·ρ
    n_rows: int
    G: np.ndarray  # Σ_i w_i z_i z_iᵀ, (2 + n_labels, 2 + n_labels)

    @classmethod
    def of(cls, X, y, weight):
        """The sums of the rows of a fit, with labels y (n_rows,) or (n_rows, n_labels)."""
        some = X[np.unique(np.linspace(0, X.shape[0] - 1, SOME).astype(int))]
        some = np.asarray(some.toarray() if sparse.issparse(some) else some, dtype=np.float64)
        spread = some.std(axis=0)
        direction = streams.fixed().standard_normal(len(spread))
        direction /= np.where(spread > 0.0, spread, np.maximum(np.abs(some[0]), 1.0))
        bare = cls(direction, float(some.mean(axis=0) @ direction), X.shape[0], np.empty(0))
        return bare.with_sums(X, y, weight)

    def with_sums(self, X, y, weight):
        """The sums of other rows, with the same projection of the columns."""
        step = max(1, BLOCK // max(X.shape[1], 1))
        y, G = y.reshape(X.shape[0], -1), 0.0
        for first in range(0, X.shape[0], step):
            rows = slice(first, first + step)
            p = X[rows] @ self.direction - self.offset
            z = np.vstack([np.ones(len(p)), p, y[rows].T])
            G = G + (z * weight[rows]) @ z.T
        return self._replace(n_rows=X.shape[0], G=G)

    def difference(self, X, y, weight):
        """A phrase on how rows differ from those of the fit; empty if sums show no difference."""
        given = self.with_sums(X, y, weight)
        size = np.sqrt(np.diag(self.G))
        size[1] += ROUNDED * size[0] * (1.0 + abs(self.offset))  # p may be nothing but rounding
        same = np.where(np.arange(len(size)) == 1, SAME_COLUMNS, SAME)
        is_other = np.abs(given.G - self.G) > np.maximum.outer(same, same) * np.outer(size, size)
        if not is_other.any() and given.n_rows == self.n_rows:
            return ""
        said = f"was fitted to {self.n_rows} rows of total weight {self.G[0, 0]:g}, and got "
        said += f"{given.n_rows} rows of total weight {given.G[0, 0]:g}"
        if is_other[0, 0] or given.n_rows != self.n_rows:
            return said
        if is_other[2:, [0]].any() or np.diag(is_other)[2:].any():
            return f"{said}, with other responses or the weights of other rows"
        if is_other[:2, :2].any():
            return (
                f"{said}, with other columns, or these in other units, or the weights of other rows"
            )
        return f"{said}, with the responses of other rows"
