"""Excursions of chains: seen by the potential, and told from tails."""

import numpy as np
import probe
import pytest
from scipy import stats

from skbayes_sg import models
from skbayes_sg.diagnostics import check_draws
from skbayes_sg.diagnostics.verdict import EXCURSION
from skbayes_sg.priors import Laplace, Normal, StudentT
from skbayes_sg.recipe.excursions import FAR, MOST, SPREADS, excursion

RNG = np.random.default_rng(0)


def frame_of(model, y, weight, prior, kind):
    """At zero, of 200 rows with two columns."""
    X = np.random.default_rng(2).normal(size=(200, 2))
    table = probe.prior_table(model, 2, True, prior, prior)
    target = probe.make_target(model, X, y, np.full(200, weight), table)
    return probe.frame_at(target, np.zeros(target.n_parameters), kind)


@pytest.fixture(scope="module")
def frame():
    """A Gaussian posterior, whitened; with y = 0 its mode is zero."""
    return frame_of(models.LinearKnownNoise(), np.zeros(200), 1.0, Normal(), "hessian")


def normals(frame, n=1000):
    return np.random.default_rng(1).standard_normal((4, n, frame.target.n_parameters))


def test_draws_of_the_posterior_have_none(frame):
    assert excursion(frame, normals(frame)) == 0.0
    assert excursion(frame, normals(frame)[:, :0]) == 0.0


def test_a_draw_far_out_counts_by_its_potential(frame):
    # Of a Gaussian posterior U at φ is |φ|²/2, and its median at the others that of a chi square.
    phi, D = normals(frame), frame.target.n_parameters
    phi[2, 77] = 40.0 * np.eye(D)[0]
    scores = stats.chi2(D).median()
    expected = 0.5 * (1600.0 - scores) - SPREADS * np.sqrt(0.5 * D)
    assert excursion(frame, phi) == pytest.approx(expected, rel=0.02)
    phi[0, :MOST] = 2.0 * FAR  # of all far out the farthest is looked at
    assert excursion(frame, phi) == pytest.approx(expected, rel=0.02)
    phi[2, 77] = np.inf
    assert excursion(frame, phi) == 1e9


def of_prior(prior):
    """Draws of the prior are draws of the posterior of rows without weight."""
    return frame_of(models.Logistic(), np.arange(200) % 2.0, 1e-12, prior, "none")


@pytest.mark.parametrize(
    ("df", "farthest", "most"),
    [(0.5, 1e8, 6.0), (1.0, 1e3, 1.4), (2.0, 50.0, 1.4), (4.0, 2 * FAR, 1.4)],
)
def test_heavy_tails_have_none(df, farthest, most):
    frame = of_prior(StudentT(df=df))
    for seed in range(10):
        phi = np.random.default_rng(seed).standard_t(df, (4, 2000, 3))
        assert np.abs(phi).max() > farthest
        assert excursion(frame, phi) < most <= 0.5 * EXCURSION


def test_exponential_tails_have_none():
    frame = of_prior(Laplace())
    for seed in range(10):
        phi = np.random.default_rng(seed).laplace(size=(4, 2000, 3))
        assert excursion(frame, phi) < 0.25 * EXCURSION


def test_a_power_law_counts_by_its_power():
    # Far out U of Student's t is (df + 1) log |φ|, in each of which draws are e^{df log |φ|} rare.
    D, df = 3, 2.0
    frame, phi = of_prior(StudentT(df=df)), np.zeros((1, 100, 3))
    phi[0, 7, 0] = 1e6
    height = 0.5 * (df + 1.0) * np.log1p(1e12 / df)
    expected = height * df / (df + 1.0) - SPREADS * np.sqrt(0.5 * D)
    assert excursion(frame, phi) == pytest.approx(expected, rel=1e-4)


def test_an_unknown_noise_counts_as_a_heavy_tail():
    heights = []
    for model in (models.LinearKnownNoise(), models.Linear()):
        frame = frame_of(model, np.zeros(200), 1.0, Normal(), "none")
        D = frame.target.n_parameters
        phi = np.zeros((1, 100, D))
        phi[0, 7, 0] = 100.0
        heights.append(excursion(frame, phi) + SPREADS * np.sqrt(0.5 * D))
    assert heights[1] == pytest.approx(0.5 * heights[0], rel=1e-6)


def test_the_verdict_names_the_farthest_draw():
    draws = RNG.standard_normal((4, 500, 2))
    verdict = check_draws(draws, -draws, evidence={"excursion": 12.5})
    assert [finding.name for finding in verdict.findings] == ["farthest draw"]
    assert check_draws(draws, -draws, evidence={"excursion": 11.5})
