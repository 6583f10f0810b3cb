"""Pictures of a posterior, of the evidence for it and of its predictions, one display a file.

They are used as scikit-learn's displays are: each is made by ``from_estimator`` or
``from_posterior``, which draw it at once, and keeps what it shows; `plot` draws it again, elsewhere
or otherwise. They need matplotlib (``pip install "skbayes_sg[plot]"``). For everything else there
is `Posterior.to_arviz`.
"""

from .autocorrelation import AutocorrelationDisplay
from .calibration import CoverageDisplay, ReliabilityDisplay
from .gradient_noise import GradientNoiseDisplay
from .interval import IntervalDisplay
from .pair import PairDisplay
from .step_bias import StepBiasDisplay
from .trace import TraceDisplay

__all__ = ["AutocorrelationDisplay", "GradientNoiseDisplay", "IntervalDisplay", "PairDisplay"]
__all__ += ["CoverageDisplay", "ReliabilityDisplay", "StepBiasDisplay", "TraceDisplay"]
