"""The guards of fits: what an error leaves, and how much memory is free."""

import resource
import tracemalloc

import numpy as np
import pytest
import sklearn

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.estimators import _store

GIB = 2**30


def cgroup(folder, limit, used, inactive):
    (folder / "memory.max").write_text(limit)
    (folder / "memory.current").write_text(str(used))
    (folder / "memory.stat").write_text(f"anon 7\ninactive_file {inactive}\n")
    return (folder, "memory.max", "memory.current", "inactive_file")


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    files = cgroup(tmp_path, f"{3 * GIB}\n", 2 * GIB, GIB // 2)
    assert _store._free_of_container(files) == 3 * GIB // 2
    monkeypatch.setattr(_store, "CGROUPS", (files,))
    assert _store._free_bytes() <= 3 * GIB // 2
    assert _store._free_of_container(cgroup(tmp_path, "max\n", GIB, 0)) is None
    assert _store._free_of_container((tmp_path / "none", "a", "b", "c")) is None


def test_the_limit_of_the_process_counts(monkeypatch):
    assert _store._free_of_process() is None  # the tests run without a limit
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 * GIB, 8 * GIB))
    free = _store._free_of_process()
    assert 0 <= free < 8 * GIB


def test_draws_must_fit_with_the_copies_of_a_fit(monkeypatch):
    size = 12 * 4 * 1000 * 3
    X, y = np.random.default_rng(0).normal(size=(2, 30, 2))
    model = BayesianLogisticRegression(random_state=0)
    monkeypatch.setattr(_store, "_free_bytes", lambda: _store.COPIES * size - 1)
    with pytest.raises(
        MemoryError, match=rf"{size:,} bytes, for which the fit needs {6 * size:,} "
    ):
        model.fit(X, y[:, 0] > 0.0)
    monkeypatch.setattr(_store, "_free_bytes", lambda: _store.COPIES * size)
    model.fit(X, y[:, 0] > 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [BayesianLinearRegression, pytest.param(BayesianLogisticRegression, marks=pytest.mark.slow)],
)
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.DrawStoreWarning")
def test_fits_need_no_more_than_is_checked(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 60))
    y = X[:, 0] + rng.normal(size=200)
    y = y if model is BayesianLinearRegression else y > 0.0
    model(random_state=0).fit(X, y)
    n_parameters = 62 if model is BayesianLinearRegression else 61
    tracemalloc.start()
    try:
        model(n_draws=20_000, random_state=0).fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < _store.COPIES * 12 * 4 * 20_000 * n_parameters


def test_an_error_leaves_no_attribute():
    X, y = np.random.default_rng(0).normal(size=(2, 30, 2))
    model = BayesianLinearRegression(n_draws=10**9, random_state=0)
    with pytest.raises(MemoryError), sklearn.config_context(working_memory=1e9):
        model.fit(X, 1e9 + y[:, 0])
    assert vars(model) == vars(BayesianLinearRegression(n_draws=10**9, random_state=0))


def test_stores_that_are_filled_in_place_need_no_copies(monkeypatch):
    monkeypatch.setattr(_store, "_free_bytes", lambda: 8 * 2 * 10 * 5)
    _store.check_draw_store(2, 10, 5)
    with pytest.raises(MemoryError, match="800 bytes, for which the fit needs 960 bytes"):
        _store.check_draw_store(2, 10, 5, copies=1.2)


def test_one_of_several_posteriors_is_made_at_a_time():
    assert _store.copies_of(1) == _store.COPIES
    assert 4 * _store.copies_of(3) == 4 + _store.COPIES - 1
