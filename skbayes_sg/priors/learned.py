"""Scales of coefficients that are learned: which coefficients share one, and its prior.

    θ_j ~ N(loc_j, (τ_g(j) u_j)²),     τ_g ~ a positive prior,

with units u_j that are 1, or adapt to the columns where the scale of the prior of τ_g is "auto".
Under the horseshoe each θ_j also has a scale λ_j of its own: see `skbayes_sg.priors.horseshoe`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .._base.validation import is_whole
from ..exceptions import InvalidParameterError
from ._base import PositivePrior, Units, _is_auto
from .columns import LOC, SCALE

__all__ = ["LearnedScales", "learned_scales"]

SCALE_NAME = "prior__scale"  # name of the prior of the scales in messages


@dataclass(frozen=True)
class LearnedScales:
    """The coefficients of a target, which come first among its parameters, and their scales.

    Parameters
    ----------
    group : array of int of shape (n_coefficients,)
        The position g(j) of the scale of each coefficient.
    unit : array of shape (n_coefficients,)
        The unit u_j of each coefficient.
    normals : array of shape (n_coefficients, 5)
        The rows of N(loc_j, 1) in a prior table.
    table : array of shape (n_scales, 5)
        Priors of the log τ_g, as rows of a prior table.
    labels : tuple of str
        One label for each scale.
    slab : float, optional
        The slab c of a horseshoe, in units u_j; None for normal priors.
    is_local : bool
        Whether each coefficient, or each column, has a scale of its own.
    """

    group: np.ndarray
    unit: np.ndarray
    normals: np.ndarray
    table: np.ndarray
    labels: tuple
    slab: float | None = None
    is_local: bool = False

    @property
    def loc(self):
        """Prior means of the coefficients, (n_coefficients,)."""
        return self.normals[:, LOC]

    @property
    def sampled(self):
        """Labels of the quantities that are sampled in addition to the parameters."""
        return (*self.labels, "m_eff") if self.is_local else self.labels

    @property
    def n_scales(self):
        """Number of scales."""
        return len(self.table)

    @property
    def is_common(self):
        """Whether all coefficients share one scale and have no scales of their own."""
        return self.n_scales == 1 and self.slab is None

    @property
    def counts(self):
        """Number of coefficients with each scale, (n_scales,), as floats."""
        return np.bincount(self.group, minlength=self.n_scales).astype(np.float64)

    @property
    def start(self):
        """The log τ_g in the middle of their priors, (n_scales,)."""
        return np.log(self.table[:, SCALE])

    def rows(self, log_scales=None):
        """Return the prior table of the coefficients given log τ_g; the default is `start`."""
        log_scales = self.start if log_scales is None else log_scales
        rows = self.normals.copy()
        rows[:, SCALE] = np.exp(log_scales)[self.group] * self.unit
        return rows


def learned_scales(said, normals, shape, units, names, scale, scale_groups=None):
    """Return the `LearnedScales` of coefficients whose scales have the prior `scale`.

    Parameters
    ----------
    said : str
        The prior of the coefficients as messages call it.
    normals : array of shape (n_coefficients, 5)
        The rows of N(loc_j, 1) in a prior table.
    shape : tuple
        Shape of the array of coefficients; its last axis is that of the columns.
    units : Units
    names : sequence of str or None
        Names of the columns.
    scale : PositivePrior
    scale_groups : as for `Normal`
    """
    if not isinstance(scale, PositivePrior):
        raise InvalidParameterError(
            f"The scale of {said} must be a number, or a proper prior of a positive number such as "
            f"HalfCauchy(1.0), got {scale!r}."
        )
    block, labels = _blocks_of(scale_groups, shape[-1], names, said)
    unit = units.of_columns() if _is_auto(scale._scale(SCALE_NAME)) else np.ones(shape[-1])
    table = scale._table((len(labels),), SCALE_NAME, Units())
    full = tuple(f"prior_scale[{label}]" if label else "prior_scale" for label in labels)
    repeats = int(np.prod(shape[:-1], dtype=int))
    local = isinstance(scale_groups, str)
    units_of_all = np.tile(unit, repeats)
    return LearnedScales(
        np.tile(block, repeats), units_of_all, normals, table, full, is_local=local
    )


def _blocks_of(scale_groups, n_features, names, said):
    """Return (number of the block of each column, name of each block) for a `scale_groups`.

    Parameters
    ----------
    scale_groups : None, "columns", dict, list of lists, or one label a column
    n_features : int
    names : sequence of str or None
        Names of the columns.
    said : str
        The prior as messages call it.
    """
    known = [f"x{j}" for j in range(n_features)] if names is None else list(map(str, names))
    if scale_groups is None:
        return np.zeros(n_features, dtype=int), [""]
    if isinstance(scale_groups, str):
        if scale_groups != "columns":
            raise _wrong(said, f"got {scale_groups!r}")
        return np.arange(n_features), known
    if isinstance(scale_groups, dict):
        return _of_lists(list(scale_groups.values()), map(str, scale_groups), known, said)
    if not isinstance(scale_groups, Iterable):
        raise _wrong(said, f"got {scale_groups!r}")
    entries = list(scale_groups)
    if any(isinstance(entry, (list, tuple, np.ndarray)) for entry in entries):
        return _of_lists(entries, map(str, range(len(entries))), known, said)
    if len(entries) != n_features:
        raise _wrong(said, f"got {len(entries)} labels for {n_features} columns")
    labels, block = np.unique(np.array(entries, dtype=object).astype(str), return_inverse=True)
    return block, list(labels)


def _of_lists(lists, labels, known, said):
    """Return what `_blocks_of` returns for blocks given as lists of names or numbers of columns.

    `labels` are the names of the blocks, and `known` those of the columns.
    """
    block, place = np.full(len(known), -1), {name: j for j, name in enumerate(known)}
    for g, columns in enumerate(lists):
        if np.ndim(columns) != 1 or len(columns) == 0:
            raise _wrong(said, f"block {g} is {columns!r}")
        for column in columns:
            j = place.get(column) if isinstance(column, str) else _number(column, len(known))
            if j is None:
                raise _wrong(said, f"there is no column {column!r}")
            if block[j] >= 0:
                raise _wrong(said, f"the column {known[j]!r} is in two blocks")
            block[j] = g
    if (block < 0).any():
        raise _wrong(said, f"the column {known[int(np.argmin(block))]!r} is in no block")
    return block, list(labels)


def _number(column, n_features):
    """Return the number of a column as an int, or None if there is no such column."""
    return int(column) if is_whole(column) and 0 <= column < n_features else None


def _wrong(said, what):
    """Return the error for a `scale_groups` that is not accepted, with the reason `what`."""
    return InvalidParameterError(
        f"The scale_groups of {said} must be None (one scale), 'columns' (one a column), one label "
        f"for each column, or blocks of columns that contain each column once; {what}."
    )
