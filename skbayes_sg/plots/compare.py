"""Plot of models beside the best of them, by leave-one-out predictions."""

from typing import Any, Self

import numpy as np

from ._base import ParameterRows, legend_below

__all__ = ["CompareDisplay"]


class CompareDisplay(ParameterRows):
    """Differences of models from the best one in the expected log predictive density.

    The bars are two standard errors of the difference. Models with rows whose estimates cannot be
    trusted (by Pareto k) have open circles, and the number of these rows behind their names.

    Parameters
    ----------
    comparison : Summary
        What `skbayes_sg.model_selection.compare` returns.

    Attributes
    ----------
    labels : list of str
        The names of the models, the best one first.
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    See Also
    --------
    skbayes_sg.model_selection.compare : Compares models.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression, BayesianRobustRegression
    >>> from skbayes_sg.model_selection import compare
    >>> from skbayes_sg.plots import CompareDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> models = {"normal": BayesianLinearRegression(), "robust": BayesianRobustRegression()}
    >>> fitted = {name: m.set_params(random_state=0).fit(X, y) for name, m in models.items()}
    >>> display = CompareDisplay.from_comparison(compare(fitted, X, y))
    >>> display.labels
    ['normal', 'robust']
    """

    def __init__(self, comparison: Any) -> None:
        self.comparison, self.labels = comparison, list(comparison.labels)

    @classmethod
    def from_comparison(cls, comparison: Any, *, ax: Any = None) -> Self:
        """Draw the display of a comparison.

        Parameters
        ----------
        comparison : Summary
            What `skbayes_sg.model_selection.compare` returns.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CompareDisplay
        """
        return cls(comparison).plot(ax)

    def _row_names(self):
        rows = zip(self.labels, self.comparison["high_k"], strict=True)
        return [f"{name} ({k:.0f})" if k else name for name, k in rows]

    def _draw(self, axes):
        axis, places = axes[0, 0], np.arange(len(self.labels))
        off, error = (np.asarray(self.comparison[name]) for name in ("elpd_diff", "diff_se"))
        doubtful = np.asarray(self.comparison["high_k"]) > 0
        style = {"color": "C0", "linewidth": 1.5, "label": "two standard errors of the difference"}
        axis.hlines(places, off - 2.0 * error, off + 2.0 * error, **style)
        dots = {"color": "C0", "markersize": 6}
        axis.plot(off, places, "o", **dots)
        if doubtful.any():
            style = {"mfc": "white", "label": "(n): n rows cannot be trusted"}
            axis.plot(off[doubtful], places[doubtful], "o", **style, **dots)
        axis.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        self._label(axis, "elpd minus that of the best model")
        legend_below(axis, columns=1)
