"""Recorded steps: when they are replayed, and modules for which they would be others."""

import contextlib
import random
import warnings

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import made
import torch
from made import CPU, GPU, on_a_gpu
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale
from torch import nn

from skbayes_sg.dynamics import BAOAB, SGHMC, SGLD, SGNHT
from skbayes_sg.gradients import SVRG
from skbayes_sg.schedules import Constant
from skbayes_sg.torch import BayesianModuleClassifier, replay
from skbayes_sg.torch.chain import ModuleChain
from skbayes_sg.torch.flat import FlatModule
from skbayes_sg.torch.minibatch import MinibatchGradient
from skbayes_sg.torch.moves import waits
from skbayes_sg.torch.replay import CALLS, Replay, agrees, is_replayable
from skbayes_sg.torch.rows import TensorRows
from skbayes_sg.torch.svrg import SVRGGradient
from skbayes_sg.torch.target import ModuleTarget

X, Y = load_iris(return_X_y=True)
X = scale(X)


# -- when ----------------------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    """Names of what was called, in order, of a function and of its recordings."""
    found = []

    def recording(function, device, generator=None):
        return lambda: found.append("replay")

    monkeypatch.setattr(replay, "recording", recording)
    return found


def test_a_cpu_calls(calls):
    own = Replay(CPU)
    for _ in range(2 * CALLS):
        own(lambda: calls.append("call"))
    assert calls == ["call"] * 2 * CALLS


def test_a_gpu_replays_what_was_called_often(calls):
    own = Replay(GPU)
    for key in [0] * (CALLS + 2) + [1] * CALLS:
        own(lambda: calls.append("call"), key)
    few = ["call"] * (CALLS - 1)
    assert calls == [*few, "replay", "replay", "replay", *few, "replay"]


def test_a_recording_that_is_forgotten_is_made_again(calls):
    own = Replay(GPU)
    for _ in range(2):
        for _ in range(CALLS):
            own(lambda: calls.append("call"))
        own.forget()
    assert calls == 2 * [*["call"] * (CALLS - 1), "replay"]


@pytest.mark.parametrize("name", ["may_record", "is_right"])
def test_a_gpu_calls_what_may_not_be_replayed(calls, name):
    own = Replay(GPU, **{name: lambda *_: False})
    for _ in range(2 * CALLS):
        own(lambda: calls.append("call"))
    assert calls == ["call"] * 2 * CALLS


# -- which modules -------------------------------------------------------------------------------


class Odd(nn.Module):
    """A linear module that does something else as well."""

    def __init__(self, what=lambda own: None):
        super().__init__()
        self.own, self.what, self.n_calls, self.kept = nn.Linear(4, 3), what, 0, 1.0
        self.register_buffer("sizes", torch.ones(3))

    def forward(self, x):
        self.what(self)
        return self.kept * self.own(x)


def count(own):
    own.n_calls += 1


def half_of_the_time(own):
    own.kept = float(random.random() < 2.0)


def remember(own):
    own.memory = own.own.weight.detach().sum()


def replace_a_buffer(own):
    own.sizes = 0.9 * own.sizes


def add_to_a_buffer(own):
    own.sizes.mul_(0.9)


def half_by_numpy(own):
    np.random.rand()  # noqa: NPY002


def hooked():
    module = Odd()
    module.own.register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (Odd(), True),
        (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 3)), True),
        (Odd(count), False),
        (Odd(half_of_the_time), False),
        (Odd(half_by_numpy), False),
        (Odd(remember), False),
        (Odd(replace_a_buffer), False),
        (Odd(add_to_a_buffer), True),
        (hooked(), False),
    ],
)
def test_what_python_does_in_a_module_is_seen(monkeypatch, module, expected):
    monkeypatch.setattr(replay, "_no_waiting", contextlib.nullcontext)
    assert is_replayable(module, lambda: module(torch.ones(2, 4))) is expected


# -- on a GPU ------------------------------------------------------------------------------------


def gradient_on(device, module=None, rule=MinibatchGradient):
    here = made.law("classes", n_rows=30)
    flat = FlatModule(module or here.flat.module, device)
    rows = TensorRows(*here.rows.parts, device)
    groups = made.groups_of("normal", flat)
    target = ModuleTarget(flat, here.likelihood, groups, rows)
    more = (target.twin(), 7, 20) if rule is SVRGGradient else ()
    return rule(target, 6, np.random.default_rng(0), *more)


@on_a_gpu
@pytest.mark.parametrize("rule", [MinibatchGradient, SVRGGradient])
def test_replayed_gradients_are_those_of_the_cpu(rule):
    here, there = gradient_on(CPU, rule=rule), gradient_on(GPU, rule=rule)
    for k in range(4 * CALLS):
        for gradient in (here, there):
            gradient.target.flat.theta.add_(0.01 * (k % 3))
        values = [float(gradient().total()) for gradient in (here, there)]
        assert values[1] == pytest.approx(values[0], rel=1e-12)
        own = there.target.flat.gradient.cpu()
        torch.testing.assert_close(own, here.target.flat.gradient, rtol=1e-11, atol=1e-12)
    assert there.replay.recorded is not None


@on_a_gpu
@pytest.mark.parametrize(
    "dynamics", [SGLD(), SGHMC(), SGHMC(refresh=5), SGNHT(), BAOAB()], ids=repr
)
def test_replayed_steps_are_those_that_python_starts(dynamics):
    paths = []
    for is_open in (True, False):
        gradient = gradient_on(GPU)
        chain = ModuleChain(0, gradient, dynamics, Constant(0.01), None, 3)
        chain.replay.is_open = gradient.replay.is_open = is_open
        chain.run(4 * CALLS)
        paths.append(chain.flat.theta.clone())
        assert (gradient.replay.recorded is not None) is is_open
        assert (chain.replay.recorded is not None) is (is_open and not waits(dynamics))
    torch.testing.assert_close(*paths, rtol=1e-11, atol=1e-12)


def waiting(own):
    own.kept = 1.0 if float(own.own.weight.sum()) > 0 else 2.0


def uploading(own):
    torch.tensor([1.0, 2.0]).to(own.own.weight.device)


@on_a_gpu
@pytest.mark.parametrize("what", [count, half_of_the_time, waiting, uploading])
@pytest.mark.parametrize("looks", [True, False])
def test_modules_that_are_not_replayed_run(monkeypatch, what, looks):
    """The second time without a look before the recording, which then fails by itself, or not."""
    if not looks:
        monkeypatch.setattr("skbayes_sg.torch.minibatch.is_replayable", lambda *_: True)
    options = {"n_draws": 3, "n_chains": 1, "n_warmup": 20, "thin": 10, "start_steps": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianModuleClassifier(
            Odd(what), batch_size=30, step_size=0.01, random_state=0, device="cuda", **options
        ).fit(X, Y)
    assert model.score(X, Y) > 0.6
    assert torch.rand(3, device=GPU).isfinite().all()


class Random(nn.Module):
    """New random numbers at each call."""

    def __init__(self):
        super().__init__()
        self.own = nn.Linear(3, 2).double()

    def forward(self, x):
        return self.own(x) + torch.randn(len(x), 2, device=x.device, dtype=x.dtype)


@on_a_gpu
def test_random_layers_are_replayed_with_new_numbers():
    gradient, found = gradient_on(GPU, Random()), []
    for _ in range(3 * CALLS):
        batch = next(gradient.stream)
        for own, part in zip(batch, gradient.target.rows.parts, strict=True):
            if own is not None:
                own.copy_(part[:6])  # the same rows
        gradient.of_batch(batch)
        found.append(gradient.target.flat.gradient.clone())
    assert gradient.replay.recorded is not None
    assert len({float(g.norm()) for g in found}) == 3 * CALLS


@on_a_gpu
def test_a_wrong_replay_is_seen():
    gradient = gradient_on(GPU)
    gradient()
    flat = gradient.target.flat
    assert agrees(flat, lambda: flat.gradient.fill_(2.0), lambda: flat.gradient.fill_(2.0001))
    assert not agrees(flat, lambda: flat.gradient.fill_(2.0), lambda: flat.gradient.fill_(2.1))


@on_a_gpu
@pytest.mark.parametrize("gradient", ["minibatch", SVRG(refresh=5)])
def test_draws_have_the_same_law_with_replays(gradient, monkeypatch):
    options = {"n_draws": 200, "n_chains": 2, "n_warmup": 200, "thin": 5, "start_steps": 100}
    found = []
    for calls in (CALLS, 10**9):
        monkeypatch.setattr(replay, "CALLS", calls)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = BayesianModuleClassifier(
                nn.Linear(4, 3).double(), batch_size=30, step_size=0.02, gradient=gradient,
                random_state=0, device="cuda", **options,
            ).fit(X, Y)  # fmt: skip
        found.append(model.posterior_.draws)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)
