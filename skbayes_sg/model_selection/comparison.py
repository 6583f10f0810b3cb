"""Comparing models by their leave-one-out predictions, row by row."""

import warnings
from typing import Any

import numpy as np

from .._base.filters import recorded_warnings
from .._base.typing import ArrayLike, MatrixLike
from ..posterior import Summary
from .leave_one_out import LeaveOneOut, loo, standard_error

__all__ = ["compare"]


def compare(
    models: Any,
    X: MatrixLike | None = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> Summary:
    """Compare models by their leave-one-out predictions of the same rows.

    The standard error of a difference is computed from the differences of the rows. It is smaller
    than the standard errors of the models suggest: rows that are hard for one model are hard for
    the others.

    Parameters
    ----------
    models : dict or sequence of LeaveOneOut or estimators
        What `loo` returned, with the names of a dict; or fitted estimators, for which `loo` is
        called with the other arguments.
    X : {array-like, sparse matrix} of shape (n_rows, n_features), optional
        The rows, for estimators. Models of different columns are compared by their results.
    y : array-like of shape (n_rows,), optional
        Responses or labels of the rows.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    exposure : array-like of shape (n_rows,), optional
        The exposures of counts.

    Returns
    -------
    Summary
        A table, the best model first: ``elpd`` and ``se``, ``elpd_diff``, the difference to the
        best model, never positive, with its standard error ``diff_se``, ``p_loo``, and ``high_k``,
        the number of rows whose estimates cannot be trusted. A difference of less than 4, or of
        less than twice its standard error, says little [1]_.

    Raises
    ------
    ValueError
        If the models were not fitted to the same responses with the same weights.

    Warns
    -----
    UserWarning
        If densities are compared with probabilities.
    ParetoKWarning
        As `loo` does, with the name of the model.

    References
    ----------
    .. [1] T. Sivula, M. Magnusson, A. A. Matamoros and A. Vehtari (2025). Uncertainty in Bayesian
       leave-one-out cross-validation based model comparison. Bayesian Analysis.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression, BayesianRobustRegression
    >>> from skbayes_sg.model_selection import compare, loo
    >>> X, y = load_diabetes(return_X_y=True)
    >>> all_columns = BayesianLinearRegression(random_state=0).fit(X, y)
    >>> without_bmi = BayesianLinearRegression(random_state=0).fit(X[:, [0, 1, 3]], y)
    >>> table = compare(
    ...     {"all": loo(all_columns, X, y), "without bmi": loo(without_bmi, X[:, [0, 1, 3]], y)}
    ... )
    >>> table.labels, table["elpd_diff"].round(-1)
    (('all', 'without bmi'), array([  0., -100.]))
    """
    found = {
        name: _of(name, model, X, y, sample_weight, exposure)
        for name, model in _named(models).items()
    }
    _check_comparable(found)
    order = sorted(found, key=lambda name: -found[name].elpd)
    best, weight = found[order[0]], found[order[0]].sample_weight
    loos = [found[name] for name in order]
    off = [one.elpd_i - best.elpd_i for one in loos]
    columns = {
        "elpd": [one.elpd for one in loos],
        "se": [one.se for one in loos],
        "elpd_diff": [weight @ d for d in off],
        "diff_se": [standard_error(d, weight) for d in off],
        "p_loo": [one.p_loo for one in loos],
        "high_k": [one.n_high_k for one in loos],
    }
    heading = f"Leave-one-out predictions of {len(best.y)} rows, the best model first"
    return Summary(order, {name: np.array(values) for name, values in columns.items()}, heading)


def _named(models):
    """The models as a dict; those of a sequence are named by their positions and classes."""
    if not isinstance(models, dict):
        names = [getattr(model, "model", type(model).__name__) for model in models]
        models = {f"{k} {names[k]}": model for k, model in enumerate(models)}
    if len(models) < 2:
        raise ValueError(f"compare needs at least two models, got {len(models)}.")
    return models


def _of(name, model, X, y, *more):
    """The `LeaveOneOut` of a model or of a result; warnings begin with the name of the model."""
    if isinstance(model, LeaveOneOut):
        return model
    if X is None or y is None:
        raise ValueError(
            "compare needs X and y, the rows of the fits, for models that are estimators; or pass "
            "what loo returned for each of them."
        )
    with recorded_warnings() as told:
        found = loo(model, X, y, *more)
    for category, message in told:
        warnings.warn(f"{name}: {message}", category, stacklevel=4)
    return found


def _check_comparable(found):
    """`ValueError` if models have different rows; a warning for densities beside probabilities."""
    (first, one), *others = found.items()
    for name, other in others:
        if not np.array_equal(one.y, other.y):
            raise ValueError(
                f"The models {first!r} and {name!r} were not fitted to the same y: their "
                f"predictions ({len(one.y)} and {len(other.y)} rows) cannot be compared."
            )
        if not np.array_equal(one.sample_weight, other.sample_weight):
            raise ValueError(f"The rows of {first!r} and {name!r} have different weights.")
    if len({one.is_density for one in found.values()}) > 1:
        warnings.warn(
            "Densities of continuous responses are compared with probabilities of counts or "
            "classes: the difference depends on the unit of y.",
            UserWarning,
            stacklevel=3,
        )
