"""The law of a batch, by following all paths of the uniform numbers that its kernel takes."""

import itertools
from functools import lru_cache

import cases
import numpy as np
import probe

N = 6
PATHS = 21_000  # of uniform numbers, at most, that are followed


@lru_cache
def law(scheme, n, n_rows=N):
    """{(rows, coefficients): chance} of a batch of n rows; None where there are too many."""
    case = cases.SUBSAMPLING[scheme]
    subsample = case.scheme.state(n_rows, n, case.chances(n_rows))
    cells = case.uniforms(subsample)
    if np.prod([len(c) for c in cells]) > PATHS:
        return None
    found: dict = {}
    for path in itertools.product(*cells):
        values, chances = zip(*path, strict=True)
        batch = probe.scripted_batch(case.scheme, subsample, values)
        found[batch] = found.get(batch, 0.0) + np.prod(chances)
    return found


def enumerable():
    """(scheme, n) whose batches are few enough."""
    return [(s, n) for s in cases.SUBSAMPLING for n in range(1, N + 1) if law(s, n)]


def moments(estimates, chances):
    """Mean and covariance of a finite law."""
    mean = chances @ estimates
    return mean, (estimates - mean).T @ (chances[:, None] * (estimates - mean))
