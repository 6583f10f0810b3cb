"""Evidence on draws: convergence, distance from the posterior. Needs only draws and scores.

What needs a fitted estimator and its data is in modules of its own (`gradient_noise`).
"""

from .divergence import gaussian_kl, gaussian_wasserstein2, nearest_neighbour_kl
from .stein import SteinDiscrepancy, kernel_stein_discrepancy, stein_scale

__all__ = [
    "SteinDiscrepancy",
    "gaussian_kl",
    "gaussian_wasserstein2",
    "kernel_stein_discrepancy",
    "nearest_neighbour_kl",
    "stein_scale",
]
