"""Guards of fits: all fitted attributes are set or none, and draws must fit into memory."""

import contextlib
import os
import warnings
from pathlib import Path

import sklearn

from ..exceptions import DrawStoreWarning

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

__all__ = ["all_or_nothing", "check_draw_store", "check_fits", "copies_of"]

# Most memory that a fit of a row model needs over that of its draws and scores, while chains in
# lockstep make and judge them; independent draws need half of it
# (``tests/estimators/test_store.py`` measures both).
COPIES = 6
OF_CALLBACKS = "_callback", "_skl_"  # scikit-learn's own attributes, which it removes afterwards
# Control groups, version 2 and version 1: the folder, and the names of limit, usage, and of the
# part that the system drops if it needs memory.
CGROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    (
        Path("/sys/fs/cgroup/memory"),
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


@contextlib.contextmanager
def all_or_nothing(estimator):
    """Context manager that restores an estimator's attributes on any error, Ctrl-C included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        for name in [name for name in vars(estimator) if name not in before]:
            if not name.startswith(OF_CALLBACKS):
                delattr(estimator, name)
        vars(estimator).update(before)
        raise


def _free_bytes():
    """Free memory in bytes: of the system, its container and the process; None if none says."""
    known = [_free_of_system(), *map(_free_of_container, CGROUPS), _free_of_process()]
    return min((free for free in known if free is not None), default=None)


def _free_of_system():
    with contextlib.suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo") as lines:
            line = next(line for line in lines if line.startswith("MemAvailable"))
        return int(line.split()[1]) * 1024
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_of_container(files):
    """What a control group of Linux leaves: its limit less what is in use and cannot be dropped."""
    folder, limit, usage, dropped = files
    with contextlib.suppress(OSError, ValueError):
        most = int((folder / limit).read_text())  # "max" if there is no limit
        used = int((folder / usage).read_text())
        parts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(most - used + int(parts.get(dropped, 0)), 0)
    return None


def _free_of_process():
    """What the limit of the process's addresses leaves (``ulimit -v``)."""
    if resource is None:
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(OSError, ValueError):
        if most != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0])
            return max(most - used * os.sysconf("SC_PAGE_SIZE"), 0)
    return None


def check_fits(size, what, remedy):
    """`MemoryError` if `what` needs more bytes, `size`, than are free."""
    free = _free_bytes()
    if free is not None and size > free:
        raise MemoryError(f"{what} do not fit into free memory: {size:,.0f} bytes. {remedy}")


def copies_of(n_shards):
    """`COPIES`, for the draws of shards and of all rows, of which one set is made at a time."""
    return 1.0 + (COPIES - 1.0) / (n_shards + (n_shards > 1))


def check_draw_store(n_chains, n_draws, n_parameters, itemsize=8, remedy=None, copies=1):
    """`MemoryError` if draws do not fit into memory, `DrawStoreWarning` if they need much of it.

    `itemsize` is the number of bytes of each parameter of a draw, and `copies` the memory that a
    fit needs over that of its draws.
    """
    size = itemsize * n_chains * n_draws * n_parameters
    asked = f"{n_chains} chains x {n_draws} draws x {n_parameters} parameters = {size:,} bytes"
    remedy = remedy or (
        "Thin more and lower n_draws, use fewer chains or fewer features, or keep some of them: "
        "keep=100 or keep='moments'."
    )
    free = _free_bytes()
    needed = int(copies * size)
    if free is not None and needed > free:
        raise MemoryError(
            f"The posterior draws do not fit into free memory: {asked}, for which the fit needs "
            f"{needed:,} bytes, and {free:,} are free. {remedy}"
        )
    if size > sklearn.get_config()["working_memory"] * 2**20:
        warnings.warn(
            f"The posterior draws exceed scikit-learn's working_memory: {asked}. {remedy}",
            DrawStoreWarning,
            stacklevel=2,
        )
