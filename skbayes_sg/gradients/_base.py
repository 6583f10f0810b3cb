"""What an estimator of the gradient is: a rule for the terms of the rows of a batch."""

from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["Gradient"]


class Gradient(BaseEstimator):
    """An estimator of the gradient of the negative log-likelihood from a batch of rows.

    The estimate is ``exact(θ) + Σ_k c_k J_kᵀ t_k``: rows k with coefficients c_k from a
    `Subsampling`, terms t_k, and J_k = ∂η_k/∂θ, which is the row itself. A subclass gives the
    kernel ``terms(facts, derivative, curvature, rows, start, stop, bracket, eta, extra_out,
    terms_out)``, which makes t_k from the predictors η_k (`eta` and `extra_out` are free to be
    overwritten), and says what `exact` is, so that the whole is unbiased. It is for any centre:
    what is exact refers to the point that was reached, mode or not.

    Attributes
    ----------
    uses_constant : bool
        `exact` holds the gradient at the centre.
    uses_linear : bool
        `exact` holds the Hessian at the centre times the distance from it.
    uses_tables : bool
        Some rows are compared with themselves along an axis, and `exact` is tabulated there.
    """

    terms: Any = None
    uses_constant = False
    uses_linear = False
    uses_tables = False
