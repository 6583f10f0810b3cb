"""Slopes that vary with the level, against dense linear algebra."""

from dataclasses import replace

import numpy as np
import pytest
from group_tables import Constant, problem_of
from scipy import stats

from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.engine.target import Target
from skbayes_sg.groups import linear_slopes
from skbayes_sg.groups.covariance import Covariance
from skbayes_sg.groups.linear_slopes import SlopeLaw, mode_and_width, run_slopes
from skbayes_sg.groups.slope_kernels import SlopeSums, slope_log_densities
from skbayes_sg.groups.student_mixtures import one_student
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import Linear
from skbayes_sg.priors import Flat, Normal
from skbayes_sg.priors.columns import LOC, SCALE
from skbayes_sg.priors.flat import PositiveFlat
from skbayes_sg.recipe.request import Request

PLACES = [[-0.5, -1.0, 0.3, -0.7], [0.4, -3.0, -1.1, 0.2], [-4.0, -6.0, 2.0, -0.5]]


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


def made(n=60, sizes=(7,)):
    return problem_of(
        Linear,
        n=n,
        sizes=sizes,
        weight=np.ones(n),
        slopes=[[1]],
        intercept=Normal(loc=1.0, scale=2.0),
    )


def dense(problem, theta):
    """(design of (β, u), prior covariance and mean, covariance of β and u, their mean)."""
    C = Covariance(np.array(theta[:3]), 2).C
    L, prior = problem.sizes[0], problem.target.prior[: problem.n_coefficients]
    one_hot = np.eye(L)[problem.codes[:, 0]]
    Z = (one_hot[:, :, None] * problem.design[:, [-1, 1]][:, None, :]).reshape(len(one_hot), -1)
    A = np.hstack([problem.design, Z])
    V = np.zeros((A.shape[1], A.shape[1]))
    D = len(prior)
    V[:D, :D], V[D:, D:] = np.diag(prior[:, SCALE] ** 2), np.kron(np.eye(L), C @ C.T)
    mean, y = np.r_[prior[:, LOC], np.zeros(2 * L)], problem.target.data.facts[:, FACT_Y]
    own = np.exp(2.0 * theta[3]) * np.eye(len(y)) + A @ V @ A.T
    gain = V @ A.T @ np.linalg.inv(own)
    density = stats.multivariate_normal.logpdf(y, A @ mean, own)
    return density, mean + gain @ (y - A @ mean), V - gain @ A @ V


def test_the_law_is_that_of_dense_rows():
    problem = made()
    law = SlopeLaw(problem)
    found = law.log_densities(np.array(PLACES))
    wanted = []
    for theta in PLACES:
        s, sigma = np.exp(theta[:2]), np.exp(theta[3])
        value = dense(problem, theta)[0] + np.sum(stats.halfnorm.logpdf(s) + np.log(s))
        value += np.log1p(-(np.tanh(theta[2]) ** 2))  # a uniform correlation
        wanted.append(value + stats.t.logpdf(sigma, 3.0) + theta[3])
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), atol=1e-6)


def log_normal(x, V):
    """log N(x; 0, V), in extended precision."""
    L, x = V.astype(np.longdouble), x.astype(np.longdouble)
    for j in range(len(L)):
        L[j, j] = np.sqrt(L[j, j])
        L[j + 1 :, j] /= L[j, j]
        L[j + 1 :, j + 1 :] -= np.outer(L[j + 1 :, j], L[j + 1 :, j])
        x[j] /= L[j, j]
        x[j + 1 :] -= L[j + 1 :, j] * x[j]
    return float(-0.5 * (x @ x) - np.log(np.diag(L)).sum())


def log_likelihood(problem, theta):
    """log p(y | θ) of a problem with priors of mean 0, in extended precision."""
    C, L = Covariance(theta[:3], 2).C, problem.sizes[0]
    one_hot = np.eye(L, dtype=np.longdouble)[problem.codes[:, 0]]
    X = problem.design.astype(np.longdouble)
    of_effects = one_hot * (C[0, 0] + C[1, 0] * X[:, :1]), one_hot * C[1, 1] * X[:, :1]
    A = np.hstack([X * problem.target.prior[:2, SCALE], *of_effects])
    noise = np.exp(2.0 * theta[3]) * np.eye(len(X))
    return log_normal(problem.target.data.facts[:, FACT_Y], A @ A.T + noise)


@pytest.mark.parametrize("log_sd", [-13.8, -7.0, -1.0])
def test_a_sloped_column_far_from_zero(log_sd):
    """Of Σ w (x, y)(x, y)ᵀ the effects leave less than its rounding errors."""
    problem = problem_of(
        Linear, n=60, d=1, sizes=(6,), weight=np.ones(60), slopes=[[0]], intercept=Normal(),
        offset=1e6,
    )  # fmt: skip
    place = np.array([0.4, log_sd, 0.3, -0.2])
    places = place + np.array([[0.0] * 4, [0.2, -0.1, -0.4, 0.1], [-0.3, 0.4, 0.9, -0.2]])
    found, law = [], SlopeLaw(problem)
    for theta, value in zip(places, law.log_densities(places), strict=True):
        sigma = np.exp(theta[3])
        priors = stats.halfnorm.logpdf(np.exp(theta[:2])).sum() + theta[:2].sum()
        priors += np.log1p(-(np.tanh(theta[2]) ** 2)) + stats.t.logpdf(sigma, 3.0) + theta[3]
        found.append(value - priors - log_likelihood(problem, theta))
    np.testing.assert_allclose(found, found[0], atol=1e-4)


@pytest.mark.parametrize("theta", PLACES)
def test_coefficients_and_effects_are_those_of_dense_rows(theta):
    problem = made()
    law, (_, mean, covariance) = SlopeLaw(problem), dense(problem, theta)
    beta, u = law.coefficients(Constant(0.0), np.array([theta]))
    np.testing.assert_allclose(np.r_[beta[0], u.ravel()], mean, atol=1e-6)
    rng = np.random.default_rng(0)
    beta, u = law.coefficients(rng, np.tile(theta, (800, 1)))
    draws = np.column_stack([beta, u.reshape(800, -1)])
    ratio = draws.var(axis=0) / np.diag(covariance)
    assert (np.abs(ratio - 1.0) < 4.5 * np.sqrt(2.0 / 800)).all()
    error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / 800)
    assert (np.abs(np.cov(draws.T) - covariance) < 5.0 * error).all()


@pytest.mark.slow
def test_correlations_are_uniform_over_all_correlation_matrices():
    """Of three: each has the law of 2b - 1, b ~ Beta(3/2, 3/2), of variance 1/4."""
    z = np.random.default_rng(0).uniform(-1.0, 1.0, (20_000, 3))
    found = [Covariance(np.r_[np.zeros(3), np.arctanh(row)], 3) for row in z]
    weight = np.exp([one.log_p for one in found]) / np.prod(1.0 - z**2, axis=1)
    squares = np.square([one.correlations for one in found])
    mean = np.average(squares, axis=0, weights=weight)
    np.testing.assert_allclose(mean, 0.25, atol=0.01)


@pytest.mark.slow
def test_proposals_reach_slopes_that_hardly_vary(monkeypatch):
    """Effects vary and slopes do not; the Hessian at the mode is too narrow for the latter."""
    problem = problem_of(Linear, n=100, sizes=(6,), seed=2, weight=np.ones(100), slopes=[[1]])
    request = Request(seed=0, n_draws=3000, n_chains=4, thin=1)
    found = run_slopes(problem, request)
    assert found.diagnostics["min_ess"] > 0.15 * 12_000

    def at_the_mode(law, rng):
        return one_student(*mode_and_width(law))

    monkeypatch.setattr(linear_slopes, "fitted_proposal", at_the_mode)
    plain = run_slopes(problem, request)
    assert plain.diagnostics["min_ess"] < 0.2 * found.diagnostics["min_ess"]


@pytest.mark.parametrize("n_warmup", [0, 7])
def test_a_warm_up_that_is_asked_for_is_made(n_warmup):
    problem, request = made(), Request(seed=0, n_draws=60, n_chains=2, thin=1)
    assert run_slopes(problem, request).n_warmup == linear_slopes.WARMUP
    found = run_slopes(problem, replace(request, n_warmup=n_warmup))
    assert found.n_warmup == n_warmup
    later = run_slopes(problem, replace(request, n_warmup=0, n_draws=60 + n_warmup))
    np.testing.assert_array_equal(found.draws[..., -4:], later.draws[:, n_warmup:, -4:])


def test_draws_have_the_law():
    """Means and spreads under the draws, and under weighted draws of another proposal."""
    problem = made(n=80, sizes=(12,))
    found = run_slopes(problem, Request(seed=0, n_draws=4000, n_chains=4, thin=4))
    law = SlopeLaw(problem)
    mode, root = mode_and_width(law)
    x = np.random.default_rng(1).standard_t(4.0, (100_000, law.n))
    places = mode + 1.5 * x @ root.T
    log_w = law.log_densities(places) - stats.t.logpdf(x, 4.0).sum(axis=1)
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    D = problem.n_coefficients
    for draw, place in ((D, 3), (D + 1, 0), (D + 2, 1)):
        draws, values = found.draws[..., draw].ravel(), places[:, place]
        mean, sd = w @ values, np.sqrt(w @ (values - w @ values) ** 2)
        for f in (lambda v: (v - mean) / sd, lambda v: ((v - mean) / sd) ** 2):  # noqa: B023
            wanted = w @ f(values)
            error = np.sqrt(w**2 @ (f(values) - wanted) ** 2 + f(draws).var() / (0.3 * draws.size))
            assert error < 0.06
            assert abs(f(draws).mean() - wanted) < 4.0 * error
    assert found.diagnostics["acceptance"] > 0.5


def test_factors_where_slopes_are_much_wider_than_the_noise():
    """A proposal far in the tail, and levels of one row: I is lost beside a matrix of rank one."""
    rng = np.random.default_rng(0)
    z = np.stack([np.ones(6), 1.0 + rng.random(6)], axis=1)
    F, none = np.zeros((2, 6, 2, 2))
    F[:, 0] = z
    sums = SlopeSums(F, none, np.eye(2), np.eye(1), np.zeros(1), 0.0, 6.0, 0.0)
    flat = np.repeat(PositiveFlat()._table((1,), "scale"), 2, axis=0)  # of s, not of log s
    places, found = np.array([[0.0, 0.0, 0.3], [20.0, 19.0, 0.3], [28.0, 27.0, 0.3]]), np.empty(3)
    slope_log_densities(sums, flat, flat[:0], places, found)

    def exact(place):
        v = z @ Covariance(place, 2).C
        return place[:2].sum() - 0.5 * np.log1p(np.square(v).sum(axis=1)).sum()  # |I + v vᵀ|

    wanted = np.array([exact(place) for place in places])
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=1e-3)


def test_far_places_have_no_density():
    law = SlopeLaw(made())
    found = law.log_densities(np.array([PLACES[0], [41.0, 0.0, 0.0, 0.0], [np.nan, 0.0, 0.0, 0.0]]))
    assert np.isfinite(found).tolist() == [True, False, False]


def other(problem, y, prior):
    """The same table with another response and prior."""
    target = problem.target
    target = Target(problem.design[:, :-1], y, target.weight, Linear(), prior)
    return replace(problem, target=target)


def test_an_improper_posterior_is_named():
    problem = problem_of(Linear, n=4, d=5, sizes=(2,), slopes=[[1]])
    prior = np.concatenate([Flat()._table((6,)), problem.target.prior[6:]])
    with pytest.raises(ValueError, match="Improper posterior"):
        SlopeLaw(other(problem, np.arange(4.0), prior))


@pytest.mark.slow
def test_chains_that_stay_where_they_are_get_more_proposals():
    """An outlier: a third of the proposals are taken, and chains stay at some for long."""
    problem = problem_of(
        Linear, n=80, d=3, sizes=(8,), weight=np.ones(80), slopes=[[0, 1]], intercept=Normal()
    )
    y = problem.target.data.facts[:, FACT_Y].copy()
    y[0] += 100.0
    problem = other(problem, y, problem.target.prior)
    found = run_slopes(problem, Request(seed=0, n_draws=200, n_chains=2))
    assert found.thin > 1
    short = run_slopes(problem, Request(seed=0, n_draws=200, n_chains=2, thin=1))
    assert short.diagnostics["min_ess"] < 0.5 * found.diagnostics["min_ess"]
