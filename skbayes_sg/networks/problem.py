"""The posterior of a network: rows and their standardisation, the map, likelihood and prior."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._base import memmap
from .._base.columns import weighted_moments
from .._base.jit import entry
from ..kernels.layout import frozen
from .architecture import Network
from .gradient import Rows
from .prior_scales import ScaleGroups

__all__ = ["NetworkProblem", "column_moments", "merged", "standardised"]

CONSTANT = 1e-12  # a column is constant if sd/|mean| is at most this


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


def column_moments(X, weight):
    """Return weighted means and standard deviations of the columns; the latter 1 if constant."""
    _, mean, variance = weighted_moments(X, weight)
    spread = np.sqrt(variance)
    return mean, np.where(spread > CONSTANT * np.abs(mean), spread, 1.0)


def merged(X, y, weight):
    """Return X, y and weights with equal rows merged and sorted; weights of equal rows add up.

    Thus the draws from few rows depend, to the last bit, neither on the order of the rows nor on
    whether a row has weight 2 or occurs twice.
    """
    rows, of_row = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
    weight = np.bincount(of_row.ravel(), weight)
    return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy(), weight


def standardised(X, centre, spread, dtype):
    """Return (X - centre)/spread in the form that kernels take: dense and in C order."""
    X = _dense(X)
    X = np.require(X, None if X.dtype in (np.float32, np.float64) else np.float64, "CW")
    out = np.empty(X.shape, dtype)
    _standardise(X, centre, 1.0 / spread, out)
    return out


@entry
def _standardise(X, centre, factor, out):
    """Set `out` to (X - centre)·factor, in one pass.

    NumPy's float64 arrays of intermediate results took longer than the gradient.
    """
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = (X[i, j] - centre[j]) * factor[j]


@dataclass
class NetworkProblem:
    """The posterior that chains sample.

    Parameters
    ----------
    X : ndarray, memory map or CSR of shape (n_rows, n_columns)
    facts : ndarray of shape (n_rows, 2)
        Labels, in the coding of the model, and weights.
    centre, spread : ndarray of shape (n_columns,)
        Means and standard deviations with which the columns are standardised.
    network : Network
    model : skbayes_sg.models.Model
    groups : ScaleGroups
    prior_scale : float or None
        The scale τ of all weights; None if those of the groups are inferred.
    dtype : numpy dtype
        The precision of the matrix products; positions of chains are float64.
    """

    X: Any
    facts: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    network: Network
    model: Any
    groups: ScaleGroups
    prior_scale: float | None = None
    dtype: Any = np.float32

    @property
    def n_rows(self):
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_parameters(self):
        """Number of parameters."""
        return len(self.groups.of_weight)

    @cached_property
    def all_rows(self):
        """All rows as `Rows`, in memory."""
        return self.rows(slice(None))

    def rows(self, which):
        """Return the `Rows` at an array of indices or a slice, standardised."""
        x = standardised(memmap.gather(self.X, which), self.centre, self.spread, self.dtype)
        return Rows(x, frozen(self.facts[which]), np.arange(len(x)))
