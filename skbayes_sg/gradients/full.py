"""The full gradient, which MALA, HMC and Langevin dynamics without gradient noise use."""

from .minibatch import Minibatch

__all__ = ["Full"]


class Full(Minibatch):
    """The exact gradient Σ_i ∇ℓ_i(θ): the minibatch sum over all rows with coefficient 1.

    It has no noise, and a step costs a pass over the data. With a stochastic-gradient sampler the
    bias of the step size remains, which the Metropolis test of `skbayes_sg.dynamics.HMC` removes.

    Examples
    --------
    >>> from skbayes_sg.gradients import Full
    >>> Full()
    Full()
    """
