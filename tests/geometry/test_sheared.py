"""Diagonal coordinates in which the intercepts move with the coefficients."""

import numpy as np
import pytest
from probe import Probe, frame_at, make_target
from scenes import close, make_scene
from scipy import sparse

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.diagnostics import convergence
from skbayes_sg.geometry import preconditioning
from skbayes_sg.geometry.frame import sheared
from skbayes_sg.gradients import SVRG, ControlVariate, Full, Minibatch
from skbayes_sg.recipe import full_data

MODELS = ["logistic", "softmax", "poisson", "linear"]


def frames(model="softmax", prior="normal", storage="float64"):
    """A scene, its frame with a diagonal, and the sheared one."""
    scene = make_scene(model, prior, n_rows=9, n_features=3, storage=storage)
    frame = scene.frame(kind="diagonal", dense=False)
    return scene, frame, sheared(frame)


def map_of(frame):
    """S F as a matrix, one column for each coordinate."""
    return (frame.theta(np.eye(frame.target.n_parameters)) - frame.centre.theta).T


@pytest.mark.parametrize("model", MODELS)
def test_intercepts_are_independent_of_their_coefficients_at_the_centre(model):
    _, frame, lean = frames(model)
    target, H = frame.target, np.zeros((frame.target.n_parameters,) * 2)
    weights = target.weights_at(frame.centre.theta)
    for j, unit in enumerate(np.eye(len(H))):
        H[:, j] = target.hessian_product(weights, unit) + frame.prior_curvature * unit
    M = map_of(lean)
    curvature = M.T @ H @ M
    close(np.diag(curvature), np.ones(len(H)), 1e-10)
    K, d = lean.slopes.shape
    for k in range(K):
        close(curvature[K * d + k, k * d : (k + 1) * d], np.zeros(d), 1e-10)
        plain = frame.F[0][K * d + k] * H[K * d + k, k * d : (k + 1) * d] * frame.F[0][:d]
        assert np.abs(plain).max() > 0.01
    inner = M[:-1, :-1] if model == "linear" else M
    assert np.abs(np.tril(inner, -1)).max() > 0.0  # a lower triangle beside the diagonal
    assert np.linalg.slogdet(M)[1] == pytest.approx(np.log(np.abs(lean.F[0])).sum())


@pytest.mark.parametrize("storage", ["float64", "csr"])
@pytest.mark.parametrize("model", MODELS)
def test_kernels_use_the_same_map(model, storage):
    scene, _, lean = frames(model, storage=storage)
    M, rng = map_of(lean), np.random.default_rng(0)
    phi = rng.standard_normal(lean.target.n_parameters)
    theta = lean.centre.theta + M @ phi
    close(lean.theta(phi), theta, 1e-12)
    expected = M.T @ scene.posterior.gradient(theta)
    for gradient in (Full(), Minibatch(), ControlVariate(), SVRG(refresh=3)):
        found = Probe(lean, gradient).estimate(phi)
        close(found, expected, 1e-10, np.abs(expected).max())
    kernels = Probe(lean)
    value, g = kernels.potential_and_gradient(phi)
    close(g, expected, 1e-10, np.abs(expected).max())
    change = value - kernels.potential(np.zeros(len(phi)))
    exact = scene.posterior.potential(theta) - scene.posterior.potential(lean.centre.theta)
    assert change == pytest.approx(exact, rel=1e-9)
    close(lean.scores(g), -scene.posterior.gradient(theta), 1e-10, np.abs(expected).max())


@pytest.mark.parametrize("model", ["logistic", "robust", "negative_binomial"])
def test_columns_far_from_zero_and_likelihoods_that_are_not_concave(model):
    scene = make_scene(model, n_rows=9, n_features=3)
    target, X = scene.target, scene.posterior.X + np.array([0.0, 1e3, 1e7])
    far = make_target(target.model, X, scene.posterior.y, target.weight, target.prior)
    lean = sheared(frame_at(far, scene.point(1), "diagonal", dense=False))
    assert np.isfinite(lean.F).all()
    assert (lean.F > 0.0).all()
    assert np.isfinite(lean.slopes).all()
    assert (lean.F[0] <= 1.0 / np.sqrt(np.maximum(lean.prior_curvature, 1e-300)) + 1e-9).all()


def test_the_range_of_curvatures_is_that_of_the_map():
    _, _, lean = frames("logistic")
    target, H = lean.target, []
    weights = target.weights_at(lean.centre.theta)
    for unit in np.eye(target.n_parameters):
        H.append(target.hessian_product(weights, unit) + lean.prior_curvature * unit)
    M = map_of(lean)
    values = np.linalg.eigvalsh(M.T @ np.array(H) @ M)
    close(lean.curvature_range, (values[0], values[-1]), 1e-2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
def test_intercepts_beside_words_mix(monkeypatch):
    """Rows of words are all about as long: without shear the intercepts are the slowest."""
    rng = np.random.default_rng(1)
    counts = rng.multinomial(30, rng.dirichlet(np.ones(30)), 1000)
    X = sparse.csr_array(counts / np.linalg.norm(counts, axis=1)[:, None])
    y, found = rng.integers(0, 3, 1000), []
    monkeypatch.setattr(preconditioning, "DENSE_LIMIT", 10)
    for leans in (True, False):
        if not leans:
            monkeypatch.setattr(full_data, "_leans", lambda modes: False)
        model = BayesianLogisticRegression(
            sampler="hmc", preconditioner="diagonal", n_draws=200, random_state=0
        ).fit(X, y)
        found.append(convergence.worst_of_chains(model.posterior_["intercept"])[0])
    assert found[0] > 5.0 * found[1]
