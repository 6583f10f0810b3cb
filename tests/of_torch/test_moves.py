"""Steps on tensors are those of the compiled samplers, on the same gradients and noise."""

import numpy as np
import probe
import pytest
from affine_steps import unit_scene

from skbayes_sg.dynamics import BAOAB, SGHMC, SGLD, SGNHT

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from skbayes_sg.torch import moves
from skbayes_sg.torch.moves import MOVES

DYNAMICS = [
    SGLD(),
    SGHMC(friction=0.7, noise_estimate=0.2),
    SGHMC(friction=0.7, noise_estimate=0.1, refresh=3),
    SGNHT(friction=0.5),
    SGNHT(friction=0.5, thermostat="coordinate", inertia=2.0),
    SGNHT(friction=0.5, inertia=np.inf),
    BAOAB(friction=1.3),
]
STEPS, D = 20, 7
CURVATURE = np.linspace(0.2, 2.0, D)


def paths(dynamics, dtype, h=0.2):
    """States of the two implementations after each step, the gradient being A φ."""
    rng = np.random.default_rng(0)
    compiled = probe.Probe(unit_scene(), dynamics=dynamics)
    state = dynamics.start(rng.normal(size=D), rng)
    tensors = [torch.tensor(row, dtype=dtype) for row in state]
    parameters = tuple(float(p) for p in dynamics.parameters())
    A, found = torch.tensor(CURVATURE, dtype=dtype), []
    for _ in range(STEPS):
        noise = rng.normal(size=D)
        state = compiled.update(state, CURVATURE * state[0], noise, h)
        own = torch.tensor(noise, dtype=dtype)
        MOVES[type(dynamics)](tensors, A * tensors[0], own, h, parameters)
        found.append((state.copy(), np.stack([t.double().numpy() for t in tensors])))
    return map(np.array, zip(*found, strict=True))


@pytest.mark.parametrize("dynamics", DYNAMICS, ids=repr)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_paths_are_those_of_the_compiled_samplers(dynamics, dtype, tolerance):
    expected, found = paths(dynamics, dtype)
    scale = np.abs(expected[:, :2]).max()
    rows = 2 if getattr(dynamics, "refresh", None) else expected.shape[1]
    # A counter has only its first number in use.
    assert np.abs(found[:, :rows] - expected[:, :rows]).max() < tolerance * max(scale, 1.0)


def test_a_wrong_step_is_seen():
    expected, found = paths(SGLD(), torch.float64, h=0.2)
    _, other = paths(SGLD(), torch.float64, h=0.2 * (1.0 + 1e-9))
    assert np.abs(expected - found).max() < 1e-12 < np.abs(expected - other).max()


def test_a_thermostat_removes_the_mean_of_the_noise():
    assert moves.noise_left(SGNHT(), 3.0, 2.0) == pytest.approx(1.0)
    assert moves.noise_left(BAOAB(), 3.0, 2.0) == 3.0
    assert moves.noise_left(SGNHT(inertia=np.inf), 3.0, 2.0) == 3.0


@pytest.mark.parametrize("dynamics", DYNAMICS, ids=repr)
def test_the_step_for_a_noise_has_that_inflation(dynamics):
    h = moves.noise_limit(dynamics, 5.0, 0.1)
    assert 5.0 * dynamics.noise_inflation(h) == pytest.approx(0.1)
    assert moves.noise_limit(dynamics, 0.0, 0.1) == np.inf


@pytest.mark.parametrize("dynamics", DYNAMICS, ids=repr)
def test_the_largest_step_is_stable(dynamics):
    limit = moves.step_limit(dynamics)
    assert 0.0 < limit <= moves.SHARE * dynamics.largest_step(1.0)
    assert dynamics.bias(limit) <= 0.05


def test_velocities_of_sghmc_have_their_stationary_variance():
    h, C = 0.04, 0.5
    rng, r = np.random.default_rng(0), np.zeros(200_000)
    phi = np.zeros_like(r)
    state = [torch.from_numpy(phi), torch.from_numpy(r)]
    for _ in range(150):  # without curvature: forgotten as (1 - εC)^150 = 1e-7
        noise = torch.from_numpy(rng.standard_normal(len(r)))
        MOVES[SGHMC](state, torch.zeros_like(noise), noise, h, (C, 0.0, 0.0))
    expected = moves.velocity_variance(SGHMC(friction=C), h)
    assert state[1].square().mean().item() == pytest.approx(expected, rel=5 * (2 / len(r)) ** 0.5)
    assert abs(expected - 1.0) > 10 * (2 / len(r)) ** 0.5  # what a test against 1 would miss
