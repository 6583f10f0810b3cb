"""Leave-one-out estimates against closed forms, refits, and ArviZ on the whole matrix."""

import tracemalloc
import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import sparse, stats
from scipy.special import log_expit, log_softmax, logsumexp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLDA,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPRegressor,
    BayesianPMF,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.custom import CustomDensity
from skbayes_sg.estimators import _at_all_draws
from skbayes_sg.exceptions import ParetoKWarning
from skbayes_sg.model_selection import compare, loo
from skbayes_sg.model_selection.pareto_smoothing import (
    ELPD,
    LPPD,
    PARETO_K,
    leave_one_out,
    tail_size,
)
from skbayes_sg.priors import Normal
from skbayes_sg.schedules import Polynomial

FEW = {"n_draws": 100, "random_state": 0}


def rows(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.linspace(-1.0, 1.0, d) + 0.3, rng


def equal_weights(S):
    return np.full(S, -np.log(S))


def of_arviz(log_likelihood, r_eff):
    """ELPD, Pareto k and log predictive density by ArviZ, (n_rows, 3)."""
    elpd, k, p = array_stats.loo(log_likelihood[:, None, :], r_eff=r_eff)
    return np.column_stack([elpd, k, elpd + p])


# -- the kernel -----------------------------------------------------------------------------------

FAMILIES = {
    "light tails": lambda rng, S: log_expit(2.0 + rng.normal(size=(30, 1)) + rng.normal(size=S)),
    "heavy tails": lambda rng, S: -((rng.normal(size=(30, 1)) * 2 + rng.normal(size=S)) ** 2),
    "nearly the same": lambda rng, S: -1.0 - 1e-6 * rng.exponential(size=(30, S)),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("S", "r_eff"), [(30, 1.0), (400, 1.0), (4000, 1.0), (4000, 0.3)])
def test_numbers_are_those_of_arviz(family, S, r_eff):
    ll = FAMILIES[family](np.random.default_rng(0), S)
    found = leave_one_out(ll, ll, equal_weights(S), tail_size(S, r_eff))
    expected = of_arviz(ll, r_eff)
    assert np.abs(found - expected)[:, [ELPD, LPPD]].max() < 1e-8
    assert np.abs(found - expected)[:, PARETO_K].max() < 1e-5


def test_powers_and_weights_of_draws_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    ll, powers = -((1.0 + rng.normal(size=(20, 500))) ** 2), rng.uniform(0.0, 2.0, size=20)
    log_v = rng.normal(size=500)
    log_v -= logsumexp(log_v)
    found = leave_one_out(ll, powers[:, None] * ll, log_v, tail_size(500, 1.0))
    lw, k = array_stats.psislw(powers[:, None] * ll - log_v)  # of log likelihoods
    assert np.allclose(found[:, ELPD], logsumexp(lw + ll, axis=1), rtol=0, atol=1e-9)
    assert np.allclose(found[:, PARETO_K], k, rtol=0, atol=1e-9)
    assert np.allclose(found[:, LPPD], logsumexp(log_v + ll, axis=1), rtol=0, atol=1e-12)


def test_a_row_that_is_not_left_out_has_the_density_of_the_fit():
    ll = np.random.default_rng(0).normal(size=(3, 200))
    found = leave_one_out(ll, 0.0 * ll, equal_weights(200), tail_size(200, 1.0))
    assert np.allclose(found[:, ELPD], logsumexp(ll, axis=1) - np.log(200), rtol=0, atol=1e-12)
    assert (found[:, PARETO_K] == -np.inf).all()


def test_extremes_are_finite_and_say_so():
    rng = np.random.default_rng(0)
    rows = [
        np.full(300, -5.0),
        np.append(np.zeros(299), -1e4),
        -1e3 * rng.standard_cauchy(300) ** 2,
    ]
    ll = np.array(rows)
    found = leave_one_out(ll, ll, equal_weights(300), tail_size(300, 1.0))
    assert np.isfinite(found[:, [ELPD, LPPD]]).all()
    assert found[0, ELPD] == pytest.approx(-5.0)
    assert found[:, PARETO_K].tolist() == [-np.inf, np.inf, np.inf]
    ll = rng.normal(size=(1, 12))
    few = leave_one_out(ll, ll, equal_weights(12), tail_size(12, 1.0))
    assert np.isnan(few[0, PARETO_K])  # too few to have a tail
    assert np.isfinite(few[0, ELPD])


# -- all models -----------------------------------------------------------------------------------


def flat(model, name):
    draws = model.posterior_[name]
    return draws.reshape(-1, *draws.shape[2:])


def predictors(model, X):
    """η at all draws, (n_rows, n_draws) or (n_rows, n_draws, K)."""
    eta = np.einsum("id,s...d->is...", X, flat(model, "coef")) + flat(model, "intercept")
    return eta[:, :, 0] if eta.ndim == 3 and eta.shape[2] == 1 else eta


def binary(model, X, y):
    eta = predictors(model, X)
    return np.where(y[:, None] == model.classes_[1], log_expit(eta), log_expit(-eta))


def many(model, X, y):
    own = np.searchsorted(model.classes_, y)
    return log_softmax(predictors(model, X), axis=2)[np.arange(len(y)), :, own]


def linear(model, X, y):
    sigma = flat(model, "noise_std") if "noise_std" in model.posterior_ else model.noise_std_
    return stats.norm.logpdf(y[:, None], predictors(model, X), sigma)


def robust(model, X, y):
    scale, df = flat(model, "noise_std"), flat(model, "df")
    return stats.t.logpdf(y[:, None], df, predictors(model, X), scale)


def poisson(model, X, y):
    return stats.poisson.logpmf(y[:, None], np.exp(predictors(model, X)))


def labels(eta, rng):
    return np.where(eta + rng.logistic(size=len(eta)) > 0, "yes", "no")


def classes(eta, rng):
    return np.array(["a", "b", "c"])[
        (eta + rng.normal(size=len(eta)) > [[-0.5], [0.5]]).sum(axis=0)
    ]


MODELS = {
    "binary": (BayesianLogisticRegression(), labels, binary),
    "softmax": (BayesianLogisticRegression(), classes, many),
    "linear": (
        BayesianLinearRegression(),
        lambda eta, rng: eta + rng.normal(size=len(eta)),
        linear,
    ),
    "known noise": (BayesianLinearRegression(noise=0.5), lambda eta, rng: eta, linear),
    "robust": (
        BayesianRobustRegression(),
        lambda eta, rng: eta + rng.normal(size=len(eta)),
        robust,
    ),
    "poisson": (BayesianPoissonRegressor(), lambda eta, rng: rng.poisson(np.exp(eta)), poisson),
}


def fitted(name):
    model, response, of_rows = MODELS[name]
    X, eta, rng = rows()
    y = response(eta, rng)
    return model.set_params(**FEW).fit(X, y), X, y, of_rows


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.ParetoKWarning")
@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_the_numbers_of_the_whole_matrix(name, monkeypatch):
    model, X, y, of_rows = fitted(name)
    found = loo(model, X, y)
    expected = of_arviz(of_rows(model, X, y), found.r_eff)
    assert np.allclose(found.elpd_i, expected[:, 0], rtol=0, atol=1e-9)
    assert np.allclose(found.pareto_k, expected[:, 1], rtol=0, atol=1e-7)
    assert np.allclose(found.p_loo_i, expected[:, 2] - expected[:, 0], rtol=0, atol=1e-9)
    elpd, se, p_loo, _ = array_stats.loo_summary(found.elpd_i, found.p_loo_i)
    assert [found.elpd, found.se, found.p_loo] == pytest.approx([elpd, se, p_loo])
    for rows_of_a_block in (1, 7):
        S = model.posterior_.n_chains * model.posterior_.n_draws
        K = np.atleast_2d(model.coef_).shape[0]
        monkeypatch.setattr(_at_all_draws, "BLOCK_BYTES", 8 * S * K * rows_of_a_block)
        again = loo(model, sparse.csr_array(X), y)
        assert np.allclose(again.elpd_i, found.elpd_i, rtol=0, atol=1e-11)
        assert np.allclose(again.pareto_k, found.pareto_k, rtol=0, atol=1e-8)


def test_pipelines_and_searches_are_opened():
    X, eta, rng = rows()
    y = labels(eta, rng)
    pipeline = make_pipeline(StandardScaler(), BayesianLogisticRegression(**FEW)).fit(X, y)
    expected = loo(pipeline[-1], pipeline[0].transform(X), y)
    assert np.array_equal(loo(pipeline, X, y).elpd_i, expected.elpd_i)
    grid = {"bayesianlogisticregression__prior": [Normal(scale=1.0)]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert loo(search, X, y).elpd == loo(search.best_estimator_, X, y).elpd


@pytest.mark.slow
def test_the_matrix_of_rows_and_draws_never_exists():
    n = 6000
    X, eta, _ = rows(n)
    model = BayesianLinearRegression(random_state=0).fit(X, eta)
    loo(model, X, eta)  # what is imported and compiled does not count
    tracemalloc.start()
    loo(model, X, eta)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * 8 * n * 4000


# -- against exact answers ------------------------------------------------------------------------


def exact_linear(X, y, scale, sigma):
    """log p(y_i | all others) under β ~ N(0, scale²), without intercept and with known noise."""
    P = X.T @ X / sigma**2 + np.eye(X.shape[1]) / scale**2
    out = np.empty(len(y))
    for i, x in enumerate(X):
        others = np.delete(np.arange(len(y)), i)
        C = np.linalg.inv(P - np.outer(x, x) / sigma**2)
        mean = C @ X[others].T @ y[others] / sigma**2
        out[i] = stats.norm.logpdf(y[i], x @ mean, np.sqrt(x @ C @ x + sigma**2))
    return out


def errors(found, ll):
    """Monte Carlo standard errors of `elpd_i`, by the delta method."""
    w = np.exp(-ll - logsumexp(-ll, axis=1, keepdims=True))
    off = np.exp(ll - found.elpd_i[:, None]) - 1.0
    return np.sqrt((np.square(w) * np.square(off)).sum(axis=1))


def test_exact_leave_one_out_of_a_conjugate_model():
    X, eta, rng = rows(50, 4)
    y = eta - 0.3 + rng.normal(size=50)
    options = {"noise": 1.0, "fit_intercept": False, "prior": Normal(scale=2.0)}
    model = BayesianLinearRegression(**options, n_draws=5000, random_state=0).fit(X, y)
    found, exact = loo(model, X, y), exact_linear(X, y, 2.0, 1.0)
    ll = stats.norm.logpdf(y[:, None], X @ flat(model, "coef").T, 1.0)
    se = errors(found, ll)
    assert np.abs((found.elpd_i - exact) / se).max() < 5.0
    assert abs(found.elpd - exact.sum()) < 5.0 * np.sqrt(np.square(se).sum())
    with_the_row = found.elpd_i + found.p_loo_i  # a bug that would pass for leaving it out
    assert np.abs((with_the_row - exact) / se).max() > 10.0


@pytest.mark.slow
def test_refits_without_each_row_of_a_logistic_table():
    X, eta, rng = rows(25)
    y = labels(eta, rng)
    model = BayesianLogisticRegression(n_draws=2000, random_state=0)
    found = loo(model.fit(X, y), X, y)
    se = errors(found, binary(model, X, y))
    off = []
    for i in range(25):
        keep = np.arange(25) != i
        refit = BayesianLogisticRegression(n_draws=2000, random_state=i + 1).fit(X[keep], y[keep])
        p = np.exp(binary(refit, X[i : i + 1], y[i : i + 1]))
        own = p.std() / p.mean() / np.sqrt(0.5 * p.size)  # half of the draws are effective at least
        off.append((found.elpd_i[i] - np.log(p.mean())) / np.hypot(1.5 * se[i], own))
    assert np.abs(off).max() < 4.0
    assert np.square(off).mean() < 2.0


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.ParetoKWarning")
def test_exposures_of_counts_are_those_of_the_fit():
    X, eta, rng = rows()
    t = rng.uniform(0.5, 20.0, size=40)
    y = rng.poisson(t * np.exp(eta))
    model = BayesianPoissonRegressor(**FEW).fit(X, y, exposure=t)
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False).fit(X), model)
    found = loo(pipeline, X, y, exposure=t)
    ll = stats.poisson.logpmf(y[:, None], t[:, None] * np.exp(predictors(model, X)))
    assert np.allclose(found.elpd_i, of_arviz(ll, found.r_eff)[:, 0], rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="rows of the fit had exposures, and these have none"):
        loo(model, X, y)


# -- weights --------------------------------------------------------------------------------------


def test_a_weight_of_three_is_three_rows():
    X, eta, rng = rows(30)
    y, weight = labels(eta, rng), np.tile([1, 3, 2], 10)
    model = BayesianLogisticRegression(**FEW)
    found = loo(model.fit(X, y, weight), X, y, weight)
    rep = np.repeat(np.arange(30), weight)
    again = loo(model.fit(X[rep], y[rep]), X[rep], y[rep])
    assert [found.elpd, found.se, found.p_loo] == pytest.approx([again.elpd, again.se, again.p_loo])
    assert np.allclose(found.elpd_i[rep], again.elpd_i, rtol=0, atol=1e-9)


def test_small_weights_and_classes_are_powers_of_what_is_left_out():
    X, eta, rng = rows(30)
    y, weight = labels(eta, rng), np.tile([0.5, 2.0, 0.0], 10)
    model = BayesianLogisticRegression(class_weight={"yes": 0.25, "no": 1.5}, **FEW)
    found = loo(model.fit(X, y, weight), X, y, weight)
    ll = binary(model, X, y)
    powers = np.minimum(weight, 1.0) * np.where(y == "yes", 0.25, 1.5)
    for i in range(30):
        lw = np.full(ll.shape[1], -np.log(ll.shape[1]))
        if powers[i] > 0.0:
            lw = array_stats.psislw(powers[i] * ll[i], r_eff=found.r_eff)[0]
        assert found.elpd_i[i] == pytest.approx(logsumexp(lw + ll[i]), abs=1e-9)
    assert found.elpd == pytest.approx(weight @ found.elpd_i)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_weights_of_draws_count():
    X, eta, rng = rows(60)
    y = labels(eta, rng)
    options = {"sampler": "sgld", "step_size": Polynomial(0.5, gamma=0.6), "batch_size": 20}
    model = BayesianLogisticRegression(**options, **FEW).fit(X, y)
    found = loo(model, X, y)
    ll, v = binary(model, X, y), np.tile(model.posterior_.weights, 4)
    lw, _ = array_stats.psislw(ll - np.log(v), r_eff=found.r_eff)
    assert np.allclose(found.elpd_i, logsumexp(lw + ll, axis=1), rtol=0, atol=1e-9)


def test_chains_that_mix_slowly_have_longer_tails():
    X, eta, rng = rows(60)
    y = labels(eta, rng)
    chains = BayesianLogisticRegression(sampler="mala", thin=1, step_size=0.05, **FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = loo(chains.fit(X, y), X, y)
    assert found.r_eff < 0.3
    independent = BayesianLogisticRegression(**FEW).fit(X, y)
    assert 0.5 < loo(independent, X, y).r_eff <= 1.0


# -- warnings and refusals ------------------------------------------------------------------------


def outlier():
    X, eta, rng = rows(30)
    y = eta + 0.3 * rng.normal(size=30)
    X[7], y[7] = [6.0, 6.0], -40.0
    return X, y


def test_an_outlier_is_found_and_counted():
    X, y = outlier()
    model = BayesianLinearRegression(random_state=0).fit(X, y)
    with pytest.warns(ParetoKWarning, match="above 0.70 for 1 of 30 rows, the largest is") as said:
        found = loo(model, X, y)
    assert said[0].filename == __file__
    assert found.pareto_k.argmax() == 7
    assert found.pareto_k[7] > 0.7
    assert found.n_high_k == 1
    assert "above 0.70 for 1 of 30 rows" in repr(found)
    others = np.delete(np.arange(30), 7)
    assert loo(model.fit(X[others], y[others]), X[others], y[others]).n_high_k == 0


def test_few_draws_are_not_trusted():
    X, eta, _ = rows(30)
    model = BayesianLinearRegression(n_draws=6, n_chains=2, random_state=0).fit(X, eta)
    with pytest.warns(
        ParetoKWarning, match=r"of 30 rows, the largest is unknown \(too few draws\)"
    ):
        loo(model, X, eta)


def test_rows_that_were_not_fitted_are_refused():
    X, eta, rng = rows()
    y = labels(eta, rng)
    model = BayesianLogisticRegression(**FEW).fit(X, y)
    with pytest.raises(ValueError, match="was fitted to 40 rows of total weight 40, and got 30"):
        loo(model, X[:30], y[:30])
    with pytest.raises(ValueError, match="of total weight 80"):
        loo(model, X, y, np.full(40, 2.0))
    with pytest.raises(ValueError, match="with other responses"):
        loo(model, X, np.where(np.arange(40) == 3, np.where(y == "yes", "no", "yes"), y))
    with pytest.raises(ValueError, match="has the label 'maybe'"):
        loo(model, X, np.where(np.arange(40) == 3, "maybe", y))
    order = np.random.default_rng(1).permutation(40)
    assert loo(model, X[order], y[order]).elpd == pytest.approx(loo(model, X, y).elpd)


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (BayesianLDA(), "BayesianLDA has no leave-one-out estimate .* share its topics"),
        (BayesianPMF(), "BayesianPMF has no leave-one-out estimate .* user and item"),
        (
            BayesianMLPRegressor(),
            "BayesianMLPRegressor has no leave-one-out .* weights of a network",
        ),
        (CustomDensity(), r"CustomDensity has no leave-one-out .*cross_validate, whose"),
        (Ridge(), "needs a fitted regressor or classifier of skbayes_sg .* got Ridge"),
    ],
)
def test_others_are_refused_by_name(estimator, reason):
    with pytest.raises(TypeError, match=reason):
        loo(estimator, np.ones((3, 2)), np.ones(3))


def test_there_must_be_draws():
    X, eta, _ = rows()
    with pytest.raises(NotFittedError):
        loo(BayesianLinearRegression(), X, eta)
    with pytest.raises(ValueError, match="No draws were kept"):
        loo(BayesianLinearRegression(keep="moments", **FEW).fit(X, eta), X, eta)


# -- comparison -----------------------------------------------------------------------------------


def test_differences_by_hand():
    X, y = outlier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParetoKWarning)
        one = loo(BayesianLinearRegression(**FEW).fit(X, y), X, y)
        two = loo(BayesianRobustRegression(**FEW).fit(X, y), X, y)
    table = compare({"normal": one, "t": two})
    assert table.labels == ("t", "normal")
    off = one.elpd_i - two.elpd_i
    assert table["elpd_diff"].tolist() == pytest.approx([0.0, off.sum()])
    assert table["diff_se"].tolist() == pytest.approx([0.0, np.sqrt(30 * off.var())])
    assert table["elpd"].tolist() == pytest.approx([two.elpd, one.elpd])
    assert table["high_k"].tolist() == [two.n_high_k, one.n_high_k]
    assert table["high_k"][1] >= 1
    assert "the best model first" in repr(table)


def test_estimators_are_compared_on_given_rows():
    X, eta, rng = rows(60)
    y, weight = labels(eta, rng), np.tile([1.0, 2.0], 30)
    models = [BayesianLogisticRegression(prior=Normal(scale=s), **FEW) for s in (0.02, 1.0)]
    table = compare([model.fit(X, y, weight) for model in models], X, y, weight)
    assert table.labels == ("1 BayesianLogisticRegression", "0 BayesianLogisticRegression")
    loos = [loo(model, X, y, weight) for model in models]
    off = loos[0].elpd_i - loos[1].elpd_i
    mean = weight @ off / 90.0
    assert table["diff_se"][1] == pytest.approx(np.sqrt(weight @ (off - mean) ** 2))


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.ParetoKWarning")
def test_rows_of_a_fit_are_known_by_their_columns_and_responses():
    X, eta, rng = rows(60)
    t, X = rng.uniform(0.5, 3.0, size=60), X * [1.0, 1e3] + [0.0, 1e6]
    y = rng.poisson(t * np.exp(0.3 * eta))
    model = BayesianPoissonRegressor(**FEW).fit(X, y, exposure=t)
    order = rng.permutation(60)
    expected = loo(model, X, y, exposure=t).elpd
    assert loo(model, X[order], y[order], exposure=t[order]).elpd == pytest.approx(expected)
    single = X.astype(np.float32)
    assert loo(model, single, y, exposure=t).elpd == pytest.approx(expected, abs=0.1)
    for others, said in [
        ((X[order], y, t), "the responses of other rows"),
        ((X, y[order], t[order]), "the responses of other rows"),
        ((X, y, t[order]), "the responses of other rows"),
        ((X * [1.0, 1.001], y, t), "other columns, or these in other units"),
        ((X, y + 1, t), "other responses"),
    ]:
        with pytest.raises(ValueError, match=f"must be those of the fit: .* with {said}"):
            loo(model, *others[:2], exposure=others[2])


@pytest.mark.slow
def test_a_comparison_names_the_model_that_it_warns_of():
    X, y = outlier()
    line = BayesianLinearRegression(random_state=0).fit(X, y)
    robust = BayesianRobustRegression(**FEW).fit(X, y)
    with pytest.warns(ParetoKWarning, match="^line: Pareto k is above 0.70 for 1 of 30") as said:
        compare({"robust": robust, "line": line}, X, y)
    assert [str(one.message).split(":")[0] for one in said] == ["robust", "line"]
    assert said[0].filename == __file__


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.ParetoKWarning")
def test_what_cannot_be_compared_is_refused():
    X, eta, rng = rows()
    y = rng.poisson(np.exp(eta))
    weight = np.where(np.arange(40) < 20, 0.5, 1.5)
    counts = loo(BayesianPoissonRegressor(**FEW).fit(X, y), X, y)
    weighted = loo(BayesianPoissonRegressor(**FEW).fit(X, y, weight), X, y, weight)
    log_y = loo(BayesianLinearRegression(**FEW).fit(X, np.log1p(y)), X, np.log1p(y))
    normal = loo(BayesianLinearRegression(**FEW).fit(X, y), X, y)
    with pytest.raises(ValueError, match="'raw' and 'log' were not fitted to the same y"):
        compare({"raw": normal, "log": log_y})
    with pytest.raises(ValueError, match="have different weights"):
        compare([counts, weighted])
    with pytest.raises(ValueError, match="at least two models, got 1"):
        compare([counts])
    with pytest.raises(ValueError, match="needs X and y"):
        compare([counts, BayesianLinearRegression(**FEW).fit(X, y)])
    with pytest.warns(UserWarning, match="Densities of continuous responses are compared"):
        compare([counts, normal])
