"""Exact scores of the draws of a fitted estimator, from all rows of the data."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._base.threads import one_blas_thread
from .._base.typing import ArrayLike, MatrixLike
from ..engine.scores import scores_of_all_rows
from ..estimators._base import BayesianGLM
from ..models.extras import scores_of_positive
from ..posterior import Posterior

__all__ = ["full_scores"]


def full_scores(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> Posterior:
    r"""Return the posterior of an estimator, with exact scores at its draws.

    The scores that a fit keeps are those that its sampler used: exact if it used all rows, and
    unbiased estimates of

    .. math::

        \nabla \log \pi(\theta) = \nabla \log p(\theta) - \sum_i w_i \nabla \ell_i(\theta)

    otherwise. This function computes the scores from all rows, by code that shares nothing with the
    estimates of the sampler
    (``tests/inspection/test_calibration.py::test_exact_scores_see_what_the_estimate_hides``). So
    `Posterior.check` and `Posterior.ksd` also detect errors of these estimates, and control
    variates gain most. Draws without scores get them as well: independent draws ("exact"), and
    combined draws of subposteriors, whose combination can then be checked. The cost is about two
    passes of matrix products, rows x draws x parameters, in memory of at most ``working_memory``.

    Parameters
    ----------
    estimator : BayesianLogisticRegression, BayesianLinearRegression or another regression
        A fitted estimator that has kept draws.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The data of the fit, after the other steps of a pipeline.
    y : array-like of shape (n_rows,)
        Labels or responses of the rows.
    sample_weight : array-like of shape (n_rows,), optional
        As given to `fit`.
    exposure : array-like of shape (n_rows,), optional
        Exposures of counts, as given to `fit`.

    Returns
    -------
    Posterior
        `posterior_` with `scores` of all rows, in double precision.

    Raises
    ------
    TypeError
        For an estimator of another kind.
    ValueError
        For data that cannot be those of the fit.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.inspection.full_scores import full_scores
    >>> X, y = make_classification(5000, 4, random_state=0)
    >>> model = BayesianLogisticRegression(batch_size=50, random_state=0).fit(X, y)
    >>> model.posterior_.scores_of
    '50 rows a draw, Taylor()'
    >>> exact = full_scores(model, X, y)
    >>> exact.scores_of, bool(exact.check())
    ('all rows', True)
    """
    target = target_of(estimator, X, y, sample_weight, exposure)
    posterior, n_extra = estimator.posterior_, target.model.n_extra
    thetas = unconstrained(posterior.sampled.reshape(-1, posterior.flat.shape[-1]), target)
    with one_blas_thread:
        scores = scores_of_all_rows(target, thetas)
    scores = scores_of_positive(thetas, scores, n_extra)
    return posterior.with_scores(scores.reshape(posterior.flat.shape))


def target_of(estimator, X, y, sample_weight=None, exposure=None):
    """The `Target` of a fitted regression that has draws, for the data of its fit."""
    if not isinstance(estimator, BayesianGLM):
        raise TypeError(
            "estimator must be a logistic, linear, robust or count regression, whose scores are "
            f"sums over rows, got {estimator!r}."
        )
    check_is_fitted(estimator)
    estimator.posterior_.require_draws()
    more = () if exposure is None else (exposure,)
    if more and "exposure" not in estimator._row_items:
        raise TypeError(f"{type(estimator).__name__} has no exposures: leave them out.")
    return estimator._posterior_of(X, y, sample_weight, *more)[1]


def unconstrained(thetas, target):
    """A copy of draws (n, n_parameters) with logarithms of the parameters that must be positive."""
    thetas, first = thetas.copy(), thetas.shape[1] - target.model.n_extra
    thetas[:, first:] = np.log(thetas[:, first:])
    return thetas
