"""Moments of columns by weight: those of constants are exact, and offsets cost no digits."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sg import BayesianICA, BayesianLinearRegression
from skbayes_sg._base import columns

forms = pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])


@forms
@pytest.mark.parametrize("seed", range(10))
def test_a_constant_has_no_variance(form, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 3000)), 6
    monkeypatch.setattr(columns, "BLOCK", int(rng.integers(d, 2 * n * d)))
    c = rng.normal(size=d).round(1) + 0.1
    total, mean, variance = columns.weighted_moments(form(np.tile(c, (n, 1))), rng.random(n))
    np.testing.assert_array_equal(mean, c)
    np.testing.assert_array_equal(variance, 0.0)
    assert total > 0.0


@forms
def test_moments_are_those_of_the_definition(form):
    rng = np.random.default_rng(0)
    X, w = np.where(rng.random((400, 3)) < 0.5, 0.0, rng.normal(size=(400, 3))), rng.random(400)
    for offset in (0.0, 1e6):
        total, mean, variance = columns.weighted_moments(form(X + offset), w)
        centre = np.average(X, axis=0, weights=w)
        assert total == pytest.approx(w.sum(), rel=1e-12)
        np.testing.assert_allclose(mean - offset, centre, atol=1e-9)
        expected = np.average((X - centre) ** 2, axis=0, weights=w)
        np.testing.assert_allclose(variance, expected, rtol=1e-12 + 1e-15 * offset)


def test_orders_of_memory_have_the_same_moments_to_the_last_bit():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(500, 7)), rng.random(500)
    for one, other in zip(*map(columns.block_moments, (X, X.copy("F")), (w, w)), strict=True):
        np.testing.assert_array_equal(one, other)


@forms
def test_a_constant_that_no_sum_of_binary_fractions_hits(form):
    # The mean of 1242 times 7.3 is not 7.3, and what is left of the column is no column.
    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.normal(size=(1242, 2)), np.full(1242, 7.3)]), rng.normal(size=1242)
    model = BayesianLinearRegression(random_state=0).fit(form(X), y)
    prior = 2.5 * y.std() / 7.3  # nothing else is known of it
    assert model.coef_std_[2] == pytest.approx(prior, rel=0.1)
    assert model.intercept_std_ == pytest.approx(7.3 * prior, rel=0.1)


def test_a_constant_is_no_source():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.laplace(size=(1242, 2)), np.full(1242, 7.3)])
    model = BayesianICA(n_draws=50, n_chains=2, random_state=0)
    assert model.fit(X).components_.shape == (2, 3)
