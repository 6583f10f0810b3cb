"""Whether importance weights can be trusted, and resampling to draws that need no weights.

Pareto k is the shape of the tail of the weights: below 0.7 their averages converge (Vehtari,
Simpson, Gelman, Yao and Gabry 2024). Both k and the smoothed weights are those of ArviZ.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..diagnostics import convergence
from ..diagnostics.verdict import PARETO_K

__all__ = ["Certificate", "certified", "resampled"]

LARGEST_K = PARETO_K  # below it averages of weighted draws converge
LIGHT = 0.35  # Pareto k up to which the tails are no heavier than those of Gaussian proposals
# k is noisy: if at most the share UNEVEN of the draws is effective, SUSPECT_K replaces LIGHT.
SUSPECT_K, UNEVEN = 0.2, 0.6
EVEN = 0.93  # with a larger share of effective draws, a tail holds too little mass to matter
LARGE = 3.0  # weights up to so many times their mean make no tail that matters
EQUAL = 1e-9  # log weights that are all closer together than this count as equal


@dataclass(frozen=True)
class Certificate:
    """Pareto k, effective sample size and smoothed values of a set of importance weights."""

    pareto_k: float
    ess: float
    weights: np.ndarray  # smoothed weights, with mean 1

    @property
    def has_heavy_tail(self):
        """Whether there may be tails of the posterior in which there are no draws."""
        share = self.ess / len(self.weights)
        most = SUSPECT_K if share <= UNEVEN else LIGHT
        return self.pareto_k > most and share <= EVEN

    def regardless_of_small_weights(self, share=EVEN):
        """The same with a k of at most `LIGHT` if no weight is `LARGE`, and most are even.

        k describes the shape of a tail, whatever its size. More than `share` of the draws must be
        effective.
        """
        is_small = self.weights.max() <= LARGE and self.ess > share * len(self.weights)
        return replace(self, pareto_k=float(np.fmin(self.pareto_k, LIGHT))) if is_small else self


def certified(log_weights):
    """The `Certificate` of log weights, which may be known up to a constant only."""
    lw = np.where(np.isnan(log_weights), -np.inf, log_weights)
    n = len(lw)
    if not np.isfinite(lw.max()):
        return Certificate(np.inf, 0.0, np.ones(n))
    lw = lw - lw.max()
    if np.ptp(lw) < EQUAL or n < 25:
        weights, k = np.exp(lw), -np.inf if np.ptp(lw) < EQUAL else np.nan
    else:
        smooth, k = convergence.pareto_smoothed(lw)
        weights = np.exp(smooth)
    weights = weights / weights.mean()
    return Certificate(float(k), float(n / np.square(weights).mean()), weights)


def resampled(rng, weights, n_draws=None):
    """Resample systematically: return increasing indices of draws that then need no weights.

    With v the weights scaled to the sum `n_draws` (by default as many as there are), draw i comes
    ⌊v_i⌋ or ⌈v_i⌉ times, v_i on average; where all weights are the same, once.
    """
    n = len(weights) if n_draws is None else n_draws
    cumulated = np.cumsum(weights)
    places = (np.arange(n) + rng.random()) * (cumulated[-1] / n)
    return np.minimum(np.searchsorted(cumulated, places, side="right"), len(weights) - 1)
