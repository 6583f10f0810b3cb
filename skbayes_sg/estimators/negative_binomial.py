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
    As :math:`\alpha` tends to zero this is Poisson regression: :math:`\sqrt\alpha` is the relative
    standard deviation of the rates of rows with the same columns. Other software has
    :math:`\phi = 1/\alpha`, under names such as size, shape or theta.

    Parameters
    ----------
    prior : {"normal", "laplace", "student_t", "flat", "horseshoe"} or Prior, default="normal"
        Prior of each coefficient, independent. The strings are the classes of `skbayes_sg.priors`
        with ``scale="auto"``: 2.5 for a standard deviation of the column. A scale that is a
        prior itself, as in ``Normal(scale=HalfCauchy(1.0))``, is learned: see
        `skbayes_sg.priors.Normal`.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_prior : str or Prior, default=None
        Prior of the intercept, as for `prior`. None is ``Normal(scale=10.0)``, and wider beside
        columns far from zero, such as years, of which the predictor at zero says little: see
        `intercept_prior_`.
    {groups}
    dispersion_prior : str or PositivePrior, default="half_student_t"
        Prior of :math:`\alpha`: "half_student_t", "half_cauchy", "half_normal", each with scale 1,
        "inverse_gamma" (of :math:`\alpha^2`), "flat", or an object such as ``Gamma(shape=2,
        rate=4)``.
    sampler : str or object, default="auto"
        How draws are made; see `BayesianLogisticRegression`, here and for what follows: "auto",
        "importance", "sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht", "mala", "hmc", or an
        object of `skbayes_sg.dynamics`.
    gradient : str or Gradient, default="auto"
        How a batch of rows becomes a gradient.
    {subsampling_to_preconditioner}
    {draws_and_chains}
    {warmup_and_thin}
    {subposteriors_to_keep}

    Attributes
    ----------
    posterior_ : Posterior
        All draws: variables "coef", "intercept" and "dispersion", means, intervals, diagnostics.
    {means_and_deviations}
    {prior_scale}
    dispersion_ : float
        Posterior mean of :math:`\alpha`.
    {group_attributes}
    {features}
    {choices_and_steps}
    {shards}
    diagnostics_, seconds_ : dict of str to float
        As for `BayesianLogisticRegression`.

    Raises
    ------
    {invalid_parameter}
    ValueError
        By `fit`, for data that cannot be used, and for flat priors without a posterior.
    {errors_and_warnings}

    See Also
    --------
    BayesianPoissonRegressor : No variation beyond that of Poisson variables.
    skbayes_sg.metrics.posterior_predictive_check : Which of the two makes counts like those seen.

    Notes
    -----
    Predictions are of counts: `predict` returns means of :math:`t e^\eta` over the draws, and their
    standard deviation is that of counts. Intervals and quantiles are whole numbers.

    The likelihood does not exclude :math:`\alpha = 0`, and hardly a very large :math:`\alpha` if
    few counts are positive: the prior matters. With the default half of its probability lies below
    0.76, and 5 % above 3.2. Under a flat prior there is no posterior if only one count is positive.

    The prior of the intercept is one of the log rate for one unit of exposure. Choose a unit in
    which rates are not tiny, such as 1000 person-years, or ``intercept_prior="flat"``.

    References
    ----------
    .. [1] A. C. Cameron and P. K. Trivedi (2013). Regression Analysis of Count Data, second
       edition, chapter 3.

    Examples
    --------
    The rates of rows with the same columns vary, by a gamma law of variance 0.5:

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
