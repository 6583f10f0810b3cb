"""Requests that name some pieces and leave the rest to the recipe."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.dynamics import BAOAB, HMC, SGLD
from skbayes_sg.exceptions import UnusedParameterWarning
from skbayes_sg.geometry import preconditioning
from skbayes_sg.gradients import GRADIENTS, SAGA, Full
from skbayes_sg.kernels.layout import BLOCK
from skbayes_sg.recipe import choose as auto
from skbayes_sg.recipe.request import Request
from skbayes_sg.recipe.tuning import has_few_rows, least_rows
from skbayes_sg.schedules import Polynomial
from skbayes_sg.subsampling import SUBSAMPLING, AllRows, Uniform


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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("subsampling", "sorted_"),
    [pytest.param("blocks", False, marks=pytest.mark.slow), ("uniform", True)],
)
def test_blocks_are_of_shuffled_rows(data, monkeypatch, subsampling, sorted_):
    seen, run = [], auto.run_stochastic
    monkeypatch.setattr(auto, "run_stochastic", lambda *args: seen.append(args[0]) or run(*args))
    X, y = data
    order = np.argsort(X[:, 0])
    options = {"batch_size": 20, "random_state": 0}
    BayesianLogisticRegression(subsampling=subsampling, **options).fit(X[order], y[order])
    column = seen[0].frame.target.X[:, 0]
    np.testing.assert_array_equal(np.sort(column), X[order, 0])
    assert (abs(np.corrcoef(column[1:], column[:-1])[0, 1]) > 0.3) == sorted_


@pytest.mark.slow
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


# -- what is asked for is used --------------------------------------------------------------------

ASKED = [{"gradient": name} for name in GRADIENTS if name != "full"]
ASKED += [{"subsampling": name} for name in SUBSAMPLING] + [{"batch_size": 30}]


@pytest.mark.slow_for("minibatch")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: next(iter(asked.values())))
def test_what_is_asked_for_is_used_with_few_rows(data, asked):
    options = {"n_draws": 20, "n_chains": 2, "n_warmup": 20, "thin": 1, "random_state": 0}
    model = BayesianLogisticRegression(**options, **asked).fit(*data)
    for name, value in asked.items():
        assert getattr(model, f"{name}_") == value
    assert model.sampler_ == "baoab"
    assert model.batch_size_ < 400
    assert model.batch_sizes_.max() < 400


def sized(n_rows, D):
    """What is asked of a target by `has_few_rows`."""
    model = SimpleNamespace(n_predictors=1, cost=1.0, overhead=0.0, block=BLOCK)
    return SimpleNamespace(n_rows=n_rows, n_parameters=D, n_features=D, model=model, X=None)


@pytest.mark.parametrize(
    ("asked", "few"),
    [
        ({}, True),
        ({"sampler": SGLD()}, True),
        ({"gradient": Full()}, True),
        ({"subsampling": AllRows()}, True),
        ({"gradient": SAGA()}, False),
        ({"subsampling": Uniform()}, False),
        ({"batch_size": 50}, False),
    ],
    ids=str,
)
def test_all_rows_of_few_unless_other_steps_are_asked_for(asked, few):
    for n_rows, so in [(1000, few), (1001, False)]:
        assert has_few_rows(sized(n_rows, 3), Request(**asked)) == so


@pytest.mark.parametrize(
    ("n_rows", "D", "asked", "few"),
    [
        (1300, 1330, {}, True),  # a matrix of 1330² numbers for each step, and 1300 x 1330 for all
        (6000, 1330, {}, True),
        (7000, 1330, {}, False),
        (1300, 1330, {"gradient": SAGA()}, False),
        (1300, 1330, {"preconditioner": "diagonal"}, False),
        (1300, 2001, {}, False),  # coordinates are diagonal there
        (1300, 100, {}, False),
    ],
)
def test_all_rows_where_coordinates_are_dearer(n_rows, D, asked, few):
    assert has_few_rows(sized(n_rows, D), Request(**asked)) == few


@pytest.mark.parametrize(
    ("n_rows", "least"), [(1, 1), (3, 1), (8, 2), (39, 9), (40, 10), (10**6, 10)]
)
def test_least_rows_of_a_step(n_rows, least):
    assert least_rows(n_rows) == least


ALL_ROWS = [
    ({"gradient": Full()}, True),
    ({"subsampling": AllRows()}, True),
    ({"batch_size": 5000}, True),
    ({"sampler": HMC()}, True),
    ({"sampler": BAOAB()}, False),
    ({"sampler": BAOAB(), "gradient": Full()}, False),
    ({"gradient": SAGA()}, False),
]


@pytest.mark.parametrize(("asked", "exact"), ALL_ROWS, ids=str)
def test_metropolis_corrected_only_where_all_rows_are_asked_for(asked, exact):
    assert auto._wants_exact(sized(5000, 3), Request(**asked)) == exact


@pytest.mark.parametrize("asked", [{"gradient": SAGA()}, {"subsampling": Uniform()}], ids=str)
def test_pieces_that_all_rows_leave_without_effect_are_named(asked):
    for batch_size, told in [(99, False), (100, True), (None, False)]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Request(batch_size=batch_size, **asked).check(100)
        assert [w.category for w in caught] == [UnusedParameterWarning] * told
        assert all(repr(value) in str(w.message) for w in caught for value in asked.values())


@pytest.mark.parametrize("n_rows", [400, 1400])
def test_all_rows_may_be_asked_for_as_a_scheme(n_rows):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(n_rows, 2)), np.arange(n_rows) % 2
    options = {"n_draws": 20, "n_warmup": 20, "thin": 1, "random_state": 0}
    for sampler, used in [("auto", "hmc"), ("baoab", "baoab")]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = BayesianLogisticRegression(
                sampler=sampler, subsampling=AllRows(), **options
            ).fit(X, y)
        assert model.sampler_ == used
        assert model.batch_size_ == n_rows


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"thin": 5}, "^thin=5 has no effect: the draws are independent"),
        ({"thin": 1, "n_warmup": 7}, "^n_warmup=7 has no effect"),
        ({"thin": 2, "n_warmup": 7}, "^thin=2 and n_warmup=7 have no effect"),
        ({"thin": 1, "n_warmup": 0}, None),
        ({"thin": 2, "n_warmup": 20, "sampler": "hmc"}, None),
    ],
)
def test_lengths_of_chains_are_told_to_have_no_effect_on_independent_draws(options, said):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.logistic(size=60) > 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BayesianLogisticRegression(n_draws=300, random_state=0, **options).fit(X, y)
    found = [str(w.message) for w in caught if w.category is UnusedParameterWarning]
    assert len(found) == (said is not None)
    if said:
        assert re.search(said, found[0])
        assert model.sampler_ == "importance"
