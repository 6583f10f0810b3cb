"""Simulation-based calibration, and coverage of intervals, of the default recipe.

Parameters from the prior, data from the parameters, draws from the posterior: the rank of the truth
among the draws is uniform if the draws are right (Talts et al. 2018). Quantities are the
parameters, the log-likelihood and the square of the coefficients, since each sees errors that the
others miss; statistics are the mean and the mean square of normal scores of the ranks, which have
more power than a chi-square of counts. The twins have to fail.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.priors import HalfStudentT, Normal

N, D, DRAWS = 50, 3, 99
SEEDS, FITS = (0, 1), 1250
pytestmark = pytest.mark.slow


def linear(rng):
    """Truth, its log-likelihood as a function, and draws (coefficients, intercept, σ)."""
    X = rng.normal(size=(N, D))
    beta, b = rng.normal(size=D), 2.0 * rng.normal()
    sigma = np.abs(rng.standard_t(3.0))
    y = X @ beta + b + sigma * rng.normal(size=N)
    noise = HalfStudentT(df=3.0, scale=1.0)
    model = BayesianLinearRegression(
        prior=Normal(), intercept_prior=Normal(scale=2.0), noise_prior=noise,
        n_draws=DRAWS, n_chains=1, random_state=rng.integers(2**31),
    ).fit(X, y)  # fmt: skip

    def log_likelihood(theta):
        eta = theta[..., :D] @ X.T + theta[..., D, None]
        return stats.norm.logpdf(y, eta, theta[..., D + 1, None]).sum(axis=-1)

    return np.r_[beta, b, sigma], log_likelihood, model.posterior_.flat[0]


def logistic(rng):
    """The same for (coefficients, intercept); data with a single class are made again."""
    while True:
        X = rng.normal(size=(N, D))
        theta = np.r_[rng.normal(size=D), 2.0 * rng.normal()]
        y = rng.random(N) < expit(X @ theta[:D] + theta[D])
        if 0 < y.sum() < N:  # what is left out of the data is left out of the law below, too
            break
    model = BayesianLogisticRegression(
        prior=Normal(), intercept_prior=Normal(scale=2.0), n_draws=DRAWS, n_chains=1, thin=5,
        random_state=rng.integers(2**31),
    ).fit(X, y)  # fmt: skip

    def log_likelihood(theta):
        eta = theta[..., :D] @ X.T + theta[..., D, None]
        return stats.bernoulli.logpmf(y, expit(eta)).sum(axis=-1)

    return theta, log_likelihood, model.posterior_.flat[0]


MODELS = {"linear": linear, "logistic": logistic}


def quantities(theta, log_likelihood):
    """Parameters, log-likelihood, squared norm of the coefficients: (..., parameters + 2)."""
    norm = (theta[..., :D] ** 2).sum(axis=-1)
    return np.concatenate([theta, log_likelihood(theta)[..., None], norm[..., None]], axis=-1)


@cache
def fits(model, seed):
    """Truths, log-likelihoods and draws of many made tables."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [MODELS[model](rng) for _ in range(FITS)]


def ranks(model, seed, spoil=lambda draws: draws):
    """How many draws lie below the truth, (fits, quantities)."""
    return np.array([
        (quantities(spoil(draws), log_p) < quantities(truth, log_p)).sum(axis=0)
        for truth, log_p, draws in fits(model, seed)
    ])  # fmt: skip


def p_values(rank):
    """Of the mean and of the mean square of each quantity's normal scores."""
    n, rng = len(rank), np.random.default_rng(0)
    z = stats.norm.ppf((rank + rng.random(rank.shape)) / (DRAWS + 1))
    of_mean = 2.0 * stats.norm.sf(np.abs(np.sqrt(n) * z.mean(axis=0)))
    square = (z**2).sum(axis=0)
    of_square = 2.0 * np.minimum(stats.chi2.cdf(square, n), stats.chi2.sf(square, n))
    return np.r_[of_mean, of_square]


def narrower(draws):
    """Draws of standard deviations that are 0.8 of what they should be."""
    return draws.mean(axis=0) + 0.8 * (draws - draws.mean(axis=0))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("model", MODELS)
def test_ranks_are_uniform(model, seed):
    p = p_values(ranks(model, seed))
    assert p.min() > 1e-4 / len(p), p


@pytest.mark.parametrize("model", MODELS)
def test_ranks_of_a_planted_error_are_not(model):
    p = p_values(ranks(model, SEEDS[0], narrower))
    assert p.min() < 1e-4 / len(p)


@pytest.mark.parametrize("model", MODELS)
def test_intervals_cover(model):
    # Between the fifth and the ninety-fifth of 99 draws: exactly 90 % for exact draws.
    rank = np.concatenate([ranks(model, seed) for seed in SEEDS])
    coverage = ((rank >= 5) & (rank < 95)).mean(axis=0)
    assert (coverage >= 0.88).all(), coverage
    assert (coverage <= 0.92).all(), coverage
