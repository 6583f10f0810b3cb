"""Extra parameters such as σ, which are positive; chains sample their logarithms."""

import numpy as np

__all__ = ["positive_extras", "scores_of_positive"]


def positive_extras(draws, n_extra):
    """Draws in which the last parameters, logarithms, are replaced by their exponentials."""
    if n_extra == 0:
        return draws
    return np.concatenate([draws[..., :-n_extra], np.exp(draws[..., -n_extra:])], axis=-1)


def scores_of_positive(draws, scores, n_extra):
    """Scores of σ from scores s of log σ: (s - 1)/σ, because p(σ) = p(log σ)/σ."""
    if n_extra == 0 or scores is None:
        return scores
    extras = (scores[..., -n_extra:] - 1.0) / np.exp(draws[..., -n_extra:])
    return np.concatenate([scores[..., :-n_extra], extras.astype(scores.dtype)], axis=-1)
