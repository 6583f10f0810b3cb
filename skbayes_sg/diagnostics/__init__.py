"""Evidence about draws: convergence, and distance from the posterior.

All functions of this package need only draws and scores. Those that need a fitted estimator and its
data are in `skbayes_sg.inspection`.
"""

from .divergence import gaussian_kl, gaussian_wasserstein2, nearest_neighbour_kl
from .score_moments import ScoreMoments, score_moments
from .stein import (
    SteinDiscrepancy,
    coordinate_stein_discrepancy,
    kernel_stein_discrepancy,
    stein_scale,
)
from .step_bias import StepBias, step_bias
from .verdict import Finding, Verdict, check_draws

__all__ = ["Finding", "ScoreMoments", "SteinDiscrepancy", "StepBias", "Verdict", "check_draws"]
__all__ += ["coordinate_stein_discrepancy", "gaussian_kl", "gaussian_wasserstein2"]
__all__ += ["kernel_stein_discrepancy"]
__all__ += ["nearest_neighbour_kl", "score_moments", "stein_scale", "step_bias"]
