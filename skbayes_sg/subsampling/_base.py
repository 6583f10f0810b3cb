"""What a subsampling scheme is: which rows a step looks at, and with what coefficients."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..engine.layout import Subsample, frozen

__all__ = ["Subsampling"]


class Subsampling(BaseEstimator):
    """A law of batches whose coefficients make weighted sums of rows unbiased.

    A subclass gives one kernel, ``draw(rng, subsample, rows_out, coefficients_out) -> n``, which is
    called once a step: it writes n row numbers, n at most the batch size, and the coefficients c_k,
    with ``E Σ_k c_k a_{rows_k} = Σ_i a_i`` for every a. Its arguments are

    ``rng`` : numpy.random.Generator
        The chain's own stream of row numbers, which nothing else draws from.
    ``subsample`` : skbayes_sg.engine.layout.Subsample
        What `state` returns: number of rows, batch size, and tables.
    ``rows_out`` : array of int64 of shape (batch_size,), to be written
        Row numbers.
    ``coefficients_out`` : array of float64 of shape (batch_size,), to be written
        Coefficients.

    "auto" predicts the noise of the gradient as if the rows of a batch were drawn independently.

    Attributes
    ----------
    needs_weights : bool
        Whether the scheme wants chances for the rows; then it has a method ``probabilities``, which
        makes them of what the rows contribute to the noise.
    needs_shuffled_rows : bool
        Whether the rows are to be put into random order first, as a copy in memory.
    """

    draw: Any = None
    needs_weights = False
    needs_shuffled_rows = False

    def state(self, n_rows, batch_size, chances=None):
        """A fresh `Subsample` for one chain.

        Parameters
        ----------
        n_rows, batch_size : int
        chances : array of shape (n_rows,), optional
            Probabilities of the rows, for schemes that need them.

        Returns
        -------
        skbayes_sg.engine.layout.Subsample
        """
        del chances
        no_table, no_alias = frozen(np.empty((0, 2))), frozen(np.empty(0), np.int64)
        # Read-only as real tables are: one type, so that loops are compiled once for all schemes.
        return Subsample(n_rows, batch_size, no_table, no_alias, np.empty(0, np.int64))
