"""Where small arrays lie in memory: results must not depend on it."""

import ctypes
from contextlib import contextmanager

import numpy as np

SIZES = np.tile(np.arange(48, 448, 16), 2000)  # bytes of blocks, those of short arrays among them


@contextmanager
def without_gaps():
    """New short arrays follow one another in memory, since all gaps are taken."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    taken = [libc.malloc(int(size)) for size in SIZES]
    try:
        yield
    finally:
        for place in np.random.default_rng(0).permutation(len(taken)):  # gaps at random places
            libc.free(taken[place])
