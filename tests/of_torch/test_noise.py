"""The noise of modules that may fit all rows: its law given all else, and in chains."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from torch import nn

from skbayes_sg.torch import BayesianModuleRegressor
from skbayes_sg.torch.noise import draw_log_noise
from skbayes_sg.torch.target import NormalLikelihood

PRIOR = NormalLikelihood.prior_values


def exact(X, y, temperature=1.0):
    """σ on a grid, and its posterior for weights and an intercept of N(0, 1), in units of y."""
    A = np.column_stack([X, np.ones(len(X))])
    z = (y - y.mean()) / y.std()
    values, vectors = np.linalg.eigh(A @ A.T)
    square = (vectors.T @ z) ** 2
    s = np.linspace(np.log(1e-6), np.log(20.0), 4000)
    sigma, T = np.exp(s), temperature
    variance = np.maximum(values, 0.0) + sigma[:, None] ** 2
    log_p = -0.5 * np.log(variance).sum(axis=1) - 0.5 * (square / variance).sum(axis=1)
    log_p -= 2.0 * np.log1p(sigma**2 / 3.0) - s
    p = np.exp((log_p - log_p.max()) / T)
    return sigma * y.std(), p / p.sum()


@pytest.mark.parametrize(
    ("n", "squares", "temperature"),
    [(1.0, 0.3, 1.0), (5.0, 1e-9, 1.0), (60.0, 40.0, 1.0), (1e5, 10.0, 1.0), (20.0, 3.0, 4.0)],
)
def test_quantiles_of_the_noise_given_residuals(n, squares, temperature):
    def log_density(s):
        likelihood = n * s + 0.5 * squares * np.exp(-2.0 * s)
        return -(likelihood + float(PRIOR(torch.tensor(s)))) / temperature

    for u in (0.05, 0.5, 0.95):
        s = draw_log_noise(n, squares, PRIOR, temperature, u)
        mode = 0.5 * np.log(squares / n)
        width = np.sqrt(temperature / (2.0 * n))
        places = mode + width * np.r_[-60.0, -20.0, -5.0, 0.0, 5.0, 20.0, 60.0, 400.0]
        places = np.sort(np.r_[np.maximum(places, mode - 6.0), s])
        top = log_density(mode)
        parts = [
            integrate.quad(lambda v: np.exp(log_density(v) - top), a, b)[0]  # noqa: B023
            for a, b in pairwise(places)
        ]
        below = np.searchsorted(places, s)
        assert sum(parts[:below]) / sum(parts) == pytest.approx(u, abs=2e-3)


@pytest.mark.parametrize(("n_rows", "d"), [(10, 20), (2, 4)])
def test_noise_beside_more_weights_than_rows_is_that_of_the_closed_form(n_rows, d):
    """It was 1e-4 where the posterior has 0.05 to 1.9: the search had gone to σ = 0."""
    rng = np.random.default_rng(n_rows)
    X = rng.standard_normal((n_rows, d))
    y = X[:, 0] + 0.5 * rng.standard_normal(n_rows)
    sigma, p = exact(X, y)
    mean = sigma @ p
    spread = np.sqrt((sigma - mean) ** 2 @ p)
    model = BayesianModuleRegressor(nn.Linear(d, 1), random_state=0).fit(X, y)
    draws = np.exp(model.posterior_.draws[..., -1].astype(float)).ravel() * model.y_scale_
    assert abs(draws.mean() - mean) < 0.5 * spread
    assert draws.max() < 20.0 * mean
    low, high = (sigma[np.searchsorted(np.cumsum(p), q)] for q in (0.05, 0.95))
    assert np.mean(draws < low) < 0.3
    assert np.mean(draws > high) < 0.15


def test_noise_of_a_network_with_more_weights_than_rows_stays_where_it_belongs():
    """There were draws of 4.7e10, and return_std was 3.5e9, for y of standard deviation 0.8."""
    rng = np.random.default_rng(60)
    X = rng.standard_normal((60, 4))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(60)
    net = nn.Sequential(nn.Linear(4, 50), nn.Tanh(), nn.Linear(50, 1))
    model = BayesianModuleRegressor(net, n_chains=2, thin=40, random_state=0).fit(X, y)
    draws = np.exp(model.posterior_.draws[..., -1].astype(float)) * model.y_scale_
    assert 0.03 < draws.min()
    assert draws.max() < 0.8
    assert model.diagnostics_["temperature"] == pytest.approx(1.0, abs=0.05)
    assert model.predict(X[:3], return_std=True)[1].max() < 0.6


def test_log_noise_stands_still_between_its_draws():
    """Every tenth step draws it; the gradient and the velocity do not move it."""
    from skbayes_sg.torch import chain as chains

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    seen = []
    step = chains.ModuleChain.step

    def watched(self, h, noise=None):
        seen.append(float(self.flat.theta[-1]))
        return step(self, h, noise)

    chains.ModuleChain.step = watched
    try:
        BayesianModuleRegressor(
            nn.Linear(3, 1), n_draws=4, n_chains=1, start_steps=20, random_state=0
        ).fit(X, X[:, 0] + rng.standard_normal(20))
    finally:
        chains.ModuleChain.step = step
    blocks = np.array(seen[: 10 * (len(seen) // 10)]).reshape(-1, 10)
    np.testing.assert_allclose(blocks, np.repeat(blocks[:, :1], 10, axis=1), atol=1e-6)
    assert len(np.unique(blocks[:, 5])) == len(blocks)
