"""What is refused for group effects, and warnings about columns with groups."""

import warnings

import numpy as np
from scipy import sparse

from .._base.tables import is_dask
from .._base.validation import Parameters
from ..models import Logistic, NegativeBinomial

__all__ = ["check_levels", "check_parameters", "dense", "has_groups", "warn_of_indicators"]

# Constructor parameters of steps, which must be "auto" with group effects.
OF_STEPS = "sampler", "gradient", "subsampling", "batch_size", "step_size", "preconditioner"
MOST_SUMS = 10_000_000  # most sums of columns by level that are looked at
LOOKED_AT = 1000  # rows that are compared first, to tell a group column from the response


def has_groups(estimator):
    """Whether an estimator has group effects; an error for parameters that need them."""
    if estimator.group_effects is not None:
        return True
    for name in ("group_scale", "group_slopes"):
        if getattr(estimator, name) is not None:
            Parameters(estimator).fail(name, "None where group_effects is None")
    return False


def check_parameters(estimator, X, rows):
    """Raise an error for data and parameters that do not go with group effects."""
    owner = type(estimator).__name__
    if hasattr(estimator, "n_predictors"):
        n = Parameters(estimator).integer("n_predictors", 1)
        if n > 1:
            Parameters(estimator).fail("group_effects", f"None with n_predictors={n}")
    if is_dask(X, *rows.values()):
        raise ValueError(f"{owner}: group_effects is not for data on a Dask cluster.")
    for name in OF_STEPS:
        value = getattr(estimator, name)
        if not (isinstance(value, str) and value == "auto"):
            raise ValueError(
                f"{owner}: {name}={value!r} does not go with group_effects, which has samplers of "
                f"its own. Leave {name} to 'auto'."
            )
    estimator._refuse_learned_scales("group_effects", "Leave group_effects out")
    if estimator.n_subposteriors != 1:
        raise ValueError(f"{owner}: group_effects does not go with n_subposteriors > 1.")
    if Parameters(estimator).flag("warm_start"):
        raise ValueError(
            f"{owner}: group_effects does not go with warm_start=True, because its samplers do not "
            "look for a mode of all effects."
        )


def check_levels(levels, codes, y, model, owner):
    """Errors and warnings for a group column with one level, one row a level, or equal to y."""
    for own, code in zip(levels, codes.T, strict=True):
        L, which = len(own.known), f"{owner}: the group column {own.name!r}"
        if L == 1:
            raise ValueError(
                f"{which} has a single level, {own.known.tolist()[0]!r}, whose effect is that of "
                "the intercept. Leave the column out."
            )
        if _is_response(code, y, L):
            raise ValueError(
                f"{which} is the response under other names: all rows of a level have the same y, "
                "and no two levels have the same. Leave the column out."
            )
        if L == len(code):
            _check_levels_of_one_row(which, model)


def _is_response(code, y, n_levels):
    """Whether levels and values of y determine each other, and some level has several rows.

    Some rows are compared first, since all may be many.
    """
    some = slice(0, LOOKED_AT)
    return n_levels < len(y) and _is_one_to_one(code[some], y[some]) and _is_one_to_one(code, y)


def _is_one_to_one(code, y):
    """Whether each level has one value of y, and each value one level."""
    levels, code = np.unique(code, return_inverse=True)
    values, own = np.unique(y, return_inverse=True)
    partner = np.empty(len(levels), dtype=int)
    partner[code] = own
    return len(levels) == len(values) and bool((partner[code] == own).all())


def _check_levels_of_one_row(which, model):
    """`ValueError` or a warning for a column each level of which has a single row."""
    said = f"{which} has a level of its own in every row"
    if model.location_scale:
        raise ValueError(
            f"{said}: its effects cannot be told from the noise. Leave the column out; or, if the "
            "variances of the rows are known, use BayesianLinearRegression(noise=1.0) with their "
            "inverses as sample_weight."
        )
    if isinstance(model, (Logistic, NegativeBinomial)):
        warnings.warn(
            f"{said}: the prior alone determines the scale of its effects.",
            UserWarning,
            stacklevel=4,
        )


def warn_of_indicators(levels, codes, X):
    """`UserWarning` if X has the indicators of the levels of a group column, all or all but one.

    The prior alone tells effects and such coefficients apart, and chains mix slowly.
    """
    n = len(codes)
    for own, code in zip(levels, codes.T, strict=True):
        L = len(own.known)
        if L * X.shape[1] > MOST_SUMS or X.shape[1] < L - 1:
            continue
        by_level = sparse.csr_array((np.ones(n), (code, np.arange(n))), shape=(L, n))
        sums, squares = (
            dense(by_level @ values)
            for values in (X, X.multiply(X) if sparse.issparse(X) else X * X)
        )
        size = np.bincount(code, minlength=L)[:, None]
        is_one = (sums == size) & (squares == size)
        found = is_one.sum(axis=0) == 1
        found &= (squares != 0.0).sum(axis=0) == 1
        if found.sum() >= L - 1:
            warnings.warn(
                f"{found.sum()} columns are the indicators of levels of {own.name!r}, which "
                "group_effects gives effects already: only the priors tell the two apart. Leave "
                "these columns out.",
                UserWarning,
                stacklevel=4,
            )


def dense(values):
    """An array with these values, which may be sparse."""
    return values.toarray() if sparse.issparse(values) else values
