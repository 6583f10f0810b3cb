"""Factorisation of a table of ratings: the chains behind `BayesianPMF`.

The state is one matrix F whose rows are the factors and biases of all categories of all columns
(`problem`). The chains learn its prior (`hyperpriors`) and the precision of the noise (`noise`).
Each way to move the state has one file:

`gibbs`
    Exact draws of every row given all others; the reference for the rest.
`sparse`
    Stochastic gradients that touch the rows of a few ratings; the prior is applied by `lazy`.
`user_block`
    Stochastic gradients of items, with exact draws of users.
`start`
    A start for chains of all kinds: Gibbs sampling on a share of the users.
`step_check`
    What steps have done to the draws, as Gibbs sweeps show that begin at some of them.

`ratings` reads the data, `request` the parameters, and `setup` makes chains from both. `chains` has
the loop, `settled` says how long it runs, `draws` has the draws that it keeps, and `results` the
fitted attributes. `prediction_kernels` has the kernels of predictions, `mixtures` the predictive
distributions, and `recommend` scores of items.
"""

from .gibbs import Gibbs
from .hyperpriors import HYPERPRIORS, FixedNormal, Hyperprior, NormalGamma, NormalWishart
from .sampler import Sampler
from .sparse import SparseSGHMC, SparseSGLD
from .user_block import UserBlockSGLD

__all__ = ["HYPERPRIORS", "SAMPLERS", "FixedNormal", "Gibbs", "Hyperprior", "NormalGamma"]
__all__ += ["NormalWishart", "Sampler", "SparseSGHMC", "SparseSGLD", "UserBlockSGLD"]

SAMPLERS = {"gibbs": Gibbs, "sgld": SparseSGLD, "sghmc": SparseSGHMC, "user_block": UserBlockSGLD}
