"""Bayesian linear regression with heavy-tailed noise."""

from typing import ClassVar

from ..models import Robust
from ..priors import Gamma
from ._regression import BayesianRegressor

__all__ = ["BayesianRobustRegression"]


class BayesianRobustRegression(BayesianRegressor):
    r"""Bayesian linear regression with Student's t noise: rows far off pull less.

    .. math::

        y_i = x_i \cdot \beta + b + \sigma\, t_i, \qquad t_i \sim t_\nu,

    with coefficients :math:`\beta`, intercept :math:`b`, scale :math:`\sigma` and degrees of
    freedom :math:`\nu` all unknown: how heavy the tails are is learned from the data. Large
    :math:`\nu` is normal noise. Weights of rows are powers of their likelihoods.

    Parameters
    ----------
    prior : {"normal", "laplace", "student_t", "flat"} or Prior, default="normal"
        Prior of each coefficient, independent. The strings are the classes of `skbayes_sg.priors`
        with ``scale="auto"``: 2.5 standard deviations of y for a standard deviation of the column.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_prior : str or Prior, default=None
        Prior of the intercept, as for `prior`. None is "flat".
    noise_prior : str or PositivePrior, default="half_student_t"
        Prior of :math:`\sigma`, as in `BayesianLinearRegression`.
    df_prior : str or PositivePrior, default=None
        Prior of :math:`\nu`. None is ``Gamma(shape=2, rate=0.1)`` [2]_.
    sampler : str or object, default="auto"
        How the state moves; see `BayesianLogisticRegression`, here and for what follows: "auto",
        "sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht", "mala", "hmc", or an object of
        `skbayes_sg.dynamics`.
    gradient : str or Gradient, default="auto"
        How a batch of rows becomes a gradient.
    subsampling : str or Subsampling, default="auto"
        Which rows a step looks at.
    batch_size : "auto", int or float, default="auto"
        Rows a step: a number, or a share of the rows in (0, 1].
    step_size : "auto", float or Schedule, default="auto"
        The step size h, dimensionless under a preconditioner: 1 is a step of one posterior standard
        deviation.
    preconditioner : {"auto", "hessian", "diagonal"} or None, default="auto"
        The inverse Hessian at the centre, the inverse of its diagonal, or the identity.
    n_draws : int, default=1000
        Draws kept of each chain.
    n_chains : int, default=4
        Independent chains.
    n_warmup : "auto" or int, default="auto"
        Steps of each chain before the first draw.
    thin : "auto" or int, default="auto"
        Steps from one draw to the next.
    n_subposteriors : int, default=1
        Split the rows into so many shards of equal weight, at random, sample each with its share of
        the prior, :math:`p^{1/S}`, on a worker of its own, and combine the draws. For more
        processors than one, or rows that lie on several machines; approximate. A callback cannot
        end such a fit before all shards are done.
    combine : str or Combiner, default="consensus"
        How draws of subposteriors are combined: "consensus", "parametric", "nonparametric",
        "semiparametric", "weierstrass", or an object of `skbayes_sg.combine`; without effect if
        there is one subposterior. It happens where parameters are unconstrained. "consensus" and
        "parametric" are right where the shards are nearly Gaussian, which is checked.
    random_state : int, RandomState instance or None, default=None
        Seed. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Threads for chains and for passes over the data: None is 1, -1 is all processors.
    keep : {"all", "moments"} or int, default="all"
        Draws that are kept, of those that are made. With an int, so many of each chain, evenly
        spaced, for predictions, intervals and diagnostics; means and standard deviations are
        those of all draws, summed up on the way, in memory that does not grow with `n_draws`.
        "moments" keeps no draws: nothing but means and standard deviations is known then.

    Attributes
    ----------
    posterior_ : Posterior
        All draws: variables "coef", "intercept", "noise_std" and "df", means, intervals, ...
    coef_ : ndarray of shape (n_features,)
        Posterior means of the coefficients.
    intercept_ : float
        Posterior mean of the intercept; zero if ``fit_intercept=False``.
    coef_std_ : ndarray of shape (n_features,)
        Posterior standard deviations.
    intercept_std_ : float
        Posterior standard deviation.
    noise_std_ : float
        Posterior mean of the scale :math:`\sigma`, which is not the standard deviation of the
        noise: that is :math:`\sigma \sqrt{\nu / (\nu - 2)}`.
    df_ : float
        Posterior mean of :math:`\nu`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names that are strings.
    sampler_, gradient_, subsampling_, preconditioner_ : str
        What "auto" became.
    step_size_ : float
        The step size h; of a schedule the first.
    batch_size_, thin_, n_warmup_ : int
        Likewise.
    batch_sizes_ : ndarray of shape (n_chains, n_draws)
        Rows a step, on average over the steps that led to each draw.
    n_steps_ : int
        Steps that each chain took, warm-up included.
    subposteriors_ : list of Posterior
        Those of the shards, each with what made it; ``[posterior_]`` without shards.
    combine_check_ : dict of str to float
        What `skbayes_sg.combine.agreement` says of the shards, and what their combination measured;
        empty without shards.
    diagnostics_ : dict of str to float
        As for `BayesianLogisticRegression`.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted; a `ValueError` and a
        `TypeError`.
    ValueError
        By `fit`, for data that cannot be used, and for flat priors without a posterior.
    SamplerDivergedError
        By `fit`, if a chain leaves the region where the posterior can be.
    MemoryError
        By `fit`, before sampling, if the draws that were asked for do not fit into free memory.

    Warns
    -----
    StepSizeWarning
        The step size, or the batch size, is beyond what was measured to be safe.
    SamplerConvergenceWarning
        R-hat above 1.05, or an effective sample size below a tenth of the draws.
    SubposteriorWarning
        The shards are not Gaussian enough, or too far apart, to be averaged.
    DrawStoreWarning
        The draws take more than scikit-learn's ``working_memory``.

    See Also
    --------
    BayesianLinearRegression : Normal noise, without chains.
    sklearn.linear_model.HuberRegressor : A robust point estimate.

    Notes
    -----
    The standard deviation that `predict` returns is infinite where a draw of :math:`\nu` is at most
    2; intervals and quantiles always exist. The posterior may have more than one mode where half of
    the rows contradict the other half.

    References
    ----------
    .. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor (1989). Robust statistical modeling
       using the t distribution. Journal of the American Statistical Association 84, 881-896.
    .. [2] M. A. Juarez and M. F. J. Steel (2010). Model-based clustering of non-Gaussian panel data
       based on skew-t distributions. Journal of Business and Economic Statistics 28, 52-66.

    Examples
    --------
    One row in ten is wrong by far:

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
    _law = Robust()

    def __init__(
        self, *, prior="normal", fit_intercept=True, intercept_prior=None,
        noise_prior="half_student_t", df_prior=None, sampler="auto", gradient="auto",
        subsampling="auto", batch_size="auto", step_size="auto", preconditioner="auto",
        n_draws=1000, n_chains=4, n_warmup="auto", thin="auto", n_subposteriors=1,
        combine="consensus", random_state=None, n_jobs=None, keep="all",
    ):  # fmt: skip
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.intercept_prior = intercept_prior
        self.noise_prior = noise_prior
        self.df_prior = df_prior
        self.sampler = sampler
        self.gradient = gradient
        self.subsampling = subsampling
        self.batch_size = batch_size
        self.step_size = step_size
        self.preconditioner = preconditioner
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_subposteriors = n_subposteriors
        self.combine = combine
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.keep = keep

    def _recipe(self):
        return Robust(), {"noise_std": "noise_prior", "df": "df_prior"}, 1.0

    def _extras(self):
        return self.posterior_["noise_std"].ravel(), self.posterior_["df"].ravel()
