"""What a subsampling scheme is: which rows a step looks at, and with what coefficients."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels.layout import Subsample, frozen

__all__ = ["Subsampling"]


class Subsampling(BaseEstimator):
    """A law of batches whose coefficients make weighted sums of rows unbiased.

    A subclass gives one kernel, called once a step,
    ``draw(rng, subsample, position, rows_out, coefficients_out) -> n``: it writes n row numbers, n
    at most `most_rows`, and the coefficients c_k, with ``E Σ_k c_k a_{rows_k} = Σ_i a_i`` for every
    a. Its arguments are

    ``rng`` : numpy.random.Generator
        The chain's own stream of row numbers, which nothing else draws from.
    ``subsample`` : skbayes_sg.kernels.layout.Subsample
        What `state` returns: number of rows, batch size, and tables.
    ``position`` : array of shape (n_parameters,)
        Where the chain is, in its own coordinates: zero is the centre.
    ``rows_out`` : array of int64 of shape (most_rows,), to be written
        Row numbers.
    ``coefficients_out`` : array of float64 of shape (most_rows,), to be written
        Coefficients.

    "auto" predicts the noise of the gradient as if the rows of a batch were drawn independently.

    Attributes
    ----------
    needs_weights : bool
        Whether the scheme wants chances for the rows; then it has a method ``probabilities``, which
        makes them of what the rows contribute to the noise.
    needs_shuffled_rows : bool
        Whether the rows are to be put into random order first, as a copy in memory.
    needs_reach : bool
        Whether the number of rows goes with the distance from the centre; then `state` takes the
        ``reach``, the squared distance at which it is the batch size.
    """

    draw: Any = None
    needs_weights = False
    needs_shuffled_rows = False
    needs_reach = False

    def check(self, n_rows, batch_size):
        """`ValueError` for a number of rows, or rows a step, that the scheme cannot serve.

        Parameters
        ----------
        n_rows, batch_size : int
        """

    def most_rows(self, n_rows, batch_size):
        """Rows that a step may draw at most.

        Parameters
        ----------
        n_rows, batch_size : int

        Returns
        -------
        int
        """
        del n_rows
        return batch_size

    def state(self, n_rows, batch_size, chances=None):
        """A fresh `Subsample` for one chain.

        Parameters
        ----------
        n_rows, batch_size : int
        chances : array of shape (n_rows,), optional
            Probabilities of the rows, for schemes that need them.

        Returns
        -------
        skbayes_sg.kernels.layout.Subsample
        """
        del chances
        no_table, no_alias = frozen(np.empty((0, 2))), frozen(np.empty(0), np.int64)
        # Read-only as real tables are: one type, so that loops are compiled once for all schemes.
        return Subsample(
            n_rows, batch_size, batch_size, batch_size, 1.0, no_table, no_alias,
            np.empty(0, np.int64),
        )  # fmt: skip
