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

__all__ = ["ScaleMixtures", "are_mixtures", "t_precisions"]

LEAST = 1e-8  # where |z| is smaller, 1/v is drawn as for this value


def are_mixtures(prior):
    """Whether each row of a prior table is one of these laws."""
    whole = of_family(prior, Normal, Flat) | (prior[:, POWER] == 1.0)
    return whole & of_family(prior, Normal, Flat, Laplace, StudentT)


def t_precisions(squares, nu, rng, weight=1.0):
    """Draw 1/v for Student's t variables with squares z²; `weight` is the power of their law."""
    return rng.gamma(0.5 * (nu + 1.0) * weight, 2.0 / (nu + squares))


class ScaleMixtures:
    """The laws of some coefficients, from which the precision of each is drawn.

    Parameters
    ----------
    prior : ndarray of shape (D, 5)
        Rows of a prior table for which `are_mixtures` is true.
    """

    def __init__(self, prior):
        self.known = np.where(of_family(prior, Flat), 0.0, 1.0)
        self.laplace, self.t = (np.flatnonzero(of_family(prior, of)) for of in (Laplace, StudentT))
        self.nu = prior[self.t, SHAPE]

    def precisions(self, z, rng):
        """Draw 1/v for coefficients at z, (..., D)."""
        precision = np.empty(z.shape)
        precision[:] = self.known
        if self.laplace.size:
            size = np.maximum(np.abs(z[..., self.laplace]), LEAST)
            precision[..., self.laplace] = rng.wald(1.0 / size, 1.0)
        if self.t.size:
            precision[..., self.t] = t_precisions(np.square(z[..., self.t]), self.nu, rng)
        return precision
