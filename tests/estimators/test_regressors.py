"""Regressors: shapes, predictions by hand, symmetries, bad inputs."""

import re
import warnings
from types import SimpleNamespace

import estimators
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge, PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLinearRegression, BayesianPoissonRegressor, BayesianRobustRegression
from skbayes_sg.engine import metropolis
from skbayes_sg.engine.target import Target
from skbayes_sg.estimators import _at_all_draws
from skbayes_sg.estimators.robust import _resolution
from skbayes_sg.exceptions import (
    InvalidParameterError,
    MultimodalPosteriorWarning,
    PriorConflictWarning,
    SamplerConvergenceWarning,
    SamplerDivergedError,
)
from skbayes_sg.inspection.full_scores import full_scores
from skbayes_sg.models import Robust
from skbayes_sg.priors import Flat, HalfNormal, InverseGamma, Laplace, Normal, StudentT
from skbayes_sg.recipe.final_run import Production
from skbayes_sg.recipe.request import Request
from skbayes_sg.schedules import Constant

pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)
REGRESSORS = {  # "linear", "poisson", ...
    re.sub("Bayesian|Regression|Regressor", "", name).lower(): estimators.CLASSES[name]
    for name in estimators.REGRESSORS
}
COUNTS = "poisson", "negativebinomial"
every = pytest.mark.parametrize("kind", REGRESSORS)


def quick(kind="linear", **options):
    return REGRESSORS[kind](**{"n_draws": 25, "n_chains": 2, "random_state": 0} | options)


def data(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, rng.poisson(np.exp(0.5 + X[:, 0])).astype(float)


X, y = data()


# -- shapes and values ------------------------------------------------------------------------


@pytest.mark.slow_for("robust")
@every
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_shapes(kind, fit_intercept):
    model = quick(kind, fit_intercept=fit_intercept).fit(X, y)
    extras = {
        "linear": ["noise_std"], "poisson": [], "robust": ["noise_std", "df"],
        "negativebinomial": ["dispersion"],
    }[kind]  # fmt: skip
    names = ["coef"] + ["intercept"] * fit_intercept + extras
    assert list(model.posterior_.names) == names
    assert model.coef_.shape == model.coef_std_.shape == (3,)
    assert np.shape(model.intercept_) == np.shape(model.intercept_std_) == ()
    assert fit_intercept or model.intercept_ == 0.0
    for name in extras:
        draws = model.posterior_[name]
        assert draws.shape == (2, 25)
        assert (draws > 0.0).all()
        assert getattr(model, f"{name}_") == draws.mean()
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == model.predict(X).shape == (60,)
    assert np.array_equal(mean, model.predict(X))
    assert model.predict_quantiles(X, [0.1, 0.2, 0.3]).shape == (60, 3)
    assert model.predict_quantiles(X, 0.5).shape == (60,)
    assert model.sample_y(X, 70).shape == (60, 70)
    assert all(part.shape == (60,) for part in model.predict_std_components(X))


def law_of(kind, model, rows):
    """The frozen laws of y, (rows, draws), by SciPy."""
    posterior = model.posterior_
    eta = rows @ posterior["coef"].reshape(-1, 3).T + posterior["intercept"].ravel()
    if kind == "poisson":
        return stats.poisson(np.exp(eta))
    if kind == "negativebinomial":
        m = posterior["dispersion"].ravel() * np.exp(eta)
        return stats.nbinom(1.0 / posterior["dispersion"].ravel(), 1.0 / (1.0 + m))
    sigma = posterior["noise_std"].ravel()
    if kind == "linear":
        return stats.norm(eta, sigma)
    return stats.t(posterior["df"].ravel(), eta, sigma)


@every
def test_predictions_by_hand(kind):
    model, rows = quick(kind).fit(X, y), X[:5]
    law = law_of(kind, model, rows)
    mean, std = model.predict(rows, return_std=True)
    centre = law.median() if kind == "robust" else law.mean()  # df <= 1 has no mean
    assert np.allclose(mean, centre.mean(axis=1), rtol=1e-12)
    noise = law.var() if kind != "robust" else np.where(law.args[0] > 2.0, law.var(), np.inf)
    total = noise.mean(axis=1) + centre.var(axis=1)
    assert np.allclose(std, np.sqrt(total), rtol=1e-12)
    epistemic, aleatoric = model.predict_std_components(rows)
    assert np.allclose(epistemic, centre.std(axis=1), rtol=1e-12)
    assert np.allclose(aleatoric, np.sqrt(noise.mean(axis=1)), rtol=1e-12)
    log_density = law.logpmf if kind in COUNTS else law.logpdf
    expected = np.log(np.exp(log_density(y[:5, None])).mean(axis=1))
    assert np.allclose(model.predict_log_density(rows, y[:5]), expected, rtol=1e-10)


@pytest.mark.slow_for("robust")
@every
def test_quantiles_invert_the_mixture(kind):
    model, rows, q = quick(kind).fit(X, y), X[:8], np.array([0.001, 0.05, 0.5, 0.95, 0.999])
    found = model.predict_quantiles(rows, q)
    law = law_of(kind, model, rows)
    for k, share in enumerate(q):
        reached = law.cdf(found[:, k, None]).mean(axis=1)
        off = 0.01 * min(share, 1.0 - share)
        if kind in COUNTS:
            assert (reached >= share - off).all()
            assert (law.cdf(found[:, k, None] - 1.0).mean(axis=1) < share + off).all()
        else:
            assert np.abs(reached - share).max() < off
    lower, upper = model.predict_interval(rows, 0.9)
    assert np.allclose(lower, found[:, 1], rtol=1e-6, atol=1e-6)
    assert np.allclose(upper, found[:, 3], rtol=1e-6, atol=1e-6)
    # Row by row the same: nothing is random, nothing depends on the other rows.
    alone = np.concatenate([model.predict_quantiles(rows[[i]], q) for i in range(8)])
    assert np.allclose(alone, found, rtol=1e-6, atol=1e-6)


@every
def test_samples_have_the_predictive_law(kind):
    model = quick(kind, n_draws=500).fit(X, y)
    rows, n = X[[3]], 20_000
    samples = model.sample_y(np.repeat(rows, n, axis=0), 1, random_state=1)[:, 0]
    one = model.sample_y(rows, 1000, random_state=1)[0]
    law = law_of(kind, model, rows)
    below = law.cdf(np.median(one)).mean()
    assert abs((one <= np.median(one)).mean() - below) < 5.0 * np.sqrt(0.25 / 1000)
    # All rows of a column share their draw of the posterior: less spread than the whole.
    if kind == "linear":
        assert np.abs(samples.std() / model.posterior_["noise_std"] - 1.0).min() < 0.03
        total = model.predict(rows, return_std=True)[1][0]
        assert abs(one.std() / total - 1.0) < 5.0 / np.sqrt(2000)


@pytest.mark.slow_for("robust")
@every
def test_predictions_in_bounded_memory_are_the_same(kind):
    model = quick(kind).fit(X, y)
    whole = model.predict(X, return_std=True)
    with sklearn.config_context(working_memory=1e-3):
        parts = model.predict(X, return_std=True)
        quantiles = model.predict_quantiles(X, [0.1, 0.9])
    assert np.allclose(whole, parts, rtol=1e-12)
    assert np.allclose(quantiles, model.predict_quantiles(X, [0.1, 0.9]), rtol=1e-6, atol=1e-6)


def test_draws_with_weights_count_by_weight():
    from skbayes_sg.schedules import Polynomial

    model = quick(
        sampler="sgld", gradient="control_variate", step_size=Polynomial(0.5, 1.0, 0.5),
        batch_size=20, n_warmup=10, thin=2,
    ).fit(X, y)  # fmt: skip
    weights = np.tile(model.posterior_.weights, 2)
    law = law_of("linear", model, X[:4])
    mean, std = model.predict(X[:4], return_std=True)
    assert np.allclose(mean, np.average(law.mean(), axis=1, weights=weights))
    spread = np.average((law.mean() - mean[:, None]) ** 2, axis=1, weights=weights)
    assert np.allclose(std**2, spread + np.average(law.var(), axis=1, weights=weights))
    q = model.predict_quantiles(X[:4], 0.2)
    assert np.allclose(np.average(law.cdf(q[:, None]), axis=1, weights=weights), 0.2, atol=1e-4)


# -- symmetries -------------------------------------------------------------------------------


@pytest.mark.slow_except("linear-normal")
@pytest.mark.parametrize("prior", ["normal", "laplace"])
@pytest.mark.parametrize("kind", ["linear", "robust"])
def test_the_unit_of_the_response_does_not_matter(kind, prior):
    """Powers of two change no digit of y: draws are the same, but for the order of rounding."""
    Y = X[:, 0] + np.random.default_rng(1).standard_t(2, 60)
    one = quick(kind, prior=prior).fit(X, Y)
    for unit in (2.0**33, 2.0**-33, 2.0**190, 2.0**-190):
        other = quick(kind, prior=prior).fit(X, unit * Y)
        for name in one.posterior_.names:
            in_units = 1.0 if name == "df" else unit
            np.testing.assert_allclose(
                other.posterior_[name] / in_units, one.posterior_[name], rtol=1e-5, atol=1e-6
            )


def test_units_make_no_difference():
    model = quick(n_draws=500).fit(X, y)
    scales = np.array([1e-6, 1e8, 3.0])
    other = quick(n_draws=500).fit(X * scales, 1e4 * y + 1e6)
    assert np.allclose(other.coef_ * scales / 1e4, model.coef_, rtol=1e-6, atol=1e-8)
    assert np.allclose(other.coef_std_ * scales / 1e4, model.coef_std_, rtol=1e-6)
    assert np.isclose(other.noise_std_ / 1e4, model.noise_std_, rtol=1e-6)
    assert np.isclose((other.intercept_ - 1e6) / 1e4, model.intercept_, rtol=1e-6, atol=1e-6)


def intercept_of_zeros(Z, scale, noise):
    """(sd of the intercept, mean of σ) for y = 0, β ~ N(0, scale²), σ ~ half t_3: by quadrature."""
    values, U = np.linalg.eigh(np.square(scale) * Z @ Z.T)
    ones, sigma = np.square(U.T @ np.ones(len(Z))), np.geomspace(1e-4, 1e3, 4001) * noise
    total = values + np.square(sigma)[:, None]
    precision = (ones / total).sum(axis=1)
    log_p = -0.5 * (np.log(total).sum(axis=1) + np.log(precision)) + np.log(sigma)
    p = np.exp(log_p + stats.t.logpdf(sigma / noise, 3) - log_p.max())
    return np.sqrt(p @ (1.0 / precision) / p.sum()), p @ sigma / p.sum()


@pytest.mark.parametrize("seed", range(3))
def test_a_constant_response_of_fewer_rows_than_columns(seed):
    """It moves the intercept alone: the spread of the coefficients is that of their prior."""
    Z = np.random.default_rng(seed).normal(size=(20, 25))
    model = BayesianLinearRegression(prior=Normal(scale=2.0), random_state=seed)
    sd, sigma = intercept_of_zeros(Z, 2.0, 1.0)
    zero = model.fit(Z, np.zeros(20)).posterior_
    one = clone(model).fit(Z, np.ones(20)).posterior_
    assert abs(one.mean("intercept") - 1.0) < 5.0 * sd / np.sqrt(4000)
    assert abs(one.std("intercept") / sd - 1.0) < 0.08
    assert abs(one.mean("noise_std") / sigma - 1.0) < 0.1
    np.testing.assert_allclose(one["coef"], zero["coef"], atol=1e-6)
    np.testing.assert_allclose(one["intercept"], zero["intercept"] + 1.0, atol=1e-6)


def test_a_constant_response_beside_a_constant_column():
    """Its residual in the triangular factor is rounding, and no reference for the noise."""
    Z = np.column_stack([np.full(3514, 4.7), np.random.default_rng(1).normal(size=3514)])
    with pytest.warns(SamplerConvergenceWarning, match="degenerate"):
        model = BayesianLinearRegression(random_state=0).fit(Z, np.full(3514, 3.6))
    np.testing.assert_allclose(model.predict(Z), 3.6, rtol=1e-9)


@pytest.mark.slow_for("robust")
@every
def test_weights_are_repetitions(kind):
    weights = np.arange(60) % 3
    weighted = quick(kind).fit(X, y, sample_weight=weights)
    repeated = quick(kind).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert np.allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-9)
    assert np.allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)


@pytest.mark.slow_for("robust")
@every
@pytest.mark.parametrize(
    "form", [sparse.csr_matrix, sparse.csc_array, np.asfortranarray, pd.DataFrame, np.float32]
)
def test_forms_of_X(kind, form):
    rounded = X.astype(np.float32).astype(np.float64)
    expected, got = quick(kind).fit(rounded, y), quick(kind).fit(form(rounded), y)
    assert np.array_equal(expected.posterior_.flat, got.posterior_.flat)
    assert np.allclose(expected.predict(rounded), got.predict(form(rounded)))


@pytest.mark.slow_for("robust", "negativebinomial")
@every
def test_threads_and_copies_make_no_difference(kind):
    model = quick(kind).fit(X, y)
    for other in (clone(model), quick(kind, n_jobs=2)):
        assert np.array_equal(other.fit(X, y).posterior_.flat, model.posterior_.flat)
    assert not np.array_equal(quick(kind, random_state=1).fit(X, y).coef_, model.coef_)


def test_known_noise():
    model = quick(noise=0.5, n_draws=2000).fit(X, y)
    assert model.noise_std_ == 0.5
    assert "noise_std" not in model.posterior_
    A = np.column_stack([X, np.ones(60)])
    of_prior = np.diag([*(X.std(axis=0) / (2.5 * y.std())) ** 2, 0.0])
    covariance = np.linalg.inv(A.T @ A / 0.25 + of_prior)
    mean = covariance @ A.T @ y / 0.25
    sd = np.sqrt(np.diag(covariance))
    assert np.abs((np.r_[model.coef_, model.intercept_] - mean) / sd).max() < 5.0 / np.sqrt(4000)
    assert np.abs(np.r_[model.coef_std_, model.intercept_std_] / sd - 1.0).max() < 5 / np.sqrt(8000)
    std = model.predict(X[:2], return_std=True)[1]
    spread = np.einsum("ij,jk,ik->i", A[:2], covariance, A[:2])
    assert np.allclose(std, np.sqrt(0.25 + spread), rtol=0.01)


def test_what_auto_chooses():
    assert quick().fit(X, y).sampler_ == "exact"
    assert quick(prior="flat").fit(X, y).sampler_ == "exact"
    assert quick(prior="laplace").fit(X, y).sampler_ in ("importance", "hmc")
    assert quick(sampler="hmc").fit(X, y).sampler_ == "hmc"
    assert quick(batch_size=10).fit(X, y).sampler_ == "baoab"
    model = quick().fit(X, y)
    assert np.isnan(model.step_size_)
    assert (model.batch_size_, model.thin_, model.n_warmup_, model.n_steps_) == (60, 1, 0, 25)
    many = quick(prior="laplace").fit(*data(5000))
    assert many.sampler_ in ("importance", "hmc")
    assert many.batch_size_ == 5000
    assert (many.batch_sizes_ == 5000).all()


@pytest.mark.slow_for("robust", "negativebinomial")
@every
def test_pipelines_and_searches(kind):
    pipe = make_pipeline(StandardScaler(), quick(kind)).fit(X, y)
    mean, std = pipe.predict(X, return_std=True)
    assert mean.shape == std.shape == (60,)
    assert pipe.score(X, y) > 0.2
    search = GridSearchCV(
        quick(kind, prior=Normal()), {"prior__scale": [1e-3, 1.0]}, cv=2, error_score="raise"
    ).fit(X, y)
    assert search.best_params_ == {"prior__scale": 1.0}


def test_near_the_point_estimates():
    linear = BayesianLinearRegression(random_state=0).fit(X, y)
    ridge = BayesianRidge().fit(X, y)
    assert np.abs((linear.coef_ - ridge.coef_) / linear.coef_std_).max() < 0.5
    mean, std = ridge.predict(X, return_std=True)
    ours = linear.predict(X, return_std=True)
    assert np.abs((mean - ours[0]) / std).max() < 0.1
    assert np.abs(std / ours[1] - 1.0).max() < 0.1
    counts = BayesianPoissonRegressor(random_state=0).fit(X, y)
    point = PoissonRegressor(alpha=1e-6).fit(X, y)
    assert np.abs((counts.coef_ - point.coef_) / counts.coef_std_).max() < 0.3


@pytest.mark.slow
def test_outliers_pull_less():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 1))
    clean = 3.0 * rows[:, 0] + 0.5 * rng.normal(size=200)
    wrong = clean.copy()
    wrong[::10] += 30.0
    robust = BayesianRobustRegression(random_state=0).fit(rows, wrong)
    reference = BayesianLinearRegression(random_state=0).fit(rows, clean)
    assert abs(robust.coef_[0] - reference.coef_[0]) < 3.0 * reference.coef_std_[0]
    assert abs(robust.intercept_ - reference.intercept_) < 3.0 * reference.intercept_std_


# -- degenerate data --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise_prior",
    ["half_student_t", "half_normal", pytest.param("half_cauchy", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("sampler", ["auto", pytest.param("hmc", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "response"),
    [
        ("constant", np.full(60, 3.0)), ("zero", np.zeros(60)), ("fitted", X @ [1.0, -2.0, 0.5]),
        ("huge", 1e8 * y), ("far off", 1e8 + y), ("tiny", 1e-8 * y),
    ],
)  # fmt: skip
def test_noise_is_never_zero_or_infinite(name, response, noise_prior, sampler):
    model = quick(noise_prior=noise_prior, sampler=sampler).fit(X, response)
    sigma = model.posterior_["noise_std"]
    assert np.isfinite(np.log(sigma)).all()
    assert np.isfinite(model.posterior_.flat).all()
    size = max(np.abs(response).max(), 1e-9)
    assert np.abs(model.predict(X) - response).max() < 10.0 * max(
        response.std(), 1e-6 * size, 1e-14
    )
    if name in ("constant", "zero", "fitted"):
        assert sigma.max() < 1e-5 * size


@pytest.mark.slow_for("robust", "negativebinomial")
@every
def test_constant_and_duplicate_columns(kind):
    rows = np.column_stack([X, X[:, 0], np.full(60, 2.0), np.zeros(60)])
    model = quick(kind, prior=Normal(scale=0.7), n_draws=500).fit(rows, y)
    assert np.isfinite(model.posterior_.flat).all()
    assert abs(model.coef_std_[5] / 0.7 - 1.0) < 5.0 / np.sqrt(2 * 200)  # of zeros: its prior
    default = quick(kind).fit(rows, y)
    assert np.isfinite(default.posterior_.flat).all()
    with pytest.raises(ValueError, match="Improper posterior"):
        quick(kind, prior="flat").fit(rows, y)


@pytest.mark.slow_for("robust", "negativebinomial")
@every
def test_few_rows(kind):
    model = quick(kind).fit(X[:1], [2.0])
    assert np.isfinite(model.predict(X)).all()
    wide = quick(kind).fit(np.random.default_rng(0).normal(size=(5, 12)), y[:5] + 1.0)
    assert np.isfinite(wide.posterior_.flat).all()


@pytest.mark.slow_for("robust")
@every
@pytest.mark.parametrize("prior", [Laplace(), StudentT(), Normal(loc=1.0), Flat()], ids=repr)
def test_priors(kind, prior):
    assert np.isfinite(quick(kind, prior=prior).fit(X, y).posterior_.flat).all()


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan, np.inf, True, "known", None])
def test_noise_that_is_no_noise(noise):
    with pytest.raises(InvalidParameterError, match="'noise' parameter of BayesianLinear"):
        quick(noise=noise).fit(X, y)


@pytest.mark.parametrize("prior", ["normal", Normal(), 3.0])
def test_noise_prior_of_another_kind(prior):
    with pytest.raises(InvalidParameterError, match="BayesianLinearRegression: The 'noise_prior'"):
        quick(noise_prior=prior).fit(X, y)


def test_prior_of_coefficients_of_another_kind():
    with pytest.raises(InvalidParameterError, match="'prior' parameter must be one of"):
        quick(prior=HalfNormal()).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"gradient": "full"}, {"subsampling": "uniform"}, {"batch_size": 10}, {"step_size": 0.1},
        {"preconditioner": "hessian"},
    ],
    ids=lambda o: next(iter(o)),
)  # fmt: skip
def test_exact_takes_no_steps(options):
    name = next(iter(options))
    with pytest.raises(
        ValueError, match=f"does not go with {name}=.*independent draws take no steps"
    ):
        quick(sampler="exact", **options).fit(X, y)


@pytest.mark.parametrize("prior", ["laplace", "student_t"])
def test_exact_needs_a_closed_form(prior):
    with pytest.raises(ValueError, match="sampler='exact' is for linear regression with normal"):
        quick(sampler="exact", prior=prior).fit(X, y)


def test_flat_noise_with_too_few_rows():
    with pytest.raises(ValueError, match=r"flat prior of the noise, .*n_samples=5"):
        quick(prior="flat", noise_prior="flat").fit(X[:5], y[:5])
    assert quick(prior="flat", noise_prior="flat").fit(X[:6], y[:6]).sampler_ == "exact"


@pytest.mark.slow_for("robust")
@every
@pytest.mark.parametrize(
    ("response", "text"),
    [
        (np.r_[np.nan, y[1:]], "contains NaN"), (np.r_[np.inf, y[1:]], "infinity"),
        (np.full(60, 1e200), "values of y are too large"), (y[:-1], "inconsistent numbers"),
        (["a"] * 60, "could not convert"), (np.column_stack([y, y]), "1d array"),
    ],
)  # fmt: skip
def test_responses_that_cannot_be_used(kind, response, text):
    model = quick(kind).fit(X, y)
    before = model.posterior_
    with pytest.raises(ValueError, match=text):
        model.fit(X, response)
    assert model.posterior_ is before


@pytest.mark.slow_for("robust", "negativebinomial")
@every
def test_columns_of_any_size_are_sampled_or_refused(kind):
    spread = {
        size: quick(kind, n_draws=1000).fit(X * [1.0, size, 1.0], y).posterior_["coef"].std((0, 1))
        for size in (1.0, 1e-130)
    }
    assert spread[1e-130] * [1.0, 1e-130, 1.0] == pytest.approx(spread[1.0], rel=0.1)
    for size in (1e-160, 1e-250, 1e-300):
        with pytest.raises(ValueError, match="values of column 1 of X are too small"):
            quick(kind).fit(X * [1.0, size, 1.0], y)


@pytest.mark.parametrize("kind", ["linear", "robust"])
def test_responses_whose_squares_underflow(kind):
    with pytest.raises(ValueError, match=r"values of y are too small.*largest is 1.0e-300"):
        quick(kind).fit(X, np.full(60, 1e-300))


@pytest.mark.parametrize("kind", COUNTS)
def test_counts_that_are_none(kind):
    with pytest.raises(ValueError, match="y must hold counts, none negative"):
        quick(kind).fit(X, -y - 1.0)


@every
def test_bad_arguments_of_predictions(kind):
    model = quick(kind).fit(X, y)
    for level in (0.0, 1.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="confidence_level must lie strictly between"):
            model.predict_interval(X, level)
    for q in ([], [0.5, 1.0], -0.1, [[0.5]]):
        with pytest.raises(ValueError, match="quantiles must lie strictly between"):
            model.predict_quantiles(X, q)
    for n in (0, 2.5, True):
        with pytest.raises(ValueError, match=rf"n_samples must be an int in \[1, inf\), got {n}"):
            model.sample_y(X, n)


@every
@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (-np.ones(60), "Negative values in data"), (np.full(60, np.nan), "contains NaN"),
        (np.zeros(60), "zero"), (np.ones(59), "sample_weight.shape"), (np.ones((60, 2)), "1D"),
    ],
)  # fmt: skip
def test_weights_that_are_none(kind, weight, text):
    with pytest.raises(ValueError, match=text):
        quick(kind).fit(X, y, sample_weight=weight)


@pytest.mark.slow_for("robust")
@every
def test_rows_of_another_table(kind):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = quick(kind).fit(frame, y)
    assert model.posterior_.labels[:3] == ("coef[a]", "coef[b]", "coef[c]")
    for predict in (model.predict, model.predict_interval, model.sample_y):
        with pytest.raises(ValueError, match="X has 2 features, but Bayesian"):
            predict(X[:, :2])
        with pytest.raises(ValueError, match="feature names should match"):
            predict(frame[["b", "a", "c"]])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        quick(kind).predict_quantiles(X)


@pytest.mark.slow
def test_a_mode_that_is_sought_too_far_away():
    """Newton's first step for log ν goes to where its likelihood is not a number."""
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(40, 10))
    rows = np.random.RandomState(10).permutation(40)[:20]
    y = (4.0 * X[rows, 0]).astype(int)
    model = BayesianRobustRegression(n_draws=500, random_state=0).fit(X[rows], y)
    assert abs(model.coef_[0] - 4.0) < 3.0 * model.coef_std_[0]
    assert model.diagnostics_["max_rhat"] < 1.02


@pytest.mark.parametrize(
    ("schedule", "remedy"),
    [
        (None, "Use fewer columns or components, or more informative priors"),
        (Constant(0.1), "smaller step_size"),
    ],
)
def test_remedies_for_chains_that_do_not_move(schedule, remedy):
    still = SimpleNamespace(record=np.zeros(metropolis.N_RECORD))
    setup, request = SimpleNamespace(first_step=0.1, batch_size=5), Request(step_size=schedule)
    with pytest.raises(SamplerDivergedError, match=remedy):
        Production(None, setup, request, 1, 250, 0.1)._acceptance([still])


def test_samples_do_not_depend_on_threads(monkeypatch):
    """Random numbers of several blocks of rows are drawn in the order of the rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    model = BayesianLinearRegression(n_draws=20, random_state=0).fit(X, X[:, 0])
    expected = model.sample_y(X, 20, random_state=1)
    monkeypatch.setattr(_at_all_draws, "BLOCK_BYTES", 8 * 20 * 10)
    for _ in range(3):
        assert np.allclose(model.sample_y(X, 20, random_state=1), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("y", "step"),
    [
        ([0.0, 3.0, 1.0, 7.0, 3.0], 1.0),
        ([0.1, 0.4, 0.3, 1.1], 0.1),
        ([1e6, 1e6 + 2.0, 1e6 + 8.0], 2.0),
        ([0.0, 1.0, np.pi, 4.0], 0.0),
        ([0.0, 5.0, 5.0, 0.0], 0.0),  # two values have no step
        ([2.0, 2.0], 0.0),
    ],
)
def test_responses_may_have_a_step(y, step):
    assert _resolution(np.array(y)) == pytest.approx(step, abs=1e-9)


def test_rows_of_weight_zero_do_not_tell_the_step():
    """The stand-in for moments has the largest response in a row without weight."""
    X, prior = np.arange(4.0)[:, None], Flat()._table((4,))
    model = BayesianRobustRegression()
    for y, weight, floor in (
        ([0.0, 1.0, 3.0, 0.5], [1.0, 1.0, 2.0, 0.0], 12.0**-0.5),
        ([0.0, 2.0, 2.0, 4.0], [1.0, 1.0, 1.0, 0.0], 0.0),
        ([0.0, 2.0, 2.0, 4.0], [1.0, 1.0, 1.0, 1.0], 2.0 * 12.0**-0.5),
    ):
        target = Target(X, np.array(y), np.array(weight), Robust(), prior, intercept=True)
        assert model._units(target).floor == pytest.approx(floor, abs=1e-6)


def test_the_noise_of_integers_is_cut_off_at_their_rounding():
    """Three rows in ten have the same response; without the cut their mode has nearly all mass."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    exact = X[:, 0] + rng.normal(size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rounded = BayesianRobustRegression(random_state=0).fit(X, np.rint(exact))
    assert rounded.posterior_.check()
    full = BayesianRobustRegression(random_state=0).fit(X, np.round(exact, 4))
    assert np.abs(rounded.coef_ - full.coef_).max() < 0.5 * full.coef_std_.max()
    assert rounded.noise_std_ == pytest.approx(np.sqrt(full.noise_std_**2 + 1.0 / 12.0), rel=0.05)


def test_many_zeros_are_told():
    """Zeros among other responses: the mode in which they have no noise is left out."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 1))
    y = np.where(np.arange(100) < 28, 0.0, X[:, 0] + 2.0 * rng.normal(size=100))
    with pytest.warns(MultimodalPosteriorWarning, match="rounding error"):
        model = BayesianRobustRegression(random_state=0).fit(X, y)
    assert 1.0 < model.noise_std_ < 2.5
    assert [finding.name for finding in model.posterior_.check().findings] == ["modes"]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [slice(None), slice(30)])
def test_robust_regression_of_zeros_finds_its_mode(rows):
    """As of any other constant: the noise goes to its floor, which is told."""
    X = np.random.default_rng(11).normal(size=(120, 3))[rows]
    model = BayesianRobustRegression(n_draws=50, random_state=0).fit(X, np.zeros(len(X)))
    assert model.sampler_ == "importance"
    assert 0.0 < model.noise_std_ < 1e-13
    assert "no noise" in {finding.name for finding in model.posterior_.check().findings}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "n", "seeds"),
    [
        *((value, 100, [0, 1]) for value in (1.0, 7.3)),
        *(pytest.param(value, 100, [0, 1], marks=pytest.mark.slow) for value in (2.0, 8.0, -0.5)),
        (1.0, 3000, [0]),
        pytest.param(7.3, 3000, [1], marks=pytest.mark.slow),
    ],
)
def test_robust_regression_of_a_constant_ends_whatever_its_rounding(value, n, seeds):
    """Near powers of two, noise of a few units of rounding made chains of no use, without end."""
    rows = np.random.default_rng(0).normal(size=(n, 2))
    for seed in seeds:
        with pytest.warns(SamplerConvergenceWarning, match="no noise"):
            model = BayesianRobustRegression(random_state=seed).fit(rows, np.full(n, value))
        assert model.intercept_ == pytest.approx(value, rel=1e-10)
        assert 0.0 < model.posterior_.mean("noise_std") < 1e-11 * abs(value)


@pytest.mark.parametrize("estimator", [BayesianLinearRegression, BayesianRobustRegression])
@pytest.mark.parametrize(("scale", "is_told"), [(0.05, True), (0.5, False)])
def test_a_half_normal_prior_that_holds_the_noise_back_is_told(estimator, scale, is_told):
    """The noise is one; the posterior was at 0.7 or 0.5, with coefficients to match."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2))
    y = rows[:, 0] + rng.normal(size=300)
    model = estimator(noise_prior=HalfNormal(scale=scale), n_draws=300, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, y)
    said = [str(w.message) for w in caught if w.category is PriorConflictWarning]
    assert any("half-normal prior of noise_std, whose scale is 0.05" in s for s in said) == is_told


def test_other_errors_of_rows_that_are_fitted_exactly_are_their_own():
    with pytest.raises(ValueError, match="n_chains"):
        BayesianRobustRegression(n_chains=-1).fit(TWO_ROWS, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    with pytest.raises(ValueError, match="n_subposteriors=9 is more than the 6 rows"):
        BayesianRobustRegression(n_subposteriors=9).fit(TWO_ROWS, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0])


LINE = np.array([[1.0], [2.0], [4.0]])
TWO_ROWS = np.repeat([[0.0, 1.0], [1.0, 0.0]], 3, axis=0)


@pytest.mark.parametrize(
    ("rows", "y", "beyond"), [(LINE, [3.0, 5.0, 9.0], 1), (LINE[[0, 0]], [3.0, 3.0], 1)]
)
def test_a_few_rows_that_are_fitted_exactly_are_named(rows, y, beyond):
    """Chains took up to 45 s, and errors spoke of steps, or of a log_likelihood."""
    with pytest.raises(ValueError, match=f"and are {beyond} more than that takes"):
        BayesianRobustRegression(random_state=0).fit(rows, y)
    with pytest.warns(SamplerConvergenceWarning, match="no finite integral|no noise"):
        BayesianLinearRegression(random_state=0).fit(rows, y)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 3])
def test_many_rows_of_constants_are_named(d):
    """The error spoke of the log_likelihood of custom densities.

    Whether chains reach the floor of the noise, or no finite place, is decided by rounding.
    """
    said = told_of_no_noise(BayesianRobustRegression, np.ones((150, d)), np.full(150, 2.0))
    assert said == "no noise" or "150 rows are fitted exactly, and are 149 more" in said


def told_of_no_noise(family, rows, y):
    """The error of a fit, or the words of its verdict for rows that are fitted exactly."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = family(random_state=0).fit(rows, y)
        except ValueError as error:
            return str(error)
    assert any("no noise" in str(warning.message) for warning in told)
    assert not model.posterior_.check()
    return "no noise"


@pytest.mark.parametrize(
    "family",
    [pytest.param(BayesianRobustRegression, marks=pytest.mark.slow), BayesianLinearRegression],
)
def test_some_more_rows_that_are_fitted_exactly_are_named(family):
    said = told_of_no_noise(family, TWO_ROWS, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    assert said == "no noise" or "6 rows are fitted exactly, and are 4 more" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "y", "options"),
    [
        pytest.param(LINE[:2], [3.0, 5.0], {}, marks=pytest.mark.slow),
        (LINE, [3.0, 5.0, 9.1], {}),
        (LINE, [3.0, 5.0, 9.0], {"noise_prior": InverseGamma()}),
        (LINE, [3.0, 5.0, 9.0], {"noise_prior": "inverse_gamma"}),
        pytest.param(np.eye(4), [1.0, 2.0, 3.0, 5.0], {}, marks=pytest.mark.slow),
    ],
)
def test_few_rows_that_have_a_posterior_have_it(rows, y, options):
    """A prior that vanishes at zero keeps the noise away from it, by name as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianLinearRegression(random_state=0, **options).fit(rows, y)
        BayesianRobustRegression(random_state=0, **options).fit(rows, y)


@pytest.mark.slow_for("BayesianRobustRegression")
@pytest.mark.parametrize("estimator", [BayesianLinearRegression, BayesianRobustRegression])
@pytest.mark.parametrize("far", [1.7e12, 1e14])
def test_a_response_far_from_zero_has_the_posterior_of_one_that_is_near(estimator, far):
    """Its last digits are 0.0002 and 0.016, and the noise is one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=100)
    shifted = y + far
    near = estimator(random_state=0).fit(X, shifted - far)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = estimator(random_state=0).fit(X, shifted)
    assert model.noise_std_ == pytest.approx(near.noise_std_, rel=0.01)
    assert model.coef_ == pytest.approx(near.coef_, abs=0.01)
    assert model.intercept_ - far == pytest.approx(near.intercept_, abs=0.02)
    assert model.predict(X) - far == pytest.approx(near.predict(X), abs=0.04)
    assert not model.posterior_.check().findings


@pytest.mark.slow
def test_what_follows_a_fit_of_a_response_far_from_zero():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = 1e9 + X @ [1.0, 2.0, 0.0] + rng.normal(size=300)
    options = {"random_state": 0, "n_draws": 300}
    model = BayesianRobustRegression(warm_start=True, **options).fit(X, y)
    first, second = model.coef_, model.fit(X, y).coef_
    assert second == pytest.approx(first, abs=0.03)
    shards = BayesianRobustRegression(n_subposteriors=2, **options).fit(X, y)
    assert shards.coef_ == pytest.approx(first, abs=0.1)
    assert shards.intercept_ - 1e9 == pytest.approx(model.intercept_ - 1e9, abs=0.1)
    assert full_scores(model, X, y).check()
    model.partial_fit(X + 0.1, y + 0.3)
    assert model.n_samples_seen_ == 600
    assert model.intercept_ - 1e9 == pytest.approx(0.0, abs=0.3)
