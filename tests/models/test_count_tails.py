"""Means of counts that a few draws decide."""

import warnings

import numpy as np
import pytest

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from skbayes_sg.exceptions import HeavyTailWarning
from skbayes_sg.groups.rows import AS_DRAWN, Components, nodes_of
from skbayes_sg.models.count_tails import MEAN, CountTails
from skbayes_sg.priors import HalfNormal


def looked_at(v, weights=None):
    """The shares that are found for draws with the variances v of an effect, of one row."""
    x, share = nodes_of(len(v))
    tails = CountTails([], [])
    means = np.exp(2.0 + np.sqrt(v)[:, None] * x).reshape(1, -1)
    tails.look(means, None, Components(share), weights, spread=True)
    return tails.new[0][:, 0]


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


@pytest.mark.slow
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
    tails, (x, share) = CountTails([], []), nodes_of(len(v))
    means = np.exp(np.sqrt(v)[:, None] * x).reshape(1, -1)
    tails.look(means, None, Components(share), None, False)
    with pytest.warns(HeavyTailWarning, match="predicted mean of 1 of 1"):
        tails.warn()


def test_means_that_are_numbers_are_not_looked_at():
    X, y = table(4, np.random.default_rng(0))
    model = BayesianLinearRegression(group_effects=[1], random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeavyTailWarning)
        model.predict(np.array([[0.0, -1.0]]), return_std=True)


@pytest.mark.parametrize("estimator", [BayesianPoissonRegressor, BayesianNegativeBinomialRegressor])
def test_categories_that_were_not_in_the_data_are_told(estimator):
    rng = np.random.default_rng(0)
    X = np.eye(4)[rng.integers(0, 4, 300)]
    y = rng.poisson(np.exp(1.0 + 0.2 * X[:, 0]))
    y[X[:, 3] == 1.0] = 0  # nothing is heavy where there are no events
    model = estimator(random_state=0).fit(X, y)
    known, new = np.eye(4), np.zeros((3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeavyTailWarning)
        model.predict(known, return_std=True)
    with pytest.warns(HeavyTailWarning, match="mean of 3 of 7 rows: the data say little"):
        mean = model.predict(np.concatenate([known, new]))
    assert mean[4:].min() > 5.0 * model.predict_quantiles(new, 0.5).max()
    with pytest.warns(HeavyTailWarning, match="mean and standard deviation of 3 of 3"):
        model.predict(new, return_std=True)
    with pytest.warns(HeavyTailWarning, match="mean and standard deviation of 3 of 3"):
        model.predict_std_components(new)


@pytest.mark.parametrize(("s", "tells"), [(1.2, False), (1.9, True)])
def test_rows_are_told_from_a_standard_deviation_of_their_predictors_on(s, tells):
    means = np.exp(3.0 + s * np.random.default_rng(0).standard_normal((5, 4000)))
    tails = CountTails([], [])
    tails.look(means, means.mean(axis=1), AS_DRAWN, None, False)
    assert tails.others[0].tolist() == [[tells] * 5, [False] * 5]
    small = CountTails([], [])  # draws differ by less than counts with the same mean
    small.look(1e-4 * means, 1e-4 * means.mean(axis=1), AS_DRAWN, None, True)
    assert not small.others[0].any()
