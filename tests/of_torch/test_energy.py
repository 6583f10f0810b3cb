"""Steps on all rows keep the energy where chains are, also where the noise becomes small."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from torch import nn

from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.torch import BayesianModuleRegressor, energy


class Quadratic:
    """A chain whose U is |stiffness φ|²/2."""

    def __init__(self, stiffness, n=8):
        self.flat = SimpleNamespace(theta=torch.ones(n, dtype=torch.float64))
        self.flat.gradient = torch.zeros(n, dtype=torch.float64)
        self.F, self.noise, self.target = None, torch.empty(n, dtype=torch.float64), self
        self.generator, self.stiffness = torch.Generator().manual_seed(0), stiffness
        self.state = [self.flat.theta, torch.zeros(n, dtype=torch.float64)]

    def potential(self):
        self.flat.gradient.copy_(self.stiffness**2 * self.flat.theta)
        return 0.5 * (self.stiffness * self.flat.theta).square().sum()

    def zero_noise_entry(self, vector):
        """Nothing stands still."""

    def set_reference_noise(self, longest):
        """Steps follow nothing."""

    def go_to(self, state):
        for own, row in zip(self.state, state, strict=True):
            own.copy_(row)


def test_the_error_is_that_of_leapfrog_and_the_chain_stays_where_it_is():
    """For ω = 1 a step changes (φ² + v²)/2 by about δ³ φ v/4."""
    found = []
    for h in (0.01, 0.04):
        chain = Quadratic(1.0, n=2000)
        found.append(energy.error_of_energy(chain, h) * len(chain.flat.theta))
        assert (chain.flat.theta == 1.0).all()
    assert found[1] / found[0] == pytest.approx(4.0**3, rel=0.5)


def test_steps_are_halved_for_the_stiffest_chain():
    alone = energy.accurate_step([Quadratic(1.0)], 0.1)
    both = energy.accurate_step([Quadratic(1.0), Quadratic(16.0)], 0.1)
    assert both < alone / 64.0
    assert np.log2(0.1 / both) == pytest.approx(round(np.log2(0.1 / both)))
    assert energy.error_of_energy(Quadratic(16.0), both) <= energy.ERROR


def test_steps_grow_where_the_energy_allows_it():
    assert energy.accurate_step([Quadratic(1.0)], 1e-6) == 1e-6
    grown = energy.accurate_step([Quadratic(1.0)], 1e-6, longest=1.0)
    assert 0.01 < grown < 1.0
    assert energy.accurate_step([Quadratic(1.0)], 1e-6, longest=1e-4) > 0.5e-4


def test_rounding_does_not_make_steps_short(monkeypatch):
    """An error that no step makes smaller is not one of the step."""
    monkeypatch.setattr(energy, "error_of_energy", lambda chain, h: max(1.0, 8.0 * h**3))
    assert energy.accurate_step([None], 8.0) >= 0.125


def test_a_pace_recovers_after_a_retreat():
    chain, failures = Quadratic(1.0), [True, True, False, False]

    def work(schedule):
        if failures.pop(0):
            raise SamplerDivergedError("far")
        return float(schedule(np.arange(1))[0])

    pace = energy.Pace(0.1, 0.1)
    short, long = pace.run([chain], work), pace.run([chain], work)
    assert short <= 0.1 / 16.0 < long <= 0.1
    assert not pace.is_stuck
    assert energy.Pace(1e-8, 0.1).is_stuck


def test_chains_that_diverge_go_back_and_take_shorter_steps():
    chain, seen = Quadratic(1.0), []

    def work(schedule):
        seen.append((float(schedule(np.arange(1))[0]), chain.flat.theta.clone()))
        chain.flat.theta += 7.0
        if len(seen) < 3:
            raise SamplerDivergedError("far")
        return "done"

    assert energy.retreating([chain], 0.16, work) == (pytest.approx(0.01), "done")
    assert [h for h, _ in seen] == pytest.approx([0.16, 0.04, 0.01])
    assert all((theta == 1.0).all() for _, theta in seen)


def test_what_diverges_with_any_step_is_told():
    def work(schedule):
        raise SamplerDivergedError("far")

    with pytest.raises(SamplerDivergedError):
        energy.retreating([Quadratic(1.0)], 0.1, work)


@pytest.mark.parametrize("seed", range(3))
def test_little_noise_does_not_make_chains_diverge(seed):
    """With the step of the curvature near a mode each of these ended in an error."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)).astype(np.float32)
    y = X[:, 0] + 0.1 * rng.standard_normal(300).astype(np.float32)
    module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws do not agree
        model = BayesianModuleRegressor(module, n_draws=5, n_chains=2, random_state=seed)
        model.fit(X, y)
    assert np.isfinite(model.posterior_.draws).all()
    assert np.std(model.predict(X) - y) < 0.15
