"""Locations in space: derivatives by complex step, laws by closed forms and quadrature."""

import warnings

import numpy as np
import pytest
from naive import complex_step
from scenes import close

from skbayes_sg import dynamics
from skbayes_sg.exceptions import MultimodalPosteriorWarning
from skbayes_sg.gradients import GRADIENTS
from skbayes_sg.inspection import known_posteriors as targets
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.choose import sample_posterior
from skbayes_sg.recipe.request import Request
from skbayes_sg.shards.sample import Sharded, sample_shards

SCALE = np.array([[1.0, 0.6], [0.6, 2.0]])
A = np.linalg.inv(SCALE)
x = np.random.default_rng(0).normal(size=(40, 2))
PRIOR = Normal(loc=0.2, scale=3.0)


def form(theta, points=x):
    r = points - theta
    return ((r @ A) * r).sum(axis=1)


# name: model, points, log-likelihood (complex-safe)
CASES = {
    "gaussian": (targets.GaussianLocation(SCALE), x, lambda t: -0.5 * form(t).sum()),
    "t": (
        targets.TLocation(SCALE, df=3.0), x, lambda t: -0.5 * 5.0 * np.log1p(form(t) / 3.0).sum(),
    ),
    "mixture": (
        targets.MixtureLocations(SCALE), x,
        lambda t: np.log(np.exp(-0.5 * form(t[:2])) + np.exp(-0.5 * form(t[2:]))).sum(),
    ),
    "warped": (
        targets.WarpedLocation(sd=0.5), x[:, :1],
        lambda t: -0.5 * 4.0 * ((x[:, 0] - t[0] - t[1] ** 2) ** 2).sum(),
    ),
}  # fmt: skip
cases = pytest.mark.parametrize("name", CASES)


def posed(name):
    model, points, log_likelihood = CASES[name]
    target = targets.location_posterior(model, points, PRIOR)

    def potential(theta):
        return -log_likelihood(theta) + 0.5 * (((theta - 0.2) / 3.0) ** 2).sum()

    return target, potential


def points_of(target):
    rng = np.random.default_rng(1)
    return [*rng.normal(size=(3, target.n_parameters)), np.full(target.n_parameters, 4.0)]


@cases
def test_value_and_gradient(name):
    target, potential = posed(name)
    origin = points_of(target)[0]
    for theta in points_of(target):
        value, g = target.value_and_gradient(theta)
        change = value - target.value_and_gradient(origin)[0]
        close(change, np.real(potential(theta) - potential(origin)), 1e-12, abs(value))
        close(g, complex_step(potential, theta), 1e-12, np.abs(g).max())


@cases
def test_curvature_is_that_of_a_quadratic_above(name):
    """The loss lies below the quadratic; the warped one has the curvature of Gauss and Newton."""
    target, _ = posed(name)
    rng = np.random.default_rng(2)
    for theta in points_of(target)[:3]:
        H = target.likelihood_hessian(theta) + np.diag(target.prior_curvature(theta))
        assert np.linalg.eigvalsh(H)[0] > 0.0
        if name == "warped":
            slope = np.array([1.0, 2.0 * theta[1]])
            close(H, 4.0 * 40 * np.outer(slope, slope) + np.eye(2) / 9.0, 1e-12, H.max())
            continue
        value, g = target.value_and_gradient(theta)
        for step in rng.normal(size=(20, target.n_parameters)):
            above = value + g @ step + 0.5 * step @ H @ step
            assert target.value_and_gradient(theta + step)[0] <= above + 1e-9 * abs(above)


@cases
def test_rows_that_are_taken_keep_all_of_their_labels(name):
    target, _ = posed(name)
    theta = points_of(target)[1]
    one, two = (
        target.take(r, target.weight[r]) for r in (np.arange(0, 40, 2), np.arange(1, 40, 2))
    )
    whole = target.likelihood(theta)
    parts = one.likelihood(theta), two.likelihood(theta)
    close(parts[0][0] + parts[1][0], whole[0], 1e-12, abs(whole[0]))
    close(parts[0][1] + parts[1][1], whole[1], 1e-12, np.abs(whole[1]).max())
    facts, g, _ = target.expansion(theta, dense=True)
    close(g, whole[1], 1e-12, np.abs(whole[1]).max())
    eta = np.tile(theta, (40, 1))  # kernels find the labels among the facts of an expansion too
    close(target.derivative(facts, eta), target.derivative(target.data.facts, eta), 0.0)


def gaussian_posterior(points, prior_scale=100.0):
    P = len(points) * A + np.eye(2) / prior_scale**2
    return np.linalg.solve(P, A @ points.sum(axis=0)), np.linalg.inv(P)


@pytest.mark.parametrize("sampler", dynamics.DYNAMICS)
def test_every_sampler_draws_from_the_gaussian(sampler):
    target = targets.location_posterior(targets.GaussianLocation(SCALE), x)
    mean, covariance = gaussian_posterior(x)
    made = dynamics.DYNAMICS[sampler]()
    request = Request(sampler=made, n_draws=1000, n_chains=2, seed=1)
    outcome = sample_posterior(target, request)
    flat = outcome.draws.reshape(-1, 2)
    size = outcome.diagnostics["min_ess"]
    sd = np.sqrt(np.diag(covariance))
    assert size > 300
    assert np.abs((flat.mean(axis=0) - mean) / sd).max() < 5.0 / np.sqrt(size)
    assert np.abs(flat.std(axis=0) / sd - 1.0).max() < 0.1 + 5.0 / np.sqrt(2 * size)


@pytest.mark.slow_except("control_variate")
@pytest.mark.parametrize("gradient", [g for g in GRADIENTS if g != "full"])
@pytest.mark.parametrize("name", ["mixture"])
def test_every_gradient_can_read_the_labels(name, gradient):
    target, _ = posed(name)
    request = Request(
        sampler=dynamics.SGLD(), gradient=GRADIENTS[gradient](), batch_size=10, n_draws=50,
        n_chains=1, n_warmup=20, thin=1, seed=1,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # short on purpose
        assert np.isfinite(sample_posterior(target, request).draws).all()


def test_the_warped_posterior_by_quadrature():
    points = np.random.default_rng(0).normal(0.5, 2.0, (200, 1))
    target = targets.location_posterior(targets.WarpedLocation(sd=2.0), points, Normal(scale=1.0))
    grid = np.linspace(-4.0, 4.0, 801)
    t1, t2 = np.meshgrid(grid, grid, indexing="ij")
    apart = points.mean() - t1 - t2**2
    density = np.exp(-0.5 * 200 / 4.0 * apart**2 - 0.5 * (t1**2 + t2**2))
    density /= density.sum()
    outcome = sample_posterior(target, Request(sampler=dynamics.HMC(), n_draws=4000, seed=1))
    flat, size = outcome.draws.reshape(-1, 2), outcome.diagnostics["min_ess"]
    assert size > 400
    for of in (lambda a, b: a, lambda a, b: b, lambda a, b: a**2, lambda a, b: b**2):
        values = of(t1, t2)
        mean = (density * values).sum()
        sd = np.sqrt((density * values**2).sum() - mean**2)
        assert abs(of(*flat.T).mean() - mean) < 6.0 * sd / np.sqrt(size)


@pytest.mark.slow
def test_shards_of_a_bimodal_posterior_come_with_a_warning():
    rng = np.random.default_rng(0)
    points = rng.normal(1.0 * rng.choice([-1.0, 1.0], (400, 1)), 1.0)
    target = targets.location_posterior(targets.MixtureLocations(np.eye(1)), points, Normal())
    request = Request(sampler=dynamics.HMC(), n_draws=600, n_chains=2, seed=1)
    with pytest.warns(MultimodalPosteriorWarning, match="2 modes, and the chains do not cross"):
        sample_shards(Sharded(target, 4, seed=1), request)


def test_points_of_another_dimension():
    with pytest.raises(ValueError, match="x must have 2 columns, got 3"):
        targets.location_posterior(targets.GaussianLocation(SCALE), np.zeros((5, 3)))
    with pytest.raises(ValueError, match="square matrix"):
        targets.TLocation(np.ones((2, 3)), df=2.0)
