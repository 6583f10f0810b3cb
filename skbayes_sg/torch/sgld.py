"""Stochastic gradient Langevin dynamics on tensors: see `skbayes_sg.dynamics.sgld`.

φ' = φ - (h/2) ĝ(φ) + √h ξ
"""

import math

__all__ = ["update"]


def update(state_out, gradient, noise, h, parameters):
    """Take one step; the arguments are those of `skbayes_sg.dynamics.Dynamics`, as tensors."""
    del parameters
    phi = state_out[0]
    phi.add_(gradient, alpha=-0.5 * h).add_(noise, alpha=math.sqrt(h))
