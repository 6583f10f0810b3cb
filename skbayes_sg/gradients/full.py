"""Full gradient: every row, exactly. Langevin dynamics without gradient noise; MALA and HMC."""

from .minibatch import Minibatch

__all__ = ["Full"]


class Full(Minibatch):
    """The exact gradient Σ_i ∇ℓ_i(θ): the minibatch sum over all rows with coefficient 1.

    No gradient noise; a step costs a pass over the data. With a stochastic-gradient sampler the
    bias of its step size remains; `skbayes_sg.dynamics.HMC` uses the same gradient and has none.

    Examples
    --------
    >>> from skbayes_sg.gradients import Full
    >>> Full()
    Full()
    """
