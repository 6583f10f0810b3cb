"""Calls of kernels are short on a machine of any speed: a clock that is not real tells the time."""

import time

import numpy as np
import probe
import pytest
from interrupts import WatchedHMC, WatchedStep
from scenes import make_scene

from skbayes_sg.gradients import Taylor
from skbayes_sg.subsampling import Uniform

CALL_SECONDS = 0.1


class Clock:
    """Seconds that pass only while chains make steps, which take `seconds(number)` each."""

    def __init__(self, seconds):
        self.seconds, self.now, self.steps = seconds, 1.0, []

    def __call__(self):
        return self.now

    def watch(self, n_steps=1):
        """Before each call of a kernel."""
        self.now += n_steps * self.seconds(sum(self.steps))
        self.steps.append(n_steps)


@pytest.fixture
def steps_of_calls(monkeypatch):
    """Steps of the calls of a kernel that one chain of many steps is made of."""

    def run(seconds, n_draws=20_000, n_rows=6, batch_size=2):
        clock = Clock(seconds)
        frame = make_scene(n_rows=n_rows).frame(kind="hessian")
        kernels = probe.Probe(frame, Taylor(), Uniform(), batch_size=batch_size)
        with monkeypatch.context() as patch:
            patch.setattr(time, "perf_counter", clock)
            kernels.sample(np.zeros(3), 0, n_draws, step_size=WatchedStep(hook=clock.watch))
        assert sum(clock.steps) == n_draws
        return np.array(clock.steps)

    return run


@pytest.mark.parametrize(
    "seconds", [1e-9, 1e-5, 1e-3, pytest.param(0.02, marks=pytest.mark.slow), 7.0]
)
def test_a_call_takes_a_tenth_of_a_second(steps_of_calls, seconds):
    n_steps = 20_000 if seconds < 1.0 else 500
    steps = steps_of_calls(lambda number: seconds, n_steps)
    assert steps[1:].max() <= max(1.0, 1.001 * CALL_SECONDS / seconds)
    assert len(steps) <= 5 + 1.2 * n_steps * min(seconds / CALL_SECONDS, 1.0)  # nor much less


@pytest.mark.slow
def test_a_machine_that_slows_down_is_noticed_after_one_call(steps_of_calls):
    steps = steps_of_calls(lambda number: 1e-4 if number < 10_000 else 0.01)
    first = np.searchsorted(steps.cumsum(), 10_000)  # the call that takes long
    assert len(steps) > first + 100
    assert steps[first + 2 :].max() <= 10  # a tenth of a second together


def test_the_first_call_is_short_whatever_a_step_costs(steps_of_calls):
    for batch_size in (10, 3000):
        first = steps_of_calls(lambda number: 1e-3, n_draws=300, n_rows=3000, batch_size=batch_size)
        assert 1 <= first[0] <= max(1, 1e7 / (3 * batch_size))  # multiplications


def test_trajectories_are_made_one_by_one_where_each_takes_long(monkeypatch):
    clock = Clock(lambda number: 10.0)
    monkeypatch.setattr(time, "perf_counter", clock)
    dynamics = WatchedHMC(hook=clock.watch)
    kernels = probe.Probe(make_scene("logistic").frame(kind="hessian"), dynamics=dynamics)
    kernels.sample(np.zeros(3), 0, 500)
    assert len(clock.steps) > 250
