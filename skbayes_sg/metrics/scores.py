"""Measures of predictive distributions: scorers for model selection, and a few metrics.

A scorer is a plain function ``f(estimator, X, y) -> float`` for the ``scoring`` argument of
`sklearn.model_selection.GridSearchCV` and its relatives; greater is better. The estimator may be a
classifier or a regressor of this package, a pipeline or a search. Scorers of predictive
distributions also take weights of rows and the exposures of counts, and where metadata routing is
enabled they use those that are passed as metadata. What scikit-learn provides (log-loss, Brier
score, pinball loss, calibration curves) is not repeated here.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _check_sample_weight

from .._base.typing import ArrayLike, MatrixLike
from .._base.validation import warn_without_exposure

__all__ = ["calibration_error", "crps", "interval_coverage", "ksd_scorer"]
__all__ += ["neg_calibration_error_scorer", "neg_coverage_error_scorer", "neg_crps_scorer"]
__all__ += ["neg_log_predictive_density_scorer", "unwrapped"]

ROUNDING = 1e-6  # largest distance from [0, 1] of probabilities computed in single precision
# Names of scorers, for the messages about estimators of the other kind.
OF_REGRESSORS = "neg_log_predictive_density_scorer, neg_crps_scorer or neg_coverage_error_scorer"
OF_CLASSIFIERS = "neg_log_predictive_density_scorer or neg_calibration_error_scorer"


def _requesting(*names):
    """Make a scorer request these metadata where metadata routing is enabled."""

    def requesting(scorer):
        requests = MetadataRequest(owner=scorer.__name__)
        for name in names:
            requests.score.add_request(param=name, alias=True)
        scorer.get_metadata_routing = lambda: requests
        return scorer

    return requesting


def _mean(values, sample_weight):
    """The mean of values, weighted if there are weights."""
    if sample_weight is None:
        return float(np.mean(values))
    weight = _check_sample_weight(sample_weight, values, ensure_non_negative=True)
    return float(np.average(values, weights=weight))


def given(exposure):
    """The exposures as a dict of keyword arguments for predictions, empty if there are none."""
    return {} if exposure is None else {"exposure": exposure}


@_requesting("exposure", "sample_weight")
def neg_log_predictive_density_scorer(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    exposure: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean log predictive density of held-out labels or numbers; greater is better.

    .. math:: \\frac{1}{n} \\sum_{i=1}^n \\log p(y_i \\mid x_i, D),
        \\qquad p(y \\mid x, D) = \\int p(y \\mid x, θ) \\, p(θ \\mid D) \\, dθ,

    where the integral is the weighted mean over the draws, as `predict_proba` and
    `predict_log_density` return it. It rewards probabilities that are sharp and correct, and
    punishes confident errors severely. Use this score to select priors.

    **The sign.** The name follows scikit-learn's ``"neg_log_loss"``: "neg" marks a loss that was
    negated to make a score. So the value is the mean of log p itself, not of -log p. For class
    labels it is never above zero: it is zero for perfect foresight and -log K for uniform guesses
    among K classes. It differs from ``"neg_log_loss"`` only where a probability underflows: the
    smallest probability is 2.2e-308 here, and 2.2e-16 there.

    Parameters
    ----------
    estimator : classifier or regressor
        A fitted classifier with `predict_proba` and `classes_`, or a regressor of this package with
        `predict_log_density`; also as the last step of a pipeline, or in a search.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Labels, all of them among ``estimator.classes_``, or numbers.
    exposure : array-like of shape (n_rows,), optional
        Exposures of counts; a warning says if they are missing after a fit with exposures.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in the mean.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.metrics import neg_log_predictive_density_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=0))
    >>> scores = cross_val_score(model, X, y, cv=3, scoring=neg_log_predictive_density_scorer)
    >>> print(scores.mean().round(1))
    -0.1
    """
    if exposure is not None or not hasattr(estimator, "predict_proba"):
        final, X = unwrapped(estimator, X)
        return _mean(final.predict_log_density(X, y, **given(exposure)), sample_weight)
    probabilities = np.asarray(estimator.predict_proba(X))
    of_label = probabilities[np.arange(len(probabilities)), columns_of(estimator, y)]
    return _mean(np.log(np.maximum(of_label, np.finfo(np.float64).tiny)), sample_weight)


def unwrapped(estimator: Any, X: MatrixLike) -> tuple[Any, Any]:
    """Return the last step of a pipeline or the winner of a search, and X as it sees X.

    Pipelines and searches have `predict`, but not the methods of this package, such as
    `predict_interval`: call them on what this function returns.

    Parameters
    ----------
    estimator : estimator
        Fitted; a pipeline, a search, any nesting of both, or neither.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        Rows as the pipeline takes them.

    Returns
    -------
    estimator : estimator
        The fitted last step.
    X : {array-like, sparse matrix}
        The rows after all other steps.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import SplineTransformer
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.metrics import unwrapped
    >>> X, y = load_diabetes(return_X_y=True)
    >>> pipe = make_pipeline(SplineTransformer(), BayesianLinearRegression(random_state=0))
    >>> pipe = pipe.fit(X[:400, :3], y[:400])
    >>> model, rows = unwrapped(pipe, X[400:, :3])
    >>> lower, upper = model.predict_interval(rows, confidence_level=0.9)
    >>> lower.shape
    (42,)
    """
    for before, last in _nesting(estimator):
        if hasattr(before, "steps") and len(before) > 1:
            X = before[:-1].transform(X)
        estimator = last
    return estimator, X


def _nesting(estimator):
    """Yield each pipeline or search with its last step or its winner, from the outermost one on."""
    while hasattr(estimator, "best_estimator_") or hasattr(estimator, "steps"):
        is_search = hasattr(estimator, "best_estimator_")
        last = estimator.best_estimator_ if is_search else estimator.steps[-1][1]
        yield estimator, last
        estimator = last


def _method_for(scorer, estimator, name, *, regressors):
    """The method `name` of an estimator; `TypeError` for an estimator that lacks it.

    `regressors` says whether the scorer is for regressors, else it is for classifiers.
    """
    if hasattr(estimator, name):
        return getattr(estimator, name)
    kinds = [("regressors", OF_REGRESSORS), ("classifiers", OF_CLASSIFIERS)]
    (own, _), (others, scorers) = kinds if regressors else kinds[::-1]
    raise TypeError(
        f"{scorer} is for {own} with the method {name}, which this estimator does not have: "
        f"{estimator!r}. The scores of {others} are {scorers}."
    )


@_requesting("exposure", "sample_weight")
def neg_crps_scorer(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    exposure: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Negated continuous ranked probability score of 200 predictive draws; greater is better.

    It has the unit of y, and is the mean absolute error if each prediction is a single number. The
    draws come from ``sample_y(X, 200, random_state=0)``.

    Parameters
    ----------
    estimator : regressor
        A fitted regressor with `sample_y`; also as the last step of a pipeline, or in a search.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    exposure : array-like of shape (n_rows,), optional
        Exposures of counts; a warning says if they are missing after a fit with exposures.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in the mean.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        For an estimator without `sample_y`, such as a classifier.

    See Also
    --------
    crps : The formula.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.metrics import neg_crps_scorer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianLinearRegression(random_state=0).fit(X[:300], y[:300])
    >>> print(round(neg_crps_scorer(model, X[300:], y[300:])))
    -30
    """
    final, X = unwrapped(estimator, X)
    sample_y = _method_for("neg_crps_scorer", final, "sample_y", regressors=True)
    warn_without_exposure(final, exposure, "neg_crps_scorer")
    drawn = sample_y(X, 200, random_state=0, **given(exposure))
    return -crps(y, drawn, sample_weight=sample_weight)


@_requesting("exposure", "sample_weight")
def neg_coverage_error_scorer(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    exposure: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Negated distance of the share of values inside their 90 % intervals from 0.9.

    A model that predicts a constant mean with wide intervals is calibrated too: use this score
    together with one of the whole distribution such as `neg_crps_scorer`.

    Parameters
    ----------
    estimator : regressor
        A fitted regressor with `predict_interval`; also as the last step of a pipeline, or in a
        search.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    exposure : array-like of shape (n_rows,), optional
        Exposures of counts; a warning says if they are missing after a fit with exposures.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in the mean.

    Returns
    -------
    float
        Between -0.9 and 0.

    Raises
    ------
    TypeError
        For an estimator without `predict_interval`, such as a classifier.

    See Also
    --------
    interval_coverage : The share itself, of any intervals.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.metrics import neg_coverage_error_scorer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianLinearRegression(random_state=0).fit(X[:300], y[:300])
    >>> print(neg_coverage_error_scorer(model, X[300:], y[300:]) > -0.05)
    True
    """
    final, X = unwrapped(estimator, X)
    scorer, name = "neg_coverage_error_scorer", "predict_interval"
    predict_interval = _method_for(scorer, final, name, regressors=True)
    warn_without_exposure(final, exposure, scorer)
    ends = predict_interval(X, 0.9, **given(exposure))
    return -abs(interval_coverage(y, *ends, sample_weight=sample_weight) - 0.9)


@_requesting("sample_weight")
def neg_calibration_error_scorer(
    estimator: Any, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Negated expected calibration error in ten bins of equal width; greater is better.

    For two classes it is the error of the probability of the second class; for more, the error of
    the largest probability as the probability that the prediction is right. A calibrated model need
    not be a good one (constant base rates are calibrated): use this score together with one of the
    probabilities such as `neg_log_predictive_density_scorer`.

    Parameters
    ----------
    estimator : classifier
        A fitted classifier with `predict_proba` and `classes_`; also a pipeline or a search.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Labels, all of them among ``estimator.classes_``.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, which count as if repeated.

    Returns
    -------
    float
        Between -1 and 0.

    Raises
    ------
    TypeError
        For an estimator without `predict_proba`, such as a regressor.

    See Also
    --------
    calibration_error : The formula, and other bins.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.dummy import DummyClassifier
    >>> from skbayes_sg.metrics import neg_calibration_error_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> base_rates = DummyClassifier(strategy="prior").fit(X, y)
    >>> print(abs(neg_calibration_error_scorer(base_rates, X, y)) < 1e-12)  # calibrated, useless
    True
    """
    scorer, name = "neg_calibration_error_scorer", "predict_proba"
    predict_proba = _method_for(scorer, estimator, name, regressors=False)
    probabilities = np.asarray(predict_proba(X))
    columns = columns_of(estimator, y)
    if probabilities.shape[1] == 2:
        return -calibration_error(columns, probabilities[:, 1], sample_weight=sample_weight)
    right = columns == probabilities.argmax(axis=1)
    return -calibration_error(right, probabilities.max(axis=1), sample_weight=sample_weight)


def ksd_scorer(estimator: Any, X: Any = None, y: Any = None) -> float:
    """Negated kernel Stein discrepancy between draws and posterior; greater is better.

    It scores the *sampler*, not the model: use it to choose `step_size` or `batch_size` where these
    are not "auto". Predictions for held-out rows hardly change with the step size
    (``tests/inspection/test_calibration.py::test_ksd_chooses_the_step_where_log_loss_cannot``); the
    Stein discrepancy compares the draws with the posterior of the rows that the estimator was
    fitted to, by the scores that the fit has kept. Do not choose priors or columns by it: another
    prior is another posterior.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator whose `posterior_` has scores; also a pipeline or a search.
    X, y : object, optional
        Ignored: the posterior is that of the rows of the fit.

    Returns
    -------
    float
        ``-KSD`` of at most 2000 draws. If the square is an unbiased estimate below zero
        (`Posterior.ksd`), the score is the root of its absolute value.

    Raises
    ------
    TypeError
        If the estimator has no `posterior_`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.metrics import ksd_scorer
    >>> X, y = make_classification(900, 3, n_informative=3, n_redundant=0, random_state=0)
    >>> model = BayesianLogisticRegression(
    ...     sampler="sgld", gradient="taylor", batch_size=100, thin=5, n_draws=250, random_state=0
    ... )
    >>> import warnings
    >>> search = GridSearchCV(model, {"step_size": [0.3, 3.0]}, scoring=ksd_scorer, cv=2)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # one of the steps is too large
    ...     search.fit(X, y).best_params_
    {'step_size': 0.3}
    """
    del X, y
    squared = _posterior(estimator).ksd().squared
    return float(-np.sign(squared) * np.sqrt(abs(squared)))


def _posterior(estimator):
    """The posterior of an estimator, of a pipeline's last step, or of a search's best estimator."""
    found = estimator
    for _, last in _nesting(estimator):
        found = last
    if not hasattr(found, "posterior_"):
        raise TypeError(f"ksd_scorer needs a fitted estimator with a posterior_, got {found!r}.")
    return found.posterior_


def columns_of(estimator, y):
    """The column of `predict_proba` of each label in y; `ValueError` for unknown labels."""
    y, classes = column_or_1d(y), np.asarray(estimator.classes_)
    unknown = sorted({label for label in np.unique(y).tolist() if label not in classes.tolist()})
    if unknown:
        raise ValueError(
            f"y contains labels that the estimator was not trained on, {unknown}; it knows "
            f"{classes.tolist()}. Use stratified splits, or leave out rows with these labels."
        )
    return np.searchsorted(classes, y)


def calibration_error(
    y: ArrayLike,
    probabilities: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Expected calibration error: the distance of predicted probabilities from frequencies.

    .. math:: \\sum_b \\frac{n_b}{n} \\, \\bigl| \\bar y_b - \\bar p_b \\bigr|

    over bins b of the probabilities, with n_b events in a bin, :math:`\\bar y_b` the share of them
    that happened and :math:`\\bar p_b` their mean probability. The error is zero if events of
    probability p happen in a share p of the cases. With few events in a bin the shares vary:
    perfectly calibrated probabilities, spread over [0, 1], have an error of about
    :math:`0.3 \\sqrt{n_{bins} / n}`.
    Compare models only on the same rows and bins.

    Parameters
    ----------
    y : array-like of shape (n,)
        Whether each event happened: bool, or 0 and 1.
    probabilities : array-like of shape (n,)
        The predicted probabilities.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width in [0, 1], or with equal numbers of events.
    sample_weight : array-like of shape (n,), optional
        Weights of the events, which count as if repeated; bins do not depend on them.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        For events that are not bool, 0 or 1, probabilities outside of [0, 1], fewer than one bin,
        an unknown strategy, negative weights, and arrays of different lengths.

    See Also
    --------
    sklearn.calibration.calibration_curve : The two shares bin by bin.

    Examples
    --------
    Four events of probability 0.2 of which one happened, and one of probability 0.9 that did:

    >>> from skbayes_sg.metrics import calibration_error
    >>> print(round(calibration_error([0, 0, 0, 1, 1], [0.2, 0.2, 0.2, 0.2, 0.9]), 3))
    0.06
    """
    y, p = _finite("y", y), _finite("probabilities", probabilities)
    check_consistent_length(y, p)
    if not np.isin(y, (0.0, 1.0)).all():
        odd = y[~np.isin(y, (0.0, 1.0))][0]
        raise ValueError(f"y must say whether each event happened: bool, or 0 and 1; got {odd:g}.")
    if p.min() < -ROUNDING or p.max() > 1.0 + ROUNDING:
        raise ValueError(f"probabilities must lie in [0, 1], got {p.min():g} to {p.max():g}.")
    p = np.clip(p, 0.0, 1.0)
    bins = bins_of(p, n_bins, strategy)
    weight = _check_sample_weight(sample_weight, p, ensure_non_negative=True)
    return float(np.abs(np.bincount(bins, weight * (y - p))).sum() / weight.sum())


def bins_of(p, n_bins, strategy):
    """The number of the bin, from 0 to n_bins - 1, of each of the probabilities p."""
    return np.searchsorted(_inner_edges(p, n_bins, strategy), p)


def _inner_edges(p, n_bins, strategy):
    """The n_bins - 1 boundaries between bins of equal width, or of equal numbers of events."""
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins!r}.")
    shares = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    if strategy == "uniform":
        return shares
    if strategy == "quantile":
        return np.quantile(p, shares)
    raise ValueError(f"strategy must be 'uniform' or 'quantile', got {strategy!r}.")


def interval_coverage(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of values that lie inside their intervals, ends included.

    Intervals of probability 0.9 from a calibrated model cover 90 % of n new values, with standard
    error sqrt(0.09 / n).

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    lower, upper : array-like of shape (n,)
        The intervals.
    sample_weight : array-like of shape (n,), optional
        Weights of the values in the share.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        For values that are not finite, lower ends above upper ends, negative weights, and arrays of
        different lengths.

    Examples
    --------
    >>> from skbayes_sg.metrics import interval_coverage
    >>> interval_coverage([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0], [1, 2, 2.5, 9])
    0.75
    """
    y, lower, upper = _finite("y", y), column_or_1d(lower), column_or_1d(upper)
    check_consistent_length(y, lower, upper)
    if not (lower <= upper).all():  # also for NaN
        k = int(np.argmin(lower <= upper))
        raise ValueError(
            f"lower must not exceed upper, and neither may be NaN; got {lower[k]:g} and "
            f"{upper[k]:g} at position {k}."
        )
    return _mean((lower <= y) & (y <= upper), sample_weight)


def crps(y: ArrayLike, samples: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Continuous ranked probability score of predictive samples, averaged; smaller is better.

    .. math:: \\mathrm{CRPS}(F, y) = \\int (F(z) - 1[y \\le z])^2 \\, dz
        = \\mathbb{E}|X - y| - \\tfrac12 \\mathbb{E}|X - X'|

    with F the empirical distribution of the samples of a row, and X, X' independent draws from
    F. It has the unit of y, and is the absolute error if all samples of a row are equal.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        The observed values.
    samples : array-like of shape (n_rows, n_samples)
        Draws from the predictive distribution of each row, all with the same weight.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in the mean.

    Returns
    -------
    float
        The mean over the rows.

    References
    ----------
    Gneiting and Raftery (2007). Strictly proper scoring rules, prediction, and estimation.
    *Journal of the American Statistical Association* 102, 359-378.

    Examples
    --------
    One row, predicted to be 0 or 2 with equal chance, observed at 1:

    >>> from skbayes_sg.metrics import crps
    >>> crps([1.0], [[0.0, 2.0]])
    0.5
    """
    y = _finite("y", y)
    X = np.sort(check_array(samples, dtype=np.float64, input_name="samples"), axis=1)
    check_consistent_length(y, X)
    m = X.shape[1]
    # Σ_ij |X_i - X_j| / 2 = Σ_i (2 i - m - 1) X_(i): X_(i) is above i - 1 others and below m - i
    spread = X @ (2.0 * np.arange(1, m + 1) - m - 1) / m**2
    return _mean(np.abs(X - y[:, None]).mean(axis=1) - spread, sample_weight)


def _finite(name, values):
    """The values as a one-dimensional array of finite floats."""
    values = column_or_1d(values)
    return check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
