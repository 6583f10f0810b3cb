"""Full gradient: every row, exactly. Langevin dynamics without gradient noise; MALA and HMC."""

from .minibatch import Minibatch

__all__ = ["Full"]


class Full(Minibatch):
    """The exact gradient Σ_i ∇ℓ_i(θ): the minibatch sum over all rows with coefficient 1.

    Examples
    --------
    >>> from skbayes_sg.gradients import Full
    >>> Full()
    Full()
    """
