"""Whether chains agree about the function: split R-hat of predictions at some rows of the fit.

The weights of a network are not identified: its hidden units can be permuted, and most of what the
weights do is undone by others. Two chains that agree about every prediction can have weights with
nothing in common, so that R-hat, effective sample sizes and means of weights tell nothing. What
chains should agree about is the predictions, for which

    R-hat = √((W + B)/W),  W the mean variance of half-chains, B the variance of their means.

R-hat is blind to the noise of gradients: that heats all chains alike, and hot chains mix well. The
fitted attributes `noise_inflation_` and `kinetic_temperature_` measure it.
"""

import numpy as np

from ..diagnostics import convergence

__all__ = ["LIMIT", "N_PROBES", "SHARE", "function_rhat"]

LIMIT = 1.1  # R-hat up to which chains agree about a prediction
SHARE = 0.9  # share of the examined predictions that must have at most this R-hat
N_PROBES = 200  # rows of the fit at which predictions are examined, at most
LEAST_DRAWS = 4  # draws of a chain below which split R-hat is not computed


def function_rhat(predictions):
    """Return the median and the 0.9 quantile of split R-hat over n predictions.

    `predictions` has the shape (n_chains, n_draws, n). Both are NaN for fewer than four draws of a
    chain.
    """
    if predictions.shape[1] < LEAST_DRAWS:
        return np.nan, np.nan
    found = convergence.split_rhat(predictions)
    found = found[np.isfinite(found)]
    return tuple(np.quantile(found, [0.5, SHARE])) if len(found) else (np.nan, np.nan)
