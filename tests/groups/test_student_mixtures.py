"""Mixtures of Student's t laws, against scipy and against a mixture that they can be."""

import numpy as np
from scipy import stats

from skbayes_sg.groups import student_mixtures
from skbayes_sg.groups.student_mixtures import DF, StudentMixture, fitted_mixture, one_student

ROOTS = np.array([[[1.0, 0.0], [0.5, 0.7]], [[0.4, 0.0], [-0.3, 0.2]]])
MIXTURE = StudentMixture(np.array([0.3, 0.7]), np.array([[0.0, 1.0], [4.0, -1.0]]), ROOTS)


def test_the_density_is_that_of_its_laws():
    places = np.random.default_rng(0).normal(0.0, 5.0, (50, 2))
    wanted = sum(
        share * stats.multivariate_t(centre, R @ R.T, df=DF).pdf(places)
        for share, centre, R in zip(*MIXTURE, strict=True)
    )
    np.testing.assert_allclose(MIXTURE.log_density(places), np.log(wanted), rtol=1e-10)


def test_draws_have_the_law():
    m = 40_000
    draws = MIXTURE.draw(np.random.default_rng(0), m)
    first = draws[:, 0] > 2.5  # 4 is far from 0 in units of .4
    exact = sum(
        share * stats.t.sf((2.5 - centre[0]) / R[0, 0], DF)
        for share, centre, R in zip(*MIXTURE, strict=True)
    )
    assert abs(first.mean() - exact) < 4.0 * np.sqrt(exact * (1.0 - exact) / m)
    white = np.linalg.solve(ROOTS[1], (draws[first] - MIXTURE.centre[1]).T)
    np.testing.assert_allclose(np.median(white, axis=1), 0.0, atol=0.05)
    assert abs(np.corrcoef(white)[0, 1]) < 0.1


def share_of(found, m=20_000):
    """The effective share of draws of a mixture, weighted to be draws of `MIXTURE`."""
    places = found.draw(np.random.default_rng(9), m)
    w = np.exp(MIXTURE.log_density(places) - found.log_density(places))
    return w.sum() ** 2 / (w @ w) / m


def test_a_mixture_is_found_again():
    """From one law that is none of its parts; with one law alone most draws are lost."""
    first = one_student(np.array([2.0, 0.0]), 2.0 * np.eye(2))
    for seed in range(5):
        found = fitted_mixture(MIXTURE.log_density, first, np.random.default_rng(seed))
        one = fitted_mixture(MIXTURE.log_density, first, np.random.default_rng(seed), cheap=False)
        assert share_of(found) > 0.8
        assert share_of(one) < 0.3


def test_a_mixture_that_is_the_law_stays_where_it_is():
    """All but the guard, its first law: shares, centres and roots are those of before."""
    guard = StudentMixture(*(np.concatenate([part[:1], part]) for part in MIXTURE))
    guard = guard._replace(
        share=np.array([0.1, 0.27, 0.63]), centre=guard.centre + np.array([0.0, 5.0])
    )
    places = guard.draw(np.random.default_rng(0), 200_000)
    parts, square = guard.parts(places)
    w = np.full(len(places), 1.0 / len(places))
    found = student_mixtures._fitted(guard, places, parts, square, w)
    np.testing.assert_allclose(found.share, guard.share, atol=0.005)
    np.testing.assert_allclose(found.centre[1:], guard.centre[1:], atol=0.03)
    np.testing.assert_allclose(found.root[1:], guard.root[1:], atol=0.03)
