"""Factorisation of a table of ratings: the chains behind `BayesianPMF`.

The state is one matrix F whose rows are the factors and biases of all categories of all columns
(`problem`). Its prior is learnt (`hyperpriors`), and so is the precision of the noise (`noise`).
One file for each way to move it:

`gibbs`
    Exact: every row given all others. The reference for the rest.

`chains` is the loop, `draws` what is kept of it, `predictive` what follows for ratings.
"""

from .gibbs import Gibbs
from .hyperpriors import HYPERPRIORS, FixedNormal, Hyperprior, NormalGamma, NormalWishart
from .sampler import Sampler

__all__ = [
    "HYPERPRIORS", "SAMPLERS", "FixedNormal", "Gibbs", "Hyperprior", "NormalGamma",
    "NormalWishart", "Sampler",
]  # fmt: skip

SAMPLERS = {"gibbs": Gibbs}
