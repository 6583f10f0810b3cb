"""Robust regression with few rows for each column: the centre is where the mass is."""

import numpy as np
import pytest
from scipy import linalg, stats
from scipy.special import gammaln

from skbayes_sg import BayesianRobustRegression
from skbayes_sg.engine.target import Target
from skbayes_sg.geometry import mode, noise_collapse
from skbayes_sg.geometry.mode import newton
from skbayes_sg.geometry.noise_collapse import has_collapsed, is_near, may_collapse, weighted_centre
from skbayes_sg.models import LinearKnownNoise, Robust
from skbayes_sg.priors import Gamma, HalfStudentT, Normal


def table(n, d, seed=0, outliers=0.0):
    """Normal columns, and a response with Student's t noise of three degrees of freedom."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ (0.3 * rng.normal(size=d)) + rng.standard_t(3, size=n)
    return X, y + 100.0 * (rng.random(n) < outliers)


def target_of(X, y, weight=None, model=None):
    """The posterior without an intercept, under a wide normal prior."""
    model, weight = model or Robust(), np.ones(len(y)) if weight is None else weight
    tables = [Normal(scale=10.0)._table((X.shape[1],))]
    if model.n_extra:
        tables += [HalfStudentT(scale=3.0)._table((1,)), Gamma()._table((1,))]
    return Target(X, y, weight, model, np.concatenate(tables), intercept=False)


def found_by(target, **options):
    """Where the search for the centre ends, beginning at the middle of the prior."""
    return mode.find_centre(target, dense=True, rng=np.random.default_rng(0), **options)


def test_where_the_noise_may_collapse():
    X, y = table(120, 20)
    assert may_collapse(target_of(X, y))
    assert not may_collapse(target_of(X, y, model=LinearKnownNoise()))
    assert not may_collapse(target_of(X[:20], y[:20]))  # coefficients fit all rows
    assert not may_collapse(target_of(X[:, :8], y))
    assert not may_collapse(target_of(X, y, weight=np.full(120, 0.1)))


def test_near_is_three_times_where_the_density_is_unbounded():
    target = target_of(*table(120, 20))
    theta = np.zeros(22)
    for nu, near in ((0.61, False), (0.59, True)):  # 3 x 20/(120 - 20) = 0.6
        theta[-1] = np.log(nu)
        assert is_near(target, theta) is near


def test_steps_of_the_weighted_centre_by_hand():
    """One step with explicit inverses, rows of different weights and a prior that matters."""
    X, y = table(30, 4)
    weight = np.linspace(0.5, 2.0, 30)
    target = target_of(X, y, weight)
    theta = np.array([0.1, -0.2, 0.3, 0.0, np.log(0.8), np.log(4.0)])
    _, after = noise_collapse._Fit(target)._step(theta)
    z = (y - X @ theta[:4]) / 0.8
    omega = np.diag(weight * 5.0 / (4.0 + z**2))
    of_rows = X.T @ omega @ X / 0.64
    H = linalg.inv(of_rows + np.eye(4) / 100.0)
    beta = H @ X.T @ omega @ y / 0.64
    np.testing.assert_allclose(after[:4], beta, rtol=1e-9)
    freedom = weight.sum() - np.trace(H @ of_rows)
    variance = (y - X @ beta) @ omega @ (y - X @ beta) / freedom
    np.testing.assert_allclose(after[4:], [0.5 * np.log(variance), np.log(4.0)], rtol=1e-9)


def test_the_log_mass_is_the_law_with_coefficients_integrated_out():
    """With ν so large that the noise is normal, Laplace's approximation is exact."""
    X, y = table(30, 4)
    target, found = target_of(X, y), []
    for sd in (0.8, 1.1, 1.5):
        S = sd**2 * np.eye(30) + 100.0 * X @ X.T
        exact = stats.multivariate_normal(np.zeros(30), S).logpdf(y)
        exact += stats.t(3).logpdf(sd / 3.0) + np.log(sd)  # prior of σ, and log σ as a parameter
        beta = linalg.solve(X.T @ X / sd**2 + np.eye(4) / 100.0, X.T @ y / sd**2)
        theta = np.concatenate([beta, [np.log(sd), np.log(1e7)]])
        found.append(noise_collapse._Fit(target)._step(theta)[0] - exact)
    np.testing.assert_allclose(np.ptp(found), 0.0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_collapsing_search_is_left_for_where_the_mass_is(seed):
    target = target_of(*table(200, 60, seed))
    middle = np.append(np.zeros(60), [1.0, 2.0])
    collapsed = newton(target, middle, 1e-3, max_iter=60)
    centre = found_by(target)
    assert has_collapsed(collapsed, centre.theta)
    assert not centre.is_mode
    assert 0.5 < np.exp(centre.theta[-2]) < 2.0


@pytest.mark.slow
def test_the_search_ends_as_soon_as_the_noise_has_collapsed(monkeypatch):
    """Further steps go on down a density without end: two hundred of them, half a minute long."""
    n_steps, hessian = [0], mode._Objective.hessian

    def counted(self, phi):
        n_steps[0] += 1
        return hessian(self, phi)

    monkeypatch.setattr(mode._Objective, "hessian", counted)
    assert not found_by(target_of(*table(400, 120))).is_mode
    assert n_steps[0] < 100


@pytest.mark.slow
def test_a_mode_that_is_near_collapse_is_a_mode(monkeypatch):
    """One row in ten is far away, and ν is .5, which is taken for near here."""
    monkeypatch.setattr(noise_collapse, "NEAR", 6.0)
    target = target_of(*table(200, 25, outliers=0.1))
    centre = found_by(target)
    assert is_near(target, centre.theta)
    assert centre.is_mode
    np.testing.assert_allclose(centre.distance, 0.0, atol=1e-3)


@pytest.mark.slow
def test_the_centre_is_that_of_most_rows():
    X, y = table(200, 50, outliers=0.1)
    clean = y < 50.0
    beta = weighted_centre(target_of(X, y))[:50]
    assert np.median(np.abs(y - X @ beta)[clean]) < 2.0
    assert np.abs(y - X @ beta)[~clean].min() > 50.0


@pytest.mark.parametrize("y", [np.zeros(60), np.eye(60)[0], table(60, 15)[0] @ np.ones(15)])
def test_rows_that_are_fitted_exactly_leave_the_centre_finite(y):
    assert np.isfinite(weighted_centre(target_of(table(60, 15)[0], y))).all()


def gibbs(X, y, prior_sd, sd_scale, n=4000, warm=1000, seed=1):
    """Draws of coefficients, σ and ν: rows have precisions ω, and (log σ, log ν) random walks."""
    rng = np.random.default_rng(seed)
    b, state, draws = np.zeros(X.shape[1]), np.log([np.std(y), 5.0]), []

    def log_p(state, residual):
        sd, nu = np.exp(state)
        prior = -2.0 * np.log1p((sd / sd_scale) ** 2 / 3.0) + np.log(nu) - 0.1 * nu
        total = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu) - np.log(sd)
        rows = -0.5 * (nu + 1.0) * np.log1p((residual / sd) ** 2 / nu)
        return rows.sum() + len(y) * total + prior + state.sum()

    for k in range(n + warm):
        residual = y - X @ b
        for _ in range(6):
            new = state + rng.normal(size=2) * [0.1, 0.3] * rng.permutation([0, 1])
            if np.log(rng.random()) < log_p(new, residual) - log_p(state, residual):
                state = new
        sd, nu = np.exp(state)
        omega = rng.gamma(0.5 * (nu + 1.0), 2.0 / (nu + (residual / sd) ** 2))
        root = linalg.cholesky((X.T * (omega / sd**2)) @ X + np.eye(len(b)) / prior_sd**2)
        mean = linalg.cho_solve((root, False), X.T @ (omega * y) / sd**2)
        b = mean + linalg.solve_triangular(root, rng.normal(size=len(b)))
        if k >= warm:
            draws.append(np.concatenate([b, [sd, nu]]))
    return np.array(draws)


@pytest.mark.slow
@pytest.mark.parametrize("outliers", [0.1, pytest.param(0.0, marks=pytest.mark.slow)])
def test_posteriors_are_those_of_another_sampler(outliers):
    """Four rows for each column; the search for the mode alone ended at noise of 0.1."""
    X, y = table(200, 50, seed=3, outliers=outliers)
    model = BayesianRobustRegression(
        prior=Normal(scale=2.0), noise_prior=HalfStudentT(scale=3.0), df_prior=Gamma(),
        fit_intercept=False, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert model.posterior_.check()
    reference = gibbs(X, y, 2.0, 3.0)
    names = model.posterior_["coef"], model.posterior_["noise_std"][..., None]
    draws = np.concatenate([part.reshape(4000, -1) for part in names], axis=1)
    wanted, sd = reference[:, :51].mean(axis=0), reference[:, :51].std(axis=0)
    assert np.abs((draws.mean(axis=0) - wanted) / sd).max() < 0.25
    assert np.abs(np.log(draws.std(axis=0) / sd)).max() < 0.15
