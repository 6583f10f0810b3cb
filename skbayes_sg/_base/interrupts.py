"""Ctrl-C that waits for work which must not be left half done."""

import contextlib
import signal
import threading

__all__ = ["without_interrupts"]


@contextlib.contextmanager
def without_interrupts():
    """Context, for work of at most a second, after which a Ctrl-C that came meanwhile takes effect.

    An import or a registration that is left in the middle stays so until the process ends: later
    calls find half a module. And while Numba reads the arguments of a kernel, it calls Python for
    those that are a `pointer` or a generator, without checking whether that failed: Ctrl-C would be
    lost there, or crash the process. A kernel itself is not interrupted in any case.

    A second Ctrl-C does not wait. Only the main thread receives signals, and others go on.
    """
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not callable(handler):
        yield
        return
    came = []

    def wait(*of_signal):
        came.append(of_signal)
        if len(came) > 1:
            handler(*of_signal)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if len(came) == 1:
            handler(*came[0])
