"""Step sizes as functions of the step number.

For every sampler, h is the step size in ``θ' = θ - (h/2) P ∇U(θ) + √h P^(1/2) ξ``: kinetic and
Hamiltonian samplers take time steps of √h.

Steps are counted from the first one of the warm-up. Where step sizes vary, the weight of a draw is
the sum of the steps that led to it: draw k, kept after step t_k, has the weight

    w_k ∝ h(t_k - thin) + ... + h(t_k - 1),

with mean 1 over the draws, and a posterior mean is Σ w_k f(θ_k) / Σ w_k, the time average of
Welling and Teh (2011). What an estimator chooses itself ("auto") refers to the first step size;
predicted biases, and warnings about the step size, to Σ h² / Σ h of the steps that have made draws.
"mala" and "hmc" use the first one for all steps, and have no weights.
"""

import numpy as np
from sklearn.base import BaseEstimator

from ._base.validation import check_positive, check_whole, check_within
from ._base.weights import normalised

__all__ = ["Constant", "Cyclical", "Polynomial", "Schedule", "TwoPhase"]

BLOCK = 1_000_000  # number of steps whose sizes are held in memory at a time


class Schedule(BaseEstimator):
    """A sequence of step sizes: ``schedule(t)`` for an array of step numbers t = 0, 1, ...

    A subclass stores its numbers in the constructor, checks them when it is called, and returns
    positive floats.
    """

    def __call__(self, t):
        """Return the step sizes of the steps t.

        Parameters
        ----------
        t : array of int
            Numbers of the steps.

        Returns
        -------
        array
            One step size for each step, or a single one if all are the same.

        Raises
        ------
        InvalidParameterError
            For a number of the schedule that is out of its range, or no number.
        """
        raise NotImplementedError

    def _positive(self, *names):
        for name in names:
            check_positive(name, getattr(self, name), self)


class Constant(Schedule):
    """A constant step size; a plain number stands for it.

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

    def __init__(self, h: float) -> None:
        self.h = h

    def __call__(self, t):
        """Return the step size h in an array of one number, which holds for all steps."""
        self._positive("h")
        return np.array([float(self.h)])


class Polynomial(Schedule):
    """``h(t) = a (b + t)^(-gamma)``, the decreasing step size of Welling and Teh (2011).

    With ``gamma <= 1`` the bias of SGLD vanishes as t grows, and so does its speed: the error of
    averages falls as t^(-1/3) at best, for gamma = 1/3 (Teh, Thiery and Vollmer 2016), instead of
    t^(-1/2). The posterior weighs each draw by the steps that led to it. A constant step size with
    a measured bias is the better choice in practice, and the default. This schedule is meant for
    samplers with stochastic gradients; "mala" and "hmc" use the first step size for all steps.

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

    def __init__(self, a: float, b: float = 1.0, gamma: float = 0.55) -> None:
        self.a = a
        self.b = b
        self.gamma = gamma

    def __call__(self, t):
        """Return the step sizes a (b + t)^(-gamma) of the steps t."""
        self._positive("a", "b", "gamma")
        return self.a * (self.b + np.asarray(t, dtype=np.float64)) ** -self.gamma


class TwoPhase(Schedule):
    """``h(t) = first`` for ``t < switch``, then ``second``.

    Dubey et al. (2016) run SAGA-LD in this way: a large step finds the posterior, a small one
    samples it. If `n_warmup` is at least `switch`, all draws are of the second phase and have the
    same weight; a draw of the first phase weighs ``first / second`` times as much as one of the
    second. What an estimator chooses itself ("auto") refers to the first step size: give `n_warmup`
    and `thin` as numbers if the two step sizes are far apart.

    Parameters
    ----------
    first : float
        Step size of the first phase, in the units of h in `Constant`.
    second : float
        Step size of the second phase.
    switch : int
        Number of steps of the first phase, counted from the beginning of the warm-up.

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

    def __init__(self, first: float, second: float, switch: int) -> None:
        self.first = first
        self.second = second
        self.switch = switch

    def __call__(self, t):
        """Return, for each of the steps t, the step size of the phase in which it lies."""
        self._positive("first", "second")
        check_whole("switch", self.switch, self, 0)
        return np.where(np.asarray(t) < self.switch, float(self.first), float(self.second))


class Cyclical(Schedule):
    """``h(t) = h_max/2 (cos(π s) + 1)``, ``s = mod(t, cycle) / cycle``: warm restarts.

    These are the cosine cycles of Zhang et al. (2020): every cycle begins with a step of `h_max`,
    so that the chain can leave its region, and then shrinks the step, which removes its bias. No
    step is smaller than ``floor * h_max``, so that a chain never stands still. Unlike in that paper
    every step has noise, and no draw is discarded: all are kept and weighted by step size, so that
    the beginning of a cycle weighs most, and the remaining bias of SGLD is that of a constant step
    of about 3/4 `h_max`.

    Parameters
    ----------
    h_max : float
        Step size at the beginning of a cycle, in the units of h in `Constant`.
    cycle : int
        Number of steps in a cycle.
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

    def __init__(self, h_max: float, cycle: int, floor: float = 0.01) -> None:
        self.h_max = h_max
        self.cycle = cycle
        self.floor = floor

    def __call__(self, t):
        """Return the step sizes of the steps t, no less than the floor.

        h_max cos²(π s / 2) equals the formula of the class, but has no cancellation.
        """
        self._positive("h_max")
        check_whole("cycle", self.cycle, self, 1)
        check_within("floor", self.floor, self, 0.0, 1.0, "(]")
        s = np.mod(t, self.cycle) / self.cycle
        return self.h_max * np.maximum(self.floor, np.cos(0.5 * np.pi * s) ** 2)


def first_step(schedule):
    """Return the first step size h(0) of a schedule."""
    return float(schedule(np.arange(1))[0])


def varies(schedule):
    """Whether step sizes may differ: a constant schedule returns a single number."""
    return len(schedule(np.arange(2))) > 1


def draw_weights(schedule, ends, thin):
    """Return the weights of draws, `thin` steps apart; None if they are all the same.

    A draw represents the `thin` steps before it, not all steps since the previous draw: a chain
    that was thinned further on the way has taken more steps, which do not affect the draw's weight.

    Parameters
    ----------
    schedule : Schedule or None
        None for samplers without a schedule.
    ends : array of int
        Steps that a chain had taken, warm-up included, when each draw was kept.
    thin : int
        Steps from one draw to the next.

    Returns
    -------
    array or None
        One weight for each draw; the weights have mean 1.
    """
    sums = step_sums(schedule, ends, thin)
    return None if sums is None else normalised(sums, len(ends))


def step_sums(schedule, ends, thin):
    """Return, for each draw, the sum of the step sizes of the `thin` steps before it.

    The result is None if step sizes do not vary, or there are no draws. See `draw_weights`.
    """
    if schedule is None or len(ends) == 0 or not varies(schedule):
        return None
    before, many = np.arange(-thin, 0), max(1, BLOCK // thin)
    blocks = [ends[k : k + many, None] + before for k in range(0, len(ends), many)]
    sums = [schedule(block.ravel()).reshape(-1, thin).sum(axis=1) for block in blocks]
    return np.concatenate(sums)
