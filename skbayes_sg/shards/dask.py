"""Dask arrays and dataframes: every partition is a shard, sampled where it lies.

This is the only module that imports Dask, and it does so only for Dask collections.
"""

from functools import partial

import numpy as np

from .._base.tables import is_dask
from .local import LocalParts, collected, run_elsewhere

__all__ = ["DaskParts", "parts_of"]


def _rows_of(X):
    """Return the lengths of the partitions of an array; None if they are not known."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return [int(n) for n in chunks[0]]


def _pieces(collection, n_parts, lengths, name):
    """Return, for every partition of X, the delayed piece of a collection or the piece of an array.

    `lengths` are those of the partitions of X, or None. Pieces that do not fit them raise a
    `ValueError` with the `name` of the collection.
    """
    if collection is None:
        return [None] * n_parts
    if is_dask(collection):
        if getattr(collection, "ndim", 1) == 2 and getattr(collection, "numblocks", (1, 1))[1] > 1:
            collection = collection.rechunk({1: -1})
        own = _rows_of(collection)
        if own is not None and lengths is not None and own != lengths and sum(own) == sum(lengths):
            collection = collection.rechunk({0: tuple(lengths)})
        pieces = np.ravel(collection.to_delayed()).tolist()
    elif lengths is not None and sum(lengths) == len(collection):
        pieces = np.split(np.asarray(collection), np.cumsum(lengths)[:-1])
    else:
        raise ValueError(
            f"{name} must be a Dask collection with the same partitions as X, because the lengths "
            "of the partitions of X are not known."
            if lengths is None
            else f"{name} has {len(collection)} rows, and X has {sum(lengths)}."
        )
    if len(pieces) != n_parts:
        raise ValueError(f"{name} has {len(pieces)} partitions, and X has {n_parts}.")
    return pieces


def parts_of(X, **others):
    """Return the `DaskParts` of X, with those of y, weights and other collections by name."""
    if not is_dask(X):
        raise ValueError(f"If {' or '.join(others)} is a Dask collection, X must be one too.")
    lengths = _rows_of(X)
    n_parts = X.numblocks[0] if hasattr(X, "numblocks") else X.npartitions
    named = {"X": X} | others
    pieces = [_pieces(collection, n_parts, lengths, name) for name, collection in named.items()]
    return DaskParts(list(zip(*pieces, strict=True)))


def _client():
    """Return the active client of a `dask.distributed` cluster; None if there is none."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def _read(pieces):
    """Return the arrays of a partition, computed in this thread from its delayed pieces."""
    import dask

    return dask.compute(*pieces, scheduler="synchronous")


def run_there(work, pieces, s, n_parts):
    """Return the result of `run_elsewhere` for aligned copies of the arrays of a partition.

    Arrays that a worker has received may be misaligned, and kernels that are compiled for
    misaligned arrays add up in another order.
    """
    aligned = [np.require(x, requirements="A") if type(x) is np.ndarray else x for x in pieces]
    return run_elsewhere(work, tuple(aligned), s, n_parts)


class DaskParts:
    """Partitions, each a tuple of delayed pieces of X, y and weights.

    If there is a client of `dask.distributed`, they are sampled by its cluster, else by workers of
    this process.
    """

    may_be_empty = True  # as after a filter

    def __init__(self, pieces):
        self.pieces = pieces

    def those(self, kept):
        """The partitions for which `kept` is true."""
        return DaskParts([own for own, is_kept in zip(self.pieces, kept, strict=True) if is_kept])

    def __len__(self):
        return len(self.pieces)

    def map(self, work, *, n_jobs=None, watch=None):
        """Return the results of ``work((X, y, weight), s)`` for all partitions s, in order."""
        client = _client()
        if client is None:
            local = LocalParts([partial(_read, pieces) for pieces in self.pieces])
            return local.map(work, n_jobs=n_jobs, watch=watch)
        done = _on_cluster(client, work, self.pieces)
        return collected(done, len(self), watch, elsewhere=True)


def _on_cluster(client, work, pieces):
    """Yield (number, result) of every partition when done; cancel all others after an error."""
    from dask import delayed
    from distributed import KilledWorker, as_completed

    run, S = delayed(run_there, pure=False), len(pieces)
    futures = client.compute([run(work, part, s, S) for s, part in enumerate(pieces)])
    numbers = {future.key: s for s, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            yield numbers[future.key], future.result()
    except KilledWorker as error:
        raise RuntimeError(
            f"shard {numbers.get(future.key)} of {len(pieces)}: its worker died several times. It "
            "may have run out of memory: use smaller partitions, or workers with more memory. "
            f"({error})"
        ) from error
    finally:
        client.cancel(futures)
