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
    numbers of persons, these are their exposures, in any unit: :math:`e^\eta` is the rate for one
    unit. Pass them to `fit` and to every method that predicts counts; without, the exposure is 1.

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
        All draws: variables "coef" and "intercept", means, intervals, diagnostics.
    {means_and_deviations}
    {prior_scale}
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
    sklearn.linear_model.PoissonRegressor : The posterior mode under a normal prior.

    Notes
    -----
    Predictions are of counts: `predict` returns means of :math:`t e^\eta` over the draws, and their
    standard deviation is that of a Poisson variable and of its mean together. Intervals and
    quantiles are whole numbers.

    Do not pass rates, as ``y = counts / exposure`` with ``sample_weight=exposure``, as you may to
    `sklearn.linear_model.PoissonRegressor`: the coefficients are the same, but predictions would be
    of counts for an exposure of 1.

    The prior of the intercept is one of the log rate for one unit of exposure. Choose a unit in
    which rates are not tiny, such as 1000 person-years, or ``intercept_prior="flat"``.

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
