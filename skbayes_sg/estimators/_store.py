"""Guards of fits: all fitted attributes are set or none, and draws must fit into memory."""

import contextlib
import os
import warnings

import sklearn

from ..exceptions import DrawStoreWarning

__all__ = ["all_or_nothing", "check_draw_store", "check_fits"]


@contextlib.contextmanager
def all_or_nothing(estimator):
    """Context manager that restores an estimator's attributes on any error, Ctrl-C included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        for name in [n for n in vars(estimator) if n not in before and not n.startswith("_")]:
            delattr(estimator, name)
        vars(estimator).update(before)
        raise


def _free_bytes():
    """Free memory in bytes; None where the system does not say."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo") as lines:
            line = next(line for line in lines if line.startswith("MemAvailable"))
        return int(line.split()[1]) * 1024
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def check_fits(size, what, remedy):
    """`MemoryError` if `what` needs more bytes, `size`, than are free."""
    free = _free_bytes()
    if free is not None and size > free:
        raise MemoryError(f"{what} do not fit into free memory: {size:,.0f} bytes. {remedy}")


def check_draw_store(n_chains, n_draws, n_parameters, itemsize=8, remedy=None):
    """`MemoryError` if draws do not fit into memory, `DrawStoreWarning` if they need much of it.

    `itemsize` is the number of bytes of each parameter of a draw.
    """
    size = itemsize * n_chains * n_draws * n_parameters
    asked = f"{n_chains} chains x {n_draws} draws x {n_parameters} parameters = {size:,} bytes"
    remedy = remedy or (
        "Thin more and lower n_draws, use fewer chains or fewer features, or keep some of them: "
        "keep=100 or keep='moments'."
    )
    free = _free_bytes()
    if free is not None and size > free:
        raise MemoryError(f"The posterior draws do not fit into free memory: {asked}. {remedy}")
    if size > sklearn.get_config()["working_memory"] * 2**20:
        warnings.warn(
            f"The posterior draws exceed scikit-learn's working_memory: {asked}. {remedy}",
            DrawStoreWarning,
            stacklevel=2,
        )
