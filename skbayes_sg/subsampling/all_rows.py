"""Every row, every step: no randomness, coefficient 1. What `gradient="full"` uses."""

from .._base.jit import pointee
from ._base import Subsampling

__all__ = ["AllRows"]


@pointee
def _draw(rng, subsample, position, rows_out, coefficients_out):
    if rows_out[0] < 0:  # a fresh list; nothing else ever writes to it
        for i in range(subsample.n_rows):
            rows_out[i] = i
            coefficients_out[i] = 1.0
    return subsample.n_rows


class AllRows(Subsampling):
    """All rows at every step, in order, each with coefficient 1.

    Examples
    --------
    >>> from skbayes_sg.subsampling import AllRows
    >>> AllRows()
    AllRows()
    """

    draw = staticmethod(_draw)

    def state(self, n_rows, batch_size, chances=None):
        """A fresh `Subsample`; there is room for all rows, or the kernel would write beyond."""
        if batch_size != n_rows:
            raise ValueError(f"all {n_rows} rows do not fit a batch of {batch_size}")
        return super().state(n_rows, batch_size, chances)
