"""What conversion to NumPy arrays would silently change: dates, and nulls of Arrow dictionaries."""

import datetime

import numpy as np

__all__ = ["decoded", "is_arrow", "reject_dates"]

# Beginnings of the names of types of NumPy, pandas, Polars and pyarrow: "time" is also that of
# timedelta and timestamp.
DATES = "date", "time", "duration", "period"
OBJECTS = np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta


def is_arrow(values):
    """Whether the values are a table or an array of pyarrow."""
    return type(values).__module__.split(".")[0] == "pyarrow"


def decoded(values):
    """Return a table or an array of pyarrow with plain values in place of dictionaries.

    NumPy would take a null of a dictionary for its last entry. All other objects are returned as
    they are.
    """
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
