"""A setting of the process that several threads need for a while."""

import contextlib
import os
import threading
from abc import ABC, abstractmethod

__all__ = ["SharedSetting"]


class SharedSetting(contextlib.ContextDecorator, ABC):
    """Context for any number of threads: the first to enter sets it, the last to leave restores it.

    Entering returns what `begin` has returned. A process that is forked meanwhile lacks the threads
    that would leave, and restores the setting at once.
    """

    def __init__(self):
        self._lock, self._depth, self._found = threading.Lock(), 0, None
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
            os.register_at_fork(after_in_child=self._forked)

    @abstractmethod
    def begin(self):
        """Set it."""

    @abstractmethod
    def end(self):
        """Restore what was before."""

    def __enter__(self):
        with self._lock:
            if self._depth == 0:
                self._found = self.begin()
            self._depth += 1
            return self._found

    def __exit__(self, *error):
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self.end()

    def _forked(self):
        self._lock = threading.Lock()  # another thread may hold the old one
        if self._depth:
            self._depth = 0
            self.end()
