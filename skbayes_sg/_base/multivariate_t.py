"""The multivariate Student's t distribution t_ν(m, R Rᵀ) with ν = `DF`, of which proposals draw."""

import numpy as np
from scipy.special import gammaln

__all__ = ["DF", "log_density", "standard_draws"]

DF = 5.0  # ν, the degrees of freedom


def standard_draws(rng, n, D):
    """Draw n rows z of t_ν(0, I) in D dimensions; m + R z is then a draw of t_ν(m, R Rᵀ)."""
    normals = rng.standard_normal((n, D))
    return normals / np.sqrt(rng.chisquare(DF, (n, 1)) / DF)


def log_density(square, D, log_det):
    """The log density of t_ν(m, R Rᵀ) at x, from |R⁻¹ (x - m)|² and log |det R|.

    log p = log Γ((ν + D)/2) - log Γ(ν/2) - (D/2) log(π ν) - log |det R|
            - ((ν + D)/2) log(1 + |R⁻¹ (x - m)|²/ν)
    """
    constant = gammaln(0.5 * (DF + D)) - gammaln(0.5 * DF) - 0.5 * D * np.log(np.pi * DF)
    return constant - log_det - 0.5 * (DF + D) * np.log1p(square / DF)
