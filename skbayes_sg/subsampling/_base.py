"""What a subsampling scheme is: which rows a step looks at, and with what coefficients."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..engine.layout import Subsample

__all__ = ["Subsampling"]


class Subsampling(BaseEstimator):
    """A law of batches whose coefficients make weighted sums of rows unbiased.

    A subclass gives one kernel, ``draw(rng, subsample, rows_out, coefficients_out) -> n``: it
    writes n row numbers and the coefficients c_k with ``E Σ_k c_k a_{rows_k} = Σ_i a_i`` for every
    a. Draws use the chain's own stream of indices, and nothing else.
    """

    draw: Any = None
    needs_weights = False  # whether `state` wants the chances of the rows
    needs_shuffled_rows = False  # whether consecutive rows must be in random order

    def state(self, n_rows, batch_size, chances=None):
        """A fresh `Subsample` for one chain."""
        del chances
        return Subsample(
            n_rows, batch_size, np.empty((0, 2)), np.empty(0, np.int64), np.empty(0, np.int64)
        )
