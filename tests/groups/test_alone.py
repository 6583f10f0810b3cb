"""Rows whose level has no other row: integrals by quadrature, and what `loo` makes of them."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import log_expit, logsumexp

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.exceptions import ParetoKWarning
from skbayes_sg.groups.alone import Alone
from skbayes_sg.model_selection import loo

MEANS = np.array([-0.3, 0.5])


def integrated(log_p, tau, drawn):
    """log p(y | φ) by the rule, (n_means, n_draws), from draws (n_means, n_draws) of η + u."""
    mean = np.repeat(MEANS, drawn.shape[1])[None]
    own = Alone(mean, np.full(mean.shape, tau**2))
    found = own.log_likelihood(lambda t, _: log_p(t[..., 0]), drawn.reshape(1, -1, 1))
    return found.reshape(drawn.shape)


@pytest.mark.parametrize("tau", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("sigma", [1e-7, 0.2, 50.0])
def test_normal_likelihoods_have_their_closed_form(sigma, tau):
    y, rng = 2.0, np.random.default_rng(0)
    precision = 1 / tau**2 + 1 / sigma**2
    centre = (MEANS / tau**2 + y / sigma**2) / precision
    drawn = centre[:, None] + rng.normal(size=(2, 100)) / np.sqrt(precision)
    found = integrated(lambda t: stats.norm.logpdf(y, t, sigma), tau, drawn)
    wanted = stats.norm.logpdf(y, MEANS, np.hypot(tau, sigma))
    np.testing.assert_allclose(found, np.repeat(wanted[:, None], 100, axis=1), rtol=1e-5)


LIKELIHOODS = {
    "logistic": log_expit,
    "no event": lambda t: -np.exp(t),
    "three events": lambda t: stats.poisson.logpmf(3, np.exp(t)),
    "many events": lambda t: stats.poisson.logpmf(20_000, np.exp(t)),
    "dispersed": lambda t: stats.nbinom.logpmf(5, 2.0, 1 / (1 + np.exp(t) / 2.0)),
    "flat": np.zeros_like,
}


@pytest.mark.slow_except("1.0-0.0001")
@pytest.mark.parametrize(("tau", "atol"), [(1.0, 1e-4), (3.0, 1e-3), (10.0, 0.1)])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_integrals_are_those_of_a_fine_grid(name, tau, atol):
    log_p, rng, wanted, drawn = LIKELIHOODS[name], np.random.default_rng(1), [], []
    for mean in MEANS:
        grid = mean + tau * np.linspace(-12.0, 12.0, 500_001)
        with np.errstate(over="ignore", divide="ignore"):
            joint = log_p(grid) + stats.norm.logpdf(grid, mean, tau)
        wanted.append(logsumexp(joint) + np.log(grid[1] - grid[0]))
        share = np.exp(joint - logsumexp(joint))
        drawn.append(rng.choice(grid, 100, p=share / share.sum()))
    found = integrated(log_p, tau, np.array(drawn))
    np.testing.assert_allclose(found, np.repeat(np.array(wanted)[:, None], 100, 1), atol=atol)


def table(seed, n=60, n_alone=30):
    """Rows of which half have a level of their own, and predictors with effects of N(0, 1)."""
    rng = np.random.default_rng(seed)
    level = np.r_[np.arange(n_alone), n_alone + rng.integers(0, 5, n - n_alone)]
    X = pd.DataFrame({"x": rng.normal(size=n), "store": level})
    return X, 0.5 + 0.7 * X["x"] + rng.normal(size=n_alone + 5)[level], rng


def test_linear_regression_is_the_closed_form():
    X, eta, rng = table(0)
    y = eta + 0.3 * rng.normal(size=len(X))
    model = BayesianLinearRegression(group_effects=["store"], n_draws=1000, random_state=0)
    model.fit(X, y)
    found = model._of_likelihoods(X, y, lambda rows, values: values, of_fit=True)
    names = "coef", "intercept", "noise_std", "group_std"
    coef, intercept, noise, tau = (model.posterior_[name].ravel() for name in names)
    mean = coef * X["x"].to_numpy()[:, None] + intercept
    wanted = stats.norm.logpdf(y.to_numpy()[:, None], mean, np.hypot(noise, tau))
    np.testing.assert_allclose(found[:30], wanted[:30], atol=1e-4)
    as_drawn = model._of_likelihoods(X, y, lambda rows, values: values)
    np.testing.assert_array_equal(found[30:], as_drawn[30:])


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(BayesianPoissonRegressor, id="counts"),
        pytest.param(BayesianLogisticRegression, id="classes", marks=pytest.mark.slow),
    ],
)
def test_estimates_are_those_of_fits_without_the_row(estimator):
    X, eta, rng = table(1)
    is_count = estimator is BayesianPoissonRegressor
    y = rng.poisson(np.exp(eta)) if is_count else 1 * (eta.to_numpy() > rng.logistic(size=60))
    settings = {"group_effects": ["store"], "group_slopes": {"store": ["x"]}, "random_state": 0}
    found = loo(estimator(**settings).fit(X, y), X, y)
    assert (found.pareto_k[:30] < 0.7).all()
    chosen = [int(np.argmin(found.elpd_i[:30])), 0, 1]
    for i in chosen:
        kept = np.arange(len(X)) != i
        other = estimator(**settings).fit(X[kept], y[kept])
        wanted = loo_of_refit(other, X[~kept], y[~kept])
        assert found.elpd_i[i] == pytest.approx(wanted, abs=0.08)


def loo_of_refit(other, X, y):
    if isinstance(other, BayesianLogisticRegression):
        return np.log(other.predict_proba(X)[0, int(y[0])])
    return other.predict_log_density(X, y)[0]


@pytest.mark.slow
def test_importance_weights_of_drawn_effects_would_fail():
    """What the integrals are for: five times the error that is allowed above, and k above 0.7."""
    X, eta, rng = table(2)
    y = rng.poisson(np.exp(eta + 2.0))
    model = BayesianPoissonRegressor(group_effects=["store"], random_state=0).fit(X, y)
    found = loo(model, X, y)
    assert (found.pareto_k[:30] < 0.5).all()
    model._has_one_peak = False
    with pytest.warns(ParetoKWarning):
        before = loo(model, X, y)
    assert np.mean(before.pareto_k[:30] > 0.7) > 0.5
    assert found.elpd_i[:30].sum() < before.elpd_i[:30].sum() - 5.0
    np.testing.assert_array_equal(found.elpd_i[30:], before.elpd_i[30:])


@pytest.mark.slow
def test_rows_that_are_not_alone_or_have_two_peaks_are_as_drawn():
    X, eta, rng = table(3)
    y = eta + 0.3 * rng.normal(size=len(X))
    weight = np.where(np.arange(len(X)) < 10, 2.0, 1.0)
    settings = {"group_effects": ["store"], "n_draws": 200, "random_state": 0}
    model = BayesianLinearRegression(**settings).fit(X, y, sample_weight=weight)
    robust = BayesianRobustRegression(**settings).fit(X, y)
    for fitted, first, last in ((model, 0, 10), (robust, 0, 60)):
        values = [
            fitted._of_likelihoods(X, y, lambda rows, values: values, of_fit=of_fit)
            for of_fit in (False, True)
        ]
        np.testing.assert_array_equal(values[0][first:last], values[1][first:last])
        assert (values[0][last:30] != values[1][last:30]).all()
