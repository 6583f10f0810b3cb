"""Stochastic gradient Nosé-Hoover thermostat on tensors: see `skbayes_sg.dynamics.sgnht`.

B  v ← v - δ ĝ(φ)
A  φ ← φ + (δ/2) v
D  ξ ← ξ + (δ/2μ) (v·v/d - 1), or v_j² in place of v·v/d
O  v ← c v + s R,  c = e^(-ξδ),  s² = γ (1 - c²)/ξ
D, A  as above,  δ = √h
"""

import math

import torch

from . import baoab

__all__ = ["update"]


def update(state_out, gradient, noise, h, parameters):
    """Take one step; the arguments are those of `skbayes_sg.dynamics.Dynamics`, as tensors."""
    gamma, rate, own = parameters
    if rate == 0.0:
        return baoab.update(state_out, gradient, noise, h, (gamma,))
    phi, v, xi = state_out[0], state_out[1], state_out[2]
    delta = math.sqrt(h)
    v.add_(gradient, alpha=-delta)
    phi.add_(v, alpha=0.5 * delta)
    _thermostat(v, xi, 0.5 * delta * rate, own)
    _ornstein_uhlenbeck(v, xi, gamma, delta, noise)
    _thermostat(v, xi, 0.5 * delta * rate, own)
    phi.add_(v, alpha=0.5 * delta)
    return None


def _thermostat(v, xi, time, own):
    """Take step D in place: change each ξ_j by v_j² - 1 if `own`, otherwise by v·v/d - 1."""
    square = v * v if own else torch.dot(v, v) / len(v)
    xi.add_(square - 1.0, alpha=time)


def _ornstein_uhlenbeck(v, xi, gamma, delta, noise):
    """Take step O in place, with s² = 2γδ (1 - e^(-y))/y; y = 2ξδ may be zero or negative."""
    y = 2.0 * delta * xi
    small = y.abs() <= 1e-6
    divisor = torch.where(small, torch.ones_like(y), y)
    share = torch.where(small, 1.0 - 0.5 * y, -torch.expm1(-y) / divisor)
    v.mul_(torch.exp(-0.5 * y)).add_(torch.sqrt(2.0 * gamma * delta * share) * noise)
