"""Paths of a sampler driven by injected randomness: the batches and the normals of every step."""

import numpy as np

STEPS = 30


def path(kernels, batches, noises, h, start=None):
    """θ after each step of given batches (rows, coefficients) and normals."""
    start = np.zeros(kernels.dimension) if start is None else start
    state, memory, found = kernels.start(start), kernels.memory_at(start), []
    for (rows, coefficients), noise in zip(batches, noises, strict=True):
        state = kernels.step(state, rows, coefficients, noise, h, memory=memory)
        found.append(kernels.frame.theta(state[0]))
    return np.array(found)


def full_batches(n_rows=6, seed=0):
    """All rows in random order, coefficient 1."""
    rng = np.random.default_rng(seed)
    return [(rng.permutation(n_rows), np.ones(n_rows)) for _ in range(STEPS)]


def some_batches(n_rows=6, n=2, seed=0):
    """n rows drawn with replacement."""
    rng = np.random.default_rng(seed)
    return [(rng.integers(0, n_rows, n), np.full(n, n_rows / n)) for _ in range(STEPS)]


def normals(D, seed=1):
    """One vector a step."""
    return np.random.default_rng(seed).normal(size=(STEPS, D))
