"""Linear regression with one learned scale, against integrals on a grid of scale and noise."""

import numpy as np
import pytest
from scipy import linalg, stats

from skbayes_sg import BayesianLinearRegression
from skbayes_sg.engine.target import Target
from skbayes_sg.models import Linear
from skbayes_sg.priors import Flat, HalfCauchy, HalfNormal, InverseGamma, Normal, Units
from skbayes_sg.recipe.request import Request
from skbayes_sg.shrinkage.quadrature import TwoLaws, run_quadrature

N_DRAWS = 20_000
Z = 5.0  # standard errors


def problem(n=8, d=2, *, intercept=True, prior=None, noise=2.0, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, d)), rng.uniform(0.5, 2.0, n)
    y = X @ rng.normal(size=d) + 1.0 + 0.7 * rng.normal(size=n)
    scales = Normal(loc=0.3, scale=prior or HalfCauchy("auto"))._learned(
        (d,), Units(columns=lambda: np.linspace(0.5, 2.0, d))
    )
    tables = [scales.rows(), Flat()._table((1,))[: int(intercept)], HalfNormal(noise)._table((1,))]
    return Target(X, y, w, Linear(), np.concatenate(tables), intercept=intercept), scales


def exact(target, scales, log_prior, noise=2.0):
    """Weights of a grid of (log τ, log σ), with E(β | τ, σ), by the textbook."""
    X, y, w = target.X, target.data.facts[:, 0], target.weight
    s, t = np.linspace(-3.5, 4.0, 60), np.linspace(-12.0, 9.0, 160)
    log_p, means = np.empty((len(t), len(s))), np.empty((len(t), len(s), X.shape[1]))
    A = np.column_stack([X, np.ones(len(y))]) if target.intercept else X
    loc = np.append(scales.loc, [0.0] * target.intercept)
    for a, tau in enumerate(np.exp(t)):
        for b, sigma in enumerate(np.exp(s)):
            q = np.append((tau * scales.unit) ** -2.0, [0.0] * target.intercept)
            H = (A.T * w) @ A / sigma**2 + np.diag(q)
            m = linalg.solve(H, A.T @ (w * y) / sigma**2 + q * loc, assume_a="pos")
            misfit = w @ (y - A @ m) ** 2 / sigma**2 + q @ (m - loc) ** 2
            log_p[a, b] = -w.sum() * np.log(sigma) - len(scales.loc) * np.log(tau) - 0.5 * misfit
            log_p[a, b] -= 0.5 * np.linalg.slogdet(H)[1]
            means[a, b] = m[: X.shape[1]]
    log_p += (log_prior(np.exp(t)) + t)[:, None]
    log_p += stats.halfnorm(scale=noise).logpdf(np.exp(s)) + s
    p = np.exp(log_p - log_p.max())
    return t, s, p / p.sum(), means


PRIORS = {
    "half_cauchy": (HalfCauchy(1.3), stats.halfcauchy(scale=1.3).logpdf),
    "auto": (HalfCauchy("auto"), stats.halfcauchy.logpdf),
    "inverse_gamma": (
        InverseGamma(1.5, 0.7),
        lambda v: stats.invgamma(1.5, scale=0.7).logpdf(v**2) + np.log(v),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prior", "intercept"),
    [
        ("half_cauchy", True),
        pytest.param("auto", False, marks=pytest.mark.slow),
        pytest.param("inverse_gamma", True, marks=pytest.mark.slow),
    ],
)
def test_draws_have_the_law_of_a_grid(prior, intercept):
    prior, log_prior = PRIORS[prior]
    target, scales = problem(intercept=intercept, prior=prior)
    t, s, p, means = exact(target, scales, log_prior)
    draws = TwoLaws(target, scales).draw(*map(np.random.default_rng, (0, 1)), N_DRAWS)
    for k, (places, mass) in enumerate([(s, p.sum(axis=0)), (t, p.sum(axis=1))]):
        own, mean = draws[:, k - 2], places @ mass
        sd = np.sqrt((places - mean) ** 2 @ mass)
        assert abs(own.mean() - mean) < Z * sd / np.sqrt(N_DRAWS)
        fourth = (places - mean) ** 4 @ mass
        error = np.sqrt((fourth / sd**4 - 1.0) / N_DRAWS)
        assert abs(own.var() / sd**2 - 1.0) < Z * error
    beta = draws[:, : target.n_features]
    mean = np.einsum("ab,abd->d", p, means)
    assert (np.abs(beta.mean(axis=0) - mean) < Z * beta.std(axis=0) / np.sqrt(N_DRAWS)).all()


def test_coefficients_and_intercept_given_both_scales_are_normal():
    """Standardised by their exact law at each draw, they are N(0, I)."""
    target, scales = problem(6, 3)
    draws = TwoLaws(target, scales).draw(*map(np.random.default_rng, (0, 1)), 4000)
    A, y, w = np.column_stack([target.X, np.ones(6)]), target.data.facts[:, 0], target.weight
    z = np.empty((4000, 4))
    for k, (beta, s, t) in enumerate(zip(draws[:, :4], draws[:, 4], draws[:, 5], strict=True)):
        q = np.append(np.exp(-2.0 * t) / scales.unit**2, 0.0)
        H = (A.T * w) @ A * np.exp(-2.0 * s) + np.diag(q)
        shift = A.T @ (w * y) * np.exp(-2.0 * s) + q * np.append(scales.loc, 0.0)
        L = linalg.cholesky(H, lower=True)
        z[k] = L.T @ (beta - linalg.cho_solve((L, True), shift))
    assert (np.abs(z.mean(axis=0)) < Z / np.sqrt(4000)).all()
    assert (np.abs(z.T @ z / 4000 - np.eye(4)) < Z * np.sqrt(2.0 / 4000)).all()


def test_more_columns_than_rows_and_no_effect():
    rng = np.random.default_rng(0)
    scales = Normal(scale=HalfCauchy(1.0))._learned((40,), Units())
    tables = [scales.rows(), Flat()._table((1,)), HalfNormal(2.0)._table((1,))]
    X, y = rng.normal(size=(20, 40)), rng.normal(size=20)
    target = Target(X, y, np.ones(20), Linear(), np.concatenate(tables), intercept=True)
    found = run_quadrature(target, scales, Request(n_draws=500, n_chains=2))
    tau = np.exp(found.draws[..., -1])
    assert found.draws.shape == (2, 500, 43)
    assert np.isfinite(found.draws).all()
    assert np.quantile(tau, 0.05) < 0.05 < np.quantile(tau, 0.95) < 1.0


@pytest.mark.parametrize("noise", [1.0, 1e-5])
def test_columns_without_a_trace_keep_their_prior(noise):
    scales = Normal(scale=HalfNormal(3.0))._learned((2,), Units())
    tables = [scales.rows(), Flat()._table((1,)), HalfNormal(2.0 * noise)._table((1,))]
    y = noise * np.random.default_rng(0).normal(size=50)
    zeros = np.zeros((50, 2))
    target = Target(zeros, y, np.ones(50), Linear(), np.concatenate(tables), intercept=True)
    found = run_quadrature(target, scales, Request(n_draws=1000, n_chains=4))
    beta, tau = found.draws[..., :2].ravel(), np.exp(found.draws[..., -1]).ravel()
    assert stats.kstest(tau, stats.halfnorm(scale=3.0).cdf).pvalue > 1e-4
    assert abs(beta.std() / 3.0 - 1.0) < 0.1


def test_few_independent_draws_are_not_accused():
    """Of eight draws of each chain R-hat is above its limit by chance."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    prior = Normal(scale=HalfCauchy(1.0))
    model = BayesianLinearRegression(prior=prior, n_draws=8, random_state=0).fit(X, X[:, 0] ** 3)
    assert model.sampler_ == "exact"
    assert model.posterior_.check()
