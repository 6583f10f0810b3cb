"""Slopes that vary with the level, against dense linear algebra."""

import numpy as np
import pytest
from group_tables import Constant, problem_of
from scipy import stats

from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.groups import linear_slopes
from skbayes_sg.groups.covariance import factor_of
from skbayes_sg.groups.linear_slopes import SlopeLaw, _factors, mode_and_width, run_slopes
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import Linear
from skbayes_sg.priors import Normal
from skbayes_sg.priors.columns import LOC, SCALE
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
    C = factor_of(np.array(theta[:2]), np.array(theta[2:3]))[0]
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
    found = np.array([law.log_density(np.array(theta)) for theta in PLACES])
    wanted = []
    for theta in PLACES:
        s, sigma = np.exp(theta[:2]), np.exp(theta[3])
        value = dense(problem, theta)[0] + np.sum(stats.halfnorm.logpdf(s) + np.log(s))
        value += np.log1p(-(np.tanh(theta[2]) ** 2))  # a uniform correlation
        wanted.append(value + stats.t.logpdf(sigma, 3.0) + theta[3])
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), atol=1e-6)


@pytest.mark.parametrize("theta", PLACES)
def test_coefficients_and_effects_are_those_of_dense_rows(theta):
    problem = made()
    law, (_, mean, covariance) = SlopeLaw(problem), dense(problem, theta)
    beta, u = law.draw_coefficients(Constant(0.0), np.array(theta))
    np.testing.assert_allclose(np.r_[beta, u.ravel()], mean, atol=1e-6)
    rng = np.random.default_rng(0)
    draws = [law.draw_coefficients(rng, np.array(theta)) for _ in range(800)]
    draws = np.array([np.r_[beta, u.ravel()] for beta, u in draws])
    ratio = draws.var(axis=0) / np.diag(covariance)
    assert (np.abs(ratio - 1.0) < 4.5 * np.sqrt(2.0 / 800)).all()
    error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / 800)
    assert (np.abs(np.cov(draws.T) - covariance) < 5.0 * error).all()


def test_correlations_are_uniform_over_all_correlation_matrices():
    """Of three: each has the law of 2b - 1, b ~ Beta(3/2, 3/2), of variance 1/4."""
    z = np.random.default_rng(0).uniform(-1.0, 1.0, (20_000, 3))
    found = [factor_of(np.zeros(3), np.arctanh(row))[1:] for row in z]
    weight = np.exp([log_p for log_p, _ in found]) / np.prod(1.0 - z**2, axis=1)
    squares = np.square([correlations for _, correlations in found])
    mean = np.average(squares, axis=0, weights=weight)
    np.testing.assert_allclose(mean, 0.25, atol=0.01)


@pytest.mark.slow
def test_proposals_reach_slopes_that_hardly_vary(monkeypatch):
    """Effects vary and slopes do not; the Hessian at the mode is too narrow for the latter."""
    problem = problem_of(Linear, n=100, sizes=(6,), seed=2, weight=np.ones(100), slopes=[[1]])
    request = Request(seed=0, n_draws=300, n_chains=2)
    assert run_slopes(problem, request).diagnostics["min_ess"] > 0.15 * 600
    monkeypatch.setattr(linear_slopes, "fitted_proposal", lambda law, rng: mode_and_width(law))
    with pytest.warns(SamplerConvergenceWarning):
        run_slopes(problem, request)


@pytest.mark.slow
def test_draws_have_the_law():
    """Means under the draws, and under weighted draws of a wide proposal."""
    problem = made(n=80, sizes=(12,))
    found = run_slopes(problem, Request(seed=0, n_draws=1000, n_chains=2))
    law = SlopeLaw(problem)
    mode, root = mode_and_width(law)
    x = np.random.default_rng(1).standard_t(4.0, (6000, law.n))
    places = mode + 1.3 * x @ root.T
    log_w = np.array([law.log_density(place) for place in places])
    log_w -= stats.t.logpdf(x, 4.0).sum(axis=1)
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    D = problem.n_coefficients
    pairs = [(found.draws[..., D], places[:, 3]), (found.draws[..., D + 1], places[:, 0])]
    pairs.append((found.draws[..., D + 2], places[:, 1]))
    for draws, values in pairs:
        mean = w @ values
        error = np.hypot(draws.std() / np.sqrt(600), np.sqrt(w**2 @ (values - mean) ** 2))
        assert abs(draws.mean() - mean) < 4.0 * error
        assert abs(draws.mean() + 0.4 * draws.std() - mean) > 4.0 * error
    assert found.diagnostics["acceptance"] > 0.5


def test_factors_where_slopes_are_much_wider_than_the_noise():
    # A proposal far in the tail, and levels of one row: I is lost beside a matrix of rank one.
    rng = np.random.default_rng(0)
    z = np.stack([np.ones(6), 1.0 + rng.random(6)], axis=1)
    G, C = z[:, :, None] * z[:, None, :], np.array([[1.0, 0.0], [0.3, 0.8]])
    np.testing.assert_allclose(_factors(G, C), np.linalg.cholesky(np.eye(2) + C.T @ G @ C))
    size = 1e12 * np.diag([1.0, 1.0 / 3.0])
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(np.eye(2) + (C @ size).T @ G @ (C @ size))
    found = _factors(G, C @ size)
    assert (np.diagonal(found, axis1=1, axis2=2) > 0.0).all()
    log_det = 2.0 * np.log(np.diagonal(found, axis1=1, axis2=2)).sum(axis=1)
    exact = np.log1p(np.einsum("li,ij,lj->l", z, C @ size @ size.T @ C.T, z))  # |I + v vᵀ|
    np.testing.assert_allclose(log_det, exact, atol=1e-3)  # 1 beside 1e12 has four digits
