"""Regressors of counts: exposures in fits and predictions, beside statsmodels and by hand."""

import os
import warnings
from pathlib import Path

import estimators
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLinearRegression, metrics
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import PriorConflictWarning
from skbayes_sg.inspection.full_scores import full_scores
from skbayes_sg.models import Poisson
from skbayes_sg.models.poisson import poisson_counts
from skbayes_sg.priors import Flat, Normal
from skbayes_sg.shards.sample import Sharded

pytestmark = [
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SubposteriorWarning"),
]
COUNTS = [
    name for name in estimators.REGRESSORS if "exposure" in estimators.CLASSES[name]._row_items
]
every = pytest.mark.parametrize("name", COUNTS)


def table(n=400, seed=22, shape=np.inf):
    """Rows, counts and exposures; rates vary by factors with a gamma law of this shape."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.0, 3.0, -1.0]
    exposure = np.exp(rng.normal(size=n))
    mean = exposure * np.exp(0.8 + X @ [0.5, -0.2, 0.3])
    if np.isfinite(shape):
        mean = mean * rng.gamma(shape, 1.0 / shape, size=n)
    return X, rng.poisson(mean).astype(float), exposure


X, Y, E = table()
ROWS = X[:6], Y[:6], E[:6]


def quick(name, **options):
    return estimators.CLASSES[name](**{"n_draws": 25, "n_chains": 2, "random_state": 0} | options)


def full(name, **options):
    return estimators.CLASSES[name](random_state=0, **options)


@pytest.fixture
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# -- fits ------------------------------------------------------------------------------------------


def test_exposures_are_weights_of_rates_in_the_likelihood():
    weight, flat = np.random.default_rng(0).uniform(0.5, 2.0, len(Y)), Flat()._table((4,))
    exposed = Target(X, np.column_stack([Y, E]), weight, Poisson(), flat)
    rates = Target(X, Y / E, weight * E, Poisson(), flat)
    origin = np.zeros(4)
    for theta in 0.3 * np.random.default_rng(1).normal(size=(3, 4)):
        (value, g), (other, h) = (t.value_and_gradient(theta) for t in (exposed, rates))
        value -= exposed.value_and_gradient(origin)[0]
        np.testing.assert_allclose(value, other - rates.value_and_gradient(origin)[0], rtol=1e-12)
        np.testing.assert_allclose(g, h, rtol=1e-12, atol=1e-10)


# statsmodels 0.15: GLM(Y, [X, 1], Poisson(), offset=log E).fit(tol=1e-12)
STATSMODELS = {
    "BayesianPoissonRegressor": (
        np.inf,
        [0.54597692, -0.21564825, 0.29493086, 0.84695645],
        [0.03496342, 0.01857312, 0.07748417, 0.0918133],
    ),
    # NegativeBinomial(Y, [X, 1], loglike_method="nb2", exposure=E).fit(method="newton")
    "BayesianNegativeBinomialRegressor": (
        1.5,
        [0.43696006, -0.1507836, 0.3172063, 0.720542],
        [0.06512581, 0.03375198, 0.13363211, 0.17211488],
    ),
}


@every
def test_estimates_beside_statsmodels(name):
    """The mean of the posterior under flat priors is the maximum up to a skewness of 1/√400."""
    shape, coefficients, errors = STATSMODELS[name]
    rows, counts, exposure = table(shape=shape)
    model = full(name, prior="flat", intercept_prior="flat").fit(rows, counts, exposure=exposure)
    mean, sd = np.r_[model.coef_, model.intercept_], np.r_[model.coef_std_, model.intercept_std_]
    assert np.abs((mean - coefficients) / errors).max() < 0.1
    assert np.abs(sd / errors - 1.0).max() < 0.05
    without = clone(model).fit(rows, counts)
    assert abs(without.intercept_ - coefficients[3]) > errors[3]


@every
def test_the_numbers_of_statsmodels(name):
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    shape, coefficients, errors = STATSMODELS[name]
    rows, counts, exposure = table(shape=shape)
    design = np.column_stack([rows, np.ones(len(counts))])
    if np.isinf(shape):
        model = api.GLM(counts, design, family=api.families.Poisson(), offset=np.log(exposure))
        found = model.fit(tol=1e-12)
    else:
        found = api.NegativeBinomial(counts, design, exposure=exposure).fit(disp=0, method="newton")
    np.testing.assert_allclose(found.params[:4], coefficients, rtol=1e-5)
    np.testing.assert_allclose(found.bse[:4], errors, rtol=1e-5)


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
def test_the_unit_of_the_exposure_moves_the_intercept_alone(name):
    one = full(name, intercept_prior="flat").fit(X, Y, exposure=E)
    other = full(name, intercept_prior="flat").fit(X, Y, exposure=1000.0 * E)
    assert np.abs((other.coef_ - one.coef_) / one.coef_std_).max() < 0.02
    shift = other.intercept_ + np.log(1000.0) - one.intercept_
    assert np.abs(shift / one.intercept_std_) < 0.02
    mean = one.predict(X, exposure=E)
    np.testing.assert_allclose(other.predict(X, exposure=1000.0 * E), mean, rtol=1e-2)


@every
def test_exposures_of_one_are_none(name):
    one, none = (quick(name).fit(X, Y, exposure=e) for e in (np.ones(len(Y)), None))
    assert np.array_equal(one.posterior_.flat, none.posterior_.flat)
    assert np.array_equal(one.predict(X, exposure=np.ones(len(Y))), none.predict(X))


@every
@pytest.mark.parametrize(
    "form",
    [sparse.csr_matrix, np.asfortranarray, pd.DataFrame, np.float32],
    ids=lambda f: f.__name__,
)
def test_forms_of_the_rows(name, form):
    rounded = X.astype(np.float32).astype(np.float64)
    wanted = quick(name).fit(rounded, Y, exposure=E)
    found = quick(name).fit(form(rounded), Y, exposure=pd.Series(E))
    assert np.array_equal(found.posterior_.flat, wanted.posterior_.flat)
    assert np.allclose(
        found.predict(form(rounded), exposure=E), wanted.predict(rounded, exposure=E)
    )


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
def test_mapped_rows(name, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = {"sampler": "baoab", "batch_size": 50, "step_size": 0.1, "n_warmup": 20, "thin": 1}
    wanted = quick(name, **options).fit(X, Y, exposure=E)
    found = quick(name, **options).fit(mapped, Y, exposure=E)
    assert np.array_equal(found.posterior_.flat, wanted.posterior_.flat)


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
def test_the_order_of_few_rows_does_not_matter(name):
    order, twice = np.random.default_rng(0).permutation(len(Y)), np.tile(np.arange(len(Y)), 2)
    model = quick(name).fit(X, Y, exposure=E)
    shuffled = quick(name).fit(X[order], Y[order], exposure=E[order])
    assert np.array_equal(model.posterior_.flat, shuffled.posterior_.flat)
    weighted = quick(name).fit(X, Y, sample_weight=np.full(len(Y), 2.0), exposure=E)
    repeated = quick(name).fit(X[twice], Y[twice], exposure=E[twice])
    assert np.array_equal(weighted.posterior_.flat, repeated.posterior_.flat)


@every
def test_rows_without_weight_have_no_exposure(name):
    weight = np.arange(len(Y)) % 2.0
    exposure = np.where(weight > 0.0, E, 1e6)
    model = quick(name).fit(X, Y, sample_weight=weight, exposure=exposure)
    odd = quick(name).fit(X[1::2], Y[1::2], exposure=E[1::2])
    assert np.array_equal(model.posterior_.flat, odd.posterior_.flat)


def test_shards_keep_rows_and_exposures_together():
    target = Target(X, np.column_stack([Y, E]), np.ones(len(Y)), Poisson(), Flat()._table((4,)))
    sharded = Sharded(target, 3, None, 0)
    whole = {(*x, *label) for x, label in zip(X, target.labels(), strict=True)}
    shards = [sharded[s] for s in range(3)]
    for part in shards:
        assert {(*x, *label) for x, label in zip(part.X, part.labels(), strict=True)} <= whole
    total = sum(part.weight.sum() for part in shards)
    np.testing.assert_allclose(total, len(Y))


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
def test_shards(name, tmp_path):
    whole = full(name).fit(X, Y, exposure=E)
    inside = full(name, n_subposteriors=2).fit(X, Y, exposure=E)
    parts = [(X[k::2], Y[k::2], None, E[k::2]) for k in range(2)]
    outside = full(name).fit_shards(parts)
    for model in (inside, outside):
        assert np.abs((model.coef_ - whole.coef_) / whole.coef_std_).max() < 0.5
    for k, part in enumerate(parts):
        for item, array in zip(("X", "y", "weight", "exposure"), part, strict=True):
            if array is not None:
                np.save(tmp_path / f"{item}{k}.npy", array)
    found = full(name).fit_shards(tmp_path)
    np.testing.assert_array_equal(found.posterior_.flat, outside.posterior_.flat)
    with pytest.raises(ValueError, match="shard 1 of 2 and shard 0, one has an exposure"):
        full(name).fit_shards([parts[0], parts[1][:2]])
    with pytest.raises(
        ValueError, match=r"Shard 0 must be \(X, y\) or \(X, y, sample_weight\), got 4"
    ):
        BayesianLinearRegression().fit_shards(parts)


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
def test_partitions(name):
    array = pytest.importorskip("dask.array")
    Z, counts, exposure = (array.from_array(a, chunks=(200, *a.shape[1:])) for a in (X, Y, E))
    found = quick(name).fit(Z, counts, exposure=exposure)
    parts = [(X[rows], Y[rows], None, E[rows]) for rows in (slice(200), slice(200, None))]
    wanted = quick(name).fit_shards(parts)
    np.testing.assert_array_equal(found.posterior_.flat, wanted.posterior_.flat)


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
def test_scores_and_expectations(name):
    model = full(name, n_draws=200).fit(X, Y, exposure=E)
    assert full_scores(model, X, Y, exposure=E).check()
    assert not full_scores(model, X, Y, exposure=np.ones(len(Y))).check()  # of other data
    with pytest.raises(ValueError, match="rows of the fit had exposures, and these have none"):
        full_scores(model, X, Y)
    with pytest.raises(ValueError, match="rows of the fit had exposures, and these have none"):
        model.expect(lambda p: p["coef"], atol=0.02, X=X, y=Y)
    found = model.expect(lambda p: p["coef"], atol=0.02, X=X, y=Y, exposure=E)
    assert np.abs(found.value - model.coef_).max() < 0.1
    with pytest.raises(TypeError, match="has no exposures"):
        full_scores(BayesianLinearRegression(n_draws=5).fit(X, Y), X, Y, exposure=E)


# -- predictions -----------------------------------------------------------------------------------


def law_of(model, rows, exposure):
    """The frozen laws of counts, (rows, draws), by SciPy."""
    posterior = model.posterior_
    eta = rows @ posterior["coef"].reshape(-1, rows.shape[1]).T + posterior["intercept"].ravel()
    mean = exposure[:, None] * np.exp(eta)
    if "dispersion" not in posterior:
        return stats.poisson(mean)
    alpha = posterior["dispersion"].ravel()
    return stats.nbinom(1.0 / alpha, 1.0 / (1.0 + alpha * mean))


@every
def test_predictions_are_of_counts_with_their_exposures(name):
    model = quick(name).fit(X, Y, exposure=E)
    rows, y, e = ROWS
    law = law_of(model, rows, e)
    mean, std = model.predict(rows, return_std=True, exposure=e)
    np.testing.assert_allclose(mean, law.mean().mean(axis=1), rtol=1e-12)
    total = law.var().mean(axis=1) + law.mean().var(axis=1)
    np.testing.assert_allclose(std, np.sqrt(total), rtol=1e-12)
    epistemic, aleatoric = model.predict_std_components(rows, exposure=e)
    np.testing.assert_allclose(epistemic, law.mean().std(axis=1), rtol=1e-12)
    np.testing.assert_allclose(aleatoric, np.sqrt(law.var().mean(axis=1)), rtol=1e-12)
    expected = np.log(np.exp(law.logpmf(y[:, None])).mean(axis=1))
    np.testing.assert_allclose(model.predict_log_density(rows, y, exposure=e), expected, rtol=1e-10)
    for q in (0.05, 0.5, 0.95):
        found = model.predict_quantiles(rows, q, exposure=e)
        assert (law.cdf(found[:, None]).mean(axis=1) >= 0.99 * q).all()
        assert (law.cdf(found[:, None] - 1.0).mean(axis=1) < q + 0.01 * min(q, 1.0 - q)).all()
    lower, upper = model.predict_interval(rows, exposure=e)
    np.testing.assert_array_equal(lower, model.predict_quantiles(rows, 0.05, exposure=e))
    np.testing.assert_array_equal(upper, model.predict_quantiles(rows, 0.95, exposure=e))
    score = 1.0 - ((y - mean) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    np.testing.assert_allclose(model.score(rows, y, exposure=e), score)


@every
def test_samples_are_of_counts_with_their_exposures(name):
    model = full(name, n_draws=500).fit(X, Y, exposure=E)
    samples = model.sample_y(ROWS[0], 2000, random_state=1, exposure=ROWS[2])
    mean, std = model.predict(ROWS[0], return_std=True, exposure=ROWS[2])
    assert (np.abs(samples.mean(axis=1) - mean) < 5.0 * std / np.sqrt(2000)).all()


@every
def test_predictions_without_an_exposure_are_for_one_unit(name):
    model = quick(name).fit(X, Y, exposure=E)
    ones = np.ones(6)
    np.testing.assert_array_equal(model.predict(ROWS[0]), model.predict(ROWS[0], exposure=ones))
    np.testing.assert_array_equal(
        model.predict_interval(ROWS[0]), model.predict_interval(ROWS[0], exposure=ones)
    )


def places(model, rows, counts, exposure, rng):
    """Where counts lie in their predictive laws: uniform, as ends count by a random share."""
    found = []
    for block in np.array_split(np.arange(len(counts)), 10):
        law = law_of(model, rows[block], exposure[block])
        up_to, below = (law.cdf(counts[block, None] - k).mean(axis=1) for k in (0.0, 1.0))
        found.append(below + rng.random(len(block)) * (up_to - below))
    return np.concatenate(found)


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
@pytest.mark.parametrize("seed", [0, *[pytest.param(k, marks=pytest.mark.slow) for k in (1, 2)]])
def test_intervals_cover_counts_with_exposures(name, seed):
    """By randomised ends: those of whole numbers cannot have a probability of just 0.9."""
    rows, counts, exposure = table(n=4000, seed=seed, shape=STATSMODELS[name][0])
    model = full(name, n_draws=250).fit(rows[:2000], counts[:2000], exposure=exposure[:2000])
    rows, counts, exposure = rows[2000:], counts[2000:], exposure[2000:]
    u = places(model, rows, counts, exposure, np.random.default_rng(seed))
    assert abs(((u > 0.05) & (u < 0.95)).mean() - 0.9) < 0.02  # three standard errors
    assert stats.kstest(u, "uniform").pvalue > 1e-4
    lower, upper = model.predict_interval(rows, exposure=exposure)
    inside = (lower <= counts) & (counts <= upper)
    certain = (u > 0.055) & (u < 0.945)  # quantiles reach their level to 1 %
    assert inside[certain].all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "word", ["war", *[pytest.param(w, marks=pytest.mark.slow) for w in ("iraq", "november")]]
)
def test_intervals_cover_words_of_documents(word):
    """How often a word occurs in texts of some length: Poisson intervals are too short."""
    folder = os.environ.get("SKBAYES_SG_DATA", Path(__file__).parents[3] / "shared" / "data")
    path = Path(folder) / "kos.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    z = np.load(path)
    parts = z["counts"].astype(float), z["indices"].astype(np.int32), z["indptr"]
    words, names = sparse.csr_array(parts).tocsc(), list(z["vocab"])
    counts = words[:, [names.index(word)]].toarray().ravel()
    others = ["bush", "kerry", "poll", "senate", "house", "troops", "campaign"]
    rows = np.log1p(words[:, [names.index(other) for other in others]].toarray())
    length = words.sum(axis=1) - counts
    order = np.random.default_rng(0).permutation(len(counts))
    fit, new = order[::2], order[1::2]
    covered = {}
    for name in COUNTS:
        model = full(name, n_draws=250).fit(rows[fit], counts[fit], exposure=length[fit])
        rng = np.random.default_rng(1)
        u = places(model, rows[new], counts[new], length[new], rng)
        covered[name] = ((u > 0.05) & (u < 0.95)).mean()
    assert 0.88 < covered["BayesianNegativeBinomialRegressor"] < 0.92
    assert covered["BayesianPoissonRegressor"] < 0.88


# -- scores and metadata ---------------------------------------------------------------------------


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
def test_comparisons_without_an_exposure_warn(name, recwarn):
    model = quick(name).fit(X, Y, exposure=E)
    recwarn.clear()
    model.score(X, Y, exposure=E)
    model.predict(X)
    clone(model).fit(X, Y).score(X, Y)
    assert not [w for w in recwarn if "exposure" in str(w.message)]
    for compare in (model.score, model.predict_log_density):
        with pytest.warns(UserWarning, match="was fitted with exposures, and .* was given none"):
            compare(X, Y)


def check_scores_have_exposures(whole):
    scores = cross_validate(whole, X, Y, params={"exposure": E}, cv=2, error_score="raise")
    half = clone(whole).fit(X[:200], Y[:200], exposure=E[:200])
    wanted = half.score(X[200:], Y[200:], exposure=E[200:])
    np.testing.assert_allclose(scores["test_score"][1], wanted)


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
@pytest.mark.usefixtures("_routing")
def test_exposures_reach_every_step(name):
    model = quick(name).set_fit_request(exposure=True).set_score_request(exposure=True)
    piped = make_pipeline(StandardScaler(), model.set_predict_request(exposure=True))
    check_scores_have_exposures(model)
    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
        check_scores_have_exposures(piped)
    else:  # scikit-learn hands nothing to the default score of a pipeline, and we say so
        with pytest.warns(UserWarning, match="was fitted with exposures, and score was given none"):
            cross_validate(piped, X, Y, params={"exposure": E}, cv=2)
    np.testing.assert_allclose(
        piped.fit(X, Y, exposure=E).predict(X, exposure=E),
        piped[-1].predict(piped[:-1].transform(X), exposure=E),
    )


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
@pytest.mark.usefixtures("_routing")
@pytest.mark.parametrize(
    "scorer",
    [
        metrics.neg_log_predictive_density_scorer, metrics.neg_crps_scorer,
        metrics.neg_coverage_error_scorer,
    ],
    ids=lambda s: s.__name__,
)  # fmt: skip
def test_scorers_ask_for_exposures(name, scorer):
    piped = make_pipeline(StandardScaler(), quick(name).set_fit_request(exposure=True))
    found = cross_validate(piped, X, Y, params={"exposure": E}, cv=2, scoring=scorer)
    half = clone(piped).fit(X[:200], Y[:200], exposure=E[:200])
    wanted = scorer(half, X[200:], Y[200:], exposure=E[200:])
    np.testing.assert_allclose(found["test_score"][1], wanted)
    assert wanted != scorer(half, X[200:], Y[200:], exposure=np.ones(200))
    search = GridSearchCV(
        quick(name, prior=Normal()).set_fit_request(exposure=True),
        {"prior__scale": [1e-3, 1.0]}, scoring=scorer, cv=2, error_score="raise",
    ).fit(X, Y, exposure=E)  # fmt: skip
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
@pytest.mark.parametrize(
    ("exposure", "text"),
    [
        (-E, r"exposure must be positive, .* got -\d+.\d+ for row"),
        (np.r_[0.0, E[1:]], "exposure must be positive, .* got 0 for row 0"),
        (np.r_[np.nan, E[1:]], "Input exposure contains NaN"),
        (np.r_[np.inf, E[1:]], "Input exposure contains infinity"),
        (E[1:], r"a number for each of the 400 rows; got an array of shape \(399,\)"),
        (E[:, None], r"exposure must be one-dimensional, .* shape \(400, 1\)"),
        (2.0, r"exposure must be one-dimensional, .* shape \(\)"),
        (["a"] * 400, "could not convert string to float"),
    ],
)  # fmt: skip
def test_exposures_that_are_none(name, exposure, text):
    model = quick(name)
    with pytest.raises(ValueError, match=text):
        model.fit(X, Y, exposure=exposure)
    model.fit(X, Y, exposure=E)
    for predict in (model.predict, model.predict_interval, model.sample_y):
        with pytest.raises(ValueError, match=text):
            predict(X, exposure=exposure)


@every
def test_masked_exposures(name):
    with pytest.raises(TypeError, match="exposure is a masked array"):
        quick(name).fit(X, Y, exposure=np.ma.masked_greater(E, 1.0))


@every
def test_rates_in_the_place_of_counts(name):
    with pytest.warns(UserWarning, match="y holds numbers that are no counts, such as .* exposure"):
        quick(name).fit(X, Y / E, sample_weight=E)


# -- numbers that are far away ---------------------------------------------------------------------


@every
def test_rates_that_numpy_has_no_counts_of(name):
    model = quick(name).fit(X, Y)
    far = np.full(4, 1e25)
    drawn, mean = model.sample_y(X[:4], 2000, exposure=far), model.predict(X[:4], exposure=far)
    assert np.isfinite(drawn).all()
    np.testing.assert_allclose(drawn.mean(axis=1), mean, rtol=0.2)
    with np.errstate(over="ignore"):
        _, std = model.predict(1e6 * np.abs(X[:4]), return_std=True)
    assert not np.isnan(std).any()


def test_counts_of_large_rates_have_the_law_of_poisson():
    rate = np.full(20_000, 4e15)  # even the standard deviation, 6e7, is many counts
    z = (poisson_counts(np.random.default_rng(0), rate) - 4e15) / np.sqrt(4e15)
    assert abs(z.mean()) < 4.0 / np.sqrt(len(z))
    assert abs(z.var() - 1.0) < 4.0 * np.sqrt(2.0 / len(z))
    small = np.array([0.5, 3.0, 1e14])
    wanted = np.random.default_rng(1).poisson(small)
    np.testing.assert_array_equal(poisson_counts(np.random.default_rng(1), small), wanted)


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
@pytest.mark.parametrize("unit", [1e12, 1e-20])
def test_exposures_of_any_unit(name, unit):
    options = {"intercept_prior": Normal(scale=1e4)}  # which the unit does not matter to
    usual, other = (full(name, **options).fit(X, Y, exposure=E * u) for u in (1.0, unit))
    assert other.sampler_ == "importance"
    off = (usual.coef_ - other.coef_) / usual.coef_std_
    assert np.abs(off).max() < 4.0 * np.sqrt(2.0 / usual.diagnostics_["min_ess"])
    assert abs(other.intercept_ - usual.intercept_ + np.log(unit)) < 0.2 * usual.intercept_std_


@pytest.mark.parametrize("grouped", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_events_leave_a_posterior_under_proper_priors(grouped):
    """Exposures alone say that rates are small: against quadrature, also with effects of levels."""
    x, exposure, level = X[:40, :1], E[:40], np.arange(40) % 3
    sd = 2.5 / x.std()
    b, c = np.linspace(-5.0 * sd, 5.0 * sd, 51), np.linspace(-50.0, 8.0, 151)
    nodes, mass = np.polynomial.hermite_e.hermegauss(31 if grouped else 1)
    scales = np.linspace(0.0, 4.0, 21) + 0.1 if grouped else np.zeros(1)
    p = np.zeros((len(b), len(c)))
    for tau in scales:
        own = np.exp(-0.5 * tau**2)
        for k in range(3):
            rate = np.exp(b[:, None] * x[level == k, 0]) @ exposure[level == k]
            expected = rate[:, None, None] * np.exp(c[:, None] + tau * nodes)
            own = own * (np.exp(-expected) @ mass)
        p += own
    p *= np.exp(-0.5 * (b[:, None] / sd) ** 2 - 0.5 * (c / 10.0) ** 2)
    of_b, of_c = p.sum(axis=1) / p.sum(), p.sum(axis=0) / p.sum()
    more = {"group_effects": [1]} if grouped else {}
    model = full("BayesianPoissonRegressor", **more)
    model.fit(np.c_[x, level][:, : 1 + grouped], np.zeros(40), exposure=exposure)
    for mean, std, grid, share in (
        (model.coef_[0], model.coef_std_[0], b, of_b),
        (model.intercept_, model.intercept_std_, c, of_c),
    ):
        wanted = grid @ share
        spread = np.sqrt((grid - wanted) ** 2 @ share)
        assert abs(mean - wanted) < 0.1 * spread
        assert std == pytest.approx(spread, rel=0.08)


@every
@pytest.mark.parametrize("flat", ["prior", "intercept_prior"])
def test_no_events_leave_no_posterior_under_flat_priors(name, flat):
    x = np.abs(X[:, :1])
    with pytest.raises(ValueError, match="Improper posterior: it does not exist under flat"):
        quick(name, **{flat: "flat"}).fit(x, np.zeros(len(X)))


@pytest.mark.slow_for("BayesianNegativeBinomialRegressor")
@every
def test_no_events_beside_raw_years_are_told(name):
    """The default prior of the intercept is wide there, and nothing else says how low rates are."""
    year = np.random.default_rng(0).integers(2000, 2020, 60).astype(float)[:, None]
    with pytest.warns(PriorConflictWarning, match="All counts are zero.*StandardScaler"):
        quick(name).fit(year, np.zeros(60))
    for x, y, options in (
        (year - year.mean(), np.zeros(60), {}),
        (year, np.zeros(60), {"intercept_prior": Normal(scale=100.0)}),
        (year, np.arange(60) % 3, {}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriorConflictWarning)
            quick(name, **options).fit(x, y)
