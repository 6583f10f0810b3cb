"""Memory-mapped rows: find the map behind an array, and release pages that were read."""

import mmap

import numpy as np

__all__ = ["aligned", "forget", "gather", "mapped"]

# Rows of a file that `gather` reads before it releases their pages: the system maps 64 kB around
# each of them.
FEW = 256


def aligned(X):
    """Return X itself, or an aligned copy of it if its data are not aligned in memory.

    Arrays that another process has sent may be misaligned. BLAS rounds sums over such arrays
    differently, and copies them on every pass.
    """
    return X.copy() if isinstance(X, np.ndarray) and not X.flags.aligned else X


def mapped(array):
    """Return the `numpy.memmap` behind an array, or None if there is none.

    Copy-on-write maps do not count, because their pages cannot be read from the file again.
    """
    while array is not None:
        if isinstance(array, np.memmap) and array.mode != "c" and array._mmap is not None:
            return array
        array = getattr(array, "base", None)
    return None


def forget(X, start, stop):
    """Tell the system that rows ``start:stop`` of a memory-mapped array are not needed any more.

    The pages stay in the system's file cache while there is room, but no longer count as memory of
    this process: a pass over a file does not make the process as large as the file.
    """
    source = mapped(X) if isinstance(X, np.ndarray) else None
    if source is None or not hasattr(source._mmap, "madvise"):
        return
    base = np.frombuffer(source._mmap, dtype=np.uint8).ctypes.data
    offset, page = X.ctypes.data - base, mmap.PAGESIZE
    first = -(-(offset + start * X.strides[0]) // page) * page
    last = (offset + stop * X.strides[0]) // page * page
    if last > first:
        source._mmap.madvise(mmap.MADV_DONTNEED, first, last - first)


def gather(X, rows):
    """Return ``X[rows]``; of a memory-mapped file, few rows are read at a time.

    Their pages are released before the next rows are read.
    """
    if not isinstance(X, np.ndarray) or isinstance(rows, slice) or mapped(X) is None:
        return X[rows]
    out = np.empty((len(rows), *X.shape[1:]), X.dtype)
    for first in range(0, len(rows), FEW):
        part = rows[first : first + FEW]
        out[first : first + FEW] = X[part]
        forget(X, part.min(), part.max() + 1)
    return out
