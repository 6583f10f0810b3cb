"""Group effects through the interface of the estimators."""

import warnings

import estimators
import numpy as np
import pandas as pd
import pytest
from docstrings import entries
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.diagnostics.convergence import ess_mean
from skbayes_sg.exceptions import PriorConflictWarning, SamplerConvergenceWarning
from skbayes_sg.groups import choose
from skbayes_sg.groups.chains import run_chains
from skbayes_sg.groups.collapsed_hmc import CollapsedHMC
from skbayes_sg.groups.linear_crossed import CrossedGibbs
from skbayes_sg.groups.rows import Components, nodes_of
from skbayes_sg.model_selection import loo
from skbayes_sg.priors import HalfCauchy, HalfNormal, Normal

EFFECTS = {"a": 1.0, "b": -1.0, "c": 0.5, "d": 0.0, "e": 0.0}
STORES = list(EFFECTS)
QUICK = {"group_effects": ["store"], "n_draws": 100, "n_chains": 2, "random_state": 0}
GROUPED = estimators.OF_ROWS
every = pytest.mark.parametrize("name", GROUPED)
FAST = ("BayesianLinearRegression", "BayesianLogisticRegression")
others_slowly = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in GROUPED]
)


def table(n=120, seed=0):
    """A frame with a column of strings between numbers, and the predictor with effects."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"x": rng.normal(size=n), "store": rng.choice(STORES, n), "z": rng.normal(size=n)}
    )
    eta = 0.3 + 0.5 * X["x"] - 0.4 * X["z"] + X["store"].map(EFFECTS)
    return X, eta.to_numpy()


def fitted(name, n=120, seed=0, **options):
    X, eta = table(n, seed)
    y = estimators.ESTIMATORS[name].response(eta, np.random.default_rng(seed + 1))
    return estimators.CLASSES[name](**QUICK | options).fit(X, y), X, y


@pytest.mark.slow_for("BayesianRobustRegression")
@every
def test_what_a_fit_leaves(name):
    model, X, _ = fitted(name)
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == ["x", "store", "z"]
    assert model.posterior_["coef"].shape[-1] == 2
    assert model.posterior_["group_std"].shape == (2, 100, 1)
    assert model.posterior_.labels[-1] == "group_std[store]"
    assert list(model.group_levels_["store"]) == STORES
    frame = model.effects_.to_frame()
    assert list(frame.index) == [f"store[{level}]" for level in STORES]
    np.testing.assert_array_equal(frame["rows"], X["store"].value_counts()[STORES])
    assert (frame["5%"] < frame["mean"]).all()
    assert frame.loc["store[a]", "mean"] > frame.loc["store[b]", "mean"]
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    documented = set(entries(type(model).__doc__, "Attributes"))
    assert public | {"effects_", "group_levels_"} == documented - {"m_eff_", "prior_scale_"}


@pytest.mark.slow
@others_slowly
def test_forms_of_the_table_and_of_the_levels_give_the_same_draws(name):
    model, X, y = fitted(name)
    draws, numbers = model.posterior_.flat, X["store"].map(STORES.index)
    forms = {
        "objects": (X.to_numpy(), [1]),
        "lists": (X.to_numpy().tolist(), [-2]),
        "categorical": (X.astype({"store": "category"}), ["store"]),
        "integers": (X.assign(store=numbers), ["store"]),
        "floats in an array": (X.assign(store=numbers).to_numpy(float), [1]),
    }
    for form, (table, groups) in forms.items():
        other = clone(model).set_params(group_effects=groups).fit(table, y)
        np.testing.assert_array_equal(other.posterior_.flat, draws, err_msg=form)
        np.testing.assert_array_equal(other.effects_["mean"], model.effects_["mean"])
    assert other.posterior_.labels[:2] == ("coef[x0]", "coef[x2]")


@pytest.mark.slow_for("BayesianLogisticRegression")
@others_slowly
def test_neither_the_number_of_threads_nor_a_second_fit_changes_a_bit(name):
    model, X, y = fitted(name)
    other = clone(model).set_params(n_jobs=2).fit(X, y)
    for one in (other, model.fit(X, y)):
        assert one.posterior_.flat.tobytes() == other.posterior_.flat.tobytes()
        assert one._groups.effects.draws[0].tobytes() == other._groups.effects.draws[0].tobytes()


@pytest.mark.slow_for("BayesianLogisticRegression")
@others_slowly
def test_a_row_of_weight_two_is_two_rows_and_one_of_weight_zero_is_none(name):
    model, X, y = fitted(name)
    weight = np.random.default_rng(2).integers(0, 3, len(y))
    weighted = clone(model).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = clone(model).fit(X.iloc[rows], y[rows])
    difference = weighted.posterior_.mean() - repeated.posterior_.mean()
    tolerance = 1e-6 if weighted.sampler_ == "exact" else 0.5
    assert (np.abs(difference) < tolerance * repeated.posterior_.std()).all()
    np.testing.assert_array_equal(weighted.effects_["rows"], repeated.effects_["rows"])


@pytest.mark.slow
@others_slowly
def test_cross_validation_in_a_pipeline_with_levels_left_out(name):
    model, X, y = fitted(name)
    scale = ColumnTransformer(
        [("scale", StandardScaler(), ["x", "z"])],
        remainder="passthrough", verbose_feature_names_out=False,
    ).set_output(transform="pandas")  # fmt: skip
    pipe = make_pipeline(scale, clone(model))
    found = cross_validate(pipe, X, y, cv=GroupKFold(3), groups=X["store"])
    assert np.isfinite(found["test_score"]).all()


@pytest.mark.slow_for("BayesianLogisticRegression")
@others_slowly
def test_draws_that_are_kept(name):
    model, X, y = fitted(name)
    few = clone(model).set_params(keep=10).fit(X, y)
    assert few.posterior_["group_std"].shape == (2, 10, 1)
    np.testing.assert_allclose(few.effects_["mean"], model.effects_["mean"])
    np.testing.assert_allclose(few.group_std_, model.group_std_)
    none = clone(model).set_params(keep="moments").fit(X, y)
    np.testing.assert_allclose(none.effects_["sd"], model.effects_["sd"])
    assert "5%" not in none.effects_.columns
    with pytest.raises(ValueError, match="No draws were kept"):
        none.predict(X)


def test_the_number_of_sweeps_does_not_depend_on_the_draws_that_are_kept(monkeypatch):
    monkeypatch.setattr(choose, "suits_independent", lambda *_: False)
    rng = np.random.default_rng(0)
    X = np.c_[np.arange(600) % 60, rng.standard_normal(600)]
    y = (rng.random(600) < 0.03).astype(int)
    options = {"group_effects": [0], "n_draws": 100, "n_chains": 2, "random_state": 1}
    model = BayesianLogisticRegression(**options).fit(X, y)
    assert model.thin_ > 1
    for keep in ("moments", 10):
        few = BayesianLogisticRegression(**options, keep=keep).fit(X, y)
        assert few.thin_ == model.thin_
        np.testing.assert_array_equal(few.effects_["mean"], model.effects_["mean"])
        assert few.diagnostics_["effects_min_ess"] == model.diagnostics_["effects_min_ess"]


def test_predictions_of_known_levels_are_means_over_draws():
    model, X, _ = fitted("BayesianLinearRegression")
    u = model._groups.effects.draws[0].reshape(5, -1)
    p = {name: model.posterior_[name].reshape(200, -1) for name in model.posterior_.names}
    eta = X[["x", "z"]].to_numpy() @ p["coef"].T + p["intercept"].T
    eta += u[[STORES.index(store) for store in X["store"]]]
    np.testing.assert_allclose(model.predict(X), eta.mean(axis=1), rtol=1e-6)
    epistemic, _ = model.predict_std_components(X)
    np.testing.assert_allclose(epistemic, eta.std(axis=1), rtol=1e-5)


def cold(X):
    """Rows of new levels, and of missing ones."""
    X = X[:6].copy()
    X.loc[:3, "store"] = "new"
    X.loc[4:, "store"] = None
    return X


def test_unknown_levels_of_linear_regression_add_the_square_of_their_scale():
    model, X, y = fitted("BayesianLinearRegression")
    X, y = cold(X), y[:6]
    p = {name: model.posterior_[name].reshape(200, -1) for name in model.posterior_.names}
    eta = X[["x", "z"]].to_numpy() @ p["coef"].T + p["intercept"].T
    tau, sigma = p["group_std"][:, 0], p["noise_std"][:, 0]
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, eta.mean(axis=1), atol=1e-9)
    variance = eta.var(axis=1) + np.mean(tau**2) + np.mean(sigma**2)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-9)
    epistemic, aleatoric = model.predict_std_components(X)
    np.testing.assert_allclose(epistemic**2, eta.var(axis=1) + np.mean(tau**2), rtol=1e-9)
    np.testing.assert_allclose(aleatoric**2, np.mean(sigma**2), rtol=1e-9)
    normal = stats.norm(eta, np.hypot(tau, sigma))
    density = np.log(normal.pdf(y[:, None]).mean(axis=1))
    np.testing.assert_allclose(model.predict_log_density(X, y), density, atol=2e-3)
    levels = np.array([0.05, 0.5, 0.95])
    found = model.predict_quantiles(X, levels)
    share = np.stack([normal.cdf(found[:, [k]]).mean(axis=1) for k in range(3)], axis=1)
    assert np.abs(share - levels).max() < 2e-3


def test_a_new_level_is_one_level_in_draws_of_responses():
    model, X, _ = fitted("BayesianLinearRegression", n_draws=1000, n_chains=4)
    made = np.corrcoef(model.sample_y(cold(X), 4000))
    assert made[0, 1] > 0.3  # rows of one new level share its effect
    assert abs(made[4, 5]) < 0.15  # missing levels do not
    assert abs(made[0, 4]) < 0.15


def test_draws_of_a_new_level_are_as_many_as_are_asked_for():
    """More than there are draws of the parameters: effects of a draw differ each time."""
    model, X, _ = fitted("BayesianLinearRegression", n_draws=5)
    n, rows = 40_000, cold(X[:1])
    mean, std = model.predict(rows, return_std=True)
    drawn = model.sample_y(rows, n)[0]
    assert abs(drawn.mean() - mean[0]) < 4.0 * std[0] / np.sqrt(n)
    assert abs(drawn.std() / std[0] - 1.0) < 0.05  # the law is a mixture of ten normal ones
    same = model.sample_y(pd.concat([rows, rows]), n)  # two rows of one new level share its effect
    noise = np.sqrt(2.0) * model.predict_std_components(rows)[1][0]
    assert abs((same[1] - same[0]).std() / noise - 1.0) < 0.05


@pytest.mark.slow
def test_levels_of_another_type_are_told():
    model, X, y = fitted("BayesianLinearRegression")
    with pytest.warns(UserWarning, match=r"The column 'store' holds levels such as 3, .* 'a'"):
        model.predict(X.assign(store=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X.assign(store="new"))
        numbers = X.assign(store=X["store"].map(STORES.index))
        model = BayesianLinearRegression(**QUICK).fit(numbers, y)
        np.testing.assert_array_equal(
            model.predict(numbers), model.predict(numbers.astype({"store": float}))
        )
    with pytest.warns(UserWarning, match=r"holds levels such as '0', .* such as 0, have another"):
        model.predict(numbers.astype({"store": str}))


def test_levels_can_be_dates_in_tables_of_any_library():
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    X, eta = table()
    days = pd.Timestamp("2020-03-01") + pd.to_timedelta(X["store"].map(STORES.index), "D")
    X = X.assign(store=days)
    model = BayesianLinearRegression(**QUICK).fit(X, eta)
    others = [X.assign(store=days.dt.date), pa.table(X), pa.table(X.assign(store=days.dt.date))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for own in others:
            np.testing.assert_array_equal(model.predict(own), model.predict(X))
            again = BayesianLinearRegression(**QUICK).fit(own, eta)
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            assert list(again.effects_.labels) == [f"store[2020-03-0{k}]" for k in range(1, 6)]
    assert model.effects_.labels == again.effects_.labels
    for other in (days.dt.tz_localize("UTC"), 3):
        with pytest.warns(UserWarning, match="have another type"):
            model.predict(X.assign(store=other))


def test_different_levels_have_different_labels():
    X, eta = table(20)
    levels = np.array([1, "1", "b", 2.5] * 5, dtype=object)
    model = BayesianLinearRegression(**QUICK).fit(X.assign(store=levels), eta)
    labels = ["store[1]", "store['1']", "store['b']", "store[2.5]"]
    assert list(model.effects_.labels) == labels


def test_odds_ratios_are_of_the_other_columns():
    model = fitted("BayesianLogisticRegression")[0]
    lower, upper = model.odds_ratio_interval(per=[1.0, 2.0])
    assert lower.shape == upper.shape == (1, 2)
    with pytest.raises(ValueError, match="one number or one for each of 2 coefficients"):
        model.odds_ratio_interval(per=[1.0, 2.0, 3.0])


def test_the_nodes_of_unknown_effects_are_those_of_a_normal_law():
    x, share = nodes_of(50)
    for t in (0.0, 0.5, 2.0):
        np.testing.assert_allclose(
            (share * np.exp(t * x)).sum(axis=1), np.exp(t * t / 2), rtol=1e-7
        )
    log_density = np.log(share).reshape(1, -1)
    found = Components(share).log_likelihood(lambda eta, components: eta, log_density)
    np.testing.assert_allclose(found[0], np.log((share**2).sum(axis=1)))


@pytest.mark.slow
def test_rows_do_not_depend_on_others():
    model, X, _ = fitted("BayesianLinearRegression")
    X = pd.concat([cold(X), X[6:12]])
    whole = np.column_stack([*model.predict(X, return_std=True), model.predict_quantiles(X)])
    for k in range(len(X)):
        row = X.iloc[k : k + 1]
        own = np.column_stack([*model.predict(row, return_std=True), model.predict_quantiles(row)])
        np.testing.assert_allclose(own[0], whole[k], rtol=1e-12)


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(None, id="independent"),
        pytest.param(CollapsedHMC, id="collapsed", marks=pytest.mark.slow),
        pytest.param(CrossedGibbs, id="gibbs", marks=pytest.mark.slow),
    ],
)
def test_groups_alone_and_eight_schools(sampler, monkeypatch):
    """The posterior of posteriordb's eight schools: half-Cauchy scale, normal mean."""
    if sampler is not None:
        monkeypatch.setattr(
            choose, "run_exact", lambda *args: run_chains(*args[:2], sampler, *args[2:])
        )
    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    model = BayesianLinearRegression(
        group_effects=[0], group_scale=HalfCauchy(scale=5.0), intercept_prior=Normal(scale=5.0),
        noise=1.0, random_state=0, n_draws=5000,
    )  # fmt: skip
    model.fit(np.array([list("ABCDEFGH")], dtype=object).T, y, sample_weight=sigma**-2.0)
    mu, tau = np.meshgrid(np.linspace(-20, 30, 501), np.geomspace(1e-3, 300, 2000))
    log_p = stats.norm.logpdf(mu, 0, 5) - np.log1p((tau / 5) ** 2) + np.log(tau)
    log_p += sum(stats.norm.logpdf(a, mu, np.hypot(tau, s)) for a, s in zip(y, sigma, strict=True))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    first = mu + (y[0] - mu) * tau**2 / (tau**2 + sigma[0] ** 2)
    draws = model.posterior_["group_std"]
    ess = 20_000.0 if sampler is None else ess_mean(model.posterior_.flat).min()
    error = 4.0 / np.sqrt(ess)
    assert ess > 2000.0
    assert abs(draws.mean() - (p * tau).sum()) < error * draws.std()
    assert abs(model.intercept_ - (p * mu).sum()) < error * model.intercept_std_
    found = model.intercept_ + model.effects_["mean"][0]
    assert abs(found - (p * first).sum()) < error * 5.6
    np.testing.assert_allclose(  # published: mean of mu, of tau and of the first school
        [model.intercept_, draws.mean(), found], [4.4, 3.6, 6.2], atol=0.2
    )
    assert model.coef_.shape == (0,)
    assert "not told from zero" in model.effects_.heading


@pytest.mark.slow
def test_leave_one_out():
    model, X, y = fitted("BayesianLinearRegression", n_draws=1000)
    found = loo(model, X, y)
    assert abs(found.elpd - model.predict_log_density(X, y).sum()) < 15.0
    without = BayesianLinearRegression(random_state=0).fit(X[["x", "z"]], y)
    assert found.elpd > loo(without, X[["x", "z"]], y).elpd + 10.0


def with_stores(stores):
    X, eta = table(12)
    return X.assign(store=stores), eta


def test_tables_that_cannot_be_used():
    X, y = table()
    model = BayesianLinearRegression(group_effects=["store"], n_draws=10)
    half = X.assign(store=X["store"].where(X["x"] > 0))
    cases = {
        "contains NaN": (model, half, y),
        "has a single level": (model, X.assign(store="a"), y),
        "a level of its own in every row": (model, X.assign(store=np.arange(len(y))), y),
        "holds what cannot be a level: unhashable": (model, X.assign(store=[[1]] * len(y)), y),
        "is the response under other names": (model, X.assign(store=np.round(y)), np.round(y)),
        "names the column 'shop'": (clone(model).set_params(group_effects=["shop"]), X, y),
        "names the column 7": (clone(model).set_params(group_effects=[7]), X, y),
        "a list of different": (clone(model).set_params(group_effects="store"), X, y),
        "list of different columns": (clone(model).set_params(group_effects=["store", 1]), X, y),
        "sampler='hmc' does not go": (clone(model).set_params(sampler="hmc"), X, y),
        "n_subposteriors": (clone(model).set_params(n_subposteriors=2), X, y),
        "None where group_effects is None": (
            BayesianLinearRegression(group_scale=HalfNormal()), X[["x"]], y,
        ),
        "one prior, or a list of 1": (
            clone(model).set_params(group_scale=[HalfNormal(), HalfNormal()]), X, y,
        ),
        "intercept": (
            BayesianLinearRegression(group_effects=["store"], fit_intercept=False), X[["store"]], y,
        ),
    }  # fmt: skip
    for text, (estimator, table_, response) in cases.items():
        with pytest.raises(ValueError, match=text):
            estimator.fit(table_, response)
    with pytest.raises(AttributeError, match="partial_fit"):
        model.partial_fit(X, y)
    with pytest.raises(AttributeError, match="effects_"):
        BayesianLinearRegression(n_draws=10).fit(X[["x"]], y).effects_  # noqa: B018
    with pytest.raises(TypeError, match="dense"):
        clone(model).set_params(group_effects=[0]).fit(sparse.eye_array(5, format="csr"), y[:5])


@pytest.mark.slow
def test_chains_that_have_not_converged_are_told():
    """A response without noise: the scale of the noise goes to zero, and takes others along."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 12, 400), rng.integers(0, 9, 400)])
    eta = rng.normal(size=12)[codes[:, 0]] + rng.normal(size=9)[codes[:, 1]]
    options = {"group_effects": [0, 1], "n_draws": 300, "n_chains": 2, "random_state": 0}
    model = BayesianLinearRegression(**options)
    with pytest.warns(SamplerConvergenceWarning, match="group effects have not converged: R-hat"):
        model.set_params(thin=1).fit(codes, eta)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(codes, eta + rng.normal(size=400))


def test_softmax_is_refused_by_name():
    X, eta = table()
    model = BayesianLogisticRegression(group_effects=["store"])
    with pytest.raises(ValueError, match="two classes, got 3"):
        model.fit(X, np.arange(len(eta)) % 3)


def test_repeated_names_of_columns_are_named():
    X = pd.DataFrame(np.zeros((6, 3)), columns=["a", "a", "store"])
    model = BayesianLinearRegression(group_effects=["store"])
    with pytest.raises(ValueError, match=r"unique column names, but these are repeated: \['a'\]"):
        model.fit(X, np.arange(6.0))


def test_set_params_reaches_the_prior_of_the_scale():
    model = BayesianLinearRegression(group_effects=["store"], group_scale=HalfNormal(2.0))
    assert model.set_params(group_scale__scale=3.0).group_scale.scale == 3.0


@pytest.mark.slow_for("BayesianLinearRegression")
@others_slowly
def test_slopes_of_every_model(name):
    model, X, _ = fitted(name, group_slopes={"store": ["z", "x"]})
    assert model.posterior_["group_slope_std"].shape == (2, 100, 2)
    assert model.posterior_.labels[-3:] == (
        "group_correlation[store:z, store]", "group_correlation[store:x, store]",
        "group_correlation[store:x, store:z]",
    )  # fmt: skip
    assert list(model.effects_.labels[:3]) == ["store[a]", "store[a]:z", "store[a]:x"]
    draws = model._groups.effects.draws[0].reshape(5, 3, -1)
    p = {name: model.posterior_[name].reshape(200, -1) for name in model.posterior_.names}
    place = np.array([STORES.index(store) for store in X["store"]])
    Z = np.column_stack([np.ones(len(X)), X[["z", "x"]]])
    eta = X[["x", "z"]].to_numpy() @ p["coef"].T + p["intercept"].T
    eta += np.einsum("nq,nqs->ns", Z, draws[place])
    if hasattr(model, "predict_proba"):
        found, wanted = model.predict_proba(X)[:, 1], 1.0 / (1.0 + np.exp(-eta))
    else:
        counts = name in ("BayesianPoissonRegressor", "BayesianNegativeBinomialRegressor")
        found, wanted = model.predict(X), np.exp(eta) if counts else eta
    np.testing.assert_allclose(found, wanted.mean(axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("BayesianLinearRegression", marks=pytest.mark.slow),
        "BayesianLogisticRegression",
    ],
)
def test_slopes_of_two_columns_keep_their_names_and_scales(name):
    X, eta = table(300)
    X = X.assign(day=np.random.default_rng(5).integers(0, 7, len(X)))
    y = eta + X["z"] * X["day"].map({3: 2.0, 4: -2.0}).fillna(0.0)
    y = estimators.ESTIMATORS[name].response(y.to_numpy(), np.random.default_rng(1))
    slopes = {"day": ["z"], "store": ["x", "z"]}
    options = {"group_effects": ["store", "day"], "group_slopes": slopes}
    model = estimators.CLASSES[name](**QUICK | options).fit(X, y)
    assert model.posterior_.labels[-9:] == (
        "group_std[store]", "group_std[day]", "group_slope_std[store:x]",
        "group_slope_std[store:z]", "group_slope_std[day:z]", "group_correlation[store:x, store]",
        "group_correlation[store:z, store]", "group_correlation[store:z, store:x]",
        "group_correlation[day:z, day]",
    )  # fmt: skip
    assert (np.abs(model.posterior_["group_correlation"]) < 1.0).all()
    for k, (first, places) in enumerate([("store", [0, 1]), ("day", [2])]):
        factor = model._groups.effects.factors[k]
        sds = np.sqrt(np.square(factor).sum(axis=2))
        own = [model.posterior_["group_std"][..., k].ravel()]
        own += [model.posterior_["group_slope_std"][..., place].ravel() for place in places]
        np.testing.assert_allclose(sds.T, own, err_msg=first)
    mean = model.effects_.to_frame()["mean"]
    assert mean["day[3]:z"] > 0.5
    assert mean["day[4]:z"] < -0.5


def test_slopes_of_linear_regression():
    model, X, _ = fitted("BayesianLinearRegression", group_slopes={"store": ["z"]})
    assert model.posterior_["group_slope_std"].shape == (2, 100, 1)
    assert model.posterior_.labels[-3:] == (
        "group_std[store]", "group_slope_std[store:z]", "group_correlation[store:z, store]",
    )  # fmt: skip
    assert (np.abs(model.posterior_["group_correlation"]) < 1.0).all()
    assert list(model.effects_.labels[:2]) == ["store[a]", "store[a]:z"]
    draws = model._groups.effects.draws[0].reshape(10, -1)
    p = {name: model.posterior_[name].reshape(200, -1) for name in model.posterior_.names}
    z, place = X["z"].to_numpy()[:, None], np.array([STORES.index(s) for s in X["store"]])
    eta = X[["x", "z"]].to_numpy() @ p["coef"].T + p["intercept"].T
    known = eta + draws[2 * place] + z * draws[2 * place + 1]
    np.testing.assert_allclose(model.predict(X), known.mean(axis=1), rtol=1e-5, atol=1e-6)
    rows = cold(X)
    s, t, rho = p["group_std"], p["group_slope_std"], p["group_correlation"]
    variance = (s**2 + 2.0 * rho * s * t * z[:6].T + (t * z[:6].T) ** 2).mean(axis=0)
    epistemic, _ = model.predict_std_components(rows)
    np.testing.assert_allclose(epistemic**2, eta[:6].var(axis=1) + variance, rtol=1e-6)


def test_slopes_that_cannot_be_fitted():
    X, y = table()
    options = {"group_effects": ["store"], "n_draws": 10}
    words = X.assign(kind="a")
    for slopes, text in (
        ({"x": ["z"]}, "a dict of columns"),
        ({"store": ["store"]}, "a dict of columns"),
        ({"store": "z"}, "a dict of columns"),
        ({"store": ["w"]}, "names the column 'w'"),
    ):
        with pytest.raises(ValueError, match=text):
            BayesianLinearRegression(group_slopes=slopes, **options).fit(X, y)
    with pytest.raises(ValueError, match="could not convert string"):
        BayesianLinearRegression(group_slopes={"store": ["kind"]}, **options).fit(words, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BayesianPoissonRegressor", "BayesianNegativeBinomialRegressor"])
def test_twice_the_exposure_is_an_intercept_less_by_log_two(name):
    model, X, y = fitted(name, intercept_prior="flat", n_draws=400)
    other = clone(model).fit(X, y, exposure=np.full(len(y), 2.0))
    assert abs(other.intercept_ + np.log(2.0) - model.intercept_) < 0.4 * model.intercept_std_
    rows = cold(X)
    for table_ in (X, rows):
        twice = other.predict(table_, exposure=np.full(len(table_), 2.0))
        np.testing.assert_allclose(twice, 2.0 * other.predict(table_), rtol=1e-9)
    p = {name: model.posterior_[name].reshape(800, -1) for name in model.posterior_.names}
    eta = rows[["x", "z"]].to_numpy() @ p["coef"].T + p["intercept"].T
    wanted = np.exp(eta + 0.5 * p["group_std"].T ** 2).mean(axis=1)
    np.testing.assert_allclose(model.predict(rows), wanted, rtol=1e-4)


def test_rows_that_are_fitted_exactly_have_no_noise():
    """Each row three times, and as many parameters as rows: there is no posterior but rounding."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(8, 3)), columns=list("abc"))
    rows["g"] = [0, 0, 1, 1, 2, 2, 3, 4]
    model = BayesianLinearRegression(group_effects=["g"], random_state=0)
    with pytest.warns(SamplerConvergenceWarning, match="no noise"):
        model.fit(rows, rng.normal(size=8), sample_weight=np.full(8, 3.0))
    assert "no noise" in {finding.name for finding in model.posterior_.check().findings}


@pytest.mark.slow
def test_slopes_of_columns_far_from_zero_and_of_rows_that_are_repeated():
    """Noise is nothing where levels hold copies of a row: told, and not an error of algebra."""
    rng = np.random.default_rng(0)
    X, group = rng.integers(0, 4, (120, 2)).astype(float), rng.integers(0, 60, 120)
    y = np.round(X[:, 0] + rng.standard_normal(60)[group] + rng.standard_normal(120))
    options = {"group_effects": [2], "group_slopes": {2: [0, 1]}, "random_state": 0}
    options |= {"n_draws": 200, "n_chains": 2}
    far = np.column_stack([3e5 + rng.standard_normal(120), X[:, 1], group])
    model = BayesianLinearRegression(**options).fit(far, y)
    assert 0.5 < model.noise_std_ < 3.0
    assert np.isfinite(model.coef_).all()
    copies = np.repeat(np.column_stack([X[:30], np.arange(30)]), 4, axis=0)
    with pytest.warns(UserWarning, match="posterior itself is degenerate"):
        BayesianLinearRegression(**options).fit(copies, np.repeat(y[:30], 4))


@pytest.mark.slow
def test_crossed_factors_without_noise_are_told():
    """Levels of one factor hold copies of one row each: σ goes to zero, and nothing cancels."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (20, 2)).astype(float), np.round(2.0 * rng.standard_normal(20))
    table = np.column_stack([np.repeat(np.column_stack([X, np.arange(20)]), 4, axis=0), [0.0] * 80])
    table[:, 3] = np.arange(80) // 10
    model = BayesianLinearRegression(group_effects=[2, 3], n_draws=200, n_chains=2, random_state=0)
    with pytest.warns(UserWarning, match="posterior itself is degenerate"):
        model.fit(table, np.repeat(y, 4))
    assert np.abs(model.coef_).max() < 5.0


@pytest.mark.slow
def test_noise_that_goes_to_zero_is_told_at_once():
    """Robust chains cannot follow it: the first warning says why, and there are no doublings."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (30, 2)).astype(float), np.round(2.0 * rng.standard_normal(30))
    table = np.repeat(np.column_stack([X, np.arange(30)]), 4, axis=0)
    model = BayesianRobustRegression(group_effects=[2], n_draws=100, n_chains=2, random_state=0)
    with pytest.warns(SamplerConvergenceWarning) as told:
        model.fit(table, np.repeat(y, 4))
    assert "goes to zero" in str(told[0].message)
    assert sum("not converged" in str(one.message) for one in told) == 1
    assert model.thin_ == 1


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [BayesianLinearRegression, BayesianPoissonRegressor])
def test_slopes_have_no_unit(estimator):
    """A discount between 0 and 0.1 has steep slopes, which a prior in its unit would hold back."""
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 15, 400), rng.standard_normal(400)
    eta = 1.0 + 0.4 * rng.standard_normal(15)[level] * x
    y = rng.poisson(np.exp(eta)) if estimator is BayesianPoissonRegressor else eta
    y = y + 0.1 * rng.standard_normal(400) * (estimator is BayesianLinearRegression)
    found = []
    for unit in (1.0, 0.01, 1000.0):
        options = {"group_effects": [1], "group_slopes": {1: [0]}, "n_draws": 200}
        fit = estimator(random_state=0, **options).fit(np.c_[unit * x, level], y)
        found.append(unit * fit.posterior_["group_slope_std"].mean())
    assert found == pytest.approx(found[:1] * 3, rel=0.05)
    given = estimator(group_scale=HalfNormal(0.1), random_state=0, **options)  # as it was given
    prior = given.fit(np.c_[0.01 * x, level], y).posterior_["group_slope_std"]
    assert prior.mean() < 0.5


SLOPED = {"group_effects": [1], "group_slopes": {1: [0]}, "random_state": 0}


def far_slopes():
    """Levels, a column of mean zero whose slopes vary with the levels, and predictors."""
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 15, 300), rng.standard_normal(300)
    x -= x.mean()
    return level, x, 1.0 + rng.standard_normal(15)[level] * x + 0.5 * rng.standard_normal(300)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [36.0, 2e4, 1e8])
@pytest.mark.parametrize(
    "estimator",
    [
        BayesianLinearRegression,
        BayesianPoissonRegressor,
        pytest.param(BayesianRobustRegression, marks=pytest.mark.slow),
    ],
)
def test_slopes_do_not_depend_on_where_zero_is(estimator, shift):
    """At zero Kelvin, or in the year zero, levels vary by far more than y: they are centred."""
    level, x, y = far_slopes()
    if estimator is BayesianPoissonRegressor:
        y = np.random.default_rng(1).poisson(np.exp(0.5 * y)).astype(float)
    model = estimator(n_draws=500, intercept_prior="flat", **SLOPED).fit(np.c_[x, level], y)
    far = clone(model).fit(np.c_[shift + x, level], y)
    for name in ("coef", "group_std", "group_slope_std", "group_correlation"):
        sd = model.posterior_[name].std()
        assert abs(far.posterior_[name].mean() - model.posterior_[name].mean()) < 0.35 * sd
    gap = far.effects_.columns["mean"] - model.effects_.columns["mean"]
    assert np.abs(gap).max() < 0.1
    assert f"x1 at x0 = {shift:.6g}: 15 levels" in far.effects_.heading
    assert "x1: 15 levels" in model.effects_.heading
    rows = np.c_[x, np.where(np.arange(300) < 50, level, 99)]  # known levels, and a new one
    moved = rows + np.array([shift, 0.0])
    q = [0.1, 0.5, 0.9]
    gap = far.predict_quantiles(moved, q) - model.predict_quantiles(rows, q)
    assert np.abs(gap).max() < (1.01 if estimator is BayesianPoissonRegressor else 0.25)


@pytest.mark.slow
def test_far_slopes_without_an_intercept_are_told():
    level, x, y = far_slopes()
    model = BayesianLinearRegression(fit_intercept=False, n_draws=50, **SLOPED)
    with pytest.warns(
        PriorConflictWarning, match=r"'x0' .* 3\d\.?\d* standard deviations from zero"
    ):
        model.fit(np.c_[36.0 + x, level], y)
    for column in (x, 2.0 + x, np.full(300, 7.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriorConflictWarning)
            model.fit(np.c_[column, level], y)


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_indicators_of_the_levels_are_told(left_out):
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 6, 120), rng.standard_normal(120)
    X = np.column_stack([x, rng.integers(0, 2, 120), np.eye(6)[level][:, left_out:], level])
    y = x + rng.standard_normal(120)
    model = BayesianLinearRegression(group_effects=[X.shape[1] - 1], n_draws=50, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    said = [str(one.message) for one in caught if "are the indicators of levels" in str(one)]
    assert len(said) == (left_out < 2)
    assert all(one.startswith(f"{6 - left_out} columns") for one in said)


@pytest.mark.slow
def test_other_columns_may_be_many_levels():
    """A table of which one entry in a hundred is not zero, beside a group column."""
    rng = np.random.default_rng(0)
    levels, groups = rng.integers(0, 120, 400), rng.integers(0, 8, 400)
    rows = np.column_stack([np.eye(120)[levels], groups])
    y = rng.normal(size=400) + 0.1 * groups
    model = BayesianLinearRegression(group_effects=[120], n_draws=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerConvergenceWarning)
        model.fit(rows, y)
    assert model.posterior_["coef"].shape == (4, 50, 120)


def test_frames_with_sparse_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": rng.integers(0, 5, 200), "a": rng.integers(0, 2, 200)})
    y, sparse_frame = rng.poisson(1.0, 200), frame.astype(pd.SparseDtype(float, 0.0))
    options = {"group_effects": ["g"], "n_draws": 50, "random_state": 0}
    own = BayesianPoissonRegressor(**options).fit(sparse_frame, y)
    usual = BayesianPoissonRegressor(**options).fit(frame, y)
    np.testing.assert_allclose(own.predict(sparse_frame), usual.predict(frame))
    found = own.predict_interval(sparse_frame)
    np.testing.assert_allclose(found, usual.predict_interval(frame))
    assert own.score(sparse_frame, y) == pytest.approx(usual.score(frame, y))
