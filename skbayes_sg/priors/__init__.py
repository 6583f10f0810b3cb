"""Prior distributions of the parameters, and their exact gradient: one file a family.

The prior is a piece of its own: its gradient is evaluated in full at every step and is never
rescaled by the size of a batch.

Positive parameters v (the standard deviation of noise) are sampled as s = log v, so their priors
are those of s: p(e^s) e^s. All of them are log-concave in s.
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
