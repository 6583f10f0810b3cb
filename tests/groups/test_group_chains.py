"""Chains of group effects, against quadrature."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from collapsed_state import At
from group_tables import log_likelihood, problem_of, quadrature

from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.diagnostics import check_draws, convergence
from skbayes_sg.diagnostics.verdict import disagree
from skbayes_sg.exceptions import LongRunWarning, SamplerConvergenceWarning
from skbayes_sg.groups import chains, collapsed_hmc
from skbayes_sg.groups.chains import (
    VISIT_SECONDS,
    GroupChain,
    GroupSampler,
    _seconds_of_sweep,
    run_chains,
)
from skbayes_sg.groups.chains import judged as judged_as_in_fits
from skbayes_sg.groups.collapsed_hmc import CollapsedHMC
from skbayes_sg.groups.linear_crossed import CrossedGibbs
from skbayes_sg.groups.linear_exact import run_exact
from skbayes_sg.groups.linear_slopes import run_slopes
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import Linear, LinearKnownNoise, Logistic, NegativeBinomial, Poisson
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.request import Request


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


def judged(values, mean, sd):
    """How many standard errors the means of values and of their squares are off."""
    found = []
    for f, wanted in ((lambda x: x, mean), (lambda x: np.square(x - mean), sd**2)):
        z = f(values)
        error = z.std() / np.sqrt(convergence.ess_mean(z[..., None])[0])
        found.append((z.mean() - wanted) / error)
    return np.abs(found)


class Sluggish(GroupSampler):
    """A sampler whose θ is autoregressive."""

    name, passes, rho = "sluggish", 1, 0.95

    @classmethod
    def of(cls, problem):
        cls.size = problem.target.n_parameters
        return cls()

    def new_chain(self, seed, number):
        rng = np.random.default_rng([seed, number])
        theta, effects = rng.standard_normal(self.size), np.zeros((3, 1))
        return GroupChain(number, theta, [np.zeros(1)], [effects], rng, average=np.zeros(1))

    def begin(self, chain):
        pass

    def recentred(self, chains):
        return self

    def sweep(self, chain, adapts):
        noise = np.sqrt(1.0 - self.rho**2) * chain.rng.standard_normal(self.size)
        chain.theta = self.rho * chain.theta + noise
        chain.psi, chain.u = [chain.theta[:1]], [chain.theta[:3, None]]


@pytest.mark.slow
def test_chains_that_mix_slowly_are_thinned():
    """With ρ = 0.95 one sweep in 39 is effective; of every eighth, one in five."""
    problem = problem_of(Logistic, n=30, d=2, sizes=(3,))
    found = run_chains(problem, Request(seed=0, n_draws=1000, n_chains=4), Sluggish)
    total = found.draws.shape[0] * found.draws.shape[1]
    assert found.thin == 8
    assert found.draws.shape[1] == 1000
    assert found.diagnostics["min_ess"] > 0.1 * total
    np.testing.assert_allclose(found.effects[0][0], found.draws[..., 0], atol=1e-6)
    np.testing.assert_allclose(found.moments[0][0, 0], found.draws[..., 0].mean())
    with pytest.warns(SamplerConvergenceWarning, match="have not converged"):
        found = run_chains(problem, Request(seed=0, n_draws=1000, n_chains=4, thin=1), Sluggish)
    assert found.thin == 1


@pytest.mark.parametrize("slow", [False, True])
def test_a_fit_warns_of_what_check_finds(slow):
    """Values that are nearly independent, and squares that are not."""
    rng = np.random.default_rng(0)
    log_sd, noise = np.zeros((4, 4000)), rng.standard_normal((2, 4, 4000))
    for t in range(1, 4000):
        log_sd[:, t] = 0.97 * log_sd[:, t - 1] + 0.3 * noise[0, :, t]
    draws = (np.exp(log_sd * slow) * noise[1])[..., None]
    assert not disagree(*np.array(convergence.worst(draws))[[2, 0]], 16_000)  # not by values alone
    assert bool(check_draws(draws)) != slow
    with pytest.warns(SamplerConvergenceWarning) if slow else nullcontext():
        judged_as_in_fits(draws, Request(names=["x"]))


CASES = [
    pytest.param(Logistic, 0.7, 60, 12, id="logistic"),
    pytest.param(Poisson, 0.7, 60, 12, id="poisson", marks=pytest.mark.slow),
    pytest.param(Logistic, 0.0, 60, 12, id="no effect", marks=pytest.mark.slow),
    pytest.param(Logistic, 2.0, 40, 30, id="levels of a row or two", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "tau", "n", "n_levels"), CASES)
def test_intercept_and_scale_are_those_of_quadrature(kind, tau, n, n_levels):
    problem = problem_of(
        kind, n, 0, (n_levels,), tau=tau, weight=np.ones(n), intercept=Normal(scale=2.5)
    )
    mean, sd = quadrature(problem, kind)
    found = run_chains(problem, Request(seed=0, n_draws=3000, n_chains=2), CollapsedHMC)
    for draws, m, s in zip(
        (found.draws[..., 0], np.exp(found.draws[..., 1])), mean, sd, strict=True
    ):
        assert (judged(draws, m, s) < 4.5).all()
        assert (judged(draws, m + 0.2 * s, s) > 4.5).any()  # a planted bias
        assert (judged(draws, m, 1.25 * s) > 4.5).any()  # a planted width


@pytest.mark.parametrize(
    "slopes",
    [pytest.param([[]], id="none"), pytest.param([[1]], id="a slope", marks=pytest.mark.slow)],
)
def test_chains_agree_with_other_samplers_of_linear_regression(slopes):
    problem = problem_of(Linear, n=80, sizes=(10,), intercept=Normal(scale=2.5), slopes=slopes)
    other = run_slopes if slopes[0] else run_exact
    exact = other(problem, Request(seed=0, n_draws=3000, n_chains=2))
    found = run_chains(problem, Request(seed=1, n_draws=1500, n_chains=2), CollapsedHMC)
    for j in range(found.draws.shape[2]):
        wanted = exact.draws[..., j]
        assert (judged(found.draws[..., j], wanted.mean(), wanted.std()) < 4.5).all()
    first, second = found.moments[0], exact.moments[0]
    assert (np.abs(first[0] - second[0]) < 5.0 * second[1] / np.sqrt(1000)).all()
    np.testing.assert_allclose(first[1], second[1], rtol=0.1)
    if slopes[0]:
        spread = np.square(found.factors[0]).sum(axis=2)  # of effect and slope: the scales
        draws = found.draws.reshape(3000, -1)
        np.testing.assert_allclose(np.log(spread) / 2.0, draws[:, -3:-1], atol=1e-9)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(Linear, id="noise unknown", marks=pytest.mark.slow),
        pytest.param(LinearKnownNoise, id="noise known"),
    ],
)
def test_gibbs_sampling_of_crossed_factors_has_the_law_of_other_chains(kind):
    """Also with one factor alone, where draws are independent."""
    options = {"intercept": Normal(loc=1.0, scale=2.5), "offset": 3.0}
    for sizes in ((10,), (9, 6)):
        problem = problem_of(kind, n=70, sizes=sizes, **options)
        request = Request(seed=0, n_draws=800, n_chains=2)
        if len(sizes) == 1:
            exact = run_exact(problem, request)
        else:
            exact = run_chains(problem, request, CollapsedHMC)
        found = run_chains(problem, Request(seed=1, n_draws=800, n_chains=2), CrossedGibbs)
        for j in range(found.draws.shape[2]):
            own, other = found.draws[..., j], exact.draws[..., j]
            for values in ((own, other), np.square((own, other) - other.mean())):
                errors = [v.std() / np.sqrt(convergence.ess_mean(v[..., None])[0]) for v in values]
                assert abs(values[0].mean() - values[1].mean()) < 4.5 * np.hypot(*errors)
        for k in range(len(sizes)):
            first, second = found.moments[k], exact.moments[k]
            assert (np.abs(first[0] - second[0]) < 6.0 * second[1] / np.sqrt(1000)).all()
            np.testing.assert_allclose(first[1], second[1], rtol=0.15)


def test_one_step_of_effects_leaves_their_law():
    """Many copies of a level, begun in the law on a grid, are in that law after a step."""
    L = 40_000
    problem = problem_of(Logistic, n=3, d=0, sizes=(3,), weight=np.ones(3), intercept=Normal())
    target = problem.target.take(np.zeros(L, int), np.full(L, 2.0))
    problem.target, problem.codes, problem.sizes = target, np.arange(L)[:, None], (L,)
    log_tau = 0.3
    y = target.data.facts[0, FACT_Y]
    u = np.linspace(-12.0, 12.0, 4001)
    p = np.exp(2.0 * log_likelihood(Logistic, 0.4 + u, y) - 0.5 * u**2 * np.exp(-2.0 * log_tau))
    p /= p.sum()
    start = np.interp((np.arange(L) + 0.5) / L, np.cumsum(p), u)[:, None]
    at = At(problem, u=[start], reference=[np.full((L, 1), 0.3)])
    at.x = np.array([0.4, log_tau])
    after, share, loss = at.moved()
    assert 0.5 < share < 1.0
    assert np.isclose(loss, -2.0 * log_likelihood(Logistic, 0.4 + after, y).sum())
    mean = p @ u
    for f in (lambda x: x, lambda x: (x - mean) ** 2, lambda x: (x - mean) ** 3):
        error = np.sqrt(p @ np.square(f(u)) / L)
        assert abs(f(after).mean() - p @ f(u)) < 4.0 * error


def test_the_price_of_few_rows_is_that_of_their_visits():
    problem = problem_of(Poisson, 40, sizes=(6, 5))
    seconds = _seconds_of_sweep(problem, Request(n_chains=3), 3.0)
    assert 1.0 < seconds / (VISIT_SECONDS * 2 * 3) < 1.2


@pytest.mark.slow
def test_a_price_that_is_measured_is_told_and_changes_no_draw(monkeypatch):
    """As where the machine is much slower than predicted."""
    problem, request = (
        problem_of(Poisson, 40, sizes=(6, 5)),
        Request(seed=3, n_draws=40, n_chains=2),
    )
    own = run_chains(problem, request, CollapsedHMC)
    ticks = iter(range(0, 1000, 7))
    monkeypatch.setattr(chains, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    with pytest.warns(LongRunWarning, match="Sampling 11 group effects from 40 rows is predicted"):
        slow = run_chains(problem, request, CollapsedHMC)
    np.testing.assert_array_equal(own.draws, slow.draws)


@pytest.mark.slow
def test_the_price_of_more_sweeps_is_told_again(monkeypatch):
    """Where draws are made anew with more sweeps, and those before took very long."""
    problem, request = (
        problem_of(Poisson, 40, sizes=(6, 5)),
        Request(seed=3, n_draws=40, n_chains=2),
    )
    monkeypatch.setattr(chains, "_measured", lambda *args: 0.0)
    more = iter([2, 1])
    monkeypatch.setattr(chains, "_more", lambda *args: next(more))
    ticks = iter(range(0, 1000, 40))
    monkeypatch.setattr(chains, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    with pytest.warns(LongRunWarning, match=r"is predicted to take 1\.3 minutes"):
        assert run_chains(problem, request, CollapsedHMC).thin == 2


@pytest.mark.parametrize(
    ("rho", "most", "more"),
    [(0.5, 8.0, 1), (0.85, 8.0, 2), (0.93, 8.0, 4), (0.98, 8.0, 8), (0.98, 3.0, 2), (0.98, 1.5, 1)],
)
def test_how_many_more_sweeps_are_needed(rho, most, more):
    """One draw in (1 + ρ)/(1 - ρ) is effective, and one in ten should be."""
    draws = np.random.default_rng(0).standard_normal((4, 4000, 1))
    for t in range(1, 4000):
        draws[:, t] = rho * draws[:, t - 1] + np.sqrt(1.0 - rho**2) * draws[:, t]
    fine = np.random.default_rng(1).standard_normal((1, 4, 4000))
    assert chains._more(draws, [fine], Request(names=["x"]), most) == more
    other = draws.transpose(2, 0, 1)
    assert chains._more(fine.transpose(1, 2, 0), [other], Request(names=["x"]), most) == more


@pytest.mark.parametrize("at_once", [1, 40, 1 << 18])
@pytest.mark.parametrize("kind", [Logistic, NegativeBinomial])
def test_sweeps_that_are_made_at_once_are_those_made_one_by_one(kind, at_once, monkeypatch):
    problem = problem_of(kind, sizes=(7,), slopes=[[1]])
    request = Request(seed=0, n_draws=60, n_chains=2, n_warmup=60, thin=2)
    monkeypatch.setattr(collapsed_hmc, "AT_ONCE", at_once)
    found = run_chains(problem, request, CollapsedHMC)
    monkeypatch.setattr(CollapsedHMC, "sweeps", GroupSampler.sweeps)
    expected = run_chains(problem, request, CollapsedHMC)
    np.testing.assert_allclose(found.draws, expected.draws, rtol=1e-9)
    np.testing.assert_allclose(found.moments[0], expected.moments[0], rtol=1e-9)
    np.testing.assert_array_equal(found.effects[0], expected.effects[0])
    assert found.diagnostics == pytest.approx(expected.diagnostics, nan_ok=True)
    assert found.step_size == pytest.approx(expected.step_size)
