"""Functions of users are compiled with the values that their variables have at the time of fit."""

import copy
import math
import pickle
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numba import njit

from skbayes_sg.custom import CustomDensity, CustomRegressor
from skbayes_sg.custom.frozen_values import frozen
from skbayes_sg.custom.law import _law_of, law_of
from skbayes_sg.custom.row_law import row_law_of

X = np.random.default_rng(0).standard_normal((40, 1))
y = X[:, 0] + np.random.default_rng(1).standard_normal(40)
FEW = {"n_draws": 50, "n_chains": 2, "random_state": 0}
LIMIT = 0.0
TABLE = np.zeros(3)
PAIR = (0.0, np.zeros(2))
HELPERS = ModuleType("helpers_of_a_user")
HELPERS.__file__ = "helpers_of_a_user.py"


def reads_global(eta, y):
    return -0.5 * (y - eta - LIMIT) ** 2


def slope_of_global(eta, y):
    return y - eta - LIMIT


def reads_table(eta, y):
    return -0.5 * (y - eta - TABLE[1]) ** 2


def reads_pair(eta, y):
    return -0.5 * (y - eta - PAIR[0] - PAIR[1][0]) ** 2


def density(theta, row):
    return -0.5 * (row[0] - theta[0] - LIMIT) ** 2


@njit
def shift(value):
    return value - LIMIT


@njit
def shift_twice(value):
    return shift(value) + 0.0


def reads_by_a_helper(eta, y):
    return -0.5 * shift_twice(y - eta) ** 2


@njit(error_model="numpy")
def compiled_by_the_user(eta, y):
    return -0.5 * (y - eta - LIMIT) ** 2 + 0.0 / (1.0 + LIMIT)


def reads_a_module(eta, y):
    return -0.5 * (y - eta - HELPERS.limit) ** 2


def reads_a_helper_of_a_module(eta, y):
    return -0.5 * HELPERS.shift(y - eta) ** 2


@njit
def power(x, n):
    if n <= 0:
        return x * 0.0 + 1.0
    return x * power(x, n - 1)


def reads_itself(eta, y):
    return -0.5 * power(y - eta - LIMIT, 2)


def set_limit(monkeypatch, value):
    monkeypatch.setitem(globals(), "LIMIT", value)


def set_table(monkeypatch, value):
    TABLE[1] = value  # in place: the array is the same object


def set_pair(monkeypatch, value):
    monkeypatch.setitem(globals(), "PAIR", (value / 2.0, np.full(2, value / 2.0)))


def set_module(monkeypatch, value):
    monkeypatch.setattr(HELPERS, "limit", value, raising=False)
    monkeypatch.setitem(globals(), "LIMIT", value)
    monkeypatch.setattr(HELPERS, "shift", shift, raising=False)


def value_of(f, derivative=None):
    """f at eta = 0 and y = 1, compiled."""
    law = law_of(f, derivative, 1, 0)
    return law.log_likelihood(np.zeros((1, 1, 1)), np.ones(1))[0, 0]


@pytest.mark.parametrize(
    ("f", "change"),
    [
        (reads_global, set_limit),
        (reads_table, set_table),
        (reads_pair, set_pair),
        (reads_by_a_helper, set_limit),
        (compiled_by_the_user, set_limit),
        (reads_a_module, set_module),
        (reads_a_helper_of_a_module, set_module),
        (reads_itself, set_limit),
    ],
)
@pytest.mark.slow_except("reads_global", "reads_table", "compiled_by_the_user")
def test_compiled_functions_follow_the_values_that_they_read(f, change, monkeypatch):
    found = []
    for value in (0.0, 5.0, 0.0):
        change(monkeypatch, value)
        found.append(value_of(f))
    assert found == [-0.5, -8.0, -0.5]


def test_closures_and_defaults():
    def made(limit, least=0.0):
        def f(eta, y, more=least):
            return -0.5 * (y - eta - limit - more) ** 2

        return f

    assert [value_of(made(*at)) for at in ((0.0,), (5.0,), (0.0, 5.0))] == [-0.5, -8.0, -8.0]

    limit = 0.0

    def g(eta, y):
        return -0.5 * (y - eta - limit) ** 2

    first = value_of(g)
    limit = 5.0  # of the same cell
    assert (first, value_of(g)) == (-0.5, -8.0)


@pytest.mark.slow
def test_refits_find_the_values_of_their_time(monkeypatch):
    model = CustomRegressor(log_likelihood=reads_global, **FEW)
    intercepts = []
    for value in (0.0, 5.0):
        set_limit(monkeypatch, value)
        intercepts.append(model.fit(X, y).intercept_)
    assert intercepts[1] == pytest.approx(intercepts[0] - 5.0, abs=0.3)


@pytest.mark.slow
def test_refits_of_densities_find_the_values_of_their_time(monkeypatch):
    model = CustomDensity(density, {"mu": "normal"}, **FEW)
    means = []
    for value in (0.0, 1.0):
        set_limit(monkeypatch, value)
        means.append(float(model.fit(X).posterior_.mean("mu")))
    assert means[1] == pytest.approx(means[0] - 1.0, abs=0.2)


def test_given_derivatives_follow_their_values(monkeypatch):
    slopes = []
    for value in (0.0, 5.0):
        set_limit(monkeypatch, value)
        law = law_of(reads_global, slope_of_global, 1, 0)
        law.slopes(np.zeros((1, 1)), np.ones(1), np.ones(1), out := np.empty((1, 1)))
        slopes.append(out[0, 0])
    assert slopes == [1.0, -4.0]


@pytest.mark.slow
def test_predictions_keep_the_values_of_the_fit(monkeypatch):
    model = CustomRegressor(log_likelihood=reads_global, **FEW).fit(X, y)
    other = CustomDensity(density, {"mu": "normal"}, **FEW).fit(X)
    before = model.score(X, y), other.score(X)
    set_limit(monkeypatch, 5.0)
    assert (model.score(X, y), other.score(X)) == before
    again = pickle.loads(pickle.dumps(model))  # without the compiled functions
    assert again.score(X, y) < before[0] - 5.0


@pytest.mark.slow
def test_a_fit_that_fails_leaves_the_functions_of_the_fit_before(monkeypatch):
    model = CustomRegressor(log_likelihood=reads_global, **FEW).fit(X, y)
    before = model.score(X, y)
    set_limit(monkeypatch, np.nan)
    with pytest.raises(ValueError, match="not finite"):
        model.fit(X, y)
    assert model.score(X, y) == before


@pytest.mark.slow
def test_updates_keep_the_values_of_the_first_rows(monkeypatch):
    model = CustomRegressor(log_likelihood=reads_global, **FEW).partial_fit(X[:20], y[:20])
    set_limit(monkeypatch, 5.0)
    kept = model.partial_fit(X[20:], y[20:]).intercept_
    set_limit(monkeypatch, 0.0)
    assert kept == pytest.approx(
        CustomRegressor(log_likelihood=reads_global, **FEW).fit(X, y).intercept_, abs=0.3
    )


@pytest.mark.slow
def test_shards_follow_the_values(monkeypatch):
    model = CustomRegressor(log_likelihood=reads_global, **FEW)
    parts = [(X[:20], y[:20]), (X[20:], y[20:])]
    first = model.fit(X, y).intercept_
    set_limit(monkeypatch, 5.0)
    assert model.fit_shards(parts).intercept_ == pytest.approx(first - 5.0, abs=0.5)


@pytest.mark.slow
def test_unchanged_values_are_not_compiled_again():
    model = CustomRegressor(log_likelihood=reads_by_a_helper, **FEW)
    model.fit(X, y)
    compiled = model._law.loss
    before = _law_of.cache_info().misses
    model.fit(X, y + 1.0)
    copy.deepcopy(model).fit(X, y)
    assert _law_of.cache_info().misses == before
    assert model._law.loss is compiled

    made_anew = [lambda eta, y: -((y - eta) ** 2) for _ in range(2)]
    assert law_of(made_anew[0], None, 1, 0) is law_of(made_anew[1], None, 1, 0)


def test_caches_are_bounded():
    for cache in (_law_of, row_law_of.__globals__["_row_law_of"]):
        assert cache.cache_info().maxsize == 64


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, False),
        (0.0, -0.0, False),
        (math.nan, float("nan"), True),
        (True, 1, False),
        (np.float32(1), np.float64(1), False),
        (np.zeros(3), np.zeros(3), True),
        (np.zeros(3), np.zeros(3, dtype=int), False),
        (np.zeros((2, 3)), np.zeros((3, 2)), False),
        (np.zeros(3), np.array([0.0, 0.0, 1e-9]), False),
        ((1.0, (2.0,)), (1.0, (2.0,)), True),
        ((1.0, (2.0,)), (1.0, (3.0,)), False),
        ([1.0], [1.0], False),  # lists are known by identity
        ("a", "a", True),
        (SimpleNamespace(), SimpleNamespace(), False),
    ],
    ids=str,
)
def test_values_are_compared_with_their_types(one, other, same):
    first, second = (frozen(lambda eta, y, value=value: value) for value in (one, other))
    assert (first == second) == same
    assert (first is second) == same


def test_variables_that_are_not_read_do_not_count(monkeypatch):
    before = frozen(poisson)
    set_limit(monkeypatch, 5.0)
    assert frozen(poisson) is before


def poisson(eta, y):
    return y * eta - np.exp(eta)
