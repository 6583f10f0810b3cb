"""Measures of predictive distributions: scorers for model selection, metrics, and a check."""

from .amari import amari_distance
from .predictive_check import PredictiveCheck, posterior_predictive_check
from .scores import (
    calibration_error,
    crps,
    interval_coverage,
    ksd_scorer,
    neg_calibration_error_scorer,
    neg_coverage_error_scorer,
    neg_crps_scorer,
    neg_log_predictive_density_scorer,
    unwrapped,
)
from .scores import given as given

__all__ = ["PredictiveCheck", "calibration_error", "crps", "interval_coverage", "ksd_scorer"]
__all__ += ["neg_calibration_error_scorer", "neg_coverage_error_scorer", "neg_crps_scorer"]
__all__ += ["neg_log_predictive_density_scorer", "posterior_predictive_check"]
__all__ += ["amari_distance", "unwrapped"]
