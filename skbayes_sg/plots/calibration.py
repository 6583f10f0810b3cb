"""Plots that show whether predicted probabilities and intervals are right, on held-out rows."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import stats
from sklearn.utils import check_consistent_length, column_or_1d

from .._base.typing import ArrayLike, MatrixLike
from .._base.validation import check_count, check_probabilities, warn_without_exposure
from ..metrics import calibration_error, interval_coverage, unwrapped
from ..metrics.scores import bins_of, columns_of, given
from ._base import Display, require

__all__ = ["CoverageDisplay", "ReliabilityDisplay"]

LEVELS = np.linspace(0.05, 0.95, 19)  # default probabilities of the intervals that are examined
BAND = 0.9  # probability that a share lies within its band if the predictions are right


class _Diagonal(Display):
    """A curve that should lie on the diagonal, with bands of the deviations expected by chance."""

    said, happened = "", ""

    def _grid(self):
        return 1, 1, (4.5, 4.5)

    def _curve(self, ax, x, y, n, label):
        """Draw observed shares y, of n events each, against their stated probabilities x."""
        lower, upper = _band(x, n)
        ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=0.8)
        chance = {"color": "C0", "alpha": 0.35, "linewidth": 4.0}
        ax.vlines(x, lower, upper, label=f"{100 * BAND:.0f} % of shares by chance", **chance)
        ax.plot(x, y, "o-", color="C0", markersize=4.0, label=label)
        ax.set(xlabel=self.said, ylabel=self.happened, xlim=(0.0, 1.0), ylim=(0.0, 1.0))
        ax.legend(loc="upper left", frameon=False)


def _band(share, n):
    """Ends of the band that holds, with probability `BAND`, the share of n events that happen.

    `share` is the probability of the events.
    """
    tails = [0.5 - BAND / 2, 0.5 + BAND / 2]
    return [stats.binom.ppf(tail, n, share) / n for tail in tails]


class ReliabilityDisplay(_Diagonal):
    """The share of events of stated probability p that happened, against p.

    The bars are where 90 % of the shares would lie if the probabilities were right.

    Parameters
    ----------
    stated : array of shape (n_bins,)
        Mean probability of the events of each bin.
    happened_share : array of shape (n_bins,)
        Share of them that happened.
    counts : array of shape (n_bins,)
        Number of events in each bin.
    error : float
        `skbayes_sg.metrics.calibration_error` over the same bins.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    See Also
    --------
    sklearn.calibration.CalibrationDisplay : The same curve without the bars.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.plots import ReliabilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianLogisticRegression(random_state=0).fit(X[:300, :3], y[:300])
    >>> display = ReliabilityDisplay.from_estimator(model, X[300:, :3], y[300:], n_bins=5)
    >>> display.counts
    array([54, 54, 53, 54, 54])
    """

    said, happened = "stated probability", "share that happened"

    def __init__(
        self, stated: np.ndarray, happened_share: np.ndarray, counts: np.ndarray, error: float
    ) -> None:
        self.stated, self.happened_share = stated, happened_share
        self.counts, self.error = counts, error

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: MatrixLike, y: ArrayLike, *, n_bins: int = 10, ax: Any = None
    ) -> Self:
        """Draw the display of a binary classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier of two classes with `predict_proba`; also a pipeline or a search.
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            Rows that the estimator was not fitted to.
        y : array-like of shape (n_rows,)
            Their labels; the events are those of ``estimator.classes_[1]``.
        n_bins : int, default=10
            Number of bins. They contain equal numbers of rows.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        TypeError
            For an estimator without `predict_proba`.
        ValueError
            For other than two classes, labels that the estimator was not trained on, an `n_bins`
            that is not a positive int, and X and y of different lengths.
        """
        require(cls, estimator, "predict_proba")
        check_count("n_bins", n_bins)
        p = np.asarray(estimator.predict_proba(X))
        if p.shape[1] != 2:
            raise ValueError(
                f"ReliabilityDisplay needs a classifier of two classes, got {p.shape[1]}."
            )
        p, events = p[:, 1], columns_of(estimator, y) == 1
        error = calibration_error(events, p, n_bins=n_bins, strategy="quantile")
        bins = bins_of(np.clip(p, 0.0, 1.0), n_bins, "quantile")
        counts = np.bincount(bins)
        happened, stated = np.bincount(bins, events), np.bincount(bins, p)
        full = counts > 0
        counts = counts[full]
        return cls(stated[full] / counts, happened[full] / counts, counts, error).plot(ax)

    def _draw(self, axes):
        label = f"calibration error {self.error:.3f}"
        self._curve(axes[0, 0], self.stated, self.happened_share, self.counts, label)


class CoverageDisplay(_Diagonal):
    """The share of values inside their predictive intervals, against the stated probability.

    Below the diagonal the intervals are too narrow, above it too wide. The bars are where 90 % of
    the shares would lie if the intervals were right. Intervals of counts end at whole numbers:
    short ones have a greater probability than is stated, and their shares lie above the diagonal,
    as the legend says.

    Parameters
    ----------
    levels : array of shape (n_levels,)
        Stated probabilities of central intervals.
    coverage : array of shape (n_levels,)
        Shares of values that lie inside.
    n_rows : int
        Number of values.
    of_counts : bool, default=False
        Whether the values are counts.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.plots import CoverageDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianLinearRegression(random_state=0).fit(X[:300], y[:300])
    >>> display = CoverageDisplay.from_estimator(model, X[300:], y[300:], levels=[0.9])
    >>> display.coverage.round(1)
    array([0.9])
    """

    said, happened = "probability of the interval", "share of values inside"

    def __init__(
        self, levels: np.ndarray, coverage: np.ndarray, n_rows: int, of_counts: bool = False
    ) -> None:
        self.levels, self.coverage, self.n_rows = levels, coverage, n_rows
        self.of_counts = of_counts

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike,
        *,
        levels: Sequence[float] | None = None,
        exposure: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the display of a regressor.

        Parameters
        ----------
        estimator : regressor
            A fitted regressor with `predict_quantiles`; also in a pipeline or a search.
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            Rows that the estimator was not fitted to.
        y : array-like of shape (n_rows,)
            Their responses.
        levels : sequence of float in (0, 1), optional
            Probabilities of the intervals; 0.05, 0.1, ..., 0.95 by default.
        exposure : array-like of shape (n_rows,), optional
            Exposures of counts; a warning says if they are missing after a fit with exposures.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CoverageDisplay

        Raises
        ------
        TypeError
            For an estimator without `predict_quantiles`.
        ValueError
            For levels that are no sequence of probabilities, and X and y of different lengths.
        """
        require(cls, estimator, "predict_quantiles")
        final, X = unwrapped(estimator, X)
        y, masses = column_or_1d(y), LEVELS if levels is None else _checked_levels(levels)
        warn_without_exposure(final, exposure, cls.__name__)
        shares = np.r_[0.5 - masses / 2, 0.5 + masses / 2]
        ends = final.predict_quantiles(X, shares, **given(exposure))
        check_consistent_length(y, ends)
        K = len(masses)
        coverage = [interval_coverage(y, ends[:, k], ends[:, K + k]) for k in range(K)]
        of_counts = getattr(final, "_is_discrete", False)
        return cls(masses, np.array(coverage), len(y), of_counts).plot(ax)

    def _draw(self, axes):
        label = f"{self.n_rows} rows"
        if self.of_counts:
            label += " of counts, whose intervals hold\nmore than is stated where counts are small"
        self._curve(axes[0, 0], self.levels, self.coverage, self.n_rows, label)


def _checked_levels(levels):
    """The levels as an array; `ValueError` unless they are a sequence of probabilities."""
    if np.ndim(levels) != 1:
        raise ValueError(f"levels must be a sequence of probabilities, got {levels!r}.")
    return check_probabilities("levels", levels)
