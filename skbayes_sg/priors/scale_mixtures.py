"""Laws that are mixtures of normal ones: the precision of each coefficient, given where it is.

With z = (θ - loc) / scale, each of these laws is z ~ N(0, v) with a law of v of its own
(Andrews and Mallows 1974, Scale mixtures of normal distributions, JRSS B 36, 99-102), and given z

    normal:       1/v = 1
    flat:         1/v = 0
    Laplace:      1/v ~ inverse Gaussian with mean 1/|z| and shape 1
    Student's t:  1/v ~ gamma with shape (ν + 1)/2 and rate (ν + z²)/2
"""

import numpy as np

from .columns import POWER, SHAPE
from .families import of_family
from .flat import Flat
from .laplace import Laplace
from .normal import Normal
from .student_t import StudentT

__all__ = ["are_mixtures", "drawn_precisions"]

LEAST = 1e-8  # where |z| is smaller, 1/v is drawn as for this value


def are_mixtures(prior):
    """Whether each row of a prior table is one of these laws."""
    whole = of_family(prior, Normal, Flat) | (prior[:, POWER] == 1.0)
    return whole & of_family(prior, Normal, Flat, Laplace, StudentT)


def drawn_precisions(prior, z, rng):
    """Draw 1/v for coefficients at z, (..., D); `prior` has a row of a prior table for each."""
    size, precision = np.maximum(np.abs(z), LEAST), np.ones(np.shape(z))
    flat, laplace, t = (of_family(prior, family) for family in (Flat, Laplace, StudentT))
    precision[..., flat] = 0.0
    precision[..., laplace] = rng.wald(1.0 / size[..., laplace], 1.0)
    nu = prior[t, SHAPE]
    precision[..., t] = rng.gamma(0.5 * (nu + 1.0), 2.0 / (nu + size[..., t] ** 2))
    return precision
