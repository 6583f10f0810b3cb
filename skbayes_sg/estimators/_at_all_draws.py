"""Predictors of rows at all draws of the posterior, in blocks that stay in cache."""

from functools import partial

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .._base.threads import in_threads, one_blas_thread
from .._base.validation import check_data
from ..groups.rows import AS_DRAWN
from ..models.predictive import affine

__all__ = ["BLOCK_BYTES", "AtAllDraws"]

# Bytes of a block of predictors, which stays in cache until it is reduced; and of one of rows whose
# effects are integrated out, of which each needs dozens of likelihoods.
BLOCK_BYTES, INTEGRATED_BYTES = 1 << 23, 1 << 18


class AtAllDraws:
    """Base of estimators with linear predictors: functions of these at rows and all draws."""

    _has_one_peak = True  # whether the likelihood of a row is log-concave in its predictor
    _is_discrete = True  # whether predictions of rows are probabilities, and not densities

    @property
    def _pooled_weights(self):
        """Weights of the draws of all chains, one chain after the other; None if all the same."""
        return self.posterior_.pooled_weights

    def _checked(self, X, *y):
        """Checked rows for predictions (with their responses, if given), and an offset.

        The offset is `Exposures` or `GroupRows` of `skbayes_sg.groups.rows`, which are added to
        the predictors of the rows, or None.
        """
        numeric = bool(y) and not is_classifier(self)
        if self._groups is not None:
            return self._groups.checked(self, X, *y, y_numeric=numeric)
        return check_data(self, X, *y, reset=False, y_numeric=numeric), None

    def _linear_draws(self, draws):
        """Coefficients (n, K, d) and intercepts (n, K) of the K predictors, at some draws."""
        n = self.posterior_.n_chains * self.posterior_.n_draws
        B = self.posterior_["coef"].reshape(n, *np.atleast_2d(self.coef_).shape)[draws]
        b = np.zeros(B.shape[:2])
        if "intercept" in self.posterior_:
            b = self.posterior_["intercept"].reshape(-1, B.shape[1])[draws]
        return B, b

    def _blocks(self, X, offset=None, draws=slice(None)):
        """A function for blocks of predictors, and the first rows of all blocks.

        ``block(first)`` returns predictors (rows, draws, K) and their `Components`.
        """
        self.posterior_.require_draws()
        B, b = self._linear_draws(draws)
        S, K, d = B.shape
        weights = np.empty((d + 1, K * S))  # in C order, in which small products are fastest
        weights[:-1], weights[-1] = B.transpose(2, 1, 0).reshape(d, K * S), b.T.ravel()
        integrates = offset is not None and offset.integrates
        most = INTEGRATED_BYTES if integrates else BLOCK_BYTES
        limit = min(most, sklearn.get_config()["working_memory"] * 2**20 / 4)
        step = max(1, int(limit / (8 * S * K)))

        def block(first):
            rows = slice(first, first + step)
            eta = affine(X[rows], weights).reshape(-1, K, S).transpose(0, 2, 1)
            return (eta, AS_DRAWN) if offset is None else offset.added(eta, rows, draws)

        return block, range(0, X.shape[0], step)

    def _of_predictors(self, X, reduce, draws=slice(None), rng=None):
        """``reduce(eta, components)`` of all blocks of predictors, joined along the rows.

        Memory is bounded. Blocks run on the threads that BLAS would have used for one product. With
        a generator `rng` they run in order, and effects of unknown levels are drawn.
        """
        check_is_fitted(self)
        X, offset = self._checked(X)
        if rng is not None and self._groups is not None:
            offset = offset.drawn(rng, draws)
        work = lambda rows, eta, components: reduce(eta, components)  # noqa: E731
        return self._in_blocks(X, work, offset, draws, rng is not None)

    def _in_blocks(self, X, work, offset=None, draws=slice(None), in_order=False):
        """``work(rows, eta, components)`` of all blocks of predictors, joined along the rows.

        Rows whose group effects are integrated out have blocks of their own.
        """
        kinds = None if offset is None else offset.kinds
        if kinds is None or not kinds.any():
            return self._map_blocks(X, work, offset, draws, in_order)
        out = None
        for kind in np.unique(kinds):
            rows = np.flatnonzero(kinds == kind)

            def own(places, eta, components, rows=rows):
                return work(rows[places], eta, components)

            found = self._map_blocks(X[rows], own, offset.take(rows), draws, in_order)
            if out is None:
                out = np.empty((len(kinds), *found.shape[1:]), dtype=found.dtype)
            out[rows] = found
        return out

    def _map_blocks(self, X, work, offset, draws, in_order):
        """The results of `work` for all blocks, each a slice of the rows, joined along the rows."""
        block, firsts = self._blocks(X, offset, draws)

        def of(first):
            eta, components = block(first)
            return work(slice(first, first + len(eta)), eta, components)

        if len(firsts) == 1:
            return of(0)
        with one_blas_thread as n_threads:
            return np.concatenate(in_threads(of, firsts, 1 if in_order else n_threads))

    def _of_likelihoods(self, X, y, work):
        """``work(rows, log_likelihood)`` of all blocks of rows, joined along the rows.

        The log-likelihoods (rows, draws) are those of each row, without its weight, at each draw.
        """
        check_is_fitted(self)
        (X, y), offset = self._checked(X, y)
        log_likelihood = self._likelihood_of(y)
        if self._groups is not None:
            offset = offset.for_likelihoods()

        def of_block(rows, eta, components):
            return work(rows, components.log_likelihood(partial(log_likelihood, rows), eta))

        return self._in_blocks(X, of_block, offset)

    def _of_rows_left_out(self, X, y, work, weight, powers):
        """``work(rows, log_likelihood, removed)`` of all blocks of the rows of the fit, joined.

        Besides the log-likelihoods it gets what a row takes with it that is left out: the power of
        its likelihood that `powers` says. Effects that only this row informs are integrated out of
        both. `weight` are the weights of the fit.
        """
        (X, y), offset = self._checked(X, y)
        log_likelihood = self._likelihood_of(y)
        if self._groups is not None:
            offset = offset.with_single_rows_integrated(weight, self._has_one_peak)

        def of_block(rows, eta, components):
            own = partial(log_likelihood, rows)
            values = components.log_likelihood(own, eta)
            return work(rows, values, components.removed(own, eta, values, powers[rows]))

        return self._in_blocks(X, of_block, offset)
