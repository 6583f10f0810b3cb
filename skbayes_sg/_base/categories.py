"""Conversion of categories of any kind to row numbers 0, 1, 2, ... and back."""

import datetime
import math
import numbers

import numpy as np

__all__ = ["UNSEEN", "encode", "encode_table", "first_duplicate", "has_another_type", "keys"]
__all__ += ["learn", "learn_table", "values_of"]

UNSEEN = -1  # the code of a category that is not in the data

# Whole numbers are counted instead of sorted, which is faster, if their range is less than this
# multiple of the number of rows.
MOST_APART = 4

# What values of types of NumPy are; numbers of all types are equal if their values are.
KINDS = {"U": "a string", "S": "a string", "M": "a date", "m": "a duration"}
MIDNIGHT = datetime.time()


def _is_object(column):
    return column.dtype.kind == "O"


def values_of(column):
    """Return the values of a column as a list of Python objects, with dates as those at midnight.

    NumPy converts dates in nanoseconds to whole numbers, so they are converted to microseconds
    first, if that changes none of them.
    """
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] == "ns":
        rounded = column.astype(f"{column.dtype.kind}8[us]")
        if (rounded == column).all():
            return rounded.tolist()
    return [
        datetime.datetime.combine(value, MIDNIGHT) if type(value) is datetime.date else value
        for value in column.tolist()
    ]


def learn(column):
    """Return the categories of a column and the code of each row.

    Categories are sorted if they can be compared, and otherwise stand in order of appearance.

    Parameters
    ----------
    column : ndarray of shape (n_rows,)

    Returns
    -------
    categories : ndarray of shape (n_categories,)
    codes : ndarray of int32, shape (n_rows,)
        The place of each row's category among the categories.
    """
    if not _is_object(column):
        return _of_whole_numbers(column) or _by_sorting(column)
    values = column.tolist()
    found = dict.fromkeys(values)
    try:
        ordered = sorted(found)
    except TypeError:
        ordered = list(found)
    categories = np.empty(len(ordered), dtype=object)
    categories[:] = ordered
    return categories, encode(column, categories)


def _by_sorting(column):
    categories, codes = np.unique(column, return_inverse=True)
    return categories, codes.ravel().astype(np.int32)


def _of_whole_numbers(column):
    """Return the categories and codes of a column of whole numbers, found by counting.

    The result is that of `_by_sorting`, or None if the column is empty, holds anything but whole
    numbers, or has a range that `MOST_APART` excludes.
    """
    if column.dtype.kind not in "iuf" or len(column) == 0:
        return None
    low, high = float(column.min()), float(column.max())
    if not (high - low < MOST_APART * len(column) and max(abs(low), abs(high)) < 2.0**52):
        return None
    low = int(low)
    places = column.astype(np.int64) - low
    if not np.array_equal(places + low, column):
        return None
    known = np.flatnonzero(np.bincount(places))
    codes = np.empty(known[-1] + 1, dtype=np.int32)
    codes[known] = np.arange(len(known))
    return (known + low).astype(column.dtype), codes[places]


def encode(column, categories):
    """Return the place of each value among `categories`; `UNSEEN` for values that are not there.

    Dates are equal to dates and times at midnight, and numbers of less precision to those that are
    rounded to them.
    """
    if _is_object(column) or _is_object(categories):
        places = {value: place for place, value in enumerate(values_of(categories))}
        codes = (places.get(value, UNSEEN) for value in values_of(column))
        return np.fromiter(codes, np.int32, len(column))
    if _kinds(column) != _kinds(categories):
        return np.full(len(column), UNSEEN, dtype=np.int32)  # numbers and strings are never equal
    column, categories = _rounded(column, categories)
    places = np.minimum(np.searchsorted(categories, column), len(categories) - 1)
    return np.where(categories[places] == column, places, UNSEEN).astype(np.int32)


def _rounded(column, categories):
    """Round numbers to the type of less precision, if all categories then remain different."""
    if column.dtype.kind != "f" or categories.dtype.kind != "f":
        return column, categories
    least = min(column.dtype, categories.dtype, key=lambda dtype: dtype.itemsize)
    with np.errstate(over="ignore"):
        rounded = categories.astype(least)
        if not (rounded[1:] > rounded[:-1]).all():
            return column, categories
        return column.astype(least), rounded


def _kinds(values):
    """The kinds of values that a column has, such as strings, numbers and dates."""
    if not _is_object(values):
        return {KINDS.get(values.dtype.kind, "a number")}
    return {_kind(value) for value in values.tolist()}


def _kind(value):
    """What a value is: values of two kinds are never equal."""
    if isinstance(value, str):
        return "a string"
    if isinstance(value, numbers.Number):
        return "a number"
    if isinstance(value, datetime.date):
        return "a date" if getattr(value, "tzinfo", None) is None else "a date with a time zone"
    return type(value).__name__


def learn_table(X):
    """Return the categories of each column, and the codes of all rows of X.

    The categories of all C columns are numbered in one sequence, as the rows of the table F of
    factors are: those of column c have the codes from ``offsets[c]`` up to ``offsets[c + 1]``.

    Returns
    -------
    categories : list of ndarray
    offsets : ndarray of int64, shape (C + 1,)
    codes : ndarray of int32, shape (n_rows, C)
    """
    learnt = [learn(X[:, c]) for c in range(X.shape[1])]
    offsets = np.cumsum([0, *(len(categories) for categories, _ in learnt)])
    codes = np.stack([codes for _, codes in learnt], axis=1) + offsets[:-1].astype(np.int32)
    return [categories for categories, _ in learnt], offsets, codes


def has_another_type(values, categories):
    """Whether no category is of the kind of the first of some values, as of strings or of dates."""
    return not _kinds(values[:1]) <= _kinds(categories)


def encode_table(X, categories, offsets):
    """Return the codes of all rows of X, numbered as by `learn_table`, in an int32 array (n, C).

    The code of a category that was not learnt is `UNSEEN`.
    """
    columns = [encode(X[:, c], known) for c, known in enumerate(categories)]
    shifted = [
        np.where(k == UNSEEN, k, k + first) for k, first in zip(columns, offsets, strict=False)
    ]
    return np.stack(shifted, axis=1).astype(np.int32)


def keys(codes, offsets):
    """Return a whole number for each row; rows have the same number if all their categories agree.

    It depends on the row alone, so that rows of different tables can be compared. The numbers are
    int64, or Python's own in an object array if there are too many combinations of categories.
    """
    sizes = [int(size) + 1 for size in np.diff(offsets)]  # with one more place, for `UNSEEN`
    fits = math.prod(sizes) <= np.iinfo(np.int64).max
    key = np.zeros(len(codes), dtype=np.int64 if fits else object)
    for c, size in enumerate(sizes):
        key = key * size + np.where(codes[:, c] < 0, size - 1, codes[:, c] - offsets[c])
    return key


def first_duplicate(codes, offsets):
    """Return rows (i, j): row j is the first one with the categories of an earlier row, row i.

    The result is None if no two rows have the same categories.
    """
    key = keys(codes, offsets)
    ordered = np.sort(key)
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    place = again[np.argmin(order[again + 1])]
    return int(order[place]), int(order[place + 1])
