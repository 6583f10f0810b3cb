"""What a model is: three kernels over the predictors of a row."""

from typing import Any

__all__ = ["Model"]


class Model:
    """A likelihood of independent rows, seen through K = `n_linear` + `n_extra` predictors a row.

    A subclass gives three kernels (signatures in `skbayes_sg.engine.layout`), all for
    the *negative* log-likelihood ℓ_i of one row:

    ``loss``
        Σ_i weight_i ℓ_i(η_i) over a list of rows.
    ``derivative``
        ∂ℓ_i/∂η_i, without the weight.
    ``curvature``
        u ← (∂²ℓ_i/∂η_i²) u, in place; it must be positive semi-definite.

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
