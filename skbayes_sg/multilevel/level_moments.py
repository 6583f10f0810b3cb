"""Running moments of a level: number, mean, variance and kurtosis of its samples."""

import numpy as np

__all__ = ["Level"]


class Level:
    """Samples of Δ_l, flattened, as sums of powers about the mean of the first block.

    Parameters
    ----------
    cost : int
        Number of rows that a sample reads.
    """

    def __init__(self, cost):
        self.cost, self.n, self.n_blocks = cost, 0, 0
        self._origin = self._sums = None

    def add(self, samples):
        """Add a block of samples, (n, n_components)."""
        if self._origin is None:
            self._origin = samples.mean(axis=0)
            self._sums = np.zeros((4, samples.shape[1]))
        shifted = samples - self._origin
        for power, total in enumerate(self._sums, start=1):
            total += (shifted**power).sum(axis=0)
        self.n += len(samples)
        self.n_blocks += 1

    @property
    def mean(self):
        """Mean of each component."""
        return self._origin + self._sums[0] / self.n

    @property
    def variance(self):
        """Variance of each component."""
        first, second = self._sums[:2] / self.n
        return np.maximum(second - first**2, 0.0) * self.n / (self.n - 1)

    @property
    def kurtosis(self):
        """Fourth central moment over the square of the second; 1 if there is no variance."""
        a, b, c, d = self._sums / self.n
        fourth = d - 4.0 * a * c + 6.0 * a**2 * b - 3.0 * a**4
        second = np.maximum(b - a**2, 0.0)
        varies = second > 0.0
        return np.maximum(np.where(varies, fourth / np.where(varies, second, 1.0) ** 2, 1.0), 1.0)
