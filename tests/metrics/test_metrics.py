"""Metrics against values computed by hand, by naive formulas, and by scikit-learn."""

import doctest

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import skbayes_sg.metrics
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.metrics import (
    calibration_error,
    crps,
    interval_coverage,
    ksd_scorer,
    neg_calibration_error_scorer,
    neg_coverage_error_scorer,
    neg_crps_scorer,
    neg_log_predictive_density_scorer,
    unwrapped,
)
from skbayes_sg.priors import Normal

SCORERS = [neg_log_predictive_density_scorer, neg_calibration_error_scorer]


class Stated:
    """A classifier that states the probabilities it is given as X."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        return np.asarray(X, dtype=float)


def test_log_predictive_density_is_the_mean_of_log_p_of_the_labels():
    X = [[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]
    score = neg_log_predictive_density_scorer(Stated(["a", "b", "c"]), X, ["b", "b", "a"])
    assert score == pytest.approx((np.log(0.25) + np.log(0.8) + np.log(0.2)) / 3, rel=1e-14)


def test_log_predictive_density_is_greater_for_better_predictions_and_finite_for_the_worst():
    sure, wrong = [[0.0, 1.0]], [[1.0, 0.0]]
    assert neg_log_predictive_density_scorer(Stated([0, 1]), sure, [1]) == 0.0
    worst = neg_log_predictive_density_scorer(Stated([0, 1]), wrong, [1])
    assert worst == pytest.approx(np.log(2.2250738585072014e-308))


@pytest.mark.slow
@pytest.mark.parametrize("scorer", [neg_crps_scorer, neg_coverage_error_scorer])
def test_scorers_of_regressors_refuse_classifiers(scorer):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), BayesianLogisticRegression(n_draws=50, random_state=0))
    said = (
        f"{scorer.__name__} is for regressors .* scores of classifiers are .*neg_calibration_error"
    )
    with pytest.raises(TypeError, match=said):
        scorer(model.fit(X, y), X, y)


def test_scorers_of_classifiers_refuse_regressors():
    X, y = load_diabetes(return_X_y=True)
    model = BayesianLinearRegression(n_draws=50, random_state=0).fit(X, y)
    said = "neg_calibration_error_scorer is for classifiers .* scores of regressors are .*neg_crps"
    with pytest.raises(TypeError, match=said):
        neg_calibration_error_scorer(model, X, y)


@pytest.mark.parametrize("scorer", SCORERS)
def test_labels_that_were_not_trained_on_are_named(scorer):
    with pytest.raises(ValueError, match=r"not trained on, \['z'\]; it knows \['a', 'b'\]"):
        scorer(Stated(["a", "b"]), [[0.5, 0.5], [0.5, 0.5]], ["a", "z"])


def test_calibration_error_by_hand():
    # bins of width 1/2: two events at a mean of 0.3, none happened; three at 0.8, one happened
    p, y = [0.2, 0.4, 0.7, 0.8, 0.9], [0, 0, 1, 0, 0]
    by_hand = 2 / 5 * 0.3 + 3 / 5 * (0.8 - 1 / 3)
    assert calibration_error(y, p, n_bins=2) == pytest.approx(by_hand, rel=1e-14)
    assert calibration_error(y, p, n_bins=1) == pytest.approx(0.6 - 0.2, rel=1e-14)
    assert calibration_error([1, 0, 1], [1.0, 0.0, 1.0]) == 0.0
    assert calibration_error([False, True], [1.0, 0.0]) == 1.0


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_error_is_the_weighted_gap_of_the_calibration_curve(strategy):
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p**2
    shares, means = calibration_curve(y, p, n_bins=7, strategy=strategy)
    edges = np.linspace(0, 1, 8) if strategy == "uniform" else np.quantile(p, np.linspace(0, 1, 8))
    counts = np.histogram(p, edges)[0]
    expected = (counts / 500 * np.abs(shares - means)).sum()
    error = calibration_error(y, p, n_bins=7, strategy=strategy)
    assert error == pytest.approx(expected, rel=1e-12)


def test_calibration_error_of_calibrated_events_is_of_the_order_that_the_docstring_states():
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(200):
        p = rng.random(1000)
        errors.append(calibration_error(rng.random(1000) < p, p))
    assert np.mean(errors) == pytest.approx(0.3 * np.sqrt(10 / 1000), rel=0.15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 2], [0.1, 0.2]), "whether each event happened"),
        (([0, 1], [0.1, 1.2]), r"in \[0, 1\], got 0.1 to 1.2"),
        (([0, 1], [0.1, np.nan]), "NaN"),
        (([0, 1, 1], [0.1, 0.2]), "inconsistent"),
    ],
)
def test_calibration_error_rejects_what_is_no_probability(arguments, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(*arguments)


@pytest.mark.parametrize("wrong", [{"n_bins": 0}, {"strategy": "kmeans"}])
def test_calibration_error_rejects_unknown_bins(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        calibration_error([0, 1], [0.1, 0.9], **wrong)


def test_calibration_scorer_takes_the_second_class_of_two():
    X = [[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8], [0.1, 0.9]]
    score = neg_calibration_error_scorer(Stated(["no", "yes"]), X, ["no", "no", "yes", "no", "no"])
    assert score == -calibration_error([0, 0, 1, 0, 0], [0.2, 0.4, 0.7, 0.8, 0.9])
    assert score == pytest.approx(-(0.2 + 0.4 + 0.3 + 0.8 + 0.9) / 5)  # one event a bin


def test_calibration_scorer_takes_the_predicted_class_of_several():
    X = [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]
    score = neg_calibration_error_scorer(Stated([1, 2, 3]), X, [1, 2])
    assert score == pytest.approx(-(0.4 + 0.7) / 2)


def test_interval_coverage_counts_the_ends():
    y = [0.0, 1.0, 2.0, 3.0, 4.0]
    assert interval_coverage(y, [0, 0, 0, 0, 0], [0, 0.5, 2, 2.5, 9]) == 0.6
    assert interval_coverage(y, np.full(5, -np.inf), np.full(5, np.inf)) == 1.0


@pytest.mark.parametrize(("lower", "upper"), [([1.0], [0.0]), ([np.nan], [1.0])])
def test_interval_coverage_rejects_what_is_no_interval(lower, upper):
    with pytest.raises(ValueError, match="lower must not exceed upper"):
        interval_coverage([0.5], lower, upper)


def test_crps_by_hand():
    assert crps([3.0], [[1.0, 1.0]]) == 2.0  # a point: the absolute error
    # samples 0, 1, 5 at y = 2: mean |X - y| = (2 + 1 + 3) / 3, mean |X - X'| = 2 (1 + 5 + 4) / 9
    assert crps([2.0], [[1.0, 5.0, 0.0]]) == pytest.approx(2 - 10 / 9, rel=1e-14)
    assert crps([3.0, 2.0], [[1, 1, 1], [0, 1, 5]]) == pytest.approx((2 + 8 / 9) / 2, rel=1e-14)


def test_crps_against_all_pairs_and_against_the_law_of_a_normal():
    rng = np.random.default_rng(2)
    y, X = rng.standard_normal(3), rng.standard_normal((3, 4000))
    pairs = np.abs(X[:, :200, None] - X[:, None, :200]).mean(axis=(1, 2))
    naive = (np.abs(X[:, :200] - y[:, None]).mean(axis=1) - pairs / 2).mean()
    assert crps(y, X[:, :200]) == pytest.approx(naive, rel=1e-12)
    of_normal = 2 / np.sqrt(2 * np.pi) - 1 / np.sqrt(np.pi)  # 2 φ(0) - 1/√π, at y = 0
    assert crps(np.zeros(3), X) == pytest.approx(of_normal, rel=0.03)


@pytest.mark.parametrize("wrong", [[[0.0, np.inf]], [[0.0, 1.0], [0.0, 1.0]], [0.0]])
def test_crps_rejects_samples_that_do_not_fit(wrong):
    with pytest.raises(ValueError, match=r"infinity|inconsistent|2D"):
        crps([1.0], wrong)


@pytest.fixture(scope="module")
def pipeline():
    X, y = load_wine(return_X_y=True, as_frame=True)
    y = y.map({0: "barolo", 1: "grignolino", 2: "barbera"})
    classifier = BayesianLogisticRegression(n_draws=100, n_chains=2, random_state=0)
    return make_pipeline(StandardScaler(), classifier).fit(X, y), X, y


@pytest.mark.slow
def test_scorers_see_through_pipelines(pipeline):
    model, X, y = pipeline
    inner = model[:-1].transform(X)
    for scorer in SCORERS:
        assert scorer(model, X, y) == scorer(model[-1], inner, y)


def test_log_predictive_density_is_the_negated_log_loss(pipeline):
    ours, theirs = (f(*pipeline) for f in (SCORERS[0], get_scorer("neg_log_loss")))
    assert ours == pytest.approx(theirs, rel=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_through_a_pipeline_by_two_scorers():
    X, y = load_wine(return_X_y=True)
    classifier = BayesianLogisticRegression(prior=Normal(), n_draws=50, n_chains=2, random_state=0)
    model = Pipeline([("scale", StandardScaler()), ("clf", classifier)])
    search = GridSearchCV(
        model, {"clf__prior__scale": [1e-3, 1.0]}, cv=2, refit="density",
        scoring={"density": SCORERS[0], "calibration": SCORERS[1]},
    )  # fmt: skip
    search.fit(X, y)
    results = search.cv_results_
    assert search.best_params_ == {"clf__prior__scale": 1.0}
    # coefficients held at zero: the base rates, log 3 or a little less
    assert results["mean_test_density"][0] == pytest.approx(-1.09, abs=0.02)
    assert results["mean_test_density"][1] > -0.2
    assert -1 < results["mean_test_calibration"].min() <= results["mean_test_calibration"].max() < 0
    assert SCORERS[0](search, X, y) == SCORERS[0](search.best_estimator_, X, y)


@pytest.mark.slow
def test_examples():
    failed, ran = doctest.testmod(skbayes_sg.metrics.scores)
    assert failed == 0
    assert ran > 10


# -- regressors -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def regression():
    X, y = load_diabetes(return_X_y=True)
    model = BayesianLinearRegression(n_draws=200, random_state=0)
    pipe = make_pipeline(StandardScaler(), model).fit(X[:300], y[:300])
    return pipe, X[300:], y[300:]


def test_scores_of_a_regressor_by_hand(regression):
    pipe, X, y = regression
    Z, model = pipe[:-1].transform(X), pipe[-1]
    density = model.predict_log_density(Z, y).mean()
    assert neg_log_predictive_density_scorer(pipe, X, y) == density
    lower, upper = model.predict_interval(Z)
    covered = ((lower <= y) & (y <= upper)).mean()
    assert neg_coverage_error_scorer(pipe, X, y) == -abs(covered - 0.9)
    draws = model.sample_y(Z, 200, random_state=0)
    pairs = np.abs(draws[:, :, None] - draws[:, None, :]).mean(axis=(1, 2))
    expected = (np.abs(draws - y[:, None]).mean(axis=1) - 0.5 * pairs).mean()
    assert np.isclose(neg_crps_scorer(pipe, X, y), -expected)


OF_NUMBERS = [neg_log_predictive_density_scorer, neg_crps_scorer, neg_coverage_error_scorer]


@pytest.mark.parametrize("scorer", OF_NUMBERS)
def test_weights_of_numbers_are_those_of_the_rows(scorer, regression):
    """Draws of repeated rows differ, so that only weights of zero leave the score as it is."""
    pipe, X, y = regression
    there = np.arange(len(y)) < 100
    rows = scorer(pipe, X[there], y[there])
    np.testing.assert_allclose(scorer(pipe, X, y, sample_weight=3.0 * there), rows, rtol=0.02)
    assert scorer(pipe, X, y, sample_weight=np.ones(len(y))) == pytest.approx(scorer(pipe, X, y))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        scorer(pipe, X, y, sample_weight=np.where(there, -1.0, 1.0))


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_labels_count_like_repeated_rows(scorer, n_classes):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(n_classes), 40)
    y, weight = rng.integers(0, n_classes, 40), rng.integers(0, 4, 40)
    model, again = Stated(range(n_classes)), np.repeat(np.arange(40), weight)
    expected = scorer(model, P[again], y[again])
    assert scorer(model, P, y, sample_weight=weight) == pytest.approx(expected)


def test_weights_of_crps_and_coverage_count_like_repeated_rows():
    rng = np.random.default_rng(0)
    y, draws, weight = rng.normal(size=40), rng.normal(size=(40, 9)), rng.integers(0, 4, 40)
    again = np.repeat(np.arange(40), weight)
    assert crps(y, draws, sample_weight=weight) == pytest.approx(crps(y[again], draws[again]))
    ends = np.quantile(draws, [0.2, 0.8], axis=1)
    expected = interval_coverage(y[again], *ends[:, again])
    assert interval_coverage(y, *ends, sample_weight=weight) == pytest.approx(expected)


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_use_weights_that_are_routed(scorer):
    X, y = load_wine(return_X_y=True)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = BayesianLogisticRegression(n_draws=50, random_state=0)
    half = np.arange(len(y)) % 2 == 0
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            model.set_fit_request(sample_weight=True), X, y, cv=[(half, ~half)], scoring=scorer,
            params={"sample_weight": weight},
        )  # fmt: skip
    model.fit(X[half], y[half], sample_weight=weight[half])
    expected = scorer(model, X[~half], y[~half], sample_weight=weight[~half])
    assert found["test_score"][0] == pytest.approx(expected)
    assert expected != pytest.approx(scorer(model, X[~half], y[~half]), rel=1e-3)


@pytest.mark.slow
def test_scores_in_a_search(regression):
    _, X, y = regression
    scores = {
        "density": neg_log_predictive_density_scorer, "crps": neg_crps_scorer,
        "coverage": neg_coverage_error_scorer,
    }  # fmt: skip
    model = BayesianLinearRegression(prior=Normal(), n_draws=50, n_chains=2, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"bayesianlinearregression__prior__scale": [1e-3, 100.0]},
        scoring=scores, refit="density", cv=2, error_score="raise",
    ).fit(X, y)  # fmt: skip
    assert search.best_params_ == {"bayesianlinearregression__prior__scale": 100.0}
    assert search.cv_results_["mean_test_crps"].argmax() == 1
    for score in scores.values():
        assert np.isfinite(score(search, X, y))


def test_methods_of_the_last_step_of_pipelines_and_searches():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    columns = ColumnTransformer([("scaled", StandardScaler(), ["age", "bmi"])])
    pipe = make_pipeline(columns, BayesianLinearRegression(n_draws=50, random_state=0))
    grid = {"bayesianlinearregression__prior__scale": [1.0, 100.0]}
    search = GridSearchCV(pipe, grid, cv=2).fit(X[:200], y[:200])
    model, rows = unwrapped(search, X[200:])
    assert model is search.best_estimator_[-1]
    assert np.array_equal(rows, search.best_estimator_[0].transform(X[200:]))
    assert np.array_equal(model.predict(rows), search.predict(X[200:]))
    assert unwrapped(model, rows) == (model, rows)
    outer = Pipeline([("columns", columns), ("search", clone(search).set_params(estimator=model))])
    outer.set_params(search__param_grid={"prior__scale": [1.0]}).fit(X[:200], y[:200])
    inner, rows = unwrapped(outer, X[200:])
    lower, upper = inner.predict_interval(rows)
    assert inner is outer[-1].best_estimator_
    search_of_searches = GridSearchCV(outer, {"columns__sparse_threshold": [0.3]}, cv=2)
    search_of_searches.fit(X[:200], y[:200])
    for nested in (outer, search_of_searches):
        last, _ = unwrapped(nested, X)
        with_scores = last.posterior_.with_scores(-last.posterior_.flat)
        last.posterior_ = with_scores
        assert ksd_scorer(nested, X, y) == ksd_scorer(last)
    assert 0.8 < interval_coverage(y[200:], lower, upper) < 0.97
