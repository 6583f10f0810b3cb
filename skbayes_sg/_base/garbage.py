"""The garbage collector, which looks at all that an import makes, and finds nothing."""

import contextlib
import gc

__all__ = ["uncollected"]


@contextlib.contextmanager
def uncollected():
    """Without garbage collection, and with all objects old at the end, as if it had looked.

    An import makes objects that stay. To look for garbage among them, again and again, is a third
    of the time of ``import numba``; young objects would only move that to the first fit.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # else objects that somebody else has frozen would thaw
            gc.freeze()
            gc.unfreeze()
        if was_on:
            gc.enable()
