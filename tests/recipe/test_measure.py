"""What is measured of a posterior, against enumeration of its rows and naive Hessians."""

import cases
import numpy as np
import pytest
from scenes import close, make_scene, pulled_back
from scipy import integrate, stats

from skbayes_sg.recipe.measure import Survey

N, EXACT = 29, 1e-9
ALL = np.arange(N), np.ones(N)
POINTS = 0.8 * np.random.default_rng(3).standard_normal((7, 3))
models = pytest.mark.parametrize("model", ["logistic", "softmax", "poisson"])
kinds = pytest.mark.parametrize("kind", ["hessian", "diagonal"])


def survey_of(model, kind="hessian", **options):
    """A scene, and a survey around a point that is not the mode."""
    scene = make_scene(model, n_rows=N, **options)
    return scene, Survey(scene.frame(kind=kind))


def points_of(scene):
    """Positions of chains."""
    return 0.8 * np.random.default_rng(3).standard_normal((7, scene.posterior.dimension))


def rows_of(scene, frame, name, phi):
    """What each row contributes to the noise of a gradient, in φ."""
    a = cases.GRADIENTS[name].row_vectors(scene.posterior, frame.theta(phi), frame)
    return pulled_back(frame, a)


@models
@kinds
@pytest.mark.parametrize("gradient", ["minibatch", "control_variate", "taylor"])
def test_noise_of_one_row(model, kind, gradient):
    # The largest eigenvalue of Σ a aᵀ/p, averaged over the points.
    scene, survey = survey_of(model, kind)
    p, points = cases.uneven(N), points_of(scene)
    M = 0.0
    for phi in points:
        a = rows_of(scene, survey.frame, gradient, phi)
        M = M + (a.T / p) @ a / len(points)
    piece = cases.GRADIENTS[gradient].gradient
    found = survey.noise_eigenvalue(piece, p, ALL, points)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(M)[-1], rtol=EXACT)
    # What a dynamics absorbs is taken off the diagonal, and a share of it comes back.
    taken = 0.5 * np.diag(M).min()
    found = survey.noise_eigenvalue(
        piece, p, ALL, points, lambda d: (np.full(len(d), taken), np.full(len(d), 0.1 * taken))
    )
    left = np.abs(np.linalg.eigvalsh(M - taken * np.eye(len(M)))).max() + 0.1 * taken
    np.testing.assert_allclose(found, left, rtol=EXACT)


@models
@kinds
def test_vectors_with_the_covariance_of_the_noise(model, kind):
    scene, survey = survey_of(model, kind)
    p, points, n = cases.uneven(N), points_of(scene)[:2], 4000
    piece = cases.GRADIENTS["minibatch"].gradient
    found = survey.noise_draws(piece, p, ALL, points, np.random.default_rng(0), n)
    for phi, vectors in zip(points, found.reshape(2, n, -1), strict=True):
        a = rows_of(scene, survey.frame, "minibatch", phi)
        C = (a.T / p) @ a
        error = 5.0 * np.sqrt(2.0 / n * np.outer(np.diag(C), np.diag(C))) + 1e-12
        assert (np.abs(vectors.T @ vectors / n - C) < error).all()


def test_rows_that_stand_for_others_count_for_them():
    scene, survey = survey_of("logistic")
    p, gradient = np.full(N, 1.0 / N), cases.GRADIENTS["minibatch"].gradient
    rows = np.array([1, 4, 8])
    found = survey.noise_eigenvalue(gradient, p, (rows, np.array([2.0, 5.0, 0.5])), POINTS[:1])
    a = rows_of(scene, survey.frame, "minibatch", POINTS[0])[rows] * np.sqrt([[2.0], [5.0], [0.5]])
    np.testing.assert_allclose(found, N * np.linalg.eigvalsh(a.T @ a)[-1], rtol=EXACT)


@models
@kinds
def test_contributions_of_rows_at_points(model, kind):
    scene, survey = survey_of(model, kind)
    points, rows = points_of(scene), np.array([28, 0, 3])
    a = [rows_of(scene, survey.frame, "taylor", phi) for phi in points]
    expected = np.sqrt(np.mean([(x**2).sum(axis=1) for x in a], axis=0))
    found = survey.row_noise(cases.GRADIENTS["taylor"].gradient, rows, points, width=99)
    close(found, expected[rows], EXACT, expected.max())


@pytest.mark.parametrize("gradient", ["minibatch", "control_variate", "taylor"])
def test_contributions_of_rows_by_quadrature(gradient):
    # Without points: the predictor of a row is normal with the width of the Laplace approximation.
    scene, survey = survey_of("logistic")
    frame, rows = survey.frame, np.array([2, 11])
    G = scene.posterior.jacobian[:, 0] @ frame.F
    size, expected = np.linalg.norm(G, axis=1), []
    for i in rows:
        line = G[i] / size[i] ** 2  # along which only this predictor moves, by 1

        def square(z, i=i, line=line):
            a = rows_of(scene, frame, gradient, size[i] * z * line)[i]
            return (a**2).sum() * stats.norm.pdf(z)

        expected.append(np.sqrt(integrate.quad(square, -9.0, 9.0)[0]))
    found = survey.row_noise(cases.GRADIENTS[gradient].gradient, rows, width=99)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@models
@kinds
def test_growth_of_the_curvature(model, kind):
    scene, survey = survey_of(model, kind)
    frame, points, posterior = survey.frame, points_of(scene), scene.posterior
    F = np.diag(frame.F[0]) if len(frame.F) == 1 else frame.F
    centre = posterior.row_hessians(frame.centre.theta).sum(axis=0)
    found = [
        np.linalg.eigvalsh(F.T @ (posterior.row_hessians(theta).sum(axis=0) - centre) @ F)[-1]
        for theta in frame.theta(points)
    ]
    expected = max(0.0, *found)
    assert expected > 0.0
    np.testing.assert_allclose(survey.growth(ALL, points), expected, rtol=1e-8)


def test_no_growth_of_a_gaussian():
    scene, survey = survey_of("gaussian")
    assert survey.growth(ALL, points_of(scene)) < 1e-10


def test_chances_by_leverage(monkeypatch):
    scene, survey = survey_of("logistic")
    leverages = np.linalg.norm(scene.posterior.jacobian[:, 0] @ survey.frame.F, axis=1)
    np.testing.assert_allclose(survey.leverages, leverages, rtol=1e-9)  # width 16 > 3: exact
    np.testing.assert_array_equal(survey.leverage_chances(3, 0.5), np.full(N, 1.0 / N))
    survey.n_survey = 10
    expected = 0.5 / N + 0.5 * leverages**3 / (leverages**3).sum()
    np.testing.assert_allclose(survey.leverage_chances(3, 0.5), expected, rtol=1e-9)


def test_sampled_rows_stand_for_all():
    _, survey = survey_of("logistic")
    rng, p = np.random.default_rng(0), cases.uneven(N)
    sums = np.zeros(N)
    for _ in range(4000):
        rows, stands_for = survey.sample_rows(p, rng, 10)
        assert (np.diff(rows) >= 0).all()
        np.add.at(sums, rows, stands_for)
    error = (sums / 4000 - 1.0) / np.sqrt((1.0 / p - 1.0) / (10 * 4000))
    assert np.abs(error).max() < 5.0
    rows, stands_for = survey.sample_rows(p, rng)
    np.testing.assert_array_equal(rows, np.arange(N))
    np.testing.assert_array_equal(stands_for, np.ones(N))


@pytest.mark.parametrize("kind", ["hessian", "diagonal"])
def test_eigenvalues_without_the_matrix(kind, monkeypatch):
    scene, survey = survey_of("softmax", kind)
    points, p = points_of(scene), cases.uneven(N)
    gradient = cases.GRADIENTS["control_variate"].gradient
    measured = survey.noise_eigenvalue(gradient, p, ALL, points), survey.growth(ALL, points)
    monkeypatch.setattr("skbayes_sg.recipe.measure.DENSE_EIGENVALUE", 0)
    again = survey.noise_eigenvalue(gradient, p, ALL, points), survey.growth(ALL, points)
    np.testing.assert_allclose(again, measured, rtol=0.05)  # to the accuracy that is asked for
