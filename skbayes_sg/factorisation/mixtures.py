"""Predictive distributions of ratings: mixtures of normal laws with one part for each draw.

A part has the expected rating under its draw, and the variance of the noise, to which categories
that were not in the data add the variance of their prior. Running moments give a single part.
"""

import numpy as np
import sklearn
from scipy.special import logsumexp

from .._base.categories import keys
from ..kernels.normal_mixtures import mixture_quantiles
from .prediction_kernels import predictive

__all__ = ["in_blocks", "log_density", "mean_and_std", "parts_of_draws", "parts_of_moments"]
__all__ += ["quantiles_of", "samples_of", "uncertainty"]


def parts_of_draws(draws):
    """Return a function ``parts(codes)`` that computes the parts of the mixtures from draws.

    It returns their means and variances, (draws, rows), in standardised units. The means are
    shifted so that their average is that of the conditional means of `predictive`, which has less
    Monte Carlo error.
    """

    def parts(codes):
        f, g, spread, noise = predictive(draws, codes)
        return f + (g.mean(axis=0) - f.mean(axis=0)), spread + noise

    return parts


def parts_of_moments(moments, offsets):
    """Return a function ``parts(codes)`` that looks up known rows among running moments.

    It returns their means and variances, (1, rows), in standardised units.
    """

    def parts(codes):
        key = keys(codes, offsets)
        place = np.minimum(np.searchsorted(moments["keys"], key), len(moments["keys"]) - 1)
        unknown = np.flatnonzero(moments["keys"][place] != key)
        if len(unknown):
            raise ValueError(
                "With keep='predictive', only the rows given to fit can be predicted; "
                f"{len(unknown)} of the rows are others. Give them to fit as probes, or use "
                "keep='all'."
            )
        return moments["mean"][place][None], moments["variance"][place][None]

    return parts


def in_blocks(reduce, codes, n_parts):
    """Apply `reduce` to blocks of rows of `codes`, and join the results along the last axis.

    The blocks are so small that mixtures of `n_parts` parts for their rows fit into memory.
    """
    limit = sklearn.get_config()["working_memory"] * 2**20
    step = max(1, int(limit / (128 * n_parts)))
    blocks = (codes[k : k + step] for k in range(0, len(codes), step))
    return np.concatenate([reduce(block) for block in blocks], axis=-1)


def mean_and_std(means, variances):
    """Mean and standard deviation of each mixture, (2, rows)."""
    mean = means.mean(axis=0)
    spread = ((means - mean) ** 2).mean(axis=0)
    return np.array([mean, np.sqrt(spread + variances.mean(axis=0))])


def uncertainty(draws, codes):
    """Standard deviations of the expected rating and of the noise, (2, rows)."""
    f, _, spread, noise = predictive(draws, codes)
    return np.sqrt([f.var(axis=0) + spread.mean(axis=0), noise.mean(axis=0)])


def log_density(y, means, variances):
    """Log density of y under each mixture, (rows,)."""
    log_p = -0.5 * ((y - means) ** 2 / variances + np.log(2.0 * np.pi * variances))
    return logsumexp(log_p, axis=0) - np.log(len(log_p))


def quantiles_of(quantiles, means, variances):
    """Quantiles of each mixture, (n_quantiles, rows)."""
    return np.array([mixture_quantiles(means, np.sqrt(variances), q) for q in quantiles])


def samples_of(which, rng, means, variances):
    """One draw from each of the parts `which` of all mixtures, (len(which), rows)."""
    noise = rng.standard_normal((len(which), means.shape[1]))
    return means[which] + np.sqrt(variances[which]) * noise
