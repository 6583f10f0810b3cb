"""Warnings about default priors that decide what they should not, or fail to decide."""

import warnings

import numpy as np
import pytest
from sklearn.preprocessing import scale

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.exceptions import PriorConflictWarning, WidePriorWarning
from skbayes_sg.priors import HalfCauchy, Normal

OPTIONS = {"n_draws": 100, "random_state": 0}


def crowded(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * n, d))
    return X, X[:, :5].sum(axis=1) * 0.5 + rng.standard_normal(2 * n)


@pytest.mark.parametrize("d", [50, 100])
def test_as_many_columns_as_rows_are_told_and_the_remedy_helps(d):
    X, y = crowded(60, d)
    train, new = slice(0, 60), slice(60, None)
    model = BayesianLinearRegression(**OPTIONS)
    with pytest.warns(WidePriorWarning, match="60 rows that count as [45]"):
        model.fit(X[train], y[train])
    learned = BayesianLinearRegression(prior=Normal(scale=HalfCauchy(1.0)), **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WidePriorWarning)
        learned.fit(X[train], y[train])
        BayesianLinearRegression(**OPTIONS).fit(X[:, :20], y)
    assert model.score(X[new], y[new]) < min(0.0, learned.score(X[new], y[new]) - 0.3)


def test_equal_rows_are_counted():
    rng = np.random.default_rng(0)
    level = np.repeat(np.arange(8), 100)
    y = rng.random(800) < 0.2 + 0.05 * level
    X, counts = crowded(20, 20)[0][:20], np.full(20, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WidePriorWarning)
        BayesianLogisticRegression(**OPTIONS).fit(np.eye(8)[level], y)
        BayesianLinearRegression(**OPTIONS).fit(X, X.sum(axis=1) + X[:, 0] ** 2, counts)
    with pytest.warns(WidePriorWarning, match="leaves coefficients to 20 rows"):
        BayesianLinearRegression(**OPTIONS).fit(X, X.sum(axis=1) + X[:, 0] ** 2)


@pytest.mark.slow
def test_classes_count_with_all_their_predictors():
    X, y = crowded(60, 80)
    model = BayesianLogisticRegression(**OPTIONS)
    with pytest.warns(WidePriorWarning):
        model.fit(X[:60], y[:60] > 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WidePriorWarning)
        model.fit(X[:, :10], np.digitize(y, [-1.0, 0.0, 1.0]))


@pytest.mark.parametrize("unit", [1e-2, 1e-3, 1e-9])
def test_columns_in_units_that_the_prior_suppresses_are_told(unit):
    """The draws say nothing of this: their variance is that of the prior to within its noise."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 2))
    y = rng.logistic(size=400) < X[:, 0]
    model = BayesianLogisticRegression(**OPTIONS)
    with pytest.warns(PriorConflictWarning, match=r"keeps coef\[x0\] near zero.* [6-9]\.\d"):
        model.fit(X * [unit, 1.0], y)
    assert "prior and data" in str(model.posterior_.check())
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorConflictWarning)
        model.fit(scale(unit * X), y)
        model.fit(X * [1.0, unit], y)  # the second column says nothing in any unit
        clear = BayesianLogisticRegression(prior=Normal(scale=3.0 / unit), **OPTIONS)
        clear.fit(unit * X, y)
        BayesianPoissonRegressor(**OPTIONS).fit(unit * X, y)  # its default prior has no unit
    assert clear.coef_[0, 0] * unit == pytest.approx(1.0, abs=0.5)
