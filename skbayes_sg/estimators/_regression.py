"""The base of all regressors: targets, predictions with uncertainty, scales of priors."""

import functools
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base import weights as weighting
from .._base.callbacks import with_callbacks
from .._base.tables import is_dask
from .._base.typing import ArrayLike, MatrixLike, RandomState
from .._base.validation import (
    Parameters,
    check_count,
    check_data,
    check_probabilities,
    check_size,
    check_weights,
    drop_unweighted,
    widen_small,
)
from ..groups.rows import AS_DRAWN, Components, nodes_of
from ..kernels.layout import FACT_Y
from ..models import predictive
from ..models.count_tails import CountTails
from ..priors import Flat, Units
from ..priors.families import resolve
from ..shards.dask import parts_of
from ._base import BayesianGLM, all_or_nothing
from ._few_rows import naming_exact_fits
from ._group_checks import has_groups
from ._groups import fit_groups
from ._intervals import CentralIntervals
from ._online import update, where_possible
from ._shards import Plan

__all__ = ["BayesianRegressor"]

# The smallest standard deviation of the noise (its floor), as a share of the largest absolute
# response, and of the standard deviation of the response.
ROUNDING = 1e-12, 1e-9
# The first share for a response from which its mean is subtracted: a few last digits.
OF_DIGITS = 2.0**-48
# Largest absolute response, in standard deviations, above which the mean is subtracted.
FAR = 1e3
OF_ZEROS = 1e-14  # the floor for a response that is zero in all rows and has no rounding error


def _spread(y, weight):
    """Weighted standard deviation of y, and its largest absolute value."""
    mean = np.average(y, weights=weight)
    return np.sqrt(np.average((y - mean) ** 2, weights=weight)), np.abs(y).max()


def _divided(divide, y, weight):
    """Responses and weights as the model takes them: weights divided by a number."""
    return y, weight / divide


class BayesianRegressor(CentralIntervals, RegressorMixin, BayesianGLM):
    """Base of the estimators whose model has a predictive law (`skbayes_sg.models.predictive`).

    A subclass defines the constructor, as `BayesianGLM` says, and its model `_law`; if that has
    positive parameters, `_recipe` returns their names, and `_extras` their draws.
    """

    _auto_scale = True
    _grows_exponentially = False  # whether the mean of y grows exponentially with the predictor
    _default_priors: ClassVar[dict] = {"intercept_prior": Flat()}
    _law: Any  # the model, a law of y given the predictor and the positive parameters

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            The rows. Dense arrays of float64 or float32 in C order and CSR matrices are used as
            they are; other forms are converted once. Memory-mapped arrays stay on disk.
        y : array-like of shape (n_rows,)
            The response.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: 2 counts the row twice, and 0 leaves it out.

        Returns
        -------
        self : estimator
            The estimator, with the attributes of the class docstring.
        """
        return self._fit(X, y=y, sample_weight=sample_weight)

    def _fit(self, X, **rows):
        """Fit the estimator, and return it; `rows` has y and the other items of `_row_items`."""
        with all_or_nothing(self):
            Parameters(self).flag("fit_intercept")
            if has_groups(self):
                return fit_groups(self, X, rows)
            if is_dask(X, *rows.values()):
                return self._fit_parts(parts_of(X, **rows))
            X, y, weight = self._read(X, *rows.values())
            plan = self._first_plan(X, y, weight)
            with naming_exact_fits(self, X, y, weight, plan.model):
                return self._sample(X, y, weight, plan)

    @where_possible
    @with_callbacks
    def partial_fit(self, X, y, sample_weight=None):
        """Update the posterior by further rows, without the rows of earlier calls.

        Batches that come one after the other lead to the posterior of all rows, and the draws are
        made anew in each call. For `BayesianLinearRegression` it is the posterior that `fit` has on
        all rows together
        (``tests/estimators/test_partial_fit.py::test_batches_of_linear_regression_are_all_rows``).
        For other models it is approximate: the new rows enter exactly, and the log-likelihood of
        each earlier row is replaced by a quadratic function, the best approximation under the
        posterior at the time when the row was new. `update_error_` says how far this may move
        posterior means (``examples/benchmarks/online.py``). `fit` keeps nothing of its rows: in a
        call after `fit`, also for linear regression, they are represented by such a quadratic,
        which follows from the draws and the prior.

        Priors that were changed by `set_params` are used in the next call. After `fit`, another
        prior needs fixed scales, since "auto" scales remain those of the fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            New rows. The first call may have all rows that there are.
        y : array-like of shape (n_rows,)
            Responses of the new rows.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the new rows.

        Returns
        -------
        self : estimator
            The estimator, with the attributes of the class docstring and two more:
            ``n_samples_seen_``, the number of rows in all calls, and ``update_error_``, an estimate
            to first order of how many posterior standard deviations the quadratics may have moved a
            posterior mean.

        Raises
        ------
        ValueError
            For rows that cannot be used, after fits with shards, and for parameters that were
            changed where that is not possible: those of the likelihood, the kind of prior, and
            after `fit` priors with "auto" scales.
        AttributeError
            For samplers with stochastic gradients, and if a parameter of steps or of subposteriors
            is given.
        """
        return self._partial_fit(X, y, sample_weight)

    def _partial_fit(self, X, *rows):
        """Update the posterior by further rows; `rows` has the items of `_row_items` after X."""
        with all_or_nothing(self):
            Parameters(self).flag("fit_intercept")
            X, y, weight = self._read(X, *rows, reset=not hasattr(self, "posterior_"))
            return update(self, X, y, weight, self._plan_for(X.shape[1]))

    def _recipe(self):
        """(model, extra parameters, number by which weights are divided).

        The dict of extra parameters maps their names to the constructor's parameters with their
        priors.
        """
        return self._law, {}, 1.0

    def _read(self, X, y, sample_weight, *more, reset=True):
        """Checked rows in a form that kernels can read, with responses and weights.

        Rows of weight zero are left out.
        """
        X, y = check_data(self, X, y, reset=reset, y_numeric=True)
        y = self._check_response(y.astype(np.float64, copy=False), *more)
        X, y, weight = drop_unweighted(X, y, check_weights(sample_weight, X))
        return widen_small(X), y, weight

    def _plan(self, summary):
        """The `Plan` of a fit of shards, given the `ShardSummary` of all of them."""
        Parameters(self).flag("fit_intercept")
        return self._plan_for(summary.n_features)

    def _plan_for(self, n_features):
        """The `Plan` for a number of columns."""
        model, extras, divide = self._recipe()
        labels = self._labels(n_features) + list(extras)
        return Plan(model, (n_features,), labels, extras, partial(_divided, divide))

    def _first_plan(self, X, y, weight):
        """The `Plan` of a fit of these rows."""
        del y, weight
        return self._plan_for(X.shape[1])

    def _fitted_plan(self, X, y, weight):
        """The `Plan` of the fit, for rows that need not be those of the fit."""
        del y, weight
        return self._plan_for(X.shape[1])

    def _check_response(self, y):
        """The response as it is; `ValueError` for values that are too large or too small."""
        check_size(self, "y", np.abs(y).max())
        return y

    def _labels(self, n_features):
        """One label for each coefficient, and one for the intercept if there is one."""
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(n_features)])
        return [f"coef[{name}]" for name in names] + ["intercept"] * self.fit_intercept

    def _origin_of(self, y, weight):
        """The mean of a response far from zero, where subtracting it moves the intercept alone.

        It is 0 for all other responses, also for constant ones. Without the mean, rounding errors
        of sums over rows are those of the spread of the response, and not those of its size, which
        are some thousand last digits of the response.
        """
        if not (self._law.location_scale and self.fit_intercept):
            return 0.0
        spread, size = _spread(y, weight)
        if not isinstance(resolve(self._given("intercept_prior"), "intercept_prior"), Flat):
            return 0.0
        is_far = 4.0 * OF_DIGITS * size < spread < size / FAR
        return float(np.average(y, weights=weight)) if is_far else 0.0

    def _units(self, target):
        spread, size = _spread(target.data.facts[:, FACT_Y], target.weight)
        of_size = OF_DIGITS if self._origin_of_y else ROUNDING[0]
        size = max(size, abs(self._origin_of_y))
        floor = max(of_size * size, ROUNDING[1] * spread) or OF_ZEROS
        response = spread if spread > floor else size or 1.0
        return Units(float(response), target.column_spreads, float(floor))

    @property
    def _is_discrete(self):
        return self._law.discrete

    def _extras(self):
        """Draws of the model's positive parameters, each (n_chains * n_draws,)."""
        return ()

    # -- prediction ---------------------------------------------------------------------------

    def _of_law(self, X, reduce, draws=slice(None), rng=None):
        """``reduce(eta, extras, components)`` of all blocks of predictors, joined along the rows.

        `eta` has the shape (rows, components), and `extras` the values of the positive parameters
        in each component.
        """
        check_is_fitted(self)
        extras = [values[draws] for values in self._extras()]

        def of_block(eta, components):
            own = [components.values(values) for values in extras]
            return reduce(eta[:, :, 0], own, components)

        return self._of_predictors(X, of_block, draws, rng)

    @property
    def _is_a_line(self):
        """Whether y is the predictor plus noise of the same law in all rows, without groups."""
        return self._law.normal and self._groups is None

    def _of_lines(self, X, of_mean, spread=True):
        """Means and epistemic variances of y, (n_rows,) each, and the one aleatoric variance.

        `of_mean` are the weights of the draws in the means. Without `spread` there are no variances
        of the means.
        """
        check_is_fitted(self)
        self.posterior_.require_draws()
        X, _ = self._checked(X)
        B, b = self._linear_draws(slice(None))
        theta, weights = np.column_stack([B[:, 0], b]), self._pooled_weights
        mean, epistemic = predictive.moments_of_lines(X, theta, of_mean, weights, spread)
        noise = np.broadcast_to(self._law.variance(0.0, *self._extras()), len(theta))
        return mean, epistemic, weighting.mean(noise, weights, axis=0)

    def predict(
        self, X: MatrixLike, return_std: bool = False, control_variate: str | None = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Posterior predictive mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        return_std : bool, default=False
            Whether to return the standard deviation of y as well. It includes both the uncertainty
            of the mean and the noise, as in `sklearn.linear_model.BayesianRidge`;
            `predict_std_components` separates them.
        control_variate : {None, "linear", "quadratic"}, default=None
            If not None, the scores of the draws are used to reduce the Monte Carlo error of the
            mean: see `Posterior.control_weights`. Draws of the sampler "exact" have no scores.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,)
            Only if `return_std`.

        Warns
        -----
        HeavyTailWarning
            If a few draws dominate predicted counts, as for levels of group columns and for
            categories that were not in the data.
        """
        weights = of_mean = self._pooled_weights if hasattr(self, "posterior_") else None
        if control_variate is not None:
            check_is_fitted(self)
            of_mean = self.posterior_.control_weights(control_variate)
        if self._is_a_line:
            mean, epistemic, aleatoric = self._of_lines(X, of_mean, spread=return_std)
            return (mean, np.sqrt(epistemic + aleatoric)) if return_std else mean
        tails = CountTails([], [])

        def both(eta, extras, components):
            means = self._law.mean(eta, *extras)
            mean = weighting.mean(means, components.weights(of_mean), axis=1)
            if self._grows_exponentially:
                tails.look(means, mean, components, weights, return_std)
            if not return_std:
                return mean
            own = components.weights(weights)
            variance = predictive.variances(self._law, eta, extras, own, means).sum(axis=0)
            return np.column_stack([mean, np.sqrt(variance)])

        found = self._of_law(X, both)
        tails.warn()
        return (found[:, 0], found[:, 1]) if return_std else found

    def predict_std_components(self, X: MatrixLike) -> tuple[np.ndarray, np.ndarray]:
        """The two parts of the uncertainty of y, of which more data reduce only the first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        epistemic : ndarray of shape (n_rows,)
            Posterior standard deviation of the mean of y.
        aleatoric : ndarray of shape (n_rows,)
            Square root of the posterior mean of the variance of y about its mean. The squares of
            both parts add up to the square of the standard deviation that `predict` returns.
        """
        if self._is_a_line:
            _, epistemic, aleatoric = self._of_lines(X, None)
            return np.sqrt(epistemic), np.full(len(epistemic), np.sqrt(aleatoric))
        tails = CountTails([], [])

        def parts(eta, extras, components):
            means = self._law.mean(eta, *extras)
            weights = components.weights(self._pooled_weights)
            if self._grows_exponentially:
                mean = weighting.mean(means, weights, axis=1)
                tails.look(means, mean, components, self._pooled_weights, spread=True)
            return np.sqrt(predictive.variances(self._law, eta, extras, weights, means)).T

        found = self._of_law(X, parts)
        tails.warn()
        return found[:, 0], found[:, 1]

    def predict_quantiles(
        self, X: MatrixLike, quantiles: Sequence[float] | float = (0.05, 0.5, 0.95)
    ) -> np.ndarray:
        """Quantiles of the posterior predictive distribution of y.

        These are quantiles of the mixture over all draws, computed from its distribution function:
        every call gives the same result, the quantiles of a row do not depend on other rows, and
        they never decrease as the probability grows. Between the probabilities 0.01 and 0.99 a
        quantile is within 0.01 predictive standard deviations of the exact one, or its own
        probability differs from q by at most one hundredth of q or 1 - q, whichever is smaller
        (``tests/models/test_mixture_quantiles.py::test_stated_error_for_normal_noise`` and those
        after it). Quantiles of counts are whole numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        quantiles : float or sequence of float in (0, 1), default=(0.05, 0.5, 0.95)

        Returns
        -------
        ndarray of shape (n_rows, n_quantiles), or (n_rows,) for a float
        """
        from ..models.mixture_quantiles import mixture_of  # many kernels, for this method only

        q = check_probabilities("quantiles", quantiles)
        check_is_fitted(self)
        self.posterior_.require_draws()
        weights, extras = self._pooled_weights, self._extras()
        n_draws = self.posterior_.n_chains * self.posterior_.n_draws
        mixture = mixture_of(self._law, extras, weights, n_draws)

        @functools.cache
        def of_cold_rows():
            """The mixture for rows with unknown levels, where each draw has several components."""
            several = Components(nodes_of(len(mixture.order))[1])
            own = [several.values(values[mixture.order]) for values in extras]
            share = several.weights(None if weights is None else weights[mixture.order])
            return mixture_of(self._law, own, share, len(share))

        def of_block(eta, components):
            eta, own = eta[:, :, 0], mixture
            if components is not AS_DRAWN:
                own = of_cold_rows()
                eta = eta[:, own.order]
            return own.quantiles(eta, np.atleast_1d(q))

        found = self._of_predictors(X, of_block, mixture.order)
        return found if q.ndim else found[:, 0]

    def predict_log_density(self, X: MatrixLike, y: ArrayLike) -> np.ndarray:
        """Log posterior predictive density of observed values, log p(y | x).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_rows,)
            For a count that is not a whole number the likelihood of the fit, with the gamma
            function in the place of the factorial; -inf for a negative count.
        """
        check_is_fitted(self)
        weights = self._pooled_weights

        def of_block(rows, log_likelihood):
            return weighting.log_mean_exp(log_likelihood, weights, axis=1)

        return self._of_likelihoods(X, y, of_block)

    def _likelihood_of(self, y):
        y, extras = y.astype(np.float64), self._extras()

        def log_likelihood(rows, eta, components):
            own = [components.values(values) for values in extras]
            return self._law.log_density(y[rows, None], eta[:, :, 0], *own)

        return log_likelihood

    def sample_y(
        self, X: MatrixLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> np.ndarray:
        """Draws from the posterior predictive distribution of y.

        Each column of the result uses one draw of the posterior for all rows, so that rows depend
        on each other as they should: sums and differences over rows have the correct spread.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        n_samples : int, default=1
            Number of draws for each row.
        random_state : int, RandomState instance or None, default=0
            Seed of the choice of posterior draws and of the noise.

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        self.posterior_.require_draws()
        rng = streams.of_predictions(streams.seed_of(random_state))
        total = self.posterior_.n_chains * self.posterior_.n_draws
        draws = weighting.drawn_at_random(rng, self._pooled_weights, n_samples, total)
        return self._responses(X, rng, draws)

    def _responses(self, X, rng, draws=slice(None)):
        """A random response of each row for each of some draws, (n_rows, draws)."""

        def of_block(eta, extras, components):
            del components
            return self._law.draw(rng, eta, *extras)

        return self._of_law(X, of_block, draws, rng)
