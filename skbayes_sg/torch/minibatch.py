"""Minibatch gradient (Welling and Teh 2011): (N/n) Σ_k ∇ℓ_k(θ), n rows without replacement."""

from functools import partial

import numpy as np

from ..exceptions import InvalidParameterError
from .replay import Replay, agrees, is_replayable

__all__ = ["MinibatchGradient", "all_rows", "batches"]


def batches(rng, n_rows, size):
    """Yield arrays of `size` different row numbers for ever, each drawn independently."""
    everything = np.arange(n_rows)
    while True:
        yield everything if size == n_rows else rng.choice(n_rows, size, replace=False)


def all_rows(gradient):
    """Whether a gradient of the package asks for every row of every step."""
    return type(gradient).__name__ == "Full"


class MinibatchGradient:
    """The estimate ĝ(θ) = ∇(-log p(θ))/T + (N/nT) Σ_k w_k ∇ℓ_k(θ) of ∇U from a batch.

    Batches of rows from memory are always written to the same tensors, so that a GPU can replay the
    steps.

    Parameters
    ----------
    target : ModuleTarget
    batch_size : int
    rng : numpy.random.Generator
        Draws the numbers of the rows.
    is_exact : bool, default=False
        Whether the gradient is known to have no noise: batches are all rows, and no layer is
        random.

    Attributes
    ----------
    n_evaluated : int
        Number of row gradients that were computed so far.
    """

    def __init__(self, target, batch_size, rng, is_exact=False):
        rows, flat = target.rows, target.flat
        if not 1 <= batch_size <= rows.n_rows:
            raise InvalidParameterError(
                f"batch_size must be in [1, {rows.n_rows}], got {batch_size}."
            )
        self.target, self.batch_size, self.n_evaluated = target, batch_size, 0
        self.is_exact = is_exact
        self.factors = target.factors(batch_size)
        self.stream = rows.stream(batches(rng, rows.n_rows, batch_size))
        may_record = partial(is_replayable, flat.module)
        self.replay = Replay(flat.device, None, may_record, partial(agrees, flat))
        self.place = None

    def start_anew(self):
        """Do nothing: this gradient does not depend on earlier places of the chain."""

    def __call__(self):
        """Fill ``target.flat.gradient``, and return the estimate of U without the prior.

        The estimate is a `Value` whose tensors the next call may write to.
        """
        return self.of_batch(next(self.stream))

    def of_batch(self, batch):
        """Fill ``target.flat.gradient`` from a given batch; return U without the prior."""
        self.n_evaluated += self.batch_size
        is_same = self.place is not None and batch[0] is self.place
        self.place = batch[0]
        return self.replay(partial(self.estimate, batch)) if is_same else self.estimate(batch)

    def estimate(self, batch):
        """Do what `of_batch` does by operations on tensors alone, which a GPU can replay."""
        self.target.flat.gradient.zero_()
        value = self.target.add_rows(batch, self.factors)
        self.target.add_prior(1.0 / self.target.temperature)
        return value
