"""Stochastic gradient Hamiltonian Monte Carlo on tensors: see `skbayes_sg.dynamics.sghmc`.

r ← r - ε ĝ(φ) - ε C r + √(2(C - B̂)ε) ξ,    φ ← φ + ε r,    ε = √h

and, in steps in which the momentum is drawn anew, with q = 1 - εC/2,

r ← -(ε/2q) ĝ(φ) + √(1/q - εB̂/(2q²)) ξ,    φ ← φ + ε r
"""

import math

__all__ = ["update"]


def update(state_out, gradient, noise, h, parameters):
    """Take one step; the arguments are those of `skbayes_sg.dynamics.Dynamics`, as tensors."""
    phi, r = state_out[0], state_out[1]
    C, B, refresh = parameters
    epsilon = math.sqrt(h)
    keep, kick, sd = 1.0 - epsilon * C, epsilon, math.sqrt(2.0 * (C - B) * epsilon)
    if refresh > 0.0 and _is_due(state_out[2], refresh):
        q = 1.0 - 0.5 * epsilon * C
        keep, kick = 0.0, 0.5 * epsilon / q
        sd = math.sqrt(max(0.0, 1.0 / q - 0.5 * epsilon * B / (q * q)))
    r.mul_(keep).add_(gradient, alpha=-kick).add_(noise, alpha=sd)
    phi.add_(r, alpha=epsilon)


def _is_due(counter, refresh):
    """Count the step in counter[0]; return whether the momentum is due to be drawn anew."""
    counter[0] += 1.0
    if float(counter[0]) < refresh:
        return False
    counter[0] = 0.0
    return True
