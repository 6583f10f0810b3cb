"""Contiguous blocks of rows that were shuffled once: coefficient N/n.

The start is uniform over all N rows and a block wraps around the end, so every row is in exactly n
of the N possible blocks: the estimate is unbiased *for the given order*. Over the random order a
single block is a uniform sample without replacement. Memory is read in a line, about three times
faster than random rows; the price is that two batches are not independent given the order.
"""

from .._jit import jit
from ._base import Subsampling

__all__ = ["Blocks"]


@jit
def _draw(rng, subsample, rows_out, coefficients_out):
    N, n = subsample.n_rows, subsample.batch_size
    first = int(rng.random() * N)
    for k in range(n):
        row = first + k
        rows_out[k] = row - N if row >= N else row
        coefficients_out[k] = N / n
    return n


class Blocks(Subsampling):
    """Contiguous blocks of a copy of the rows that is shuffled once, before sampling.

    Coefficient N/n. Over the random order a batch has the law of `UniformWithoutReplacement`. A
    copy of X is made in memory, also of a memory-mapped one.

    Examples
    --------
    >>> from skbayes_sg.subsampling import Blocks
    >>> Blocks()
    Blocks()
    """

    draw = staticmethod(_draw)
    needs_shuffled_rows = True
