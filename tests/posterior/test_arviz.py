"""Posteriors in the formats of ArviZ 0.x and 1.x, by whichever is installed.

`make test-arviz` runs these tests with both. Without ArviZ, a stand-in says what it would be given.
"""

import sys
import types

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit
from sklearn.datasets import load_iris

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPMF,
    BayesianPoissonRegressor,
)
from skbayes_sg.diagnostics import convergence
from skbayes_sg.model_selection import loo
from skbayes_sg.posterior import Posterior, arviz

FEW = {"n_draws": 50, "n_chains": 2, "random_state": 0}
X, SPECIES = load_iris(return_X_y=True, as_frame=True)
COLUMNS = list(X.columns)


def installed():
    try:
        import arviz_base  # noqa: F401
    except ImportError:
        return arviz._is_old_arviz()
    return True


@pytest.fixture(params=["installed", "stand-in"])
def groups(request, monkeypatch):
    """``groups(data)`` -> {group: {variable: (values, coordinates by dimension)}}."""
    if request.param == "installed":
        if not installed():
            pytest.skip("ArviZ is not installed: see `make test-arviz`")
        return read
    convergence.rhat(np.zeros((2, 4)))  # imports ArviZ's statistics before the stand-in
    told = types.ModuleType("arviz_base")
    told.from_dict = lambda groups, coords, dims: (groups, coords, dims)
    monkeypatch.setitem(sys.modules, "arviz_base", told)
    monkeypatch.setattr(arviz, "_is_old_arviz", lambda: False)
    return as_given


def read(data):
    children = getattr(data, "children", None)  # of a DataTree
    names = list(children) if children is not None else data.groups()
    found = {}
    for name in names:
        of_group = getattr(data[name], "data_vars", data[name])
        found[name] = {
            key: (v.values, {d: list(v[d].values) for d in v.dims if d in v.coords})
            for key, v in of_group.items()
        }
    return found


def as_given(data):
    groups, coords, dims = data
    return {
        group: {
            name: (values, {d: list(coords[d]) for d in dims.get(name, []) if d in coords})
            for name, values in variables.items()
        }
        for group, variables in groups.items()
    }


def test_columns_and_classes_are_coordinates(groups):
    model = BayesianLogisticRegression(**FEW).fit(X, np.array(["a", "b", "c"])[SPECIES])
    found = groups(model.posterior_.to_arviz())["posterior"]
    values, names = found["coef"]
    assert np.array_equal(values, model.posterior_["coef"])
    assert names["coef_dim"] == COLUMNS
    assert names["class_dim"] == ["a", "b", "c"]
    assert found["intercept"][1]["class_dim"] == ["a", "b", "c"]


def test_one_row_of_coefficients_is_that_of_the_second_class(groups):
    model = BayesianLogisticRegression(fit_intercept=False, **FEW).fit(X, SPECIES == 2)
    _, names = groups(model.posterior_.to_arviz())["posterior"]["coef"]
    assert names["coef_dim"] == COLUMNS
    assert names["class_dim"] == ["True"]


def test_contrasts_have_names(groups):
    model = BayesianLogisticRegression(**FEW).fit(X, SPECIES)
    _, names = groups(model.posterior_.contrast(reference=1).to_arviz())["posterior"]["coef"]
    assert names["coef_dim"] == COLUMNS
    assert names["class_dim"] == ["0 - 1", "2 - 1"]


def test_regressions_have_their_noise(groups):
    model = BayesianLinearRegression(**FEW).fit(X.iloc[:, :3], X.iloc[:, 3])
    found = groups(model.to_arviz())
    assert set(found) == {"posterior"}
    assert found["posterior"]["coef"][1]["coef_dim"] == COLUMNS[:3]
    assert found["posterior"]["intercept"][0].shape == (2, 50)
    assert np.array_equal(found["posterior"]["noise_std"][0], model.posterior_["noise_std"])


def test_other_posteriors_keep_their_shapes(groups):
    ratings = np.column_stack(np.divmod(np.arange(60), 10))
    model = BayesianPMF(rank=2, n_draws=10, n_chains=2, random_state=0)
    posterior = model.fit(ratings, ratings[:, 0] % 3.0).posterior_
    found = groups(posterior.to_arviz())["posterior"]
    assert set(found) == set(posterior.names)
    for name in posterior.names:
        assert np.array_equal(found[name][0], posterior[name])


def test_weights_of_draws(groups):
    draws, weights = np.zeros((3, 5, 1)), np.arange(1.0, 6.0)
    posterior = Posterior(draws, {"coef": (1,)}, ["coef[a]"], weights=weights)
    found = groups(posterior.to_arviz())["sample_stats"]["weight"][0]
    assert np.array_equal(found, np.tile(weights / 3.0, (3, 1)))


def test_log_likelihoods_and_predictions_of_rows(groups):
    y = np.where(SPECIES == 2, "new", "old")
    model = BayesianLogisticRegression(**FEW).fit(X, y)
    found = groups(model.to_arviz(X, y, log_likelihood=True, posterior_predictive=True))
    eta = model.posterior_["coef"][:, :, 0] @ X.to_numpy().T + model.posterior_["intercept"]
    sign = np.where(y == "old", 1.0, -1.0)
    assert np.allclose(found["log_likelihood"]["y"][0], log_expit(sign * eta), rtol=0, atol=1e-12)
    assert found["observed_data"]["y"][0].tolist() == (y == "old").tolist()
    share, p = found["posterior_predictive"]["y"][0].mean(axis=(0, 1)), model.predict_proba(X)[:, 1]
    assert np.abs(share - p).max() < 5.0 * np.sqrt(0.25 / 100)
    assert abs((share - p).sum()) < 5.0 * np.sqrt((p * (1.0 - p)).sum() / 100) + 1e-9


def test_exposures_of_counts(groups):
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(30, 1)), rng.uniform(1.0, 50.0, size=30)
    y = rng.poisson(t)
    model = BayesianPoissonRegressor(**FEW).fit(x, y, exposure=t)
    options = {"log_likelihood": True, "posterior_predictive": True}
    found = groups(model.to_arviz(x, y, exposure=t, **options))
    rate = np.exp(model.posterior_["coef"] @ x.T + model.posterior_["intercept"][:, :, None])
    expected = stats.poisson.logpmf(y, t * rate)
    assert np.allclose(found["log_likelihood"]["y"][0], expected, rtol=0, atol=1e-9)
    off = found["posterior_predictive"]["y"][0].sum(axis=2) - (t * rate).sum(axis=2)
    assert abs(off.mean()) < 5.0 * np.sqrt(t.sum() / off.size)


@pytest.mark.filterwarnings("ignore")
def test_arviz_itself_reads_them():
    az = pytest.importorskip("arviz")
    y = X.iloc[:, 3].to_numpy()
    model = BayesianLinearRegression(random_state=0).fit(X.iloc[:, :3], y)
    data = model.to_arviz(X.iloc[:, :3], y, log_likelihood=True, posterior_predictive=True)
    table = az.summary(data, var_names=["coef"], kind="stats")
    assert list(table.index) == [f"coef[{name}]" for name in COLUMNS[:3]]
    own = loo(model, X.iloc[:, :3], y)
    found = az.loo(data, pointwise=True, reff=own.r_eff)
    is_old = arviz._is_old_arviz()  # which takes another number of draws for the tail
    elpd = found.elpd_loo if is_old else found.elpd
    assert elpd == pytest.approx(own.elpd, abs=1e-2 if is_old else 1e-8)
    assert np.allclose(found.pareto_k, own.pareto_k, rtol=0, atol=0.1 if is_old else 1e-7)


def test_what_is_missing_is_named():
    model = BayesianLinearRegression(**FEW).fit(X.iloc[:, :3], X.iloc[:, 3])
    with pytest.raises(ValueError, match="are those of rows: give X"):
        model.to_arviz(posterior_predictive=True)
    with pytest.raises(ValueError, match="observed responses: give y"):
        model.to_arviz(X, log_likelihood=True)


def test_without_arviz_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    monkeypatch.setattr(arviz, "_is_old_arviz", lambda: False)
    posterior = Posterior(np.zeros((1, 5, 1)), {"coef": (1,)}, ["coef[a]"])
    with pytest.raises(ImportError, match="needs ArviZ: pip install"):
        posterior.to_arviz()
