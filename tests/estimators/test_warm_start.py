"""`warm_start`: the same posterior, from a shorter search of its mode."""

import pickle

import estimators
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.geometry import mode
from skbayes_sg.priors import HalfCauchy, Normal

FEW = {"n_draws": 250, "random_state": 0}
WARM = FEW | {"warm_start": True}
SEARCHED = {
    "BayesianLogisticRegression": BayesianLogisticRegression,
    "BayesianPoissonRegressor": BayesianPoissonRegressor,
    "BayesianRobustRegression": BayesianRobustRegression,
    "BayesianNegativeBinomialRegressor": BayesianNegativeBinomialRegressor,
}


def table(name="BayesianLogisticRegression", n=300, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    eta = X @ np.linspace(-1.0, 1.5, d) + 0.3
    return X, estimators.ESTIMATORS[name].response(eta, rng)


@pytest.fixture
def passes(monkeypatch):
    """How many gradients and Hessians each search of a centre has taken."""
    counts, search = [], mode._descend

    def counted(name):
        method = getattr(Target, name)

        def call(self, *args, **options):
            counts[-1] += 1
            return method(self, *args, **options)

        return call

    def descend(target, *args):
        counts.append(0)
        with monkeypatch.context() as patched:
            for name in ("value_and_gradient", "likelihood_hessian", "expansion"):
                patched.setattr(Target, name, counted(name))
            return search(target, *args)

    monkeypatch.setattr(mode, "_descend", descend)
    return counts


def assert_same_posterior(one, other):
    """Means within Monte Carlo error, and standard deviations: half of the draws are effective."""
    a, b = one.posterior_, other.posterior_
    n = 0.5 * FEW["n_draws"] * a.n_chains
    assert (np.abs(a.mean() - b.mean()) < 5.0 * b.std() * np.sqrt(2.0 / n)).all()
    assert np.abs(a.std() / b.std() - 1.0).max() < 5.0 / np.sqrt(n)


@pytest.mark.slow_except("BayesianPoissonRegressor")
@pytest.mark.parametrize("name", SEARCHED)
def test_a_second_fit_takes_fewer_passes_to_the_same_posterior(name, passes):
    X, y = table(name)
    model = SEARCHED[name](prior=Normal(scale=1.0), **WARM).fit(X, y)
    saved, first = pickle.dumps(model), passes[0]
    passes.clear()
    model.set_params(prior__scale=0.7).fit(X, y)
    assert passes[0] < 0.75 * first
    assert_same_posterior(model, SEARCHED[name](prior=Normal(scale=0.7), **FEW).fit(X, y))
    again = pickle.loads(saved).set_params(prior__scale=0.7).fit(X, y)
    assert np.array_equal(again.posterior_.flat, model.posterior_.flat)
    without = clone(model).set_params(warm_start=False).fit(X, y)
    assert len(saved) < 1.01 * len(pickle.dumps(without))


def test_with_many_rows_the_search_on_some_of_them_is_skipped(passes, monkeypatch):
    monkeypatch.setattr(mode, "SUBSAMPLE", 500)
    X, y = table(n=2000)
    model = BayesianLogisticRegression(**WARM).fit(X, y)
    first = passes[0]
    passes.clear()
    model.fit(X, y)
    assert passes[0] < first
    assert_same_posterior(model, BayesianLogisticRegression(**FEW).fit(X, y))


def test_a_start_that_is_worse_than_none_is_not_used():
    X, y = table("BayesianPoissonRegressor")
    model = BayesianPoissonRegressor(**WARM).fit(X, y)
    model.fit(-50.0 * X, y)  # where means would be e^100 and more
    cold = BayesianPoissonRegressor(**FEW).fit(-50.0 * X, y)
    assert np.array_equal(model.posterior_.flat, cold.posterior_.flat)


@pytest.mark.slow
def test_columns_and_classes_may_change():
    X, y = table()
    names = ["a", "b", "c", "d"]
    model = BayesianLogisticRegression(**WARM).fit(pd.DataFrame(X, columns=names), y)
    others = pd.DataFrame(X[:, [3, 0]], columns=["d", "new"])
    assert_same_posterior(model.fit(others, y), BayesianLogisticRegression(**FEW).fit(others, y))
    three = y + (X[:, 0] > 1.0)
    assert model.fit(X, three).coef_.shape == (3, 4)
    assert_same_posterior(model, BayesianLogisticRegression(**FEW).fit(X, three))
    assert_same_posterior(model.fit(X, three), BayesianLogisticRegression(**FEW).fit(X, three))
    assert model.fit(sparse.csr_array(X), y).coef_.shape == (1, 4)


def test_it_knows_coefficients_by_their_names(passes):
    X, y = table()
    names = np.array(["a", "b", "c", "d"])
    model = BayesianLogisticRegression(**WARM).fit(pd.DataFrame(X, columns=names), y)
    passes.clear()
    order = [2, 0, 3, 1]
    model.fit(pd.DataFrame(X[:, order], columns=names[order]), y)
    in_order = passes[0]
    passes.clear()
    model.fit(pd.DataFrame(X[:, order], columns=names), y)  # each under another's name
    assert in_order < passes[0]


KINDS = {
    "laplace": (BayesianLogisticRegression, {"prior": "laplace"}),
    "no intercept": (BayesianLogisticRegression, {"fit_intercept": False}),
    "hmc": (BayesianLogisticRegression, {"sampler": "hmc"}),
    "moments": (BayesianLogisticRegression, {"keep": "moments"}),
    "subposteriors": (BayesianLogisticRegression, {"n_subposteriors": 2}),
    "linear, closed form": (BayesianLinearRegression, {}),
    "linear, laplace": (BayesianLinearRegression, {"prior": "laplace"}),
}


@pytest.mark.slow_except("linear, closed form")
@pytest.mark.parametrize("name", KINDS)
def test_other_fits_begin_there_as_well(name):
    kind, options = KINDS[name]
    X, y = table(kind.__name__)
    model = kind(**WARM | options).fit(X, y).fit(X, y)
    assert_same_posterior(model, kind(**FEW | options).fit(X, y))
    shards = [(X[::2], y[::2]), (X[1::2], y[1::2])]
    if name == "no intercept":
        assert_same_posterior(model.fit_shards(shards), kind(**FEW | options).fit_shards(shards))


@pytest.mark.slow
def test_columns_far_from_zero():
    X, y = table("BayesianRobustRegression")
    X[:, 1] += 1.7e9
    model = BayesianRobustRegression(**WARM).fit(X, y)
    assert_same_posterior(model.fit(X, y), BayesianRobustRegression(**FEW).fit(X, y))


@pytest.mark.slow
def test_in_the_span_of_the_rows(passes):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 400))
    y = (X[:, 0] + rng.logistic(size=40) > 0).astype(int)
    model = BayesianLogisticRegression(**WARM).fit(X, y)
    first = passes[0]
    passes.clear()
    model.fit(X, y)
    assert passes[0] < first
    assert_same_posterior(model, BayesianLogisticRegression(**FEW).fit(X, y))


def test_a_clone_begins_anew():
    X, y = table()
    model = BayesianLogisticRegression(**WARM).fit(X[:100], y[:100]).fit(X, y)
    cold = BayesianLogisticRegression(**FEW).fit(X, y)
    assert np.array_equal(clone(model).fit(X, y).posterior_.flat, cold.posterior_.flat)
    assert not np.array_equal(model.posterior_.flat, cold.posterior_.flat)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": Normal(scale=HalfCauchy(1.0))}, "warm_start=True needs a prior of fixed scales"),
        ({"group_effects": ["a"]}, "group_effects does not go with warm_start=True"),
        ({"warm_start": 1}, "warm_start"),
    ],
)
def test_what_it_does_not_go_with(options, message):
    X, y = table()
    rows = pd.DataFrame(np.round(X), columns=["a", "b", "c", "d"])
    with pytest.raises((ValueError, InvalidParameterError), match=message):
        BayesianLogisticRegression(**WARM | options).fit(rows, y)
