"""Step sizes as functions of the number of the step.

A step size h is that of ``θ' = θ - (h/2) P ∇U(θ) + √h P^(1/2) ξ``, for every sampler: kinetic and
Hamiltonian samplers take time steps of √h.
"""

import numpy as np
from sklearn.base import BaseEstimator

from .exceptions import InvalidParameterError

__all__ = ["Constant", "Polynomial", "Schedule"]


class Schedule(BaseEstimator):
    """A sequence of step sizes: ``schedule(t)`` for an array of step numbers t = 0, 1, ...

    A subclass stores its numbers in the constructor, checks them when it is called, and returns
    positive floats.
    """

    def __call__(self, t):
        """Step sizes of the steps t.

        Parameters
        ----------
        t : array of int
            Numbers of the steps.

        Returns
        -------
        array
            One for each, or of length 1 if all steps are the same.
        """
        raise NotImplementedError

    def _positive(self, *names):
        for name in names:
            value = getattr(self, name)
            if not (np.isscalar(value) and np.isfinite(value) and value > 0):
                raise InvalidParameterError(
                    f"The {name} of {self!r} must be a positive finite number, got {value!r}."
                )


class Constant(Schedule):
    """The same step size always; what a plain number means.

    Parameters
    ----------
    h : float
        Step size, positive. Dimensionless under a preconditioner: 1 is a step of one posterior
        standard deviation.

    Raises
    ------
    InvalidParameterError
        When it is used with a number that is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.schedules import Constant
    >>> Constant(0.1)(np.arange(5))
    array([0.1])
    """

    def __init__(self, h):
        self.h = h

    def __call__(self, t):
        """A single number for all steps."""
        self._positive("h")
        return np.array([float(self.h)])


class Polynomial(Schedule):
    """``h(t) = a (b + t)^(-gamma)``, the decreasing step size of Welling and Teh (2011).

    With ``0.5 < gamma <= 1`` the bias of SGLD vanishes as t grows, and so does its speed: the error
    of averages falls as t^(-1/3) at best (Teh, Thiery and Vollmer 2016), instead of t^(-1/2). All
    draws count the same in a posterior, early ones with larger steps included. A constant step size
    with a measured bias is the better choice in practice, and the default. Steps are counted from
    the first one of the warm-up. For samplers with stochastic gradients; "mala" and "hmc" take the
    first step size for all steps.

    Parameters
    ----------
    a : float
        Step size at b + t = 1.
    b : float, default=1.0
        Delay, in steps.
    gamma : float, default=0.55
        Rate of decay, positive.

    Raises
    ------
    InvalidParameterError
        When it is used with a number that is not positive and finite.

    References
    ----------
    M. Welling and Y. W. Teh (2011). Bayesian learning via stochastic gradient Langevin dynamics.
    ICML. (Dubey et al. 2016 use the same steps.)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.schedules import Polynomial
    >>> Polynomial(a=1.0, b=1.0, gamma=0.5)(np.array([0, 3]))
    array([1. , 0.5])
    """

    def __init__(self, a, b=1.0, gamma=0.55):
        self.a = a
        self.b = b
        self.gamma = gamma

    def __call__(self, t):
        """a (b + t)^(-gamma)."""
        self._positive("a", "b", "gamma")
        return self.a * (self.b + np.asarray(t, dtype=np.float64)) ** -self.gamma
