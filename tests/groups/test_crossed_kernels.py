"""The law of both scales given the effects of other factors, by a dense covariance of all rows."""

import numpy as np
import pytest
from group_tables import problem_of
from scipy import stats

from skbayes_sg.groups.crossed_kernels import crossed_log_density, random_walks
from skbayes_sg.groups.linear_crossed import CrossedRows, Visit
from skbayes_sg.kernels.layout import FACT_Y
from skbayes_sg.models import Linear, LinearKnownNoise
from skbayes_sg.priors import Normal
from skbayes_sg.priors.table import prior_value

LAST = np.array([0.7, -1.1, 0.4])  # coefficients, which are no part of the law


def visit_of(kind, k, b=LAST):
    """A visit to a factor, and the effects of the other in the units of the response."""
    problem = problem_of(kind, n=40, sizes=(5, 4), intercept=Normal(loc=1.0, scale=2.0), seed=2)
    rows = CrossedRows(problem)
    u = [np.random.default_rng(0).standard_normal(L) for L in problem.sizes]
    return problem, rows, u, Visit(rows, k, u, b)


def by_covariance(problem, rows, u, k, place):
    """log p(y | τ_k, σ, effects of the other factor) + log p(log τ_k) + log p(log σ)."""
    target, D = problem.target, problem.n_coefficients
    tau, sigma = np.exp(np.array(place)) * rows.unit
    Z, X, prior = np.eye(problem.sizes[k])[problem.codes[:, k]], problem.design, target.prior[:D]
    V = np.diag(sigma**2 / target.weight) + tau**2 * Z @ Z.T + (X * prior[:, 2] ** 2) @ X.T
    other = 1 - k
    mean = X @ prior[:, 1] + rows.unit * u[other][problem.codes[:, other]]
    value = stats.multivariate_normal(mean, V).logpdf(target.data.facts[:, FACT_Y])
    # Weights multiply log-likelihoods, and their normalising constants with them.
    value -= (target.weight.sum() - len(V)) * np.log(sigma)
    return value - prior_value(rows.priors[k], np.log([tau, sigma])[: len(rows.priors[k])])


def ours(rows, visit, k, place):
    scratch = np.empty((rows.D, rows.D)), np.empty(rows.D)
    return crossed_log_density(visit.sums, rows.priors[k], visit.unit, np.array(place), *scratch)


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("kind", [Linear, LinearKnownNoise])
def test_coefficients_and_effects_are_integrated_out(kind, k):
    problem, rows, u, visit = visit_of(kind, k)
    known = kind is LinearKnownNoise
    first = -np.log(rows.unit) if known else -0.5
    places = [(-1.0, first), (0.3, first), (-4.0, first)] + ([] if known else [(0.3, -1.0)])
    found = [ours(rows, visit, k, place) for place in places]
    exact = [by_covariance(problem, rows, u, k, place) for place in places]
    np.testing.assert_allclose(np.diff(found), np.diff(exact), rtol=1e-9)


def test_draws_do_not_depend_on_the_last_coefficients():
    found = []
    for b in (LAST, np.zeros(3), 3.0 * LAST):
        visit = visit_of(Linear, 0, b)[-1]
        found.append(np.concatenate(visit.draw(-0.3, -0.7, np.random.default_rng(3))))
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=1e-12)


def test_walks_are_metropolis_steps():
    _, rows, _, visit = visit_of(Linear, 0)
    rng, root = np.random.default_rng(1), np.array([[0.4, 0.0], [0.1, 0.2]])
    normals, log_u = rng.standard_normal((8, 2)), np.log(rng.random(8))
    place, expected, taken = np.array([-0.5, -0.7]), np.array([-0.5, -0.7]), 0
    for noise, threshold in zip(normals, log_u, strict=True):
        new = expected + root @ noise
        if threshold < ours(rows, visit, 0, new) - ours(rows, visit, 0, expected):
            expected, taken = new, taken + 1
    found = random_walks(visit.sums, rows.priors[0], visit.unit, root, place, normals, log_u)
    assert 0 < taken < 8
    assert found == taken
    np.testing.assert_allclose(place, expected, rtol=1e-12)


def test_a_place_beyond_floats_is_not_taken():
    _, rows, _, visit = visit_of(Linear, 0)
    place, normals = np.array([-0.5, -0.7]), np.full((1, 2), 1e4)
    with np.errstate(all="ignore"):
        taken = random_walks(
            visit.sums, rows.priors[0], visit.unit, np.eye(2), place, normals, np.zeros(1) - 1.0
        )
    assert taken == 0
    np.testing.assert_array_equal(place, [-0.5, -0.7])
