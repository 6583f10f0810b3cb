"""What chances of rows go with under `Preferential(weights="gradient")` and ``"hessian"``."""

import numpy as np
import pytest
from scenes import close, make_scene, pulled_back

from skbayes_sg.recipe.tuning import Survey

TOLERANCE = 1e-10
models = pytest.mark.parametrize("model", ["logistic", "softmax"])
kinds = pytest.mark.parametrize("kind", ["hessian", "diagonal", "none"])
weights = pytest.mark.parametrize("weighted", [True, False])
dense = pytest.mark.parametrize("dense", [True, False])
storages = pytest.mark.parametrize("storage", ["float64", "csr"])
ROWS = np.array([28, 0, 3, 17, 4])


def survey_of(model, kind, weighted, storage="float64", *, dense=True):
    """A scene and what is measured around a point that is not the mode."""
    scene = make_scene(model, n_rows=29, weighted=weighted, storage=storage)
    return scene, Survey(scene.frame(kind=kind, dense=dense or kind == "hessian"))


@models
@kinds
@weights
@storages
def test_norms_of_gradients(model, kind, weighted, storage):
    # Equation 11: the norm of each row's gradient at the centre, in the coordinates of the chain.
    scene, survey = survey_of(model, kind, weighted, storage)
    g = pulled_back(survey.frame, scene.posterior.row_gradients(survey.frame.centre.theta))
    expected = np.linalg.norm(g, axis=1)
    close(survey.gradient_norms(np.arange(29)), expected, TOLERANCE)
    close(survey.gradient_norms(ROWS), expected[ROWS], TOLERANCE)
    assert expected.max() > 2.0 * expected.min()


def laplace_covariance(scene, frame):
    """The inverse Hessian at the centre, or of its diagonal where only that is known."""
    H = scene.posterior.row_hessians(frame.centre.theta).sum(axis=0) + np.diag(
        frame.prior_curvature
    )
    return np.linalg.inv(H if frame.dense else np.diag(np.diag(H)))


@models
@kinds
@weights
@storages
@dense
def test_norms_of_hessians(model, kind, weighted, storage, dense):
    # Equation 16: the root of tr(Fᵀ H_i Σ H_i F), with Σ of the Laplace approximation.
    scene, survey = survey_of(model, kind, weighted, storage, dense=dense)
    frame = survey.frame
    F = np.diag(frame.F[0]) if len(frame.F) == 1 else frame.F
    H, S = scene.posterior.row_hessians(frame.centre.theta), laplace_covariance(scene, frame)
    expected = np.sqrt([np.trace(F.T @ h @ S @ h @ F) for h in H])
    close(survey.hessian_norms(np.arange(29)), expected, TOLERANCE)
    close(survey.hessian_norms(ROWS), expected[ROWS], TOLERANCE)


@models
def test_hessian_weights_are_the_noise_of_a_control_variate_near_the_centre(model):
    # Root mean squares of the differences over the Laplace approximation shrunk a thousandfold.
    scene, survey = survey_of(model, "hessian", True)
    frame, posterior, centre = survey.frame, scene.posterior, survey.frame.centre.theta
    at_centre = pulled_back(frame, posterior.row_gradients(centre))
    squares = 0.0
    for direction in frame.laplace_root.T:
        near = pulled_back(frame, posterior.row_gradients(centre + 1e-3 * direction))
        squares = squares + ((near - at_centre) ** 2).sum(axis=1) / 1e-6
    np.testing.assert_allclose(np.sqrt(squares), survey.hessian_norms(np.arange(29)), rtol=5e-3)
