"""Imports without garbage collection, which would examine all new objects and find no garbage."""

import contextlib
import gc

__all__ = ["uncollected"]


@contextlib.contextmanager
def uncollected():
    """Suspend garbage collection, and move all objects to the oldest generation at the end.

    An import makes objects that stay. To look for garbage among them, again and again, is a third
    of the time of ``import numba``. If they stayed in the youngest generation, the collector would
    only examine them later, in the first fit.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # otherwise objects frozen by other code would be unfrozen
            gc.freeze()
            gc.unfreeze()
        if was_on:
            gc.enable()
