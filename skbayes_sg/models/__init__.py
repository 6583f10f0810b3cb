"""The likelihoods, or models, of which posteriors are sampled: one file for each."""

from ._base import Model
from .linear import Linear, LinearKnownNoise
from .logistic import Logistic
from .negative_binomial import NegativeBinomial
from .poisson import Poisson
from .robust import Robust
from .softmax import Softmax

__all__ = ["Linear", "LinearKnownNoise", "Logistic", "Model", "NegativeBinomial", "Poisson"]
__all__ += ["Robust", "Softmax"]
