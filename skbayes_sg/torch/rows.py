"""Rows from arrays, tensors, a Dataset or a DataLoader, and batches of them on a device.

The rows stay where they are: a step copies its own rows to the device and no others. Only
``data_on_device=True`` puts the whole of arrays or tensors there. Arrays that have the type of the
module's parameters are not copied.
"""

import itertools

import numpy as np
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
)

from .._base.validation import reject_masked
from ..exceptions import InvalidParameterError
from .flat import copy_of

__all__ = ["DatasetRows", "TensorRows", "as_inputs", "is_dataset", "looks_random", "of_dataset"]

AHEAD, FEW = 64, 100_000  # batches, and row numbers of batches, that are drawn at a time at most
FLOATS = {torch.float16: np.float16, torch.float32: np.float32, torch.float64: np.float64}
MOST_COLUMNS = 100  # inputs of an embedding up to which the extremes of each column are checked


def is_dataset(X):
    """Whether X is a Dataset or a DataLoader, which has both the rows and their targets."""
    return isinstance(X, (Dataset, DataLoader)) and not isinstance(X, torch.Tensor)


def as_inputs(X, module, dtype):
    """Return rows as a tensor: floats of the module's type, or integers if it has an embedding.

    Tensors are used as they are.
    """
    reject_masked(X=X)
    embeds = any(isinstance(m, (nn.Embedding, nn.EmbeddingBag)) for m in module.modules())
    X = X.detach() if isinstance(X, torch.Tensor) else _as_tensor(X, dtype, embeds)
    if len(X) == 0:
        raise ValueError("X has no rows.")
    if X.is_floating_point() and not bool(X.isfinite().all()):
        raise ValueError("Input X contains NaN or infinity.")
    return _known_numbers(X, module) if embeds else X


def _as_tensor(X, dtype, embeds):
    if hasattr(X, "toarray"):
        raise TypeError("Sparse X is not supported by modules: use X.toarray().")
    if isinstance(X, dict):
        raise TypeError("X is a dict. A module must take one tensor: put several inputs into one.")
    X = np.asarray(X)
    if X.dtype == object:
        X = X.astype(np.float64)
    if X.ndim == 0:
        raise ValueError("X must have rows, got a single number.")
    if embeds and np.issubdtype(X.dtype, np.integer):
        return torch.from_numpy(np.ascontiguousarray(X, dtype=np.int64))
    numbers = FLOATS.get(dtype, np.float32)  # NumPy has no bfloat16
    return torch.from_numpy(np.require(X, dtype=numbers, requirements=["C", "W"])).to(dtype)


def moved(tensor, device):
    """Return a tensor on a device.

    Raises `InvalidParameterError` for anything else that a Dataset has in the place of a tensor.

    A copy to the CPU is waited for: otherwise its memory would be read before it is written.
    """
    if not isinstance(tensor, torch.Tensor):
        raise InvalidParameterError(
            f"The items of a Dataset must be pairs of two tensors or numbers, got a "
            f"{type(tensor).__name__} in one of them. A module must take one tensor: put several "
            "inputs into one and split it in forward, and encode labels as 0, 1, ..."
        )
    return tensor.to(device, non_blocking=device.type == "cuda")


def _known_numbers(X, module):
    """Return X, after a check that embeddings have vectors for its smallest and largest numbers.

    The rows with the extremes of every column, or of all columns if there are many, go through the
    module on the CPU: a GPU that meets a number for which an embedding has no vector is lost for
    the whole process.
    """
    if X.numel() == 0:
        return X
    columns = X.reshape(len(X), -1)
    if columns.shape[1] > MOST_COLUMNS:
        columns = torch.stack([columns.amin(dim=1), columns.amax(dim=1)], dim=1)
    rows = torch.unique(torch.cat([columns.argmin(dim=0), columns.argmax(dim=0)]))
    try:
        with torch.no_grad():
            copy_of(module).cpu().eval()(X[rows].cpu())
    except IndexError as error:
        raise ValueError(
            f"The numbers of X reach from {X.min().item()} to {X.max().item()}, and an embedding "
            f"of the module has no vector for some of them: {error}. It needs as many as the "
            "largest number that may occur, and one."
        ) from error
    except (RuntimeError, TypeError):
        return X  # the module may need its GPU; other errors show at the first row
    return X


class TensorRows:
    """Rows in memory.

    Parameters
    ----------
    X, y : tensors with the same number of rows
        Inputs and targets; y is None for predictions.
    weight : tensor or None
    device : torch.device
    """

    def __init__(self, X, y, weight, device):
        self.n_rows, self.device = len(X), device
        self.parts = X, y, weight

    def to_device(self):
        """Copy all rows to the device and hold them there."""
        self.parts = tuple(None if p is None else p.to(self.device) for p in self.parts)

    def batch(self, index):
        """Return (X, y, weight) of the rows with these numbers, on the device."""
        index = torch.as_tensor(index)

        def of(part):
            return moved(part.index_select(0, index.to(part.device)), self.device)

        return tuple(None if part is None else of(part) for part in self.parts)

    def stream(self, indices):
        """Yield the batch for each array of an iterator of arrays of row numbers, equally long.

        All batches are the same tensors, which the next batch overwrites.
        """
        first = next(indices)
        place = self.batch(first)
        yield place
        if len(first) == self.n_rows:
            yield from itertools.repeat(place)
        for block in _ahead(indices):
            for index in torch.as_tensor(block).to(self.parts[0].device):
                self._write(index, place)
                yield place

    def _write(self, index, place):
        """Write the rows with these numbers to the tensors of an earlier batch."""
        for part, own in zip(self.parts, place, strict=True):
            if part is None:
                continue
            if part.device == own.device:
                torch.index_select(part, 0, index.to(part.device), out=own)
            else:
                own.copy_(part.index_select(0, index.to(part.device)))


def _ahead(indices):
    """Yield blocks of arrays of row numbers: first a block of one, then twice as many, and so on.

    Drawn one by one, between the operations of steps, arrays take five times as long as here, and a
    GPU waits for the copy of each.
    """
    n = 1
    while True:
        block = np.array(list(itertools.islice(indices, n)))
        yield block
        n = min(2 * n, AHEAD, max(1, FEW // block.shape[1]))


class DatasetRows:
    """Rows of a Dataset, whose items are pairs (x, y), or x alone for predictions.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
    device : torch.device
    collate : callable
        ``collate(items)`` returns the batch of a list of items.
    n_workers : int
        Number of processes that read batches.
    encode : callable
        ``encode(y)`` returns the targets of a batch as the likelihood takes them.
    needs_targets : bool
        Whether items must be pairs.
    """

    def __init__(
        self, dataset, device, collate=default_collate, n_workers=0, encode=None, needs_targets=True
    ):
        self.dataset, self.device, self.collate = dataset, device, collate
        self.n_workers, self.encode, self.n_rows = n_workers, encode, len(dataset)
        self.needs_targets = needs_targets

    def to_device(self):
        """Raise `InvalidParameterError`: a Dataset reads its rows when they are needed."""
        raise InvalidParameterError(
            "data_on_device=True is for arrays and tensors: a Dataset reads its rows when they are "
            "needed. Give X and y, or leave data_on_device out."
        )

    def _moved(self, batch):
        parts = batch if isinstance(batch, (tuple, list)) else (batch,)
        x = moved(parts[0], self.device) if len(parts) else None
        if x is not None and not self.needs_targets:
            return x, None, None
        if len(parts) != 2:
            found = f"{len(parts)} parts" if isinstance(batch, (tuple, list)) else "x alone"
            raise ValueError(f"The items of a Dataset must be pairs (x, y), got {found}.")
        y = parts[1] if self.encode is None else self.encode(parts[1])
        return x, moved(y, self.device), None

    def batch(self, index):
        """Return (X, y, None) of the rows with these numbers, on the device."""
        return self._moved(self.collate([self.dataset[int(i)] for i in index]))

    def stream(self, indices):
        """Return an iterator of batches for an iterator of arrays of row numbers."""
        if self.n_workers == 0:
            return map(self.batch, indices)
        loader = DataLoader(
            self.dataset, batch_sampler=indices, collate_fn=self.collate, num_workers=self.n_workers
        )
        return map(self._moved, loader)


def of_dataset(X, device, encode=None, needs_targets=True):
    """Return the `DatasetRows` of a Dataset, or of the Dataset that a DataLoader reads."""
    collate, workers = default_collate, 0
    if isinstance(X, DataLoader):
        _check_sampler(X.sampler)
        X, collate, workers = X.dataset, X.collate_fn, X.num_workers
    if isinstance(X, IterableDataset) or not hasattr(X, "__len__"):
        raise InvalidParameterError(
            "A posterior needs to know how many rows there are, and to read any of them: give a "
            "Dataset with __len__ and __getitem__, not an iterable one."
        )
    return DatasetRows(X, device, collate, workers, encode, needs_targets)


def _check_sampler(sampler):
    """Raise `InvalidParameterError` for samplers that may not read every row equally often."""
    if sampler is not None and not isinstance(sampler, (SequentialSampler, RandomSampler)):
        raise InvalidParameterError(
            f"A posterior is that of all rows of a Dataset, and the sampler of the DataLoader, a "
            f"{type(sampler).__name__}, is not used. Give torch.utils.data.Subset(dataset, "
            "indices) for a part of the rows."
        )


def looks_random(rows):
    """Whether a Dataset returns other rows at a second reading, as augmentation does."""
    if isinstance(rows, TensorRows):
        return False
    index = np.linspace(0, rows.n_rows - 1, min(4, rows.n_rows)).astype(int)
    first, second = (rows.batch(index)[0].double() for _ in range(2))
    if not bool(first.isfinite().all()):
        raise ValueError("The rows of the Dataset contain NaN or infinity.")
    return not torch.equal(first, second)
