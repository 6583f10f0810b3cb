"""When independent draws give way to chains."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from problems import binary
from scipy import signal
from scipy.special import log_expit

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.diagnostics import convergence
from skbayes_sg.diagnostics.verdict import are_contradicted
from skbayes_sg.dynamics import Importance
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import LongRunWarning, SamplerConvergenceWarning
from skbayes_sg.importance import certificate
from skbayes_sg.importance.sample import CertifiedDraws, certified_draws
from skbayes_sg.models import Logistic, Poisson, Robust
from skbayes_sg.priors import HalfNormal, Laplace, Normal, StudentT
from skbayes_sg.recipe import independent
from skbayes_sg.recipe.request import Request


@pytest.fixture(autouse=True)
def _nothing_grows(request, monkeypatch):
    """Mixtures that grow would be preferred to most chains of these tests."""
    if "grow" not in request.node.name:
        monkeypatch.setattr(independent, "MOST_GROWN", 0)


@pytest.mark.parametrize(
    ("share", "seconds", "sampler", "kept"),
    [
        (0.3, 9.0, "auto", "independent"),
        (0.2, 9.0, "auto", "lockstep"),
        (0.2, 0.9, "auto", "hmc"),  # chains on all rows are cheap
        (0.2, 9.0, "importance", "independent"),
        (0.2, 11.0, "auto", "independent"),  # chains are dear
    ],
)
def test_few_effective_draws_give_way_to_bearable_chains(
    monkeypatch, share, seconds, sampler, kept
):
    assert kind_of(poor_fit(monkeypatch, share, seconds, sampler)) == kept


def test_chains_on_all_rows_follow_where_those_in_lockstep_fail(monkeypatch):
    monkeypatch.setattr(independent, "draws_of_chains", lambda *_: None)
    assert kind_of(poor_fit(monkeypatch, 0.2, 9.0, "auto")) == "hmc"
    found = SimpleNamespace(chains={"epsilon": 0.1}, holds=False, ess=5.0)
    monkeypatch.setattr(independent, "draws_of_chains", lambda *_: found)
    monkeypatch.setattr(independent, "with_ess_in_theta", lambda found, *_: found)
    assert kind_of(poor_fit(monkeypatch, 0.2, 9.0, "auto")) == "hmc"


def poor_fit(monkeypatch, share, seconds, sampler, d=3):
    """A fit whose independent draws are as effective as `share` says."""
    weighed = certified_draws

    def poor(modes, proposals, n_draws, rng, budget_of):
        found = weighed(proposals[0], n_draws, rng, budget_of)
        return replace(found, ess=share * n_draws)

    monkeypatch.setattr(independent, "weighed_draws", poor)
    monkeypatch.setattr(independent, "seconds_of_chains", lambda *_: seconds)
    model = BayesianLogisticRegression(n_draws=200, sampler=sampler, random_state=0)
    return model.fit(*binary(300, d))


def kind_of(model):
    """How the draws were made."""
    if model.sampler_ != "importance":
        return model.sampler_
    return "lockstep" if "lockstep_epsilon" in model.diagnostics_ else "independent"


@pytest.mark.parametrize(
    ("most", "share", "sampler", "grows"),
    [
        (3, 0.2, "auto", True),
        (3, 0.05, "importance", True),
        (2, 0.2, "auto", False),
        (3, 0.3, "auto", False),
        (3, 0.2, "importance", False),
    ],
)
def test_mixtures_of_few_parameters_grow_before_chains(monkeypatch, most, share, sampler, grows):
    called, grown = [], independent.grown_draws
    monkeypatch.setattr(independent, "MOST_GROWN", most)
    monkeypatch.setattr(independent, "grown_draws", lambda *args: called.append(1) or grown(*args))
    model = poor_fit(monkeypatch, share, 0.9, sampler, d=2)
    assert bool(called) == grows
    if grows:
        assert model.diagnostics_["min_ess"] > 0.5 * 800


class ModesOfALine:
    """What shares need of modes: the second one is nearest beyond 5."""

    frame = SimpleNamespace(theta=lambda phi: phi + 1.0)

    def __init__(self, n_modes):
        self.n_modes = n_modes

    def __len__(self):
        return self.n_modes

    @staticmethod
    def nearest(theta):
        return (theta[:, 0] > 5.0).astype(int)


@pytest.mark.parametrize(
    ("n_modes", "shares"), [(2, [0.75, 0.25]), (3, [0.75, 0.25, 0.0]), (1, [])]
)
def test_draws_of_a_mixture_have_the_shares_of_the_nearest_modes(n_modes, shares):
    found = CertifiedDraws(np.array([[0.0], [1.0], [4.5], [2.0]]), None, 0.0, 4, 4.0)
    found = independent._with_shares(found, ModesOfALine(n_modes))
    np.testing.assert_array_equal(found.shares, shares)


def test_mixtures_grow_only_where_that_is_quick(monkeypatch):
    monkeypatch.setattr(independent, "EVALUATED", 1e12)
    monkeypatch.setattr(independent, "grown_draws", None)
    assert poor_fit(monkeypatch, 0.2, 0.9, "auto", d=2).sampler_ == "hmc"


@pytest.mark.parametrize(("named", "sampler"), [("auto", "hmc"), ("importance", "importance")])
@pytest.mark.parametrize("rho", [0.5, 0.98])
def test_chains_in_lockstep_are_judged_by_their_parameters(monkeypatch, rho, named, sampler):
    """Whose effective sample size is 0.33 of all, or 0.01: fewer than `check` asks for."""
    weighed = independent.weighed_draws

    def in_lockstep(modes, proposals, n_draws, *args):
        found = weighed(modes, proposals, n_draws, *args)
        noise = np.random.default_rng(0).standard_normal(found.phi.shape)
        phi = signal.lfilter([np.sqrt(1.0 - rho**2)], [1.0, -rho], noise, axis=0)
        chains = {"epsilon": 1.0, "acceptance": 0.8, "n_gradients": 9}
        return replace(found, phi=phi, chains=chains, ess=0.9 * n_draws)

    monkeypatch.setattr(independent, "weighed_draws", in_lockstep)
    monkeypatch.setattr(independent, "seconds_of_chains", lambda *_: 0.5)
    model = BayesianLogisticRegression(n_draws=400, sampler=named, random_state=0)
    if rho == 0.5:
        model.fit(*binary(300))
        assert model.sampler_ == "importance"
        assert 300 < model.diagnostics_["min_ess"] < 800
    elif named == "auto":
        assert model.fit(*binary(300)).sampler_ == sampler
    else:
        with pytest.warns(SamplerConvergenceWarning, match="of 1600 draws are effective"):
            model.fit(*binary(300))


@pytest.mark.parametrize(
    ("named", "d", "grows"), [("auto", 2, True), ("importance", 2, False), ("auto", 9, False)]
)
def test_a_mixture_that_may_grow_is_better_than_short_chains(monkeypatch, named, d, grows):
    """Chains in lockstep go too rarely where the posterior is narrow, and do not know it."""
    weighed, asked = independent.weighed_draws, []

    def in_lockstep(modes, proposals, n_draws, *args):
        found = weighed(modes, proposals, n_draws, *args)
        return replace(found, chains={"epsilon": 1.0, "acceptance": 0.8, "n_gradients": 9})

    def grown(proposals, n_draws, rng, reach):
        asked.append(n_draws)
        return grown_draws(proposals, n_draws, rng, reach)

    grown_draws = independent.grown_draws
    monkeypatch.setattr(independent, "weighed_draws", in_lockstep)
    monkeypatch.setattr(independent, "grown_draws", grown)
    model = BayesianLogisticRegression(n_draws=400, sampler=named, random_state=0)
    model.fit(*binary(300, d))
    assert asked == [1600] * grows
    assert ("lockstep_epsilon" in model.diagnostics_) != grows


@pytest.mark.parametrize("apart", [False, True])
def test_rhat_is_that_of_the_posterior_and_of_short_chains_has_its_own_name(monkeypatch, apart):
    weighed = independent.weighed_draws

    def in_lockstep(modes, proposals, n_draws, *args):
        found = weighed(modes, proposals, n_draws, *args)
        found.phi[: n_draws // 4, 0] += 1.0 * apart  # the first chain
        chains = {"epsilon": 1.0, "acceptance": 0.8, "n_gradients": 9}
        return replace(found, chains=chains, rhat=1.08)

    monkeypatch.setattr(independent, "weighed_draws", in_lockstep)
    model = BayesianLogisticRegression(n_draws=400, sampler="importance", random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(*binary(300))
    found = model.diagnostics_
    assert found["lockstep_rhat"] == 1.08
    assert found["max_rhat"] == convergence.rhat(model.posterior_.flat).max()
    assert any("chains in lockstep have not converged" in str(w.message) for w in said) == apart
    assert (found["max_rhat"] > 1.05) == apart


@pytest.mark.parametrize(
    ("seconds", "chains", "told"),
    [(9.0, 1e4, False), (11.0, 1.0, True), (61.0, 1.0, True), (9.0, 70.0, False)],
)
@pytest.mark.parametrize("named", [True, False])
def test_chains_in_lockstep_are_told_with_those_that_may_follow(
    monkeypatch, named, seconds, chains, told
):
    prices = {0: 1.0, 5: 2.0}  # without warps, for the limit, and with them, for what is told
    monkeypatch.setattr(independent, "seconds_of_rows", lambda _, __, n: prices[n])
    monkeypatch.setattr(independent, "seconds_of_chains", lambda *_: chains)
    monkeypatch.setattr(independent, "is_quick", lambda *_: False)
    exact = SimpleNamespace(n_exact=50)
    frame = SimpleNamespace(target=SimpleNamespace(n_parameters=7))
    proposal, request = SimpleNamespace(frame=frame, surrogate=exact, warps=range(5)), Request()
    if named:
        request = replace(request, sampler=Importance())
    budget = independent._budget(request, proposal)
    assert budget.most == (np.inf if named else max(120.0, 2.0 * chains))
    assert budget.others == (np.inf if named else chains)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        budget.tell(0.5 * seconds)
    assert [w.category for w in said] == [LongRunWarning] * told


def slope_by_quadrature(x, y, scale):
    """Places of the slope under a Laplace prior, with an intercept N(0, 10²), and P below each."""
    slope, intercept = np.linspace(-60.0, 12.0, 3601), np.linspace(-40.0, 40.0, 1601)
    log_p = -np.abs(slope)[:, None] / scale - 0.5 * np.square(intercept / 10.0)
    for a, b in zip(x, y, strict=True):
        log_p += log_expit((2 * b - 1) * (slope[:, None] * a + intercept))
    p = np.exp(log_p - log_p.max()).sum(axis=1)
    return slope, np.cumsum(p) / p.sum()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_draws_reach_into_exponential_tails(seed):
    x, y = np.array([-2.0, -1.5, -1.0, -0.5, 0.1, 0.2, 0.4]), np.array([1] * 5 + [0] * 2)
    options = {"prior": Laplace(scale=2.0), "intercept_prior": Normal(scale=10.0)}
    model = BayesianLogisticRegression(random_state=seed, **options).fit(x[:, None], y)
    places, below = slope_by_quadrature(x, y, 2.0)
    draws, error = model.posterior_["coef"].ravel(), 4.5 / np.sqrt(model.diagnostics_["min_ess"])
    assert model.sampler_ == "importance"
    for p in (0.002, 0.01, 0.05, 0.5, 0.95, 0.99):  # a Gaussian proposal has no draws in the first
        found = (draws < np.interp(p, below, places)).mean()
        assert abs(found - p) < error * np.sqrt(p * (1.0 - p)), (p, found)


@pytest.mark.slow
def test_an_unlucky_k_does_not_cut_the_tail_of_rare_events():
    """With this seed k of the first draws was 0.34, and none was below the 1 % quantile."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 4)), np.zeros(300, dtype=int)
    y[[3, 50, 200]] = 1
    fits = [
        BayesianLogisticRegression(random_state=1, **options).fit(X, y).posterior_["intercept"]
        for options in ({}, {"sampler": "hmc", "n_draws": 5000})
    ]
    found = (fits[0] < np.quantile(fits[1], 0.01)).mean()  # of some 2000 effective draws
    assert found > 0.003


TOLD = [
    (0.3, 0.65, {}),
    (0.15, 0.5, {}),
    (0.3, 0.55, {}),  # k is noisy, and few effective draws say that there is something
    (0.4, 0.5, {"epsilon": 0.1}),
    (0.4, 0.95, {}),
    (0.4, 0.9, {}),
    (0.9, 0.5, {}),
]


@pytest.mark.parametrize(("told", "is_wide"), [*zip(TOLD, [0, 0, 1, 0, 0, 1, 1], strict=True)])
def test_tails_are_looked_at_where_weights_are_not_light(monkeypatch, told, is_wide):
    (k, share, chains), found = told, certified(binary(300))
    assert len(found.certificate.weights) == 1000
    certificate = replace(found.certificate, pareto_k=k, ess=share * 1000)
    first = replace(found, certificate=certificate, chains=chains)
    wide = replace(found, certificate=replace(certificate, pareto_k=0.1), shares=np.ones(1))
    monkeypatch.setattr(independent, "certified_draws", lambda *_: first)
    monkeypatch.setattr(independent, "mixed_draws", lambda *_: wide)
    model = BayesianLogisticRegression(sampler="importance", n_draws=200, random_state=0)
    model.fit(*binary(300))
    assert model.diagnostics_["pareto_k"] == (0.1 if is_wide else k)
    assert "mode_share_0" not in model.diagnostics_


def certified(rows):
    """The `CertifiedDraws` of a fit."""
    kept, weighed = [], independent.weighed_draws
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(independent, "weighed_draws", lambda *a: kept.append(weighed(*a)) or kept[0])
        BayesianLogisticRegression(n_draws=200, random_state=0).fit(*rows)
    return kept[0]


@pytest.mark.parametrize(
    ("k", "predicted", "kind"),
    [
        (0.4, 0.9, "hmc"),
        (0.4, 1.1, "independent"),
        (0.55, 9.0, "lockstep"),  # the weights have no variance
        (0.55, 11.0, "independent"),
        (0.45, 9.0, "independent"),
    ],
)
def test_tails_that_no_proposal_reaches_are_left_to_chains(monkeypatch, k, predicted, kind):
    """To those in lockstep if the posterior is log-concave and others are not cheap."""
    weighed = independent.weighed_draws

    def heavy(modes, proposals, n_draws, *args):
        found = weighed(modes, proposals, n_draws, *args)
        return replace(found, certificate=replace(found.certificate, pareto_k=k, ess=500.0))

    monkeypatch.setattr(independent, "weighed_draws", heavy)
    monkeypatch.setattr(independent, "seconds_of_chains", lambda *_: predicted)
    model = BayesianLogisticRegression(prior="laplace", n_draws=200, random_state=0)
    assert kind_of(model.fit(*binary(300))) == kind
    if kind == "lockstep":
        monkeypatch.setattr(Logistic, "convex", False)
        assert kind_of(model.fit(*binary(300))) == "hmc"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"n_chains": 1, "n_draws": 30}, {"n_draws": 20}])
def test_few_independent_draws_are_no_chains_that_disagree(options):
    model = BayesianLogisticRegression(sampler="importance", **options)
    posteriors = [model.set_params(random_state=s).fit(*binary(100)).posterior_ for s in range(8)]
    assert max(np.max(p.summary()["rhat"]) for p in posteriors) > 1.05  # by chance
    assert all(p.check() for p in posteriors)
    assert not any(replaced(p).check() for p in posteriors if np.max(p.summary()["rhat"]) > 1.05)


def replaced(posterior):
    """The same posterior, of which nothing says that its draws are independent."""
    evidence = {k: v for k, v in posterior.evidence.items() if k != "independent"}
    return type(posterior)(posterior.flat, posterior.shapes, posterior.labels, evidence=evidence)


@pytest.mark.parametrize(
    ("n", "d", "sampler"),
    [pytest.param(12, 6, "scale_mixture_gibbs", marks=pytest.mark.slow), (200, 2, "importance")],
)
def test_few_rows_under_heavy_tails_are_left_to_gibbs_sampling(n, d, sampler):
    """Rows count as they were given: those that linear regression makes of them are always few."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    model = BayesianLinearRegression(prior=StudentT(df=1.0, scale=0.5), n_draws=300, random_state=0)
    model.fit(X, X[:, 0] + rng.normal(size=n))
    assert model.sampler_ == sampler


# -- draws that their scores contradict ------------------------------------------------------------


def between_walls():
    """Counts of more columns than rows under a wide prior: Pareto k is 0.3, and draws are wrong."""
    rng = np.random.default_rng([5, 49])
    n, more, scale = rng.integers(10, 60), rng.integers(1, 60), np.exp(rng.uniform(0.0, 4.0))
    X = rng.normal(size=(n, n + more))
    return X, rng.poisson(np.exp(0.5 * X[:, 0])), float(scale)


@pytest.mark.parametrize(
    ("named", "seconds", "sampler"),
    [("auto", 0.9, "hmc"), ("auto", 1.1, "importance"), ("importance", 0.9, "importance")],
)
def test_a_contradiction_is_obeyed_where_chains_are_cheap(monkeypatch, named, seconds, sampler):
    monkeypatch.setattr(independent, "seconds_of_chains", lambda *_: seconds)
    monkeypatch.setattr(independent, "_is_contradicted", lambda outcome: True)
    model = BayesianLogisticRegression(n_draws=200, sampler=named, random_state=0)
    assert model.fit(*binary(300)).sampler_ == sampler


@pytest.mark.slow
def test_draws_that_scores_contradict_give_way_to_chains(monkeypatch):
    X, y, scale = between_walls()
    monkeypatch.setattr(independent, "seconds_of_chains", lambda *_: 0.5)
    monkeypatch.setattr(certificate, "SUSPECT_K", certificate.LIGHT)  # k alone tells nothing here
    model = BayesianPoissonRegressor(prior=Normal(scale=scale), random_state=0).fit(X, y)
    assert model.sampler_ == "hmc"
    monkeypatch.setattr(independent, "_is_contradicted", lambda outcome: False)
    with pytest.warns(SamplerConvergenceWarning, match="The draws disagree"):
        other = BayesianPoissonRegressor(prior=Normal(scale=scale), random_state=0).fit(X, y)
    assert other.sampler_ == "importance"
    assert other.diagnostics_["pareto_k"] < 0.5
    assert "spread of predictors" in {f.name for f in other.posterior_.check().findings}


@pytest.mark.parametrize(("by", "is_wrong"), [(0.0, False), (0.15, True)])
def test_predictors_are_judged_by_scores(by, is_wrong):
    """Moved along one predictor, by so many of its standard deviations, no parameter shows it."""
    rng = np.random.default_rng(0)
    n, d = 20, 60
    X = rng.normal(size=(n, d))
    target = Target(
        X, np.zeros(n), np.ones(n), Poisson(), Normal(scale=1.0)._table((d,)), intercept=False
    )
    C = np.linalg.inv(X.T @ X + np.eye(d))
    along = C @ X[0] / np.sqrt(X[0] @ C @ X[0])
    draws = rng.normal(size=(4, 1000, d)) @ np.linalg.cholesky(C).T + by * along
    scores = -draws @ (X.T @ X + np.eye(d))
    told = independent._of_predictors(target, draws, scores)
    assert told["predictor_mean"] == pytest.approx(by, abs=0.07)
    assert told["predictor_spread"] < 0.15
    assert not are_contradicted(draws, scores)
    outcome = SimpleNamespace(scores_of="all rows", evidence=told, draws=draws, scores=scores)
    assert independent._is_contradicted(outcome) == is_wrong


@pytest.mark.parametrize(
    ("model", "n_extra", "grows"), [(Poisson(), 0, True), (Robust(), 2, False)]
)
def test_no_mixture_grows_for_robust_regression(model, n_extra, grows):
    """Where few rows leave nearly no noise, its posterior has peaks that mixtures have missed."""
    prior = np.concatenate([Normal()._table((2,)), *[HalfNormal(1.0)._table((1,))] * n_extra])
    target = Target(np.ones((5, 1)), np.arange(5.0), np.ones(5), model, prior)
    proposal = SimpleNamespace(frame=SimpleNamespace(target=target))
    assert independent.may_grow([proposal], Request(n_chains=4, n_draws=1000)) == grows
