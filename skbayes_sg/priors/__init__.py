"""Prior distributions of the parameters, and their exact gradients: one file for each family.

The gradient of the prior is evaluated in full at every step, separately from that of the
likelihood, and is never rescaled by the size of a batch.

A positive parameter v, such as the standard deviation of noise, is sampled as s = log v, so that
its prior density in s is p(e^s) e^s. All families for positive parameters are log-concave in s.
"""

from ._base import PositivePrior, Prior, Units
from .flat import Flat
from .gamma import Gamma
from .half_normal import HalfNormal
from .half_student_t import HalfCauchy, HalfStudentT
from .horseshoe import Horseshoe
from .inverse_gamma import InverseGamma
from .laplace import Laplace
from .normal import Normal
from .student_t import StudentT

__all__ = ["Flat", "Horseshoe", "Laplace", "Normal", "Prior", "StudentT", "Units"]
__all__ += ["Gamma", "HalfCauchy", "HalfNormal", "HalfStudentT", "InverseGamma", "PositivePrior"]
