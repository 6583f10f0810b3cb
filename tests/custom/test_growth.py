"""Likelihoods and densities of the wrong sign are named before anything is sampled."""

import math

import numpy as np
import pytest

from skbayes_sg.custom import CustomDensity, CustomRegressor
from skbayes_sg.custom.growth import ROWS, growth_of_density, growth_of_regression
from skbayes_sg.custom.law import law_of
from skbayes_sg.custom.row_law import row_law_of
from skbayes_sg.densities.density import density_target
from skbayes_sg.engine.target import Target
from skbayes_sg.priors import HalfNormal, Normal

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 2))
NUMBERS = X @ [1.0, -2.0] + 0.5 + RNG.standard_t(2, 200)
COUNTS = RNG.poisson(np.exp(0.3 + X @ [0.5, -0.3])).astype(float)


def wrong(eta, y):
    return 0.5 * (y - eta) ** 2


def wrong_with_scale(eta, y, sigma):
    return 0.5 * ((y - eta) / sigma) ** 2 - np.log(sigma)


def without_response(eta, y):
    return eta * eta


def wrong_count(eta, y):
    return np.exp(eta) - y * eta


def wrong_second(eta, y):
    return -0.5 * (y - eta[0]) ** 2 + 0.1 * eta[1] ** 2


def wrong_in_extra(eta, y, t):
    return -0.5 * (y - eta) ** 2 + t * t


@pytest.mark.parametrize(
    ("f", "parameters", "where"),
    [
        (wrong, {}, "eta: for y = .* at eta = 0, and .* at eta = 256"),
        (wrong, {"fit_intercept": False}, "eta"),
        (wrong, {"prior": "flat"}, "eta"),
        (wrong_with_scale, {"extras": {"sigma": "half_normal"}}, "eta: .* eta = 0, sigma = "),
        (without_response, {}, "eta"),
        (wrong_count, {}, "eta"),
        (wrong_second, {"n_predictors": 2}, "eta: .* eta = 0, 256"),
        (wrong_in_extra, {"extras": {"t": "half_normal"}}, "t: .* eta = 0, t = "),
    ],
)
@pytest.mark.slow_except("parameters0", "parameters3", "parameters5")
def test_likelihoods_of_the_wrong_sign_are_named(f, parameters, where):
    y = COUNTS if f is wrong_count else NUMBERS
    with pytest.raises(ValueError, match=f"without bound along {where}.*is the sign right"):
        CustomRegressor(log_likelihood=f, random_state=0, **parameters).fit(X, y)


def test_likelihoods_of_the_wrong_sign_are_named_with_group_effects():
    rows = np.column_stack([X[:, 0], np.arange(200) % 5])
    with pytest.raises(ValueError, match="without bound along eta"):
        CustomRegressor(log_likelihood=wrong, group_effects=[1], random_state=0).fit(rows, NUMBERS)


def test_likelihoods_of_the_wrong_sign_are_named_by_shards():
    parts = [(X[:100], NUMBERS[:100]), (X[100:], NUMBERS[100:])]
    with pytest.raises(ValueError, match=r"shard 0 of 2: .* without bound along eta"):
        CustomRegressor(log_likelihood=wrong, random_state=0).fit_shards(parts)


def wrong_location(theta, row):
    return 0.5 * (row[0] - theta[0]) ** 2


def wrong_line(theta, row):
    z = (row[0] - theta[0]) / theta[1]
    return 0.5 * z * z + np.log(theta[1])


@pytest.mark.parametrize(
    ("f", "priors"),
    [
        (wrong_location, {"mu": "normal"}),
        (wrong_location, {"mu": "flat"}),
        (wrong_line, {"mu": Normal(scale=100.0), "sigma": "half_normal"}),
    ],
)
@pytest.mark.slow_for("wrong_line")
def test_densities_of_the_wrong_sign_are_named(f, priors):
    with pytest.raises(ValueError, match=r"without bound along mu: it is .* at mu = 0, and .*sign"):
        CustomDensity(f, priors, random_state=0).fit(NUMBERS[:, None])


# -- what is right is let through -----------------------------------------------------------------


def student_t(eta, y, s):
    return -2.5 * np.log(1.0 + ((y - eta) / s) ** 2 / 4.0) - np.log(s)


def gumbel(eta, y, s):
    z = (y - eta) / s
    return -z - np.exp(-z) - np.log(s)


def laplace(eta, y):
    return -abs(y - eta)


def mixture(eta, y, s):  # not concave, and -inf far away
    z = (y - eta) / s
    return np.log(0.9 * np.exp(-0.5 * z * z) + 0.1 * np.exp(-0.005 * z * z)) - np.log(s)


def poisson(eta, y):
    return y * eta - np.exp(eta)


def point_process(eta, y):  # events, and rows that stand for the space around them
    return eta if y > 0.0 else -0.1 * np.exp(eta)


def negative_binomial(eta, y, r):
    both = math.lgamma(y + r) - math.lgamma(r) + r * math.log(r)
    return both + y * eta - (y + r) * math.log(r + math.exp(eta))


def logistic(eta, y):
    return min(y, 1.0) * eta - np.log1p(np.exp(eta))


def located(eta, y):  # a location and a log precision
    return -0.5 * (y - eta[0]) ** 2 * np.exp(eta[1]) + 0.5 * eta[1]


RIGHT = [(student_t, 1, 1), (gumbel, 1, 1), (laplace, 1, 0), (mixture, 1, 1), (poisson, 1, 0)]
RIGHT += [(point_process, 1, 0), (negative_binomial, 1, 1), (logistic, 1, 0), (located, 2, 0)]


def target_of(f, K, E, y, intercept=True, scale=100.0):
    D = K * (X.shape[1] + intercept)
    prior = [Normal(scale=scale)._table((D,), "coef")]
    prior += [HalfNormal(scale=1.0)._table((1,), "s")] * E
    law, rows = law_of(f, None, K, E), np.resize(X, (len(y), X.shape[1]))
    weight = np.ones(len(y))
    return Target(rows, y, weight, law, np.concatenate(prior), intercept=intercept)


@pytest.mark.parametrize(("f", "K", "E"), RIGHT, ids=lambda f: getattr(f, "__name__", ""))
@pytest.mark.slow_except("student_t", "poisson", "located")
def test_likelihoods_of_the_right_sign_are_let_through(f, K, E):
    for y in (NUMBERS, COUNTS, 0.0 * COUNTS, 1e6 * NUMBERS, 1e-6 * NUMBERS, NUMBERS + 1e6):
        of_counts = f in (poisson, point_process, negative_binomial, logistic)
        for intercept in (True, False):
            given = np.abs(np.round(y)) if of_counts else y
            assert growth_of_regression(target_of(f, K, E, given, intercept)) is None


def cauchy_line(theta, row):
    return -np.log(1.0 + ((row[1] - theta[0] * row[0]) / theta[1]) ** 2) - np.log(theta[1])


def square(theta, row):
    return -0.5 * (row[1] - theta[0] ** 2 * row[0]) ** 2 / (1.0 + theta[1])


@pytest.mark.parametrize("f", [cauchy_line, square])
@pytest.mark.slow_for("square")
def test_densities_of_the_right_sign_are_let_through(f):
    for unit in (1.0, 1e6, 1e-6):  # the maximum is as far away
        rows, positive = np.column_stack([np.abs(X[:, 0]), unit * NUMBERS]), (f is square, True)
        law = row_law_of(f, None, positive, (1.0, 1.0), 2, "numba")
        one = HalfNormal(scale=1.0) if f is square else Normal(scale=1.0)
        prior = [one._table((1,), "a"), HalfNormal(scale=1.0)._table((1,), "b")]
        target = density_target(law, rows, np.ones(200), np.concatenate(prior))
        assert growth_of_density(target, np.zeros(2), law.positive, np.ones(2)) is None


# -- the prior, and rows that are left out --------------------------------------------------------


def rises_by_response(eta, y):
    return y * eta * eta


@pytest.mark.parametrize(("share", "grows"), [(0.9, False), (1.1, True)])
def test_a_prior_may_outweigh_what_rises(share, grows):
    """Σ c η² and a normal prior of the intercept: there is a maximum if Σ c < 1 / (2 scale²)."""
    y = np.full(50, share * 0.5 / 3.0**2 / 50.0)
    assert (growth_of_regression(target_of(rises_by_response, 1, 0, y, scale=3.0)) is not None) is (
        grows
    )


def test_rows_that_were_not_looked_at_may_outweigh_those_that_were():
    y = np.ones(2 * ROWS)
    looked_at = np.linspace(0, len(y) - 1, ROWS).astype(int)
    left_out = np.setdiff1d(np.arange(len(y)), looked_at)
    assert growth_of_regression(target_of(rises_by_response, 1, 0, y)) is not None
    y[left_out[0]] = -1e6
    assert growth_of_regression(target_of(rises_by_response, 1, 0, y)) is None
