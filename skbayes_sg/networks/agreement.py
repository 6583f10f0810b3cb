"""Whether chains agree about the function: split R-hat of predictions at some rows of the fit.

The weights of a network are not identified: its hidden units can be permuted, and most of what the
weights do is undone by others. Two chains that agree about every prediction have weights with
nothing in common, and R-hat, effective sample sizes and means of weights tell nothing. What chains
should agree about is the predictions, which have

    R-hat = √((W + B)/W),  W the mean variance of half-chains, B the variance of their means.

R-hat is blind to the noise of gradients: that heats all chains alike, and hot chains mix well. See
`noise_inflation_` and `kinetic_temperature_` beside it.
"""

import numpy as np

from ..diagnostics import convergence

__all__ = ["LIMIT", "N_PROBES", "SHARE", "function_rhat"]

LIMIT = 1.1
SHARE = 0.9  # of the predictions examined
N_PROBES = 200
LEAST_DRAWS = 4  # of a chain


def function_rhat(predictions):
    """Median of R-hat over predictions (n_chains, n_draws, n), and the value that 90 % reach.

    NaN for fewer than four draws of a chain.
    """
    if predictions.shape[1] < LEAST_DRAWS:
        return np.nan, np.nan
    found = convergence.split_rhat(predictions)
    found = found[np.isfinite(found)]
    return tuple(np.quantile(found, [0.5, SHARE])) if len(found) else (np.nan, np.nan)
