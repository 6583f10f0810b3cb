"""Bayesian Poisson regression."""

from ..models import Poisson
from ._counts import BayesianCountRegressor

__all__ = ["BayesianPoissonRegressor"]


class BayesianPoissonRegressor(BayesianCountRegressor):
    r"""Bayesian Poisson regression with logarithmic link, for counts.

    .. math::

        y_i \sim \mathrm{Poisson}(t_i\, e^{x_i \cdot \beta + b})^{w_i},

    with coefficients :math:`\beta`, an intercept :math:`b`, exposures :math:`t_i` (`exposure`) and
    weights :math:`w_i` (`sample_weight`). If counts were taken over different times, areas or
    numbers of persons, these are their exposures, in any unit: :math:`e^\eta` with
    :math:`\eta = x \cdot \beta + b` is the rate for one unit of exposure. Pass exposures to `fit`
    and to every method that predicts counts; otherwise every exposure is 1.

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
        All draws, in the variables "coef" and "intercept", with methods for means, intervals and
        diagnostics.
    {means_and_deviations}
    {prior_scale}
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
    sklearn.linear_model.PoissonRegressor : The posterior mode under a normal prior.

    Notes
    -----
    Predictions are of counts. `predict` returns the posterior mean of :math:`t e^\eta`, and its
    standard deviation includes both the variation of a Poisson variable about its mean and the
    uncertainty of that mean. Intervals and quantiles are whole numbers.

    Do not pass rates as ``y = counts / exposure`` with ``sample_weight=exposure``, although
    `sklearn.linear_model.PoissonRegressor` allows it: the coefficients would be the same, but
    predictions would be of counts for an exposure of 1.

    The prior of the intercept is a prior of the log rate for one unit of exposure. Choose a unit in
    which rates are not tiny, such as 1000 person-years, or use ``intercept_prior="flat"``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0]))
    >>> model = BayesianPoissonRegressor(random_state=0).fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_, 1)
    (array([0.5, 0. ]), 1.0)
    >>> model.predict_quantiles([[1.0, 0.0]], [0.05, 0.5, 0.95])
    array([[1., 4., 8.]])
    """

    _law = Poisson()
