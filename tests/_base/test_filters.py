"""Warnings of one thread among several, and what is left of the filters."""

import multiprocessing
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from skbayes_sg import BayesianLinearRegression
from skbayes_sg._base.filters import recorded_warnings, without_warnings
from skbayes_sg._base.threads import one_blas_thread


def test_warnings_are_recorded_or_left_out_and_others_shown():
    with warnings.catch_warnings(record=True) as shown:
        with recorded_warnings() as found:
            warnings.warn("first", FutureWarning, stacklevel=1)
            warnings.warn("first", FutureWarning, stacklevel=1)
        with without_warnings(UserWarning, "second"):
            warnings.warn("second, left out", UserWarning, stacklevel=1)
            warnings.warn("third", UserWarning, stacklevel=1)
    assert found == [(FutureWarning, "first")] * 2
    assert [str(one.message) for one in shown] == ["third"]


def test_threads_that_overlap_have_their_own_and_leave_the_filters():
    # Enter 0, enter 1, leave 0, leave 1: the order in which catch_warnings goes wrong.
    turn, before = threading.Barrier(2, timeout=30), (list(warnings.filters), warnings.showwarning)

    def work(k):
        if k == 1:
            turn.wait()
        with recorded_warnings() as found:
            if k == 0:
                turn.wait()
            turn.wait()  # both are inside
            warnings.warn(f"of {k}", UserWarning, stacklevel=1)
            turn.wait()
            if k == 1:
                turn.wait()  # 0 has left
        if k == 0:
            turn.wait()
        return found

    with ThreadPoolExecutor(2) as executor:
        found = list(executor.map(work, range(2)))
    assert found == [[(UserWarning, "of 0")], [(UserWarning, "of 1")]]
    assert (list(warnings.filters), warnings.showwarning) == before


@pytest.mark.slow
def test_fits_in_threads_leave_the_filters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)

    def fit(seed):
        return BayesianLinearRegression(n_draws=100, random_state=seed).fit(X, y).coef_

    expected, before = [fit(seed) for seed in range(40)], list(warnings.filters)
    for _ in range(3):
        with ThreadPoolExecutor(4) as executor:
            found = list(executor.map(fit, range(40)))
        assert [one for one in warnings.filters if one not in before and one[0] == "ignore"] == []
    np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("context", [one_blas_thread, without_warnings(UserWarning)])
def test_a_process_that_is_forked_meanwhile_does_not_wait_for_threads_it_lacks(context):
    inside, go_on = threading.Event(), threading.Event()
    lock = one_blas_thread._lock

    def hold():
        with context, lock:  # as while another thread enters
            inside.set()
            go_on.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    child = multiprocessing.get_context("fork").Process(target=enter_both)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forks of threads, from Python 3.12 on
        child.start()
    child.join(20)
    go_on.set()
    thread.join()
    hangs = child.is_alive()
    child.kill()
    assert not hangs
    assert child.exitcode == 0


def enter_both():
    with one_blas_thread, recorded_warnings() as found:
        warnings.warn("told", UserWarning, stacklevel=1)
        assert one_blas_thread._depth == 1
    assert found == [(UserWarning, "told")]
