"""Plots of a posterior, of the evidence for it and of its predictions; one display is one file.

The displays work as those of scikit-learn do. ``from_estimator`` and ``from_posterior`` make a
display and draw it at once; `plot` draws it again, on other axes if you want. Estimators may be
pipelines and searches. Displays need matplotlib (``pip install "skbayes_sg[plot]"``). For all other
plots there is `Posterior.to_arviz`.
"""

from .autocorrelation import AutocorrelationDisplay
from .calibration import CoverageDisplay, ReliabilityDisplay
from .coefficient import CoefficientDisplay
from .compare import CompareDisplay
from .effects import EffectsDisplay
from .gradient_noise import GradientNoiseDisplay
from .interval import IntervalDisplay
from .pair import PairDisplay
from .predictive_check import PredictiveCheckDisplay
from .probability import ProbabilityDisplay
from .step_bias import StepBiasDisplay
from .trace import TraceDisplay

__all__ = ["AutocorrelationDisplay", "GradientNoiseDisplay", "IntervalDisplay", "PairDisplay"]
__all__ += ["CoefficientDisplay", "CompareDisplay", "CoverageDisplay", "EffectsDisplay"]
__all__ += ["PredictiveCheckDisplay"]
__all__ += ["ProbabilityDisplay", "ReliabilityDisplay"]
__all__ += ["StepBiasDisplay", "TraceDisplay"]
