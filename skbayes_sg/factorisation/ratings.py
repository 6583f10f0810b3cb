"""Reading of ratings: checks of X and y, and what is learnt from them before sampling."""

import warnings

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from .._base.categories import (
    encode_table,
    first_duplicate,
    has_another_type,
    learn_table,
    values_of,
)
from .._base.tables import decoded, reject_dates
from .._base.validation import reject_masked

__all__ = ["check_categories", "check_ratings", "encode_rows", "learn_ratings", "reject_duplicates"]


def _reject_missing(X):
    """Raise `ValueError` for missing categories, which conversion to an array would hide."""
    missing = X.isna().to_numpy() if hasattr(X, "isna") else None
    if missing is None and getattr(X, "dtype", np.dtype(float)).kind == "O":
        missing = np.equal(X, None)
    if missing is not None and missing.any():
        raise ValueError(
            f"Input X contains NaN: a category is missing in row {np.argwhere(missing)[0][0]}."
        )


def _joined(X):
    """Convert a DataFrame of dates and other types to objects; return any other X as it is.

    NumPy has no common type for dates and numbers, so a table of both could not become an array.
    """
    if not (hasattr(X, "dtypes") and hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2):
        return X
    kinds = list(X.dtypes)
    of_dates = [getattr(kind, "kind", "O") in "mM" for kind in kinds]
    return X.astype(object) if any(of_dates) and any(kind != kinds[0] for kind in kinds) else X


def check_categories(estimator, X):
    """Return X as an array of categories of any type, for predictions of a fitted estimator."""
    reject_masked(X=X)
    X = decoded(X)
    _reject_missing(X)
    X = validate_data(estimator, _joined(X), dtype=None, reset=False)
    _reject_missing(X)
    return X


def check_ratings(estimator, X, y):
    """Return X as an array of categories and y as an array of finite ratings, for `fit`."""
    if y is None:
        validate_data(estimator, X, y)  # raises scikit-learn's message
    reject_masked(X=X, y=y)
    reject_dates(y=y)
    X, y = decoded(X), decoded(y)
    _reject_missing(X)
    X, y = validate_data(estimator, _joined(X), y, dtype=None, y_numeric=True)
    assert_all_finite(y, estimator_name=type(estimator).__name__, input_name="y")
    _reject_missing(X)
    return X, np.asarray(y, dtype=np.float64)


def learn_ratings(X, y, owner):
    """Return the fitted attributes that depend on the data alone, and the codes of the ratings."""
    categories, offsets, codes = learn_table(X)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, scale = float(y.mean()), float(y.std())
    if not np.isfinite(centre) or not np.isfinite(scale):
        raise ValueError(f"The scale of y is too large for {owner}: its variance overflows.")
    data = {
        "categories_": categories,
        "offsets_": offsets,
        "centre_": centre,
        "scale_": scale if y.min() < y.max() and scale > 1e-300 else 1.0,
        "rating_range_": np.array([y.min(), y.max()]),
    }
    return data, codes


def reject_duplicates(codes, offsets, X, owner):
    """Raise a `ValueError` that names two rows with the same categories, if there are any."""
    rows = first_duplicate(codes, offsets)
    if rows is not None:
        raise ValueError(
            f"{owner} got several ratings of the same categories: rows {rows[0]} and {rows[1]} of "
            f"X are both {X[rows[0]].tolist()}. Average them, or use duplicates='keep' to treat "
            "them as repeated measurements."
        )


def _of_another_type(X, codes, categories):
    """Return the end of a message on new categories of another type than those of the fit.

    They are numbers where all categories of the fit are strings, or conversely; otherwise the
    result is empty.
    """
    for c, known in enumerate(categories):
        new = X[codes[:, c] < 0, c]
        if len(new) and has_another_type(new, known):
            return (
                f"; in column {c} they are like {values_of(new)[0]!r}, and those of the fit like "
                f"{values_of(known)[0]!r}: convert them to the type that they had in the fit"
            )
    return ""


def encode_rows(X, fitted, cold):
    """Return the rows of F for X: -1 for new categories, for which it warns or raises an error.

    Parameters
    ----------
    X : ndarray of shape (n_rows, C)
    fitted : dict
        With "categories_" and "offsets_", as `learn_ratings` returns them.
    cold : {"prior", "raise"}

    Returns
    -------
    ndarray of int32, shape (n_rows, C)
    """
    codes = encode_table(X, fitted["categories_"], fitted["offsets_"])
    is_new = codes < 0
    if is_new.any():
        counts = ", ".join(map(str, is_new.sum(axis=0)))
        message = (
            f"{is_new.any(axis=1).sum()} of {len(X)} rows have categories that were not in the "
            f"data (by column: {counts})" + _of_another_type(X, codes, fitted["categories_"])
        )
        if cold == "raise":
            raise ValueError(f"{message}. Use cold='prior' to predict them from the prior.")
        message += "; their ratings are predicted from the prior."
        warnings.warn(message, UserWarning, stacklevel=5)  # the line that calls predict
    return codes
