"""Means and standard deviations of effects over all draws, of which only some are kept."""

from dataclasses import dataclass

import numpy as np

__all__ = ["EffectMoments"]


@dataclass
class EffectMoments:
    """Means of n draws, and sums of their squared deviations from these.

    Parts are added by the formula of Chan, Golub and LeVeque (1983), in which nothing cancels where
    effects are far from zero for their spread, as in Σ u² - (Σ u)²/n.
    """

    n: int
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def none(cls, n_effects):
        """The moments of no draws."""
        return cls(0, np.zeros(n_effects), np.zeros(n_effects))

    @classmethod
    def of(cls, u):
        """The moments of draws u (n, n_effects)."""
        mean = u.mean(axis=0)
        return cls(len(u), mean, np.square(u - mean).sum(axis=0))

    def __add__(self, other):
        n, off = self.n + other.n, other.mean - self.mean
        mean = self.mean + off * (other.n / n)
        squares = self.squares + other.squares + np.square(off) * (self.n * other.n / n)
        return EffectMoments(n, mean, squares)

    @staticmethod
    def mean_and_sd(chains):
        """Means and standard deviations (2, n_effects) of the draws of all chains together."""
        first, *others = chains
        total = sum(others, first)
        return np.stack([total.mean, np.sqrt(total.squares / total.n)])
