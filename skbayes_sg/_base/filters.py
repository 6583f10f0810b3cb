"""Warnings of a block of code in one thread, while others go on.

The filters of warnings belong to the process, and `warnings.catch_warnings` restores those that it
has found: if two threads overlap, the one that leaves last restores what the other had set for a
while, and warnings of the whole process may be lost from then on. Here threads share one change of
the filters, and each warning is handed to the thread that issued it. Our own warnings are not
silenced in this way: they are not issued.
"""

import contextlib
import contextvars
import warnings

from .shared import SharedSetting

__all__ = ["recorded_warnings", "without_warnings"]

_handler: contextvars.ContextVar = contextvars.ContextVar("handler", default=None)


class _AllWarnings(SharedSetting):
    """Context in which every warning reaches the handler of its thread."""

    def begin(self):
        self._before = warnings.catch_warnings()
        self._before.__enter__()
        warnings.simplefilter("always")
        self._shown, warnings.showwarning = warnings.showwarning, self._hand_over

    def end(self):
        self._before.__exit__(None, None, None)

    def _hand_over(self, message, category, *where, **more):
        handler = _handler.get()
        if handler is None or not handler(message, category):
            self._shown(message, category, *where, **more)


_all_warnings = _AllWarnings()


@contextlib.contextmanager
def _handled(handler):
    """Context in which ``handler(message, category)`` says whether it has taken a warning."""
    token = _handler.set(handler)
    try:
        with _all_warnings:
            yield
    finally:
        _handler.reset(token)


def without_warnings(category, begin=""):
    """Context without the warnings of a category whose text begins in some way."""
    return _handled(lambda told, kind: issubclass(kind, category) and str(told).startswith(begin))


@contextlib.contextmanager
def recorded_warnings():
    """Context that returns the list of (category, text) of the warnings in it, which are not shown.

    Threads that are started in it show theirs.
    """
    found = []

    def take(message, category):
        found.append((category, str(message)))
        return True

    with _handled(take):
        yield found
