"""Chains on all rows, where one step does not suit the whole posterior."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scenes import make_scene
from support import probe

from skbayes_sg.custom import CustomDensity
from skbayes_sg.dynamics import HMC
from skbayes_sg.engine import metropolis, run
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.priors import Normal
from skbayes_sg.recipe import divergences, full_data
from skbayes_sg.recipe.request import Request
from skbayes_sg.schedules import Constant

PRIORS = {"a": Normal(scale=3.0), "b": Normal(scale=1.0)}


def curved(theta, row):
    return -0.5 * (row[0] - theta[0] - theta[1] ** 2) ** 2


def rows_of(seed):
    rng = np.random.default_rng(seed)
    return 1.0 + rng.normal(size=(int(rng.integers(20, 60)), 1))


def exact_law(y):
    """Mean, standard deviation, and 1 % and 5 % quantiles of a, by quadrature."""
    a, b = np.linspace(-9.0, 3.0, 3000), np.linspace(-3.6, 3.6, 2401)
    r = a[:, None] + b**2
    log_p = -0.5 * (len(y) * r**2 - 2.0 * y.sum() * r) - a[:, None] ** 2 / 18.0 - b**2 / 2.0
    p = np.exp(log_p - log_p.max()).sum(axis=1)
    p /= p.sum()
    mean = p @ a
    quantiles = np.interp([0.01, 0.05], np.cumsum(p), a)
    return mean, np.sqrt(p @ (a - mean) ** 2), quantiles


def test_trajectories_diverge_that_lose_twenty_nats():
    state, rng = np.zeros((metropolis.N_STATE, 1)), np.random.Generator(np.random.SFC64(0))
    for proposed, diverges in [(4.0, 0), (24.9, 0), (25.1, 1), (np.inf, 1), (np.nan, 1)]:
        record = metropolis.new_record(1.0)
        record[metropolis.ENERGY] = 5.0
        probe._accept(state, record, proposed, rng)
        assert record[metropolis.DIVERGENT] == diverges


def test_steps_are_halved_as_long_as_trajectories_diverge(monkeypatch):
    kernels = probe.Probe(make_scene("logistic").frame(kind="hessian"), dynamics=HMC())
    (chain,) = run.new_chains(kernels.setup, np.zeros((1, kernels.dimension)), 0)
    tried = []

    def sample(setup, chains, *_, **__):
        tried.append(setup.first_step)
        chains[0].record[[metropolis.TRIED, metropolis.DIVERGENT]] = (
            1000.0,
            500.0 * setup.first_step,
        )
        return None, chains

    monkeypatch.setattr(full_data, "sample", sample)
    target = kernels.frame.target
    given = Request(step_size=Constant(1.0))
    short = Request(n_warmup=100)
    for request, wanted in [
        (short, []),
        (Request(), [1.0, 0.25, 0.0625, 1.0 / 64, 1.0 / 256]),
        (given, []),
    ]:
        tried.clear()
        chain.record = metropolis.new_record(1.0)
        chain.record[[metropolis.TRIED, metropolis.DIVERGENT]] = 1000.0, 500.0
        setup, _ = full_data._shortened(kernels.setup, target, [chain], request)
        assert np.allclose(tried, wanted)
        assert np.isclose(setup.first_step, (wanted or [1.0])[-1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, *(pytest.param(s, marks=pytest.mark.slow) for s in (4, 5))])
def test_thin_ends_of_a_ridge_are_sampled(seed):
    y = rows_of(seed)
    model = CustomDensity(curved, PRIORS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(y)
    mean, sd, quantiles = exact_law(y)
    draws = model.posterior_["a"].ravel()
    found = np.quantile(draws, [0.01, 0.05])
    # With at least 400 effective draws the errors are 0.05 sd, 0.04, 0.26 sd and 0.13 sd.
    assert abs(draws.mean() - mean) < 0.2 * sd
    assert abs(draws.std() / sd - 1.0) < 0.16
    assert (np.abs(found - quantiles) < np.array([0.8, 0.4]) * sd).all()
    assert model.diagnostics_.get("divergent", 0.0) < 0.002
    assert model.posterior_.check().trustworthy


@pytest.mark.slow
def test_divergences_are_judged_where_steps_are_not_halved(monkeypatch):
    monkeypatch.setattr(divergences, "HALVINGS", 0)
    y = rows_of(4)
    model = CustomDensity(curved, PRIORS, random_state=4)
    with pytest.warns(SamplerConvergenceWarning, match="divergences"):
        model.fit(y)
    assert model.posterior_["a"].std() < 0.9 * exact_law(y)[1]
    assert model.diagnostics_["divergent"] > 0.01  # five times the limit
    verdict = model.posterior_.check()
    assert "divergences" in [finding.name for finding in verdict.findings if not finding.is_note]


@pytest.mark.slow
def test_steps_that_are_given_stay():
    model = CustomDensity(curved, PRIORS, step_size=0.01, sampler="hmc", random_state=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows_of(4))
    assert model.step_size_ == 0.01


def test_further_runs_are_told_by_the_time_of_those_before(monkeypatch):
    """The second run, of 4 s, is told as 2 + 4 s, and the third one as 6 + 8."""
    clock, told = [0.0], []
    production = SimpleNamespace(seconds=1e-6, thin=1, setup=None)

    def run(*_):
        clock[0] += 2e6 * production.seconds
        return "draws", []

    production.run = run
    monkeypatch.setattr(full_data, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(full_data, "_should_halve", lambda *_: production.seconds < 4e-6)
    monkeypatch.setattr(full_data, "_with_half_steps", lambda *_: None)
    price = SimpleNamespace(tell=told.append)
    full_data._produce(production, [], Request(n_draws=1000), price, None)
    assert told == [6.0, 14.0]
