"""Step sizes as functions of the number of the step.

A step size h is that of ``θ' = θ - (h/2) P ∇U(θ) + √h P^(1/2) ξ``, for every sampler: kinetic and
Hamiltonian samplers take time steps of √h.
"""

import numpy as np
from sklearn.base import BaseEstimator

from .exceptions import InvalidParameterError

__all__ = ["Constant", "Polynomial", "Schedule"]


class Schedule(BaseEstimator):
    """A sequence of step sizes: ``schedule(t)`` for an array of step numbers t = 0, 1, ..."""

    def __call__(self, t):
        """Step sizes of the steps t; an array of length 1 if all are the same."""
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
        Step size.

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

    With ``0.5 < gamma <= 1`` the bias of SGLD vanishes as t grows, and so does its speed: averages
    converge at rate t^(-1/3) at best. A constant step size with a measured bias is the better
    choice in practice, and the default.

    Parameters
    ----------
    a : float
        Step size at b + t = 1.
    b : float, default=1.0
        Delay, in steps.
    gamma : float, default=0.55
        Rate of decay.

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
