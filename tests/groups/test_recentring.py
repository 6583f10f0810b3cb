"""Moves of effects against coefficients: unseen by the rows, and in the law of the priors."""

from dataclasses import replace

import numpy as np
import pytest
from group_tables import problem_of

from skbayes_sg.groups.collapsed import CollapsedRows
from skbayes_sg.groups.covariance import n_scales
from skbayes_sg.groups.recentring import Recentring, recentrings_of
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Flat, HalfNormal, Laplace, Normal

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


def test_coefficients_with_other_priors_stay():
    problem = problem_of(Logistic, intercept=Laplace(scale=1.0), slopes=[[0]])
    assert [own.coefficient for own in recentrings_of(problem)] == [0]


def drawn(move, levels, n=6000):
    """log τ and b along moves, for effects whose predictors are given."""
    rng, theta, u, psi = np.random.default_rng(1), np.zeros(1), [levels[:, None].copy()], [[0.0]]
    psi, found = [np.zeros(1)], np.empty((n, 2))
    for k in range(n):
        move.move(theta, u, psi, [SCALES], rng)
        found[k] = psi[0][0], theta[0]
    return found


def by_quadrature(levels, loc, scale):
    """Means and standard deviations of log τ and b: b + u = levels, u ~ N(0, τ²), b its prior."""
    t = np.linspace(-6.0, 3.0, 2001)
    precision = len(levels) * np.exp(-2.0 * t) + scale**-2.0
    m = (levels.sum() * np.exp(-2.0 * t) + loc * scale**-2.0) / precision
    square = (levels**2).sum() * np.exp(-2.0 * t) - precision * m * m
    log_p = t - 0.5 * np.exp(2.0 * t) - len(levels) * t - 0.5 * square - 0.5 * np.log(precision)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    means = np.array([p @ t, p @ m])
    second = np.array([p @ t**2, p @ (m**2 + 1.0 / precision)])
    return means, np.sqrt(second - means**2)


@pytest.mark.slow_for("prior1")
@pytest.mark.parametrize("prior", [Normal(loc=0.5, scale=0.4), Flat()])
@pytest.mark.parametrize("is_wrong", [False, True])
def test_scales_and_coefficients_have_their_law(prior, is_wrong):
    levels = np.array([0.4, 0.2, 0.9, 0.4, -0.2])
    problem = problem_of(Logistic, d=0, sizes=(5,), intercept=prior)
    [move] = recentrings_of(problem)
    assert isinstance(move, Recentring)
    loc, scale = (move.loc, move.scale) if isinstance(prior, Normal) else (0.0, 1e50)
    if is_wrong:  # another prior of the coefficient
        move = replace(move, loc=move.loc + 0.6, scale=0.4)
    found = drawn(move, levels)
    means, sds = by_quadrature(levels, loc, scale)
    off = np.abs(found.mean(axis=0) - means) / sds
    right = (off < 0.08).all() and (np.abs(found.std(axis=0) / sds - 1.0) < 0.08).all()
    assert right != is_wrong
