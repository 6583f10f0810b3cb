"""Exact scores of a fitted estimator's draws, from all rows of the data."""

import numpy as np
import sklearn

from ..engine.layout import FACT_WEIGHT
from ..engine.target import one_blas_thread
from ..priors import prior_gradient
from .gradient_noise import _target

__all__ = ["full_scores"]

MOST_ROWS = 4096


def full_scores(estimator, X, y, *, sample_weight=None):
    r"""The posterior of an estimator, with exact scores at its draws.

    The scores that a fit keeps are what its sampler has used: exact where it used all rows, and
    unbiased estimates of

    .. math::

        \nabla \log \pi(\theta) = \nabla \log p(\theta) - \sum_i w_i \nabla \ell_i(\theta)

    otherwise. Here they are computed from all rows, by code that shares nothing with the sampler's
    estimate: with them `Posterior.check` and `Posterior.ksd` also see an error of the estimate
    itself, and control variates gain most. Costs about two passes of matrix products, rows x draws
    x parameters, in memory of at most ``working_memory``.

    Parameters
    ----------
    estimator : BayesianLogisticRegression
        Fitted.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The data that it was fitted to, as the estimator saw them (after the pipeline's other
        steps).
    y : array-like of shape (n_rows,)
        Their labels.
    sample_weight : array-like of shape (n_rows,), optional
        As given to `fit`.

    Returns
    -------
    Posterior
        `posterior_` with `scores` of all rows, in double precision.

    Raises
    ------
    TypeError
        For an estimator of another kind.
    ValueError
        For data that do not fit.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.diagnostics.full_scores import full_scores
    >>> X, y = make_classification(2000, 4, random_state=0)
    >>> model = BayesianLogisticRegression(batch_size=50, random_state=0).fit(X, y)
    >>> model.posterior_.scores_of
    '50 rows a draw, Taylor()'
    >>> exact = full_scores(model, X, y)
    >>> exact.scores_of, bool(exact.check())
    ('all rows', True)
    """
    target = _target(estimator, X, y, sample_weight)
    posterior = estimator.posterior_
    flat = posterior.flat.reshape(-1, posterior.flat.shape[-1])
    with one_blas_thread:
        scores = -scores_of_rows(target, flat)
    slope = np.empty(flat.shape[1])
    for theta, score in zip(flat, scores, strict=True):
        slope[:] = 0.0
        prior_gradient(target.prior, theta, slope)
        score -= slope
    return posterior.with_scores(scores.reshape(posterior.flat.shape))


def scores_of_rows(target, thetas):
    """Σ weight_i ∇ℓ_i at many θ, (n, D)."""
    K, n = target.model.n_predictors, len(thetas)
    room = sklearn.get_config()["working_memory"] * 2**20 / (4 * 8 * n * K)
    size, total = int(np.clip(room, 1, MOST_ROWS)), np.zeros_like(thetas)
    for first in range(0, target.n_rows, size):
        rows = slice(first, min(first + size, target.n_rows))
        A, facts = target.design(rows), target.data.facts[rows]
        eta = np.ascontiguousarray(np.moveaxis(target.along(A, thetas.T), 2, 0))
        for k in range(n):
            eta[k] = facts[:, FACT_WEIGHT, None] * target.derivative(facts, eta[k])
        for J, where, terms in zip(
            target.factors(A), target.positions(), np.moveaxis(eta, 2, 0), strict=True
        ):
            total[:, where] += (J.T @ terms.T).T
    return total
