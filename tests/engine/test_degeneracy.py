"""Where two ways must be one: paths driven by the same injected randomness agree to rounding."""

import dataclasses
import itertools
import warnings

import cases
import numpy as np
import probe
import pytest
from paths import STEPS, full_batches, normals, path, some_batches
from scenes import close, make_scene

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg._base import streams
from skbayes_sg.dynamics import BAOAB, LeimkuhlerMatthews
from skbayes_sg.engine.target import Target
from skbayes_sg.geometry import preconditioning
from skbayes_sg.subsampling import Preferential, Uniform

PATH = 1e-12
langevin = pytest.mark.parametrize("sampler", cases.LANGEVIN)
MODELS = [name for name, case in cases.MODELS.items() if not case.model.n_extra]
models = pytest.mark.parametrize("model", cases.with_marks(MODELS))
gradients = pytest.mark.parametrize("gradient", cases.GRADIENTS)


# -- gradients and schemes ------------------------------------------------------------------------


@pytest.mark.slow_except("baoab", "minibatch")
@models
@langevin
@gradients
def test_all_rows_make_every_estimator_the_full_gradient(model, sampler, gradient):
    scene = make_scene(model, "student_t")
    frame, dynamics = scene.frame(kind="hessian"), cases.LANGEVIN[sampler].dynamics
    noises, full = normals(scene.posterior.dimension), probe.Probe(frame, dynamics=dynamics)
    expected = path(full, [full.all_rows] * STEPS, noises, 0.2)
    kernels = probe.Probe(frame, cases.GRADIENTS[gradient].gradient, dynamics=dynamics)
    close(path(kernels, full_batches(), noises, 0.2), expected, PATH, np.abs(expected).max())


@langevin
def test_taylor_is_the_full_gradient_of_a_quadratic(sampler):
    scene, dynamics = make_scene("gaussian"), cases.LANGEVIN[sampler].dynamics
    frame, noises = scene.frame(kind="hessian"), normals(3)
    full = probe.Probe(frame, dynamics=dynamics)
    expected = path(full, [full.all_rows] * STEPS, noises, 0.2)
    taylor = cases.GRADIENTS["taylor"].gradient
    kernels = probe.Probe(frame, taylor, dynamics=dynamics, batch_size=2)
    close(path(kernels, some_batches(), noises, 0.2), expected, PATH, np.abs(expected).max())


@langevin
def test_control_variates_are_the_full_gradient_of_a_gaussian_mean(sampler):
    # y_i ~ N(θ, 1): every row has the same curvature, so differences of gradients are all alike.
    model, rng = cases.MODELS["gaussian"].model, np.random.default_rng(0)
    table = cases.priors.Normal(loc=0.3, scale=2.0)._table((1,))
    target = probe.make_target(
        model, np.ones((6, 1)), rng.normal(size=6), np.ones(6), table, intercept=False
    )
    frame, noises = probe.frame_at(target, np.array([0.7])), normals(1)
    dynamics = cases.LANGEVIN[sampler].dynamics
    full = probe.Probe(frame, dynamics=dynamics)
    expected = path(full, [full.all_rows] * STEPS, noises, 0.1)
    plain, variate = (cases.GRADIENTS[g].gradient for g in ("minibatch", "control_variate"))
    kernels = [probe.Probe(frame, g, dynamics=dynamics, batch_size=2) for g in (variate, plain)]
    close(path(kernels[0], some_batches(), noises, 0.1), expected, PATH)
    assert np.abs(path(kernels[1], some_batches(), noises, 0.1) - expected).max() > 0.01


def test_preferential_with_equal_chances_is_sampling_with_replacement():
    for n_rows, n in [(6, 2), (29, 7), (1000, 1)]:
        p = np.full(n_rows, 1.0 / n_rows)
        equal, uniform = Preferential().state(n_rows, n, p), Uniform().state(n_rows, n)
        values = np.random.default_rng(0).random(n)
        rows, coefficients = probe.scripted_batch(Preferential(), equal, values)
        expected = probe.scripted_batch(Uniform(), uniform, values)
        assert rows == expected[0]
        np.testing.assert_allclose(coefficients, expected[1], rtol=1e-15)


@models
def test_infinite_friction_is_leimkuhler_matthews(model):
    scene = make_scene(model)
    frame, noises = scene.frame(kind="hessian"), normals(scene.posterior.dimension)
    gradient, batches = cases.GRADIENTS["taylor"].gradient, some_batches()
    one, two = (
        path(probe.Probe(frame, gradient, dynamics=d, batch_size=2), batches, noises, 0.5)
        for d in (BAOAB(friction=1e6), LeimkuhlerMatthews())
    )
    close(one, two, PATH, np.abs(two).max())


# -- coordinates ----------------------------------------------------------------------------------


@pytest.mark.slow_except("baoab", "minibatch")
@models
@langevin
@gradients
def test_the_identity_is_no_preconditioner(model, sampler, gradient):
    scene = make_scene(model, "laplace")
    frame, noises = scene.frame(kind="none"), normals(scene.posterior.dimension)
    same = dataclasses.replace(frame, F=np.eye(scene.posterior.dimension))
    dynamics, piece = cases.LANGEVIN[sampler].dynamics, cases.GRADIENTS[gradient].gradient
    one, two = (
        path(probe.Probe(f, piece, dynamics=dynamics, batch_size=2), some_batches(), noises, 0.02)
        for f in (frame, same)
    )
    close(one, two, PATH, np.abs(two).max())


@pytest.mark.parametrize("kind", cases.PRECONDITIONERS)
def test_a_step_in_the_coordinates_of_the_chain_is_the_formula(kind):
    # θ' = θ - (h/2) P ∇U(θ) + √h F ξ with F Fᵀ = P, from the formulas alone.
    scene = make_scene("logistic", "student_t")
    frame, noise, h = scene.frame(kind=kind or "none"), normals(3)[0], 0.3
    kernels, theta = probe.Probe(frame), frame.centre.theta
    curvature = scene.posterior.row_hessians(theta).sum(axis=0) + np.diag(frame.prior_curvature)
    P = cases.PRECONDITIONERS[kind](curvature)
    F = np.diag(frame.F[0]) if len(frame.F) == 1 else frame.F
    close(F @ F.T, P, PATH, np.abs(P).max())
    start = np.array([0.4, -0.2, 0.9])
    theta = theta + F @ start
    expected = theta - 0.5 * h * P @ scene.posterior.gradient(theta) + np.sqrt(h) * F @ noise
    state = kernels.step(kernels.start(start), *kernels.all_rows, noise, h)
    close(frame.theta(state[0]), expected, PATH, np.abs(expected).max())


def test_units_of_the_columns_do_not_matter_under_the_hessian():
    # X → X c with prior sd → sd / c gives coefficients / c, step by step.
    units = np.array([1e-4, 1e3])
    base = make_scene("logistic")
    p, table = base.posterior, base.target.prior.copy()
    table[:2, 1:3] /= units[:, None]  # loc and scale
    scaled = Target(p.X * units, p.y, p.weight, base.target.model, table)
    factor = np.r_[1.0 / units, 1.0]
    noises, batches = normals(3), some_batches()
    gradient = cases.GRADIENTS["taylor"].gradient
    one = path(
        probe.Probe(base.frame(kind="hessian"), gradient, batch_size=2), batches, noises, 0.5
    )
    frame = probe.frame_at(scaled, base.point(1) * factor, "hessian")
    two = path(probe.Probe(frame, gradient, batch_size=2), batches, noises, 0.5)
    close(two / factor, one, 1e-11, np.abs(one).max())


# -- symmetries of the models ---------------------------------------------------------------------


@pytest.mark.slow_except("baoab", "minibatch")
@pytest.mark.parametrize("kind", ["hessian", "none"])
@langevin
@gradients
def test_swapping_the_two_labels_changes_the_sign(kind, sampler, gradient):
    scene = make_scene("logistic", "normal")
    p, table = scene.posterior, scene.target.prior.copy()
    table[:, 1] *= -1.0  # locations of the prior
    swapped = Target(p.X, 1.0 - p.y, p.weight, scene.target.model, table)
    noises, point = normals(3), scene.point(1)
    dynamics, piece = cases.LANGEVIN[sampler].dynamics, cases.GRADIENTS[gradient].gradient
    one, two = (
        path(
            probe.Probe(probe.frame_at(t, s * point, kind), piece, dynamics=dynamics, batch_size=2),
            some_batches(), s * noises, 0.05,
        )
        for t, s in ((scene.target, 1.0), (swapped, -1.0))
    )  # fmt: skip
    close(-two, one, PATH, np.abs(one).max())


@pytest.mark.slow_except("baoab", "minibatch")
@langevin
@gradients
def test_renaming_classes_permutes_their_coefficients(sampler, gradient):
    scene = make_scene("softmax", "student_t")
    p, new_name = scene.posterior, np.array([2, 0, 1])
    renamed = Target(
        p.X, new_name[p.y.astype(int)], p.weight, scene.target.model, scene.target.prior
    )

    def permuted(theta):
        out = np.empty_like(theta)
        for c, name in enumerate(new_name):
            out[..., 2 * name : 2 * name + 2] = theta[..., 2 * c : 2 * c + 2]
            out[..., 6 + name] = theta[..., 6 + c]
        return out

    noises, point = normals(9), scene.point(1)
    dynamics, piece = cases.LANGEVIN[sampler].dynamics, cases.GRADIENTS[gradient].gradient
    one = path(
        probe.Probe(probe.frame_at(scene.target, point), piece, dynamics=dynamics, batch_size=2),
        some_batches(), noises, 0.05,
    )  # fmt: skip
    two = path(
        probe.Probe(
            probe.frame_at(renamed, permuted(point)), piece, dynamics=dynamics, batch_size=2
        ),
        some_batches(), permuted(noises), 0.05,
    )  # fmt: skip
    close(two, permuted(one), PATH, np.abs(one).max())


@models
def test_the_order_of_the_rows_does_not_matter_to_the_full_gradient(model):
    scene = make_scene(model, n_rows=600)
    p, order = scene.posterior, np.random.default_rng(0).permutation(600)
    shuffled = Target(p.X[order], p.y[order], p.weight[order], scene.target.model,
                      scene.target.prior)  # fmt: skip
    noises, found = normals(p.dimension), []
    for target in (scene.target, shuffled):
        kernels = probe.Probe(probe.frame_at(target, scene.point(1), "hessian"))
        found.append(path(kernels, [kernels.all_rows] * STEPS, noises, 0.2))
    close(*found, 1e-10, np.abs(found[0]).max())


@models
@gradients
def test_weights_are_repetitions(model, gradient):
    # Estimates from all rows, with rows of weight 2 written twice.
    scene = make_scene(model, weighted=False)
    p, weight = scene.posterior, np.array([1.0, 2.0, 1.0, 2.0, 2.0, 1.0])
    rows = np.repeat(np.arange(6), weight.astype(int))
    noises, found = normals(p.dimension), []
    for X, y, w in ((p.X, p.y, weight), (p.X[rows], p.y[rows], np.ones(9))):
        target = Target(X, y, w, scene.target.model, scene.target.prior)
        frame = probe.frame_at(target, scene.point(1), "hessian")
        kernels = probe.Probe(frame, cases.GRADIENTS[gradient].gradient)
        found.append(path(kernels, [kernels.all_rows] * STEPS, noises, 0.2))
    close(*found, PATH, np.abs(found[0]).max())


# -- chains ---------------------------------------------------------------------------------------


def some_kernels(sampler, **options):
    """A combination for whole chains."""
    scene, case = make_scene("logistic", n_rows=30), cases.DYNAMICS[sampler]
    if sampler in cases.METROPOLIS:
        return probe.Probe(scene.frame(kind="hessian"), dynamics=case.dynamics)
    return probe.Probe(
        scene.frame(kind="hessian"), cases.GRADIENTS["taylor"].gradient, Uniform(),
        case.dynamics, batch_size=3, **options,
    )  # fmt: skip


samplers = pytest.mark.parametrize("sampler", cases.DYNAMICS)


@samplers
def test_thinned_draws_are_every_third_draw(sampler):
    kernels, start = some_kernels(sampler), np.zeros((2, 3))
    draws, _ = kernels.sample(start, 3, 60)
    thinned, _ = kernels.sample(start, 3, 20, thin=3)
    np.testing.assert_array_equal(thinned, draws[:, 2::3])


@samplers
def test_a_chain_depends_on_its_number_and_the_seed_alone(sampler):
    kernels, start = some_kernels(sampler), np.zeros((3, 3))
    three, _ = kernels.sample(start, 3, 20)
    two, _ = kernels.sample(start[:2], 3, 20)
    np.testing.assert_array_equal(three[:2], two)
    other, _ = kernels.sample(start, 4, 20)
    for one, another in itertools.combinations([*three, *other], 2):
        assert (one != another).mean() > 0.5


def test_streams_of_random_numbers_are_all_different():
    chains = [streams.of_chain(seed, number) for seed in (0, 1) for number in range(5)]
    found = [rng.random(50) for chain in chains for rng in chain]
    assert len(np.unique(np.concatenate(found))) == 50 * len(found)
    again = [rng.random(50) for rng in streams.of_chain(1, 4)]
    np.testing.assert_array_equal(again, found[-3:])


# -- estimators -----------------------------------------------------------------------------------


def small_fit(**parameters):
    """A short fit on made data, one class nine times as frequent as the other."""
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 10 == 0
    options = {"n_draws": 40, "n_chains": 2, "n_warmup": 20, "thin": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # short on purpose
        return BayesianLogisticRegression(**(options | parameters)).fit(X, y)


def test_taylor_asked_for_by_name_has_its_hessian(monkeypatch):
    # However many parameters there are: beyond this limit "auto" keeps only diagonals.
    monkeypatch.setattr(preconditioning, "DENSE_LIMIT", 2)
    fitted = small_fit(gradient="taylor", batch_size=20, step_size=0.2)
    assert (fitted.gradient_, fitted.preconditioner_) == ("taylor", "diagonal")


def test_the_prior_of_the_coefficients_does_not_touch_the_intercept():
    # Coefficients held at zero: the intercept is the log odds of the classes.
    fitted = small_fit(prior=cases.priors.Normal(scale=1e-6), sampler="hmc", n_warmup=60)
    assert np.abs(fitted.coef_).max() < 1e-5
    assert abs(fitted.intercept_[0] + np.log(9.0)) < 0.3
