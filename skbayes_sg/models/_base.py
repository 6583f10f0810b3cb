"""What a model is: three kernels over the predictors of a row."""

from typing import Any

__all__ = ["Model"]


class Model:
    """A likelihood of independent rows, seen through K = `n_linear` + `n_extra` predictors a row.

    Predictors are ``η_i = (x_i·B_1 + b_1, ..., x_i·B_K + b_K, extras)`` with the parameters
    ``θ = (B, b, extras)``. A subclass gives three kernels, all for the *negative* log-likelihood
    ℓ_i of one row. They work on the rows ``rows[start:stop]``; row k of an array of shape (n, K)
    belongs to ``rows[start + k]``, and ``facts[i]`` holds label and weight of row i in the columns
    ``FACT_Y`` and ``FACT_WEIGHT`` of `skbayes_sg.engine.layout`.

    ``loss(facts, rows, start, stop, eta) -> float``
        Σ_i weight_i ℓ_i(η_i), constants in η left out.
    ``derivative(facts, rows, start, stop, eta, terms_out)``
        ``terms_out`` ← ∂ℓ_i/∂η_i, without the weight.
    ``curvature(facts, rows, start, stop, eta, u_out)``
        ``u_out`` ← (∂²ℓ_i/∂η_i²) u, without the weight, in place.

    The curvature must be positive semi-definite: ℓ_i is convex in η. Under a log-concave prior the
    posterior is then log-concave, with one mode, which the recipe relies on.

    Attributes
    ----------
    n_linear : int
        Number of predictors of the form x·B + b.
    n_extra : int
        Number of parameters that are themselves a predictor of every row.
    """

    n_linear = 1
    n_extra = 0
    loss: Any = None
    derivative: Any = None
    curvature: Any = None

    @property
    def n_predictors(self):
        """K, the number of terms a row contributes to the gradient."""
        return self.n_linear + self.n_extra
