"""Step sizes as functions of the number of the step.

A step size h is that of ``θ' = θ - (h/2) P ∇U(θ) + √h P^(1/2) ξ``, for every sampler: kinetic and
Hamiltonian samplers take time steps of √h.

Steps are counted from the first one of the warm-up. Where they vary, a draw weighs as much as the
steps that led to it: draw k, kept after step t_k, has the weight

    w_k ∝ h(t_k - thin) + ... + h(t_k - 1),

with mean 1 over the draws, and a posterior mean is Σ w_k f(θ_k) / Σ w_k, the time average of
Welling and Teh (2011). What is "auto" in an estimator, and its warnings about the step size, go by
the first step. "mala" and "hmc" take the first step size for all steps, and have no weights.
"""

import numbers

import numpy as np
from sklearn.base import BaseEstimator

from ._base.weights import normalised
from .exceptions import InvalidParameterError

__all__ = ["Constant", "Cyclical", "Polynomial", "Schedule", "TwoPhase"]

BLOCK = 1_000_000  # steps whose sizes are held in memory at a time


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
            if not (_is_number(value, numbers.Real) and np.isfinite(value) and value > 0):
                self._refuse(name, "a positive finite number")

    def _whole(self, name, at_least):
        value = getattr(self, name)
        if not (_is_number(value, numbers.Integral) and value >= at_least):
            self._refuse(name, f"an int, at least {at_least}")

    def _refuse(self, name, wanted):
        raise InvalidParameterError(
            f"The {name} of {self!r} must be {wanted}, got {getattr(self, name)!r}."
        )


def _is_number(value, kind):
    return isinstance(value, kind) and not isinstance(value, (bool, np.bool_))


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

    With ``gamma <= 1`` the bias of SGLD vanishes as t grows, and so does its speed: the error of
    averages falls as t^(-1/3) at best, for gamma = 1/3 (Teh, Thiery and Vollmer 2016), instead of
    t^(-1/2). A draw weighs as much as the steps that led to it, in all that a posterior computes. A
    constant step size with a measured bias is the better choice in practice, and the default. For
    samplers with stochastic gradients; "mala" and "hmc" take the first step size for all steps.

    Parameters
    ----------
    a : float
        Step size at b + t = 1, in the units of h in `Constant`.
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

    Y. W. Teh, A. H. Thiery and S. J. Vollmer (2016). Consistency and fluctuations for stochastic
    gradient Langevin dynamics. Journal of Machine Learning Research 17.

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


class TwoPhase(Schedule):
    """``h(t) = first`` for ``t < switch``, then ``second``.

    As Dubey et al. (2016) run SAGA-LD: a large step finds the posterior, a small one samples it.
    With `n_warmup` at least as large as `switch` all draws are of the second phase and count the
    same; a draw of the first phase weighs ``first / second`` times as much as one of the second.
    What is "auto" in an estimator goes by the first step: give `n_warmup` and `thin` as numbers
    where the two are far apart.

    Parameters
    ----------
    first : float
        Step size of the first phase, in the units of h in `Constant`.
    second : float
        Step size of the second phase.
    switch : int
        Number of the step, counted from 0 at the first one of the warm-up, with which the second
        phase begins: the number of steps of the first phase.

    Raises
    ------
    InvalidParameterError
        When it is used with a step size that is not positive and finite, or a `switch` that is not
        a number of steps.

    References
    ----------
    K. A. Dubey, S. J. Reddi, S. A. Williamson, B. Poczos, A. J. Smola and E. P. Xing (2016).
    Variance reduction in stochastic gradient Langevin dynamics. NeurIPS. (Section 5.)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.schedules import TwoPhase
    >>> TwoPhase(first=0.5, second=0.1, switch=2)(np.arange(4))
    array([0.5, 0.5, 0.1, 0.1])
    """

    def __init__(self, first, second, switch):
        self.first = first
        self.second = second
        self.switch = switch

    def __call__(self, t):
        """The step size of the phase in which t lies."""
        self._positive("first", "second")
        self._whole("switch", 0)
        return np.where(np.asarray(t) < self.switch, float(self.first), float(self.second))


class Cyclical(Schedule):
    """``h(t) = h_max/2 (cos(π s) + 1)``, ``s = mod(t, cycle) / cycle``: warm restarts.

    The cosine cycles of Zhang et al. (2020): every cycle begins with a step of `h_max`, which
    leaves the place where the chain is, and shrinks it towards zero, which removes the bias of the
    step. Steps are nowhere below ``floor * h_max``, so that a chain never stands still. Unlike in
    that paper no part of a cycle is without noise, and no draw is thrown away: all are kept and
    weighted by step size, so that the beginning of a cycle weighs most, and the bias of SGLD that
    is left is that of a constant step of about 3/4 `h_max`.

    Parameters
    ----------
    h_max : float
        Step size at the beginning of a cycle, in the units of h in `Constant`.
    cycle : int
        Steps of a cycle.
    floor : float, default=0.01
        Smallest step size, as a share of `h_max` in (0, 1].

    Raises
    ------
    InvalidParameterError
        When it is used with a number outside of these ranges.

    References
    ----------
    R. Zhang, C. Li, J. Zhang, C. Chen and A. G. Wilson (2020). Cyclical stochastic gradient MCMC
    for Bayesian deep learning. ICLR. (Equation 1.)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.schedules import Cyclical
    >>> Cyclical(h_max=0.4, cycle=4)(np.arange(6)).round(2)
    array([0.4 , 0.34, 0.2 , 0.06, 0.4 , 0.34])
    """

    def __init__(self, h_max, cycle, floor=0.01):
        self.h_max = h_max
        self.cycle = cycle
        self.floor = floor

    def __call__(self, t):
        """h_max cos²(π s / 2), the same without cancellation, or the floor."""
        self._positive("h_max", "floor")
        self._whole("cycle", 1)
        if self.floor > 1.0:
            self._refuse("floor", "a share in (0, 1]")
        s = np.mod(t, self.cycle) / self.cycle
        return self.h_max * np.maximum(self.floor, np.cos(0.5 * np.pi * s) ** 2)


def first_step(schedule):
    """Its first step size."""
    return float(schedule(np.arange(1))[0])


def varies(schedule):
    """Whether steps may differ: a schedule of one size for all returns a single number."""
    return len(schedule(np.arange(2))) > 1


def draw_weights(schedule, ends, thin):
    """Weights of draws, `thin` steps apart; None if they are all the same.

    A draw stands for the `thin` steps before it, not for all steps since the draw before: where
    chains were thinned further on the way there may have been more, which says nothing of the draw.

    Parameters
    ----------
    schedule : Schedule or None
        None for samplers that have none.
    ends : array of int
        Steps of a chain, warm-up included, when each draw was kept.
    thin : int
        Steps from one draw to the next.

    Returns
    -------
    array or None
        With mean 1.
    """
    sums = step_sums(schedule, ends, thin)
    return None if sums is None else normalised(sums, len(ends))


def step_sums(schedule, ends, thin):
    """Sums of the step sizes that draws stand for; None if they are all the same."""
    if schedule is None or len(ends) == 0 or not varies(schedule):
        return None
    before, many = np.arange(-thin, 0), max(1, BLOCK // thin)
    blocks = [ends[k : k + many, None] + before for k in range(0, len(ends), many)]
    sums = [schedule(block.ravel()).reshape(-1, thin).sum(axis=1) for block in blocks]
    return np.concatenate(sums)
