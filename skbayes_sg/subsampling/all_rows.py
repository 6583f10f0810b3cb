"""Every row at every step, with coefficient 1: `gradient="full"` uses this scheme."""

from .._base.jit import pointee
from ._base import Subsampling

__all__ = ["AllRows"]


@pointee
def _draw(rng, subsample, position, rows_out, coefficients_out):
    if rows_out[0] < 0:  # a list that begins so is new; it is filled once, as nothing else writes
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
        """Return a fresh `Subsample`; raise `ValueError` unless a batch has room for all rows."""
        if batch_size != n_rows:
            raise ValueError(f"A batch of {batch_size} cannot hold all {n_rows} rows.")
        return super().state(n_rows, batch_size, chances)
