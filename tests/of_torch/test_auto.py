"""What "auto" does with few rows: all of them at every step, little friction, and going on."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import TensorDataset

from skbayes_sg.dynamics import BAOAB
from skbayes_sg.exceptions import LongRunWarning
from skbayes_sg.recipe import price
from skbayes_sg.torch import BayesianModuleRegressor, auto, evidence, setup
from skbayes_sg.torch.store import Store

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 3)).astype(np.float32)
Y = (X[:, 0] + 0.3 * RNG.standard_normal(150)).astype(np.float32)


def net(*more):
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), *more, nn.Linear(5, 1))


def fitted(module, X=X, y=Y, **options):
    """A fit of two short chains, whose steps are not judged, and the dynamics that has run."""
    used = []

    def run(starts, request, store):
        used.append(request)
        return setup.run_chains(starts, request, store)

    short = {"n_draws": 4, "n_chains": 2, "random_state": 0}
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter("ignore")
        patched.setattr("skbayes_sg.torch.base.run_chains", run)
        model = BayesianModuleRegressor(module, **(short | options)).fit(X, y)
    return model, used[0]


def test_multiplications_are_those_of_the_layers():
    assert auto.cost_of_a_row(net(), torch.zeros(1, 3)).multiplications == max(
        3 * 5 + 5, 15 + 5 + 5 + 1
    )
    image = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Flatten())
    assert auto.cost_of_a_row(image, torch.zeros(1, 1, 8, 8)).multiplications == 64 * 4 * 9
    recurrent = nn.LSTM(2, 3, batch_first=True)  # processors differ in how they do it
    assert auto.cost_of_a_row(recurrent, torch.zeros(1, 5, 2)).multiplications == 5 * 4 * 3 * (
        2 + 3
    )


def test_numbers_that_layers_hold():
    """Of the two layers and of what is between; not the views that turn matrices."""
    assert auto.cost_of_a_row(net(), torch.zeros(1, 3)).numbers == 5 + 5 + 1
    assert auto.rows_at_a_time(11.0, 100, 1000) == 9
    assert auto.rows_at_a_time(11.0, 5, 1000) == 1


class Turns(nn.Linear):
    """A module whose path depends on its numbers."""

    def forward(self, x):
        return super().forward(x if x.sum() > 0.0 else -x)


class Leaves(nn.Linear):
    """A module that leaves torch on its way."""

    def forward(self, x):
        return super().forward(torch.from_numpy(x.detach().numpy() + 1.0))


@pytest.mark.parametrize("kind", [Turns, Leaves])
def test_multiplications_of_a_module_that_looks_at_its_numbers(kind):
    assert auto.cost_of_a_row(kind(30, 40), torch.ones(1, 30)).multiplications == 40 * 31


@pytest.mark.parametrize(
    ("n_rows", "of_a_row", "expected"),
    [
        (80, np.inf, 80),
        (5000, np.inf, 100),
        (5000, 2000.0, 5000),
        (5001, 2000.0, 100),
        (90, 1e9, 90),
    ],
)
def test_rows_of_a_step(n_rows, of_a_row, expected):
    assert auto.batch_size_for(n_rows, of_a_row) == expected


def test_few_rows_are_taken_all_at_once():
    model, request = fitted(net())
    assert model.batch_size_ == 150
    assert model.preconditioner_ == "fisher"
    assert request.glides


@pytest.mark.parametrize(
    ("thin", "friction"), [(20, 1.0), (40, 1 / 8), (80, 1 / 64), (160, auto.LOW), (320, auto.LOW)]
)
def test_friction_is_such_that_velocities_last_from_draw_to_draw(thin, friction):
    assert auto.gliding(thin).friction == pytest.approx(friction)
    _, request = fitted(net(), thin=thin, n_draws=1)
    assert request.dynamics.friction == pytest.approx(friction)


@pytest.mark.parametrize(
    "options", [{"batch_size": 100}, {"step_size": 0.01}, {"thin": 5}, {"sampler": "baoab"}]
)
def test_friction_is_as_usual_with_noise_or_steps_of_the_users(options):
    _, request = fitted(net(), n_warmup=10, **options)
    assert request.dynamics.friction == BAOAB().friction
    assert not request.glides
    assert request.n_doublings == 0


def test_layers_that_are_random_make_noise():
    _, request = fitted(net(nn.Dropout(0.2)))
    assert not request.glides
    assert request.n_doublings == 0
    _, request = fitted(net(nn.Dropout(0.2)), training=False)
    assert request.glides


def test_rows_of_a_dataset_are_read_in_batches():
    rows = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    model, request = fitted(net(), rows, None)
    assert model.batch_size_ == 100
    assert model.preconditioner_ == "rmsprop"
    assert not request.glides


@pytest.mark.parametrize("agree_after", [0, 2, 9])
def test_chains_go_on_until_they_agree(monkeypatch, agree_after):
    seen = []
    monkeypatch.setattr(
        evidence, "agree", lambda found: seen.append(found) or len(seen) > agree_after
    )
    model, request = fitted(net(), n_draws=6)
    assert request.n_doublings == auto.DOUBLINGS
    rounds = min(agree_after, auto.DOUBLINGS)
    assert model.thin_ == request.thin * 2**rounds
    assert model.n_warmup_ == request.n_warmup + 6 * request.thin * (2**rounds - 1)
    draws = model.posterior_.draws.reshape(12, -1).astype(float)
    flat = np.concatenate([model.posterior_.mean(name).ravel() for name in model.posterior_.names])
    spread = np.concatenate([model.posterior_.std(name).ravel() for name in model.posterior_.names])
    assert np.allclose(draws[:, : len(flat)].mean(axis=0), flat, atol=1e-5)
    assert np.allclose(draws[:, : len(flat)].std(axis=0), spread, atol=1e-5)


def test_chains_do_not_go_on_for_longer_than_a_minute():
    doublings = BayesianModuleRegressor._doublings
    assert doublings(6000, 150, 20.0) == auto.DOUBLINGS
    assert doublings(6000, 10_000, 1000.0) == 0
    between = doublings(6000, 4_000, 1000.0)
    assert 0 < between < auto.DOUBLINGS
    one = auto.seconds_of_steps(6000 * 2**between, 4_000, 1000.0)
    assert one < auto.MOST_SECONDS < 2.0 * one


def test_what_cannot_be_told_does_not_make_chains_go_on():
    assert evidence.agree({"rhat_of_predictions": np.nan})
    assert evidence.agree({"rhat_of_predictions": 1.04})
    assert not evidence.agree({"rhat_of_predictions": 1.06})


def test_predictions_that_are_no_numbers_are_not_trusted():
    functions = np.random.default_rng(0).standard_normal((2, 100, 3))
    functions[1, 5, 2] = np.nan
    records = [SimpleNamespace(functions=own, temperature=np.nan) for own in functions]
    for record in records:
        record.squared_motions = np.full((2, 100), np.nan)
    found = evidence.diagnostics_of(records, 0.0)
    assert not evidence.agree(found)
    verdict = evidence.verdict(found, 1.0, [])
    assert [finding.name for finding in verdict.findings] == ["R-hat of predictions"]


@pytest.mark.parametrize(("n_chains", "n_draws"), [(2, 10), (4, 50), (4, 16), (8, 200)])
def test_r_hat_of_independent_draws_does_not_make_chains_go_on(n_chains, n_draws):
    draws = np.random.default_rng(0).standard_normal((n_chains, n_draws, 400))
    limit = evidence.by_chance(n_chains, n_draws)
    found = evidence.convergence.rhat(draws)
    assert (found > limit).mean() < 0.03
    assert (found > 1.0 + 0.3 * (limit - 1.0)).mean() > 0.03  # and it is not idle
    assert evidence.agree({"rhat_of_predictions": limit - 1e-6, "rhat_by_chance": limit})
    assert not evidence.agree(
        {"rhat_of_predictions": max(limit, 1.05) + 1e-6} | {"rhat_by_chance": limit}
    )


def test_a_store_that_is_cleared_has_the_moments_of_what_follows():
    class Flat:
        theta = torch.zeros(3)

        def others(self, before):
            return before

    store, flat = Store(1, 4, 4, 3, "float64", None, None), Flat()
    for k in range(4):
        flat.theta = torch.full((3,), 100.0 * k)
        store.add(0, k, flat)
    store.clear()
    for k in range(4):
        flat.theta = torch.full((3,), float(k))
        store.add(0, k, flat)
    assert np.allclose(store.mean, 1.5)
    assert np.allclose(store.square / store.total, 1.25)


@pytest.mark.slow
def test_chains_agree_on_an_ordinary_table(monkeypatch):
    """With batches of 100 rows and friction one R-hat is two, and sds are 0.6 of what they are."""
    rows, y = load_diabetes(return_X_y=True)
    rows = (rows / rows.std(axis=0)).astype(np.float32)
    y = ((y - y.mean()) / y.std()).astype(np.float32)
    module = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
    monkeypatch.setattr(price, "LONG_SECONDS", 0.0)  # every round of draws is told
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BayesianModuleRegressor(module, random_state=0).fit(rows, y)
    assert model.diagnostics_["rhat_of_predictions"] < 1.05
    assert model.thin_ > auto.LEAST_THIN
    assert {w.category for w in caught} == {LongRunWarning}
    assert "after the search for modes, is predicted to take" in str(caught[0].message)
    assert f"go on with thin={model.thin_}" in str(caught[-1].message)
