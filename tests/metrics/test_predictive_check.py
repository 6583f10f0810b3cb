"""Posterior predictive checks: uniform for the right model, small for a wrong one."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPMF,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg._base import streams
from skbayes_sg.metrics import (
    PredictiveCheck,
    neg_coverage_error_scorer,
    neg_crps_scorer,
    posterior_predictive_check,
)

pytestmark = pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")


def poisson(eta, rng):
    return rng.poisson(np.exp(eta))


def clustered(eta, rng):
    return rng.poisson(np.exp(eta) * rng.gamma(1.0, 1.0, len(eta)))


def normal(eta, rng):
    return eta + rng.normal(size=len(eta))


def heavy(eta, rng):
    return eta + rng.standard_t(2.0, len(eta))


def binary(eta, rng):
    return (eta + rng.logistic(size=len(eta)) > 0.0).astype(int)


def several(eta, rng):
    return (np.column_stack([eta, -eta, 0 * eta]) + rng.gumbel(size=(len(eta), 3))).argmax(axis=1)


def rows_of(response, seed, n=160):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, response(0.8 + X @ [0.7, -0.4], rng)


def checked(estimator, response, seed, n=160, n_draws=99, **options):
    """Fitted to half of the rows, and checked on the others."""
    X, y = rows_of(response, seed, n)
    half = n // 2
    model = estimator(random_state=seed, **options).fit(X[:half], y[:half])
    return posterior_predictive_check(model, X[half:], y[half:], n_draws=n_draws, random_state=seed)


# -- right models ----------------------------------------------------------------------------------

RIGHT = [
    (BayesianLinearRegression, normal, 60),
    pytest.param(BayesianPoissonRegressor, poisson, 60, marks=pytest.mark.slow),
    pytest.param(BayesianNegativeBinomialRegressor, clustered, 60, marks=pytest.mark.slow),
    (BayesianLogisticRegression, binary, 60),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "response", "n_fits"), RIGHT, ids=lambda x: getattr(x, "__name__", str(x))
)
def test_p_values_of_right_models_are_uniform(estimator, response, n_fits):
    """Of rows that the fit has not seen: their mean and mean square within four standard errors.

    Those of the largest of few values take few values themselves, so that squares are left out.
    """
    found = [checked(estimator, response, seed).p_values for seed in range(n_fits)]
    for name in found[0]:
        p = np.array([one[name] for one in found])
        assert abs(p.mean() - 0.5) < 4.0 / np.sqrt(12.0 * n_fits), name
        assert (p < 0.1).mean() < 0.1 + 4.0 * np.sqrt(0.09 / n_fits), name


@pytest.mark.slow
def test_p_values_of_the_rows_of_the_fit_are_not_smaller():
    p = []
    for seed in range(40):
        X, y = rows_of(normal, seed, 60)
        model = BayesianLinearRegression(random_state=seed).fit(X, y)
        p.append(posterior_predictive_check(model, X, y, n_draws=99).p_values["dispersion"])
    assert np.mean(p) > 0.5
    assert np.min(p) > 0.1  # the noise has adapted


# -- wrong models ----------------------------------------------------------------------------------


@pytest.mark.slow_except("2")
@pytest.mark.parametrize("seed", range(3))
def test_overdispersed_counts_tell_the_two_regressions_apart(seed):
    wrong = checked(BayesianPoissonRegressor, clustered, seed, n=600, n_draws=500)
    right = checked(BayesianNegativeBinomialRegressor, clustered, seed, n=600, n_draws=500)
    assert set(wrong.surprising()) >= {"dispersion", "zeros"}
    assert wrong.p_values["dispersion"] == 2.0 * 0.5 / 501
    assert not right.surprising(0.003)


def skewed(eta, rng):
    return eta + rng.exponential(size=len(eta))


def with_more_zeros(eta, rng):
    return poisson(eta, rng) * (rng.random(len(eta)) < 0.7)


@pytest.mark.parametrize(
    ("estimator", "response", "statistic"),
    [
        (BayesianLinearRegression, heavy, "tails"),
        (BayesianLinearRegression, skewed, "skewness"),
        (BayesianPoissonRegressor, with_more_zeros, "zeros"),
    ],
)
def test_other_wrong_models_are_found(estimator, response, statistic):
    assert statistic in checked(estimator, response, 1, n=800, n_draws=300).surprising()


def test_a_wrong_classifier_is_found():
    X, y = rows_of(binary, 0, 2000)
    model = BayesianLogisticRegression(random_state=0).fit(X[:1000], y[:1000])
    right = posterior_predictive_check(model, X[1000:], y[1000:])
    assert not right.surprising()
    wrong = posterior_predictive_check(model, 3.0 * X[1000:], y[1000:])  # too sure of itself
    assert {"calibration", "log loss"} <= set(wrong.surprising())


@pytest.mark.slow
def test_heavy_tails_are_no_surprise_to_a_robust_regression():
    check = checked(BayesianRobustRegression, heavy, 0, n=400)
    assert list(check.observed) == ["dispersion", "skewness", "tails"]
    assert not check.surprising(0.005)


# -- what is computed ------------------------------------------------------------------------------


def test_statistics_by_hand():
    X, y = rows_of(clustered, 0, 100)
    model = BayesianPoissonRegressor(n_draws=100, random_state=0).fit(X, y)
    check = posterior_predictive_check(model, X, y, n_draws=20, random_state=3)
    mean, std = model.predict(X, return_std=True)
    z = (y - mean) / std
    wanted = {"dispersion": (z**2).mean(), "zeros": (y == 0).mean(), "tails": np.abs(z).max()}
    assert check.observed == pytest.approx(wanted)
    made = model.sample_y(X, 20, random_state=streams.seed_of(3) % 2**32)
    np.testing.assert_allclose(check.replicated["zeros"], (made == 0.0).mean(axis=0))


def test_exposures_of_counts():
    rng = np.random.default_rng(0)
    X, exposure = rng.normal(size=(600, 2)), rng.lognormal(size=600)
    y = rng.poisson(exposure * np.exp(1.0 + X[:, 0]))
    model = BayesianPoissonRegressor(random_state=0).fit(X[:300], y[:300], exposure=exposure[:300])
    rows = X[300:], y[300:]
    assert not posterior_predictive_check(model, *rows, exposure=exposure[300:]).surprising(0.003)
    for compare in (posterior_predictive_check, neg_crps_scorer, neg_coverage_error_scorer):
        with pytest.warns(UserWarning, match=f"exposures, and {compare.__name__} was given none"):
            found = compare(model, *rows)
        assert found.surprising() if compare is posterior_predictive_check else found < -0.01


def test_p_values_by_hand():
    made = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([1.0, 1.0, 1.0])}
    check = PredictiveCheck("Model", 5, {"a": 2.5, "b": 1.0}, made)
    assert check.p_values == {"a": 2 * 1.5 / 4, "b": 1.0}
    assert "Model: 5 rows, 3 replications" in repr(check)
    assert check.to_frame().loc["b"].tolist() == [1.0, 1.0, 1.0, 1.0]


@pytest.mark.slow
def test_labels_of_classes_are_replicated_by_their_probabilities():
    X, y = rows_of(several, 0, 90)
    names = np.array(["x", "y", "z"])[y]
    model = BayesianLogisticRegression(n_draws=500, random_state=0).fit(X, names)
    share = {str(k): lambda codes, p, k=k: (codes == k).mean() for k in range(3)}
    check = posterior_predictive_check(model, X, names, n_draws=400, statistics=share)
    p = model.predict_proba(X)
    for k in range(3):
        assert check.observed[str(k)] == (y == k).mean()
        error = np.sqrt((p[:, k] * (1.0 - p[:, k])).sum()) / 90
        assert abs(check.replicated[str(k)].mean() - p[:, k].mean()) < 10.0 * error / np.sqrt(400)
    assert not posterior_predictive_check(model, X, names, n_draws=100).surprising()


def test_own_statistics_pipelines_and_ratings():
    X, y = rows_of(normal, 0)
    pipe = make_pipeline(StandardScaler(), BayesianLinearRegression(random_state=0)).fit(X, y)
    own = {"largest": lambda y, mean, std: y.max()}
    check = posterior_predictive_check(pipe, X, y, statistics=own, n_draws=50)
    assert check.observed == {"largest": y.max()}
    pairs = np.column_stack(np.divmod(np.arange(120), 12))
    ratings = BayesianPMF(rank=2, n_draws=10, n_warmup=5, random_state=0).fit(pairs, y[:120])
    assert len(posterior_predictive_check(ratings, pairs, y[:120], n_draws=9).p_values) == 3


def test_blocks_make_no_difference(monkeypatch):
    X, y = rows_of(binary, 0)
    model = BayesianLogisticRegression(n_draws=100, random_state=0).fit(X, y)
    monkeypatch.setattr("skbayes_sg.metrics.predictive_check.BLOCK", 1000)
    check = posterior_predictive_check(model, X, y, n_draws=50)
    assert len(check.replicated["tails"]) == 50
    X, y = rows_of(poisson, 0)
    model = BayesianPoissonRegressor(n_draws=100, random_state=0).fit(X, y)
    check = posterior_predictive_check(model, X, y, n_draws=50)
    assert len(np.unique(check.replicated["dispersion"])) == 50


# -- bad input -------------------------------------------------------------------------------------


def test_what_cannot_be_checked():
    X, y = rows_of(binary, 0)
    model = BayesianLogisticRegression(n_draws=20, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="BayesianLogisticRegression has no exposures"):
        posterior_predictive_check(model, X, y, exposure=np.ones(len(y)))
    with pytest.raises(ValueError, match="label 7, which is not among the classes"):
        posterior_predictive_check(model, X, np.where(y == 1, 7, 0))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        posterior_predictive_check(model, X, y[1:])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        posterior_predictive_check(model, X, np.where(y == 1, np.nan, 0.0))
    with pytest.raises(NotFittedError):
        posterior_predictive_check(BayesianLogisticRegression(), X, y)
    with pytest.raises(ValueError, match="n_draws must be an int"):
        posterior_predictive_check(model, X, y, n_draws=0)
    with pytest.raises(TypeError, match="classifier or regressor of this package"):
        posterior_predictive_check(LinearRegression().fit(X, y), X, y)


@pytest.mark.slow
def test_probabilities_that_fit_too_well_are_not_surprising():
    """The rows of the fit are used twice, so that the distance of calibration is small there."""
    made = np.arange(500.0)
    check = PredictiveCheck(
        "", 9, {"calibration": -1.0, "tails": -1.0}, dict.fromkeys(("calibration", "tails"), made)
    )
    assert check.surprising() == ["tails"]
    above = PredictiveCheck("", 9, {"calibration": 500.0}, {"calibration": made})
    assert above.p_values["calibration"] == pytest.approx(0.5 / 501)
    rng, surprising = np.random.default_rng(3), 0
    for _ in range(40):
        X = rng.normal(size=(100, 3))
        y = rng.logistic(size=100) < X[:, 0] - 1.0
        model = BayesianLogisticRegression(n_draws=100, random_state=0).fit(X, y)
        surprising += "calibration" in posterior_predictive_check(model, X, y).surprising()
    assert surprising <= 2
