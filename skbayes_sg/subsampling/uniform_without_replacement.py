"""Uniform sampling without replacement: all subsets of n rows are equally likely; coefficient N/n.

Covariance of the weighted sum of a_i: N² (1 - n/N) S² / n
with S² = Σ (a_i - ā)(a_i - ā)ᵀ / (N - 1).
"""

import numpy as np

from .._base.jit import pointee
from ._base import Subsampling

__all__ = ["UniformWithoutReplacement"]


@pointee
def _draw(rng, subsample, position, rows_out, coefficients_out):
    # The first n steps of a Fisher-Yates shuffle give a uniform sample from any order of the list.
    # Each step shuffles the list that the last one left, so that batches are independent, and no
    # step costs O(N).
    N, n, order = subsample.n_rows, subsample.batch_size, subsample.order
    for k in range(n):
        other = k + int(rng.random() * (N - k))
        order[k], order[other] = order[other], order[k]
        rows_out[k] = order[k]
        coefficients_out[k] = N / n
    return n


class UniformWithoutReplacement(Subsampling):
    """Rows drawn uniformly without replacement, coefficient N/n.

    The covariance of a weighted sum is that of `Uniform` times (N - n)/(N - 1): use this scheme if
    n is a good part of N.
    Each chain keeps a list of N row numbers.

    Examples
    --------
    >>> from skbayes_sg.subsampling import UniformWithoutReplacement
    >>> UniformWithoutReplacement()
    UniformWithoutReplacement()
    """

    draw = staticmethod(_draw)

    def state(self, n_rows, batch_size, chances=None):
        """Return a fresh `Subsample`, with the list of row numbers in order."""
        plain = super().state(n_rows, batch_size, chances)
        return plain._replace(order=np.arange(n_rows, dtype=np.int64))
