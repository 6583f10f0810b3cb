"""Quantiles of predictive mixtures by inverting the distribution functions of all draws."""

import numpy as np
from scipy.optimize import elementwise
from scipy.special import ndtri

from skbayes_sg._base import weights as weighting
from skbayes_sg.models import predictive

__all__ = ["exact_quantiles"]


def exact_quantiles(model, eta, extras, weights, q):
    """The smallest y with P(Y <= y) >= q, to a ten-millionth of a standard deviation.

    For counts the distribution function is interpolated between whole numbers.
    """
    centre = weighting.mean(model.mean(eta, *extras), weights, axis=1)
    spread = predictive.variances(model, eta, extras, weights).sum(axis=0)
    spread = np.sqrt(np.where(np.isfinite(spread), spread, 1.0 + eta.var(axis=1)))

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
