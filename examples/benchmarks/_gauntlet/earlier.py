"""Families of tables on which earlier versions failed, drawn anew for each seed.

They are run by their names (`gauntlet.py --families earlier`), ten seeds each, and are no part of
the random families.
"""

import numpy as np
from scipy.special import expit

from skbayes_sg.priors import Laplace, Normal, StudentT

from .families import LINEAR, LOGISTIC, POISSON, ROBUST, Case, levels, one_hot, pick


def levels_70_and_more(rng):
    n, L = 20_000, int(rng.integers(70, 120))
    X, estimator = one_hot(levels(rng, n, L, 0.0)), pick(rng, LOGISTIC, POISSON)
    y = rng.random(n) < 0.02 if estimator == LOGISTIC else rng.poisson(0.02, n)
    return Case(estimator, X, y.astype(int))


def thirteen_events(rng):
    n = 50_000
    X = np.c_[rng.integers(0, 5, n), rng.random(n) < 0.01].astype(float)
    y = rng.poisson(13 / n, n)
    y[0] = 1
    return Case(POISSON, X, y)


def repeated_rows_in_shards(rng):
    n = 20_000
    g = rng.integers(0, 4, n)
    y = rng.random(n) < 0.3 + 0.1 * (g == 2)
    rules = "consensus", "weierstrass", "nonparametric", "semiparametric", "parametric"
    options = {"n_subposteriors": 4, "combine": pick(rng, *rules)}
    return Case(LOGISTIC, np.eye(4)[g][:, 1:], y.astype(int), options=options)


def clustered_outliers(rng):
    x = rng.normal(size=30)
    y = 2.0 * x + 1.0 + 0.02 * rng.normal(size=30)
    y[:12] = 50.0 + 0.5 * rng.normal(size=12)
    return Case(ROBUST, x[:, None], y)


def heavy_tight_priors(rng):
    x = rng.normal(size=10)
    y = 10.0 * x + 0.1 * rng.normal(size=10)
    prior = pick(rng, StudentT(df=3, scale=1e-3), Laplace(scale=0.25))
    return Case(LINEAR, x[:, None], y, options={"prior": prior, "fit_intercept": False})


def units_of_1e10(rng):
    X = rng.normal(size=(200, 2))
    return Case(ROBUST, X, 1e10 * (X[:, 0] + rng.standard_t(2, 200)))


def prices_in_dollars_by_city(rng):
    """All levels of a column, whose sum is the intercept, and a response of 1e5."""
    city = levels(rng, 300, 4)
    y = 6e4 * (city == 0) + 4e4 * rng.standard_t(3, 300)
    estimator = pick(rng, ROBUST, LINEAR)
    options = {} if estimator == ROBUST else {"prior": Laplace(scale=1e5)}
    return Case(estimator, np.c_[rng.normal(size=300), one_hot(city)], y, options=options)


def one_class_levels_under_cauchy(rng):
    g = levels(rng, 400, 12)
    y = (rng.random(400) < expit(rng.normal(size=12))[g]) & (g > 2)
    y[g == 3] = True
    options = {"prior": StudentT(df=1, scale=1.0), "fit_intercept": False}
    return Case(LOGISTIC, one_hot(g), y.astype(int), options=options)


def rare_levels_under_wide_prior(rng):
    n, L = 3500, 60
    g = levels(rng, n, L, 1.2)
    y = rng.random(n) < expit(np.log(1 / 9) + 2.0 * rng.normal(size=L))[g]
    options = {"prior": Normal(scale=10.0), "fit_intercept": False}
    return Case(LOGISTIC, one_hot(g), y.astype(int), options=options)


def separable_under_student(rng):
    x = np.round(rng.normal(size=60), 1)
    x = x[x != 0.0]
    options = {"prior": StudentT(df=4), "fit_intercept": False}
    return Case(LOGISTIC, x[:, None], (x > 0).astype(int), options=options)


def correlated_under_cauchy(rng):
    z = rng.normal(size=300)
    X = z[:, None] + 0.1 * rng.normal(size=(300, 2))
    options = {"prior": StudentT(df=1, scale=0.01), "fit_intercept": False}
    return Case(LOGISTIC, X, (rng.random(300) < expit(2.0 * z)).astype(int), options=options)


def far_from_zero(rng):
    n = 20_000
    X = np.c_[rng.integers(0, 5, n), rng.random(n) < 0.01].astype(float)
    y = rng.random(n) < expit(-1.0 + 0.4 * X[:, 0] + 2.0 * X[:, 1])
    options = {"intercept_prior": Normal(scale=1e12)}
    return Case(LOGISTIC, X + 10.0 ** rng.integers(6, 9), y.astype(int), options=options)


def constant_response(rng):
    X = rng.normal(size=(20, 25))
    return Case(LINEAR, X, np.full(20, float(rng.integers(0, 2))))


def options_for_few_rows(rng):
    X = rng.normal(size=(900, 4))
    y = (rng.random(900) < expit(X @ [1.0, -1.0, 0.5, 0.0])).astype(int)
    gradients = "minibatch", "control_variate", "taylor", "saga", "svrg"
    schemes = "uniform_without_replacement", "blocks", "preferential", "adaptive"
    option = pick(rng, ("gradient", gradients), ("subsampling", schemes))
    return Case(LOGISTIC, X, y, options={option[0]: pick(rng, *option[1])})


def text_with_1000_words(rng):
    n, p = 1684, 1000
    X = (rng.random((n, p)) < 30.0 / p) * rng.lognormal(size=(n, p))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    eta = X @ (5.0 * rng.normal(size=p))
    return Case(LOGISTIC, X, (eta + rng.logistic(size=n) > 0).astype(int), seconds=60.0)


def ten_classes_of_images(rng):
    n, d, K = 1797, 64, 10
    centres, y = rng.uniform(0.0, 16.0, (K, d)), rng.integers(0, K, n)
    X = np.clip(np.round(centres[y] + 5.0 * rng.normal(size=(n, d))), 0.0, 16.0)
    return Case(LOGISTIC, X, y, seconds=60.0)


def seven_classes_of_8000(rng):
    n, d, K = 8000, 50, 7
    X = np.c_[rng.normal(size=(n, 10)), one_hot(levels(rng, n, d - 10))]
    eta = X @ (0.7 * rng.normal(size=(d, K))) + rng.gumbel(size=(n, K))
    return Case(LOGISTIC, X, eta.argmax(axis=1), seconds=75.0)


EARLIER = {
    made.__name__: made
    for made in [
        levels_70_and_more, thirteen_events, repeated_rows_in_shards, clustered_outliers,
        heavy_tight_priors, units_of_1e10, prices_in_dollars_by_city,
        one_class_levels_under_cauchy, rare_levels_under_wide_prior, separable_under_student,
        correlated_under_cauchy, far_from_zero, constant_response, options_for_few_rows,
        text_with_1000_words,
        ten_classes_of_images, seven_classes_of_8000,
    ]
}  # fmt: skip
