"""Independent draws of row densities: against quadrature, and with a wrong proposal."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from skbayes_sg import BayesianICA
from skbayes_sg.densities import independent, modes
from skbayes_sg.densities.density import density_target
from skbayes_sg.densities.fit import sample_density
from skbayes_sg.densities.ica import LogisticSources
from skbayes_sg.diagnostics import convergence
from skbayes_sg.dynamics import HMC, Importance
from skbayes_sg.exceptions import LongRunWarning, UnusedParameterWarning
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.request import Request

DRAWS = 4000


def rows(n):
    return np.random.default_rng(n).logistic(size=(n, 1))


def sampled(x, **options):
    """The `Outcome` for one source, logistic with the unknown unit 1/w, under w ~ N(0, 1)."""
    target = density_target(LogisticSources(1), x, np.ones(len(x)), Normal()._table((1,)))
    request = Request(n_draws=DRAWS // 4, seed=0, **options)
    return sample_density(target, np.ones((1, 1)), request, independent=True)[0]


def law(x):
    """Mean, standard deviation and 5 % quantile of w > 0, on a grid."""
    w = np.linspace(1e-3, 4.0, 8001)[:, None]
    log_p = len(x) * np.log(w[:, 0]) - 0.5 * w[:, 0] ** 2
    log_p -= 2.0 * np.logaddexp(0.5 * w * x.T, -0.5 * w * x.T).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ w[:, 0]
    return mean, np.sqrt(p @ (w[:, 0] - mean) ** 2), w[np.searchsorted(np.cumsum(p), 0.05), 0]


def assert_right(draws, x):
    """Mean, sd and 5 % quantile within five standard errors, for 2000 effective draws at least."""
    mean, sd, low = law(x)
    assert abs(draws.mean() - mean) < 5.0 * sd / np.sqrt(2000.0)
    assert abs(draws.std() / sd - 1.0) < 5.0 / np.sqrt(2.0 * 2000.0)
    density = 0.103  # of a standard normal law at its 5 % quantile
    error = np.sqrt(0.05 * 0.95 / 2000.0) / density
    assert abs(np.quantile(draws, 0.05) - low) < 5.0 * error * sd


@pytest.mark.parametrize("n", [5, 20, 200, 3000])
def test_one_parameter_against_quadrature(n):
    x = rows(n)
    outcome = sampled(x, sampler=Importance())
    assert isinstance(outcome.chosen["sampler"], Importance)
    assert outcome.diagnostics["pareto_k"] < 0.7
    assert_right(outcome.draws, x)


@pytest.mark.parametrize("factor", [0.4, 0.75, 1.6], ids=["narrow", "less", "wide"])
def test_a_wrong_width_costs_efficiency_only(monkeypatch, factor):
    """With 0.4 times the width the weights fail, and chains in lockstep take their place."""
    right, x = modes.frame_around, rows(200)

    def wrong(*args):
        frame = right(*args)
        return replace(frame, F=factor * frame.F)

    monkeypatch.setattr(modes, "frame_around", wrong)
    outcome = sampled(x, sampler=Importance())
    assert ("lockstep_epsilon" in outcome.diagnostics) == (factor == 0.4)
    assert ("independent" in outcome.evidence) == (factor != 0.4)
    assert outcome.diagnostics["min_ess"] < 0.95 * DRAWS
    assert_right(outcome.draws, x)


def test_chains_are_preferred_where_weights_are_poor_and_chains_take_little_time():
    """Five rows: the weights have a heavy tail, and chains take a few milliseconds."""
    outcome = sampled(rows(5))
    assert isinstance(outcome.chosen["sampler"], HMC)
    assert "weighing" in outcome.seconds
    assert isinstance(sampled(rows(3000)).chosen["sampler"], Importance)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.laplace(size=(3000, 2)) @ np.array([[1.0, 0.3], [0.5, 1.0]])


def test_what_is_asked_for_is_obeyed(X):
    options = {"n_draws": 100, "n_chains": 2, "random_state": 0}
    auto = BayesianICA(**options).fit(X)
    assert auto.sampler_ == "importance"
    assert (auto.n_warmup_, auto.thin_, auto.batch_size_) == (0, 1, 3000)
    assert str(auto.posterior_.check()).splitlines()[0] == "trustworthy"
    for asked in ({"sampler": "importance"}, {"sampler": Importance()}, {"n_jobs": 2}):
        named = BayesianICA(**options | asked).fit(X)
        assert np.array_equal(named.posterior_.flat, auto.posterior_.flat)
    with pytest.warns(UnusedParameterWarning, match="n_warmup=7 has no effect"):
        BayesianICA(sampler="importance", n_warmup=7, **options).fit(X)
    for other in ({"n_warmup": 20}, {"thin": 1}, {"preconditioner": "diagonal"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert BayesianICA(**options | other).fit(X).sampler_ == "hmc"
    for other in ({"gradient": "svrg"}, {"batch_size": 10}, {"step_size": 0.1}):
        with pytest.raises(ValueError, match="independent draws take no steps"):
            BayesianICA(sampler="importance", **options | other).fit(X)


def test_long_weighing_is_told(X, monkeypatch):
    monkeypatch.setattr(independent, "TOLD_SECONDS", 1e-9)
    with pytest.warns(LongRunWarning, match="Weighing 40 independent draws"):
        BayesianICA(n_draws=20, n_chains=2, random_state=0).fit(X)


@pytest.mark.parametrize("seed", range(3))
def test_few_independent_draws_are_no_chains_that_disagree(seed):
    """R-hat of ten draws was above its limit in ten of twelve tables; repeated draws count once."""
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(1500, 3)) @ rng.normal(size=(3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianICA(n_draws=10, random_state=0).fit(X)
    assert model.sampler_ == "importance"
    share = model.posterior_.evidence["resampled_share"][0]
    assert share < 1.0
    measured = convergence.worst_of_chains(model.posterior_.flat)[0]
    assert model.diagnostics_["min_ess"] == pytest.approx(share * measured)
