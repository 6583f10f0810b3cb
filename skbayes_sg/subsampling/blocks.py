"""Contiguous blocks of rows that were shuffled once; coefficient N/n.

The start is uniform over all N rows and a block wraps around the end, so every row is in exactly n
of the N possible blocks: the estimate is unbiased *for the given order*. Over the random order a
single block is a uniform sample without replacement. Reading memory in sequence is faster than
reading random rows (``examples/benchmarks/step.py``); in return, batches are not independent given
the order.
"""

from .._base.jit import pointee
from ._base import Subsampling

__all__ = ["Blocks"]


@pointee
def _draw(rng, subsample, position, rows_out, coefficients_out):
    N, n = subsample.n_rows, subsample.batch_size
    first = int(rng.random() * N)
    for k in range(n):
        row = first + k
        rows_out[k] = row - N if row >= N else row
        coefficients_out[k] = N / n
    return n


class Blocks(Subsampling):
    """Contiguous blocks of rows in random order, coefficient N/n.

    Over the random order a batch has the law of `UniformWithoutReplacement`
    (``tests/gradients/test_gradient_estimators.py::test_blocks_are_uniform_over_random_orders``).

    Parameters
    ----------
    shuffle : bool, default=True
        Whether to copy X with its rows in random order before sampling. Use False for a file on
        disk that was shuffled once. Rows in any other order give wrong posteriors if neighbouring
        rows are similar.

    Raises
    ------
    ValueError
        By `fit`, if X is memory-mapped and would have to be copied.

    Examples
    --------
    >>> from skbayes_sg.subsampling import Blocks
    >>> Blocks()
    Blocks()
    """

    draw = staticmethod(_draw)

    def __init__(self, shuffle: bool = True) -> None:
        self.shuffle = shuffle

    @property
    def needs_shuffled_rows(self):
        """Whether the rows must be put in random order first."""
        return self.shuffle
