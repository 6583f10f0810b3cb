"""Exact stationary laws, without simulation.

On a Gaussian posterior a step is affine in state and noise, s' = M s + c + B ξ. M, c and B are read
out of the library's own step kernel, by calling it with unit vectors; the stationary law follows by
linear algebra, and must be the formula of the method to 1e-10. What the Metropolis-corrected
samplers rest on (reversible leapfrog steps that preserve volume, the acceptance probability) is
examined in the same way.
"""

import copy
import itertools
import math

import cases
import naive
import numpy as np
import probe
import pytest
from affine_steps import (
    affine,
    batch_maps,
    formula_maps,
    gaussian_scene,
    in_theta,
    precision_and_mean,
    radius,
    step_size,
    unit_scene,
)
from scenes import close, make_scene
from scipy import linalg
from sklearn.base import clone

from skbayes_sg.dynamics import MALA, SGLD, Dynamics
from skbayes_sg.engine import metropolis, run
from skbayes_sg.gradients import SAGA, Minibatch
from skbayes_sg.priors import Normal
from skbayes_sg.schedules import Constant
from skbayes_sg.subsampling import Uniform

LAW = 1e-10
EXACT = 1e-12
langevin = pytest.mark.parametrize("sampler", cases.LANGEVIN)
kinds = pytest.mark.parametrize("kind", cases.PRECONDITIONERS)


def law_of_position(kernels, h):
    """Exact stationary mean and covariance of θ for full gradients."""
    M, c, B = affine(kernels, h)
    assert radius(M) < 1.0
    mean, covariance = naive.stationary_law(M[None], c[None], B @ B.T)
    return in_theta(kernels.frame, mean, covariance)


# -- Langevin dynamics with full gradients --------------------------------------------------------


@langevin
@kinds
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_law_is_that_of_the_formula(sampler, kind, share):
    scene, case = gaussian_scene(), cases.LANGEVIN[sampler]
    A, mu = precision_and_mean(scene)
    frame = scene.frame(kind=kind or "none")  # around a point that is not the mode
    h = step_size(scene, frame, share, case.dynamics)
    mean, covariance = law_of_position(probe.Probe(frame, dynamics=case.dynamics), h)
    P = cases.PRECONDITIONERS[kind](A)
    expected = case.covariance(A, P, h)
    close(mean, mu, LAW, np.abs(mu).max())
    close(covariance / np.abs(expected).max(), expected / np.abs(expected).max(), LAW)


@langevin
def test_exact_on_gaussian_is_a_fact(sampler):
    scene, dynamics = gaussian_scene(), cases.LANGEVIN[sampler].dynamics
    A, _ = precision_and_mean(scene)
    frame = scene.frame()
    _, covariance = law_of_position(
        probe.Probe(frame, dynamics=dynamics), step_size(scene, frame, 0.3, dynamics)
    )
    exact = np.abs(covariance @ A - np.eye(3)).max() < LAW
    assert exact == dynamics.exact_on_gaussian


@langevin
def test_stable_up_to_the_largest_step(sampler):
    scene, dynamics = gaussian_scene(), cases.LANGEVIN[sampler].dynamics
    frame = scene.frame()
    kernels = probe.Probe(frame, dynamics=dynamics)
    steps = [step_size(scene, frame, share, dynamics) for share in (0.99, 1.01)]
    radii = [radius(affine(kernels, h)[0]) for h in steps]
    assert radii[0] < 1.0 < radii[1]


@langevin
def test_bias_is_that_of_the_law(sampler):
    # On a unit Gaussian: exactly, or to first order (that of SGLD, exactly b / (1 - b)).
    case, h = cases.LANGEVIN[sampler], 0.04
    unit = np.eye(1)
    found = case.dynamics.bias(h)
    exact = case.covariance(unit, unit, h)[0, 0] - 1.0
    if type(case.dynamics).bias is Dynamics.bias:
        found /= 1.0 - found
    assert abs(found - exact) < LAW


@pytest.mark.parametrize("curvature", [0.5, 1.0])
def test_widening_of_sgld_is_exact_for_large_steps(curvature):
    case, A = cases.LANGEVIN["sgld"], np.array([[curvature]])
    exact = case.covariance(A, np.eye(1), 3.0)[0, 0] * curvature - 1.0
    assert abs(case.dynamics.widening(3.0, curvature) - exact) < LAW
    with_noise = case.dynamics.widening(3.0, curvature, noise=0.2)
    assert with_noise + 1.0 == pytest.approx(1.2 * (exact + 1.0))
    assert case.dynamics.widening(4.0 / curvature, curvature) == np.inf
    assert cases.LANGEVIN["baoab"].dynamics.widening(0.5, 1.0, 0.1) == 0.1


@langevin
def test_step_for_bias_is_the_inverse(sampler):
    dynamics = clone(cases.LANGEVIN[sampler].dynamics)
    if dynamics.exact_on_gaussian:
        return
    if "noise_estimate" in dynamics.get_params():  # the share that the step is not to answer for
        dynamics.set_params(noise_estimate=0.0)
    for bias, curvature in itertools.product((1e-4, 0.02, 0.3), (0.1, 1.0, 7.0)):
        h = dynamics.step_for_bias(bias, curvature)
        assert abs(dynamics.bias(h, curvature) / bias - 1.0) < LAW


@langevin
def test_law_does_not_depend_on_the_estimator_when_it_sees_all_rows(sampler):
    scene = gaussian_scene()
    frame = scene.frame(kind="hessian")
    dynamics = cases.LANGEVIN[sampler].dynamics
    h = step_size(scene, frame, 0.175, dynamics)
    expected = law_of_position(probe.Probe(frame, dynamics=dynamics), h)
    for gradient in cases.GRADIENTS.values():
        found = law_of_position(probe.Probe(frame, gradient.gradient, dynamics=dynamics), h)
        for one, two in zip(found, expected, strict=True):
            close(one, two, LAW, np.abs(two).max())


def test_velocity_of_baoab():
    # Half a kick later the velocity is independent of the position, with variance 1 - h²a/4 for
    # time steps h: the laws of Leimkuhler and Matthews for the whole splitting.
    scene = gaussian_scene()
    frame = scene.frame()
    h, (A, _) = step_size(scene, frame, 0.4), precision_and_mean(scene)
    M, c, B = affine(probe.Probe(frame, dynamics=cases.DYNAMICS["baoab"].dynamics), h)
    _, covariance = naive.stationary_law(M[None], c[None], B @ B.T)
    half_kick = np.block([[np.eye(3), np.zeros((3, 3))], [-0.5 * np.sqrt(h) * A, np.eye(3)]])
    covariance = half_kick @ covariance @ half_kick.T
    close(covariance[3:, 3:], np.eye(3) - 0.25 * h * A, LAW)
    close(covariance[:3, 3:], np.zeros((3, 3)), LAW)


# -- gradient noise -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("gradient", [g for g, c in cases.GRADIENTS.items() if not c.all_rows])
def test_law_under_random_batches(gradient, n):
    scene = gaussian_scene()
    frame = scene.frame()
    h = step_size(scene, frame, 0.02)
    kernels = probe.Probe(frame, cases.GRADIENTS[gradient].gradient, batch_size=n)
    M, c, B = batch_maps(kernels, h, n)
    close(B, np.broadcast_to(B[0], B.shape), EXACT)
    mean, covariance = in_theta(frame, *naive.stationary_law(M, c, B[0] @ B[0].T))
    maps, shifts = formula_maps(scene, frame, gradient, h, n)
    mu, expected = naive.stationary_law(maps, shifts, h * np.eye(3))
    close(mean, mu, LAW)
    close(covariance, expected, LAW)
    close(mean, precision_and_mean(scene)[1], LAW)  # unbiased, whatever the noise


def test_variance_reduction_in_the_law():
    # The quadratic posterior: Taylor's remainder vanishes, control variates help, the plain
    # gradient inflates the most; two rows inflate less than one.
    scene = gaussian_scene()
    A, mu = precision_and_mean(scene)
    frame = scene.frame(mu)
    h, traces = step_size(scene, frame, 0.02), {}
    for gradient, n in itertools.product(("taylor", "control_variate", "minibatch"), (1, 2)):
        kernels = probe.Probe(frame, cases.GRADIENTS[gradient].gradient, batch_size=n)
        M, c, B = batch_maps(kernels, h, n)
        _, covariance = naive.stationary_law(M, c, B[0] @ B[0].T)
        traces[gradient, n] = np.trace(covariance @ A) / 3.0
    full = np.trace(cases.langevin_covariance(A, np.eye(3), h) @ A) / 3.0
    assert abs(traces["taylor", 1] - full) < LAW
    for n in (1, 2):
        assert full < traces["control_variate", n] < traces["minibatch", n]
    assert traces["minibatch", 2] < traces["minibatch", 1]


def unit_maps(dynamics, h):
    """(M, B, G): how the state takes noise ξ, and a change of the gradient by 1."""
    kernels = probe.Probe(unit_scene(), dynamics=dynamics)
    M, _, B = affine(kernels, h)
    state = kernels.update(np.zeros((dynamics.n_rows, 1)), np.ones(1), np.zeros(1), h)
    return M, B, state.ravel()[:, None]


@langevin
def test_noise_inflation(sampler):
    # Unit gradient noise raises the variance of a unit Gaussian by `noise_inflation`, to first
    # order: what the exact law has beyond it vanishes with the time step.
    dynamics = cases.LANGEVIN[sampler].dynamics
    for h in (1e-3, 1e-4):
        M, B, G = unit_maps(dynamics, h)
        clean, noisy = (
            linalg.solve_discrete_lyapunov(M, B @ B.T + s * (G @ G.T))[0, 0] for s in (0.0, 1.0)
        )
        assert abs((noisy - clean) / dynamics.noise_inflation(h) - 1.0) < 2.0 * math.sqrt(h)


def test_noise_inflation_of_langevin_dynamics_exactly():
    h = 0.3
    M, B, G = unit_maps(SGLD(), h)
    variance = linalg.solve_discrete_lyapunov(M, B @ B.T + 2.0 * G @ G.T)[0, 0]
    assert abs(variance - (1.0 + 2.0 * h / 4.0) / (1.0 - h / 4.0)) < LAW


@langevin
def test_step_for_inflation_is_the_inverse(sampler):
    dynamics = cases.LANGEVIN[sampler].dynamics
    for inflation in (1e-4, 0.02, 0.3):
        h = dynamics.step_for_inflation(inflation)
        assert abs(dynamics.noise_inflation(h) / inflation - 1.0) < EXACT


@langevin
@pytest.mark.parametrize("slowest", [1.0, 0.1, 1e-3])
def test_relaxation_steps(sampler, slowest):
    # The state forgets at the rate of the largest eigenvalue of M.
    dynamics, h = cases.LANGEVIN[sampler].dynamics, 1e-4
    table = Normal(scale=math.sqrt(2.0 / slowest))._table((1,))
    target = probe.make_target(
        cases.MODELS["gaussian"].model, np.ones((1, 1)), np.zeros(1), np.full(1, 0.5 * slowest),
        table, intercept=False,
    )  # fmt: skip
    M, _, _ = affine(probe.Probe(probe.frame_at(target, np.zeros(1)), dynamics=dynamics), h)
    steps = -1.0 / math.log(radius(M))
    assert abs(dynamics.relaxation_steps(h, slowest) / steps - 1.0) < 0.02


# -- coupled chains -------------------------------------------------------------------------------


def coupled_distance(dynamics, h, mix):
    """Exact root mean square distance, in position, of chains of step h and half its time step.

    ``mix = (a, b)``: the coarse noise is ``a ξ1 + b ξ2`` of the two fine steps.
    """
    coarse, _, B_coarse = affine(probe.Probe(unit_scene(), dynamics=dynamics), h)
    fine, _, B_fine = affine(
        probe.Probe(unit_scene(), dynamics=dynamics), h / dynamics.substep_ratio
    )
    size = len(coarse)
    M = linalg.block_diag(coarse, fine @ fine)
    B = np.zeros((2 * size, 2))
    B[:size] = B_coarse @ np.array([mix])
    B[size:] = np.hstack([fine @ B_fine, B_fine])
    S = linalg.solve_discrete_lyapunov(M, B @ B.T)
    return math.sqrt(S[0, 0] + S[size, size] - 2.0 * S[0, size])


@langevin
def test_coarse_noise_follows_the_fine_noise(sampler):
    dynamics = cases.LANGEVIN[sampler].dynamics
    steps = [0.04, 0.04 / dynamics.substep_ratio**2]
    distances = [coupled_distance(dynamics, h, dynamics.coarse_noise(h)) for h in steps]
    assert np.dot(dynamics.coarse_noise(0.04), dynamics.coarse_noise(0.04)) == pytest.approx(1.0)
    assert distances[1] < 0.6 * distances[0] < 0.13  # a quarter of the time step
    # And noise of one half alone does not follow.
    assert coupled_distance(dynamics, steps[1], (0.0, 1.0)) > 0.3


@langevin
def test_coupled_chains_share_their_noise(sampler):
    # Step by step: the fine chain takes two steps on ξ1 and ξ2, the coarse one on a ξ1 + b ξ2.
    dynamics, h, thin, n_draws = cases.LANGEVIN[sampler].dynamics, 0.3, 2, 5
    kernels = probe.Probe(make_scene("logistic").frame(kind="hessian"), dynamics=dynamics)
    found = kernels.sample_coupled(np.zeros(kernels.dimension), 11, h, n_draws, thin)
    coarse, fine, noise = kernels.start_of_chain(np.zeros(kernels.dimension), 11)
    mix = dynamics.coarse_noise(h)
    for k in range(n_draws):
        for _ in range(thin):
            one, two = noise.standard_normal((2, kernels.dimension))
            coarse = kernels.step(coarse, *kernels.all_rows, mix[0] * one + mix[1] * two, h)
            for xi in (one, two):
                fine = kernels.step(fine, *kernels.all_rows, xi, h / dynamics.substep_ratio)
        close(found[0, 0, k], coarse[0], EXACT)
        close(found[1, 0, k], fine[0], EXACT)


@pytest.mark.parametrize("gradient", [Minibatch(), SAGA()], ids=repr)
def test_chains_stay_where_they_are_while_copies_are_coupled(gradient):
    """Else a second attempt would begin elsewhere in processes than in threads."""
    frame = make_scene("logistic").frame(kind="hessian")
    kernels = probe.Probe(frame, gradient, Uniform(), batch_size=3)
    start, slow = np.zeros((2, kernels.dimension)), Constant(0.01)
    _, chains = kernels.sample(start, 11, 5, step_size=slow)
    (chain, other), before = chains, copy.deepcopy(chains)
    run.sample_coupled(kernels.setup, chains, 0.1, 9, 2)
    assert chain.total == before[0].total
    close(chain.state, before[0].state, 0.0)
    close(other.state, before[1].state, 0.0)
    for name in ("rng_rows", "rng_noise"):
        assert getattr(chain, name).random() == getattr(before[0], name).random()


# -- Metropolis-corrected samplers ----------------------------------------------------------------


METROPOLIS_SCENES = {
    "logistic": {"prior": "student_t"},
    "softmax": {"prior": "normal"},
    "gaussian": {"prior": "normal"},
}


@pytest.mark.parametrize("model", METROPOLIS_SCENES)
@kinds
def test_leapfrog_is_the_formula(model, kind):
    scene = make_scene(model, **METROPOLIS_SCENES[model])
    frame = scene.frame(kind=kind or "none")
    kernels, rng = probe.Probe(frame), np.random.default_rng(0)
    q, v = rng.normal(size=(2, kernels.dimension))
    F = np.diag(frame.F[0]) if len(frame.F) == 1 else frame.F

    def slope(q):
        return F.T @ scene.posterior.gradient(frame.centre.theta + F @ q)

    q, v = 0.3 * q, v
    half = v - 0.5 * 0.2 * slope(q)
    there = q + 0.2 * half
    found = kernels.leapfrog(q, v, 0.2)[:2]
    scale = np.abs(slope(q)).max()
    close(found[0], there, EXACT, scale)
    close(found[1], half - 0.5 * 0.2 * slope(there), EXACT, 10.0 * scale)


@pytest.mark.parametrize("model", METROPOLIS_SCENES)
def test_leapfrog_is_reversible(model):
    kernels = probe.Probe(make_scene(model, **METROPOLIS_SCENES[model]).frame(kind="hessian"))
    q0, v0 = np.random.default_rng(1).normal(size=(2, kernels.dimension))
    q, v = q0, v0
    for _ in range(20):
        q, v, _ = kernels.leapfrog(q, v, 0.3)
    v = -v
    for _ in range(20):
        q, v, _ = kernels.leapfrog(q, v, 0.3)
    close(q, q0, EXACT, 10.0)
    close(-v, v0, EXACT, 10.0)


@pytest.mark.parametrize("model", METROPOLIS_SCENES)
def test_leapfrog_preserves_volume(model):
    kernels = probe.Probe(make_scene(model, **METROPOLIS_SCENES[model]).frame(kind="hessian"))
    D = kernels.dimension
    origin = np.random.default_rng(2).normal(size=2 * D)

    def move(state):
        return np.concatenate(kernels.leapfrog(state[:D], state[D:], 0.4)[:2])

    size = 1.0 if model == "gaussian" else 6e-6  # affine: differences are exact at any distance
    jacobian = np.stack(
        [(move(origin + e) - move(origin - e)) / (2.0 * size) for e in size * np.eye(2 * D)], axis=1
    )
    assert abs(np.linalg.det(jacobian) - 1.0) < (EXACT if model == "gaussian" else 1e-8)


@pytest.mark.parametrize("kind", ["hessian", "none"])
def test_mala_is_one_leapfrog_step(kind):
    # The proposal is θ - (h/2)∇U + √h ξ, and the acceptance that of Metropolis and Hastings.
    scene = make_scene("logistic", "student_t")
    frame = scene.frame(kind=kind)
    kernels, h, rng = probe.Probe(frame, dynamics=MALA()), 0.3, np.random.default_rng(3)
    length, jitter = MALA().path()
    assert (length, jitter) == (0.0, 0.0)  # a single step of √h always
    for _ in range(5):
        q, noise = rng.normal(size=(2, kernels.dimension))
        there, momentum, proposed = kernels.leapfrog(q, noise, math.sqrt(h))
        close(proposed, kernels.potential(there), EXACT, 10.0)
        close(there, q - 0.5 * h * kernels.estimate(q) + math.sqrt(h) * noise, EXACT, 10.0)
        back = q - there + 0.5 * h * kernels.estimate(there)
        log_ratio = kernels.potential(q) - kernels.potential(there)
        log_ratio += 0.5 * (noise @ noise - back @ back / h)
        energy = kernels.potential(q) + 0.5 * noise @ noise
        found = kernels.acceptance(energy, kernels.potential(there), momentum)
        assert abs(found - min(1.0, math.exp(log_ratio))) < EXACT


def test_acceptance_probability():
    kernels, v = probe.Probe(make_scene("gaussian").frame()), np.array([1.0, 2.0, 0.0])
    for energy, proposed in [(5.0, 2.0), (5.0, 2.5), (5.0, 4.0), (5.0, 900.0), (-3.0, -8.0)]:
        expected = math.exp(min(0.0, energy - proposed - 2.5))
        assert kernels.acceptance(energy, proposed, v) == pytest.approx(expected, rel=1e-14)
    assert kernels.acceptance(5.0, np.nan, v) == 0.0
    assert kernels.acceptance(5.0, np.inf, v) == 0.0
    assert kernels.acceptance(5.0, 0.0, np.array([np.inf, 0.0, 0.0])) == 0.0


def energies():
    """(model, prior, kind); a flat prior leaves the shift of all classes without curvature."""
    found = itertools.product(("logistic", "softmax"), cases.PRIORS, cases.PRECONDITIONERS)
    return [(m, p, k) for m, p, k in found if not (m == "softmax" and p == "flat" and k)]


@pytest.mark.parametrize(("model", "prior", "kind"), energies())
def test_energy_belongs_to_the_gradient(model, prior, kind):
    scene = make_scene(model, prior, n_rows=20)
    kernels = probe.Probe(scene.frame(kind=kind or "none"))
    z = 0.5 * np.random.default_rng(4).normal(size=kernels.dimension)
    g = kernels.estimate(z)
    close(naive.central_difference(kernels.potential, z), g, 1e-7, np.abs(g).max())
    for valued in (True, False):
        _, again = kernels.potential_and_gradient(z, valued)
        close(again, g, EXACT, np.abs(g).max())


def naive_metropolis(kernels, position, rng, *, n_draws, epsilon, length, jitter):
    """Hamiltonian Monte Carlo in twenty lines, with random numbers in the order of the library."""
    q, draws, accepted = np.array(position), [], 0
    for _ in range(n_draws):
        v = rng.standard_normal(len(q))
        step = epsilon * (1.0 + jitter * (2.0 * rng.random() - 1.0))
        n_steps = max(1, round(length * (0.7 + 0.6 * rng.random()) / step))
        energy, there, w = kernels.potential(q) + 0.5 * v @ v, q, v
        for _ in range(n_steps):
            w = w - 0.5 * step * kernels.estimate(there)
            there = there + step * w
            w = w - 0.5 * step * kernels.estimate(there)
        change = energy - kernels.potential(there) - 0.5 * w @ w
        if rng.random() < math.exp(min(0.0, change)):
            q, accepted = there, accepted + 1
        draws.append(q)
    return np.array(draws), accepted


@pytest.mark.parametrize("sampler", cases.METROPOLIS)
def test_chains_follow_a_naive_statement(sampler):
    # Whole chains of the library against the naive loop on the same random numbers. A step so
    # large that moves are refused as well.
    dynamics = cases.METROPOLIS[sampler].dynamics
    kernels = probe.Probe(
        make_scene("logistic", "student_t").frame(kind="hessian"), dynamics=dynamics
    )
    start, h, n_draws = np.array([0.5, -0.3, 0.1]), 1.2, 60
    draws, chains = kernels.sample(start, 11, n_draws, step_size=Constant(h))
    stream = np.random.SeedSequence(entropy=11, spawn_key=(0,)).spawn(3)[1]
    length, jitter = dynamics.path()
    expected, accepted = naive_metropolis(
        kernels, start, np.random.Generator(np.random.SFC64(stream)), n_draws=n_draws,
        epsilon=math.sqrt(h), length=length, jitter=jitter,
    )  # fmt: skip
    close(draws[0], expected, 1e-9)
    assert 5 < accepted < n_draws - 5
    assert chains[0].record[metropolis.TRIED] == n_draws


@langevin
def test_langevin_chains_follow_a_naive_statement(sampler):
    # Whole chains against single steps with injected randomness: rows and noise each come from
    # a stream of their own, thinning keeps every third state.
    dynamics = cases.LANGEVIN[sampler].dynamics
    scheme = cases.SUBSAMPLING["uniform"].scheme
    kernels = probe.Probe(
        make_scene("logistic").frame(kind="hessian"), cases.GRADIENTS["taylor"].gradient, scheme,
        dynamics, batch_size=2,
    )  # fmt: skip
    start = np.array([0.5, -0.3, 0.1])
    schedule, formula = cases.SCHEDULES["polynomial"]
    draws, _ = kernels.sample(start, 12, 10, thin=3, step_size=schedule)
    children = np.random.SeedSequence(entropy=12, spawn_key=(0,)).spawn(3)
    rng_rows, rng_noise, rng_start = (np.random.Generator(np.random.SFC64(c)) for c in children)
    state = dynamics.start(start, rng_start)
    for t in range(30):
        rows = (rng_rows.random(2) * 6).astype(int)
        state = kernels.step(state, rows, [3.0, 3.0], rng_noise.standard_normal(3), formula(t))
        if t % 3 == 2:
            close(draws[0, t // 3], state[0], 1e-11)


@pytest.mark.parametrize("name", cases.SCHEDULES)
def test_schedule_is_the_formula(name):
    schedule, formula = cases.SCHEDULES[name]
    t = np.array([0, 1, 6, 7, 11, 12, 10**6, 10**12])
    np.testing.assert_allclose(np.broadcast_to(schedule(t), len(t)), formula(t), rtol=1e-14)
