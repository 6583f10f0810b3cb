"""Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox and Guestrin 2014), in friction form.

dφ = r dt, dr = -∇U dt - C r dt + √(2C) dW, one Euler step of ε = √h for the momentum, then the
position:

    r ← r - ε ĝ(φ) - ε C r + √(2(C - B̂)ε) ξ,    φ ← φ + ε r

Stationary law for a Gaussian target, a direction of curvature a and gradient noise of variance V:
with κ = 1 - B̂/C + εV/(2C), q = 1 - εC/2 and D = q - ε²a/4,

    var φ = κ q / (a D),    var r = κ / D,    cov(φ, r) = ε var r / 2,    stable for D > 0.

With B̂ = εV/2, κ = 1: isotropic gradient noise is subtracted from the injected noise exactly.

Refreshing. Given φ, the momentum after a kick is N(-(ε/2q) ∇U(φ), κ/q) in that law: its covariance
with φ is -ε var r'/2 by symmetry in time, where r' = r(1 - εC) - ε a φ + ..., which equals
-(ε/2q) a var φ, and κ/D - (ε a/2q)² κ q/(a D) = κ/q. Hence, with κ = 1, and with the variance
(ε/2q)² V of the gradient noise, V = 2B̂/ε, subtracted again, the step

    r ← -(ε/2q) ĝ(φ) + √(1/q - εB̂/(2q²)) ξ,    φ ← φ + ε r

forgets the momentum and leaves the law invariant for any a and ε. With `refresh` = 1 this is SGLD
with step size h/q; with εC = 1, where every step forgets the momentum, both are SGLD with step 2h.
"""

import math

import numpy as np
from sklearn.base import clone

from .._base.jit import pointee
from .._base.validation import check_positive, check_whole, check_within
from ._base import Dynamics

__all__ = ["SGHMC"]


@pointee
def _update(state_out, gradient, noise, h, parameters):
    phi, r = state_out[0], state_out[1]
    C, B, refresh = parameters[0], parameters[1], parameters[2]
    epsilon = math.sqrt(h)
    keep, kick, sd = 1.0 - epsilon * C, epsilon, math.sqrt(2.0 * (C - B) * epsilon)
    if refresh > 0.0:
        state_out[2, 0] += 1.0
        if state_out[2, 0] >= refresh:
            state_out[2, 0] = 0.0
            q = 1.0 - 0.5 * epsilon * C
            keep, kick = 0.0, 0.5 * epsilon / q
            sd = math.sqrt(max(0.0, 1.0 / q - 0.5 * epsilon * B / (q * q)))
    for j in range(phi.shape[0]):
        r[j] = keep * r[j] - kick * gradient[j] + sd * noise[j]
        phi[j] += epsilon * r[j]


class SGHMC(Dynamics):
    """Stochastic gradient Hamiltonian Monte Carlo with friction and an estimate of the noise.

    ``r ← r - ε ĝ - ε C r + √(2(C - B̂)ε) ξ,  φ ← φ + ε r`` with ε = √h of the step size h. On a
    Gaussian target a direction of curvature a has the variance ``(1/a) κ q / (q - h a/4)`` instead
    of 1/a, with q = 1 - εC/2 and κ = 1 - B̂/C + εV/(2C) for gradient noise of variance V
    (``tests/dynamics/test_thermostats.py::test_law_of_sghmc_with_gradient_noise``,
    ``tests/dynamics/test_thermostats.py::test_noise_estimate_takes_off_isotropic_noise_exactly``).
    It is stable only for q > h a/4. `BAOAB` costs the same and has no bias from the step on
    Gaussian targets.

    Parameters
    ----------
    friction : float, default=1.0
        C, in units of one over the whitened time: momentum is forgotten in a time 1/C. With εC = 1
        this is `SGLD` with step size 2h.
    noise_estimate : float, default=0.0
        B̂, from 0 to C: the part of the injected noise that gradient noise replaces. B̂ = εV/2
        accounts exactly for isotropic gradient noise of variance V. If the gradient has less noise
        than that, variances are too small by up to the share B̂/C.
    refresh : int or None, default=None
        Number of steps after which the momentum is drawn anew from its stationary law given the
        position, N(-(ε/2q) ĝ, 1/q - εB̂/(2q²)), which leaves the stationary law invariant
        (``tests/dynamics/test_thermostats.py::test_refreshing_leaves_the_law``). None means never.

    Raises
    ------
    InvalidParameterError
        By `fit`, if the friction is not a positive finite number, the noise_estimate is not one in
        [0, friction], or refresh is neither a positive int nor None.

    References
    ----------
    T. Chen, E. B. Fox and C. Guestrin (2014). Stochastic gradient Hamiltonian Monte Carlo. ICML.

    Examples
    --------
    >>> from skbayes_sg.dynamics import SGHMC
    >>> SGHMC(friction=2.0, refresh=20)
    SGHMC(friction=2.0, refresh=20)
    """

    update = staticmethod(_update)
    substep_ratio = 4.0

    def __init__(
        self, friction: float = 1.0, noise_estimate: float = 0.0, refresh: int | None = None
    ) -> None:
        self.friction = friction
        self.noise_estimate = noise_estimate
        self.refresh = refresh

    @property
    def n_rows(self):  # type: ignore[override]
        """Number of rows of the state: position, momentum and, with refreshing, a step counter."""
        return 2 if self.refresh is None else 3

    def _numbers(self):
        """Return C, B̂ and `refresh`; raise `InvalidParameterError` if one is not accepted."""
        C = check_positive("friction", self.friction, self)
        wanted = f"a number in [0, friction] = [0, {self.friction!r}]"
        B = check_within("noise_estimate", self.noise_estimate, self, 0.0, C, "[]", wanted)
        refresh = check_whole("refresh", self.refresh, self, 1, none=True)
        return C, B, refresh

    def parameters(self):
        """Return the vector (C, B̂, `refresh`), where 0 means that momenta are never refreshed."""
        C, B, refresh = self._numbers()
        return np.array([C, B, float(refresh or 0)])

    def start(self, position, rng):
        """Return a state at `position`, with momentum from N(0, I) and the step counter at zero."""
        state = super().start(position, rng)
        state[2:] = 0.0
        return state

    def largest_step(self, curvature):
        """Return the step size h at which q = h a/4, for the largest curvature a."""
        C, *_ = self._numbers()
        return (4.0 / (C + math.sqrt(C * C + 4.0 * curvature))) ** 2

    def bias(self, h, curvature=1.0):
        """Return (1 - B̂/C) q / (q - h a/4) - 1, the relative bias of a variance without noise.

        It may be negative, because B̂ replaces gradient noise, which is absent here.
        """
        C, B, _ = self._numbers()
        q = 1.0 - 0.5 * math.sqrt(h) * C
        D = q - 0.25 * h * curvature
        return (1.0 - B / C) * q / D - 1.0 if D > 0.0 else math.inf

    def step_for_bias(self, bias, curvature=1.0):
        """Return the step size ε² with bias b, as if B̂ were 0.

        ε is the root of (1 + b) ε² a/4 + b ε C/2 = b.
        """
        C, *_ = self._numbers()
        half = 0.5 * bias * C
        return (2.0 * bias / (half + math.sqrt(half * half + (1.0 + bias) * bias * curvature))) ** 2

    def relaxation_steps(self, h, slowest=1.0):
        """Return the number of steps in which a direction's autocorrelation falls by a factor e.

        With refreshing, a mean shrinks by the factor m(τ) in a period of time τ, as for a damped
        oscillator that starts at rest. Where m is near 0, a period counts as a factor e at most, or
        as what friction alone achieves.
        """
        C, _, refresh = self._numbers()
        half, epsilon = 0.5 * C, math.sqrt(h)
        root = np.sqrt(complex(half * half - slowest))
        plain = 1.0 / (epsilon * (half - root.real))
        if refresh is None:
            return plain
        tau = refresh * epsilon
        m = np.exp(-half * tau) * (np.cosh(root * tau) + half * tau * _sinhc(root * tau)).real
        forgotten = -np.log(max(abs(m), np.finfo(float).tiny))
        return refresh / min(forgotten, max(1.0, refresh / plain))

    def noise_inflation(self, h):
        """Return ε/(2C), which holds for B̂ = 0, and is a bound if refreshing removes noise too."""
        C, *_ = self._numbers()
        return math.sqrt(h) / (2.0 * C)

    def step_for_inflation(self, inflation):
        """Return the step size h = (2 C inflation)² with this `noise_inflation`."""
        C, *_ = self._numbers()
        return (2.0 * C * inflation) ** 2

    def coarse_noise(self, h):
        """Return the factors of ξ1 and ξ2 in the noise of a whole step, with unit sum of squares.

        Two half steps add noise proportional to c ξ1 + ξ2 to the momentum, with c = 1 - εC/2.
        """
        C, *_ = self._numbers()
        c = 1.0 - 0.5 * math.sqrt(h) * C
        return c / math.sqrt(1.0 + c * c), 1.0 / math.sqrt(1.0 + c * c)

    def coupled(self):
        """Return a copy without refreshing, which would give the two paths unrelated momenta."""
        return clone(self).set_params(refresh=None)


def _sinhc(z):
    """Return sinh(z)/z for a complex z, by its series near zero."""
    return np.sinh(z) / z if abs(z) > 1e-6 else 1.0 + z * z / 6.0
