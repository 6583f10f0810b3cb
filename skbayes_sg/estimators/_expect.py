"""The method `expect` of the estimators: expectations under the posterior of given rows."""

import warnings

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._base import weights as weighting
from .._base.callbacks import Progress
from .._base.columns import weighted_moments
from .._base.validation import Parameters
from ..multilevel import MultilevelSGLD
from ..posterior import Posterior
from ._centring import check_near

__all__ = ["expect"]

# Posterior standard deviations, beyond the errors of both estimates, from which on an expectation
# and the mean of the draws of the fit are taken to be those of different rows.
ELSEWHERE = 0.5
SOME = 400  # most draws of the fit whose mean an expectation is compared with


def expect(estimator, func, rtol, atol, rows, method):
    """The `Expectation` that `BayesianGLM.expect` returns.

    `rows` are X, y, sample_weight and the other items of a row, such as an exposure.
    """
    check_is_fitted(estimator)
    method = _method(estimator, method)
    if not callable(func):
        raise TypeError(f"func must be callable, got {func!r}.")
    _check_given(estimator, *rows[:2])
    plan, target = estimator._posterior_of(*rows, n_jobs=Parameters(method).n_jobs())
    check_near(estimator, *weighted_moments(target.X, target.weight)[1:])
    shapes = plan.shapes(bool(estimator.fit_intercept))

    def values(theta):
        return func(Posterior(plan.parameters(theta), shapes, plan.labels, classes=plan.classes))

    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    progress = Progress(estimator, lambda: fitted, task="expect", X=rows[0], y=rows[1])
    found = method.expect(
        target, values, rtol=rtol, atol=atol, watch=lambda share: progress(tuple, share)
    )
    progress.finish(fitted)
    _warn_if_elsewhere(estimator, func, found, estimator._difference_from_fit(*rows))
    return found


def _some_draws(posterior):
    """A posterior of at most `SOME` evenly spaced draws of equal weight.

    A function of all draws could return arrays that are too large.
    """
    n, w = max(1, SOME // posterior.n_chains), posterior.weights
    if w is None:
        chosen = np.unique(np.linspace(0, posterior.n_draws - 1, n).astype(int))
    else:
        chosen = weighting.representatives(w, n)
    flat, classes = posterior.flat[:, chosen], posterior.classes
    return Posterior(flat, posterior.shapes, posterior.labels, classes=classes)


def _warn_if_elsewhere(estimator, func, found, difference):
    """`UserWarning` if rows are not those of the fit.

    Either there is a `difference`, or the draws of the fit have another mean.
    """
    if difference:
        warnings.warn(
            f"The rows are not those of the fit: {type(estimator).__name__} {difference}. It is "
            "the expectation under the posterior of the rows that were given.",
            UserWarning,
            stacklevel=4,
        )
        return
    if estimator.posterior_.n_draws < 2:  # if only moments were kept, there are no draws
        return
    values = np.asarray(func(_some_draws(estimator.posterior_)), dtype=np.float64)
    mean, sd = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
    ess = np.fmin(estimator.diagnostics_.get("min_ess", np.nan), values.shape[0] * values.shape[1])
    error = np.hypot(found.standard_error, sd / np.sqrt(np.fmax(ess, 1.0)))
    with np.errstate(divide="ignore", invalid="ignore"):  # sd is 0 for values that never change
        away = np.maximum(np.abs(found.value - mean) - 5.0 * error, 0.0) / sd
    if np.max(np.nan_to_num(away), initial=0.0) > ELSEWHERE:
        warnings.warn(
            f"The expectation is {np.nanmax(away):.1f} posterior standard deviations from the mean "
            f"of the draws of {type(estimator).__name__}. X and y are probably not the rows of the "
            "fit, which in a pipeline are the transformed ones: it is the expectation under the "
            "posterior of the rows that were given.",
            UserWarning,
            stacklevel=4,
        )


def _method(estimator, method):
    """The `MultilevelSGLD` that was given, or the default with the estimator's seed and threads."""
    if method is None:
        return MultilevelSGLD(random_state=estimator.random_state, n_jobs=estimator.n_jobs)
    if not isinstance(method, MultilevelSGLD):
        raise TypeError(f"method must be a MultilevelSGLD object or None, got {method!r}.")
    return method


def _check_given(estimator, X, y):
    """`ValueError` if X or y is None."""
    missing = [name for name, value in (("X", X), ("y", y)) if value is None]
    if missing:
        raise ValueError(
            f"{type(estimator).__name__}.expect needs the rows, which the estimator does not keep: "
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. Give the X "
            "and y of the fit (and its sample_weight)."
        )
