"""Ctrl-C at a place in the code, never after a delay: machines differ in speed."""

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

import skbayes_sg
from skbayes_sg.dynamics import HMC
from skbayes_sg.schedules import Constant

PACKAGE = str(Path(skbayes_sg.__file__).parent)


def press():
    """Ctrl-C: the signal goes to the process, and its main thread hears it."""
    if os.name == "nt":  # where os.kill ends the process
        signal.raise_signal(signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def heard():
    """The usual handler of Ctrl-C, without which a job in the background begins."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -- at a chunk of steps --------------------------------------------------------------------------


class WatchedStep(Constant):
    """A constant step size that calls ``hook(n_steps)`` before every call of a kernel."""

    def __init__(self, h=0.1, hook=None):
        super().__init__(h)
        self.hook = hook

    def __call__(self, t):
        self.hook(len(t))
        return super().__call__(t)


class WatchedHMC(HMC):
    """Hamiltonian Monte Carlo that calls ``hook()`` before every call of a kernel."""

    def __init__(self, trajectory=1.5, hook=None):
        super().__init__(trajectory)
        self.hook = hook

    def path(self):
        self.hook()
        return super().path()


def pressed_at(number):
    """A hook that presses Ctrl-C at its call of this number, and the list of calls after that."""
    n_calls, later = 0, []

    def hook(*arguments):
        nonlocal n_calls
        n_calls += 1
        if n_calls == number:
            press()
        elif n_calls > number:
            later.append(arguments)

    return hook, later


def join_all_but(threads):
    """Wait for the other threads to end, as those do whose work nobody waits for any more.

    A thread in whose start Ctrl-C has struck may have no `ident` yet: it has no work either.
    """
    for thread in set(threading.enumerate()) - set(threads):
        if thread.ident is not None:
            thread.join()


# -- at a function --------------------------------------------------------------------------------


def is_python(code):
    """Whether this is a function in a file of the package."""
    return code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<")


def functions_of(work):
    """Functions of the package that `work` calls in this thread, in the order of their first calls.

    Each of them is a code object.
    """
    found = {}

    def hook(frame, event, _):
        if event == "call" and is_python(frame.f_code):
            found.setdefault(frame.f_code)

    with profiled(hook):
        work()
    return list(found)


def _interrupt():
    raise KeyboardInterrupt


@contextlib.contextmanager
def pressed_in(matches, n_passed=0, strike=_interrupt):
    """Ctrl-C where a function begins whose code `matches`, after so many of its calls.

    `strike` is `press` for a signal, which the function may have deferred.
    """

    def hook(frame, event, _):
        nonlocal n_passed
        if event == "call" and matches(frame.f_code):
            n_passed -= 1
            if n_passed < 0:
                sys.setprofile(None)
                strike()

    with profiled(hook):
        yield


@contextlib.contextmanager
def profiled(hook):
    """Python calls `hook` at every call in this thread."""
    before = sys.getprofile()
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(before)
