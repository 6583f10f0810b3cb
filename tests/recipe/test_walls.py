"""Posteriors that end abruptly, where a likelihood is zero outside a support.

Chains bounce off such walls; whole chains are those of a naive statement on the same random
numbers, and the laws agree with quadrature.
"""

import math
import warnings

import numpy as np
import pytest
from support import probe

from skbayes_sg.custom import CustomDensity
from skbayes_sg.custom.row_law import row_law_of
from skbayes_sg.densities.around import frame_around
from skbayes_sg.densities.density import density_target
from skbayes_sg.diagnostics import convergence
from skbayes_sg.dynamics import HMC
from skbayes_sg.engine import metropolis, run
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.priors import HalfNormal, Normal
from skbayes_sg.recipe import walls
from skbayes_sg.schedules import Constant

SIDES = np.array([[1.0, 0.0], [0.6, 0.8]])  # normals of two walls that meet at zero


def wedge(theta, row):
    """Fall exponentially with the distance from a wall."""
    away = row[0] * theta[0] + row[1] * theta[1]
    return -1.5 * away if away > 0.0 else -np.inf


def slope_of_wedge(theta, row):
    return np.array([-1.5 * row[0], -1.5 * row[1]])


def steep(theta, row):
    """A smooth function, which overflows far from zero."""
    return -np.exp(row[0] * theta[0]) - np.exp(-row[0] * theta[0])


def frame_of(f, rows, derivative=None):
    law = row_law_of(f, derivative, (False, False), (1.0, 1.0), 2, "numba")
    table = Normal(scale=3.0)._table((2,))
    target = density_target(law, rows, np.ones(len(rows)), table)
    return frame_around(target, np.array([0.3, 0.4]), "none")


def naive_chain(position, rng, *, n_draws, epsilon, length, jitter):
    """Trajectories in the wedge that turn back where a step would lead out of it."""

    def U(q):
        return 1.5 * (SIDES @ q).sum() + q @ q / 18.0 if (SIDES @ q > 0.0).all() else np.inf

    slope, q, draws, bounces = 1.5 * SIDES.sum(axis=0), np.array(position), [], 0
    for _ in range(n_draws):
        v = rng.standard_normal(2)
        step = epsilon * (1.0 + jitter * (2.0 * rng.random() - 1.0))
        n_steps = max(1, math.floor(length * (0.7 + 0.6 * rng.random()) / step + 0.5))
        there, w = q, v
        for _ in range(min(n_steps, 8)):
            half = w - 0.5 * step * (slope + there / 9.0)
            next_ = there + step * half
            if U(next_) < np.inf:
                there, w = next_, half - 0.5 * step * (slope + next_ / 9.0)
            else:
                w, bounces = -w, bounces + 1
        change = U(q) + 0.5 * v @ v - U(there) - 0.5 * w @ w
        if rng.random() < math.exp(min(0.0, change)):
            q = there
        draws.append(q)
    return np.array(draws), bounces


@pytest.mark.slow
def test_chains_follow_a_naive_statement():
    frame, dynamics = frame_of(wedge, SIDES, slope_of_wedge), HMC()
    setup, n_draws, h = probe.Probe(frame, dynamics=dynamics).setup, 200, 0.1
    setup = run.replace(setup, step_size=Constant(h))
    chains = run.new_chains(setup, np.zeros((1, 2)), 5)
    for chain in chains:
        chain.record = metropolis.new_record(h, True)
    draws, chains = run.sample(setup, chains, n_draws, 1)
    length, jitter = dynamics.path()
    rng = np.random.Generator(
        np.random.SFC64(np.random.SeedSequence(5, spawn_key=(0,)).spawn(3)[1])
    )
    wanted, bounces = naive_chain(
        [0.3, 0.4], rng, n_draws=n_draws, epsilon=math.sqrt(h), length=length, jitter=jitter
    )  # fmt: skip
    assert np.abs(frame.theta(draws[0]) - wanted).max() < 1e-9
    assert bounces > 100
    assert chains[0].record[metropolis.OUTSIDE] > 50


@pytest.mark.slow
def test_walls_are_told_from_smooth_functions_that_overflow():
    for f, rows, is_wall in [(wedge, SIDES, True), (steep, 300.0 * SIDES[:1], False)]:
        frame = frame_of(f, rows)
        setup = probe.Probe(frame, dynamics=HMC()).setup
        (chain,) = run.new_chains(setup, np.zeros((1, 2)), 0)
        chain.record[[metropolis.TRIED, metropolis.OUTSIDE]] = 10.0, 5.0
        assert walls.are_met(frame, [chain], 0) == is_wall
        chain.record[metropolis.OUTSIDE] = 0.0
        assert not walls.are_met(frame, [chain], 0)


def shifted(theta, row):
    return np.log(theta[1]) - theta[1] * (row[0] - theta[0]) if row[0] > theta[0] else -np.inf


def between(theta, row):
    return -np.log(theta[1]) if theta[0] < row[0] < theta[0] + theta[1] else -np.inf


def in_order(theta, row):
    return -0.5 * (row[0] - theta[0]) ** 2 if theta[1] < theta[0] else -np.inf


def on_a_grid(log_p, axes):
    """Means and standard deviations of two parameters, by quadrature."""
    grid = np.meshgrid(*axes, indexing="ij")
    log_p = log_p(*grid)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = np.array([(p * g).sum() for g in grid])
    return mean, np.sqrt([(p * (g - m) ** 2).sum() for g, m in zip(grid, mean, strict=True)])


def a_shift(rng):
    y = 2.0 + rng.exponential(size=20)
    priors, start = {"a": Normal(scale=3.0), "r": HalfNormal(3.0)}, {"a": 1.0, "r": 1.0}
    axes = np.linspace(-2.0, y.min(), 2000), np.linspace(0.01, 5.0, 800)
    exact = on_a_grid(
        lambda a, r: 20.0 * np.log(r) - r * (y.sum() - 20.0 * a) - (a**2 + r**2) / 18.0, axes
    )
    return shifted, y, priors, start, exact


def an_interval(rng):
    y = rng.uniform(2.0, 5.0, size=15)
    priors, start = {"a": Normal(scale=5.0), "w": HalfNormal(10.0)}, {"a": 1.0, "w": 6.0}
    axes = np.linspace(-3.0, y.min(), 1500), np.linspace(np.ptp(y), 12.0, 1500)

    def log_p(a, w):
        return np.where(a + w >= y.max(), -15.0 * np.log(w) - a**2 / 50.0 - w**2 / 200.0, -np.inf)

    return between, y, priors, start, on_a_grid(log_p, axes)


def an_order(rng):
    y = 0.5 + rng.normal(size=30)
    priors, start = {"m": Normal(scale=2.0), "k": Normal(scale=1.0)}, {"m": 0.7, "k": 0.0}
    axes = np.linspace(-0.7, 1.7, 1200), np.linspace(-5.0, 1.7, 1200)

    def log_p(m, k):
        fit = -0.5 * (30.0 * m**2 - 2.0 * m * y.sum()) - m**2 / 8.0 - k**2 / 2.0
        return np.where(k < m, fit, -np.inf)

    return in_order, y, priors, start, on_a_grid(log_p, axes)


@pytest.mark.slow_except("an_order-1")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("case", [a_shift, an_interval, an_order])
def test_laws_agree_with_quadrature(case, seed):
    f, y, priors, start, (mean, sd) = case(np.random.default_rng(seed))
    model = CustomDensity(f, priors, start=start, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(y[:, None])
    draws = model.posterior_.flat
    z = (draws - mean) / sd
    mcse = np.sqrt(z.var(axis=(0, 1)) / convergence.ess_bulk(z))
    assert (np.abs(z.mean(axis=(0, 1))) < 4.5 * mcse).all()
    squares = (z**2).mean(axis=(0, 1)) - 1.0
    mcse = np.sqrt((z**2).var(axis=(0, 1)) / convergence.ess_bulk(z**2))
    assert (np.abs(squares) < 4.5 * mcse).all()
    assert model.diagnostics_["wall"] > 0.2
    verdict = model.posterior_.check()
    assert verdict.trustworthy
    assert [finding.name for finding in verdict.findings] in (
        ["walls"],
        ["tails of the draws", "walls"],
    )
    assert "falls to zero where it ends" in str(verdict)
    assert model.posterior_.scores is None


@pytest.mark.slow
def test_walls_that_are_finite_are_told():
    """Steps shrink at the edge, where the density jumps, until trajectories lead nowhere."""
    y = np.random.default_rng(3).exponential(1.0, 40)

    def uniform(theta, row):
        if row[0] > theta[0]:
            return -1e30
        return -np.log(theta[0])

    options = {"n_draws": 20, "n_chains": 1, "n_warmup": 100, "random_state": 0}
    model = CustomDensity(uniform, {"a": HalfNormal(10.0)}, start={"a": 8.0}, **options)
    with pytest.warns(SamplerConvergenceWarning, match="Return -inf there"):
        model.fit(y[:, None])
    assert model.posterior_["a"].min() >= y.max()
    assert model.thin_ == 1
