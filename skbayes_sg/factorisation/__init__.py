"""Factorisation of a table of ratings: the chains behind `BayesianPMF`.

The state is one matrix F whose rows are the factors and biases of all categories of all columns
(`problem`). Its prior is learnt (`hyperpriors`), and so is the precision of the noise (`noise`).
One file for each way to move it:

`gibbs`
    Exact: every row given all others. The reference for the rest.
`sparse`
    Stochastic gradients that touch the rows of a few ratings; prior and noise are `lazy`.
`user_block`
    Stochastic gradients of items with users drawn exactly.
`start`
    Where chains of all kinds may begin: Gibbs sampling on a share of the users.

`ratings` reads the data, `request` the parameters, and `setup` makes chains of both. `chains` is
the loop, `draws` what is kept of it, and `results` what a fit leaves behind. `predictive` has the
kernels of predictions, `mixtures` what is predicted, and `recommend` what follows for items.
"""

from .gibbs import Gibbs
from .hyperpriors import HYPERPRIORS, FixedNormal, Hyperprior, NormalGamma, NormalWishart
from .sampler import Sampler
from .sparse import SparseSGHMC, SparseSGLD
from .user_block import UserBlockSGLD

__all__ = ["HYPERPRIORS", "SAMPLERS", "FixedNormal", "Gibbs", "Hyperprior", "NormalGamma"]
__all__ += ["NormalWishart", "Sampler", "SparseSGHMC", "SparseSGLD", "UserBlockSGLD"]

SAMPLERS = {"gibbs": Gibbs, "sgld": SparseSGLD, "sghmc": SparseSGHMC, "user_block": UserBlockSGLD}
