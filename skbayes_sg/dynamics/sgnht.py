"""Stochastic gradient Nosé-Hoover thermostat, BADODAB splitting (Leimkuhler and Shang 2016).

dφ = v dt,  dv = -∇U dt - ξ v dt + √(2γ) dW,  μ dξ = (v·v/d - 1) dt,  with time step δ = √h::

    B  v ← v - δ ĝ(φ)          (the half kicks of two neighbouring steps share one gradient)
    A  φ ← φ + (δ/2) v
    D  ξ ← ξ + (δ/2μ) (v·v/d - 1)
    O  v ← c v + s R,  c = e^(-ξδ),  s² = γ (1 - c²)/ξ,  R ~ N(0, I)
    D, A  as above

(R is the noise of the step and, as in the paper, ξ is the friction.) The thermostat is a single
number, or one for each coordinate with μ dξ_j = (v_j² - 1) dt. In continuous time, with gradient
noise whose kicks have covariance C, white of strength δC, the stationary law is proportional to
exp(-U(φ) - v·v/2 - (dμ/2)(ξ - ξ̄)²) for C = V I, and exp(-U - Σ_j v_j²/2 - Σ_j (μ/2)(ξ_j - ξ̄_j)²)
for C = diag(V), with ξ̄ = γ + δV/2: the friction rises by the noise that it removes, and the
position has the target's law.

In discrete time, for any gradients, noise and step sizes, the mean of (v·v/d - 1) at the two D's
over T steps is (μ/δT)(ξ_T - ξ_0), up to rounding. So v has unit mean square around O, as in BAOAB;
with a thermostat that does not move (μ = ∞) the paths are those of BAOAB.

Remaining noise. A direction whose gradient noise has variance e has the first-order inflation
δ(e - V̄)/(2γ + δV̄) instead of δe/(2γ) as in BAOAB, where V̄ is what the thermostat has absorbed:
the mean of diag(C), or its own entry. As 0 ≤ e, V̄ ≤ e_max, its size is at most δ e_max/(2γ). Of
noise that is absorbed completely the share -γ²h/4 remains, to first order in V and leading order in
h: if v has unit mean square around O, a φ² has the mean 1 - γδ³V/8.
"""

import math

import numpy as np

from .._base.jit import inner, pointee
from .._base.validation import check_positive, check_within
from ..exceptions import InvalidParameterError
from ._base import Dynamics

__all__ = ["SGNHT"]


@inner
def _thermostat(v, xi, time, mean):
    """Step D of the splitting: change every ξ_j by its own v_j², or all of them by their mean."""
    square = 0.0
    for j in range(v.shape[0]):
        square += v[j] * v[j] / v.shape[0]
    for j in range(v.shape[0]):
        xi[j] += time * ((square if mean else v[j] * v[j]) - 1.0)


@inner
def _ornstein_uhlenbeck(v, xi, gamma, delta, noise):
    """Step O of the splitting, with s² = 2γδ (1 - e^(-y))/y and y = 2ξδ of either sign or zero."""
    for j in range(v.shape[0]):
        y = 2.0 * xi[j] * delta
        share = -math.expm1(-y) / y if abs(y) > 1e-6 else 1.0 - 0.5 * y
        v[j] = math.exp(-0.5 * y) * v[j] + math.sqrt(2.0 * gamma * delta * share) * noise[j]


@inner
def _fixed(v, gamma, delta, noise):
    """Step O of the splitting if the thermostat does not move, so that ξ = γ."""
    c = math.exp(-gamma * delta)
    s = math.sqrt(1.0 - c * c)
    for j in range(v.shape[0]):
        v[j] = c * v[j] + s * noise[j]


@pointee
def _update(state_out, gradient, noise, h, parameters):
    phi, v = state_out[0], state_out[1]
    gamma, rate, mean = parameters[0], parameters[1], parameters[2] == 0.0
    delta = math.sqrt(h)
    for j in range(phi.shape[0]):
        v[j] -= delta * gradient[j]
        phi[j] += 0.5 * delta * v[j]
    if rate > 0.0:
        xi = state_out[2]
        _thermostat(v, xi, 0.5 * delta * rate, mean)
        _ornstein_uhlenbeck(v, xi, gamma, delta, noise)
        _thermostat(v, xi, 0.5 * delta * rate, mean)
    else:
        _fixed(v, gamma, delta, noise)
    for j in range(phi.shape[0]):
        phi[j] += 0.5 * delta * v[j]


class SGNHT(Dynamics):
    """Stochastic gradient Nosé-Hoover thermostat: friction that adapts to gradient noise.

    ``dφ = v dt, dv = -∇U dt - ξ v dt + √(2γ) dW, μ dξ = (v·v/d - 1) dt`` by the symmetric splitting
    BADODAB, with one gradient a step and time steps δ = √h of the step size h. In `BAOAB` gradient
    noise V raises a unit variance by the share δV/(2γ). Here the friction ξ rises until the
    velocities have unit variance: ξ has the law N(γ + δV/2, 1/(dμ)), or N(γ + δV_j/2, 1/μ) for each
    coordinate. About the share γ²h/4 of the effect of isotropic noise remains (of uncorrelated
    noise, with a thermostat for each coordinate):
    ``tests/dynamics/test_thermostats.py::test_isotropic_noise_is_absorbed``. Noise that the
    thermostat does not see, because it differs between directions or is correlated, inflates some
    variances and deflates others.

    The law of φ is the target up to terms of second order in δ, for Gaussians as well
    (``tests/dynamics/test_thermostats.py::test_law_of_the_thermostat_to_third_order_of_a_step``).
    Fluctuations of ξ affect the tails: at γ = 1 without noise, the fourth moment of a unit Gaussian
    is too large by less than the share h/(2μ), the variance by less than a tenth of that, for μ ≥ 3
    and δ ≤ 1 (``tests/dynamics/test_thermostats.py::test_bias_is_a_bound_for_the_moments``). At
    μ = 1, where ξ_j is often negative, δ = 1 is too large for one thermostat a coordinate.

    Parameters
    ----------
    friction : float, default=1.0
        γ, the friction without gradient noise, in units of one over the whitened time.
    thermostat : {"scalar", "coordinate"}, default="scalar"
        One thermostat for all coordinates of the chain, or one for each.
    inertia : float, default=4.0
        μ, in units of the whitened time squared: the thermostat settles at the rate
        γ - √(γ² - 2/μ). With ``inf`` the friction stays γ, as in `BAOAB`.

    Raises
    ------
    InvalidParameterError
        By `fit`, if the friction is not a positive finite number, the inertia is not a positive
        number, or the thermostat is unknown.

    References
    ----------
    N. Ding, Y. Fang, R. Babbush, C. Chen, R. D. Skeel and H. Neven (2014). Bayesian sampling using
    stochastic gradient thermostats. NeurIPS.

    B. Leimkuhler and X. Shang (2016). Adaptive thermostats for noisy gradient systems. SIAM Journal
    on Scientific Computing 38, A712-A736.

    Examples
    --------
    >>> from skbayes_sg.dynamics import SGNHT
    >>> SGNHT(thermostat="coordinate", inertia=10.0)
    SGNHT(inertia=10.0, thermostat='coordinate')
    """

    update = staticmethod(_update)
    substep_ratio = 4.0

    def __init__(
        self, friction: float = 1.0, thermostat: str = "scalar", inertia: float = 4.0
    ) -> None:
        self.friction = friction
        self.thermostat = thermostat
        self.inertia = inertia

    @property
    def n_rows(self):  # type: ignore[override]
        """Number of rows of the state: position, velocity and, if it moves, the thermostat."""
        return 2 if self.exact_on_gaussian else 3

    @property
    def exact_on_gaussian(self):  # type: ignore[override]
        """True if the thermostat does not move: the law of a Gaussian target is then exact."""
        return self._mu == np.inf

    @property
    def _gamma(self):
        return check_positive("friction", self.friction, self)

    @property
    def _mu(self):
        wanted = "a positive number"
        return check_within("inertia", self.inertia, self, 0.0, np.inf, "(]", wanted)

    def parameters(self):
        """Return the vector (γ, 1/μ, whether each coordinate has its own thermostat)."""
        if self.thermostat not in ("scalar", "coordinate"):
            raise InvalidParameterError(
                f"The thermostat of {self!r} must be 'scalar' or 'coordinate', "
                f"got {self.thermostat!r}."
            )
        return np.array([self._gamma, 1.0 / self._mu, float(self.thermostat == "coordinate")])

    def start(self, position, rng):
        """Return a state at `position`, with velocities from N(0, I) and ξ = γ."""
        state = super().start(position, rng)
        state[2:] = self._gamma
        return state

    def bias(self, h, curvature=1.0):
        """Return h a/(2μ), a measured bound for the fourth moment, and so for the variance."""
        return h * curvature / (2.0 * self._mu)

    def step_for_bias(self, bias, curvature=1.0):
        """Return the step size h = 2 μ bias/a for a curvature a, but at most 1/a."""
        return min(2.0 * self._mu * bias, 1.0) / curvature

    def relaxation_steps(self, h, slowest=1.0):
        """Return the number of steps in which autocorrelations fall by a factor e.

        These are the autocorrelations of the position in a direction and of the thermostat.

        The rates λ are roots of λ² + 2γλ + 2/μ = 0 for the mean squares of v and for ξ, and of
        λ² + γλ + a = 0 for a position.
        """
        gamma = self._gamma
        rate = _slow_rate(0.5 * gamma, slowest)
        if not self.exact_on_gaussian:
            rate = min(rate, _slow_rate(gamma, 2.0 / self._mu))
        return 1.0 / (math.sqrt(h) * rate)

    def noise_inflation(self, h):
        """Return δ/(2γ), which applies to the noise that `absorbed` leaves."""
        return math.sqrt(h) / (2.0 * self._gamma)

    def step_for_inflation(self, inflation):
        """Return the step size h = (2 γ inflation)² with this `noise_inflation`."""
        return (2.0 * self._gamma * inflation) ** 2

    def absorbed(self, variances, h):
        """Return the noise that the thermostat absorbs, and the part of it that has an effect.

        That part is taken to be twice its leading order, the share γ²h/4, but at most all of it.
        """
        if self.exact_on_gaussian:
            return super().absorbed(variances, h)
        own = self.thermostat == "coordinate"
        taken = variances if own else np.full(len(variances), variances.mean())
        return taken, taken * min(1.0, 0.5 * h * self._gamma**2)

    def coarse_noise(self, h):
        """Return the factors (a, b) that combine the noise of two half steps with friction γ."""
        c = math.exp(-0.5 * self._gamma * math.sqrt(h))
        return c / math.sqrt(1.0 + c * c), 1.0 / math.sqrt(1.0 + c * c)


def _slow_rate(half, stiffness):
    """Return the smaller root λ of λ² - 2 half λ + stiffness = 0; the real part of complex ones."""
    return half - math.sqrt(max(half * half - stiffness, 0.0))
