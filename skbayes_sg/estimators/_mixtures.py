"""Predictions of a number whose law is a mixture of normal laws, one for each draw."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base import weights as weighting
from .._base.typing import ArrayLike, MatrixLike, RandomState
from .._base.validation import check_count, check_data, check_probabilities
from ..factorisation import mixtures
from ._intervals import CentralIntervals

__all__ = ["MixturePredictions"]


def _components(means, variances):
    """Epistemic and aleatoric standard deviations, (2, rows), from (draws, rows)."""
    return np.sqrt([means.var(axis=0), variances.mean(axis=0)])


class MixturePredictions(CentralIntervals):
    """Predictions of a regressor from its draws.

    A subclass has ``_predicted(X, reduce, in_order=False)``, which calls ``reduce(means,
    variances)`` for blocks of rows, arrays (draws, rows), and joins the results along the last
    axis.
    """

    posterior_: Any
    _predicted: Any

    def predict(
        self, X: MatrixLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Posterior predictive mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        return_std : bool, default=False
            Whether to return the standard deviation of y as well. It includes both the uncertainty
            of the mean and the noise, which `predict_std_components` separates.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,)
            Only if `return_std`.
        """
        mean, std = self._predicted(X, mixtures.mean_and_std)
        return (mean, std) if return_std else mean

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
        epistemic, aleatoric = self._predicted(X, _components)
        return epistemic, aleatoric

    def predict_log_density(self, X: MatrixLike, y: ArrayLike) -> np.ndarray:
        """Log posterior predictive density of observed values, log p(y | x).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        X, y = check_data(self, X, y, reset=False, y_numeric=True)
        rows = iter(np.asarray(y, dtype=np.float64))

        def reduce(means, variances):
            own = np.fromiter(rows, np.float64, means.shape[1])
            return mixtures.log_density(own, means, variances)

        return self._predicted(X, reduce, in_order=True)

    def predict_quantiles(
        self, X: MatrixLike, quantiles: float | Sequence[float] = (0.05, 0.5, 0.95)
    ) -> np.ndarray:
        """Quantiles of the posterior predictive distribution of y, a mixture over all draws.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        quantiles : float or sequence of float in (0, 1), default=(0.05, 0.5, 0.95)

        Returns
        -------
        ndarray of shape (n_rows, n_quantiles), or (n_rows,) for a float
        """
        q = check_probabilities("quantiles", quantiles)
        found = self._predicted(X, partial(mixtures.quantiles_of, np.atleast_1d(q)))
        return found.T if q.ndim else found[0]

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
        check_count("n_samples", n_samples)
        check_is_fitted(self)
        self.posterior_.require_draws()
        rng = streams.of_predictions(streams.seed_of(random_state))
        total = self.posterior_.n_chains * self.posterior_.n_draws
        which = weighting.drawn_at_random(rng, None, n_samples, total)
        return self._predicted(X, partial(mixtures.samples_of, which, rng), in_order=True).T
