"""Named errors and warnings; every message says what happened and what to do about it."""

from sklearn.exceptions import ConvergenceWarning

try:  # the class scikit-learn's own estimators raise, so that one `except` serves both
    from sklearn.utils._param_validation import InvalidParameterError
except ImportError:  # pragma: no cover - the module is private in scikit-learn

    class InvalidParameterError(ValueError, TypeError):  # type: ignore[no-redef]
        """A constructor parameter has a value that the estimator does not accept."""


__all__ = ["AccuracyNotReachedError", "AlteredTargetWarning", "CacheWarning", "CouplingError"]
__all__ += ["DrawStoreWarning", "InvalidParameterError", "SamplerConvergenceWarning"]
__all__ += ["SamplerDivergedError"]
__all__ += ["HeavyTailWarning", "LongRunWarning", "MultimodalPosteriorWarning", "ParetoKWarning"]
__all__ += ["StepSizeWarning"]
__all__ += ["SavedVersionError", "SavedVersionWarning"]
__all__ += ["PriorConflictWarning", "SubposteriorWarning", "UnusedParameterWarning"]
__all__ += ["UpdateWarning", "WidePriorWarning"]


class SamplerDivergedError(FloatingPointError):
    """A chain left the region where the posterior can be.

    Raised when a position is not finite, or is more than a million posterior standard deviations
    from the centre, when an exact sampler accepts hardly any move, and when a parameter whose
    logarithm was sampled is beyond the range of floats. The message names chain, step, parameter,
    step size and batch size, as far as there are such, and the remedy. No draws are returned, and
    the estimator is as it was before `fit`.
    """


class CouplingError(ArithmeticError):
    """Coupled paths with a fine and a coarse step do not meet: no accuracy can be stated.

    Raised by `skbayes_sg.multilevel.MultilevelSGLD` where the variance of the difference between
    two levels does not fall with the step, by more than its own error explains; where the posterior
    has several modes, or is much wider than the curvature at the mode suggests, so that paths
    forget their starting points slowly; and where the result is not the mean of independent draws.
    The message states what was measured and the remedy.
    """


class AccuracyNotReachedError(RuntimeError):
    """The requested accuracy needs more rows, or finer steps, than were allowed.

    Parameters
    ----------
    message : str
    result : skbayes_sg.multilevel.Expectation
        The estimate so far, with its errors.
    """

    def __init__(self, message, result=None):
        super().__init__(message)
        self.result = result


class SavedVersionError(ValueError):
    """A saved estimator has a form that this version of the package cannot read.

    Raised by `pickle.load`, `joblib.load` and `skops.io.load`. The message names the version that
    saved it and the oldest version whose estimators can be read.
    """


class SavedVersionWarning(UserWarning):
    """A saved estimator is from a newer version of the package than the one that loads it.

    It may contain what this version does not know of. The message names both versions.
    """


class AlteredTargetWarning(UserWarning):
    """Chains sample another law than the posterior of the module as it predicts.

    Issued by the estimators of `skbayes_sg.torch` if dropout or batch normalisation are active
    while chains run, and if a data set returns other rows when it is read again, as data
    augmentation does. The message names the cause, the law, and the remedy.
    """


class StepSizeWarning(UserWarning):
    """The step size, or the batch size that goes with it, exceeds what was measured to be safe.

    Issued if coupled chains, with the time step in use and with half of it, are more than half a
    posterior standard deviation apart; if step size and gradient noise are predicted to raise a
    posterior variance by more than a tenth; if Gibbs sweeps from draws of a factorisation show that
    the step has widened predictions by more than a tenth, or moved the noise; if the step size has
    not settled after five pilot runs; and if an exact sampler accepts less than a fifth of its
    moves. The message names the remedy: "auto", a smaller step, more rows a step, or an exact
    sampler ("hmc", of factorisations "gibbs").
    """


class SamplerConvergenceWarning(ConvergenceWarning):
    """The chains do not agree, or carry less information than was requested.

    Issued for an R-hat above 1.05, or an effective sample size (for bulk, tails, mean or standard
    deviation) below a tenth of the draws. The message names the parameter with its R-hat and
    effective sample size, and the remedy.
    """


class MultimodalPosteriorWarning(UserWarning):
    """The posterior has several modes, and the draws may not tell how much each weighs.

    Issued if chains do not cross between the modes that were found, so that their draws have the
    shares of the starting points; if there are more modes than are looked for; and if a mode was
    left out in which the noise is the rounding error of rows that are fitted exactly. The message
    has the modes' values of the parameter in which they differ most, their shares of the evidence
    and of the draws, and the remedy.
    """


class ParetoKWarning(UserWarning):
    """Leave-one-out estimates of some rows cannot be trusted.

    Issued by `skbayes_sg.model_selection.loo` if the Pareto k of importance weights is too large:
    above 0.7, or less for fewer than 2200 draws. The posterior without such a row differs so much
    from that of all rows that the draws say little about it, and its estimate is too favourable as
    a rule. The message has the number of these rows, the largest k, and the remedy.
    """


class PriorConflictWarning(UserWarning):
    """A prior determines a result that the data alone would determine differently.

    Issued if the default prior of the intercept moves the intercept by more than one posterior
    standard deviation. The intercept is the predictor where all columns are zero. The prior gives
    way to columns far from zero, such as years, but not to many columns of which none is far from
    zero by itself, such as indicators that are mostly one. The message has the intercept and the
    remedy. The warning is also issued if all counts are zero and columns are far from zero, because
    the prior then makes rates far too small; if the data alone are more than five standard
    deviations from a half-normal prior of a positive parameter, such as a noise or the shape of a
    likelihood of your own; if they are as far from the default prior of a coefficient that this
    prior keeps near zero, because its column varies too little; if a column of `group_slopes` is
    far from zero in a fit without an intercept, where the effects of levels are at zero; and if
    sources of `BayesianICA` have lighter tails than a normal distribution, while the model gives
    them those of a logistic distribution.
    """


class WidePriorWarning(UserWarning):
    """The default prior of the coefficients is too wide for so few rows.

    Issued if `prior` is left at its default and the effective number of parameters, the sum of 1 -
    v/v₀ over the coefficients with posterior variance v and prior variance v₀, is more than 0.4
    times the number of rows, by weight (and of predictors), and than five. The posterior is right,
    but the coefficients then follow the noise of the rows, and predictions of new rows may be worse
    than without any column, as those of least squares are. The message has the number and the
    remedy, a prior whose scale is learned.
    """


class HeavyTailWarning(UserWarning):
    """A predicted mean or standard deviation is decided by few draws, if it exists at all.

    Issued by predictions of counts where the data say little of a predictor, whose exponential is
    then the mean: for categories that were not in the data, with as many columns as rows, and for
    levels of groups that were not in the data if the levels of the data are few. The message has
    the number of rows and the remedy: quantiles are reliable.
    """


class LongRunWarning(UserWarning):
    """The fit will take long.

    Issued before chains run that are predicted to take more than ten seconds (a minute for
    networks, ratings and topics), whether they were asked for or "auto" found nothing cheaper. The
    message states the predicted time, and how to reduce it.
    """


class UnusedParameterWarning(UserWarning):
    """A parameter was given that has no effect on this fit.

    Issued for a gradient or a subsampling scheme if the batch size is the number of rows: every
    step then uses the full gradient; for `thin` and `n_warmup` if the draws are independent; and
    for `intercept_prior` without an intercept, `noise_prior` with a known noise, and `combine`
    without subposteriors. The message names the parameters.
    """


class SubposteriorWarning(UserWarning):
    """Subposteriors are further from Gaussian, or from each other, than their combination allows.

    Issued if the means of the shards are further apart than their widths explain, and with
    ``combine="consensus"`` and "parametric" if a posterior mean is predicted to be off by more
    than a tenth of its standard deviation, or a variance by more than a fifth; and for kernel
    products that rest on few draws of a shard, by `skbayes_sg.combine.kernel_product` and
    `skbayes_sg.combine.semiparametric_product` as well. It is also issued, before they are sampled,
    for shards with fewer rows than parameters. The message names the remedy: fewer subposteriors,
    another combination, or none.
    """


class DrawStoreWarning(UserWarning):
    """The requested posterior draws need more memory than ``working_memory``.

    ``working_memory`` is a setting of `sklearn.set_config`, 1024 MiB by default. If the draws do
    not fit into free memory at all, `fit` raises a `MemoryError` before it samples.
    """


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept on disk: every new process will compile them again.

    Set the environment variable ``NUMBA_CACHE_DIR`` to a writable folder.
    """


class UpdateWarning(UserWarning):
    """The quadratics that stand for earlier rows in `partial_fit` may have moved the posterior.

    Issued if `update_error_` exceeds 0.6 posterior standard deviations: the rows came sorted, or
    were replaced by a quadratic while the posterior was wide. The message names the remedy.
    """
