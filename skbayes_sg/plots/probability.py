"""Plot of predicted probabilities of rows, with their uncertainty and what happened."""

from typing import Any, Self

import numpy as np

from .._base.typing import ArrayLike, MatrixLike
from .._base.validation import check_count
from ..metrics import unwrapped
from ..metrics.scores import columns_of
from ._base import Display, legend_below, require

__all__ = ["ProbabilityDisplay"]


class ProbabilityDisplay(Display):
    """Probabilities of rows in their order, with intervals, and what happened.

    The intervals are for the probabilities themselves: they say how uncertain the probabilities
    are, and shrink with more rows to learn from.

    Parameters
    ----------
    probability, lower, upper : arrays of shape (n_rows,)
        Probability of the event in each row, with the ends of its interval.
    happened : array of bool of shape (n_rows,) or None
        Whether the event happened.
    event : str
        What the event is, for the title.
    confidence_level : float, default=0.9
        Probability of the intervals, for the legend.
    threshold : float, optional
        A probability at which decisions change, shown as a line.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.plots import ProbabilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianLogisticRegression(random_state=0).fit(X[:300, :3], y[:300])
    >>> display = ProbabilityDisplay.from_estimator(model, X[300:, :3], y[300:], max_rows=50)
    >>> display.probability.shape
    (50,)
    """

    def __init__(
        self,
        probability: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        happened: np.ndarray | None,
        event: str,
        confidence_level: float = 0.9,
        threshold: float | None = None,
    ) -> None:
        self.probability, self.lower, self.upper = probability, lower, upper
        self.happened, self.event = happened, event
        self.confidence_level, self.threshold = confidence_level, threshold

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        confidence_level: float = 0.9,
        threshold: float | None = None,
        max_rows: int = 150,
        ax: Any = None,
    ) -> Self:
        """Draw the display of a classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with `predict_proba_interval`; or a pipeline or a search that ends in it.
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            Rows that the estimator was not fitted to.
        y : array-like of shape (n_rows,), optional
            Their labels. The event is ``classes_[1]`` of two classes, and the predicted class of
            more.
        confidence_level : float in (0, 1), default=0.9
            Probability of the intervals.
        threshold : float in (0, 1), optional
            A probability at which decisions change, shown as a line.
        max_rows : int, default=150
            Largest number of rows shown, evenly spaced in the order of their probabilities.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ProbabilityDisplay
        """
        check_count("max_rows", max_rows)
        require(cls, estimator, "predict_proba_interval")
        final, rows = unwrapped(estimator, X)
        p, ends = final.predict_proba(rows), final.predict_proba_interval(rows, confidence_level)
        if len(final.classes_) == 2:
            column, event = np.ones(len(p), dtype=int), f"{final.classes_[1]!s}"
        else:
            column, event = p.argmax(axis=1), "the predicted class"
        pick = np.arange(len(p)), column
        order = np.argsort(p[pick], kind="stable")
        order = order[np.linspace(0, len(p) - 1, min(len(p), max_rows)).astype(int)]
        happened = None if y is None else (column == columns_of(final, y))[order]
        mean, lower, upper = (values[pick][order] for values in (p, *ends))
        return cls(mean, lower, upper, happened, event, confidence_level, threshold).plot(ax)

    def _grid(self):
        return 1, 1, (6.5, 4.0)

    def _draw(self, axes):
        axis, at = axes[0, 0], np.arange(len(self.probability))
        label = f"{self.confidence_level:.0%} interval of the probability"
        axis.vlines(at, self.lower, self.upper, color="C0", alpha=0.5, linewidth=1.5, label=label)
        axis.plot(at, self.probability, ".", color="C0", markersize=4, label="probability")
        if self.happened is not None:
            places = np.where(self.happened, 1.04, -0.04)
            axis.plot(at, places, "|", color="C1", markersize=6, label="what happened")
        if self.threshold is not None:
            axis.axhline(self.threshold, color="C3", linewidth=0.9, label="threshold")
        axis.set_ylim(-0.08, 1.08)
        axis.set_ylabel(f"probability of {self.event}", parse_math=False)
        axis.set_xlabel("rows, in the order of their probability")
        legend_below(axis)
