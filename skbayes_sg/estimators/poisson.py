"""Bayesian Poisson regression."""

from .._base.validation import check_total
from ..models import Poisson
from ..priors import Units
from ._base import BayesianGLM
from ._regression import BayesianRegressor

__all__ = ["BayesianPoissonRegressor"]


class BayesianPoissonRegressor(BayesianRegressor):
    r"""Bayesian Poisson regression with logarithmic link, for counts.

    .. math::

        y_i \sim \mathrm{Poisson}(e^{x_i \cdot \beta + b})^{w_i},

    with coefficients :math:`\beta`, an intercept :math:`b` and weights :math:`w_i`
    (`sample_weight`). For rates over different exposures pass ``y = counts / exposure`` with
    ``sample_weight=exposure``, as for `sklearn.linear_model.PoissonRegressor`.

    Parameters
    ----------
    prior : {"normal", "laplace", "student_t", "flat"} or Prior, default="normal"
        Prior of each coefficient, independent. The strings are the classes of `skbayes_sg.priors`
        with ``scale="auto"``: 2.5 for a standard deviation of the column.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_prior : str or Prior, default=None
        Prior of the intercept, as for `prior`. None is ``Normal(scale=10.0)``.
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
    Predictions are means of :math:`e^\eta` over the draws. Their standard deviation is that of
    counts, from a Poisson variable and from its mean. Intervals and quantiles are whole numbers.

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

    _default_priors = BayesianGLM._default_priors
    _law = Poisson()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _read(self, X, y, sample_weight, reset=True):
        X, y, weight = super()._read(X, y, sample_weight, reset)
        check_total("The counts in y", y * weight)
        return X, y, weight

    def _check_response(self, y):
        if y.min() < 0.0 or not (y > 0.0).any():
            raise ValueError(
                f"y must hold counts, none negative and not all zero, for {type(self).__name__}; "
                f"got {y.min():g} to {y.max():g}."
            )
        return super()._check_response(y)

    def _units(self, target):
        return Units(columns=target.column_spreads)
