"""Simulations against exact laws, with standard errors known in advance, and twins that must fail.

Every check asks for agreement within five standard errors (half a chance in a million each); every
check comes with a planted error that it must see, so that none of them is vacuous.
"""

import itertools
import math
import os

import cases
import naive
import numba
import numpy as np
import probe
import pytest
from affine_steps import affine, batch_maps, gaussian_scene, step_size
from scenes import make_scene
from scipy import linalg, stats

from skbayes_sg.schedules import Constant

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="too slow uncompiled")
LIMIT = 5.0
CHAINS, DRAWS, WARMUP = 4, 20_000, 1000
SEED = int(os.environ.get("SKBAYES_SG_TEST_SEED", "0"))  # a seed that fails is a bug report
langevin = pytest.mark.parametrize("sampler", cases.LANGEVIN)


def run(kernels, h, seed=SEED, *, n_chains=CHAINS, n_draws=DRAWS, thin=1):
    """Draws of several chains after a warm-up, in the coordinates of the chains."""
    start = np.random.default_rng(seed).normal(size=(n_chains, kernels.dimension))
    options = {"step_size": Constant(h)}
    draws, _ = kernels.sample(start, seed, n_draws + WARMUP, thin, **options)
    return draws[:, WARMUP:]


# -- linear chains: standard errors in closed form ------------------------------------------------


def gaussian_law(kernels, h):
    """(mean, variance, and for each coordinate its autocovariances) of a chain of the library."""
    M, c, B = affine(kernels, h)
    mean, S = naive.stationary_law(M[None], c[None], B @ B.T)
    D, lagged, autocovariances = kernels.dimension, S, []
    while not autocovariances or np.abs(autocovariances[-1]).max() > 1e-8 * np.abs(S).max():
        autocovariances.append(np.diag(lagged)[:D])
        lagged = M @ lagged
    return mean[:D], np.diag(S)[:D], np.array(autocovariances)


def z_scores(draws, law):
    """Errors of means and of variances about the exact mean, in exact standard errors."""
    mean, variance, c = law
    count = draws.shape[0] * draws.shape[1]
    error_of_mean = np.sqrt((c[0] + 2.0 * c[1:].sum(axis=0)) / count)
    error_of_square = np.sqrt(2.0 * (c[0] ** 2 + 2.0 * (c[1:] ** 2).sum(axis=0)) / count)
    means = (draws.mean(axis=(0, 1)) - mean) / error_of_mean
    squares = (((draws - mean) ** 2).mean(axis=(0, 1)) - variance) / error_of_square
    return np.abs(means).max(), np.abs(squares).max()


def test_standard_errors_of_an_autoregression():
    # The sums over autocovariances are the closed forms: SE(mean) = σ sqrt((1+ρ)/((1-ρ)M)) and
    # SE(square) = σ² sqrt(2(1+ρ²)/((1-ρ²)M)) for SGLD, where ρ = 1 - h a / 2.
    scene = gaussian_scene()
    kernels = probe.Probe(scene.frame(kind="hessian"))
    h = 0.3
    rho, variance = 1.0 - h / 2.0, 1.0 / (1.0 - h / 4.0)
    _, found, c = gaussian_law(kernels, h)
    np.testing.assert_allclose(found, variance)
    np.testing.assert_allclose(
        c[0] + 2.0 * c[1:].sum(axis=0), variance * (1.0 + rho) / (1.0 - rho), rtol=1e-6
    )
    squares = c[0] ** 2 + 2.0 * (c[1:] ** 2).sum(axis=0)
    np.testing.assert_allclose(squares, variance**2 * (1.0 + rho**2) / (1.0 - rho**2), rtol=1e-6)


@pytest.mark.slow_for("none")
@langevin
@pytest.mark.parametrize("kind", ["hessian", "none"])
def test_chains_have_their_exact_law(sampler, kind):
    scene, dynamics = gaussian_scene(), cases.LANGEVIN[sampler].dynamics
    frame = scene.frame(kind=kind)
    kernels, h = probe.Probe(frame, dynamics=dynamics), step_size(scene, frame, 0.1, dynamics)
    draws, law = run(kernels, h), gaussian_law(kernels, h)
    assert max(z_scores(draws, law)) < LIMIT
    # Twins: standard deviations 5 % too large, and a prior that counts half.
    mean = law[0]
    assert z_scores(mean + 1.05 * (draws - mean), law)[1] > LIMIT
    table = scene.target.prior.copy()
    table[:, 2] *= math.sqrt(2.0)
    other = probe.make_target(
        scene.target.model, scene.posterior.X, scene.posterior.y, scene.posterior.weight, table
    )
    twin = probe.Probe(probe.frame_at(other, frame.centre.theta), dynamics=dynamics)
    same = probe.Probe(scene.frame(), dynamics=dynamics)
    h = step_size(scene, same.frame, 0.1, dynamics)
    assert max(z_scores(run(twin, h), gaussian_law(same, h))) > LIMIT


def test_the_bias_of_langevin_dynamics_is_seen():
    # What SGLD draws at h = 0.4 is not the posterior, by 1 / (1 - h/4); Leimkuhler and Matthews'
    # scheme at the same step is.
    scene, h = gaussian_scene(), 0.4
    frame = scene.frame(kind="hessian")
    for name, exact in [("sgld", False), ("leimkuhler_matthews", True)]:
        kernels = probe.Probe(frame, dynamics=cases.DYNAMICS[name].dynamics)
        mean, _, c = gaussian_law(kernels, h)
        z = z_scores(run(kernels, h), (mean, np.ones(3), c))[1]
        assert (z < LIMIT) == exact


# -- other chains: standard errors from the spread of many chains ---------------------------------


def t_scores(draws, means, variances):
    """The same with standard errors from the spread over chains; scores of a normal law."""
    found = []
    for values, exact in ((draws, means), ((draws - means) ** 2, variances)):
        of_chain = values.mean(axis=1)
        t = (of_chain.mean(axis=0) - exact) / (of_chain.std(axis=0, ddof=1) / math.sqrt(len(draws)))
        p = 2.0 * stats.t.sf(np.abs(t), len(draws) - 1)
        found.append(stats.norm.isf(np.maximum(p, 1e-300) / 2.0).max())
    return tuple(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "gradient", ["minibatch", pytest.param("control_variate", marks=pytest.mark.slow)]
)
def test_gradient_noise_widens_the_law_as_predicted(gradient):
    # Two of six rows a step, without replacement: the law over all random affine maps, exactly.
    scene = gaussian_scene()
    frame = scene.frame()
    h = step_size(scene, frame, 0.05)
    kernels = probe.Probe(
        frame, cases.GRADIENTS[gradient].gradient,
        cases.SUBSAMPLING["uniform_without_replacement"].scheme, batch_size=2,
    )  # fmt: skip
    M, c, B = batch_maps(kernels, h, 2)
    mean, S = naive.stationary_law(M, c, B[0] @ B[0].T)
    draws = run(kernels, h, n_chains=16, n_draws=100_000)
    assert max(t_scores(draws, mean, np.diag(S))) < LIMIT
    # Twin: the law without that noise.
    full_mean, full_variance, _ = gaussian_law(probe.Probe(frame), h)
    assert t_scores(draws, full_mean, full_variance)[1] > LIMIT


def quadrature(scene, n_points=601, reach=60.0):
    """Exact mean and variance of θ for two parameters.

    On a grid around the mode that reaches far into heavy tails: trapezoids in arsinh of θ.
    """
    mode = scene.mode()
    H = scene.posterior.row_hessians(mode).sum(axis=0) + np.eye(2)
    axis = np.linspace(-np.arcsinh(reach), np.arcsinh(reach), n_points)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = mode + np.sinh(grid) / np.sqrt(np.diag(H))
    eta = theta @ np.column_stack([scene.posterior.X, np.ones(len(scene.posterior.X))]).T
    U = scene.posterior.weight @ (naive.softplus(eta) - scene.posterior.y * eta).T
    U = U - sum(f(t) for f, t in zip(scene.posterior.log_prior, theta.T, strict=True))
    mass = np.exp(U.min() - U) * np.cosh(grid).prod(axis=1)
    mass /= mass.sum()
    mean = mass @ theta
    return mean, mass @ (theta - mean) ** 2


def logistic_scene(prior):
    """A skewed posterior of two parameters."""
    return make_scene("logistic", prior, n_rows=12, n_features=1, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "prior",
    ["laplace", *[pytest.param(name, marks=pytest.mark.slow) for name in ("normal", "student_t")]],
)
@pytest.mark.parametrize("sampler", cases.METROPOLIS)
def test_metropolis_samplers_have_the_posterior(sampler, prior):
    scene = logistic_scene(prior)
    frame = scene.frame(scene.mode(), "hessian")
    kernels = probe.Probe(frame, dynamics=cases.METROPOLIS[sampler].dynamics)
    means, variances = quadrature(scene)
    draws = frame.theta(run(kernels, 0.8, n_chains=16, n_draws=12_000))
    assert max(t_scores(draws, means, variances)) < LIMIT
    # Twins: the same step without the Metropolis test, and the Laplace approximation.
    biased = frame.theta(run(probe.Probe(frame), 0.8, n_chains=16, n_draws=12_000))
    assert t_scores(biased, means, variances)[1] > LIMIT
    assert max(t_scores(draws, frame.centre.theta, frame.width**2)) > LIMIT


# -- independence ---------------------------------------------------------------------------------


def correlations(draws):
    """Largest correlation between two chains, in its standard errors for independent chains."""
    x = (draws - draws.mean(axis=1, keepdims=True)) / draws.std(axis=1, keepdims=True)
    found = [
        np.abs((one * two).mean(axis=0)).max() * math.sqrt(len(one))
        for one, two in itertools.combinations(x, 2)
    ]
    return max(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler", ["sgld", *[pytest.param(name, marks=pytest.mark.slow) for name in ("baoab", "mala")]]
)
def test_chains_are_not_correlated(sampler):
    scene = gaussian_scene()
    kernels = probe.Probe(scene.frame(kind="hessian"), dynamics=cases.DYNAMICS[sampler].dynamics)
    draws = run(kernels, 0.5, n_chains=6, n_draws=10_000, thin=20)  # nearly independent draws
    assert correlations(draws) < LIMIT
    twin = np.concatenate([draws, 0.1 * draws[:1] + draws[1:2]])  # shares a tenth of its noise
    assert correlations(twin) > LIMIT


def test_rows_and_noise_are_not_correlated():
    # The two streams of a chain: rows against the normals of the same step.
    kernels = probe.Probe(
        make_scene("gaussian").frame(), None, cases.SUBSAMPLING["uniform"].scheme, batch_size=1
    )
    children = np.random.SeedSequence(entropy=SEED, spawn_key=(0,)).spawn(2)
    rng_rows, rng_noise = (np.random.Generator(np.random.SFC64(c)) for c in children)
    rows = kernels.batches(100_000, rng_rows)[0][:, 0]
    noise = rng_noise.standard_normal(100_000)
    for i in range(6):
        z = noise[rows == i].mean() * math.sqrt((rows == i).sum())
        assert abs(z) < LIMIT
    assert linalg.norm(noise) ** 2 / 100_000 == pytest.approx(1.0, abs=LIMIT * math.sqrt(2e-5))
