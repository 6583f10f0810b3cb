"""Extra parameters such as σ, which are positive; chains sample their logarithms."""

import numpy as np

__all__ = ["positive_extras", "scores_of_positive"]


def positive_extras(draws, n_extra):
    """Return the draws with the last `n_extra` parameters, which are logarithms, exponentiated."""
    if n_extra == 0:
        return draws
    return np.concatenate([draws[..., :-n_extra], np.exp(draws[..., -n_extra:])], axis=-1)


def scores_of_positive(draws, scores, n_extra):
    """Return scores with respect to σ, from those with respect to log σ, for the extras.

    A score s of log σ becomes (s - 1)/σ, because p(σ) = p(log σ)/σ; `draws` are draws of log σ.
    """
    if n_extra == 0 or scores is None:
        return scores
    extras = (scores[..., -n_extra:] - 1.0) / np.exp(draws[..., -n_extra:])
    return np.concatenate([scores[..., :-n_extra], extras.astype(scores.dtype)], axis=-1)
