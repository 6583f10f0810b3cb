"""Bayesian linear regression."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._base.validation import Parameters, is_real
from ..dynamics import Exact, Importance, Metropolis
from ..models import Linear, LinearKnownNoise
from ..priors import PositivePrior
from ._parameters import with_shared_parameters
from ._regression import BayesianRegressor

__all__ = ["BayesianLinearRegression"]


class BayesianLinearRegression(BayesianRegressor):
    r"""Bayesian linear regression: the posterior of coefficients and noise instead of one estimate.

    With weights :math:`w_i` (`sample_weight`), coefficients :math:`\beta`, an intercept :math:`b`
    and noise of standard deviation :math:`\sigma`, the law that is sampled is

    .. math::

        \pi(\beta, b, \sigma) \propto p(\beta)\, p(b)\, p(\sigma)
        \prod_i N(y_i \mid x_i \cdot \beta + b,\, \sigma^2)^{w_i} .

    With normal or flat priors of the coefficients no chain is needed. Given :math:`\sigma` the
    coefficients are normal, and the law of :math:`\log \sigma` with the coefficients integrated out
    is one-dimensional, so that draws are independent (`sampler_` is then "exact":
    ``tests/recipe/test_closed_form.py::test_draws_have_these_laws``). With other priors Hamiltonian
    Monte Carlo runs on a small table with as many rows as there are parameters, which has the same
    likelihood as the data (``tests/recipe/test_closed_form.py::test_few_rows_say_all``): its cost
    does not grow with the number of rows. Samplers with stochastic gradients run on request.

    If priors are given as strings, their scales adapt to the data, so that nothing has to be
    standardised. Prior objects with numbers as scales are in the units of the coefficients.

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
        Prior of :math:`\sigma`: "half_student_t", "half_cauchy" or "half_normal", each with the
        standard deviation of y as its scale, "inverse_gamma" (a prior of the variance), "flat", or
        an object such as ``HalfStudentT(df=3, scale=2.0)``. It has no effect if `noise` is a
        number.
    noise : "infer" or float, default="infer"
        "infer" makes the standard deviation :math:`\sigma` of the noise a parameter of the model. A
        number is the known value of :math:`\sigma`.
    sampler : str or object, default="auto"
        How draws are made: "auto", "exact", "importance", "sgld", "leimkuhler_matthews", "baoab",
        "sghmc", "sgnht", "mala", "hmc", or an object of `skbayes_sg.dynamics`; see
        `BayesianLogisticRegression` for all but "exact". "auto" is "exact" for normal and flat
        priors and up to 2000 parameters (4000 if that is predicted to take at most three minutes;
        under normal priors of mean 0, any number of columns with up to 3998 rows), else
        "importance" or, if its certificate fails, "hmc". If a parameter for gradients, rows or
        steps is given, and above these limits, "auto" chooses as for logistic regression.
    gradient : str or Gradient, default="auto"
        How a batch of rows becomes an estimate of the gradient. For this parameter and those that
        follow, see `BayesianLogisticRegression`.
    {subsampling_to_preconditioner}
    {draws_and_chains}
    n_warmup : "auto" or int, default="auto"
        Number of steps of each chain before the first draw. Independent draws need no warm-up.
    thin : "auto" or int, default="auto"
        Number of steps from one draw to the next. Independent draws are not thinned.
    {subposteriors_to_keep}

    Attributes
    ----------
    posterior_ : Posterior
        All draws, in the variables "coef", "intercept" and "noise_std", with methods for means,
        intervals and diagnostics.
    {means_and_deviations}
    {prior_scale}
    noise_std_ : float
        Posterior mean of :math:`\sigma`, or its known value.
    {group_attributes}
    {features}
    {choices_and_steps}
    {shards}
    diagnostics_ : dict of str to float
        ``min_ess`` and ``max_rhat``, the smallest effective sample size and the largest R-hat of
        the parameters, and measurements of the sampler: see `BayesianLogisticRegression`.
    seconds_ : dict of str to float
        Wall time of each part of the fit in seconds: see `BayesianLogisticRegression`.

    Raises
    ------
    {invalid_parameter}
    ValueError
        By `fit`, for data that cannot be used, for "exact" with other priors than normal and flat
        ones, and for flat priors under which the posterior is improper.
    {errors_and_warnings}

    See Also
    --------
    BayesianRobustRegression : Noise with heavy tails.
    sklearn.linear_model.BayesianRidge : One scale for all coefficients, chosen by the evidence.

    Notes
    -----
    :math:`\sigma` is sampled as :math:`\log \sigma`, with the Jacobian in its prior. If the
    coefficients can fit the data perfectly, there would be no posterior: therefore the prior is cut
    off where :math:`\sigma` is below the rounding error of y, which is :math:`10^{-9}` of its
    standard deviation.

    An error or Ctrl-C during `fit` leaves the estimator as it was before the call.

    References
    ----------
    .. [1] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin (2013).
       Bayesian Data Analysis, third edition, chapter 14.
    .. [2] A. Gelman (2006). Prior distributions for variance parameters in hierarchical models.
       Bayesian Analysis 1, 515-534. (Priors of the noise.)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianLinearRegression(random_state=0).fit(X[:400], y[:400])
    >>> model.sampler_
    'exact'
    >>> mean, std = model.predict(X[400:403], return_std=True)
    >>> mean.round(-1), std.round(-1)
    (array([190.,  90., 150.]), array([60., 60., 60.]))
    >>> lower, upper = model.predict_interval(X[400:])
    >>> print(((lower <= y[400:]) & (y[400:] <= upper)).sum(), "of", len(lower))
    40 of 42
    """

    _samplers: ClassVar[dict] = BayesianRegressor._samplers | {"exact": Exact}
    _law = Linear()
    _updating_samplers: ClassVar[tuple] = (
        ("auto", "exact", "importance", "hmc", "mala"),
        (Exact, Importance, Metropolis),
    )

    @with_shared_parameters
    def __init__(
        self,
        *,
        noise_prior: PositivePrior | str = "half_student_t",
        noise: float | str = "infer",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.noise_prior = noise_prior
        self.noise = noise

    @property
    def _sampler_kinds(self):
        return (*super()._sampler_kinds, Exact)

    def _recipe(self):
        sigma = self._known_noise()
        if sigma is None:
            return Linear(), {"noise_std": "noise_prior"}, 1.0
        return LinearKnownNoise(), {}, sigma**2

    def _attributes(self, posterior):
        known = self._known_noise()
        return super()._attributes(posterior) | ({} if known is None else {"noise_std_": known})

    def _known_noise(self):
        """The known standard deviation σ of the noise, or None if it is to be inferred."""
        value = self.noise
        if isinstance(value, str) and value == "infer":
            return None
        if not (is_real(value) and np.isfinite(value) and value > 0):
            Parameters(self).fail("noise", "'infer' or a positive finite number")
        return float(value)

    def _extras(self):
        check_is_fitted(self)
        if "noise_std" in self.posterior_:
            return (self.posterior_["noise_std"].ravel(),)
        return (np.full(self.posterior_.n_chains * self.posterior_.n_draws, self.noise_std_),)
