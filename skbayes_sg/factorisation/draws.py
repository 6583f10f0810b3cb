"""The results that chains keep: draws, or running moments of the predictions of known ratings."""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from .prediction_kernels import predictive

__all__ = ["FactorDraws", "Moments", "entries_of_a_draw", "snapshot"]


class FactorDraws(NamedTuple):
    """Kept states. The first axes of each array are chains and draws, or one axis for both.

    They are float32, which takes half of the memory and changes a prediction by a relative 6e-8.
    """

    F: np.ndarray  # (..., n_rows, D): rows [p, b]
    means: np.ndarray  # (..., rows of column 0, D): their conditional means; empty if unknown
    w: np.ndarray  # (..., n_rows): weights in the precision of the noise
    alpha: np.ndarray  # (...,): precision of the noise
    shapes: np.ndarray  # (..., C): ν of the law of w
    mu: np.ndarray  # (..., C, D): means of new rows
    sigma: np.ndarray  # (..., C, D, D): covariances of new rows

    @classmethod
    def empty(cls, problem, lead, with_means):
        """Uninitialised draws with the first axes `lead`."""
        n, D, C = problem.n_rows, problem.width, problem.n_columns
        n_means = int(problem.offsets[1]) if with_means else 0
        shapes = [(n, D), (n_means, D), (n,), (), (C,), (C, D), (C, D, D)]
        return cls(*(np.empty((*lead, *shape), np.float32) for shape in shapes))

    def at(self, *index):
        """The draws at an index of the first axes, as views."""
        return FactorDraws(*(array[index] for array in self))

    def forget(self):
        """Do nothing: new draws will be written over these."""

    def write(self, index, state):
        """Set the draw at an index of the first axes to `state`."""
        for array, value in zip(self, state, strict=True):
            if array.size:  # conditional means have no rows where they are not kept
                array[index] = value

    def pooled(self):
        """The draws with one first axis: all chains one after the other."""
        n = self.alpha.size
        return FactorDraws(*(a.reshape(n, *a.shape[2:]) for a in self))


def entries_of_a_draw(problem, with_means):
    """Number of entries that all arrays of `FactorDraws` together have for one draw."""
    rows = problem.n_rows * (problem.width + 1)
    rows += int(problem.offsets[1]) * problem.width if with_means else 0
    return rows + 1 + problem.n_columns * (1 + problem.width * (problem.width + 1))


def snapshot(chain, with_means):
    """The state of a chain as one draw, with conditional means if the sampler renews them."""
    means = chain.means if with_means else chain.means[:0]
    noise, hyper = chain.noise, chain.hyper
    mu = np.stack([mean for mean, _ in hyper])
    sigma = np.stack([linalg.inv(precision) for _, precision in hyper])
    values = chain.F, means, noise.w, noise.alpha, noise.shapes, mu, sigma
    return FactorDraws(*(np.asarray(value, np.float32) for value in values))


class Moments:
    """Running moments of the predictions of known ratings, in standardised units.

    Attributes
    ----------
    count : int
        Number of draws so far.
    sums : ndarray of shape (4, n)
        Sums over the draws of f with conditional means in column 0; of f; of f²; and of the
        variance that new rows and the noise add.
    """

    def __init__(self, codes):
        self.codes = codes
        self.forget()

    def forget(self):
        """Begin anew, without any draw."""
        self.count, self.sums = 0, np.zeros((4, len(self.codes)))

    def write(self, index, state):
        """Add the draw `state` to the sums, whatever its index."""
        del index
        f, g, spread, noise = predictive(state.at(None), self.codes)
        self.sums += np.stack([g[0], f[0], f[0] ** 2, spread[0] + noise[0]])
        self.count += 1
