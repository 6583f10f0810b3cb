"""Rounds end when all is done or when they are stopped, whatever the clock says."""

import time
from itertools import count

import joblib
import pytest

from skbayes_sg.engine import rounds


def advance(work, chain):
    """A chain is how much it has done, of 100."""
    return min(100, chain + (100 if work is None else work))


def is_done(chains):
    return min(chains) >= 100


def run(chains, stop=lambda chains: False, first_work=3):
    seen = []

    def watched(chains):
        seen.append(list(chains))
        return stop(chains)

    found = rounds.run_rounds(advance, chains, first_work, is_done=is_done, stop=watched)
    return found, seen


def test_work_follows_the_clock(monkeypatch):
    clock = count()  # a round takes one second
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(rounds, "CHUNK_SECONDS", 2.0)
    found, seen = run([0, 50])
    assert found == [100, 100]
    assert [one for one, _ in seen] == [3, 9, 21, 45, 93, 100]
    monkeypatch.setattr(rounds, "CHUNK_SECONDS", 1e3)
    assert [one for (one,) in run([0], first_work=1)[1]] == [1, 9, 73, 100]


def test_a_round_does_something_however_slow_it_is(monkeypatch):
    monkeypatch.setattr(rounds, "CHUNK_SECONDS", 1e-12)
    assert len(run([0])[1]) == 98


def test_chains_that_are_stopped_can_go_on():
    found, seen = run([0, 1], stop=lambda chains: True)
    assert found == [3, 4] == seen[0]
    assert len(seen) == 1
    assert run(found)[0] == [100, 100]


@pytest.mark.parametrize("chains", [[100], [100, 100]])
def test_nothing_is_done_where_nothing_is_left(chains):
    assert run(chains) == (chains, [])


def test_processes_do_all_of_the_work_at_once():
    with joblib.parallel_config("loky", n_jobs=1):
        assert run([0, 50]) == ([100, 100], [[100, 100]])
