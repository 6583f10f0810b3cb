"""Requests that name some pieces and leave the rest to the recipe."""

import numpy as np
import pytest

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.geometry import preconditioning
from skbayes_sg.recipe import choose as auto
from skbayes_sg.schedules import Polynomial


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    return X, rng.random(400) < 1.0 / (1.0 + np.exp(-X @ [1.0, -1.0, 0.5, 0.0]))


@pytest.fixture(scope="module")
def exact(data):
    return BayesianLogisticRegression(random_state=0).fit(*data)


def distance(model, reference):
    """Largest difference of posterior means, in posterior standard deviations."""
    a, b = model.posterior_, reference.posterior_
    return np.abs((a.mean() - b.mean()) / b.std()).max()


def test_taylor_gradient_keeps_its_hessian_beyond_the_dense_limit(data, exact, monkeypatch):
    monkeypatch.setattr(preconditioning, "DENSE_LIMIT", 3)
    options = {"gradient": "taylor", "batch_size": 20, "random_state": 0}
    model = BayesianLogisticRegression(**options).fit(*data)
    assert model.preconditioner_ == "diagonal"
    assert distance(model, exact) < 0.12


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
@pytest.mark.parametrize("sampler", ["hmc", "mala"])
def test_exact_samplers_take_the_first_step_of_a_schedule(data, sampler):
    options = {"sampler": sampler, "n_draws": 50, "thin": 4, "random_state": 0}
    falling = BayesianLogisticRegression(step_size=Polynomial(0.3), **options).fit(*data)
    fixed = BayesianLogisticRegression(step_size=0.3, **options).fit(*data)
    assert falling.step_size_ == 0.3
    np.testing.assert_array_equal(falling.posterior_.flat, fixed.posterior_.flat)


@pytest.mark.parametrize(("subsampling", "sorted_"), [("blocks", False), ("uniform", True)])
def test_blocks_are_of_shuffled_rows(data, monkeypatch, subsampling, sorted_):
    seen, run = [], auto.run_stochastic
    monkeypatch.setattr(auto, "run_stochastic", lambda *args: seen.append(args[0]) or run(*args))
    X, y = data
    order = np.argsort(X[:, 0])
    options = {"batch_size": 20, "random_state": 0}
    BayesianLogisticRegression(subsampling=subsampling, **options).fit(X[order], y[order])
    column = seen[0].target.X[:, 0]
    np.testing.assert_array_equal(np.sort(column), X[order, 0])
    assert (abs(np.corrcoef(column[1:], column[:-1])[0, 1]) > 0.3) == sorted_


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning")
def test_blocks_of_sorted_rows_are_as_noisy_as_uniform_rows(data, exact):
    X, y = data
    order = np.argsort(X[:, 0] + 5 * y)
    model = BayesianLogisticRegression(
        sampler="sgld", gradient="minibatch", subsampling="blocks", batch_size=40, step_size=0.02,
        random_state=0,
    )  # fmt: skip
    ratio = model.fit(X[order], y[order]).posterior_.std() / exact.posterior_.std()
    assert ratio.max() < 1.1  # 1.02 + Monte Carlo error; 1.5 with blocks of rows as they came
