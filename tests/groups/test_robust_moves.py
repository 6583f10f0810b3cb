"""Moves of robust regression beside those of collapsed coordinates."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from group_tables import problem_of
from scipy import stats

from skbayes_sg import BayesianRobustRegression
from skbayes_sg.diagnostics.convergence import ess_mean
from skbayes_sg.groups.collapsed import CollapsedRows
from skbayes_sg.groups.robust_moves import RobustMoves, robust_moves_of
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import Logistic, Robust
from skbayes_sg.priors import Flat, Gamma, HalfNormal, Laplace, Normal, StudentT
from skbayes_sg.priors.columns import POWER

TAU = 0.7


def small(n=6):
    """Few rows, whose noise has light enough tails for a mean."""
    problem = problem_of(
        Robust, n=n, d=1, sizes=(3,), intercept=Normal(scale=1.0), weight=np.ones(n)
    )
    prior = problem.target.prior.copy()
    prior[2:] = np.concatenate(
        [p._table((1,), "extra") for p in (HalfNormal(1.0), Gamma(shape=8.0, rate=2.0))]
    )
    return replace(problem, target=problem.target.with_prior(prior))


def joint_draws(moves, n, rng):
    """θ and u of chains in which responses are drawn anew after every move: Geweke (2004)."""
    rows = moves.rows
    theta, u = np.array([0.0, 0.0, -0.5, 1.3]), [np.zeros((3, 1))]
    facts = rows.target.data.facts.copy()
    rows.target.data = rows.target.data._replace(facts=facts)
    found = np.empty((n, 7))
    for k in range(n):
        noise = rng.standard_t(np.exp(theta[3]), len(facts))
        facts[:, FACT_Y] = rows.predictors(theta, u)[:, 0] + np.exp(theta[2]) * noise
        moves.move(theta, u, [np.array([np.log(TAU)])], rng)
        found[k] = *theta, *u[0].ravel()
    return found


LAWS = [
    stats.norm(scale=2.0), stats.norm(), stats.halfnorm(), stats.gamma(8.0, scale=0.5),
    *[stats.norm(scale=TAU)] * 3,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("is_wrong", [False, True])
def test_moves_leave_the_prior_where_responses_follow(is_wrong, monkeypatch):
    rows = CollapsedRows(small())
    moves = robust_moves_of(rows)
    assert moves.mixtures is not None
    if is_wrong:  # effects whose prior is left out
        honest = RobustMoves._moved_effects
        monkeypatch.setattr(
            RobustMoves,
            "_moved_effects",
            lambda self, k, u, psi, *more: honest(self, k, u, psi + 1.0, *more),
        )
    found = joint_draws(moves, 8000, np.random.default_rng(0))
    found[:, 2:4] = np.exp(found[:, 2:4])
    shares = np.array([law.cdf(x) for law, x in zip(LAWS, found.T, strict=True)])
    blocks = shares.reshape(len(LAWS), 20, -1)
    errors = blocks.mean(axis=2).std(axis=1, ddof=1) / np.sqrt(20)
    spreads = ((blocks - 0.5) ** 2).mean(axis=2)
    errors_of_spreads = spreads.std(axis=1, ddof=1) / np.sqrt(20)
    off = np.abs(shares.mean(axis=1) - 0.5) / errors
    wide = np.abs(spreads.mean(axis=1) - 1.0 / 12.0) / errors_of_spreads
    assert (max(off.max(), wide.max()) < 4.5) != is_wrong


def test_where_they_can_be_made():
    assert robust_moves_of(CollapsedRows(problem_of(Logistic))) is None
    problem = problem_of(Robust, intercept=Laplace(scale=1.0))
    assert robust_moves_of(CollapsedRows(problem)).mixtures is not None
    shared = problem.target.prior.copy()
    shared[:, POWER] = 0.5
    shared = replace(problem, target=problem.target.with_prior(shared))
    assert robust_moves_of(CollapsedRows(shared)).mixtures is None


PRIORS = [
    (Normal(scale=1.0), stats.norm.logpdf, False),
    (Normal(scale=1.0), stats.norm.logpdf, True),
    (Flat(), np.zeros_like, False),
    (Laplace(scale=0.5), stats.laplace(scale=0.5).logpdf, False),
    (StudentT(df=3.0, scale=0.5), stats.t(3.0, scale=0.5).logpdf, False),
]


@pytest.mark.parametrize(("prior", "log_prior", "is_wrong"), PRIORS)
def test_means_have_the_law_of_weighted_rows(prior, log_prior, is_wrong):
    """Of (b, u) given the noise, by a grid; the twin counts every row once."""
    sigma, nu, weight = 0.8, 2.0, np.array([0.4, 3.0, 1.7, 0.9])
    seen = np.ones(4) if is_wrong else weight
    problem = problem_of(Robust, 4, 0, (1,), weight=seen, intercept=prior)
    y, rows = problem.target.data.facts[:, FACT_Y], CollapsedRows(problem)
    moves, rng = robust_moves_of(rows), np.random.default_rng(1)
    theta, u = np.array([0.0, np.log(sigma), np.log(nu)]), [np.zeros((1, 1))]
    found = np.empty((6000, 2))
    for k in range(len(found)):
        moves.move_means(theta, u, [np.array([np.log(TAU)])], rows.predictors(theta, u), rng)
        found[k] = theta[0], u[0][0, 0]
    b, v = np.meshgrid(np.linspace(-12.0, 14.0, 1301), np.linspace(-4.0, 4.0, 401), indexing="ij")
    log_p = stats.norm.logpdf(v, scale=TAU) + log_prior(b)
    for own, value in zip(weight, y, strict=True):
        log_p = log_p + own * stats.t.logpdf((value - b - v) / sigma, nu)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    ess = ess_mean(np.stack([found, np.square(found - found.mean(axis=0))], axis=2)[None])
    error, off = 4.5 / np.sqrt(ess.reshape(2, 2)), np.empty((2, 2))
    for j, values in enumerate((b, v)):
        mean = (p * values).sum()
        sd = np.sqrt((p * np.square(values - mean)).sum())
        off[j] = (found[:, j].mean() - mean) / sd, found[:, j].var() / sd**2 - 1.0
        error[j, 1] *= np.std(np.square(found[:, j] - mean)) / sd**2
    assert (np.abs(off) < error).all() != is_wrong


@pytest.mark.slow
@pytest.mark.parametrize(("n", "J", "share", "sd"), [(60, 6, 0.1, 10.0), (500, 10, 0.02, 1e4)])
def test_gross_outliers_do_not_hold_chains_back(n, J, share, sd):
    rng = np.random.default_rng(7)
    X, level = rng.normal(size=(n, 2)), rng.integers(0, J, n)
    y = X[:, 0] + rng.normal(size=J)[level] + 0.3 * rng.normal(size=n)
    y[: int(share * n)] += sd * rng.normal(size=int(share * n))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(level=level)
    options = {"n_draws": 250, "n_warmup": 300, "random_state": 0}  # a warm-up asks for chains
    model = BayesianRobustRegression(group_effects=["level"], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(table, y)
    assert model.diagnostics_["min_ess"] > 100.0
    assert np.abs(model.coef_ - [1.0, 0.0]).max() < 5.0 * model.coef_std_.max()
