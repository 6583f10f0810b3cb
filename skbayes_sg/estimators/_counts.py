"""The base of the regressors of counts: the exposure of each row, in fits and in predictions.

A count has the mean t e^η for an exposure t. In fits t is a label of the row beside the count,
which the kernels of the model read; in predictions log t is added to η.
"""

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from .._base.callbacks import with_callbacks
from .._base.typing import ArrayLike, MatrixLike, RandomState
from .._base.validation import check_exposure, check_total, warn_without_exposure
from ..exceptions import PriorConflictWarning
from ..groups.rows import Exposures
from ..priors import Units
from ..priors.columns import SCALE
from ._base import BayesianGLM
from ._online import where_possible
from ._regression import BayesianRegressor

if TYPE_CHECKING:
    from ..multilevel import Expectation, MultilevelSGLD

__all__ = ["BayesianCountRegressor"]

OF_FIT = """
exposure : array-like of shape (n_rows,), optional
    The time, area, number of persons or other positive amount over which each count was taken. The
    mean of a count is its exposure times :math:`e^\\eta`. None is 1 for all rows.
"""
OF_PREDICTION = """
exposure : array-like of shape (n_rows,), optional
    Exposure of each row. None is 1 for all rows, also after a fit with exposures: predictions are
    then of the count for one unit of exposure.
"""
SCORE = """Coefficient of determination R² of the predicted means, as in scikit-learn.

Parameters
----------
X : {array-like, sparse matrix} of shape (n_rows, n_features)
    New rows.
y : array-like of shape (n_rows,)
    Counts of the rows.
sample_weight : array-like of shape (n_rows,), optional
    Weights of the rows.
exposure : array-like of shape (n_rows,), optional
    Exposure of each row. None is 1 for all rows; after a fit with exposures there is a warning.

Returns
-------
float
    1 if every predicted mean equals the count, and 0 if all are the mean count of the rows.
"""


class Exposed(NamedTuple):
    """Rows with their exposures, in the place of X."""

    X: Any
    exposure: Any


def with_documented_exposure(method, text):
    """The docstring of a method, with the text on one more parameter after the others."""
    before, returns, after = inspect.cleandoc(method.__doc__ or "").partition("\n\nReturns\n")
    return f"{before}{text.rstrip()}{returns}{after}"


def with_exposure(method, *, compares=False):
    """Give a method whose first argument is X the keyword argument `exposure`.

    A method that `compares` observed counts with predictions warns if exposures are missing.
    """

    @wraps(method)
    def exposed(self, X, *args, exposure=None, **options):
        if compares:
            warn_without_exposure(self, exposure, method.__name__)
        # Methods call each other with rows that have their exposures already.
        rows = X if isinstance(X, Exposed) else Exposed(X, exposure)
        return method(self, rows, *args, **options)

    signature = inspect.signature(method)
    last = inspect.Parameter("exposure", inspect.Parameter.KEYWORD_ONLY, default=None)
    exposed.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), last]
    )
    exposed.__doc__ = with_documented_exposure(method, OF_PREDICTION)
    return exposed


class BayesianCountRegressor(BayesianRegressor):
    """Base of regressors of counts, whose models have a log link and the labels count, exposure."""

    _default_priors = BayesianGLM._default_priors
    _grows_exponentially = True
    _row_items = (*BayesianRegressor._row_items, "exposure")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        return self._fit(X, y=y, sample_weight=sample_weight, exposure=exposure)

    @where_possible
    @with_callbacks
    def partial_fit(self, X, y, sample_weight=None, exposure=None):
        return self._partial_fit(X, y, sample_weight, exposure)

    @with_callbacks
    def expect(
        self,
        func: Callable,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        method: "MultilevelSGLD | None" = None,
        exposure: ArrayLike | None = None,
    ) -> "Expectation":
        from ._expect import expect  # multilevel SGLD is imported when it is asked for

        rows = X, y, sample_weight, exposure
        return expect(self, func, rtol, atol, rows, method)

    partial_fit.__doc__ = with_documented_exposure(BayesianRegressor.partial_fit, OF_FIT)
    fit.__doc__ = with_documented_exposure(BayesianRegressor.fit, OF_FIT)
    expect.__doc__ = with_documented_exposure(BayesianGLM.expect, OF_FIT)

    predict = with_exposure(BayesianRegressor.predict)
    predict_std_components = with_exposure(BayesianRegressor.predict_std_components)
    predict_quantiles = with_exposure(BayesianRegressor.predict_quantiles)
    predict_interval = with_exposure(BayesianRegressor.predict_interval)
    predict_log_density = with_exposure(BayesianRegressor.predict_log_density, compares=True)
    sample_y = with_exposure(BayesianRegressor.sample_y)
    score = with_exposure(BayesianRegressor.score, compares=True)
    score.__doc__ = SCORE

    def to_arviz(
        self,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        log_likelihood: bool = False,
        posterior_predictive: bool = False,
        random_state: RandomState = 0,
        exposure: ArrayLike | None = None,
    ) -> Any:
        rows = None if X is None else Exposed(X, exposure)
        asked = {"log_likelihood": log_likelihood, "posterior_predictive": posterior_predictive}
        return super().to_arviz(rows, y, **asked, random_state=random_state)

    to_arviz.__doc__ = with_documented_exposure(BayesianRegressor.to_arviz, OF_PREDICTION)
    _of_likelihoods = with_exposure(BayesianRegressor._of_likelihoods)
    _of_rows_left_out = with_exposure(BayesianRegressor._of_rows_left_out)

    def _checked(self, X, *y):
        X, exposure = X
        found, groups = super()._checked(X, *y)
        if exposure is None:
            return found, groups
        rows = found[0] if y else found
        log_exposure = np.log(check_exposure(exposure, rows.shape[0]))
        if groups is None:
            return found, Exposures(log_exposure)
        return found, groups.with_exposure(log_exposure)

    def _read(self, X, y, sample_weight, exposure=None, reset=True):
        X, y, weight = super()._read(X, y, sample_weight, exposure, reset=reset)
        check_total("The counts in y", y[:, 0] * weight)
        if reset:
            self._has_exposure = exposure is not None
        elif getattr(self, "_has_exposure", exposure is not None) != (exposure is not None):
            before, now = ("none", "exposures")[:: 1 if exposure is not None else -1]
            raise ValueError(
                f"{type(self).__name__}: the rows of the fit had {before}, and these have {now}. "
                "Give all rows an exposure, 1 where there is no other, or none."
            )
        return X, y, weight

    def _check_response(self, y, exposure=None):
        """The labels (n_rows, 2): checked counts and exposures."""
        if y.min() < 0.0:
            raise ValueError(
                f"y must hold counts, none negative, for {type(self).__name__}; got {y.min():g} to "
                f"{y.max():g}."
            )
        y = super()._check_response(y)
        self._warn_of_rates(y)
        return np.column_stack([y, check_exposure(exposure, len(y))])

    def _warn_of_rates(self, y):
        """`UserWarning` if y holds numbers that are not whole, which may be rates."""
        broken = np.flatnonzero(y != np.floor(y))
        if len(broken):
            warnings.warn(
                f"y holds numbers that are no counts, such as {y[broken[0]]:g} in row {broken[0]}: "
                f"coefficients are those that {type(self).__name__} gives to them, but predictions "
                "are of whole numbers. If these are rates, pass the counts, and exposure.",
                UserWarning,
                stacklevel=2,
            )

    def _prior_of(self, target, coef_shape, extras):
        prior = super()._prior_of(target, coef_shape, extras)
        if not target.labels()[:, 0].any():
            self._warn_without_events(prior, target.n_features)
        return prior

    def _warn_without_events(self, prior, d):
        """`PriorConflictWarning` if all counts are zero and columns far from zero widen the prior.

        The prior of the intercept, over columns `d`, then decides how low the rates may be.
        """
        if not self.fit_intercept or self.intercept_prior is not None:
            return
        default, scale = self._default_priors["intercept_prior"].scale, prior[d, SCALE]
        if scale > default:
            warnings.warn(
                "All counts are zero, so that the prior alone says how low the rates may be; and "
                f"the default prior of the intercept is N(0, {scale:.3g}²) beside columns far from "
                f"zero, N(0, {default:.3g}²) beside others. Subtract the mean from such columns, "
                "as StandardScaler does.",
                PriorConflictWarning,
                stacklevel=2,
            )

    def _units(self, target):
        return Units(columns=target.column_spreads)
