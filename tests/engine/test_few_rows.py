"""Tables of which few rows are different, and the draws from them."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.engine.target import Target
from skbayes_sg.models import Poisson
from skbayes_sg.priors import Flat, Normal

RNG = np.random.default_rng(0)
N = 30_000
X = np.column_stack([RNG.integers(0, 2, N), RNG.integers(0, 3, N), np.full(N, 1e6)]).astype(float)
Y = RNG.poisson(0.5, N).astype(float)


def target(X=X, y=Y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return Target(X, y, weight, Poisson(), Normal()._table((X.shape[1] + 1,)))


def test_equal_rows_are_merged_into_the_same_rows_in_any_order():
    weight = RNG.integers(1, 4, N).astype(float)
    found, order = target(weight=weight).with_few_rows(100), RNG.permutation(N)
    expected = target(weight=weight).merged()
    assert found.n_rows < 60
    again = target(X[order], Y[order], weight[order]).with_few_rows(100)
    for other in (expected, again):
        np.testing.assert_array_equal(found.X, other.X)
        np.testing.assert_array_equal(found.labels(), other.labels())
        np.testing.assert_array_equal(found.weight, other.weight)


def test_other_tables_stay_as_they_are(tmp_path):
    few = target().merged().n_rows
    assert target().with_few_rows(few).n_rows == few
    rare = X.copy()
    rare[-200:, 2] += np.arange(200)  # rows that a sample may miss
    path = tmp_path / "X.npy"
    np.save(path, X)
    for other in (
        target(), target(rare), target(sparse.csr_array(X)), target(np.load(path, mmap_mode="r")),
        target(RNG.normal(size=(N, 2))),
    ):  # fmt: skip
        assert other.with_few_rows(few - 1) is other


def test_rows_that_a_combination_does_not_tell_apart(monkeypatch):
    monkeypatch.setattr("skbayes_sg.engine.target._combined", lambda X, labels: X[:, 0])
    assert target().with_few_rows(100).n_rows == N


@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegressor])
def test_draws_are_those_of_rows_that_are_counted(kind):
    """As of three variants, one of which has hardly any events."""
    X = np.repeat(np.eye(3), [20_000, 20_000, 5000], axis=0)
    y = np.zeros(len(X), dtype=int)
    y[[*range(13), *range(20_000, 20_015), 40_000]] = 1
    cells = np.repeat(np.eye(3), 2, axis=0)
    counts = np.array([13, 19_987, 15, 19_985, 1, 4999])
    options = {"prior": Normal(scale=20.0), "fit_intercept": False, "random_state": 0}
    model = kind(n_draws=200, **options).fit(X, y)
    counted = kind(n_draws=200, **options).fit(cells, np.tile([1, 0], 3), sample_weight=counts)
    np.testing.assert_allclose(model.posterior_.flat, counted.posterior_.flat, rtol=1e-9)
    assert model.posterior_.check().trustworthy


@pytest.mark.slow
def test_samplers_on_few_rows_keep_theirs():
    y = (X[:, 0] + RNG.logistic(size=N) > 0).astype(int)
    model = BayesianLogisticRegression(sampler="sgld", n_draws=50, n_chains=1, random_state=0)
    assert model.fit(X[:, :2], y).batch_size_ < 1000
    shards = BayesianLogisticRegression(n_subposteriors=2, n_draws=50, random_state=0)
    assert len(shards.fit(X[:, :2], y).subposteriors_) == 2
    exact = BayesianLinearRegression(prior=Flat(), n_draws=50, random_state=0)
    assert exact.fit(X[:, :2], y.astype(float)).sampler_ == "exact"
