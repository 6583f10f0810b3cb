"""Whether importance weights can be trusted, and draws that need none.

Pareto k is the shape of the tail of the weights: below 0.7 their averages converge (Vehtari,
Simpson, Gelman, Yao and Gabry 2024). It is ArviZ's, and so are the smoothed weights.
"""

from dataclasses import dataclass

import numpy as np

from ..diagnostics import convergence

__all__ = ["Certificate", "certified", "resampled"]

LARGEST_K = 0.7
LIGHT = 0.35  # Pareto k up to which the tails are no heavier than those of Gaussian proposals
SUSPECT_K, UNEVEN = 0.2, 0.6  # k is noisy: with so few effective draws more of it is suspect
EVEN = 0.93  # share of effective draws from which a tail holds too little to matter
LEAST_SHARE = 0.5  # effective draws, as a share of all
EQUAL = 1e-9  # log weights that are closer together are all the same


@dataclass(frozen=True)
class Certificate:
    """What is known of a set of weights."""

    pareto_k: float
    ess: float
    weights: np.ndarray  # smoothed, with mean 1

    @property
    def holds(self):
        """Whether averages over the draws can be believed."""
        return self.pareto_k < LARGEST_K and self.ess > LEAST_SHARE * len(self.weights)

    @property
    def has_heavy_tail(self):
        """Whether there may be tails of the posterior in which there are no draws."""
        share = self.ess / len(self.weights)
        most = SUSPECT_K if share <= UNEVEN else LIGHT
        return self.pareto_k > most and share <= EVEN


def certified(log_weights):
    """The `Certificate` of log weights, known up to a constant."""
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
    """Numbers of draws that need no weights, in order: systematic resampling.

    With v the weights scaled to the sum `n_draws` (by default as many as there are), draw i comes
    ⌊v_i⌋ or ⌈v_i⌉ times, v_i on average; where all weights are the same, once.
    """
    n = len(weights) if n_draws is None else n_draws
    cumulated = np.cumsum(weights)
    places = (np.arange(n) + rng.random()) * (cumulated[-1] / n)
    return np.minimum(np.searchsorted(cumulated, places, side="right"), len(weights) - 1)
