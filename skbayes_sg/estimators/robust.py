"""Bayesian linear regression with heavy-tailed noise."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..kernels.layout import FACT_Y
from ..models import Robust
from ..priors import Gamma, PositivePrior
from ._parameters import with_shared_parameters
from ._regression import BayesianRegressor

__all__ = ["BayesianRobustRegression"]

UNRESOLVED = 12.0**-0.5  # standard deviation of rounding errors, in units of the resolution


def _resolution(y):
    """The step of which all differences of responses are multiples, as of integers.

    It is zero if there is none, or if there are fewer than three different responses.
    """
    gaps = np.diff(np.unique(y))
    if len(gaps) < 2:
        return 0.0
    step = gaps.min()
    multiples = gaps / step
    exact = np.abs(multiples - np.rint(multiples)) <= 1e-6 * multiples
    return float(step) if exact.all() else 0.0


class BayesianRobustRegression(BayesianRegressor):
    r"""Bayesian linear regression with Student's t noise: outliers have less influence.

    .. math::

        y_i = x_i \cdot \beta + b + \sigma\, t_i, \qquad t_i \sim t_\nu,

    with unknown coefficients :math:`\beta`, intercept :math:`b`, scale :math:`\sigma` and degrees
    of freedom :math:`\nu`: the data determine how heavy the tails of the noise are. For large
    :math:`\nu` the noise is normal. A weight of a row is a power of its likelihood.

    Parameters
    ----------
    prior : {"normal", "laplace", "student_t", "flat", "horseshoe"} or Prior, default="normal"
        Prior of each coefficient; coefficients are independent. The strings stand for the classes
        of `skbayes_sg.priors` with ``scale="auto"``, which is 2.5 standard deviations of y divided
        by the standard deviation of the column. If the scale is a prior itself, as in
        ``Normal(scale=HalfCauchy(1.0))``, it is learned: see `skbayes_sg.priors.Normal`.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_prior : str or Prior, default=None
        Prior of the intercept, the predictor where all columns are zero. None is "flat". A string
        such as "normal" has scale 1 in units of y, around zero, and does not adapt to the data:
        give a prior with a location and a scale of its own instead.
    {groups}
    noise_prior : str or PositivePrior, default="half_student_t"
        Prior of :math:`\sigma`, as in `BayesianLinearRegression`.
    df_prior : str or PositivePrior, default=None
        Prior of :math:`\nu`. None is ``Gamma(shape=2, rate=0.1)`` [2]_.
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
        All draws, in the variables "coef", "intercept", "noise_std" and "df", with methods for
        means, intervals and diagnostics.
    {means_and_deviations}
    {prior_scale}
    noise_std_ : float
        Posterior mean of the scale :math:`\sigma`. This is not the standard deviation of the noise,
        which is :math:`\sigma \sqrt{\nu / (\nu - 2)}`.
    df_ : float
        Posterior mean of :math:`\nu`.
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
    BayesianLinearRegression : Normal noise, without chains.
    sklearn.linear_model.HuberRegressor : A robust point estimate.

    Notes
    -----
    If all responses are multiples of a step s, as integers are, `fit` takes them as rounded, and
    the prior of :math:`\sigma` is cut off at the standard deviation of rounding errors,
    :math:`s/\sqrt{12}`: by a factor :math:`e^{-s^2/(24\sigma^2)}`. For other responses the cut is
    that of `BayesianLinearRegression`. If many responses are equal, the posterior has a mode in
    which they are fitted exactly and :math:`\sigma` is nearly zero. It is left out, with a
    `MultimodalPosteriorWarning`, and the cut is raised to 0.3 of the noise at the other modes.

    The standard deviation that `predict` returns is infinite if any draw of :math:`\nu` is at most
    2; intervals and quantiles always exist. If many rows contradict the others, the posterior may
    have more than one mode; the fit looks for all of them.

    References
    ----------
    .. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor (1989). Robust statistical modeling
       using the t distribution. Journal of the American Statistical Association 84, 881-896.
    .. [2] M. A. Juarez and M. F. J. Steel (2010). Model-based clustering of non-Gaussian panel data
       based on skew-t distributions. Journal of Business and Economic Statistics 28, 52-66.

    Examples
    --------
    One row in ten is an outlier:

    >>> import numpy as np
    >>> from skbayes_sg import BayesianLinearRegression, BayesianRobustRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> y = 3.0 * X[:, 0] + 0.5 * rng.normal(size=200)
    >>> y[::10] += 30.0
    >>> robust = BayesianRobustRegression(random_state=0).fit(X, y)
    >>> normal = BayesianLinearRegression(random_state=0).fit(X, y)
    >>> print(f"{robust.intercept_:.1f} against {normal.intercept_:.0f}")
    -0.1 against 3
    """

    _default_priors: ClassVar[dict] = BayesianRegressor._default_priors | {"df_prior": Gamma()}
    _has_one_peak = False  # the likelihood of a row is not log-concave in an effect
    _law = Robust()

    @with_shared_parameters
    def __init__(
        self,
        *,
        noise_prior: PositivePrior | str = "half_student_t",
        df_prior: PositivePrior | str | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.noise_prior = noise_prior
        self.df_prior = df_prior

    def _recipe(self):
        return Robust(), {"noise_std": "noise_prior", "df": "df_prior"}, 1.0

    def _units(self, target):
        units = super()._units(target)
        # Rows of weight zero do not count. One is in the stand-in for rows of which only moments
        # are known, in shards and updates, and its responses have no step.
        step = _resolution(target.data.facts[target.weight > 0.0, FACT_Y])
        return replace(units, floor=max(units.floor, UNRESOLVED * step))

    def _extras(self):
        return self.posterior_["noise_std"].ravel(), self.posterior_["df"].ravel()
