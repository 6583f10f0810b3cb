"""Bayesian logistic regression, binary and multinomial."""

from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._base.callbacks import with_callbacks
from .._base.names import told_apart
from .._base.tables import is_dask
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
from ..shards.dask import parts_of
from ._at_all_draws import BLOCK_BYTES
from ._base import BayesianGLM, all_or_nothing
from ._classes import ClassPredictions, check_labels, check_targets, class_weights, encode
from ._group_checks import has_groups
from ._groups import fit_groups
from ._online import update, where_possible
from ._parameters import with_shared_parameters
from ._shards import Plan

__all__ = ["BayesianLogisticRegression"]

# Fewest rows of a block of predictors: for fewer, reading all coefficients would take longer than
# the products.
BLOCK_ROWS = 64


class BayesianLogisticRegression(ClassPredictions, ClassifierMixin, BayesianGLM):
    r"""Bayesian logistic regression: the posterior of the coefficients instead of one estimate.

    The regression is binary for two classes, and multinomial for more. With weights :math:`w_i`
    (`sample_weight` times `class_weight`), coefficients :math:`B` and intercepts :math:`b`, the law
    that is sampled is

    .. math::

        \pi(B, b) \propto p(B)\, p(b) \prod_i P(y_i \mid x_i, B, b)^{w_i},

    where :math:`P(y_i = 1 \mid x_i) = 1 / (1 + e^{-\eta_i})` with the log-odds
    :math:`\eta_i = x_i \cdot B + b` for two classes (one row of coefficients, for ``classes_[1]``),
    and :math:`P(y_i = k \mid x_i) = e^{\eta_{ik}} / \sum_c e^{\eta_{ic}}` with one row of
    coefficients for each class otherwise. As in `sklearn.linear_model.LogisticRegression`, none of
    these rows of coefficients is fixed at zero, and each of them has the prior.

    With several rows of coefficients the data determine only the differences between them: a number
    added to all rows of coefficients changes no probability, and only the prior restricts it.
    Coefficients and intercepts of three or more classes are therefore always given relative to
    their mean over the classes, so that they sum to zero over the classes. `Posterior.contrast`
    compares two classes, and `odds_ratio_interval` returns intervals of odds ratios.

    The exact samplers ("hmc", "mala") draw from this law and no other
    (``tests/engine/test_statistical.py::test_metropolis_samplers_have_the_posterior``). Samplers
    with stochastic gradients draw from a law near to it, and the distance grows with the step size
    and with the noise of the gradient. "auto" chooses the step size and the number of rows of a
    step from measurements, checks the result on pairs of coupled chains of which one has half the
    time step, and falls back to an exact sampler if the check fails.

    The prior is in the units of the coefficients, so standardise the columns of X first, for
    example with `sklearn.preprocessing.StandardScaler` in a pipeline. The samplers do not need
    standardised columns.

    Parameters
    ----------
    prior : {"normal", "laplace", "student_t", "flat", "horseshoe"} or Prior, default="normal"
        Prior of each coefficient; coefficients are independent. The strings stand for the classes
        of `skbayes_sg.priors` with their defaults; ``Normal(scale=s)`` corresponds to the ridge
        penalty with ``C = s**2`` in `sklearn.linear_model.LogisticRegression`. A "flat" prior needs
        data that determine every coefficient. If the scale is a prior itself, as in
        ``Normal(scale=HalfCauchy(1.0))``, it is learned: see `skbayes_sg.priors.Normal`.
    fit_intercept : bool, default=True
        Whether there are intercepts.
    intercept_prior : str or Prior, default=None
        Prior of each intercept, given in the same way as `prior`. None is ``Normal(scale=10.0)``,
        or a wider normal prior if there are columns far from zero, such as years: see
        `intercept_prior_`.
    {groups}
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, by which the sample weights of its rows are multiplied. "balanced"
        gives all classes the same total weight. A posterior with weights is not that of the
        original data.
    sampler : str or object, default="auto"
        How draws are made: "auto", "importance", "sgld", "leimkuhler_matthews", "baoab", "sghmc",
        "sgnht", "mala", "hmc", or an object of `skbayes_sg.dynamics` such as
        ``BAOAB(friction=2.0)``. "importance" makes independent draws and certifies them
        (`skbayes_sg.dynamics.Importance`). "mala" and "hmc" use all rows at every step and are
        exact; to combine them with another `gradient`, `subsampling` or `batch_size` is an error.
        "sgnht" has a thermostat that removes noise of the gradient. "auto" is "importance" if its
        certificate holds. Otherwise it is "hmc" up to 1000 rows, if that is predicted to take at
        most about a second, and if stochastic gradients would need more than a quarter of the rows;
        in all other cases it is "baoab". If `batch_size`, `gradient`, `subsampling`, `step_size` or
        `preconditioner` is given, "auto" runs chains and does not try "importance".
    gradient : str or Gradient, default="auto"
        How a batch of rows becomes an estimate of the gradient: "auto", "full", "minibatch",
        "control_variate", "taylor", "saga", "svrg", or an object of `skbayes_sg.gradients` such as
        ``SVRG(refresh=100)``. "auto" is "taylor" up to 2000 parameters, and "control_variate"
        above.
    subsampling : str or Subsampling, default="auto"
        Which rows each step uses: "auto", "uniform", "uniform_without_replacement", "blocks",
        "preferential", "adaptive", or an object of `skbayes_sg.subsampling`. "auto" is "uniform" if
        ten uniformly drawn rows a step are enough, else "preferential". "adaptive" changes the
        number of rows with the distance of the chain from the centre, and works with the gradients
        "control_variate" and "taylor" only. The parameter has no effect if every step uses all
        rows.
    batch_size : "auto", int or float, default="auto"
        Number of rows that each step uses, or their share of all rows in (0, 1]. "auto" is all rows
        if there are at most 1000. For more rows it is the number, at least ten, with which the
        noise of the gradient is predicted to raise no posterior variance by more than 2 %
        (``tests/recipe/test_tuning.py::test_rows_make_the_noise_two_percent``).
    step_size : "auto", float or Schedule, default="auto"
        The step size h of :math:`\theta' = \theta - (h/2) P \nabla U + \sqrt h P^{1/2} \xi`, with
        :math:`U = -\log \pi` and the preconditioner P; samplers with momentum take time steps of
        :math:`\sqrt h`. Under the preconditioners "hessian" and "diagonal" it is dimensionless:
        h = 1 is a step of one posterior standard deviation, and h = 4 is the limit of stability for
        a Gaussian posterior. Without preconditioner it has the units of a squared coefficient.
        "auto" follows from the curvature that is measured along the chains; for the exact samplers
        it is adapted to their acceptance rate. Samplers with stochastic gradients also accept steps
        that vary, `Polynomial`, `TwoPhase` and `Cyclical` of `skbayes_sg.schedules`; draws are then
        weighted by their step sizes (``posterior_.weights``).
    preconditioner : {"auto", "hessian", "diagonal"} or None, default="auto"
        The matrix P: the inverse Hessian at the centre of the posterior ("hessian"), the inverse of
        the Hessian's diagonal ("diagonal"), or the identity (None). "auto" is "hessian" up to 2000
        parameters, else "diagonal".
    {draws_and_chains}
    n_warmup : "auto" or int, default="auto"
        Number of steps of each chain (for "hmc", trajectories) before the first draw. "auto" is
        five relaxation times of the slowest direction, and 250 for the exact samplers.
    thin : "auto" or int, default="auto"
        Number of steps (for "hmc", trajectories) from one draw to the next. "auto" begins at one
        relaxation time, or at 1 for the exact samplers. It is doubled up to three times, as long as
        the smallest effective sample size is below half of the number of draws (for the exact
        samplers, a quarter).
    {subposteriors_to_keep}

    Attributes
    ----------
    posterior_ : Posterior
        All draws, in the variables "coef" and "intercept", with methods for means, intervals and
        diagnostics.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Posterior means of the coefficients. With three or more classes they sum to zero over the
        classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Posterior means of the intercepts; zeros if ``fit_intercept=False``.
    coef_std_, intercept_std_ : ndarray
        Posterior standard deviations of coefficients and intercepts, in the shapes of `coef_` and
        `intercept_`.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    {prior_scale}
    {group_attributes}
    {features}
    sampler_, gradient_, subsampling_, preconditioner_ : str
        The choices made for "auto", or those given; "all_rows" means no subsampling, and "none" no
        preconditioner. Two samplers cannot be asked for, and are only chosen by "auto":
        "horseshoe_gibbs" for the horseshoe prior, and "collapsed_hmc" for group effects.
    step_size_ : float
        The step size h, or the first one of a schedule.
    batch_size_, thin_, n_warmup_ : int
        The numbers chosen for "auto", or those given.
    batch_sizes_ : ndarray of shape (n_chains, n_draws)
        For each draw, the average number of rows in the steps that led to it. It is `batch_size_`
        except with subsampling "adaptive".
    n_steps_ : int
        Number of steps of each chain (for "hmc", trajectories), including the warm-up.
    {shards}
    diagnostics_ : dict of str to float
        For all samplers: ``min_ess`` and ``max_rhat``, the smallest effective sample size and the
        largest R-hat of the parameters, over the chains in `posterior_`. An R-hat above 1.05 comes
        with a warning; for independent draws it is 1.

        For independent draws: ``pareto_k`` (trustworthy below 0.7) and ``weights_ess``, the Pareto
        k and the effective sample size of their importance weights; ``rows_exact``, the number of
        rows that are exact in the weights; ``left_out``, the standard deviation over the draws of
        what all other rows would add to the log density if they were exact as well;
        ``rows_skewed``, the number of rows whose log-likelihoods are not nearly quadratic;
        ``directions_warped``, the number of directions in which the proposal is not Gaussian. If
        many short chains in lockstep have moved these draws: ``lockstep_epsilon``, their step size,
        ``lockstep_acceptance``, ``lockstep_n_gradients`` and ``lockstep_rhat`` (which should be
        below 1.1).

        If several modes were looked for: their number ``n_modes``, and the share of each in the
        draws, ``mode_share_0``, ``mode_share_1``, ...

        For exact samplers: ``acceptance``, the mean acceptance rate. Under a horseshoe also
        ``accepted_proposals``, the share of proposals under normal rows that is accepted.

        For stochastic gradients: ``coupled_distance``, the distance in posterior standard
        deviations between two coupled chains, one with the time step used and one with half of it
        (above 0.5 there is a warning; absent for steps that vary); ``curvature_growth``, the
        largest curvature that was met in excess of that at the centre; ``noise_inflation`` and
        ``step_inflation``, the predicted relative increase of a posterior variance by the noise of
        the gradient and by the step size.
    seconds_ : dict of str to float
        Wall time of the parts of the fit in seconds: ``centre`` (mode, Hessian and coordinates);
        ``proposal``, ``weighing`` and ``scores`` for independent draws; ``stochastic chains``;
        ``chains on all rows``; for linear regression ``closed form`` or ``fewer rows``. With
        subposteriors, times are summed over the shards.

    Raises
    ------
    {invalid_parameter}
    ValueError
        By `fit`, for data that cannot be used (values that are not finite, a single class, ...),
        and for a flat prior under which the posterior is improper.
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
            The rows. Dense arrays of float64 or float32 in C order and CSR matrices are used as
            they are; other forms are converted once. Memory-mapped arrays stay on disk.
        y : array-like of shape (n_rows,)
            Class labels of any type.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: 2 counts the row twice, and 0 leaves it out.

        Returns
        -------
        self : BayesianLogisticRegression
            The estimator, with the attributes of the class docstring.
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
        """Update the posterior by further rows, without the rows of earlier calls.

        Batches that come one after the other lead to approximately the posterior of all rows, and
        the draws are made anew in each call. The new rows enter exactly. The log-likelihood of each
        earlier row is replaced by a quadratic function, the best approximation under the posterior
        at the time when the row was new. `fit` keeps nothing of its rows: in a call after `fit`
        they are represented by such a quadratic, which follows from the draws and the prior.

        Priors that were changed by `set_params` are used in the next call. After `fit`, another
        prior needs fixed scales, since "auto" scales remain those of the fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            New rows. The first call may have all rows that there are.
        y : array-like of shape (n_rows,)
            Labels of the new rows.
        classes : array-like of shape (n_classes,), optional
            All labels that batches may have. Required in the first call.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the new rows.

        Returns
        -------
        self : BayesianLogisticRegression
            The estimator, with the attributes of the class docstring and two more:
            ``n_samples_seen_``, the number of rows in all calls, and ``update_error_``, an estimate
            to first order of how many posterior standard deviations the quadratics may have moved a
            posterior mean.

        Raises
        ------
        ValueError
            If the first call lacks `classes`, for rows that cannot be used, after fits with shards,
            and for parameters that were changed where that is not possible: `class_weight` once
            rows are not kept, the kind of prior, and after `fit` priors with "auto" scales.
        AttributeError
            For ``class_weight="balanced"``, which needs all rows; for samplers other than "auto"
            and "importance"; if a parameter of steps or of subposteriors is given.

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
        coefs = told_apart(f"coef[{label}, {name}]" for label in self.classes_ for name in names)
        return coefs + [f"intercept[{label}]" for label in self.classes_] * self.fit_intercept

    # -- prediction ---------------------------------------------------------------------------

    def _linear_draws(self, draws):
        """Coefficients and intercepts of the log-odds against the first class, at some draws."""
        B, b = super()._linear_draws(draws)
        if B.shape[1] == 1:
            return B, b
        return B[:, 1:] - B[:, :1], b[:, 1:] - b[:, :1]

    def predict_proba(self, X: MatrixLike, control_variate: str | None = None) -> np.ndarray:
        """Posterior predictive probability of each class: the weighted mean over all draws.

        The mean of the probabilities differs from the probability at the mean coefficients: if the
        posterior is wide, the mean is closer to one half.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        control_variate : {None, "linear", "quadratic"}, default=None
            If not None, the scores of the draws are used to reduce the Monte Carlo error: see
            `Posterior.control_weights`. Estimates outside [0, 1] are moved to the nearest of its
            ends.

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
        column grows by `per` and the other columns do not change:
        ``exp(per * difference of coefficients)``. In a pipeline the columns are those that this
        estimator gets: after `sklearn.preprocessing.StandardScaler`, one unit of a column is one
        standard deviation.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.9
            Posterior probability that the odds ratio lies inside.
        first : label, optional
            The class in the numerator; every class except `reference` if None.
        reference : label, optional
            The class in the denominator; ``classes_[0]`` if None.
        per : float or array-like of shape (n_features,), default=1.0
            The change of each column, in the column's unit; ``per=X.std(axis=0)`` is one standard
            deviation. A Series needs the names of the columns, in their order.

        Returns
        -------
        lower, upper : ndarray of shape (n_differences, n_features)
            One row for each class in the numerator, in the order of `classes_`.

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
        self._check_labels("per", per, self.coef_.shape[-1])
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
