"""Named errors and warnings; every one says what happened and what to do about it."""

from sklearn.exceptions import ConvergenceWarning

try:  # the class scikit-learn's own estimators raise, so that one `except` serves both
    from sklearn.utils._param_validation import InvalidParameterError
except ImportError:  # pragma: no cover - the module is private in scikit-learn

    class InvalidParameterError(ValueError, TypeError):  # type: ignore[no-redef]
        """A constructor parameter has a value that the estimator does not accept."""


__all__ = [
    "CacheWarning",
    "DrawStoreWarning",
    "InvalidParameterError",
    "SamplerConvergenceWarning",
    "SamplerDivergedError",
    "StepSizeWarning",
]


class SamplerDivergedError(FloatingPointError):
    """A chain left the region where the posterior can be.

    Raised when a position is not finite, or is more than a million posterior standard
    deviations from the centre. The message names the chain, the step, the parameter, the
    step size and a step size that is stable. No draws are returned.
    """


class StepSizeWarning(UserWarning):
    """The step size, or the batch size that goes with it, is beyond what was measured safe."""


class SamplerConvergenceWarning(ConvergenceWarning):
    """The chains do not agree, or carry less information than was asked for.

    The message names the parameter with its R-hat and effective sample size, and the remedy.
    """


class DrawStoreWarning(UserWarning):
    """The posterior draws need more memory than scikit-learn's ``working_memory``."""


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept on disk: every new process will compile them again."""
