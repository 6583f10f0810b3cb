"""What an estimator of the gradient is: a rule for the terms of the rows of a batch."""

from sklearn.base import BaseEstimator

__all__ = ["Gradient"]


class Gradient(BaseEstimator):
    """An estimator of the gradient of the negative log-likelihood from a batch of rows.

    The estimate is ``constant + linear (θ - centre) + Σ_k c_k J_kᵀ t_k``: a batch (rows k with
    coefficients c_k from a `Subsampling`), terms t_k, and J_k = ∂η_k/∂θ, which is the row itself.
    A subclass gives the kernel that adds the last sum, and says what comes before it. It holds for
    any centre: the constant is the exact gradient at the point that was reached, mode or not.

    Attributes
    ----------
    uses_constant : bool
        The exact gradient at the centre is added to every estimate.
    uses_linear : bool
        The exact Hessian at the centre, times the distance, is added as well.
    """

    estimate = None
    uses_constant = False
    uses_linear = False
