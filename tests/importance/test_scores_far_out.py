"""Gradients by which draws are judged: exact where expansions would make right draws look wrong."""

import numpy as np
import pytest
from scipy import special

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.engine.target import Target
from skbayes_sg.importance import scores
from skbayes_sg.importance.fit import fit_proposal
from skbayes_sg.importance.proposal import matched_normals
from skbayes_sg.importance.scores import gradients_for_scores
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.choose import frame_of


def skewed_rows(n=6000, n_events=4, seed=0):
    """A column with a long tail, and few events, which have nothing to do with it."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(2.0, size=(n, 1))
    y = np.zeros(n)
    y[rng.choice(n, n_events, replace=False)] = 1.0
    return X, y


@pytest.fixture(scope="module")
def proposal():
    X = np.random.default_rng(0).normal(size=(6000, 3))
    y = (np.arange(len(X)) < 15).astype(float)
    prior = np.concatenate([Normal(scale=1.0)._table((3,)), Normal(scale=10.0)._table((1,))])
    target = Target(X, y, np.ones(len(y)), Logistic(), prior)
    return fit_proposal(frame_of(target, "hessian", True, np.random.default_rng(0)))


@pytest.fixture(scope="module")
def phi():
    """Draws that reach somewhat farther than the Laplace approximation."""
    return 1.3 * matched_normals(np.random.default_rng(1), 1000, 4)


def errors(proposal, phi, g):
    """By how much gradients make variances of parameters wrong, as a share of them."""
    exact = proposal.exact.gradients(phi)
    return np.abs(scores._products(proposal.frame, phi, g - exact).mean(axis=0)).max()


def test_the_farthest_draws_are_exact_and_the_others_nearly(proposal, phi):
    near, most = proposal.to_fourth_order, len(phi)
    g, n_far = gradients_for_scores(proposal, near, phi, most)
    assert 0 < n_far < len(phi)
    order = np.argsort(np.linalg.norm(phi, axis=1))
    far, rest = order[-n_far:], order[:-n_far]
    np.testing.assert_allclose(g[far], proposal.exact.gradients(phi[far]), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(g[rest], near.gradients(phi)[rest])
    assert errors(proposal, phi, near.gradients(phi)) > 2.0 * scores.ALLOWED
    assert errors(proposal, phi, g) < 2.0 * scores.ALLOWED


def test_there_are_none_where_too_many_would_have_to_be_exact(proposal, phi):
    _, n_far = gradients_for_scores(proposal, proposal.to_fourth_order, phi, len(phi))
    assert gradients_for_scores(proposal, proposal.to_fourth_order, phi, n_far - 1) is None


def test_exact_potentials_and_large_tables_are_not_compared(proposal, phi, monkeypatch):
    g, n_exact = gradients_for_scores(proposal, proposal.exact, phi, 0)
    np.testing.assert_array_equal(g, proposal.exact.gradients(phi))
    assert n_exact == len(phi)
    monkeypatch.setattr(scores, "MOST_COMPARED", 0.0)
    near = proposal.to_fourth_order
    g, n_exact = gradients_for_scores(proposal, near, phi, 0)
    np.testing.assert_array_equal(g, near.gradients(phi))
    assert n_exact == 0


@pytest.mark.parametrize("seed", range(3))
def test_right_draws_of_a_table_of_few_events_are_trusted(seed):
    """Their variances were told to be off by 10 to 190 per cent, by scores of expansions."""
    X, y = skewed_rows(12_000, seed=seed)
    model = BayesianLogisticRegression(prior="laplace", random_state=seed).fit(X, y)
    verdict = model.posterior_.check()
    assert verdict, str(verdict)
    sd = model.posterior_.flat.reshape(-1, 2).std(axis=0)
    np.testing.assert_allclose(sd, sds_by_quadrature(X[:, 0], y, model.posterior_), rtol=0.08)


def sds_by_quadrature(x, y, posterior, n=81):
    """Standard deviations of slope and intercept under Laplace(1) and N(0, 10²) priors."""
    draws = posterior.flat.reshape(-1, 2)
    middle, half = draws.mean(axis=0), 7.0 * draws.std(axis=0)
    b, a = (np.linspace(m - h, m + h, n) for m, h in zip(middle, half, strict=True))
    log_p = np.add.outer(y @ x * b - np.abs(b), y.sum() * a - 0.5 * (a / 10.0) ** 2)
    for i in range(n):
        log_p[i] -= special.log1p(np.exp(np.add.outer(a, b[i] * x))).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    found = []
    for places, axis in ((b, 1), (a, 0)):
        share = p.sum(axis=axis) / p.sum()
        found.append(np.sqrt(share @ places**2 - (share @ places) ** 2))
    return found
