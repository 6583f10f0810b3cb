"""Ctrl-C in the middle of work that must not be left half done."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from interrupts import heard

from skbayes_sg._base import interrupts
from skbayes_sg._base.interrupts import without_interrupts

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are sent by os.kill")


@pytest.fixture(autouse=True)
def _heard():
    with heard():
        yield


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_it_waits_for_the_end():
    done, before = [], signal.getsignal(signal.SIGINT)

    def work():
        with without_interrupts(), without_interrupts():  # the inner one ends first
            interrupt()
            done.append("inner")
        done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner"]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_does_not_wait():
    done = []

    def work():
        with without_interrupts():
            interrupt()
            done.append("first")
            interrupt()
            done.append("second")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["first"]


def test_jobs_in_the_background_go_on_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with without_interrupts():
        interrupt()
        interrupt()
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_errors_and_other_threads_are_as_without_it():
    with pytest.raises(ZeroDivisionError), without_interrupts():
        1 / 0  # noqa: B018
    seen = []

    def work():
        with without_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_interpreters_that_may_set_no_handler_go_on(monkeypatch):
    def refuse(*_):
        raise ValueError("signal only works in main thread of the main interpreter")

    monkeypatch.setattr(interrupts._signal, "signal", refuse)
    with without_interrupts():
        done = True
    assert done


# The first fit of a process is interrupted while ArviZ is imported; scikit-learn's and the
# package's own imports are over.
INTERRUPTED = """
import builtins, os, signal
import numpy as np
from skbayes_sg.diagnostics import convergence

original = builtins.__import__
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by jobs in the background

def interrupting(name, *args):
    if name == "arviz_stats.base.density":
        os.kill(os.getpid(), signal.SIGINT)
    return original(name, *args)

builtins.__import__ = interrupting
x = np.random.default_rng(0).normal(size=(2, 50))
try:
    convergence.rhat(x)
except KeyboardInterrupt:
    print("interrupted")
builtins.__import__ = original
print(convergence.rhat(x) < 1.2)
"""


def test_an_import_is_not_left_half_done():
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120
    )
    assert found.stdout.split() == ["interrupted", "True"], found.stderr
