"""Tables with equal rows, and the draws from them."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.engine.equal_rows import _keys, _weights_of_keys, merged, merged_if_it_pays
from skbayes_sg.engine.target import Target
from skbayes_sg.groups.problem import GroupProblem
from skbayes_sg.models import Poisson
from skbayes_sg.priors import Flat, Normal

RNG = np.random.default_rng(0)
N = 30_000
X = np.column_stack([RNG.integers(0, 2, N), RNG.integers(0, 3, N), np.full(N, 1e6)]).astype(float)
Y = RNG.poisson(0.5, N).astype(float)


def target(X=X, y=Y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return Target(X, y, weight, Poisson(), Normal()._table((X.shape[1] + 1,)))


def in_order(found):
    """Rows, labels and weights, the rows sorted."""
    X = found.X.toarray() if sparse.issparse(found.X) else found.X
    table = np.column_stack([X, found.labels(), found.weight])
    return table[np.lexsort(table.T)]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, np.float32])
def test_equal_rows_are_merged_into_the_same_rows_in_any_order(kind):
    weight, order = RNG.integers(1, 4, N).astype(float), RNG.permutation(N)
    found = merged_if_it_pays(target(kind(X), weight=weight))
    assert found.n_rows < 60
    np.testing.assert_array_equal(in_order(found), in_order(merged(target(weight=weight))))
    again = merged_if_it_pays(target(kind(X)[order], Y[order], weight[order]))
    assert (found.X != again.X).sum() == 0
    np.testing.assert_array_equal(found.data.facts, again.data.facts)


def test_few_sparse_rows_are_merged_as_dense_ones():
    few = sparse.csr_array(X[:500])
    found, expected = merged(target(few, Y[:500])), merged(target(X[:500], Y[:500]))
    np.testing.assert_array_equal(in_order(found), in_order(expected))


def repeated(n_different, n_rows=40_000):
    """Rows of which `n_different` are different, in random order."""
    rows = RNG.normal(size=(n_different, 3))
    return rows[RNG.permutation(np.arange(n_rows) % n_different)]


@pytest.mark.parametrize("n_different", [5, 3000, 19_900])
def test_rows_are_merged_where_at_most_half_are_different(n_different):
    many = repeated(n_different)
    found = merged_if_it_pays(target(many, np.zeros(len(many))))
    assert found.n_rows == n_different
    assert found.weight.sum() == len(many)


def test_other_tables_stay_as_they_are(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    zeros = np.zeros(40_000)
    for other in (
        target(np.load(path, mmap_mode="r")), target(RNG.normal(size=(N, 2))),
        target(repeated(25_000), zeros), target(sparse.csr_array(repeated(25_000)), zeros),
    ):  # fmt: skip
        assert merged_if_it_pays(other) is other


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_that_a_key_does_not_tell_apart(kind):
    """Of numbers of 1e16 and 1e-3 the sum has the first alone: different rows have the same key."""
    other = X.copy()
    other[:, 0] *= 1e-3
    other[:, 2] = 1e16
    keys = _keys(other, Y[:, None], _weights_of_keys(other, Y[:, None]))
    assert len(np.unique(keys)) < len(np.unique(np.c_[other, Y], axis=0))
    assert merged_if_it_pays(target(kind(other))).n_rows == N


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


def test_draws_of_crossed_levels_are_those_of_their_counts():
    """As of two factors with 60 and 20 levels, one-hot and sparse, in 30 000 rows."""
    of_row = RNG.integers(60, size=N), 60 + RNG.integers(20, size=N)
    indices, ones = np.column_stack(of_row).ravel(), np.ones(2 * N)
    rows = sparse.csr_array((ones, indices, np.arange(0, 2 * N + 1, 2)), shape=(N, 80))
    y = (RNG.random(N) < 0.3).astype(int)
    cells, of_cell = np.unique(np.column_stack([rows.toarray(), y]), axis=0, return_inverse=True)
    options = {"n_draws": 100, "n_chains": 2, "random_state": 0}
    model = BayesianLogisticRegression(**options).fit(rows, y)
    counted = BayesianLogisticRegression(**options).fit(
        sparse.csr_array(cells[:, :-1]),
        cells[:, -1].astype(int),
        sample_weight=np.bincount(of_cell.ravel()),
    )
    np.testing.assert_allclose(model.posterior_.flat, counted.posterior_.flat, rtol=1e-6)


@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegressor])
def test_rows_of_levels_are_merged(monkeypatch, kind):
    """A table of a treatment and 40 stores has 160 different rows at most with the response."""
    rows = np.column_stack([RNG.integers(2, size=4000), RNG.integers(40, size=4000)])
    y = RNG.integers(2, size=4000)
    model = kind(group_effects=[1], n_draws=50, n_chains=1, random_state=0)
    sizes, of_rows = [], GroupProblem.merged

    def merged_rows(problem):
        found = of_rows(problem)
        sizes.append(found.target.n_rows)
        return found

    monkeypatch.setattr(GroupProblem, "merged", merged_rows)
    draws = model.fit(rows, y).posterior_.flat
    assert sizes[0] <= 160
    assert model.batch_size_ == 4000
    monkeypatch.setattr(GroupProblem, "merged", lambda problem: problem)
    np.testing.assert_allclose(draws, model.fit(rows, y).posterior_.flat, rtol=1e-6)


def test_messages_count_different_rows():
    assert target().counted == f"{N} rows"
    found = merged_if_it_pays(target())
    assert found.counted == merged(target()).counted == f"{found.n_rows} different rows"
    assert merged(found).counted == found.counted
    assert merged(target(np.eye(3), np.zeros(3))).counted == "3 rows"


@pytest.mark.slow
def test_samplers_on_few_rows_keep_theirs():
    y = (X[:, 0] + RNG.logistic(size=N) > 0).astype(int)
    model = BayesianLogisticRegression(sampler="sgld", n_draws=50, n_chains=1, random_state=0)
    assert model.fit(X[:, :2], y).batch_size_ < 1000
    shards = BayesianLogisticRegression(n_subposteriors=2, n_draws=50, random_state=0)
    assert len(shards.fit(X[:, :2], y).subposteriors_) == 2
    exact = BayesianLinearRegression(prior=Flat(), n_draws=50, random_state=0)
    assert exact.fit(X[:, :2], y.astype(float)).sampler_ == "exact"
