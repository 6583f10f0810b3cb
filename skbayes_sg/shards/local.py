"""Work on parts of the rows, each where it lies: in this process, on a joblib backend, in files.

`skbayes_sg.shards.dask` does this for partitions on other machines.
"""

import contextlib
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from .._base.filters import recorded_warnings
from .._base.threads import as_done, shares_memory
from ..exceptions import SamplerDivergedError

__all__ = ["LocalParts", "collected", "run_elsewhere", "work_on"]


@contextlib.contextmanager
def named(s, n_parts):
    """Add the number of the shard to errors that are raised inside of the context."""
    try:
        yield
    except (ValueError, SamplerDivergedError) as error:
        error.args = (f"shard {s} of {n_parts}: {error}",)
        raise
    except Exception as error:
        error.add_note(f"This was in shard {s} of {n_parts}.")
        raise


def run(work, data, s, n_parts):
    """Return ``work(data, s)``, for data or for a function that returns them."""
    with named(s, n_parts):
        return work(data() if callable(data) else data, s)


def run_elsewhere(work, data, s, n_parts):
    """Return the result of `run` and a list of its warnings, which another process would lose."""
    with recorded_warnings() as caught:
        result = run(work, data, s, n_parts)
    return result, caught


def _warned(s, n_parts, result):
    """Return the result in the output of `run_elsewhere`, and issue its warnings once more."""
    result, caught = result
    for category, message in caught:
        warnings.warn(f"shard {s} of {n_parts}: {message}", category, stacklevel=5)
    return result


def collected(done, n_parts, watch, elsewhere):
    """Return results in the order of their numbers, from pairs (number, result) in any order.

    ``watch(results)`` is called after each with all results so far. If `elsewhere`, the results are
    those of `run_elsewhere`.
    """
    found = {}
    for s, result in done:
        found[s] = _warned(s, n_parts, result) if elsewhere else result
        if watch is not None:
            watch([found[k] for k in sorted(found)])
    return [found[s] for s in range(n_parts)]


def work_on(work, parts, n_parts, *, n_jobs=None, watch=None):
    """Return the results of ``work(data, s)`` for all parts s, in order.

    They come from threads, or from joblib's backend of processes if the user has chosen one.

    Parameters
    ----------
    work : callable
        It must be picklable, as it may be sent to another process.
    parts : iterable
        Data, or functions without arguments that return them where the work is done.
    n_parts : int
    n_jobs : int or None
    watch : callable, optional
        ``watch(results)`` is called after every part, with the results that are done.
    """
    shared = shares_memory()
    items = ((work, data, s, n_parts) for s, data in enumerate(parts))
    done = as_done(run if shared else run_elsewhere, items, n_parts, n_jobs)
    return collected(done, n_parts, watch, elsewhere=not shared)


# -- arrays and files -----------------------------------------------------------------------------


def opened(item):
    """Return an array itself, or the array in a file; ``.npy`` files are mapped, not read."""
    if not isinstance(item, (str, Path)):
        return item
    path = Path(item)
    return sparse.load_npz(path) if path.suffix == ".npz" else np.load(path, mmap_mode="r")


def read(part):
    """Return the arrays (X, y, weight, ...) of a tuple of arrays or paths.

    The weight is None if the tuple has none.
    """
    X, y, *more = [item if item is None else opened(item) for item in part]
    return X, y, *(more or [None])


class LocalParts:
    """Parts that workers of this machine can read: see `BayesianGLM.fit_shards`.

    `items` are the names of what a part may have; all after the second are optional.
    """

    may_be_empty = False

    def __init__(self, shards, items=("X", "y", "sample_weight")):
        of_folder = isinstance(shards, (str, Path))
        self.parts = _of_folder(shards, items[2:]) if of_folder else list(shards)
        if not self.parts:
            raise ValueError("shards must hold at least one shard, got none.")
        for s, part in enumerate(self.parts):
            if not callable(part) and not 2 <= len(part) <= len(items):
                forms = " or ".join(f"({', '.join(items[:k])})" for k in range(2, len(items) + 1))
                raise ValueError(f"Shard {s} must be {forms}, got {len(part)} items.")

    def __len__(self):
        return len(self.parts)

    def map(self, work, *, n_jobs=None, watch=None):
        """Return the results of ``work((X, y, weight), s)`` for all parts s, in order."""
        parts = (part if callable(part) else partial(read, part) for part in self.parts)
        return work_on(work, parts, len(self), n_jobs=n_jobs, watch=watch)


def _of_folder(path, more):
    """Return a tuple of paths (X, y, ...) for each file X*.npy or X*.npz of a folder.

    `more` are the names of the items after y; the path of an item is None if the folder has no
    files of it.
    """
    folder = Path(path)
    found = sorted([*folder.glob("X*.npy"), *folder.glob("X*.npz")])
    if not found:
        raise ValueError(f"The folder {str(path)!r} has no files X*.npy or X*.npz.")
    begins = [name.removeprefix("sample_") for name in more]
    there = [any(folder.glob(f"{begin}*.npy")) for begin in begins]
    parts = []
    for X in found:
        ending = X.stem[1:] + ".npy"
        others = zip(begins, there, strict=True)
        part = [X, folder / f"y{ending}"]
        part += [folder / f"{begin}{ending}" if given else None for begin, given in others]
        missing = [other.name for other in part if other is not None and not other.exists()]
        if missing:
            raise ValueError(f"The folder {str(path)!r} has {X.name}, but not {missing[0]}.")
        parts.append(tuple(part))
    return parts
