"""Means of counts of new levels that a few draws decide."""

import warnings

import numpy as np
import pytest

from skbayes_sg import BayesianLinearRegression, BayesianPoissonRegressor
from skbayes_sg.exceptions import HeavyTailWarning
from skbayes_sg.groups.new_levels import MEAN, TailsOfNewLevels
from skbayes_sg.groups.rows import Components, nodes_of
from skbayes_sg.priors import HalfNormal


def looked_at(v, weights=None):
    """The shares that are found for draws with the variances v of an effect, of one row."""
    x, share = nodes_of(len(v))
    tails = TailsOfNewLevels([])
    means = np.exp(2.0 + np.sqrt(v)[:, None] * x).reshape(1, -1)
    tails.look(means, Components(share), weights, spread=True)
    return tails.shares[0][:, 0]


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_are_those_of_means_in_closed_form(weighted):
    v = np.array([0.1, 0.5, 1.0, 3.0])
    w = np.array([0.1, 0.2, 0.3, 0.4]) if weighted else np.full(4, 0.25)
    found = looked_at(v, w if weighted else None)
    for power, share in zip((1, 2), found, strict=True):
        c = np.exp(0.5 * power**2 * v)
        assert share == pytest.approx((w @ c) ** 2 / (w @ c**2), rel=1e-6)


def table(n_levels, rng):
    g, x = rng.integers(0, n_levels, 30 * n_levels), rng.standard_normal(30 * n_levels)
    u = 0.6 * rng.standard_normal(n_levels)
    return np.column_stack([x, g]), rng.poisson(np.exp(1.0 + 0.3 * x + u[g]))


@pytest.mark.parametrize("slopes", [None, {1: [0]}])
def test_few_levels_are_told_and_many_are_not(slopes):
    new = np.array([[0.0, -1.0], [2.0, -1.0]])
    options = {"group_effects": [1], "group_slopes": slopes, "random_state": 0}
    X, y = table(4, np.random.default_rng(0))
    few = BayesianPoissonRegressor(**options).fit(X, y)
    with pytest.warns(HeavyTailWarning, match=r"standard deviation of 2 of 2 rows"):
        few.predict(new, return_std=True)
    with pytest.warns(HeavyTailWarning):
        few.predict_std_components(new)
    many = BayesianPoissonRegressor(**options).fit(*table(20, np.random.default_rng(0)))
    narrow = options | {"group_scale": HalfNormal(0.3)}
    small = BayesianPoissonRegressor(**narrow).fit(*table(4, np.random.default_rng(0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeavyTailWarning)
        few.predict(X[:4], return_std=True)  # of known levels
        many.predict(new, return_std=True)
        small.predict(new)


def test_a_mean_of_one_draw_in_many_is_told():
    v = np.full(1000, 0.2)
    v[7] = 20.0
    assert looked_at(v)[0] < 0.01 < MEAN
    tails, (x, share) = TailsOfNewLevels([]), nodes_of(len(v))
    tails.look(np.exp(np.sqrt(v)[:, None] * x).reshape(1, -1), Components(share), None, False)
    with pytest.warns(HeavyTailWarning, match="predicted mean of 1 of 1"):
        tails.warn()


def test_means_that_are_numbers_are_not_looked_at():
    X, y = table(4, np.random.default_rng(0))
    model = BayesianLinearRegression(group_effects=[1], random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeavyTailWarning)
        model.predict(np.array([[0.0, -1.0]]), return_std=True)
