"""Bayesian logistic regression, binary and multinomial."""

from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._base.callbacks import with_callbacks
from .._base.typing import ArrayLike, MatrixLike
from .._base.validation import (
    Parameters,
    central,
    check_data,
    check_weights,
    drop_unweighted,
    widen_small,
)
from ..models import Logistic, Softmax
from ..models.class_likelihood import class_log_likelihood
from ..models.probabilities import mean_probabilities
from ..shards.dask import is_dask, parts_of
from ._base import BLOCK_BYTES, BayesianGLM, all_or_nothing
from ._classes import ClassPredictions, check_labels, check_targets, class_weights, encode
from ._groups import fit_groups, has_groups
from ._online import update, where_possible
from ._parameters import with_shared_parameters
from ._shards import Plan

__all__ = ["BayesianLogisticRegression"]

# Fewest rows of a block of predictors: for fewer, reading all coefficients would take longer than
# the products.
BLOCK_ROWS = 64


class BayesianLogisticRegression(ClassPredictions, ClassifierMixin, BayesianGLM):
    r"""Bayesian logistic regression: the posterior of the coefficients instead of one estimate.

    It is binary for two classes, and multinomial for more. With weights :math:`w_i`
    (`sample_weight` times `class_weight`), coefficients :math:`B` and intercepts :math:`b`, the law
    that is sampled is

    .. math::

        \pi(B, b) \propto p(B)\, p(b) \prod_i P(y_i \mid x_i, B, b)^{w_i},

    where :math:`P(y_i = 1 \mid x_i) = 1 / (1 + e^{-\eta_i})` with the log-odds
    :math:`\eta_i = x_i \cdot B + b` for two classes (one row of coefficients, for
    ``classes_[1]``), and :math:`P(y_i = k \mid x_i) = e^{\eta_{ik}} / \sum_c e^{\eta_{ic}}` with
    one row of coefficients for each class otherwise. All rows are free, as in
    `sklearn.linear_model.LogisticRegression`, and have the prior.

    With several rows of coefficients the data determine differences alone: a number added to all
    rows changes no probability, and has the uncertainty of the prior. Coefficients and intercepts
    of three or more classes are therefore given relative to their mean over the classes,
    everywhere: they sum to zero over the classes. `Posterior.contrast` compares two classes, and
    `odds_ratio_interval` has the odds ratios.

    The exact samplers ("hmc", "mala") draw from this law and no other
    (``tests/engine/test_statistical.py::test_metropolis_samplers_have_the_posterior``). Those with
    stochastic gradients draw from a law near to it, whose distance grows with the step size and
    with the noise of the gradient; "auto" chooses both by measuring, checks the result on coupled
    chains of which one has half the time step, and falls back to an exact sampler where the check
    fails.

    The prior is in the units of the coefficients, so standardise the columns of X first
    (`sklearn.preprocessing.StandardScaler` in a pipeline). The samplers do not need that.

    Parameters
    ----------
    prior : {"normal", "laplace", "student_t", "flat", "horseshoe"} or Prior, default="normal"
        Prior of each coefficient, independent. The strings are the classes of
        `skbayes_sg.priors` with their defaults; ``Normal(scale=s)`` is the ridge penalty
        ``C = s**2`` of `sklearn.linear_model.LogisticRegression`. A "flat" prior needs data that
        determine every coefficient. A scale that is a prior itself, as in
        ``Normal(scale=HalfCauchy(1.0))``, is learned: see `skbayes_sg.priors.Normal`.
    fit_intercept : bool, default=True
        Whether there are intercepts.
    intercept_prior : str or Prior, default=None
        Prior of each intercept, as for `prior`. None is ``Normal(scale=10.0)``, and wider beside
        columns far from zero, such as years, of which the predictor at zero says little: see
        `intercept_prior_`.
    {groups}
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, a factor of the sample weights. "balanced" gives all classes the same
        total weight. A posterior with weights is not that of the original data.
    sampler : str or object, default="auto"
        How draws are made: "auto", "importance", "sgld", "leimkuhler_matthews", "baoab", "sghmc",
        "sgnht", "mala", "hmc", or an object of `skbayes_sg.dynamics` such as
        ``BAOAB(friction=2.0)``. "importance" makes independent draws and certifies them
        (`skbayes_sg.dynamics.Importance`). "mala" and "hmc" use all rows at every step and are
        exact; another `gradient`, `subsampling` or `batch_size` is an error with them. "sgnht" has
        a thermostat that removes noise of the gradient. "auto" is "importance" if its certificate
        holds. Otherwise it is "hmc" up to 1000 rows, if that is predicted to take at most about a
        second, and if stochastic gradients would need more than a quarter of the rows; in all other
        cases it is "baoab". With `batch_size`, `gradient`, `subsampling`, `step_size` or
        `preconditioner` it runs chains.
    gradient : str or Gradient, default="auto"
        How a batch of rows becomes a gradient: "auto", "full", "minibatch", "control_variate",
        "taylor", "saga", "svrg", or an object of `skbayes_sg.gradients` such as
        ``SVRG(refresh=100)``. "auto" is "taylor"; "control_variate" above 2000
        parameters.
    subsampling : str or Subsampling, default="auto"
        Which rows a step uses: "auto", "uniform", "uniform_without_replacement", "blocks",
        "preferential", "adaptive", or an object of `skbayes_sg.subsampling`. "auto" is "uniform"
        if ten uniform rows a step are enough, else "preferential". "adaptive" changes the number of
        rows with the distance from the centre, and is for the gradients "control_variate" and
        "taylor". It has no effect if every step uses all rows.
    batch_size : "auto", int or float, default="auto"
        Number of rows of a step, or share of the rows in (0, 1]. "auto" is all rows up to 1000.
        Above, it is the number, at least ten, with which the noise of the gradient is predicted to
        raise no posterior variance by more than 2 %
        (``tests/recipe/test_tuning.py::test_rows_make_the_noise_two_percent``).
    step_size : "auto", float or Schedule, default="auto"
        The step size h of :math:`\theta' = \theta - (h/2) P \nabla U + \sqrt h P^{1/2} \xi`,
        with :math:`U = -\log \pi` and P the preconditioner; the samplers with momentum take time
        steps of :math:`\sqrt h`. It is dimensionless under the preconditioners "hessian" and
        "diagonal": 1 is a step of one posterior standard deviation and 4 the limit of stability
        for a Gaussian posterior. Without preconditioner it has the units of a squared
        coefficient. "auto" measures the curvature along the chains (exact samplers adapt to the
        acceptance rate). For samplers with stochastic gradients, `Polynomial`, `TwoPhase` and
        `Cyclical` of `skbayes_sg.schedules` are steps that vary; the draws are then weighted by
        step size (``posterior_.weights``).
    preconditioner : {"auto", "hessian", "diagonal"} or None, default="auto"
        P: the inverse Hessian at the centre, the inverse of its diagonal, or the identity. "auto"
        is "hessian" up to 2000 parameters, else "diagonal".
    {draws_and_chains}
    n_warmup : "auto" or int, default="auto"
        Steps of each chain (trajectories, for "hmc") before the first draw. "auto" is five
        relaxation times of the slowest direction; 250 for the exact samplers.
    thin : "auto" or int, default="auto"
        Steps (trajectories) from one draw to the next. "auto" is one relaxation time (exact
        samplers: 1), doubled up to three times while the smallest effective sample size is below
        half (exact samplers: a quarter) of the number of draws.
    {subposteriors_to_keep}

    Attributes
    ----------
    posterior_ : Posterior
        All draws: variables "coef" and "intercept", means, intervals, diagnostics.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Posterior means of the coefficients; of several classes they sum to zero over the classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Posterior means of the intercepts; zeros if ``fit_intercept=False``.
    coef_std_, intercept_std_ : ndarray
        Posterior standard deviations, in the same shapes.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    {prior_scale}
    {group_attributes}
    {features}
    sampler_, gradient_, subsampling_, preconditioner_ : str
        What "auto" became; "all_rows" is no subsampling, "none" no preconditioner. Only "auto"
        takes the samplers "horseshoe_gibbs" (that prior) and "collapsed_hmc" (group effects).
    step_size_ : float
        The step size h, the first one of a schedule.
    batch_size_, thin_, n_warmup_ : int
        What "auto" became.
    batch_sizes_ : ndarray of shape (n_chains, n_draws)
        Average number of rows of the steps that led to each draw: `batch_size_` except with
        subsampling "adaptive".
    n_steps_ : int
        Number of steps (trajectories) of each chain, warm-up included.
    {shards}
    diagnostics_ : dict of str to float
        ``min_ess`` and ``max_rhat``, over the parameters, of the chains in `posterior_`: an R-hat
        above 1.05 comes with a warning, and that of independent draws is 1. Independent draws:
        ``pareto_k`` (below 0.7) and ``weights_ess`` of their importance weights, ``rows_exact`` of
        the rows in the weights and ``left_out``, the standard deviation of the log density that the
        other rows leave, ``rows_skewed`` and ``directions_warped`` of the proposal, and
        ``lockstep_epsilon``, ``lockstep_acceptance``, ``lockstep_n_gradients`` and
        ``lockstep_rhat``, of chains that are many and short (below 1.1), where these moved. Where
        several modes were looked for: ``n_modes``, and ``mode_share_0``, ... of the draws. Exact
        samplers: ``acceptance``, mean acceptance rate. Stochastic gradients: ``coupled_distance``,
        the distance in posterior standard deviations between coupled chains of the time step used
        and of half of it (at most 0.5 unless warned; absent for steps that vary);
        ``curvature_growth``, the largest curvature met beyond that at the centre;
        ``noise_inflation`` and ``step_inflation``, the predicted relative increase of a posterior
        variance by the noise of the gradient and by the step size.
    seconds_ : dict of str to float
        Wall time of the parts of the fit: ``centre`` (mode, Hessian and coordinates), ``proposal``,
        ``weighing`` and ``scores`` of independent draws, ``stochastic chains``, ``chains on all
        rows``; for linear regression ``closed form`` or ``fewer rows``. With subposteriors it is
        the sum over them.

    Raises
    ------
    {invalid_parameter}
    ValueError
        By `fit`, for data that cannot be used (not finite, one class only, ...), and for a flat
        prior under which there is no posterior.
    {errors_and_warnings}

    See Also
    --------
    skbayes_sg.Posterior : What `posterior_` can do.
    sklearn.linear_model.LogisticRegression : The posterior mode, with ``C = scale**2`` (its
        intercept has a flat prior).

    Notes
    -----
    An error or Ctrl-C during `fit` leaves the estimator as it was before the call. Dense X in
    float64 or float32 and C order is not copied; float32 stays float32 in memory while all
    arithmetic is in float64. Memory-mapped X stays on disk. If X takes at most 16 MiB as dense
    float64, it is converted to that, so that the draws are the same for all forms of X
    (``tests/estimators/test_reproducibility.py::test_small_sparse_forms_are_the_dense_run``).

    References
    ----------
    .. [1] M. Welling and Y. W. Teh (2011). Bayesian learning via stochastic gradient Langevin
       dynamics. ICML. (Sampler "sgld", gradient "minibatch", schedule ``Polynomial``.)
    .. [2] J. Baker, P. Fearnhead, E. B. Fox and C. Nemeth (2019). Control variates for stochastic
       gradient MCMC. Statistics and Computing 29, 599-615. (Gradient "control_variate".)
    .. [3] T. Nagapetyan, L. Szpruch, S. J. Vollmer, K. Zygalakis and M. Giles (2017). Multilevel
       Monte Carlo for scalable Bayesian computations. arXiv:1609.06144. (Gradient "taylor".)
    .. [4] B. Leimkuhler and C. Matthews (2013). Rational construction of stochastic numerical
       methods for molecular sampling. Applied Mathematics Research eXpress 2013, 34-56. (Samplers
       "baoab" and "leimkuhler_matthews".)
    .. [5] S. Putcha, C. Nemeth and P. Fearnhead (2023). Preferential subsampling for stochastic
       gradient Langevin dynamics. AISTATS. (Subsampling "preferential".)
    .. [6] T. Chen, E. B. Fox and C. Guestrin (2014). Stochastic gradient Hamiltonian Monte Carlo.
       ICML. (Sampler "sghmc".)
    .. [7] B. Leimkuhler and X. Shang (2016). Adaptive thermostats for noisy gradient systems. SIAM
       Journal on Scientific Computing 38, A712-A736. (Sampler "sgnht".)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = X[:, :4]
    >>> model = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=0))
    >>> model = model.fit(X[:400], y[:400])
    >>> new = X[[400, 404, 407]]
    >>> model.predict(new)
    array([0, 1, 1])
    >>> model.predict_proba(new)[:, 1].round(1)
    array([0. , 1. , 0.7])

    The uncertainty of these probabilities and of the coefficients:

    >>> clf = model[-1]
    >>> lower, upper = clf.predict_proba_interval(model[:-1].transform(new))
    >>> lower[:, 1].round(1), upper[:, 1].round(1)
    (array([0. , 0.9, 0.6]), array([0. , 1. , 0.8]))
    >>> (clf.coef_ / clf.coef_std_).round()
    array([[-1., -6., -3., -1.]])
    >>> clf.sampler_, clf.posterior_["coef"].shape
    ('importance', (4, 1000, 1, 4))
    """

    @with_shared_parameters
    def __init__(self, *, class_weight: dict[str, Any] | str | None = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            Dense float64 and float32 in C order and CSR are used without conversion; other forms
            are converted once. Memory-mapped arrays stay on disk.
        y : array-like of shape (n_rows,)
            Class labels of any type.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: 2 is the row twice, 0 is no row.

        Returns
        -------
        self : BayesianLogisticRegression
            With the attributes of the class docstring.
        """
        with all_or_nothing(self):
            Parameters(self).flag("fit_intercept")
            Parameters(self).class_weight()
            if has_groups(self):
                return fit_groups(self, X, {"y": y, "sample_weight": sample_weight})
            if is_dask(X, y, sample_weight):
                return self._fit_parts(parts_of(X, y=y, sample_weight=sample_weight))
            X, y, weight = self._read(X, y, sample_weight)
            return self._sample(X, y, weight, self._first_plan(X, y, weight))

    @where_possible
    @with_callbacks
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Update the posterior by further rows, without those before.

        Batches that come one after the other lead to about the posterior of all rows, whose draws
        are made anew in each call: the new rows are exact, and each earlier one is replaced by a
        quadratic, its best one under the posterior when it was new. After `fit`, which keeps
        nothing of its rows, the normal law with the mean and the covariance of the posterior takes
        their place.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            New rows. In the first call they may be all that there are.
        y : array-like of shape (n_rows,)
            Labels of the new rows.
        classes : array-like of shape (n_classes,), optional
            All labels that batches may have. It is required in the first call.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the new rows.

        Returns
        -------
        self : BayesianLogisticRegression
            With the attributes of the class docstring; ``n_samples_seen_``, the number of rows of
            all calls; and ``update_error_``, by how many posterior standard deviations the
            quadratics may have moved a posterior mean, to first order.

        Raises
        ------
        ValueError
            Without `classes`, for rows that cannot be used, and after fits of shards.
        AttributeError
            For ``class_weight="balanced"``, which needs all rows, for other samplers than "auto"
            and "importance", and with parameters of steps and of subposteriors.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X = scale(X)[:, :4]
        >>> online = BayesianLogisticRegression(random_state=0)
        >>> for batch in range(0, 569, 100):
        ...     rows = slice(batch, batch + 100)
        ...     online = online.partial_fit(X[rows], y[rows], classes=[0, 1])
        >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
        >>> print((abs(online.coef_ - model.coef_) / model.coef_std_).max() < 0.3)
        True
        """
        with all_or_nothing(self):
            Parameters(self).flag("fit_intercept")
            Parameters(self).class_weight()
            first = not hasattr(self, "posterior_")
            self._check_classes_of_batches(classes, first)
            X, y, weight = self._read(X, y, sample_weight, reset=first)
            self._check_known(y)
            plan = self._plan_for(X.shape[1], np.ones(len(self.classes_)))
            return update(self, X, y, weight, plan)

    def _check_classes_of_batches(self, classes, first):
        """Set `classes_` in the first call of `partial_fit`; `ValueError` for others later."""
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if first:
            self.classes_, _ = encode(column_or_1d(classes), type(self).__name__)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={np.unique(classes).tolist()} is not the same as in the first call to "
                f"partial_fit: {self.classes_.tolist()}."
            )

    def _check_known(self, y):
        """`ValueError` if y has labels that are not among the classes."""
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y has the label {unknown.tolist()[0]!r}, and the classes are "
                f"{self.classes_.tolist()}."
            )

    def _read(self, X, y, sample_weight, reset=True):
        """Checked rows in a form that kernels can read, with labels and weights.

        Rows of weight zero are left out.
        """
        y = check_labels(y)
        X, y = check_data(self, X, y, reset=reset)
        check_targets(y)
        X, y, weight = drop_unweighted(X, y, check_weights(sample_weight, X))
        return widen_small(X), y, weight

    def _plan(self, summary):
        """The `Plan` of a fit of shards, given the `ShardSummary` of all of them."""
        Parameters(self).flag("fit_intercept")
        Parameters(self).class_weight()
        self.classes_, totals = summary.classes()
        encode(self.classes_, type(self).__name__)  # raises for a single class
        return self._plan_for(summary.n_features, totals)

    def _plan_for(self, n_features, totals):
        """The `Plan` for the classes of the fit, given the total weight of each."""
        K = len(self.classes_)
        factors = class_weights(self.class_weight, self.classes_, np.arange(K), totals)
        coef_shape = (1 if K == 2 else K, n_features)
        model = Logistic() if K == 2 else Softmax(K)
        code = partial(_coded, self.classes_, factors)
        labels, classes = self._labels(coef_shape), self.classes_.tolist()
        return Plan(model, coef_shape, labels, {}, code, classes=classes)

    def _first_plan(self, X, y, weight):
        """The `Plan` of a fit of these rows."""
        self.classes_, codes = encode(y, type(self).__name__)
        return self._plan_for(X.shape[1], np.bincount(codes, weight))

    def _fitted_plan(self, X, y, weight):
        """The `Plan` of the fit, for rows that need not be those of the fit."""
        self._check_classes(y)
        totals = np.bincount(np.searchsorted(self.classes_, y), weight)
        return self._plan_for(X.shape[1], totals)

    def _check_classes(self, y):
        """`ValueError` unless y has all classes of the fit and no others."""
        unknown = np.setdiff1d(y, self.classes_)
        missing = np.setdiff1d(self.classes_, y)
        if len(unknown) or len(missing):
            wrong = (unknown if len(unknown) else missing).tolist()[0]
            what = f"has the label {wrong!r}" if len(unknown) else f"lacks the label {wrong!r}"
            raise ValueError(
                f"y {what}: {type(self).__name__} was fitted to the classes "
                f"{self.classes_.tolist()}."
            )

    def _likelihood_of(self, y):
        self._check_classes(y)
        codes = np.searchsorted(self.classes_, y)

        return lambda rows, eta, components: class_log_likelihood(eta, codes[rows])

    def _numbers_of(self, y):
        self._check_classes(np.asarray(y))
        return np.searchsorted(self.classes_, y)

    def _responses(self, X, rng):
        """A random class number of each row for each draw, (rows, draws).

        It is the class with the largest log-odds after Gumbel noise was added.
        """

        def of_block(eta, components):
            del components
            utility = np.concatenate([np.zeros((*eta.shape[:2], 1)), eta], axis=2)
            return (utility + rng.gumbel(size=utility.shape)).argmax(axis=2)

        return self._of_predictors(X, of_block, rng=rng)

    def _powers_of(self, y, weight):
        codes = np.searchsorted(self.classes_, y)
        factors = class_weights(self.class_weight, self.classes_, codes, weight)
        return factors * super()._powers_of(y, weight)

    def _labels(self, coef_shape):
        """One label for each parameter, such as ``coef[age]`` or ``coef[setosa, age]``."""
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(coef_shape[1])] if names is None else names
        if coef_shape[0] == 1:
            return [f"coef[{name}]" for name in names] + ["intercept"] * self.fit_intercept
        coefs = [f"coef[{label}, {name}]" for label in self.classes_ for name in names]
        return coefs + [f"intercept[{label}]" for label in self.classes_] * self.fit_intercept

    # -- prediction ---------------------------------------------------------------------------

    def _linear_draws(self, draws):
        """Coefficients and intercepts of the log-odds against the first class, at some draws."""
        B, b = super()._linear_draws(draws)
        if B.shape[1] == 1:
            return B, b
        return B[:, 1:] - B[:, :1], b[:, 1:] - b[:, :1]

    def predict_proba(self, X: MatrixLike, control_variate: str | None = None) -> np.ndarray:
        """Posterior predictive probability of each class: the mean over all draws, by weight.

        The mean of the probabilities is not the probability at the mean coefficients: if the
        posterior is wide, it is closer to one half.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        control_variate : {None, "linear", "quadratic"}, default=None
            Whether the scores of the draws reduce the Monte Carlo error: see
            `Posterior.control_weights`. Estimates outside [0, 1] are moved to its ends.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        if control_variate is None:
            weights = self._pooled_weights
            return self._mean_probabilities(X, weights)
        weights = self.posterior_.control_weights(control_variate)
        p = np.clip(self._mean_probabilities(X, weights), 0.0, 1.0)
        return p / p.sum(axis=1, keepdims=True)

    def _mean_probabilities(self, X, weights):
        """Weighted mean over the draws of the class probabilities, (n_rows, n_classes).

        The draws are divided into parts if blocks of the predictors of all draws would have fewer
        than `BLOCK_ROWS` rows.
        """
        n = self.posterior_.n_chains * self.posterior_.n_draws
        n_parts = -(-8 * n * self.coef_.shape[0] * BLOCK_ROWS // BLOCK_BYTES)
        if n_parts <= 1 or weights is not None or self._groups is not None:
            return super()._mean_probabilities(X, weights)
        reduce = lambda eta, components: mean_probabilities(eta, None)  # noqa: E731
        ends = np.linspace(0, n, n_parts + 1).astype(int)
        return sum(
            (last - first) / n * self._of_predictors(X, reduce, draws=slice(first, last))
            for first, last in pairwise(ends)
        )

    def odds_ratio_interval(
        self,
        confidence_level: float = 0.9,
        *,
        first: Any = None,
        reference: Any = None,
        per: ArrayLike | float = 1.0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Central posterior interval of the odds ratios of each column.

        An odds ratio is the factor by which the odds of `first` against `reference` change if the
        column grows by `per` and the others do not: ``exp(per * difference of coefficients)``. In a
        pipeline the columns are those that this estimator sees: after
        `sklearn.preprocessing.StandardScaler`, one unit is one standard deviation.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.9
            Posterior probability that the odds ratio lies inside.
        first : label, optional
            A class; all classes but `reference` if None.
        reference : label, optional
            The class that `first` is compared with; ``classes_[0]`` if None.
        per : float or array-like of shape (n_features,), default=1.0
            The change of each column, in its unit; ``per=X.std(axis=0)`` is one standard deviation.

        Returns
        -------
        lower, upper : ndarray of shape (n_differences, n_features)
            One row for each class `first`, in the order of `classes_`.

        See Also
        --------
        skbayes_sg.Posterior.contrast : The posterior of the differences themselves.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> X = X[["mean radius", "mean texture"]]
        >>> model = BayesianLogisticRegression(random_state=0).fit(X, y == 0)
        >>> lower, upper = model.odds_ratio_interval(per=X.std())
        >>> lower.round(), upper.round()  # of a malignant tumour, per standard deviation
        (array([[24.,  2.]]), array([[79.,  3.]]))
        """
        check_is_fitted(self)
        central("confidence_level", confidence_level)
        per = _changes(per, self.coef_.shape[-1])
        difference = self.posterior_.contrast(first, reference)
        lower, upper = difference.interval(confidence_level, "coef")
        return np.exp(per * lower), np.exp(per * upper)


def _changes(per, n_columns):
    """`per` as an array of positive changes, () or (n_columns,); `ValueError` for other values."""
    try:
        changes = np.asarray(per, dtype=np.float64)
    except (TypeError, ValueError):
        changes = np.array(np.nan)
    if changes.shape not in ((), (n_columns,)) or not (changes > 0.0).all():
        raise ValueError(
            f"per must be positive, one number or one for each of {n_columns} coefficients, got "
            f"{per!r}."
        )
    return changes


def _coded(classes, factors, y, weight):
    """Class numbers of the labels, and weights of the rows times the factors of their classes."""
    codes = np.searchsorted(classes, y)
    return codes, weight * factors[codes]
