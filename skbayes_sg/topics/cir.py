r"""The exact step of the Cox-Ingersoll-Ross process, whose stationary law is Gamma(a, 1).

Expanded topics :math:`\theta_{kw} > 0`, with :math:`\varphi_{kw} = \theta_{kw} / \sum_w
\theta_{kw}` (Patterson and Teh 2013), follow :math:`d\theta = (a - \theta)\,dt +
\sqrt{2\theta}\,dW`, with
:math:`a_{kw} = \beta + \hat E[n_{kw} \mid \varphi]`. For constant a the transition over any time h
is known (Cox, Ingersoll and Ross 1985). It is a mixture of gamma laws,

.. math::

    \theta' = (1 - e^{-h})\, \text{Gamma}(a + N, 1), \qquad
    N \sim \text{Poisson}\Bigl(\frac{\theta e^{-h}}{1 - e^{-h}}\Bigr),

the same as :math:`\tfrac12 (1 - e^{-h})\, \chi'^2(2a;\, 2\theta e^{-h} / (1 - e^{-h}))`. There is
no discretisation error: Gamma(a, 1) is stationary for every h and every a, whereas the mirrored
Euler step of `sgrld` is badly biased for small a. Two steps of times h and h' with the same a are
one step of time h + h', so a word can wait until a batch contains it.
"""

import math

from .._base.jit import entry, inner

__all__ = ["transition"]

TINY = 1e-290  # smallest θ, since gamma draws with a tiny shape underflow


@inner
def _step(theta, a, time, rng):
    if time <= 0.0:
        return theta
    share = -math.expm1(-time)
    jumps = rng.poisson(theta * math.exp(-time) / share) if theta > TINY else 0
    return max(share * rng.standard_gamma(a + jumps), TINY)


@entry
def transition(theta, a, times, rng, theta_out):
    """Draw θ after the time ``times[j]`` for each row j of θ; `a` has the shape of θ."""
    for j in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta_out[j, k] = _step(theta[j, k], a[j, k], times[j], rng)
