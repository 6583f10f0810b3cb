"""The law of a batch, by following all paths of the uniform numbers that its kernel takes."""

import itertools
from functools import lru_cache

import cases
import numpy as np
import probe

N = 6
PATHS = 21_000  # of uniform numbers, at most, that are followed


def _cells(scheme, n, n_rows):
    """The state of a scheme for batches of n rows, and the cells of its uniform numbers."""
    case = cases.SUBSAMPLING[scheme]
    subsample = case.scheme.state(n_rows, n, case.chances(n_rows))
    return case, subsample, case.uniforms(subsample)


@lru_cache
def law(scheme, n, n_rows=N):
    """{(rows, coefficients): chance} of a batch of n rows; None where there are too many."""
    case, subsample, cells = _cells(scheme, n, n_rows)
    if not _are_few(cells):
        return None
    found: dict = {}
    for path in itertools.product(*cells):
        values, chances = zip(*path, strict=True)
        batch = probe.scripted_batch(case.scheme, subsample, values)
        found[batch] = found.get(batch, 0.0) + np.prod(chances)
    return found


def _are_few(cells):
    return np.prod([len(c) for c in cells]) <= PATHS


def enumerable():
    """(scheme, n) whose batches are few enough."""
    sizes = range(1, N + 1)
    return [(s, n) for s in cases.SUBSAMPLING for n in sizes if _are_few(_cells(s, n, N)[2])]


def moments(estimates, chances):
    """Mean and covariance of a finite law."""
    mean = chances @ estimates
    return mean, (estimates - mean).T @ (chances[:, None] * (estimates - mean))
