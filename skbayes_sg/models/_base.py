"""The base class of models: a model gives loss, derivative and curvature of rows as kernels."""

from typing import Any

from ..kernels.layout import BLOCK

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

    A model may also define ``add_losses(facts, base, moved, scratch, values_out)``, a
    vectorised kernel for the losses of n rows at many draws:
    ``values_out[j] += Σ_k weight_k ℓ_k(base[:, k] + moved[:, j, k])``. All of its arrays have the
    rows on the last axis, which is contiguous, also `facts`; `scratch` has the shape (K, n) of
    `base`, and the extras are the same in all rows. Other models use the slower
    `skbayes_sg.kernels.many_draws.add_losses`. Likewise ``replace_by_derivatives(facts, base,
    moved, scratch)`` overwrites ``moved[c, j, k]`` by weight_k ∂ℓ_k/∂η_c; `base`, `moved` and
    `scratch` are in single or double precision, and derivatives that are smaller than
    `skbayes_sg.kernels.many_draws.TINY` become zero.

    A model with one predictor besides the extras may define
    ``add_shifted(facts, starts, eta, extras, shifts, losses_out)``, a kernel for the
    losses of rows whose predictors are shifted together (see `SHIFTED` of
    `skbayes_sg.kernels.layout`). By it the effect of a level is integrated out.

    The recipe relies on curvatures whose sum over the rows is positive semi-definite near the
    minimum of the sum of ℓ_i. If ℓ_i is convex in η the sum is convex everywhere, and under a
    log-concave prior the posterior has one mode: `convex` says so. An extra is the logarithm of a
    positive parameter.

    Models for a numeric response also define the distribution of y given the first predictor and
    the positive parameters, ``mean(eta, *extras)``, ``variance(eta, *extras)``,
    ``cdf(y, eta, *extras)``, ``log_density(y, eta, *extras)`` and ``draw(rng, eta, *extras)``. Here
    `eta` holds draws of the first predictor, an array (n_rows, n_draws), and each of the extras is
    an array (n_draws,) of draws of a positive parameter, not of its logarithm.

    Their quantiles need one thing more. A continuous response is ``y = r(η + e)`` with an
    increasing function r and noise e that does not depend on η: ``response(x)`` is r, and the first
    of the extras is a scale of e. A count has a kernel ``count_cdf(k, mean, dispersion) -> P(Y <=
    k)`` for whole numbers k >= 0, the mean e^η of one draw, and its extra as the dispersion, which
    is 0 for models without extras. The law of counts must be Poisson or negative binomial, since
    quantiles use its ratios P(Y = k)/P(Y = k - 1).

    Attributes
    ----------
    n_linear : int
        Number of predictors of the form x·B + b.
    n_extra : int
        Number of parameters that are themselves a predictor of every row; they come last in θ.
    separable : bool
        Whether the maximum likelihood estimate may not exist although the columns of X are linearly
        independent, as in logistic regression with separated classes.
    more_labels : tuple of float
        Default values of the labels of a row beyond y, such as the exposure of a count. These
        labels are the last columns of the facts.
    discrete : bool
        Whether responses are counts, which are whole numbers.
    normal : bool
        Whether y is normal around the first predictor, so that ℓ_i is quadratic in it.
    location_scale : bool
        Whether y is the first predictor plus noise whose unknown scale is the first of the extras,
        so that adding a number to all responses moves the intercept alone.
    heavy_tailed : bool
        Whether rows may be outliers: ℓ_i grows so slowly that a posterior may have several modes,
        at each of which other rows are given up.
    has_edge : bool
        Whether the densities of the positive parameters need not vanish at zero.
    convex : bool
        Whether ℓ_i is known to be convex in η_i. Where it is not, fits look for several modes.
    convex_in_first : bool
        Whether ℓ_i is known to be convex in the first predictor, whatever the extras are.
    sure_start : bool
        Whether searches for a mode may begin in the middle of the prior, wherever that is.
    n_prior_starts : int
        From how many draws of the prior, and their mirror images, fits look for several modes.
    cost : float
        Time for the terms of a row, as a multiple of that in logistic regression. It is used to
        predict how long runs take.
    cost_of_all : float
        The same for gradients of all rows in order: `cost`, unless the model has a kernel of sums.
    cost_of_many : float
        The same for one of many draws that are evaluated together, so that BLAS multiplies them all
        at once.
    overhead : float
        Time in nanoseconds that a call of the kernels takes for any number of rows.
    block : int
        Number of rows of a call of the kernels, at most.
    """

    n_linear = 1
    n_extra = 0
    separable = True
    more_labels: tuple = ()
    discrete = False
    normal = False
    location_scale = False
    heavy_tailed = False
    has_edge = False
    convex = False
    convex_in_first = False
    sure_start = True
    n_prior_starts = 2
    cost = 1.0
    cost_of_many = 0.2
    overhead = 0.0
    block = BLOCK
    loss: Any = None
    add_losses: Any = None
    derivative: Any = None
    replace_by_derivatives: Any = None
    curvature: Any = None
    count_cdf: Any = None
    sums: Any = None
    add_shifted: Any = None
    loss_and_gradient: Any = None
    loss_hessian: Any = None

    @staticmethod
    def response(x):
        """The increasing function r of a continuous response y = r(η + e): the identity."""
        return x

    def check_derivatives(self, target, theta):
        """Raise an error if derivatives are wrong at θ, as those of a user's function may be.

        Parameters
        ----------
        target : skbayes_sg.engine.target.Target
        theta : array of shape (n_parameters,)
        """

    @property
    def cost_of_all(self):
        """Cost of the terms of a row where all rows are read in order: see the attributes."""
        return self.cost

    @property
    def n_predictors(self):
        """K, the number of terms a row contributes to the gradient."""
        return self.n_linear + self.n_extra
