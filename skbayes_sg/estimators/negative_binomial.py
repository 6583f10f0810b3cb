"""Bayesian negative binomial regression."""

from typing import Any

from ..models import NegativeBinomial
from ..priors import PositivePrior
from ._counts import BayesianCountRegressor
from ._parameters import with_shared_parameters

__all__ = ["BayesianNegativeBinomialRegressor"]


class BayesianNegativeBinomialRegressor(BayesianCountRegressor):
    r"""Bayesian negative binomial regression with logarithmic link, for overdispersed counts.

    .. math::

        y_i \sim \mathrm{Poisson}(\mu_i g_i)^{w_i}, \qquad \mu_i = t_i\, e^{x_i \cdot \beta + b},
        \qquad g_i \sim \mathrm{Gamma}(1/\alpha, 1/\alpha),

    so that a count has the mean :math:`\mu_i` and the variance :math:`\mu_i + \alpha \mu_i^2` (the
    form NB2). Coefficients :math:`\beta`, intercept :math:`b` and dispersion :math:`\alpha` are
    unknown; exposures :math:`t_i` (`exposure`) and weights :math:`w_i` (`sample_weight`) are given.
    As :math:`\alpha` tends to zero this becomes Poisson regression: among rows with the same
    columns, rates have the relative standard deviation :math:`\sqrt\alpha`. Other software has the
    parameter :math:`\phi = 1/\alpha` instead, under names such as size, shape or theta.

    Parameters
    ----------
    prior : {"normal", "laplace", "student_t", "flat", "horseshoe"} or Prior, default="normal"
        Prior of each coefficient; coefficients are independent. The strings stand for the classes
        of `skbayes_sg.priors` with ``scale="auto"``, which is 2.5 divided by the standard deviation
        of the column. If the scale is a prior itself, as in ``Normal(scale=HalfCauchy(1.0))``, it
        is learned: see `skbayes_sg.priors.Normal`.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_prior : str or Prior, default=None
        Prior of the intercept, given in the same way as `prior`. None is ``Normal(scale=10.0)``, or
        a wider normal prior if there are columns far from zero, such as years: see
        `intercept_prior_`.
    {groups}
    dispersion_prior : str or PositivePrior, default="half_student_t"
        Prior of :math:`\alpha`: "half_student_t", "half_cauchy" or "half_normal", each with scale
        1, "inverse_gamma" (a prior of :math:`\alpha^2`), "flat", or an object such as
        ``Gamma(shape=2, rate=4)``.
    sampler : str or object, default="auto"
        How draws are made: "auto", "importance", "sgld", "leimkuhler_matthews", "baoab", "sghmc",
        "sgnht", "mala", "hmc", or an object of `skbayes_sg.dynamics`. For this parameter and those
        that follow, see `BayesianLogisticRegression`.
    gradient : str or Gradient, default="auto"
        How a batch of rows becomes an estimate of the gradient.
    {subsampling_to_preconditioner}
    {draws_and_chains}
    {warmup_and_thin}
    {subposteriors_to_keep}

    Attributes
    ----------
    posterior_ : Posterior
        All draws, in the variables "coef", "intercept" and "dispersion", with methods for means,
        intervals and diagnostics.
    {means_and_deviations}
    {prior_scale}
    dispersion_ : float
        Posterior mean of :math:`\alpha`.
    {group_attributes}
    {features}
    {choices_and_steps}
    {shards}
    diagnostics_, seconds_ : dict of str to float
        Measurements of the sampler, and the wall time of each part of the fit in seconds: see
        `BayesianLogisticRegression`.

    Raises
    ------
    {invalid_parameter}
    ValueError
        By `fit`, for data that cannot be used, and for flat priors under which the posterior is
        improper.
    {errors_and_warnings}

    See Also
    --------
    BayesianPoissonRegressor : Counts that vary no more than Poisson variables.
    skbayes_sg.metrics.posterior_predictive_check : Whether a model makes counts like those seen.

    Notes
    -----
    Predictions are of counts. `predict` returns the posterior mean of :math:`t e^\eta`, and its
    standard deviation is that of a count, not only that of its mean. Intervals and quantiles are
    whole numbers.

    The prior of :math:`\alpha` matters: the likelihood does not exclude :math:`\alpha = 0`, and if
    few counts are positive it hardly excludes a very large :math:`\alpha`. The default prior puts
    half of its probability below 0.76, and 5 % above 3.2. Under a flat prior there is no posterior
    if only one count is positive.

    The prior of the intercept is a prior of the log rate for one unit of exposure. Choose a unit in
    which rates are not tiny, such as 1000 person-years, or use ``intercept_prior="flat"``.

    References
    ----------
    .. [1] A. C. Cameron and P. K. Trivedi (2013). Regression Analysis of Count Data, second
       edition, chapter 3.

    Examples
    --------
    Rows with the same columns have rates that vary by a gamma factor of variance 0.5:

    >>> import numpy as np
    >>> from skbayes_sg import BayesianNegativeBinomialRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0]) * rng.gamma(2.0, 0.5, size=500))
    >>> model = BayesianNegativeBinomialRegressor(random_state=0).fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_), round(model.dispersion_, 1)
    (array([0.5, 0. ]), 1, 0.5)
    >>> model.predict_quantiles([[1.0, 0.0]], [0.05, 0.5, 0.95])
    array([[ 0.,  4., 12.]])
    """

    _law = NegativeBinomial()

    @with_shared_parameters
    def __init__(
        self, *, dispersion_prior: PositivePrior | str = "half_student_t", **shared: Any
    ) -> None:
        super().__init__(**shared)
        self.dispersion_prior = dispersion_prior

    def _recipe(self):
        return self._law, {"dispersion": "dispersion_prior"}, 1.0

    def _extras(self):
        return (self.posterior_["dispersion"].ravel(),)
