"""The base class of subsampling schemes: which rows a step looks at, with what coefficients."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels.layout import Subsample, frozen

__all__ = ["Subsampling"]


class Subsampling(BaseEstimator):
    """A distribution of batches with coefficients that make weighted sums of rows unbiased.

    For each scheme, a test adds up the estimates of all batches
    (``tests/gradients/test_gradient_estimators.py::test_mean_and_covariance_over_all_batches``).

    A subclass defines one kernel, which is called once a step,
    ``draw(rng, subsample, position, rows_out, coefficients_out) -> n``: it writes n row numbers, n
    at most `most_rows`, and the coefficients c_k, with ``E Σ_k c_k a_{rows_k} = Σ_i a_i`` for every
    a. Its arguments are

    ``rng`` : numpy.random.Generator
        The chain's own stream of row numbers, which nothing else draws from.
    ``subsample`` : skbayes_sg.kernels.layout.Subsample
        The result of `state`: number of rows, batch size, and tables.
    ``position`` : array of shape (n_parameters,)
        The position of the chain in its own coordinates: zero is the centre.
    ``rows_out`` : array of int64 of shape (most_rows,), to be written
        Row numbers.
    ``coefficients_out`` : array of float64 of shape (most_rows,), to be written
        Coefficients.

    "auto" predicts the noise of the gradient as if the rows of a batch were drawn independently.

    Attributes
    ----------
    needs_weights : bool
        Whether the scheme draws rows with unequal probabilities. It then has a method
        ``probabilities``, which computes them from the contributions of the rows to the noise.
    needs_shuffled_rows : bool
        Whether X must first be copied with its rows in random order.
    needs_reach : bool
        Whether the number of rows depends on the distance from the centre. Then `state` takes the
        ``reach``, the squared distance at which the number is the batch size.
    """

    draw: Any = None
    needs_weights = False
    needs_shuffled_rows = False
    needs_reach = False

    def check(self, n_rows, batch_size):
        """Raise `ValueError` for a number of rows, or of rows a step, that does not work.

        Parameters
        ----------
        n_rows, batch_size : int
        """

    def most_rows(self, n_rows, batch_size):
        """Return the largest number of rows that a step may draw.

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
        """Return a fresh `Subsample` for one chain.

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
        # Empty tables are read-only like real ones, so that loops are compiled once for all.
        sizes, no_order = (n_rows, batch_size, batch_size, batch_size), np.empty(0, np.int64)
        return Subsample(*sizes, 1.0, no_table, no_alias, no_order)
