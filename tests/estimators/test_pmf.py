"""BayesianPMF: what goes in, what comes out."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import ratings
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayes_sg import BayesianPMF
from skbayes_sg.diagnostics import convergence
from skbayes_sg.exceptions import (
    DrawStoreWarning,
    InvalidParameterError,
    SamplerConvergenceWarning,
)
from skbayes_sg.factorisation import Gibbs, NormalGamma, setup
from skbayes_sg.factorisation.factor_posterior import FactorPosterior, _judged
from skbayes_sg.factorisation.request import FactorisationRequest
from skbayes_sg.metrics import interval_coverage

pytestmark = pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")


def table(n_users=30, n_items=20, n=400, noise=0.3, seed=0):
    """Ratings of two factors with biases."""
    rng = np.random.default_rng(seed)
    P, Q = rng.standard_normal((n_users, 2)), rng.standard_normal((n_items, 2))
    user, item = np.divmod(rng.permutation(n_users * n_items)[:n], n_items)
    bias = rng.standard_normal(n_users)
    y = 3.0 + bias[user] + (P[user] * Q[item]).sum(axis=1) + noise * rng.standard_normal(n)
    return np.column_stack([user, item]), y


X, Y = table()
TRAIN, TEST = slice(0, 320), slice(320, None)


def quick(**parameters):
    few = {"rank": 3, "n_draws": 20, "thin": 1, "random_state": 0}
    return BayesianPMF(**few | parameters)


@pytest.fixture(scope="module")
def fitted():
    return BayesianPMF(rank=3, n_draws=200, random_state=0).fit(X[TRAIN], Y[TRAIN])


# -- accuracy -------------------------------------------------------------------------------------


def test_ratings_and_their_intervals(fitted):
    mean, std = fitted.predict(X[TEST], return_std=True)
    assert np.sqrt(np.mean((mean - Y[TEST]) ** 2)) < 0.55
    lower, upper = fitted.predict_interval(X[TEST])
    assert 0.8 < interval_coverage(Y[TEST], lower, upper) < 1.0
    assert 0.25 < fitted.noise_std_ < 0.45
    assert std.min() > 0.2


@pytest.mark.slow
def test_movielens():
    X, y = ratings.movielens()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:80_000], order[80_000:]
    model = BayesianPMF(random_state=0).fit(X[train], y[train])
    with pytest.warns(UserWarning, match="categories that were not in the data"):
        mean = model.predict(X[test])
    assert np.sqrt(np.mean((mean - y[test]) ** 2)) <= 0.892
    with pytest.warns(UserWarning, match="by column: 0,"):
        lower, upper = model.predict_interval(X[test])
    assert 0.88 <= interval_coverage(y[test], lower, upper) <= 0.92


@pytest.mark.slow
def test_other_priors_and_noises():
    for parameters in ({"prior": NormalGamma()}, {"noise": "common"}, {"noise": 0.3}):
        model = quick(n_draws=100, **parameters).fit(X[TRAIN], Y[TRAIN])
        assert model.score(X[TEST], Y[TEST]) > 0.85
    assert model.noise_std_ == pytest.approx(0.3)


@pytest.mark.slow
def test_the_unit_of_ratings_does_not_matter(fitted):
    other = clone(fitted).fit(X[TRAIN], 1e6 * (Y[TRAIN] - 7.0))
    assert_allclose(other.predict(X[TEST]), 1e6 * (fitted.predict(X[TEST]) - 7.0), rtol=1e-6)
    assert other.noise_std_ == pytest.approx(1e6 * fitted.noise_std_)


@pytest.mark.slow
def test_more_columns_and_fewer():
    rng = np.random.default_rng(0)
    A = rng.integers(0, 12, (900, 3))
    A = np.unique(A, axis=0)
    F = rng.standard_normal((3, 12, 2))
    p = F[np.arange(3), A]
    y = (p[:, 0] * p[:, 1] + p[:, 0] * p[:, 2] + p[:, 1] * p[:, 2]).sum(axis=1)
    y += 0.1 * rng.standard_normal(len(y))
    keep = rng.random(len(y)) < 0.8
    model = quick(n_draws=100).fit(A[keep], y[keep])
    assert model.score(A[~keep], y[~keep]) > 0.9
    effects = quick(n_draws=100).fit(A[:, :1], F[0, A[:, 0], 0])
    assert effects.score(A[:, :1], F[0, A[:, 0], 0]) > 0.99


# -- categories -----------------------------------------------------------------------------------


def named(X):
    return np.array([[f"u{u:03d}", f"i{i:03d}"] for u, i in X])


DAYS = pd.Timestamp("2020-01-01") + pd.to_timedelta(X[:, 1], unit="D")


@pytest.mark.slow_except("str", "cat", "mixed", "large")
@pytest.mark.parametrize(
    "other",
    [
        named(X),
        named(X).astype(object),
        X.astype(np.float32),
        X.astype(np.int8),
        X + 2**40,
        X - 10,
        X.astype(object),
        pd.DataFrame(X, columns=["user", "item"]),
        pd.DataFrame(named(X)).astype("category"),
        pd.DataFrame({"user": named(X)[:, 0], "item": X[:, 1]}),
        pd.DataFrame({"user": X[:, 0], "day": DAYS}),
        pd.DataFrame({"user": pd.array(X[:, 0], dtype="Int64"), "day": DAYS}),
    ],
    ids=[
        "str",
        "object",
        "float32",
        "int8",
        "large",
        "negative",
        "ints",
        "frame",
        "cat",
        "mixed",
        "dates",
        "nullable",
    ],
)
def test_categories_of_any_kind(other):
    plain = quick().fit(X, Y)
    model = quick().fit(other, Y)
    assert np.array_equal(model.predict(other), plain.predict(X))
    assert model.recommend(plain.categories_[0][:0]).size == 0


def test_categories_that_cannot_be_sorted():
    column = np.empty(len(X), dtype=object)
    column[:] = [(int(u),) if u % 2 else str(u) for u in X[:, 0]]
    mixed = np.column_stack([column, X[:, 1].astype(object)])
    model = quick().fit(mixed, Y)
    assert model.score(mixed, Y) > 0.8
    with pytest.warns(UserWarning, match="1 of 1 rows"):
        model.predict(np.array([["nobody", 3]], dtype=object))


def test_numbers_and_texts_are_different_categories():
    model = quick().fit(X, Y)
    with pytest.warns(UserWarning, match="2 of 2 rows"):
        model.predict(np.array([["1", "2"], ["3", "4"]]))


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (X.astype(float) * np.nan, "Input X contains NaN"),
        (pd.DataFrame({"a": ["x", None] * 200, "b": X[:, 1]}), "missing in row 1"),
        (np.where(X == 3, None, X), "a category is missing in row"),
        (X[:, 0], "Expected 2D array"),
        (X[:-1], "inconsistent numbers of samples"),
    ],
)
def test_bad_categories(bad, text):
    with pytest.raises(ValueError, match=text):
        quick().fit(bad, Y)


def test_bad_ratings():
    y = Y.copy()
    y[5] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN"):
        quick().fit(X, y)
    y[5] = 9.0
    with pytest.raises(
        ValueError, match=r"y has the rating 9 in row 5, which is outside clip=\(-5.0, 8.0"
    ):
        quick(clip=(-5, 8)).fit(X, np.clip(y, -5, 9))
    with pytest.raises(ValueError, match="scale of y is too large for BayesianPMF"):
        quick().fit(X, Y * 1e300)


def test_the_same_categories_twice():
    again, y = np.vstack([X, X[7:8]]), np.append(Y, 0.0)
    with pytest.raises(ValueError, match=rf"rows 7 and 400 of X are both \[{X[7, 0]}, {X[7, 1]}\]"):
        quick().fit(again, y)
    assert np.isfinite(quick(duplicates="keep").fit(again, y).predict(X)).all()
    more = np.column_stack([again, np.zeros(401, int)])
    quick().fit(more, y)
    with pytest.raises(ValueError, match="several ratings"):
        quick(duplicates="raise").fit(more, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", 0), ("rank", True), ("n_draws", 0), ("thin", 1.5), ("n_warmup", -1),
        ("prior", "wishart"), ("noise", -1.0), ("noise", "student"), ("sampler", "nuts"),
        ("keep", "some"), ("cold", "ignore"), ("duplicates", "drop"), ("clip", (5, 1)),
        ("clip", "yes"), ("random_state", -1), ("n_jobs", 0), ("n_chains", 0),
    ],
)  # fmt: skip
def test_parameters(name, value):
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of BayesianPMF"):
        quick(**{name: value}).fit(X, Y)


def test_an_error_leaves_the_estimator_as_it_was(fitted):
    model = pickle.loads(pickle.dumps(fitted))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X.astype(float), Y * np.nan)
    assert vars(model) == before


@pytest.mark.parametrize("y", [np.zeros(400), np.full(400, 1e8), Y * 1e100])
def test_ratings_of_any_scale(y):
    model = quick().fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


# -- reproducibility ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws(monkeypatch):
    monkeypatch.setattr("skbayes_sg.factorisation.problem.BLOCK", 64)
    expected = quick(n_chains=2).fit(X, Y)
    alone = quick().fit(X, Y)
    chains = [quick(n_chains=2, n_jobs=n_jobs).fit(X, Y).draws_ for n_jobs in (2, -1)]
    shared = quick(n_jobs=2).fit(X, Y).draws_  # the rows of one chain among two threads
    for name, draws in expected.draws_.items():
        assert all(np.array_equal(other[name], draws) for other in chains)
        assert np.array_equal(shared[name][0], draws[0])
        assert np.array_equal(alone.draws_[name][0], draws[0])
    assert not np.array_equal(expected.draws_["F"][0], expected.draws_["F"][1])


@pytest.mark.parametrize("max_nbytes", [1000, pytest.param("1M", marks=pytest.mark.slow)])
def test_processes(max_nbytes):
    """Larger arrays are mapped into the memory of workers, which write draws to them."""
    expected = quick(n_chains=2).fit(X, Y)
    with joblib.parallel_config("loky", n_jobs=2, max_nbytes=max_nbytes):
        model = quick(n_chains=2, n_jobs=2).fit(X, Y)
    assert np.array_equal(model.draws_["F"], expected.draws_["F"])
    assert np.array_equal(model.posterior_.flat, expected.posterior_.flat)


@pytest.mark.parametrize(
    ("n_ratings", "n_draws", "thin", "n_warmup"),
    [
        (3, 100, 20, 100), (4_000, 100, 20, 100), (7_000, 100, 11, 55), (40_001, 100, 1, 50),
        (1_000_000, 100, 1, 50), (3, 1_000, 2, 50), (3, 5_000, 1, 50), (3, 7, 20, 100),
    ],
)  # fmt: skip
def test_passes_over_few_ratings_are_many(n_ratings, n_draws, thin, n_warmup):
    request = FactorisationRequest(BayesianPMF(n_draws=n_draws))
    request.plan(n_ratings)
    assert (request.thin, request.n_warmup) == (thin, n_warmup)
    request = FactorisationRequest(BayesianPMF(n_draws=n_draws, thin=3, n_warmup=4))
    request.plan(n_ratings)
    assert (request.thin, request.n_warmup) == (3, 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 8))]
)
def test_chains_of_few_ratings_agree_by_default(seed):
    """With a draw after each pass, four in five of such tables came with a warning."""
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(rng.random((40, 15)) < 0.3)
    U, V = rng.normal(size=(2, 40, 2))
    y = (U[pairs[:, 0]] * V[pairs[:, 1]]).sum(axis=1) + 0.5 * rng.normal(size=len(pairs))
    model = BayesianPMF(rank=4, n_chains=2, random_state=seed).fit(pairs, y)
    assert model.posterior_.check()
    assert (model.thin_, model.n_warmup_) == (20, 100)


@pytest.mark.slow
def test_thinned_draws_are_every_third():
    all_of_them = quick(n_draws=30, n_warmup=4).fit(X, Y).draws_["F"]
    some = quick(n_draws=10, n_warmup=4, thin=3).fit(X, Y).draws_["F"]
    assert np.array_equal(some, all_of_them[:, 2::3])


def test_copies_predict_the_same(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict(X[TEST]), fitted.predict(X[TEST]))
    assert clone(fitted).get_params() == fitted.get_params()


# -- predictions ----------------------------------------------------------------------------------


def test_predictions_by_hand():
    model = quick(n_draws=3).fit(X, Y)
    F, means = model.draws_["F"][0].astype(float), model.draws_["means"][0].astype(float)
    a, b = X[0, 0], model.offsets_[1] + X[0, 1]
    f = [x[a, :3] @ x[b, :3] + x[a, 3] + x[b, 3] for x in F]
    g = [m[a, :3] @ x[b, :3] + m[a, 3] + x[b, 3] for m, x in zip(means, F, strict=True)]
    noise = 1.0 / (model.draws_["alpha"] * model.draws_["w"][..., a] * model.draws_["w"][..., b])[0]
    mean, std = model.predict(X[:1], return_std=True)
    assert_allclose(mean, model.centre_ + model.scale_ * np.mean(g), rtol=1e-6)
    assert_allclose(std, model.scale_ * np.sqrt(np.var(f) + noise.mean()), rtol=1e-5)


@pytest.mark.parametrize("noise", [0.5, "common"])
def test_equal_noise_is_that_of_new_categories_as_well(noise):
    model = quick(noise=noise).fit(X, Y)
    new = 1 + X.max()
    rows = [X[0], [new, X[0, 1]], [X[0, 0], new], [new, new]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        aleatoric = model.predict_std_components(rows)[1]
    assert_allclose(aleatoric, aleatoric[0], rtol=1e-6)
    if noise != "common":
        assert_allclose(aleatoric, noise, rtol=1e-6)


def test_parts_of_the_uncertainty_and_the_density(fitted):
    _, std = fitted.predict(X[TEST], return_std=True)
    epistemic, aleatoric = fitted.predict_std_components(X[TEST])
    assert_allclose(np.hypot(epistemic, aleatoric), std, rtol=1e-6)
    with sklearn.config_context(working_memory=1):
        log_p = fitted.predict_log_density(X[TEST], Y[TEST])
    few, step = X[TEST][:3], 1e-4
    for k, row in enumerate(few):  # the density is the slope of the probability of quantiles
        grid = fitted.predict_quantiles(row[None], [0.3, 0.3 + step])[0]
        slope = step / np.diff(grid)[0]
        at = fitted.predict_log_density(row[None], grid[:1])[0]
        assert_allclose(np.exp(at), slope, rtol=1e-3), k
    assert -2.0 < log_p.mean() < 0.0


def test_predictions_do_not_depend_on_blocks(fitted):
    with sklearn.config_context(working_memory=1):
        small = fitted.predict(X[TEST]), fitted.sample_y(X[TEST], 3)
    assert np.array_equal(small[0], fitted.predict(X[TEST]))
    assert small[1].shape == (80, 3)


def test_quantiles_and_samples_have_the_law_of_predictions(fitted):
    few = X[TEST][:6]
    mean, std = fitted.predict(few, return_std=True)
    samples = fitted.sample_y(few, 20_000, random_state=1)
    assert_allclose(samples.mean(axis=1), mean, atol=5 * std.max() / np.sqrt(20_000) + 1e-3)
    assert_allclose(samples.std(axis=1), std, rtol=0.05)
    quantiles = fitted.predict_quantiles(few, [0.05, 0.5, 0.95])
    assert (np.diff(quantiles, axis=1) > 0).all()
    inside = (samples < quantiles[:, 2:]).mean(axis=1)
    assert_allclose(inside, 0.95, atol=5 * np.sqrt(0.05 * 0.95 / 20_000))
    assert np.array_equal(fitted.predict_quantiles(few, 0.5), quantiles[:, 1])
    lower, upper = fitted.predict_interval(few)
    # (1 - 0.9)/2 is not 0.05 to the last digit, and solutions have 1e-10 of the width of the parts.
    assert_allclose(np.column_stack([lower, upper]), quantiles[:, [0, 2]], rtol=0, atol=1e-9)


@pytest.mark.parametrize("call", [
    lambda m: m.predict_quantiles(X, [0.0, 0.5]),
    lambda m: m.predict_interval(X, 1.0),
    lambda m: m.sample_y(X, 0),
    lambda m: m.recommend([0], strategy="best"),
    lambda m: m.recommend([0], n=21),
    lambda m: m.recommend([0], strategy="ucb", exploration=np.nan),
    lambda m: m.recommend([0], strategy="ucb", exploration=np.inf),
    lambda m: m.recommend([0], strategy="ucb", exploration="much"),
    lambda m: m.recommend([0], context=["monday"]),
    lambda m: m.similar([999]),
    lambda m: m.similar([0], n=20),
])  # fmt: skip
def test_arguments_of_predictions(fitted, call):
    with pytest.raises(ValueError, match=r"must|not in the data"):
        call(fitted)


@pytest.mark.parametrize("call", ["recommend", "similar"])
@pytest.mark.parametrize("given", [0, "user"])
def test_users_and_items_are_sequences(fitted, call, given):
    name = "users" if call == "recommend" else "items"
    with pytest.raises(ValueError, match=rf"{name} must be a sequence of categories, got"):
        getattr(fitted, call)(given)


def test_users_are_named_as_they_were_given(fitted):
    with pytest.raises(ValueError, match=r"n must be .* left for user 0, got 99"):
        fitted.recommend(np.array([0]), n=99)


def test_new_categories_have_the_prediction_of_their_prior(fitted):
    with pytest.warns(UserWarning, match=r"3 of 4 rows .*\(by column: 2, 2\)"):
        mean, std = fitted.predict([[999, 3], [999, -1], [4, 999], [4, 3]], return_std=True)
    assert (std[:3] > 1.5 * std[3]).all()
    assert abs(mean[1] - Y.mean()) < 1.0
    cold = clone(fitted).set_params(cold="raise", n_draws=2).fit(X, Y)
    with pytest.raises(ValueError, match="1 of 1 rows have categories"):
        cold.predict([[999, 3]])


@pytest.mark.slow
def test_predictions_are_clipped_only_if_asked():
    y = np.round(np.clip(Y, 1, 5))
    free = quick().fit(X, y)
    assert free.predict(X).max() > 5.0
    for clip in (True, (1, 5)):
        model = quick(clip=clip).fit(X, y)
        assert np.array_equal(model.predict(X), np.clip(free.predict(X), 1, 5))
        lower, upper = model.predict_interval(X)
        assert lower.min() >= 1.0
        assert upper.max() <= 5.0


# -- recommendations ------------------------------------------------------------------------------


def test_unknown_users_are_told(fitted):
    known = fitted.categories_[0][0]
    with pytest.warns(UserWarning, match="1 of 2 users were not in the data, such as 777") as told:
        items = fitted.recommend([known, 777], n=3)
    assert items.shape == (2, 3)
    assert told[0].filename == __file__
    with pytest.raises(ValueError, match="1 of 1 users were not in the data, such as 'eve'"):
        quick(cold="raise").fit(X[TRAIN], Y[TRAIN]).recommend(["eve"], n=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.recommend([known], n=3)


def test_intervals_and_samples_stay_inside_the_scale():
    rounded = np.clip(np.rint(Y), 1.0, 5.0)
    model = quick(clip=(1.0, 5.0)).fit(X[TRAIN], rounded[TRAIN])
    free = quick().fit(X[TRAIN], rounded[TRAIN])
    ends, own = (np.array(m.predict_interval(X[TEST], 0.99)) for m in (model, free))
    assert own.min() < 1.0
    assert own.max() > 5.0
    assert np.array_equal(ends, np.clip(own, 1.0, 5.0))
    samples = model.sample_y(X[TEST], 50)
    assert samples.min() == 1.0
    assert samples.max() == 5.0


def test_recommended_items_are_the_best_of_those_not_seen(fitted):
    items, scores = fitted.recommend([3, 5], 4, return_scores=True)
    for user, mine, score in zip([3, 5], items, scores, strict=True):
        there = np.arange(20)
        predicted = fitted.predict(np.column_stack([np.full(20, user), there]))
        seen = X[TRAIN][X[TRAIN][:, 0] == user, 1]
        left = np.setdiff1d(there, seen)
        best = left[np.argsort(-predicted[left])][:4]
        assert np.array_equal(mine, best)
        assert_allclose(score, predicted[best], rtol=1e-6)
    everything = fitted.recommend([3], 20, exclude_seen=False)
    assert sorted(everything[0]) == list(range(20))


def test_users_who_have_rated_everything_are_named():
    rows = np.array([[u, i] for u in range(6) for i in range(4) if u == 0 or i != u % 4])
    model = quick().fit(rows, np.linspace(1.0, 5.0, len(rows)))
    with pytest.raises(ValueError, match=r"No items are left for user 0. With exclude_seen=False"):
        model.recommend([0], n=1)


def test_ratios_are_told_apart_from_their_limit():
    told = next(_judged("predictions", 1.0503, 100.0, (4, 100), 0.1))
    assert told.text == "1.050"


def test_optimism_prefers_what_is_less_sure(fitted):
    pairs = np.column_stack([np.full(20, 3), np.arange(20)])
    mean, std = fitted.predict(pairs, return_std=True)
    items, scores = fitted.recommend(
        [3], 20, strategy="ucb", exploration=2.0, exclude_seen=False, return_scores=True
    )
    added = scores[0] - mean[items[0]]
    assert (added > 0).all()
    assert np.corrcoef(added, std[items[0]])[0, 1] > 0.7


def test_thompson_samples_are_draws(fitted):
    users = np.repeat([3, 999], 400)
    items, scores = fitted.recommend(
        users, 20, strategy="thompson", exclude_seen=False, return_scores=True, random_state=0
    )
    of_item = np.take_along_axis(scores, np.argsort(items, axis=1), axis=1)
    pairs = np.column_stack([np.repeat([3, 999], 20), np.tile(np.arange(20), 2)])
    with pytest.warns(UserWarning, match="not in the data"):
        samples = fitted.sample_y(pairs, 4000, random_state=0)
    spread = np.sqrt(np.maximum(samples.var(axis=1) - fitted.noise_std_**2, 1e-3)).reshape(2, 20)
    for k in range(2):
        mine = of_item[400 * k : 400 * (k + 1)]
        off = (mine.mean(axis=0) - samples.mean(axis=1).reshape(2, 20)[k]) / spread[k]
        assert np.abs(off).max() < 5.5 * np.sqrt(2 / 400) * 1.5
    assert of_item[400:].std(axis=0).mean() > 2.0 * of_item[:400].std(axis=0).mean()
    again = fitted.recommend(users[:3], 5, strategy="thompson", random_state=7)
    assert np.array_equal(
        again, fitted.recommend(users[:3], 5, strategy="thompson", random_state=7)
    )


@pytest.mark.slow
def test_context_of_recommendations():
    hour = np.arange(400) % 3
    model = quick().fit(np.column_stack([X, hour]), Y + hour)
    items, scores = model.recommend([3], 5, context=[2], exclude_seen=False, return_scores=True)
    rows = np.column_stack([np.full(5, 3), items[0], np.full(5, 2)])
    assert_allclose(scores[0], model.predict(rows), rtol=1e-6)
    early = model.recommend([3], 5, context=[[0]], exclude_seen=False, return_scores=True)[1]
    assert (scores > early).all()
    with pytest.raises(ValueError, match="context must have the 1 categories"):
        model.recommend([3])
    with pytest.raises(ValueError, match="single column"):
        quick().fit(X[:, :1], Y).recommend([3])


def test_similar_items():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 10)  # items of two kinds, which no user likes both of
    user, item = (a.ravel() for a in np.meshgrid(np.arange(60), np.arange(20)))
    taste = rng.standard_normal(60)
    y = np.where(kind[item] == 0, taste[user], -taste[user]) + 0.3 * rng.standard_normal(1200)
    model = quick().fit(np.column_stack([user, item]), y)
    alike, correlation = model.similar([2, 15], 9)
    assert (kind[alike[0]] == 0).all()
    assert (kind[alike[1]] == 1).all()
    assert (correlation > 0.7).all()
    assert (np.diff(correlation, axis=1) <= 0).all()
    _, all_of_them = model.similar([2], 19)
    assert all_of_them[0, -1] < -0.7
    with pytest.raises(ValueError, match="single column"):
        quick().fit(X[:, :1], Y).similar([3])


# -- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["gibbs", "sgld", "sghmc", "user_block"])
def test_running_moments_are_those_of_the_draws(sampler):
    full = quick(n_chains=2, sampler=sampler).fit(X[TRAIN], Y[TRAIN])
    options = {"n_chains": 2, "sampler": sampler, "keep": "predictive"}
    model = quick(**options).fit(X[TRAIN], Y[TRAIN], probes=X[TEST])
    expected, found = (m.predict(X[TEST], return_std=True) for m in (full, model))
    assert_allclose(found, expected, rtol=1e-5)
    lower, upper = model.predict_interval(X[TEST])
    assert_allclose(0.5 * (lower + upper), found[0], rtol=1e-9)
    assert_allclose(upper - lower, 2 * 1.6448536 * found[1], rtol=1e-6)
    assert model.sample_y(X[TEST], 2).shape == (80, 2)
    with pytest.raises(ValueError, match="only the rows given to fit can be predicted; 320"):
        model.predict(X[TRAIN])
    with pytest.raises(ValueError, match="has kept no draws"):
        model.recommend([0])
    known = quick(keep="predictive").fit(X[TRAIN], Y[TRAIN])
    assert_allclose(
        known.predict(X[TRAIN]), quick().fit(X[TRAIN], Y[TRAIN]).predict(X[TRAIN]), rtol=1e-5
    )
    with pytest.raises(ValueError, match="probes are for keep='predictive'"):
        quick().fit(X, Y, probes=X)


@pytest.mark.slow
def test_guard_of_the_draws():
    size = 4 * 20 * (50 * 5 + 30 * 4 + 1 + 2 * 21)
    with sklearn.config_context(working_memory=(size - 1) / 2**20):
        with pytest.warns(DrawStoreWarning, match=rf"{size:,} bytes.*float32.*thin.*moments"):
            quick().fit(X, Y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DrawStoreWarning)
            quick(keep="predictive").fit(X, Y)
    with pytest.raises(MemoryError, match="do not fit into free memory"):
        quick(n_draws=10**9).fit(X, Y)


def test_draws_have_the_size_that_was_guarded():
    draws = quick().fit(X, Y).draws_
    assert sum(a.nbytes for a in draws.values()) == 4 * 20 * (50 * 5 + 30 * 4 + 1 + 2 * 21)


# -- scikit-learn ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_search_and_pipeline():
    grid = {"rank": [1, 3], "step_size": ["auto", 0.8]}
    search = GridSearchCV(quick(), grid, cv=2).fit(X, Y)
    assert search.best_params_["rank"] == 3
    pipeline = make_pipeline(FunctionTransformer(lambda X: X[:, ::-1]), quick())
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.7
    mean, std = pipeline.fit(X, Y).predict(X, return_std=True)
    assert mean.shape == std.shape


@pytest.mark.slow
def test_convergence_is_told():
    with pytest.warns(SamplerConvergenceWarning, match="R-hat of"):
        BayesianPMF(n_draws=8, n_warmup=0, random_state=0).fit(X, Y + 100 * X[:, 0])
    model = quick(n_draws=7).fit(X, Y)
    assert np.isnan(model.diagnostics_["rhat"])
    assert isinstance(quick(sampler=Gibbs()).fit(X, Y).sampler_, str)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, None), ({"rhat": np.nan, "ess": np.nan}, None),
        ({"noise_rhat": 1.23}, "R-hat of noise"), ({"noise_rhat": 1.04}, None),
        ({"noise_ess": 390.0}, "effective sample size of noise"), ({"noise_ess": 410.0}, None),
        ({"rhat": 1.06}, "R-hat of predictions"), ({"rhat": 1.04}, None),
        ({"ess": 7.0}, "effective sample size of predictions"),
    ],
)  # fmt: skip
def test_the_noise_is_judged_like_any_parameter(monkeypatch, changed, name):
    good = {"rhat": 1.01, "ess": 900.0, "noise_rhat": 1.01, "noise_ess": 900.0}
    monkeypatch.setattr(FactorPosterior, "convergence", lambda self: good | changed)
    found = FactorPosterior(
        np.ones((4, 1000)), np.ones((4, 1000)), np.ones((4, 1000, 3)), {}
    ).check()
    assert [finding.name for finding in found.findings] == [name] * (name is not None)
    assert len(found.unknown) == 2 * ("rhat" in changed and np.isnan(changed["rhat"]))


@pytest.mark.parametrize("n_draws", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_what_check_finds_the_fit_warns_of(n_draws):
    silent = []
    for n_warmup in (0, 30):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SamplerConvergenceWarning)
            model = quick(n_draws=n_draws, n_warmup=n_warmup, rank=2, thin=4).fit(X, Y)
        check = model.posterior_.check()
        assert len(caught) == (not check)
        named = [finding.name for finding in check.findings if not finding.is_note]
        assert all(name in str(caught[0].message) for name in named)
        assert all(one.filename == __file__ for one in caught)
        silent.append(not caught)
    assert silent[1]


def test_predictions_may_be_worse_in_one_case_of_ten():
    """The largest R-hat of fifty is above its limit by chance; of one in ten it is not."""
    rng = np.random.default_rng(0)
    noise, probes = rng.normal(size=(4, 200)), rng.normal(size=(4, 200, 50))
    probes[..., :4] += 3.0 * np.arange(4)[:, None, None]
    assert FactorPosterior(noise, noise, probes, {}).check()
    probes[..., 4:6] += 3.0 * np.arange(4)[:, None, None]
    assert not FactorPosterior(noise, noise, probes, {}).check()


def test_what_is_judged_of_the_noise(fitted):
    noise = fitted.posterior_["noise_std"]
    assert fitted.diagnostics_["noise_rhat"] == convergence.rhat(noise)
    assert fitted.diagnostics_["noise_ess"] == convergence.ess_bulk(noise)


def test_fitted_state_is_arrays_numbers_and_texts(fitted):
    for name, value in vars(fitted).items():
        if name.endswith("_") and name != "posterior_":
            values = value.values() if isinstance(value, dict) else [value]
            values = [v for one in values for v in (one if isinstance(one, list) else [one])]
            assert all(isinstance(v, (np.ndarray, float, int, str)) for v in values), name


class Interrupted(Gibbs):
    """Ctrl-C in the second pass."""

    def sweep(self, model, chain, n_jobs=None):
        if chain.passes == 1:
            raise KeyboardInterrupt
        super().sweep(model, chain, n_jobs)


def test_ctrl_c_leaves_the_estimator_as_it_was():
    model = quick(sampler=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]


class Watcher:
    """Stops after some tasks; keeps what estimators on the way predict."""

    def __init__(self):
        self.scores = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        pass

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        if fitted_estimator is not None and context.task_name == "draws":
            self.scores.append(fitted_estimator.score(X, y))
        return len(self.scores) >= 3


def test_callbacks_see_the_draws_so_far_and_may_stop():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    watcher, model = Watcher(), quick(n_draws=100)
    model.set_callbacks(watcher).fit(X, Y)
    assert model.posterior_.n_draws == model.draws_["F"].shape[1] == 6
    assert model.score(X, Y) == watcher.scores[-1]


@pytest.mark.parametrize("sampler", ["gibbs", "sghmc"])
def test_the_price_of_many_passes_is_told(sampler, monkeypatch):
    told = []
    monkeypatch.setattr(setup, "warn_if_long", lambda seconds, *_: told.append(seconds))
    options = {"sampler": sampler, "n_draws": 5, "thin": 2, "n_warmup": 3, "random_state": 0}
    X, y = np.column_stack([np.arange(60) // 6, np.arange(60) % 6]), np.arange(60) % 5.0
    BayesianPMF(rank=2, n_chains=2, **options).fit(X, y)
    own = 60 * (setup.PASS_SECONDS + 4 * setup.RANK_SECONDS)
    rows = 16 * (9 * setup.ROW_SECONDS[0] + 27 * setup.ROW_SECONDS[1])
    wanted = 13 * (setup.LEAST_SECONDS + (3.0 * own if sampler == "sghmc" else own + rows))
    if sampler == "sghmc":  # four sweeps from each of four draws
        wanted += 16 * (setup.LEAST_SECONDS + own + rows)
    assert told == [pytest.approx(2 * wanted)]


@pytest.mark.slow
def test_ratings_that_are_all_the_same_keep_their_unit():
    X = np.column_stack([np.arange(60) // 6, np.arange(60) % 6])
    model = BayesianPMF(rank=2, n_draws=50, random_state=0).fit(X, np.full(60, 7.3))
    assert model.scale_ == 1.0
    np.testing.assert_allclose(model.predict(X), 7.3, atol=0.1)


def test_categories_of_another_type_are_named():
    rng = np.random.default_rng(0)
    X, y = np.argwhere(np.ones((8, 8))), rng.normal(size=64)
    model = BayesianPMF(rank=1, n_draws=5, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="in column 0 they are like '3', and those of the fit"):
        model.predict(np.array([["3", "4"]]))
