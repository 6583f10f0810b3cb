"""Ctrl-C that waits for work which must not be left half done."""

import _signal  # type: ignore[import-not-found]  # what `signal` wraps: its enums take 30 µs a call
import contextlib
import threading
from signal import SIGINT

__all__ = ["without_interrupts"]


@contextlib.contextmanager
def without_interrupts():
    """Context, for work of at most a second, after which a Ctrl-C that came meanwhile takes effect.

    An import or a registration that is left in the middle stays so until the process ends: later
    calls find half a module. And while Numba reads the arguments of a kernel, it calls Python for
    those that are a `pointer` or a generator, without checking whether that failed: Ctrl-C would be
    lost there, or crash the process. A kernel itself is not interrupted in any case.

    A second Ctrl-C does not wait: work in which a kernel is compiled takes longer. Only the main
    thread receives signals, and others go on.
    """
    handler, came = _signal.getsignal(SIGINT), []
    is_main = threading.current_thread() is threading.main_thread()

    def wait(*of_signal):
        came.append(of_signal)
        if len(came) > 1:
            handler(*of_signal)

    if not (is_main and callable(handler) and _replaced(wait)):
        yield
        return
    try:
        yield
    finally:
        _signal.signal(SIGINT, handler)
        if len(came) == 1:
            handler(*came[0])


def _replaced(handler):
    """Make `handler` that of Ctrl-C; False in an interpreter that may not, being a second one."""
    try:
        _signal.signal(SIGINT, handler)
    except ValueError:
        return False
    return True
