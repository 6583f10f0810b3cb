"""Moments of draws that are not kept: sums over batches, in memory independent of their number.

Every chain is divided into `BATCHES` batches of equal length. The sums of the weights, values and
squares of each batch are enough for means and variances of all draws, R-hat of the halves of all
chains, and Monte Carlo errors by batch means.
"""

import numpy as np

__all__ = ["RunningMoments", "kept_draws"]

BATCHES = 20  # number of batches of each chain
LEAST_MEANS = 8  # fewest means of batches, over all chains, whose spread gives a standard error


def kept_draws(n_draws, keep):
    """Indices of the draws of each chain that are kept: evenly spaced, with the last one."""
    return (np.arange(1, keep + 1) * n_draws) // max(keep, 1) - 1


class RunningMoments:
    """Means and variances of all draws, and estimates of their accuracy.

    Parameters
    ----------
    n_chains, n_draws, n_parameters : int
        The shape of all draws that will be added.

    Attributes
    ----------
    seen : int
        Number of draws of each chain that were added.
    """

    def __init__(self, n_chains, n_draws, n_parameters):
        batches = max(1, min(BATCHES, n_draws))
        self.n_draws, self.seen = n_draws, 0
        self.shift = None  # subtracted from all values, so that sums of squares do not cancel
        self.mass = np.zeros(batches)
        self.sums = np.zeros((2, n_chains, batches, n_parameters))

    def add(self, draws, weights=None):
        """Add the next draws of all chains, (n_chains, n, n_parameters), with weights (n,)."""
        n = draws.shape[1]
        w = np.ones(n) if weights is None else weights
        if self.shift is None:
            self.shift = draws.mean(axis=(0, 1))
        batch = (self.seen + np.arange(n)) * len(self.mass) // self.n_draws
        for b in np.unique(batch):
            mine = batch == b
            off = draws[:, mine] - self.shift
            self.mass[b] += w[mine].sum()
            self.sums[0, :, b] += np.einsum("n,cnd->cd", w[mine], off)
            self.sums[1, :, b] += np.einsum("n,cnd->cd", w[mine], off * off)
        self.seen += n

    @property
    def _reached(self):
        """Which batches have draws; those at the end have none after a run that was ended early."""
        return self.mass > 0.0

    def mean(self):
        """Mean of each parameter."""
        return self.shift + self.sums[0].sum(axis=(0, 1)) / (self.mass.sum() * self.sums.shape[1])

    def std(self):
        """Standard deviation of each parameter."""
        first, second = self.sums.sum(axis=(1, 2)) / (self.mass.sum() * self.sums.shape[1])
        return np.sqrt(np.maximum(second - first**2, 0.0))

    def rhat(self):
        """Split R-hat, from means and variances of the halves of all chains; NaN if unknown.

        After a run that was ended early, the halves are those of the batches that have draws.
        """
        batches, n = np.flatnonzero(self._reached), self.seen / 2.0
        half = len(batches) // 2
        if half < 1 or self.seen < 4:
            return np.full(self.sums.shape[-1], np.nan)
        parts = batches[:half], batches[len(batches) - half :]
        sums = np.concatenate([self.sums[:, :, p].sum(axis=2) for p in parts], axis=1)
        mass = np.repeat([self.mass[p].sum() for p in parts], self.sums.shape[1])[:, None]
        means = sums[0] / mass
        within = np.maximum(sums[1] / mass - means**2, 0.0).mean(axis=0)
        between, least = means.var(axis=0, ddof=1), np.finfo(float).tiny
        ratio = (n - 1.0) / n + between / np.maximum(within, least)
        return np.where(within + between > least, np.sqrt(ratio), 1.0)

    def mcse_mean(self):
        """Monte Carlo standard error of each mean, by batch means; NaN for too few batches."""
        reached = self._reached
        means = self.sums[0][:, reached] / self.mass[reached][:, None]
        means = means.reshape(-1, means.shape[-1])
        if len(means) < LEAST_MEANS:
            return np.full(means.shape[-1], np.nan)
        return means.std(axis=0, ddof=1) / np.sqrt(len(means))

    def ess(self):
        """Effective sample size for each mean: the variance over the squared standard error.

        It is the number of all draws for parameters that do not move.
        """
        error, total = self.mcse_mean(), float(self.seen * self.sums.shape[1])
        moving = error != 0.0
        return np.where(moving, (self.std() / np.where(moving, error, 1.0)) ** 2, total)
