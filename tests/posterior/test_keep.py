"""Fits that keep some draws, or none: moments are those of all, in memory that does not grow."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from problems import STOCHASTIC, binary, quick
from sklearn.base import clone

from skbayes_sg import BayesianLinearRegression, BayesianPoissonRegressor
from skbayes_sg.diagnostics import check_draws, convergence
from skbayes_sg.exceptions import DrawStoreWarning, InvalidParameterError
from skbayes_sg.posterior.moments import RunningMoments, kept_draws
from skbayes_sg.recipe import final_run as production
from skbayes_sg.schedules import Polynomial

pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)
RUNS = {
    "stochastic": STOCHASTIC,
    "exact": {"sampler": "hmc", "thin": 1},
    "schedule": {**STOCHASTIC, "sampler": "sgld", "step_size": Polynomial(0.2, 10.0, 0.33)},
}


def added(draws, weights=None, sizes=(7, 1, 20, 32), planned=None):
    moments = RunningMoments(draws.shape[0], planned or draws.shape[1], draws.shape[2])
    first = 0
    for size in sizes:
        own = None if weights is None else weights[first : first + size]
        moments.add(draws[:, first : first + size], own)
        first += size
    assert first == draws.shape[1] == moments.seen
    return moments


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_all_draws(weighted):
    rng = np.random.default_rng(0)
    draws = 1e6 + rng.normal(size=(3, 60, 2)) * [1.0, 100.0]
    weights = rng.uniform(0.5, 2.0, 60) if weighted else None
    moments = added(draws, weights)
    w = np.broadcast_to(1.0 if weights is None else weights, (3, 60))
    mean = np.average(draws, axis=(0, 1), weights=w)
    assert np.allclose(moments.mean(), mean, rtol=1e-14)
    variance = np.average((draws - mean) ** 2, axis=(0, 1), weights=w)
    assert np.allclose(moments.std(), np.sqrt(variance), rtol=1e-9)


def test_accuracy_of_moments_is_that_of_the_draws():
    rng, x = np.random.default_rng(1), np.zeros((4, 4000, 2))
    for k in range(1, 4000):
        x[:, k] = [0.0, 0.8] * x[:, k - 1] + rng.normal(size=(4, 2))
    moments = added(x, sizes=(1000, 3000))
    assert np.allclose(moments.rhat(), convergence.rhat(x), atol=2e-3)
    assert np.allclose(moments.ess() / convergence.ess_bulk(x), 1.0, atol=0.5)  # 80 batches
    x[0, :, 0] += 3.0
    apart = added(x, sizes=(4000,))
    assert apart.rhat()[0] > 1.3
    assert apart.ess()[0] < 200  # of 16 000


@pytest.mark.parametrize("n", [400, 900, 1900])
def test_moments_of_a_run_that_was_ended_early(n):
    """Of 4000 draws that were planned: two, five and ten batches of twenty are reached."""
    x = np.random.default_rng(2).normal(size=(4, n, 2))
    x[0, :, 0] += 5.0
    found = added(x, sizes=(n,), planned=4000)
    halves = np.concatenate([x[:, : n // 2], x[:, n - n // 2 :]])
    between, within = halves.mean(axis=1).var(axis=0, ddof=1), halves.var(axis=1).mean(axis=0)
    assert np.allclose(found.rhat(), np.sqrt(1.0 + between / within), rtol=0.05)
    assert found.rhat()[0] > 2.0
    assert abs(found.rhat()[1] - 1.0) < 0.02
    assert found.ess()[0] < 60  # of 1600 or more
    assert 0.2 < found.ess()[1] / (4 * n) < 5.0  # 8 means of batches: chi-square with 7 degrees


def test_nothing_is_known_from_a_run_that_was_ended_in_its_first_batch():
    x = np.random.default_rng(2).normal(size=(4, 150, 2))
    found = added(x, sizes=(150,), planned=4000)
    assert np.isnan(found.rhat()).all()
    assert np.isnan(found.ess()).all()
    verdict = check_draws(x[:, ::10], moments=found)
    assert not verdict
    assert {f.name for f in verdict.findings} == {"R-hat", "effective sample size"}


def test_moments_of_next_to_nothing():
    one = added(np.zeros((1, 1, 2)), sizes=(1,))
    assert np.isnan(one.rhat()).all()
    assert np.isnan(one.mcse_mean()).all()
    still = added(np.full((2, 60, 1), 2.5))
    assert (still.mean()[0], still.std()[0], still.rhat()[0]) == (2.5, 0.0, 1.0)


@pytest.mark.parametrize(("n_draws", "keep"), [(100, 7), (100, 100), (25, 1), (10, 0)])
def test_kept_draws_are_evenly_spaced(n_draws, keep):
    kept = kept_draws(n_draws, keep)
    assert len(kept) == keep
    if keep:
        assert kept[-1] == n_draws - 1
        assert np.ptp(np.diff(kept, prepend=-1)) <= 1


@pytest.mark.parametrize("name", RUNS)
def test_kept_draws_are_among_all_and_moments_of_all(name, monkeypatch):
    X, y = binary(300)
    monkeypatch.setattr(production, "BLOCK_BYTES", 8 * 4 * 2 * 40)  # blocks of 40 draws
    model = quick(**RUNS[name]).set_params(n_draws=130)
    every = clone(model).fit(X, y)
    some = clone(model).set_params(keep=13).fit(X, y)
    where = kept_draws(130, 13)
    assert np.array_equal(some.posterior_.flat, every.posterior_.flat[:, where])
    assert np.array_equal(some.posterior_.scores, every.posterior_.scores[:, where])
    assert np.allclose(some.coef_, every.coef_, rtol=1e-12)
    assert np.allclose(some.coef_std_, every.coef_std_, rtol=1e-9)
    assert some.n_steps_ == every.n_steps_
    if every.posterior_.weights is not None:
        weights = every.posterior_.weights[where]
        assert np.allclose(some.posterior_.weights, weights / weights.mean(), rtol=1e-12)
    none = clone(model).set_params(keep="moments").fit(X, y)
    assert none.posterior_.flat.shape == (2, 0, 4)
    assert np.array_equal(none.coef_, some.coef_)


@pytest.mark.slow
def test_a_positive_parameter_is_averaged_as_it_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = X @ [1.0, 0.0] + rng.normal(size=50)
    for sampler in ("exact", "hmc"):
        model = BayesianLinearRegression(sampler=sampler, n_draws=200, thin=1, random_state=0)
        every = clone(model).fit(X, y)
        some = model.set_params(keep=10).fit(X, y)
        assert np.isclose(some.noise_std_, every.posterior_["noise_std"].mean(), rtol=1e-12)
        assert some.predict(X[:3]).shape == (3,)


def test_what_can_be_done_with_some_draws():
    X, y = binary(300)
    model = quick(**STOCHASTIC).set_params(n_draws=400, keep=40).fit(X, y)
    posterior = model.posterior_
    assert model.predict_proba(X).shape == (300, 2)
    assert posterior.interval()[0].shape == (4,)
    assert repr(posterior).startswith("<Posterior of coef (1, 3), intercept (1,); 2 chains x 400 ")
    summary = posterior.summary()
    assert list(summary.columns)[:7] == ["mean", "sd", "5%", "95%", "rhat", "ess", "mcse_mean"]
    assert np.array_equal(summary["mean"], posterior.mean())
    assert posterior.mean("coef").shape == (1, 3)
    assert posterior.std("intercept") == posterior.std()[3:]
    assert np.isclose(posterior.mean("coef[x1]"), posterior.mean()[1])
    assert "R-hat" in repr(posterior.check())
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(twin.posterior_.mean(), posterior.mean())


def test_what_can_be_done_without_draws():
    X, y = binary(300)
    model = quick(**STOCHASTIC).set_params(n_draws=100, keep="moments").fit(X, y)
    posterior = model.posterior_
    assert list(posterior.summary().columns)[:5] == ["mean", "sd", "rhat", "ess", "mcse_mean"]
    assert "mean, spread and KSD need 50 draws of each chain, of which 0 were kept" in repr(
        posterior.check()
    )
    for act in (
        lambda: model.predict_proba(X), lambda: posterior.interval(), lambda: posterior.ksd(),
        lambda: posterior.mean(control_variate="linear"),
        lambda: posterior.expectation(lambda p: p["coef"]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"No draws were kept \(keep='moments'\)"):
            act()


@pytest.mark.parametrize("kind", [BayesianLinearRegression, BayesianPoissonRegressor])
def test_no_responses_can_be_drawn_without_draws(kind):
    X, y = binary()
    model = kind(n_draws=20, keep="moments", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="No draws were kept"):
        model.sample_y(X)


@pytest.mark.parametrize("keep", ["some", 0, -1, 2.5, True, None])
def test_bad_values(keep):
    X, y = binary()
    with pytest.raises(InvalidParameterError, match=r"'keep' parameter of BayesianLogistic.*'all'"):
        quick(keep=keep).fit(X, y)


def test_shards_need_all_draws():
    X, y = binary(200)
    with pytest.raises(InvalidParameterError, match=r"'keep' .*n_subposteriors > 1"):
        quick(keep=5, n_subposteriors=2).fit(X, y)


def test_as_many_as_there_are_is_all():
    X, y = binary()
    assert quick(keep=25).fit(X, y).posterior_.moments is None


def test_many_draws_are_no_reason_to_warn_if_few_are_kept():
    X, y = binary()
    model = quick(n_draws=10**9, n_chains=4)
    with pytest.raises(MemoryError, match=r"keep=100 or keep='moments'"):
        model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DrawStoreWarning)
        quick(**STOCHASTIC).set_params(n_draws=3000, thin=1, keep=10).fit(X, y)
