"""What a model is: three kernels over the predictors of a row."""

from typing import Any

__all__ = ["Model"]


class Model:
    """A likelihood of independent rows, seen through K = `n_linear` + `n_extra` predictors a row.

    Predictors are ``η_i = (x_i·B_1 + b_1, ..., x_i·B_K + b_K, extras)`` with the parameters
    ``θ = (B, b, extras)``. A subclass gives three kernels, all for the *negative* log-likelihood
    ℓ_i of one row. They work on the rows ``rows[start:stop]``; row k of an array of shape (n, K)
    belongs to ``rows[start + k]``, and ``facts[i]`` holds label and weight of row i in the columns
    ``FACT_Y`` and ``FACT_WEIGHT`` of `skbayes_sg.kernels.layout`.

    ``loss(facts, rows, start, stop, eta) -> float``
        Σ_i weight_i ℓ_i(η_i), constants in η left out.
    ``derivative(facts, rows, start, stop, eta, terms_out)``
        ``terms_out`` ← ∂ℓ_i/∂η_i, without the weight.
    ``curvature(facts, rows, start, stop, eta, u_out)``
        ``u_out`` ← (∂²ℓ_i/∂η_i²) u, without the weight, in place.

    The sum of the curvatures over the rows must be positive semi-definite near its minimum, which
    the recipe relies on; it is everywhere if ℓ_i is convex in η, and under a log-concave prior the
    posterior then has one mode. An extra is the logarithm of a positive parameter.

    Models of a response that is a number have their predictive law too, for draws of the first
    predictor, an array (n_rows, n_draws), and of the positive parameters, arrays (n_draws,):
    ``mean(eta, *extras)``, ``variance(...)``, ``cdf(y, ...)``, ``log_density(y, ...)`` and
    ``draw(rng, ...)``; `discrete` says whether it is one of whole numbers.

    Attributes
    ----------
    n_linear : int
        Number of predictors of the form x·B + b.
    n_extra : int
        Number of parameters that are themselves a predictor of every row.
    separable : bool
        Whether data may have no likeliest coefficients although their columns are independent.
    discrete : bool
        Whether responses are whole numbers.
    """

    n_linear = 1
    n_extra = 0
    separable = True
    discrete = False
    loss: Any = None
    derivative: Any = None
    curvature: Any = None

    @property
    def n_predictors(self):
        """K, the number of terms a row contributes to the gradient."""
        return self.n_linear + self.n_extra
