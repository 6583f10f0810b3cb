"""Predictive distributions of a number: mixtures of the distributions of y under all draws.

With η of shape (n_rows, n_draws), the positive parameters of the model as arrays (n_draws,), and
weights of the draws, ``p(y | x) = Σ_s w_s p(y | η_s, σ_s)``. The distributions under single draws
are those of `skbayes_sg.models`; for quantiles see `skbayes_sg.models.mixture_quantiles`. All
functions work on a block of rows; the caller keeps it small.
"""

import numpy as np

from .._base import weights as weighting

__all__ = ["variances"]


def variances(model, eta, extras, weights):
    """Epistemic and aleatoric variances of y, from the parameters and from noise: (2, n_rows).

    Var(y) = Var(E(y | draw)) + E(Var(y | draw)).
    """
    mean = model.mean(eta, *extras)
    with np.errstate(invalid="ignore", over="ignore"):  # means of e^η may be of any size
        epistemic = np.square(weighting.std(mean, weights, axis=1))
    epistemic = np.where(np.isinf(mean).any(axis=1), np.inf, epistemic)  # instead of inf - inf
    aleatoric = np.broadcast_to(model.variance(eta, *extras), eta.shape)
    return np.stack([epistemic, weighting.mean(aleatoric, weights, axis=1)])
