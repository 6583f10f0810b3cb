"""Checks of arguments and of data, with messages that name the argument and its value."""

import numbers
import warnings

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..exceptions import InvalidParameterError
from . import memmap, streams
from .tables import decoded, reject_dates
from .threads import one_blas_thread

__all__ = ["Parameters", "check_count", "check_data", "check_probabilities", "check_weights"]
__all__ += [
    "as_reals",
    "bools_of",
    "check_positive",
    "check_size",
    "check_whole",
    "check_within",
    "drop_unweighted",
    "is_real",
    "is_whole",
    "reject_masked",
    "reject_repeated_names",
]
__all__ += ["central", "check_exposure", "check_total", "warn_without_exposure", "widen_small"]


def is_real(value):
    """Whether a value is a real number, and no bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def is_whole(value):
    """Whether a value is an integer, and no bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def as_reals(value):
    """Return a number or an array of numbers as floats; `ValueError` for bools, text and others.

    Values may be infinite or NaN. Lists are looked at entry by entry, because NumPy would turn
    bools in them into numbers, and text that can be read as a number.
    """
    array = np.asarray(value, dtype=None if hasattr(value, "dtype") else object)
    if array.dtype.kind not in "iuf" and not (
        array.dtype.kind == "O" and all(map(is_real, array.flat))
    ):
        raise ValueError(f"{value!r} is not a number, and no array of numbers.")
    return array.astype(np.float64)


def check_within(name, value, owner, low, high, ends="()", wanted=None):
    """Return the value as a float, if it is a number between `low` and `high`, and no bool.

    Parameters
    ----------
    name : str
        The argument.
    value : object
    owner : object or str
        What the argument belongs to: the object, which messages show by its repr, or their text.
    low, high : float
    ends : {"()", "[)", "(]", "[]"}, default="()"
        Whether each end is included.
    wanted : str, optional
        How messages call such numbers; by default they state the interval.

    Returns
    -------
    float

    Raises
    ------
    InvalidParameterError
        For all other values.
    """
    above = is_real(value) and (value > low or (ends[0] == "[" and value == low))
    if not (above and (value < high or (ends[1] == "]" and value == high))):
        _refuse(name, value, owner, wanted or f"a number in {ends[0]}{low:g}, {high:g}{ends[1]}")
    return float(value)


def check_positive(name, value, owner):
    """Return the value as a float, if it is a positive finite number; see `check_within`."""
    return check_within(name, value, owner, 0.0, np.inf, wanted="a positive finite number")


def check_whole(name, value, owner, least, none=False):
    """Return the value, if it is an int of at least `least`, or None where that is allowed.

    All other values raise an `InvalidParameterError`; see `check_within`.
    """
    if not (is_whole(value) and value >= least) and not (none and value is None):
        _refuse(name, value, owner, "None or " * none + f"an int of at least {least}")
    return value


def _refuse(name, value, owner, wanted):
    said = owner if isinstance(owner, str) else repr(owner)
    raise InvalidParameterError(f"The {name} of {said} must be {wanted}, got {value!r}.")


class Parameters:
    """Checks the constructor parameters of an estimator.

    The methods return the value of a parameter in the form that fits use, and raise
    `InvalidParameterError` if it is not accepted.
    """

    def __init__(self, estimator):
        self.estimator = estimator
        self.owner = type(estimator).__name__

    def fail(self, name, wanted):
        """Raise `InvalidParameterError` for a parameter that is not what is wanted."""
        value = getattr(self.estimator, name)
        raise InvalidParameterError(
            f"The {name!r} parameter of {self.owner} must be {wanted}. Got {value!r} instead."
        )

    def integer(self, name, least, auto=False):
        """Return the parameter as an int of at least `least`; None for "auto" if `auto` is true."""
        value = getattr(self.estimator, name)
        wanted = f"an int in the range [{least}, inf)" + (" or 'auto'" if auto else "")
        if auto and isinstance(value, str) and value == "auto":
            return None
        if not is_whole(value) or value < least:
            self.fail(name, wanted)
        return int(value)

    def flag(self, name):
        """Return the parameter as a bool."""
        value = getattr(self.estimator, name)
        if not isinstance(value, (bool, np.bool_)):
            self.fail(name, "True or False")
        return bool(value)

    def component(self, name, choices, base):
        """Return the component for a string of `choices` or an object of class `base`.

        The result is None for "auto".
        """
        value = getattr(self.estimator, name)
        if isinstance(value, str):
            if value == "auto":
                return None
            if value in choices:
                return choices[value]()
        elif isinstance(value, base):
            return value
        kinds = base if isinstance(base, tuple) else (base,)
        objects = " or ".join(kind.__name__ for kind in kinds)
        strings = ", ".join(repr(choice) for choice in ("auto", *choices))
        return self.fail(name, f"one of {strings}, or a {objects} object")

    def combiner(self, choices, base):
        """Return the combiner of subposteriors for a string of `choices` or a `base` object."""
        value = self.estimator.combine
        if isinstance(value, str) and value in choices:
            return choices[value]()
        if not isinstance(value, base):
            strings = ", ".join(repr(choice) for choice in choices)
            self.fail("combine", f"one of {strings}, or a {base.__name__} object")
        value._check("combine")
        return value

    def batch_size(self, n_rows):
        """Return the number of rows of a step; None for "auto"."""
        value = self.estimator.batch_size
        wanted = "'auto', an int in the range [1, inf) or a float in the range (0.0, 1.0]"
        if isinstance(value, str) and value == "auto":
            return None
        if is_whole(value) and value >= 1:
            return self._at_most(int(value), n_rows)
        if is_real(value) and not is_whole(value) and 0.0 < value <= 1.0:
            return max(1, round(value * n_rows))
        return self.fail("batch_size", wanted)

    def _at_most(self, batch_size, n_rows):
        if batch_size > n_rows:
            warnings.warn(
                f"The batch_size of {self.owner}, {batch_size}, is larger than the number of rows "
                f"with a weight, {n_rows}: every step uses all rows.",
                UserWarning,
                stacklevel=2,
            )
        return min(batch_size, n_rows)

    def step_size(self, schedule_class, constant):
        """Return the step size as a schedule; None for "auto"."""
        value = self.estimator.step_size
        if isinstance(value, str) and value == "auto":
            return None
        if isinstance(value, schedule_class):
            value(np.arange(1))  # raises for parameters that are not positive
            return value
        if is_real(value) and np.isfinite(value) and value > 0:
            return constant(float(value))
        return self.fail(
            "step_size", "'auto', a positive finite number or a schedule of skbayes_sg.schedules"
        )

    def choice(self, name, choices):
        """Return the value of the parameter, which must be one of `choices`."""
        value = getattr(self.estimator, name)
        if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
            self.fail(name, "one of " + ", ".join(repr(c) for c in choices))
        return value

    def class_weight(self):
        """Return `class_weight`: None, "balanced", or a dict of finite nonnegative weights."""
        value = self.estimator.class_weight
        wanted = "None, 'balanced' or a dict of class labels to finite numbers of at least 0"
        if isinstance(value, dict):
            weights = value.values()
            if not all(isinstance(w, numbers.Real) and 0.0 <= w < np.inf for w in weights):
                self.fail("class_weight", wanted)
        elif not (value is None or (isinstance(value, str) and value == "balanced")):
            self.fail("class_weight", wanted)
        return value

    def positive(self, name, shape):
        """Return the parameter as floats: a positive finite number, or an array of this shape."""
        value = getattr(self.estimator, name)
        many = f" or an array of {shape[0]} of them" if shape else ""
        wanted = f"a positive finite number{many}"
        try:
            array = np.asarray(value)
            is_number = array.dtype.kind in "iuf" and array.shape in ((), shape)
        except ValueError:
            is_number = False
        if not (is_number and np.isfinite(array).all() and (array > 0.0).all()):
            self.fail(name, wanted)
        return array.astype(np.float64)

    def keep(self):
        """Return the number of draws to keep of each chain: None for all, 0 for moments alone."""
        value, n_draws = self.estimator.keep, self.estimator.n_draws
        if isinstance(value, str) and value in ("all", "moments"):
            return None if value == "all" else 0
        if not is_whole(value) or value < 1:
            self.fail("keep", "'all', 'moments' or an int in the range [1, inf)")
        return None if value >= n_draws else int(value)

    def seed(self):
        """Return a seed, an integer drawn from `random_state`."""
        value = self.estimator.random_state
        try:
            return streams.seed_of(value)
        except (ValueError, TypeError):
            return self.fail(
                "random_state",
                "None, an int in the range [0, 2**32 - 1] or a numpy.random.RandomState",
            )

    def n_jobs(self):
        """Return `n_jobs`: None or an int other than 0."""
        value = self.estimator.n_jobs
        if value is None:
            return None
        if not is_whole(value) or value == 0:
            self.fail("n_jobs", "None or an int other than 0")
        return int(value)


def check_count(name, value, most=None, least=1):
    """Raise `ValueError` for an argument that is not an int in [least, most]."""
    if not (is_whole(value) and least <= value and (most is None or value <= most)):
        ends = f"[{least}, inf)" if most is None else f"[{least}, {most}]"
        raise ValueError(f"{name} must be an int in {ends}, got {value!r}.")


def check_probabilities(name, value):
    """Return the numbers as a float array; `ValueError` unless all are strictly between 0 and 1.

    The value may be one number or a sequence of them.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim > 1 or array.size == 0 or not ((array > 0.0) & (array < 1.0)).all():
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return array


def reject_masked(**arrays):
    """Raise `TypeError` for masked arrays, whose masked values would silently be used."""
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(
                f"{name} is a masked array, and its masked values would be used as if they were "
                f"data. Pass {name}.filled(value), or impute them."
            )


def central(name, value):
    """Return the probabilities below the lower and below the upper end of a central interval.

    `value` is the probability that the interval contains.
    """
    array = check_probabilities(name, value)
    if array.ndim:
        raise ValueError(f"{name} must be one number between 0 and 1, got {value!r}.")
    tail = 0.5 - float(array) / 2
    return tail, min(1.0 - tail, np.nextafter(1.0, 0.0))


_NO_Y = "no y"  # default of y in `check_data`: X is checked alone
LARGEST = 1e60  # largest value, and inverse of the smallest: fourth powers must be finite floats
EXPOSED = 1e30  # largest exposure, and the inverse of the smallest

# Largest sum of weights or of counts: in double precision, the log-likelihood is then exact to
# about 0.01.
HEAVIEST = 1e13
SMALL = 1 << 24  # largest size in bytes, as dense float64, of an X that is converted to that


def check_data(estimator, X, y=_NO_Y, *, reset=True, y_numeric=False):
    """Return X (and y) as kernels need them: float64 or float32, C order or CSR, finite, in range.

    A memory-mapped X stays on disk: it is read in parts, and not copied.
    """
    reject_masked(X=X, y=y)
    X, y = decoded(X), decoded(y)
    reject_repeated_names(X)
    reject_dates(X=X, **({"y": y} if y_numeric else {}))
    if sparse.issparse(X):
        _check_indices(X)
    options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
    options |= {"ensure_all_finite": False, "reset": reset}
    without_y = isinstance(y, str) and y == _NO_Y
    try:
        if without_y:
            X = validate_data(estimator, X, **options)
        else:
            X, y = validate_data(estimator, X, y, y_numeric=y_numeric, **options)
            if y_numeric:  # scikit-learn looks for NaN before it converts objects
                assert_all_finite(y, estimator_name=type(estimator).__name__, input_name="y")
    except (TypeError, ValueError) as error:
        _name_text(estimator, X, error)
        raise
    if sparse.issparse(X):
        X = _canonical(X)
    _check_range(estimator, X)
    return X if without_y else (X, y)


def bools_of(y):
    """Return labels as they are, but as an array of bools if they are an array of bool objects.

    Such arrays come from pandas, after a merge and for missing values that have been dropped.
    """
    values = np.asanyarray(y) if hasattr(y, "dtype") else np.empty(0)
    if values.dtype.kind != "O" or not values.size:
        return y
    if not all(isinstance(label, (bool, np.bool_)) for label in values.flat):
        return y
    return values.astype(bool)


def _name_text(estimator, X, error):
    """Raise a `ValueError` that names the first column of X that is not numeric.

    If X is a list of texts, the error says so. Nothing happens if `error` is not about such
    columns, or X has no columns with names.
    """
    known = "could not convert string", "Cannot cast", "float() argument must be"
    if not any(said in str(error) for said in (*known, "arrays of bytes/strings")):
        return
    if np.ndim(X) == 1 and len(X) and isinstance(X[0], str):
        raise ValueError(
            f"{type(estimator).__name__}: X holds texts, such as {str(X[0])!r}. Count their words "
            "first, for example with sklearn.feature_extraction.text.CountVectorizer in a pipeline."
        ) from error
    for name in getattr(X, "columns", ()):
        try:
            np.asarray(X[name], dtype=np.float64)
        except (TypeError, ValueError) as reason:
            effects = ", or name it in group_effects" if hasattr(estimator, "group_effects") else ""
            raise ValueError(
                f"{type(estimator).__name__}: the column {name!r} of X is not numeric: {reason}. "
                f"Encode it, for example with OneHotEncoder in a ColumnTransformer{effects}."
            ) from error


def reject_repeated_names(X):
    """Raise `ValueError` if several columns have the same name: scikit-learn < 1.9 accepts that."""
    names = [name for name in getattr(X, "columns", ()) if isinstance(name, str)]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"X must have unique column names, but these are repeated: {repeated}.")


def widen_small(X):
    """Convert a small X to dense float64, so that all layouts give the same draws.

    Where hardly any entry is not zero, `skbayes_sg.engine.target.Target.compacted` makes it sparse
    again, after equal rows are merged.
    """
    if 8 * X.shape[0] * X.shape[1] > SMALL:
        return X
    return (X.toarray() if sparse.issparse(X) else X).astype(np.float64, copy=False)


def _check_indices(X):
    """Raise `ValueError` for indices outside the matrix, which would read foreign memory."""
    if X.format in ("csr", "csc", "bsr"):
        # The check may change the matrix, so it gets one of its own.
        own = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        own.check_format(full_check=True)
    elif X.format == "coo" and X.nnz:
        for index, size in zip((X.row, X.col), X.shape, strict=True):
            if index.min() < 0 or index.max() >= size:
                raise ValueError(f"The indices of X must be in [0, {size}).")


def _canonical(X):
    """Return a CSR array with sorted indices, in which the values of duplicates are added up."""
    # The user's matrix must not change; and for `csr_matrix` X * v would be a product of matrices.
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


@one_blas_thread  # threads of BLAS would still spin while work in other threads follows
def _check_range(estimator, X):
    """Raise `ValueError` unless X is finite, and its values have squares that can be summed."""
    values = X.data if sparse.issparse(X) else X
    values = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values[:, None]
    step = max(1, (1 << 24) // (values.shape[1] * values.itemsize))
    for first in range(0, len(values), step):
        block = values[first : first + step]
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.vdot(block, block)  # one pass at the speed of memory
            if not np.isfinite(total):  # in float32 the sum may have overflowed for valid values
                total = np.square(block, dtype=np.float64).sum()
        memmap.forget(values, first, first + len(block))
        if not float(total) <= LARGEST**2:
            assert_all_finite(block, estimator_name=type(estimator).__name__, input_name="X")
            check_size(estimator, "X", np.abs(block).max())


def check_size(estimator, name, size):
    """Raise `ValueError` if the largest absolute value of some data is out of range.

    Outside of [1/LARGEST, LARGEST] powers of it overflow or underflow; zero is accepted.
    """
    if size > LARGEST or 0.0 < size < 1.0 / LARGEST:
        raise ValueError(
            f"The values of {name} are too {'large' if size > 1.0 else 'small'} for "
            f"{type(estimator).__name__}: the largest is {size:.1e}, and it must be between "
            f"{1.0 / LARGEST:g} and {LARGEST:g}. Use other units."
        )


def check_weights(sample_weight, X):
    """Return the weights of the rows as floats: nonnegative, not all zero, and not too heavy.

    Without weights all rows have weight 1. `check_total` says which sum is too large, and there is
    a `UserWarning` if the sum is that of probabilities.
    """
    reject_masked(sample_weight=sample_weight)
    reject_dates(sample_weight=sample_weight)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():  # scikit-learn < 1.9 accepts weights that are all zero
        raise ValueError("Sample weights must contain at least one non-zero number.")
    check_total("The weights of the rows", weight)
    if sample_weight is not None and np.count_nonzero(weight) > 2 and np.isclose(weight.sum(), 1.0):
        warnings.warn(
            f"The weights of the {len(weight)} rows add up to 1: together the rows count as a "
            "single one, and the posterior is that of one row. If the weights only say how rows "
            "compare, multiply them by the number of rows.",
            UserWarning,
            stacklevel=2,
        )
    return weight


def warn_without_exposure(estimator, exposure, name):
    """Issue a `UserWarning` if an estimator was fitted with exposures, and a function got none.

    `name` is the function, which compares counts with predictions.
    """
    if exposure is None and getattr(estimator, "_has_exposure", False):
        warnings.warn(
            f"{type(estimator).__name__} was fitted with exposures, and {name} was given none: it "
            "compares y with predictions for an exposure of 1. Pass exposure.",
            UserWarning,
            stacklevel=3,
        )


def check_exposure(exposure, n_rows):
    """Return the exposures of the rows, positive and finite; ones if `exposure` is None."""
    if exposure is None:
        return np.ones(n_rows)
    reject_masked(exposure=exposure)
    reject_dates(exposure=exposure)
    if np.shape(exposure) != (n_rows,):
        raise ValueError(
            f"exposure must be one-dimensional, with a number for each of the {n_rows} rows; got "
            f"an array of shape {np.shape(exposure)}."
        )
    values = check_array(exposure, dtype=np.float64, ensure_2d=False, input_name="exposure")
    for i in (values.argmin(), values.argmax()):
        if not 1.0 / EXPOSED <= values[i] <= EXPOSED:
            raise ValueError(
                f"exposure must be positive, between {1.0 / EXPOSED:g} and {EXPOSED:g}; got "
                f"{values[i]:g} for row {i}."
            )
    return values


def check_total(what, values):
    """Raise `ValueError` for weights or counts with a sum above `HEAVIEST`.

    Their log-likelihood would be too large for double precision to resolve the posterior.
    """
    with np.errstate(over="ignore"):
        total = values.sum()
    if total > HEAVIEST:
        raise ValueError(
            f"{what} add up to {total:.1e}, and must add up to {HEAVIEST:g} at most: the posterior "
            "of more is narrower than double precision resolves. Divide them by a number."
        )


def drop_unweighted(X, y, weight):
    """Return (X, y, weight) without the rows of weight zero, or unchanged if X is memory-mapped."""
    keep = weight > 0.0
    if keep.all() or (isinstance(X, np.ndarray) and memmap.mapped(X) is not None):
        return X, y, weight
    return X[keep], y[keep], weight[keep]
