"""Linear regression with one factor, against dense linear algebra and quadrature."""

import numpy as np
import pytest
from group_tables import Constant, problem_of
from scipy import stats

from skbayes_sg import BayesianLinearRegression
from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.groups.linear_exact import draw_effects, joint_law, run_exact, sums_of_levels
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import Linear, LinearKnownNoise
from skbayes_sg.priors import Flat, HalfNormal, Normal
from skbayes_sg.priors.columns import LOC, SCALE
from skbayes_sg.recipe.request import Request


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


def dense(problem, tau, sigma):
    """Mean and covariance of (β, u) as in a regression on one-hot columns with normal priors."""
    target, L = problem.target, problem.sizes[0]
    A = np.hstack([problem.design, np.eye(L)[problem.codes[:, 0]]])
    prior = target.prior[: problem.n_coefficients]
    flat = prior[:, 0] == Flat()._kind
    precision = np.r_[np.where(flat, 0.0, prior[:, SCALE] ** -2.0), np.full(L, tau**-2.0)]
    W = target.weight / sigma**2
    mean0 = np.r_[prior[:, LOC], np.zeros(L)]
    covariance = np.linalg.inv((A.T * W) @ A + np.diag(precision))
    y = target.data.facts[:, FACT_Y]
    return covariance @ (A.T @ (W * y) + precision * mean0), covariance


def log_evidence(problem, tau, sigma):
    """log ∫∫ p(y, β, u | τ, σ) of the regression on one-hot columns, but for a constant."""
    target, L = problem.target, problem.sizes[0]
    mean, covariance = dense(problem, tau, sigma)
    A = np.hstack([problem.design, np.eye(L)[problem.codes[:, 0]]])
    r = target.data.facts[:, FACT_Y] - A @ mean
    D = problem.n_coefficients
    prior = target.prior[:D]
    normal = prior[:, 0] == Normal()._kind
    off = np.where(normal, (mean[:D] - prior[:, LOC]) / prior[:, SCALE], 0.0)
    value = -0.5 * np.sum(target.weight * r**2) / sigma**2 - target.weight.sum() * np.log(sigma)
    value += -0.5 * off @ off - 0.5 * np.sum(mean[D:] ** 2) / tau**2 - L * np.log(tau)
    return value + 0.5 * np.linalg.slogdet(covariance)[1]


def log_scale(tau):
    return stats.halfnorm.logpdf(tau) + np.log(tau)


KINDS = {
    "flat intercept": {},
    "normal intercept off zero": {"intercept": Normal(loc=5.0, scale=0.3)},
    "columns at a thousand": {"offset": 1000.0},
}
every_kind = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)


@every_kind
def test_the_law_of_the_scales_is_that_of_the_regression_on_one_hot_columns(options):
    problem = problem_of(LinearKnownNoise, **options)
    law = joint_law(problem)
    places = np.array([-12.0, -3.0, -0.5, 0.4, 3.0])
    found = np.array([law.node(s).log_mass for s in places])
    wanted = [log_evidence(problem, t, 1.0) + log_scale(t) for t in np.exp(places)]
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=1e-6)


@every_kind
def test_coefficients_and_effects_given_the_scales_are_those_of_one_hot_columns(options):
    problem = problem_of(LinearKnownNoise, **options)
    law, D = joint_law(problem), problem.n_coefficients
    for tau in (0.01, 0.7, 30.0):
        mean, covariance = dense(problem, tau, 1.0)
        conditional = law.node(np.log(tau)).conditional
        np.testing.assert_allclose(conditional.mean(0.0), mean[:D], rtol=1e-7, atol=1e-7)
        variance = np.diag(covariance)[:D]
        np.testing.assert_allclose(conditional.variance(0.0), variance, rtol=1e-6)
        # E(u | β) at E(β) is E(u), and Var(u | β) is that of dense rows without columns of X
        theta = np.r_[mean[:D], np.log(tau)][None]
        out = np.empty((problem.sizes[0], 1), dtype=np.float32)
        draw_effects(law, theta, Constant(0.0), out)
        np.testing.assert_allclose(out[:, 0], mean[D:], atol=2e-6 * tau + 1e-6)
        n = np.bincount(problem.codes[:, 0], problem.target.weight, problem.sizes[0])
        below = out.copy()
        draw_effects(law, theta, Constant(1.0), out)
        np.testing.assert_allclose((out - below)[:, 0], (n + tau**-2) ** -0.5, rtol=1e-3)


@pytest.mark.slow
def test_with_unknown_noise_the_joint_law_is_that_of_a_grid():
    problem = problem_of(Linear, n=25, sizes=(6,), seed=3)
    log_tau, log_sigma = np.meshgrid(np.linspace(-12, 3, 400), np.linspace(-2, 1.5, 200))
    value = np.vectorize(lambda t, s: log_evidence(problem, np.exp(t), np.exp(s)))
    top = value(log_tau, log_sigma) + log_scale(np.exp(log_tau))
    z = np.exp(log_sigma)
    top += stats.t.logpdf(z, 3.0) + log_sigma
    p = np.exp(top - top.max())
    p /= p.sum()
    draws = joint_law(problem).draw(np.random.default_rng(0), np.random.default_rng(1), 40_000)
    for column, grid in ((-1, log_tau), (-2, log_sigma)):
        for f in (np.exp, lambda s: np.exp(2.0 * s)):
            values, mean = f(draws[:, column]), np.sum(p * f(grid))
            assert abs(values.mean() - mean) < 4.0 * values.std() / 200.0
            assert abs(1.05 * values.mean() - mean) > 4.0 * values.std() / 200.0


def test_the_scale_of_a_balanced_layout_is_that_of_one_dimensional_quadrature():
    n, L = 5, 8
    problem = problem_of(LinearKnownNoise, n=n * L, d=0, sizes=(L,), weight=np.ones(n * L))
    problem.codes[:, 0] = np.tile(np.arange(L), n)
    y = problem.target.data.facts[:, FACT_Y].reshape(n, L).mean(axis=0)
    tau = np.linspace(1e-5, 6.0, 200_001)
    v = tau**2 + 1.0 / n
    density = v ** (-0.5 * (L - 1)) * np.exp(-0.5 * y.var() * L / v) * stats.halfnorm.pdf(tau)
    density /= density.sum()
    law = joint_law(problem)
    found = np.exp(law.ratio((np.arange(100_000) + 0.5) / 100_000))
    assert np.isclose(found.mean(), density @ tau, rtol=1e-4)
    assert np.isclose(found.std(), np.sqrt(density @ tau**2 - (density @ tau) ** 2), rtol=1e-3)


def test_a_level_without_rows_has_the_law_of_its_scale():
    problem = problem_of(Linear, sizes=(5,))
    problem.sizes = (6,)
    law, theta = joint_law(problem), np.array([[0.1, 0.2, 0.3, -0.5, -0.2]])
    out = np.empty((6, 1), dtype=np.float32)
    draw_effects(law, theta, Constant(1.0), out)
    assert np.isclose(out[5, 0], np.exp(-0.2), rtol=1e-6)
    assert not np.isclose(out[4, 0], np.exp(-0.2), rtol=1e-2)


def test_numbers_of_levels_and_the_order_of_rows_do_not_matter():
    problem = problem_of(Linear)
    law = joint_law(problem)
    again = problem_of(Linear)
    again.codes[:, 0] = 6 - again.codes[:, 0]
    other = joint_law(again)
    rngs = [np.random.default_rng(k) for k in (0, 1, 0, 1)]
    found, wanted = other.draw(*rngs[:2], 50), law.draw(*rngs[2:], 50)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    sums, turned = sums_of_levels(problem), sums_of_levels(again)
    np.testing.assert_allclose(turned.raw_means[::-1], sums.raw_means, atol=1e-12)


def test_moments_are_those_of_all_draws():
    problem = problem_of(Linear)
    found = run_exact(problem, Request(seed=0, n_draws=300, n_chains=2, keep=300))
    flat = found.effects[0].reshape(7, -1)
    np.testing.assert_allclose(found.moments[0][0], flat.mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(found.moments[0][1], flat.std(axis=1), rtol=1e-4)
    few = run_exact(problem, Request(seed=0, n_draws=300, n_chains=2, keep=30))
    np.testing.assert_array_equal(few.effects[0], found.effects[0][:, :, 9::10])
    np.testing.assert_array_equal(few.moments[0], found.moments[0])


def test_a_scale_that_is_zero_is_found_to_be_small():
    problem = problem_of(Linear, n=2000, sizes=(50,), tau=0.0)
    tau = np.exp(joint_law(problem).ratio(np.linspace(0.01, 0.99, 99)))
    assert tau[49] < 0.1
    assert tau[0] < 0.01
    told = problem_of(Linear, n=2000, sizes=(50,), tau=0.5)
    assert np.exp(joint_law(told).ratio(0.01)) > 0.5
    assert HalfNormal(1.0)._kind == problem.scales[0][0, 0]


def test_few_independent_draws_are_not_accused():
    """Of eight draws of each chain R-hat is above its limit by chance."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80), rng.integers(8, size=80)])
    model = BayesianLinearRegression(group_effects=[1], n_draws=8, random_state=0)
    model.fit(X, X[:, 0] + rng.normal(size=80))
    assert model.sampler_ == "exact"
    assert model.posterior_.check()
