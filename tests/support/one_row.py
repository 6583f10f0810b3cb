"""Regression on one row x = 1: the laws of σ and of the coefficient, by sums over a grid."""

import numpy as np
from scipy import stats

SCALE = 0.8  # of the half-normal prior of σ
PRIORS = {
    "laplace": stats.laplace(scale=0.7),
    "student_t": stats.t(3.0, scale=0.7),
    "normal": stats.norm(scale=0.7),
}


def by_sums(prior, y, is_robust=False):
    """(places, shares of the mass up to there) of the noise, and of the coefficient."""
    n_places = 1501 if is_robust else 12_001
    s, b = np.linspace(-9.0, 1.5, 401), np.linspace(-6.0, 6.0, n_places)
    z = (y - b) * np.exp(-s)[:, None]
    log_p = stats.halfnorm(scale=SCALE).logpdf(np.exp(s))[:, None] + PRIORS[prior].logpdf(b)
    p = np.exp(log_p) * (_student_t(z) if is_robust else np.exp(-0.5 * z**2))
    p /= p.sum()
    return (np.exp(s), p.sum(axis=1).cumsum()), (b, p.sum(axis=0).cumsum())


def _student_t(z):
    """Densities under Student's t, on average over ν ~ Gamma(2, rate 0.1)."""
    log_nu = np.linspace(-5.0, 6.0, 45)
    weight = stats.gamma(2.0, scale=10.0).pdf(np.exp(log_nu)) * np.exp(log_nu)
    return sum(w * stats.t(np.exp(u)).pdf(z) for w, u in zip(weight, log_nu, strict=True))
