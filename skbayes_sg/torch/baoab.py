"""Kinetic Langevin dynamics by the BAOAB splitting on tensors: see `skbayes_sg.dynamics.baoab`.

B  v ← v - δ ĝ(φ)
A  φ ← φ + (δ/2) v
O  v ← c v + √(1 - c²) ξ,  c = e^(-γδ),  δ = √h
A  φ ← φ + (δ/2) v
"""

import math

__all__ = ["update"]


def update(state_out, gradient, noise, h, parameters):
    """Take one step; the arguments are those of `skbayes_sg.dynamics.Dynamics`, as tensors."""
    phi, v = state_out[0], state_out[1]
    delta = math.sqrt(h)
    c = math.exp(-parameters[0] * delta)
    v.add_(gradient, alpha=-delta)
    phi.add_(v, alpha=0.5 * delta)
    v.mul_(c).add_(noise, alpha=math.sqrt(1.0 - c * c))
    phi.add_(v, alpha=0.5 * delta)
