"""Moves of effects against coefficients: unseen by the rows, and in the law of the priors."""

from dataclasses import replace

import numpy as np
import pytest
from group_tables import problem_of
from scipy import stats

from skbayes_sg.groups.collapsed import CollapsedRows
from skbayes_sg.groups.covariance import n_scales
from skbayes_sg.groups.recentring import Recentring, recentrings_of
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Flat, HalfNormal, Laplace, Normal, StudentT
from skbayes_sg.priors.columns import POWER

SCALES = HalfNormal()._table((1,), "scale")


@pytest.mark.parametrize("centre", [0.0, 40.0])
@pytest.mark.parametrize("slopes", [[[], []], [[0], [0, 1]]])
def test_rows_do_not_see_them(slopes, centre):
    problem = problem_of(Logistic, sizes=(4, 7), slopes=slopes, centre=centre)
    rows, rng = CollapsedRows(problem), np.random.default_rng(0)
    theta = rng.standard_normal(problem.n_coefficients)
    u = [rng.standard_normal((L, q)) for L, q in zip(problem.sizes, problem.widths, strict=True)]
    psi = [0.3 * rng.standard_normal(n_scales(q)) for q in problem.widths]
    before, old = rows.predictors(theta, u), theta.copy()
    moves = recentrings_of(rows.problem)
    assert len(moves) == 2 + sum(map(len, slopes))
    for move in moves:
        move.move(theta, u, psi, rows.problem.scales, rng)
    np.testing.assert_allclose(rows.predictors(theta, u), before, atol=1e-12)
    moved = {problem.n_coefficients - 1, *slopes[0], *slopes[1]}
    assert set(np.flatnonzero(theta != old)) == moved


def test_coefficients_with_shares_of_priors_stay():
    """Powers of Laplace laws, as of shards, are no mixtures of normal laws."""
    problem = problem_of(Logistic, intercept=Laplace(scale=1.0), slopes=[[0]])
    assert [own.coefficient for own in recentrings_of(problem)] == [2, 0]
    prior = problem.target.prior.copy()
    prior[:, POWER] = 0.5
    problem = replace(problem, target=problem.target.with_prior(prior))
    assert [own.coefficient for own in recentrings_of(problem)] == [0]


def drawn(move, levels, n=6000):
    """log τ and b along moves, for effects whose predictors are given."""
    rng, theta, u, psi = np.random.default_rng(1), np.zeros(1), [levels[:, None].copy()], [[0.0]]
    psi, found = [np.zeros(1)], np.empty((n, 2))
    for k in range(n):
        move.move(theta, u, psi, [SCALES], rng)
        found[k] = psi[0][0], theta[0]
    return found


def by_quadrature(levels, log_prior):
    """Means and standard deviations of log τ and b: b + u = levels, u ~ N(0, τ²), b its prior."""
    t, b = np.meshgrid(np.linspace(-6.0, 3.0, 601), np.linspace(-12.0, 13.0, 2501), indexing="ij")
    square = sum((level - b) ** 2 for level in levels) * np.exp(-2.0 * t)
    log_p = t - 0.5 * np.exp(2.0 * t) - len(levels) * t - 0.5 * square + log_prior(b)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    means = np.array([(p * t).sum(), (p * b).sum()])
    second = np.array([(p * t**2).sum(), (p * b**2).sum()])
    return means, np.sqrt(second - means**2)


LAWS = [
    (Normal(loc=0.5, scale=0.4), stats.norm(0.5, 0.4).logpdf),
    (Flat(), np.zeros_like),
    (Laplace(loc=0.5, scale=0.2), stats.laplace(0.5, 0.2).logpdf),
    (StudentT(df=3.0, loc=0.5, scale=0.2), stats.t(3.0, 0.5, 0.2).logpdf),
]


@pytest.mark.slow_for("prior1", "prior3")
@pytest.mark.parametrize(("prior", "log_prior"), LAWS)
@pytest.mark.parametrize("is_wrong", [False, True])
def test_scales_and_coefficients_have_their_law(prior, log_prior, is_wrong):
    levels = np.array([0.4, 0.2, 0.9, 0.4, -0.2])
    problem = problem_of(Logistic, d=0, sizes=(5,), intercept=prior)
    [move] = recentrings_of(problem)
    assert isinstance(move, Recentring)
    if is_wrong:  # another prior of the coefficient
        move = replace(move, prior=Normal(loc=1.1, scale=0.4)._table((1,)))
    found = drawn(move, levels)
    means, sds = by_quadrature(levels, log_prior)
    off = np.abs(found.mean(axis=0) - means) / sds
    right = (off < 0.08).all() and (np.abs(found.std(axis=0) / sds - 1.0) < 0.08).all()
    assert right != is_wrong
