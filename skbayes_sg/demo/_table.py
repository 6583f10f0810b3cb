"""Tables for the demonstration: one from scikit-learn, or any CSV file with a header.

CSV files are read without pandas, so that the same file gives the same table on every machine.
"""

import difflib
import math
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from sklearn.datasets import load_breast_cancer

from ._file import TableError, read_rows

__all__ = ["Table", "TableError", "breast_cancer", "read_table"]

MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}  # texts, in lower case, of missing values
TASKS = ("classes", "numbers", "counts")
MOST_CLASSES = 20  # a numeric target with more values is taken as numbers or counts
LARGE_COUNT = 100  # whole numbers whose mean is at least this are taken as numbers, not as counts
LEAST_ROWS = 20  # fewest rows of a regression
FEW_ROWS = 60  # rows of scikit-learn's table that models learn from
LEAST_OF_A_CLASS = 8  # fewest rows of a class, so that every fold has some to train and to test
# Numbers with a decimal comma, and perhaps points between thousands: 1.234,5.
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+|\d+)")  # 12,500, which may be 12.5 as well
# A number with a sign or a unit before or after it: $3.50, 12 kg, 1.5%, 20 °C.
WITH_UNIT = re.compile(r"([$£€¥]?)\s*[+-]?\d[\d.,]*\s*((?:[%‰°$£€¥]|[^\W\d_])\S*)?")
UNIQUE_SHARE = 0.5  # a text column with more different texts than this share of rows holds names


@dataclass
class Table:
    """Features, and what is to be predicted from them.

    Attributes
    ----------
    source, target : str
        The origin of the rows, and the name of what is predicted.
    names : list of str
        The names of the features.
    X : ndarray of shape (n_rows, n_features)
        Floats, with NaN for missing values; of dtype object if some features are text.
    y : ndarray of str, or of float for numbers and counts
    is_text : ndarray of bool, shape (n_features,)
    notes : list of str
        How rows and columns were changed.
    task : {"classes", "numbers", "counts"}
        What y holds.
    n_train : int, optional
        Number of rows to learn from; three quarters of them if None.
    """

    source: str
    target: str
    names: list
    X: np.ndarray
    y: np.ndarray
    is_text: np.ndarray
    notes: list = field(default_factory=list)
    task: str = "classes"
    n_train: int | None = None


def breast_cancer():
    """569 tumours with 30 measurements of cell nuclei each, in two classes; few to learn from."""
    data = load_breast_cancer()
    y = np.array(["malignant", "benign"])[data.target]
    names = [str(name) for name in data.feature_names]
    source = "breast cancer (Wisconsin, comes with scikit-learn)"
    no_texts = np.zeros(len(names), dtype=bool)
    return Table(source, "diagnosis", names, data.data, y, no_texts, n_train=FEW_ROWS)


def read_table(path, target, task="auto"):
    """Read a CSV file as a `Table` whose column `target` is to be predicted."""
    notes = []
    columns = _columns(path, notes)
    if target not in columns:
        raise TableError(_no_such_column(path, target, columns))
    labels = columns.pop(target)
    keep = _labelled_rows(labels, target, notes)
    own = [labels[i] for i in keep]
    task = _task_of(own, target, notes) if task == "auto" else task
    if task == "classes":
        _check_target(own, target, path)
        keep = _frequent_rows(labels, keep, target, path, notes)
    else:
        _check_numbers(own, keep, target, path, task)
    features = _features({name: [c[i] for i in keep] for name, c in columns.items()}, notes)
    if not features:
        raise TableError(f"{path} has no usable column besides {target!r}.")
    is_text = np.array([column.dtype == object for column in features.values()])
    _note_missing(features, notes)
    X = np.stack([_filled(column) for column in features.values()], axis=1)
    y = np.array([_label(labels[i]) for i in keep])
    if task != "classes":
        y = y.astype(np.float64)
    return Table(str(path), target, list(features), X, y, is_text, notes, task)


# -- the columns --------------------------------------------------------------------------------


def _columns(path, notes):
    """The texts of each column by name; notes say how columns were named and changed."""
    header, rows, delimiter = read_rows(path)
    names = [name or f"column {j}" for j, name in enumerate(header, 1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"The header of {path} repeats the names of columns: {twice}.")
    columns = {name: [row[j] for row in rows] for j, name in enumerate(names)}
    unnamed = [name for name, written in zip(names, header, strict=True) if not written]
    columns = _without_row_numbers(columns, unnamed, notes)
    return columns if delimiter == "," else _with_points(columns, notes)


def _without_row_numbers(columns, unnamed, notes):
    """The columns without a first one that has no name and counts the rows.

    A note says so, and another one what the other columns without a name are called.
    """
    first = next(iter(columns))
    if first in unnamed and _counts_rows(columns[first]):
        columns = {name: texts for name, texts in columns.items() if name != first}
        notes.append("The first column, which has no name, is left out: it counts the rows.")
    called = [repr(name) for name in unnamed if name in columns]
    if called:
        notes.append(f"Columns without a name are called {', '.join(called)}.")
    return columns


def _counts_rows(texts):
    """Whether a column holds 0, 1, 2, ... as pandas writes it, or 1, 2, 3, ... as R does."""
    first = 0 if texts[0] == "0" else 1
    return all(text == str(i) for i, text in enumerate(texts, first))


def _with_points(columns, notes):
    """The columns, with points in numbers that have decimal commas.

    Notes name those columns, and those in which all commas may stand between thousands.
    """
    found, doubtful = {}, []
    for name, texts in columns.items():
        present = [text for text in texts if not _is_missing(text)]
        if not any("," in text for text in present):
            continue
        if all(map(THOUSANDS.fullmatch, present)):
            doubtful.append(name)
        elif all(map(DECIMAL_COMMA.fullmatch, present)):
            found[name] = [
                t if _is_missing(t) else t.replace(".", "").replace(",", ".") for t in texts
            ]
    if found:
        notes.append(f"Commas are taken for decimal points in {', '.join(map(repr, found))}.")
    if doubtful:
        notes.append(
            f"Values of {', '.join(map(repr, doubtful))} are taken for texts, since their commas "
            "may stand before decimals or between thousands: write these numbers without commas."
        )
    return columns | found


def _no_such_column(path, target, names):
    """The message that a target is not among the columns."""
    close = difflib.get_close_matches(target or "", names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    asked = f"{path} has no column {target!r}." if target else "Name a column with --target."
    return f"{asked}{hint} Its columns: {', '.join(names)}."


# -- the labels ---------------------------------------------------------------------------------


def _is_missing(text):
    """Whether a text stands for a missing value."""
    return text.lower() in MISSING


def _numbers(texts):
    """The texts as floats, with NaN for missing or infinite; None if some are not numbers."""
    try:
        values = np.array([math.nan if _is_missing(text) else float(text) for text in texts])
    except ValueError:
        return None
    return np.where(np.isfinite(values), values, math.nan)


def _label(text):
    """The text of a label, in one form for equal numbers such as 1, 1.0 and 01."""
    number = _numbers([text])
    return text if number is None or math.isnan(number[0]) else f"{number[0]:.17g}"


def _labelled_rows(labels, target, notes):
    """Indices of the rows that have a label; a note says how many are left out."""
    keep = [i for i, label in enumerate(labels) if not _is_missing(label)]
    if len(keep) < len(labels):
        notes.append(f"{len(labels) - len(keep)} rows without a value of {target!r} are left out.")
    return keep


def _check_target(labels, target, path):
    """Raise `TableError` unless the labels are those of a few classes."""
    counts = Counter(map(_label, labels))
    where = f"Column {target!r} of {path}"
    if len(counts) < 2:
        held = f"one value only ({next(iter(counts))!r})" if counts else "no values"
        raise TableError(f"{where} has {held}: a classifier needs at least two classes.")
    if len(counts) <= MOST_CLASSES:
        return
    raise TableError(
        f"{where} has {len(counts)} different values in {len(labels)} rows, but there may be at "
        f"most {MOST_CLASSES} classes. Name another column, or merge classes.{_unit_hint(labels)}"
    )


def _unit_hint(labels):
    """How to have labels as numbers that have a sign or a unit; "" for others."""
    unit = _unit(labels)
    return f" To have them as numbers, write them without {unit!r}." if unit else ""


def _task_of(labels, target, notes):
    """What a target holds, "classes", "counts" or "numbers".

    Numbers with more than `MOST_CLASSES` different values are not classes; a note says that others
    are taken for classes.
    """
    values = _numbers(labels)
    n_values = 0 if values is None else len(np.unique(values))
    if n_values <= MOST_CLASSES:
        tasks = _regressions(labels)
        if tasks:
            notes.append(
                f"The {n_values} numbers in {target!r} are taken for classes; {tasks} takes them "
                "for what they are."
            )
        return "classes"
    return "counts" if _are_counts(values) and values.mean() < LARGE_COUNT else "numbers"


def _regressions(labels):
    """The options that take labels for numbers; "" for texts and for fewer than three numbers."""
    values = _numbers(labels)
    if values is None or len(np.unique(values)) < 3:
        return ""
    return "--task counts or --task numbers" if _are_counts(values) else "--task numbers"


def _are_counts(values):
    """Whether all values are whole numbers of at least zero."""
    return bool(((values >= 0.0) & (values == np.rint(values))).all())


def _check_numbers(labels, rows, target, path, task):
    """Raise `TableError` unless the labels of these rows are numbers, or counts, that differ."""
    values, where = _numbers(labels), f"Column {target!r} of {path}"
    if values is None:
        raise TableError(f"{where} holds texts: use --task classes.{_unit_hint(labels)}")
    _check_finite(labels, values, rows, where)
    if task == "counts" and not _are_counts(values):
        raise TableError(f"{where} holds no counts 0, 1, 2, ...: use --task numbers.")
    if len(values) < LEAST_ROWS or np.ptp(values) == 0.0:
        raise TableError(
            f"{where} has {len(values)} values, {len(np.unique(values))} of them different: a "
            f"regression needs {LEAST_ROWS} rows, and values that differ."
        )


def _check_finite(labels, values, rows, where):
    """Raise `TableError` with the first infinite value and its row, if there is one."""
    infinite = np.flatnonzero(np.isnan(values))  # labels that are missing are not among them
    if infinite.size:
        i, others = infinite[0], infinite.size - 1
        more = f", and {others} more such values" if others else ""
        raise TableError(
            f"{where} holds {labels[i]!r} in row {rows[i] + 1} below the header{more}: a "
            "regression needs finite numbers. Correct these rows, or remove them."
        )


def _frequent_rows(labels, keep, target, path, notes):
    """Indices of the rows whose classes have at least `LEAST_OF_A_CLASS` rows.

    A note names the classes that are left out; `TableError` if fewer than two remain.
    """
    counts = Counter(_label(labels[i]) for i in keep)
    rare = {label: n for label, n in counts.items() if n < LEAST_OF_A_CLASS}
    tasks = _regressions([labels[i] for i in keep])
    hint = f" {tasks} keeps all rows, and takes {target!r} for numbers." if tasks else ""
    if len(counts) - len(rare) < 2:
        raise TableError(
            f"{path} has too few rows: at least two classes of {target!r} need {LEAST_OF_A_CLASS} "
            f"rows or more, but there are {dict(counts)}.{hint}"
        )
    if rare:
        notes.append(
            f"Classes of {target!r} with fewer than {LEAST_OF_A_CLASS} rows are left out: {rare}."
            f"{hint}"
        )
    return [i for i in keep if _label(labels[i]) not in rare]


# -- the features -------------------------------------------------------------------------------


def _unit(texts):
    """The sign or unit that all texts have before or after a number; "" if there is none."""
    if _numbers(texts) is not None:
        return ""  # the e of 1e5 is none
    found = [WITH_UNIT.fullmatch(text) for text in texts if not _is_missing(text)]
    if not all(found):
        return ""
    units = {(match[1] or "") + (match[2] or "") for match in found}
    return units.pop() if len(units) == 1 else ""


def _note_units(columns, notes):
    """Add a note on the columns whose numbers are texts because they have a sign or a unit."""
    units = {name: _unit(texts) for name, texts in columns.items()}
    listed = ", ".join(f"{name!r} ({unit})" for name, unit in units.items() if unit)
    if listed:
        notes.append(
            f"Numbers with a sign or a unit are taken for texts: {listed}. Remove the sign or unit "
            "to have them as numbers."
        )


def _features(columns, notes):
    """The useful columns by name: numbers as floats with NaN, texts as objects with None.

    A note says why a column is left out, another one which texts were meant as numbers.
    """
    _note_units(columns, notes)
    features = {}
    for name, texts in columns.items():
        values = _numbers(texts)
        if values is None:
            values = np.array([None if _is_missing(t) else t for t in texts], dtype=object)
        reason = _useless(values)
        if reason:
            notes.append(f"Column {name!r} is left out: {reason}.")
        else:
            features[name] = values
    return features


def _useless(values):
    """Why a column cannot help to predict, in words; None if it can."""
    present = _present(values)
    different = len(set(present.tolist()))
    if different == 0:
        return "it has no values"
    if different == 1:
        return f"it has one value only ({present[0]})"
    if values.dtype == object and different > UNIQUE_SHARE * len(values):
        return f"{different} different texts in {len(values)} rows are names, not categories"
    return None


def _present(values):
    """The values of a column that are not missing."""
    if values.dtype == object:
        return values[[value is not None for value in values]]
    return values[~np.isnan(values)]


def _note_missing(features, notes):
    """Add a note on the number of missing values of each column, if there are any."""
    lacking = {name: len(v) - len(_present(v)) for name, v in features.items()}
    lacking = {name: n for name, n in lacking.items() if n}
    if lacking:
        listed = ", ".join(f"{name!r} {n}" for name, n in lacking.items())
        notes.append(
            f"Missing values by column: {listed}. Missing numbers become the median of the "
            "training rows, missing texts a separate category."
        )


def _filled(values):
    """A column in which missing texts are the text "missing"; numbers stay as they are."""
    if values.dtype != object:
        return values
    return np.array(["missing" if value is None else value for value in values], dtype=object)
