"""What an estimator of the gradient is: a rule for the terms of the rows of a batch."""

from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["Gradient"]


class Gradient(BaseEstimator):
    """An estimator of the gradient of the negative log-likelihood from a batch of rows.

    The estimate is ``exact(θ) + Σ_k c_k w_k J_kᵀ t_k``: rows k with coefficients c_k from a
    `skbayes_sg.subsampling.Subsampling`, sample weights w_k, terms t_k, and J_k = ∂η_k/∂θ, which is
    the row itself. A subclass says by attributes what `exact` is, and gives the kernel
    ``terms(facts, derivative, curvature, rows, start, stop, bracket, eta, extra_out, terms_out)``,
    so that the whole is unbiased: ``exact(θ) + Σ_i w_i J_iᵀ t_i`` over *all* rows must be the
    gradient. It holds for any centre: what is exact refers to the point that was reached, mode or
    not. The arguments of the kernel, for the rows ``rows[start:stop]`` with K predictors each, are

    ``facts`` : array of shape (N, n_facts), read-only
        What is known of each row: label, weight, predictors and terms at the centre; columns in
        `skbayes_sg.engine.layout`. Row k of the batch has ``facts[rows[start + k]]``.
    ``derivative``, ``curvature`` : functions
        Of the model: see `skbayes_sg.models.Model`.
    ``bracket`` : array of shape (n_groups, 3)
        Where each group of rows is in its table; used by `Tabulated` alone.
    ``eta``, ``extra_out`` : arrays of shape (n, K), n at least stop - start
        Predictors η_k at θ, and working memory; both are free to be overwritten.
    ``terms_out`` : array of shape (n, K), to be written
        The terms t_k.

    Attributes
    ----------
    uses_constant : bool
        `exact` holds G, the gradient of the likelihood at the centre.
    uses_linear : bool
        `exact` holds H (θ - centre), H the Hessian of the likelihood at the centre.
    uses_tables : bool
        Some rows are compared with themselves along an axis, and `exact` is tabulated there.
    """

    terms: Any = None
    uses_constant = False
    uses_linear = False
    uses_tables = False
