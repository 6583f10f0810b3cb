"""Estimates on posteriors that are far from Gaussian: times that fit them, or a refusal by name."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from skbayes_sg import BayesianLogisticRegression, BayesianRobustRegression
from skbayes_sg.exceptions import CouplingError, SamplerConvergenceWarning
from skbayes_sg.importance.certificate import Certificate
from skbayes_sg.importance.sample import CertifiedDraws
from skbayes_sg.multilevel import confirmation, method
from skbayes_sg.multilevel.adaptive_levels import PILOT
from skbayes_sg.multilevel.confirmation import Confirmation
from skbayes_sg.multilevel.integrand import Integrand
from skbayes_sg.priors import Normal, StudentT


def separated(seed=0, n=60):
    x = np.random.default_rng(seed).normal(size=n).round(1)
    x = x[x != 0.0]
    return x[:, None], x > 0.0


def moments(X, y, log_prior):
    """Posterior mean and standard deviation of one coefficient, by quadrature."""
    grid = np.linspace(-60.0, 120.0, 200_001)
    signed = np.where(y, X[:, 0], -X[:, 0])
    log_p = log_prior(grid)
    for s in signed:
        log_p = log_p - np.logaddexp(0.0, -s * grid)
    p = np.exp(log_p - log_p.max())
    mean = p @ grid / p.sum()
    return mean, np.sqrt(p @ (grid - mean) ** 2 / p.sum())


def coefficient(p):
    return p["coef"][..., 0, 0]


def estimates(prior, X, y, atol, seeds):
    model = BayesianLogisticRegression(prior=prior, fit_intercept=False, n_draws=50, random_state=0)
    model.fit(X, y)
    for seed in seeds:
        model.set_params(random_state=seed)
        yield model.expect(coefficient, atol=atol, X=X, y=y)


def test_separable_classes_against_quadrature():
    X, y = separated()
    mean, sd = moments(X, y, stats.norm(scale=5.0).logpdf)
    assert sd > 2.5
    found = [e.value for e in estimates(Normal(scale=5.0), X, y, 0.05 * sd, range(4))]
    assert np.abs(np.array(found) - mean).max() < 4 * 0.05 * sd
    assert abs(np.mean(found) - mean) < 3 * 0.05 * sd / np.sqrt(len(found))


def planted(monkeypatch, **changes):
    """What independent draws tell, with changes."""
    X, y = separated()
    theta = np.random.default_rng(0).normal(8.0, 3.0, (1000, 1))
    known = {"theta": theta, "ess": 900.0, "slowness": 1.0} | changes
    monkeypatch.setattr(method, "confirming", lambda *_: Confirmation(**known))
    return list(estimates(Normal(scale=5.0), X, y, 0.3, [0]))


@pytest.mark.slow
def test_times_follow_the_width(monkeypatch):
    asked, original = [], method.Hierarchy

    def recorded(h0, shift, kept, stride, *others):
        asked.append((h0 * shift, h0 * stride * (kept - 1)))
        return original(h0, shift, kept, stride, *others)

    monkeypatch.setattr(method, "Hierarchy", recorded)
    monkeypatch.setattr(Confirmation, "check", lambda *_: None)
    planted(monkeypatch)
    planted(monkeypatch, slowness=3.0)
    assert asked[0] == pytest.approx((6.0, 16.0))
    assert asked[-1] == pytest.approx((18.0, 48.0))


def test_an_estimate_must_be_the_mean_of_the_draws(monkeypatch):
    with pytest.raises(CouplingError, match=r"is not the mean 1\d\.\d+ .* posterior_\.expectation"):
        planted(monkeypatch, theta=np.random.default_rng(0).normal(15.0, 3.0, (1000, 1)))


@pytest.mark.slow
def test_tails_that_no_path_forgets_are_refused():
    X, y = separated()
    with pytest.raises(CouplingError, match=r"far from Gaussian: .* posterior_\.expectation"):
        list(estimates(StudentT(df=4), X, y, 0.4, [0]))


@pytest.mark.slow
def test_two_modes_are_refused():
    rng = np.random.default_rng(3)
    x = rng.normal(size=40)
    rng.normal(size=40)
    y = 3.0 * x + 0.05 * rng.normal(size=40)
    y[:18] = 30.0 + rng.normal(size=18)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianRobustRegression(n_draws=50, random_state=0).fit(x[:, None], y)
    assert model.diagnostics_["n_modes"] > 1
    with pytest.raises(CouplingError, match=r"2 modes or more.*posterior_\.expectation"):
        model.expect(lambda p: p["coef"], atol=0.05, X=x[:, None], y=y)


def test_the_mean_of_the_draws_decides():
    theta = np.random.default_rng(0).normal(size=(1000, 2))
    known, integrand = Confirmation(theta, 400.0, 1.0), Integrand(lambda t: t)
    sd = theta.std(axis=0) / 20.0

    def at(distance):
        value = theta.mean(axis=0) + distance * sd
        return SimpleNamespace(value=value, error=0.5 * sd)

    known.check(at(np.array([5.5, 0.0])), integrand)  # 5 sqrt(1 + 0.5²) = 5.59
    with pytest.raises(CouplingError, match="is not the mean"):
        known.check(at(np.array([0.0, -5.7])), integrand)


def test_a_nearly_gaussian_posterior_needs_no_draws(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = rng.random(20_000) < 0.5
    monkeypatch.setattr(confirmation, "weighed_draws", None)
    list(estimates(Normal(), X, y, 0.01, [0]))


@pytest.mark.slow
def test_chains_may_confirm_where_independent_draws_do_not_suffice():
    """Few rows of many columns, which separate the classes."""
    X = np.random.default_rng(0).normal(size=(40, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerConvergenceWarning)
        [found] = estimates(Normal(scale=5.0), X, X[:, 0] > 0.0, 1.0, [0])
    assert np.isfinite(found.value)


@pytest.mark.slow
def test_what_cannot_be_confirmed_is_said(monkeypatch):
    def unreliable(modes, proposals, n, rng, budget_of):
        assert budget_of(proposals[0]).most == confirmation.GRADIENTS
        weights = Certificate(1.2, 10.0, np.ones(n))
        return CertifiedDraws(np.zeros((n, 1)), weights, 0.0, 0, 10.0)

    monkeypatch.setattr(confirmation, "weighed_draws", unreliable)
    X, y = separated()
    with pytest.warns(SamplerConvergenceWarning, match=r"not be confirmed, .*Pareto k 1\.20"):
        list(estimates(StudentT(df=4), X, y, 0.5, [0]))


def test_probability_of_a_tail_that_few_paths_reach():
    """Levels of which all samples agree do not claim that there is no difference between steps."""
    x = np.random.default_rng(0).normal(size=200)
    X, y = x[:, None], np.arange(200) < 3
    mean, sd = moments(X, y, stats.norm.logpdf)
    grid = np.linspace(-3.0, 3.0, 20_001)
    log_p = (y * x * grid[:, None] - np.logaddexp(0.0, x * grid[:, None])).sum(axis=1)
    p = np.exp(log_p - log_p.max() - 0.5 * grid**2)
    truth, atol = p[grid > mean + 3.0 * sd].sum() / p.sum(), 5e-4
    model = BayesianLogisticRegression(prior=Normal(scale=1.0), fit_intercept=False, random_state=0)
    model.fit(X, y)
    found = []
    for seed in range(8):
        model.set_params(random_state=seed)
        one = model.expect(lambda q: coefficient(q) > mean + 3.0 * sd, atol=atol, X=X, y=y)
        assert one.samples[1] > PILOT
        found.append(one.value)
    assert np.sqrt(np.mean((np.array(found) - truth) ** 2)) < 1.5 * atol


@pytest.mark.parametrize("truncation", ["adaptive", "randomised"])
def test_an_event_that_no_pilot_sample_sees_is_not_impossible(truncation):
    """Of a probability of 0.002 the 32 pilot samples of level 0 often see nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    X, y = x[:, None], rng.random(200) < 1.0 / (1.0 + np.exp(-0.5 * x))
    mean, sd = moments(X, y, stats.norm.logpdf)
    model = BayesianLogisticRegression(prior=Normal(scale=1.0), fit_intercept=False, random_state=0)
    model.fit(X, y)
    for seed in (21, 24):
        way = method.MultilevelSGLD(truncation=truncation, random_state=seed)
        found = model.expect(
            lambda q: coefficient(q) > mean + 3.0 * sd, atol=1e-3, X=X, y=y, method=way
        )
        assert found.samples[0] > PILOT
        assert 0.0 < found.value < 0.006
