"""The columns of a table that hold groups: where they are, their levels, and the other columns."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_features

from .._base.categories import UNSEEN, encode, has_another_type, learn, values_of
from .._base.tables import decoded, is_arrow
from .._base.validation import is_whole, reject_masked, reject_repeated_names

__all__ = ["GroupColumns", "Levels"]


@dataclass(frozen=True)
class Levels:
    """The levels of one column.

    Parameters
    ----------
    name : str
        The column.
    known : ndarray of shape (n_levels,)
        The levels of the fit.
    """

    name: str
    known: np.ndarray

    @property
    def labels(self):
        """A text for each level, different ones also for the levels 1 and "1"."""
        if self.known.dtype.kind == "M":
            return np.datetime_as_string(self.known, unit="auto").tolist()
        levels = self.known.tolist()
        texts = [str(level) for level in levels]
        return texts if len(set(texts)) == len(texts) else [repr(level) for level in levels]

    def encode(self, values):
        """Level numbers of values, and numbers of the levels that were not in the fit.

        The former are `UNSEEN` for missing and unseen levels; the latter are -1 for all others than
        unseen levels.
        """
        missing = is_missing(values)
        codes = np.where(missing, UNSEEN, encode(values, self.known))
        new, rest = np.full(len(codes), -1), (codes == UNSEEN) & ~missing
        if rest.any():
            unknown, new[rest] = learn(values[rest])
            self._warn_of_another_type(unknown)
        return codes, new

    def _warn_of_another_type(self, unknown):
        """`UserWarning` for levels of another kind, such as numbers where strings were fitted."""
        if not has_another_type(unknown, self.known):
            return
        warnings.warn(
            f"The column {self.name!r} holds levels such as {values_of(unknown)[0]!r}, and those "
            f"of the fit, such as {values_of(self.known)[0]!r}, have another type: the former are "
            "predicted as new levels. Convert the column to the type that it had in the fit.",
            UserWarning,
            stacklevel=2,
        )


class GroupColumns:
    """Positions of the columns of a table that hold groups, and of those whose slopes vary.

    Parameters
    ----------
    X : table
        The table of the fit.
    groups : list of str or int
        Names or positions of columns.
    slopes : dict of str or int to list of str or int
        For some of the groups, columns whose slopes vary with the level.
    fail : callable
        ``fail(parameter, wanted)`` raises the error for a parameter.

    Attributes
    ----------
    names : list of str
        Names of the columns with groups.
    slopes : list of list of int
        For each column with groups the positions, among the other columns, of those whose slopes
        vary with its levels.
    slope_names : list of list of str
        The names of these columns.
    """

    def __init__(self, X, groups, slopes, fail):
        reject_repeated_names(X)
        X = as_table(X)
        self._columns = _names_of(X)
        self._n_columns = _num_features(X)
        wanted = "None, or a list of different columns of X, by name or by position"
        if not isinstance(groups, (list, tuple)) or len(groups) == 0:
            fail("group_effects", wanted)
        self._places = [self._place(column, "group_effects") for column in groups]
        if len(set(self._places)) < len(groups):
            fail("group_effects", wanted)
        self.names = [self._name(place) for place in self._places]
        self._others = [j for j in range(self._n_columns) if j not in self._places]
        self.slopes = self._slopes_of(slopes, fail)
        self.slope_names = [[self._name(self._others[j]) for j in own] for own in self.slopes]

    def _place(self, column, parameter):
        """The position of a column that is given by its name or its position."""
        if isinstance(column, str) and self._columns is not None and column in self._columns:
            return self._columns.index(column)
        if is_whole(column) and -self._n_columns <= column < self._n_columns:
            return int(column) % self._n_columns
        known = f"positions 0 to {self._n_columns - 1}"
        if self._columns is None and isinstance(column, str):
            known += ", and no names. A step of a pipeline that returns an array has lost them: "
            known += "set_output(transform='pandas') keeps them"
        if self._columns is not None:
            known = f"columns {', '.join(map(repr, self._columns[:20]))}"
            if is_whole(column):
                known += "; an integer is a position"
        raise ValueError(f"{parameter} names the column {column!r}, and X has the {known}.")

    def _name(self, place):
        """The name of the column at a position; ``x`` and the position where X has no names."""
        return f"x{place}" if self._columns is None else str(self._columns[place])

    def _slopes_of(self, slopes, fail):
        """The attribute `slopes`, from the checked argument of this name."""
        found = [[] for _ in self._places]
        if slopes is None:
            return found
        wanted = "None, or a dict of columns of group_effects to lists of other columns"
        if not isinstance(slopes, dict):
            fail("group_slopes", wanted)
        for group, columns in slopes.items():
            place = self._place(group, "group_slopes")
            if place not in self._places or not isinstance(columns, (list, tuple)) or not columns:
                fail("group_slopes", wanted)
            places = [self._place(column, "group_slopes") for column in columns]
            if set(places) & set(self._places) or len(set(places)) < len(places):
                fail("group_slopes", wanted)
            found[self._places.index(place)] = [self._others.index(j) for j in places]
        return found

    def divided(self, X):
        """(other columns of X, or None without any; list of levels, one array for each group)."""
        X = as_table(X)
        values = [_values_of(_safe_indexing(X, place, axis=1)) for place in self._places]
        return _safe_indexing(X, self._others, axis=1) if self._others else None, values

    @property
    def others(self):
        """The names of the other columns."""
        return [self._name(place) for place in self._others]

    def learn(self, values, owner):
        """`Levels` of each group column, and the level numbers of all rows, (n_rows, n_factors)."""
        found = []
        for name, column in zip(self.names, values, strict=True):
            missing = is_missing(column)
            if missing.any():
                raise ValueError(
                    f"{owner}: the group column {name!r} contains NaN, first in row "
                    f"{np.flatnonzero(missing)[0]}. Give missing levels a name of their own, such "
                    "as 'missing', or leave these rows out. Predictions may have missing levels."
                )
            found.append(_learnt(column, f"{owner}: the group column {name!r}"))
        levels = [Levels(name, known) for name, (known, _) in zip(self.names, found, strict=True)]
        return levels, np.stack([codes for _, codes in found], axis=1)


def _learnt(column, which):
    """The levels of a column and the level number of each row, or an error that names it."""
    try:
        return learn(column)
    except TypeError as error:
        raise ValueError(f"{which} holds what cannot be a level: {error}.") from error


def as_table(X):
    """Return X as a data frame or an array; the entries of lists keep their types."""
    reject_masked(X=X)
    if sparse.issparse(X):
        raise TypeError("group_effects needs a dense X; a sparse matrix was passed.")
    if hasattr(X, "columns") or hasattr(X, "dtype"):
        X = decoded(X)
        n_axes = 2 if is_arrow(X) else np.ndim(X)  # a table of pyarrow may have no common type
        if n_axes != 2:
            raise ValueError(f"X must have two dimensions, got {n_axes}.")
        return X
    table = np.array(X, dtype=object)
    if table.ndim != 2:
        raise ValueError(f"X must be a table with two dimensions, got {table.ndim}.")
    return table


def _names_of(X):
    """Names of the columns of a data frame; None for an array."""
    if is_arrow(X):  # its `columns` are values
        return list(X.schema.names)
    return list(X.columns) if hasattr(X, "columns") else None


def _values_of(column):
    """The values of a column of a data frame or an array."""
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if values.size != len(column):
        raise ValueError(f"A column of group_effects has several numbers in a row: {column!r}.")
    return values.ravel()


def is_missing(values):
    """Mask of the values that are None, NaN, NaT or the missing value of pandas."""
    if values.dtype.kind in "fcmM":
        return np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    # Missing values differ from themselves; that of pandas does not say whether it does.
    return np.fromiter((_differs(value) for value in values.tolist()), bool, len(values))


def _differs(value):
    """Whether a value is missing: None, different from itself, or not to be compared."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True
