"""Effects of levels integrated out, and independent draws of all else, against quadrature."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from group_tables import problem_of, quadrature
from scipy import integrate, optimize, stats

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.custom import CustomRegressor
from skbayes_sg.custom.law import law_of
from skbayes_sg.engine.target import Target
from skbayes_sg.groups import choose, independent
from skbayes_sg.groups.collapsed import CollapsedRows, Reference
from skbayes_sg.groups.independent import run_independent, suits_independent
from skbayes_sg.groups.marginal import BETWEEN, ENDS, MarginalLikelihood
from skbayes_sg.groups.start import found_start
from skbayes_sg.kernels.layout import frozen
from skbayes_sg.kernels.many_draws import log_prior
from skbayes_sg.models import LinearKnownNoise, Logistic, NegativeBinomial, Poisson, Robust
from skbayes_sg.priors import HalfNormal, Normal
from skbayes_sg.recipe.request import Request

KINDS = pytest.mark.parametrize("kind", [Logistic, Poisson, NegativeBinomial])
WITH_SHIFTS = pytest.mark.parametrize("kind", [Logistic, Poisson, NegativeBinomial, Robust])


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


# -- losses of levels at many shifts --------------------------------------------------------------


def shifted(kind, facts, starts, eta, extras, shifts):
    out = np.zeros(shifts.shape)
    kind.add_shifted(
        frozen(facts), frozen(starts, np.int64), eta.copy(), frozen(extras), shifts, out
    )
    return out


@WITH_SHIFTS
@pytest.mark.parametrize("weights", ["ones", "uneven"])
@pytest.mark.parametrize("size", [1.0, 50.0], ids=["usual", "far"])
def test_losses_at_shifts_are_those_of_the_model(kind, weights, size):
    rng = np.random.default_rng(0)
    n, extras = 40, np.array([-0.3, 1.1])[: kind.n_extra]
    y = rng.integers(0, 2 if kind is Logistic else 30, n).astype(float)
    weight = np.ones(n) if weights == "ones" else rng.uniform(0.0, 3.0, n)
    facts = np.column_stack([y, weight, rng.uniform(0.5, 2.0, n)])
    facts = facts[:, : 2 + len(kind.more_labels)]
    starts = np.array([0, 1, 1, 18, 40])  # a level of one row, and one of none
    eta, shifts = size * rng.standard_normal(n), rng.standard_normal((4, 8))
    found = shifted(kind, facts, starts, eta, extras, shifts)
    for level in range(4):
        rows = np.arange(starts[level], starts[level + 1])
        for k in range(8):
            more = np.tile(extras, (len(rows), 1)).T
            moved = np.column_stack([eta[rows] + shifts[level, k], *more])
            wanted = kind.loss(frozen(facts), rows, 0, len(rows), moved)
            np.testing.assert_allclose(found[level, k], wanted, rtol=1e-10, atol=1e-10)


def test_products_of_many_large_factors_do_not_overflow():
    n = 5000
    facts = np.column_stack([np.zeros(n), np.ones(n)])
    eta = np.full(n, 39.0)
    found = shifted(Logistic, facts, np.array([0, n]), eta, np.empty(0), np.zeros((1, 8)))
    np.testing.assert_allclose(found, n * np.logaddexp(0.0, 39.0), rtol=1e-12)


def test_losses_at_shifts_of_a_likelihood_of_ones_own():
    law = law_of(lambda eta, y, s: np.log(s) + np.log(y - eta), None, 1, 1)
    facts = np.array([[3.0, 2.0, 1.0], [5.0, 1.0, 1.0]])
    eta, shifts = np.array([1.0, 2.0]), np.array([[0.5, 2.5]])
    found = shifted(law, facts, np.array([0, 2]), eta, np.array([np.log(2.0)]), shifts)
    wanted = -2.0 * np.log(2.0 * 1.5) - np.log(2.0 * 2.5)
    np.testing.assert_allclose(found, [[wanted, np.inf]])  # a logarithm of -0.5 is not a number


# -- integrals over effects -----------------------------------------------------------------------


def level_density(problem, theta, level):
    """-log of the likelihood of a level times N(u; 0, τ²), as a function of u."""
    n, model = problem.n_coefficients, problem.target.model
    rows = np.flatnonzero(problem.codes[:, 0] == level)
    eta = problem.design[rows] @ theta[:n]
    facts, tau = frozen(problem.target.data.facts), np.exp(theta[-1])

    def f(u):
        moved = np.column_stack([eta + u, *np.tile(theta[n:-1], (len(rows), 1)).T])
        return model.loss(facts, rows, 0, len(rows), moved) - stats.norm.logpdf(u, 0.0, tau)

    return f


def exactly(problem, theta):
    """-log p(θ, log τ, y) up to a constant, by adaptive quadrature."""
    total = -log_prior(problem.scales[0][0], theta[-1:])[0]
    total -= sum(log_prior(row, theta[j : j + 1])[0] for j, row in enumerate(problem.target.prior))
    densities = (level_density(problem, theta, level) for level in range(problem.sizes[0]))
    return total - sum(log_area(f, 12.0 * np.exp(theta[-1])) for f in densities)


def log_area(f, reach):
    """log ∫ e^-f du for a convex f, to `reach` on both sides of its minimum."""
    grid = np.linspace(-reach, reach, 401)
    near = grid[np.argmin([f(u) for u in grid])]
    best = optimize.minimize_scalar(f, bounds=(near - 0.01 * reach, near + 0.01 * reach)).x
    h = 1e-4 * reach
    width = h / np.sqrt(f(best + h) - 2.0 * f(best) + f(best - h))
    places = best + width * np.array([-8.0, -2.0, 0.0, 2.0, 8.0])
    ends = np.sort([best - reach, *places, best + reach])
    areas = [
        integrate.quad(lambda u: np.exp(f(best) - f(u)), a, b, limit=200)[0]
        for a, b in itertools.pairwise(ends)
    ]
    return np.log(np.sum(areas)) - f(best)


def started(problem):
    rows = CollapsedRows(problem)
    start = found_start(rows)
    return start, Reference(rows, start.theta, start.u)


@KINDS
@pytest.mark.parametrize("tau", [0.02, pytest.param(0.8, marks=pytest.mark.slow), 5.0])
def test_the_potential_is_that_of_integrals(kind, tau):
    problem = problem_of(kind, n=25, sizes=(6,), tau=tau, scale=tau + 1.0)
    start, reference = started(problem)
    rng = np.random.default_rng(1)
    width = np.append(1.0 / np.sqrt(np.diag(start.precisions[0])), 0.4)
    thetas = np.append(start.theta, np.log(tau)) + width * rng.standard_normal((4, len(width)))
    wanted = np.array([exactly(problem, theta) for theta in thetas])
    judge = MarginalLikelihood.finest(reference, thetas[:, -1].max())
    potential, error = MarginalLikelihood.of(judge, thetas)
    finest = judge.values(thetas)
    np.testing.assert_allclose(np.diff(finest), np.diff(wanted), atol=5e-4)
    assert error < 0.05
    np.testing.assert_allclose(np.diff(potential.values(thetas)), np.diff(wanted), atol=0.03)


def two_peaks():
    """Rows of two levels that disagree by much more than their noise, and of one that agree."""
    problem = problem_of(Robust, n=12, sizes=(3,), weight=np.ones(12), intercept=Normal())
    y = np.array([-3.0, 3.0, -2.0, -2.1, 1.5, 1.6, 4.0, 1.0, 1.2, 0.9, 1.1, 1.3])
    problem.codes[:, 0] = [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    target = problem.target
    X = np.zeros_like(target.X)
    problem.target = Target(X, y, np.ones(12), Robust(), target.prior)
    return problem, 3.0


def tight(theta):
    """Parameters with noise of 0.1 around zero, and Student's t of two degrees of freedom."""
    theta = np.array(theta)
    theta[:-2], theta[-2:] = 0.0, np.log([0.1, 2.0])
    return theta


def about_peaks(reference, theta):
    """The finest potential, its nodes about the peaks at θ."""
    first = MarginalLikelihood.finest(reference, theta[-1])
    own = Reference(reference.rows, theta[:-1], [first.peaks(theta)[:, None]])
    return MarginalLikelihood.finest(own, theta[-1])


def test_integrals_over_several_peaks():
    problem, tau = two_peaks()
    start, reference = started(problem)
    theta = np.append(tight(start.theta), np.log(tau))
    finest = about_peaks(reference, theta)
    finest.check_resolution(theta[None])
    found, _ = finest.of_levels(theta[None])
    u = np.linspace(-12.0 * tau, 12.0 * tau, 40_001)
    for level in range(3):
        f = level_density(problem, theta, level)
        wanted = np.trapezoid(np.exp([-f(x) for x in u]), u)
        np.testing.assert_allclose(
            np.exp(-found[0, level]) / np.sqrt(2.0 * np.pi), wanted, rtol=1e-4
        )
        peak = min(u, key=f)
        assert abs(finest.peaks(theta)[level] - peak) < 0.1


def test_peaks_that_no_rule_resolves_are_refused():
    problem, tau = two_peaks()
    start, reference = started(problem)
    theta = np.append(tight(start.theta), np.log(tau))
    theta[-3] = np.log(1e-4)
    coarse = MarginalLikelihood(reference, [(64, 0.4, 0.4)], np.zeros(3, dtype=int))
    with pytest.raises(ValueError, match="peaks that no rule resolves"):
        coarse.check_resolution(theta[None])


def test_rules_reach_zero_where_all_rows_of_a_level_are_far_from_it():
    # The prior is narrow: the rows may as well be outliers, and the effect near zero.
    problem, _ = two_peaks()
    start, _ = started(problem)
    target, y = problem.target, problem.target.data.facts[:, 0].copy()
    y[2:7] = 20.0
    problem.target = Target(target.X, y, np.ones(12), Robust(), target.prior)
    u = np.array([[0.0], [20.0], [0.0]])
    reference = Reference(CollapsedRows(problem), tight(start.theta), [u])
    finest = MarginalLikelihood.finest(reference, np.log(0.3))
    (which, rule, levels, _, S, t), *_ = (block for block in finest._blocks if 1 in block.which)
    own, P = list(which).index(1), levels.information + 0.3**-2
    middle = (t - reference.theta[: finest.n] @ S) / P
    assert middle[own] > 10.0
    assert middle[own] - rule.nodes[-1] / np.sqrt(P[own]) < -1.8 + 1e-9


def one_event():
    """Counts of three levels, the first of which has a single event."""
    problem = problem_of(Poisson, n=120, sizes=(3,), weight=np.ones(120))
    y, target = np.ones(120), problem.target
    y[::2], y[:39] = 0.0, 0.0
    problem.codes[:, 0] = np.repeat(np.arange(3), 40)
    problem.target = Target(target.X, y, np.ones(120), Poisson(), target.prior)
    return problem, 1.0


def wide_effects():
    """Classes with effects that are wider than what the rows of a level say of them."""
    return problem_of(Logistic, n=25, sizes=(6,), tau=3.0, scale=3.0, weight=np.ones(25)), 3.0


@pytest.mark.parametrize("made", [one_event, wide_effects, two_peaks])
def test_effects_are_drawn_from_their_law_given_the_parameters(made):
    """Their quantiles are those of their law, and not those of the expansion."""
    problem, tau = made()
    start, reference = started(problem)
    theta, n = np.append(start.theta, np.log(tau)), 20_000
    finest = MarginalLikelihood.finest(reference, theta[-1])
    if made is two_peaks:
        theta[:-1] = tight(theta[:-1])
        finest = about_peaks(reference, theta)
    potential = finest if made is two_peaks else MarginalLikelihood.of(finest, theta[None])[0]
    _, effects = potential.values_and_effects(np.tile(theta, (n, 1)), np.random.default_rng(0))
    H, S, t = (own[:, 0] for own in finest.reference.factors[0])
    width = 1.0 / np.sqrt(H[:, 0] + tau**-2.0)
    m, naive = (t - S @ theta[: finest.n]) * np.square(width), 0
    for level in range(problem.sizes[0]):
        f, u = level_density(problem, theta, level), np.linspace(-8.0 * tau, 8.0 * tau, 20_001)
        p = np.exp(-np.array([f(x) for x in u]) + f(m[level]))
        share = np.append(0.0, integrate.cumulative_trapezoid(p, u))
        for q in (0.002, 0.05, 0.5, 0.95, 0.998):
            place = np.interp(q * share[-1], share, u)
            below = (effects[:, level] < place).mean()
            assert abs(below - q) < 4.5 * np.sqrt(q * (1.0 - q) / n)
            naive += abs(stats.norm.cdf(place, m[level], width[level]) - q) > 0.005
    assert naive > 1


def test_rules_that_end_too_early_or_are_too_coarse_are_seen():
    problem, tau = one_event()
    start, reference = started(problem)
    theta = np.append(start.theta, np.log(tau))[None]
    finest = MarginalLikelihood.finest(reference, theta[0, -1])
    chosen, _ = MarginalLikelihood.of(finest, theta)
    for potential in (finest, chosen):
        (ends, between) = potential.of_levels(theta)[1][0].T
        assert (ends > ENDS).all()
        assert (between < BETWEEN).all()
    short = MarginalLikelihood(reference, [(8, 1.0, 0.0)], np.zeros(3, dtype=int))
    assert short.of_levels(theta)[1][0, 0, 0] < ENDS
    coarse = MarginalLikelihood(reference, [(8, 3.0, 0.0)], np.zeros(3, dtype=int))
    assert coarse.of_levels(theta)[1][0, 0, 1] > BETWEEN


# -- all draws ------------------------------------------------------------------------------------


def judged(values, weights_ess, mean, sd):
    """How many standard errors the means of values and of their squares are off."""
    found = []
    for f, wanted in ((lambda x: x, mean), (lambda x: np.square(x - mean), sd**2)):
        z = f(values)
        found.append((z.mean() - wanted) * np.sqrt(weights_ess) / z.std())
    return np.abs(found)


SMALL = {"d": 0, "sizes": (6,), "intercept": Normal(scale=2.5)}


@pytest.mark.parametrize("kind", [Logistic, Poisson])
@pytest.mark.parametrize("n", [12, 60])
@pytest.mark.parametrize("tau", [0.0, 1.5])
def test_draws_are_those_of_quadrature(kind, n, tau):
    problem = problem_of(kind, n=n, tau=tau, weight=np.ones(n), seed=3, **SMALL)
    mean, sd = quadrature(problem, kind)
    found = run_independent(problem, Request(seed=0, n_chains=4, n_draws=5000))
    ess = found.diagnostics["min_ess"]
    assert ess > 5000
    for values, *moments in zip(
        (found.draws[..., 0].ravel(), np.exp(found.draws[..., 1].ravel())), mean, sd, strict=True
    ):
        assert (judged(values, ess, *moments) < 4.5).all()


def test_a_wrong_proposal_costs_efficiency_and_nothing_else(monkeypatch):
    problem = problem_of(Poisson, n=40, weight=np.ones(40), seed=3, **SMALL)
    mean, sd = quadrature(problem, Poisson)
    right = run_independent(problem, Request(seed=0, n_chains=4, n_draws=5000))
    place = independent.NestedLaplace._place

    def wrong(law, s, theta):
        found = place(law, s, theta)
        return found._replace(
            root=1.4 * found.root, theta=found.theta + 0.3 * np.diag(found.root),
            height=found.height + 0.3 * s,
        )  # fmt: skip

    monkeypatch.setattr(independent.NestedLaplace, "_place", wrong)
    found = run_independent(problem, Request(seed=0, n_chains=4, n_draws=5000))
    ess = found.diagnostics["min_ess"]
    assert ess < 0.95 * right.diagnostics["min_ess"]
    values = found.draws[..., 0].ravel(), np.exp(found.draws[..., 1].ravel())
    for own, *moments in zip(values, mean, sd, strict=True):
        assert (judged(own, ess, *moments) < 4.5).all()


def table(kind=Logistic, n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal(n), rng.integers(0, 20, n)])
    eta = X[:, 0] + rng.standard_normal(20)[X[:, 1].astype(int)]
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(int)


def test_draws_do_not_depend_on_threads_or_on_what_is_kept():
    X, y = table()
    options = {"group_effects": [1], "n_draws": 100, "random_state": 0}
    one = BayesianLogisticRegression(**options).fit(X, y)
    assert one.sampler_ == "importance"
    assert one.diagnostics_["pareto_k"] < 0.7
    other = BayesianLogisticRegression(**options, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(other.posterior_.flat, one.posterior_.flat)
    np.testing.assert_array_equal(other._groups.effects.draws[0], one._groups.effects.draws[0])
    few = BayesianLogisticRegression(**options, keep=10).fit(X, y)
    np.testing.assert_allclose(few.coef_, one.coef_, rtol=1e-12)
    np.testing.assert_array_equal(few.effects_["sd"], one.effects_["sd"])


def test_the_law_of_known_levels_is_that_of_chains():
    X, y = table()
    options = {"group_effects": [1], "random_state": 0, "n_draws": 2000}
    own = BayesianLogisticRegression(**options).fit(X, y)
    chains = BayesianLogisticRegression(**options, thin=2).fit(X, y)
    assert (own.sampler_, chains.sampler_) == ("importance", "collapsed_hmc")
    sd = chains.effects_["sd"]
    np.testing.assert_allclose(own.effects_["mean"] / sd, chains.effects_["mean"] / sd, atol=0.1)
    np.testing.assert_allclose(own.effects_["sd"] / sd, 1.0, atol=0.06)
    np.testing.assert_allclose(own.predict_proba(X), chains.predict_proba(X), atol=0.01)
    together = [
        np.corrcoef(
            model.posterior_["intercept"].ravel(), model._groups.effects.draws[0][3].ravel()
        )
        for model in (own, chains)
    ]
    assert together[1][0, 1] < -0.3
    np.testing.assert_allclose(*together, atol=0.06)


def test_effects_are_those_of_the_draws_they_were_proposed_with():
    rng = np.random.default_rng(0)
    chosen, levels = rng.integers(0, 50, size=12), 3
    effects = np.arange(50.0)[:, None] + 100.0 * np.arange(levels)
    found = SimpleNamespace(
        phi=np.arange(50.0)[chosen][:, None], measured={}, ess=12.0, evidence=lambda n: {}
    )
    request = SimpleNamespace(n_chains=2, n_draws=6, keep=3)
    outcome = independent._outcome(found, (effects, chosen), request, None)
    own = outcome.draws[:, outcome.kept, 0]
    for level, draws in enumerate(outcome.effects[0]):
        np.testing.assert_array_equal(draws, own + 100.0 * level)
    every = chosen[None, :] + 100.0 * np.arange(levels)[:, None]
    np.testing.assert_allclose(outcome.moments[0], [every.mean(axis=1), every.std(axis=1)])


def test_a_normal_likelihood_of_ones_own_has_the_exact_posterior():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.standard_normal((200, 2)), rng.integers(0, 15, 200)])
    y = X[:, 0] + rng.standard_normal(15)[X[:, 2].astype(int)] + rng.standard_normal(200)
    priors = {"prior": Normal(scale=2.0), "intercept_prior": Normal(scale=5.0)}
    options = {**priors, "group_effects": [2], "group_scale": HalfNormal(1.0), "random_state": 0}

    own = CustomRegressor(log_likelihood=lambda eta, y: -0.5 * (y - eta) ** 2, **options)
    exact = BayesianLinearRegression(noise=1.0, **options)
    own, exact = own.fit(X, y), exact.fit(X, y)
    assert (own.sampler_, exact.sampler_) == ("importance", "exact")
    for name in ("coef", "intercept", "group_std"):
        a, b = (model.posterior_[name] for model in (own, exact))
        assert np.abs((a.mean((0, 1)) - b.mean((0, 1))) / b.std((0, 1))).max() < 0.1
        np.testing.assert_allclose(a.std((0, 1)) / b.std((0, 1)), 1.0, atol=0.06)
    sd = exact.effects_["sd"]
    np.testing.assert_allclose(own.effects_["mean"] / sd, exact.effects_["mean"] / sd, atol=0.1)
    np.testing.assert_allclose(own.effects_["sd"] / sd, 1.0, atol=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["cauchy", "outliers", "rounded", "tiny"])
@pytest.mark.parametrize("seed", range(3))
def test_robust_regression_agrees_with_chains(noise, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((150, 2)), rng.integers(0, 12, 150)])
    made = {
        "cauchy": rng.standard_cauchy(150),
        "outliers": rng.standard_normal(150) + 30.0 * (rng.random(150) < 0.05),
        "rounded": rng.standard_normal(150),
        "tiny": 0.01 * rng.standard_t(3.0, 150),
    }
    y = X[:, 0] + rng.standard_normal(12)[X[:, 2].astype(int)] + made[noise]
    y = np.round(y) if noise == "rounded" else y
    options = {"group_effects": [2], "n_draws": 2000, "random_state": seed}
    own = BayesianRobustRegression(**options).fit(X, y)
    chains = BayesianRobustRegression(**options, n_warmup=300).fit(X, y)
    assert (own.sampler_, chains.sampler_) == ("importance", "collapsed_hmc")
    for name in ("coef", "intercept", "noise_std", "df", "group_std"):
        a, b = (model.posterior_[name] for model in (own, chains))
        a, b = (a, b) if name in ("coef", "intercept") else (np.log(a), np.log(b))
        assert np.abs((a.mean((0, 1)) - b.mean((0, 1))) / b.std((0, 1))).max() < 0.1
        np.testing.assert_allclose(a.std((0, 1)) / b.std((0, 1)), 1.0, atol=0.1)
    sd = chains.effects_["sd"]
    np.testing.assert_allclose(own.effects_["mean"] / sd, chains.effects_["mean"] / sd, atol=0.1)
    np.testing.assert_allclose(own.effects_["sd"] / sd, 1.0, atol=0.1)


# -- which sampler runs ---------------------------------------------------------------------------


def test_a_level_for_each_row_is_no_reason_for_chains():
    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.standard_normal(300), np.arange(300)]), rng.random(300) < 0.5
    model = BayesianLogisticRegression(group_effects=[1], random_state=0)
    with pytest.warns(UserWarning, match="a level of its own in every row"):
        model.fit(X, y)
    assert model.sampler_ == "importance"
    assert model.diagnostics_["min_ess"] > 3000


@pytest.mark.parametrize(
    ("kind", "options", "request_options", "suits"),
    [
        (Poisson, {}, {}, True),
        (Robust, {}, {}, True),
        (LinearKnownNoise, {}, {}, False),
        (Poisson, {"sizes": (5, 4)}, {}, False),
        (Poisson, {"slopes": [[0]]}, {}, False),
        (Poisson, {}, {"thin": 2}, False),
        (Poisson, {}, {"n_warmup": 50}, False),
        (Poisson, {"d": independent.MOST_PARAMETERS}, {}, False),
        (Poisson, {}, {"n_draws": 1 << 27}, False),
    ],
)
def test_where_effects_are_integrated_out(kind, options, request_options, suits):
    request = Request(seed=0, **{"n_chains": 2, "n_draws": 10, **request_options})
    assert suits_independent(problem_of(kind, **options), request) == suits


@pytest.mark.parametrize("why", ["rules", "pilot", "weights"])
def test_chains_follow_where_draws_cannot_be_trusted(why, monkeypatch):
    if why == "rules":
        monkeypatch.setattr(independent, "LEFT_FAR", -1.0)
    elif why == "pilot":
        monkeypatch.setattr(independent, "HOPELESS", 2.0)
    else:
        certified = independent.certified
        monkeypatch.setattr(
            independent,
            "certified",
            lambda weights: replace(certified(weights), pareto_k=0.8, ess=0.5 * len(weights)),
        )
    problem = problem_of(Poisson, n=80, seed=1)
    found = choose.sample_groups(problem, Request(seed=0, n_chains=2, n_draws=50))
    assert found.sampler == "collapsed_hmc"


def test_other_priors_of_coefficients_are_left_to_chains():
    X, y = table()
    model = BayesianPoissonRegressor(group_effects=[1], prior="laplace", n_draws=50, n_chains=2)
    assert model.fit(X, y).sampler_ == "collapsed_hmc"
