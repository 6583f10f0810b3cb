"""What conversion to NumPy arrays would silently change or lose.

These are dates, nulls of Arrow dictionaries, and the names of the columns of Dask's data frames.
"""

import datetime

import numpy as np

__all__ = ["decoded", "is_arrow", "is_dask", "reject_dates"]

# Beginnings of the names of types of NumPy, pandas, Polars and pyarrow: "time" is also that of
# timedelta and timestamp.
DATES = "date", "time", "duration", "period"
OBJECTS = np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta


def is_arrow(values):
    """Whether the values are a table or an array of pyarrow."""
    return type(values).__module__.split(".")[0] == "pyarrow"


def is_dask(*collections):
    """Whether any of the arguments is a Dask collection."""
    return any(type(x).__module__.partition(".")[0].startswith("dask") for x in collections)


def decoded(values):
    """Return values that NumPy reads as they are.

    A collection of Dask is computed, and a lazy data frame of Polars is collected. Tables and
    arrays of pyarrow have plain values in place of dictionaries, a null of which NumPy would take
    for the last entry. All other objects are returned as they are.
    """
    if is_dask(values):
        return values.compute()
    if type(values).__name__ == "LazyFrame":
        return values.collect()
    if not is_arrow(values):
        return values
    if not hasattr(values, "schema"):
        return _plain(values)
    for j, name in enumerate(values.schema.names):
        values = values.set_column(j, name, _plain(values.column(j)))
    return values


def _plain(column):
    is_dictionary = str(column.type).startswith("dictionary<")
    return column.cast(column.type.value_type) if is_dictionary else column


def reject_dates(**data):
    """Raise `ValueError` for dates, which NumPy would silently convert to numbers."""
    for name, values in data.items():
        kinds = [str(kind) for kind in _types_of(values)]
        found = [kind for kind in kinds if kind.lower().startswith(DATES)]
        if not found and kinds in ([], ["object"]):
            found = _dates_in(values)
        if found:
            raise ValueError(
                f"{name} contains dates or durations ({found[0]}). Convert them to numbers in some "
                "unit."
            )


def _types_of(values):
    """Return the types of the columns of a table, or that of an array, in a list; [] for lists."""
    if is_arrow(values):
        return values.schema.types if hasattr(values, "schema") else [values.type]
    dtypes = getattr(values, "dtypes", getattr(values, "dtype", None))
    several = np.iterable(dtypes) and not isinstance(dtypes, (str, np.dtype))
    return dtypes if several else [] if dtypes is None else [dtypes]


def _dates_in(values):
    """Return the type of the first date in a list or a row of objects, in a list; [] without."""
    if not isinstance(values, (list, tuple)) and getattr(values, "ndim", 0) != 1:
        return []
    try:
        entries = np.array(values, dtype=object).ravel().tolist()
    except ValueError:  # rows of different lengths, which are refused elsewhere
        return []
    return [type(entry).__name__ for entry in entries if isinstance(entry, OBJECTS)][:1]
