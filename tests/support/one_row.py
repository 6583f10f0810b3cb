"""Linear regression on one row x = 1: the laws of σ and of the coefficient, by sums over a grid."""

import numpy as np
from scipy import stats

SCALE = 0.8  # of the half-normal prior of σ
PRIORS = {"laplace": stats.laplace(scale=0.7), "student_t": stats.t(3.0, scale=0.7)}


def by_sums(prior, y):
    """(places, shares of the mass up to there) of the noise, and of the coefficient."""
    s, b = np.linspace(-9.0, 1.5, 1001), np.linspace(-6.0, 6.0, 12_001)
    log_p = stats.halfnorm(scale=SCALE).logpdf(np.exp(s))[:, None] + PRIORS[prior].logpdf(b)
    p = np.exp(log_p - 0.5 * ((y - b) * np.exp(-s)[:, None]) ** 2)
    p /= p.sum()
    return (np.exp(s), p.sum(axis=1).cumsum()), (b, p.sum(axis=0).cumsum())
