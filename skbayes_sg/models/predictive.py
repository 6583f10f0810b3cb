"""Predictive distributions of a number: mixtures of the distributions of y under all draws.

With η of shape (n_rows, n_draws), the positive parameters of the model as arrays (n_draws,), and
weights of the draws, ``p(y | x) = Σ_s w_s p(y | η_s, σ_s)``. The distributions under single draws
are those of `skbayes_sg.models`. All functions work on a block of rows; the caller keeps it small.
"""

import numpy as np
from scipy.optimize import elementwise
from scipy.special import ndtri

from .._base import weights as weighting

__all__ = ["log_density", "quantiles", "variances"]


def variances(model, eta, extras, weights):
    """Epistemic and aleatoric variances of y, from the parameters and from noise: (2, n_rows).

    Var(y) = Var(E(y | draw)) + E(Var(y | draw)).
    """
    mean = model.mean(eta, *extras)
    epistemic = np.square(weighting.std(mean, weights, axis=1))
    aleatoric = np.broadcast_to(model.variance(eta, *extras), eta.shape)
    return np.stack([epistemic, weighting.mean(aleatoric, weights, axis=1)])


def log_density(model, y, eta, extras, weights):
    """log p(y | x) of each row."""
    return weighting.log_mean_exp(model.log_density(y[:, None], eta, *extras), weights, axis=1)


def quantiles(model, eta, extras, weights, q):
    """The smallest y with P(Y <= y) >= q, for each row and each q: (n_rows, n_q).

    The distribution function of the mixture is inverted numerically in each row, to a ten-millionth
    of its standard deviation. For discrete models it is interpolated between whole numbers.
    """
    centre = weighting.mean(model.mean(eta, *extras), weights, axis=1)
    spread = np.sqrt(_finite(variances(model, eta, extras, weights).sum(axis=0), eta))

    def above(z, row, wanted):
        own = row.astype(int)
        y = centre[own] + spread[own] * z
        below = model.cdf(y[:, None], eta[own], *extras)
        return weighting.mean(below, weights, axis=1) - wanted

    row, wanted = np.repeat(np.arange(len(eta)), len(q)), np.tile(q, len(eta))
    guess, args = ndtri(wanted), (row.astype(float), wanted)
    lowest = -np.inf
    if model.discrete:  # P(Y <= -1) = 0
        lowest = ((-1.0 - centre) / spread)[row]
        guess = np.maximum(guess, lowest + 0.1)
    bracket = elementwise.bracket_root(
        above, np.maximum(guess - 0.1, lowest), guess + 0.1, xmin=lowest, args=args
    )
    tolerances = {"xatol": 1e-7, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0}
    found = elementwise.find_root(above, bracket.bracket, args=args, tolerances=tolerances).x
    found = (centre[row] + spread[row] * found).reshape(len(eta), len(q))
    return np.ceil(found - 1e-6) + 0.0 if model.discrete else found


def _finite(variance, eta):
    """The variances, with a finite variance of the predictors for those that are infinite."""
    return np.where(np.isfinite(variance), variance, 1.0 + eta.var(axis=1))
