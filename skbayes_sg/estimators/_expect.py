"""`expect` of the estimators: from parameters and rows to a posterior, and back."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._callbacks import Progress
from .._validation import Parameters
from ..engine.target import Target
from ..multilevel import MultilevelSGLD
from ..posterior import Posterior
from ..priors import N_COLUMNS

__all__ = ["expect"]


def expect(estimator, func, rtol, atol, rows, method):
    """See `BayesianGLM.expect`; `rows` are X, y and sample_weight."""
    check_is_fitted(estimator)
    method = _method(estimator, method)
    if not callable(func):
        raise TypeError(f"func must be callable, got {func!r}.")
    _check_given(estimator, *rows)
    X, y, weight = estimator._read(*rows, reset=False)
    plan = estimator._fitted_plan(X, y, weight)
    target = _target(estimator, plan, X, *plan.code(y, weight), method)
    shapes, n_extra = estimator._shapes(plan), len(plan.extras)

    def values(theta):
        if n_extra:
            theta = np.concatenate([theta[..., :-n_extra], np.exp(theta[..., -n_extra:])], axis=-1)
        return func(Posterior(theta, shapes, plan.labels))

    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    progress = Progress(estimator, lambda: fitted, task="expect", X=rows[0], y=rows[1])
    found = method.expect(
        target, values, rtol=rtol, atol=atol, watch=lambda share: progress(tuple, share)
    )
    progress.finish(fitted)
    return found


def _method(estimator, method):
    """What was asked for, or the default with the estimator's seed and threads."""
    if method is None:
        return MultilevelSGLD(random_state=estimator.random_state, n_jobs=estimator.n_jobs)
    if not isinstance(method, MultilevelSGLD):
        raise TypeError(f"method must be a MultilevelSGLD object or None, got {method!r}.")
    return method


def _check_given(estimator, X, y, sample_weight):
    """`ValueError` if rows are missing."""
    missing = [name for name, value in (("X", X), ("y", y)) if value is None]
    if missing:
        raise ValueError(
            f"{type(estimator).__name__}.expect needs the rows, which the estimator does not keep: "
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. Give the X "
            "and y of the fit (and its sample_weight)."
        )


def _target(estimator, plan, X, y, weight, method):
    """The posterior of rows under the estimator's prior."""
    flat = np.zeros((len(plan.labels), N_COLUMNS))
    target = Target(
        X, y, weight, plan.model, flat, intercept=bool(estimator.fit_intercept),
        n_jobs=Parameters(method).n_jobs(),
    )  # fmt: skip
    return target.with_prior(estimator._prior_of(target, plan.coef_shape, plan.extras))
