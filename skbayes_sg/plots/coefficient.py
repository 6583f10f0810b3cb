"""Plot of the coefficients that the data determine best, beside point estimates."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._base.validation import check_count
from ._base import (
    MOST,
    chosen_parameters,
    final_step,
    in_legend,
    posterior_of,
    require_posterior,
    short,
)
from .interval import IntervalDisplay, intervals_of

__all__ = ["CoefficientDisplay"]


class CoefficientDisplay(IntervalDisplay):
    """Coefficients with their posterior intervals, in order, beside the point estimates of others.

    Shown are the coefficients whose means are farthest from zero in units of their standard
    deviations.

    Parameters
    ----------
    means : array of shape (n,)
    inner, outer : arrays of shape (2, n)
        Ends of the intervals.
    labels : sequence of str
        Names of the coefficients.
    masses : tuple of float, default=(0.5, 0.9)
        Probabilities of the intervals, for the legend.
    points : dict of str to array of shape (n,), optional
        Point estimates to compare with, by name.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    See Also
    --------
    skbayes_sg.plots.IntervalDisplay : Parameters of all kinds, in the order of the posterior.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.plots import CoefficientDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X.iloc[:, :4]
    >>> model = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=0))
    >>> point = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> display = CoefficientDisplay.from_estimator(
    ...     model.fit(X, y), points={"LogisticRegression": point}
    ... )
    >>> display.labels[-1]
    'mean perimeter'
    """

    xlabel = "coefficient"

    def __init__(
        self,
        means: np.ndarray,
        inner: np.ndarray,
        outer: np.ndarray,
        labels: Sequence[str],
        masses: Sequence[float] = (0.5, 0.9),
        points: dict[str, np.ndarray] | None = None,
    ) -> None:
        super().__init__(means, inner, outer, labels, masses)
        self.points = dict(points or {})

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        names: Sequence[str] | str | None = None,
        points: dict[str, Any] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the display of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with coefficients; or a pipeline or a search that ends in it.
        names : str or sequence of str, optional
            Labels of coefficients to show; the best known by default.
        points : dict of str to estimator or array, optional
            Fitted estimators with a ``coef_`` of the same columns, also in pipelines and searches,
            or arrays of the shape of ``coef_``, by the names that the legend shows.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options : dict
            As for `from_posterior`.

        Returns
        -------
        CoefficientDisplay
        """
        found = {name: _coefficients(value) for name, value in (points or {}).items()}
        return cls.from_posterior(
            posterior_of(estimator), names=names, points=found, ax=ax, **options
        )

    @classmethod
    def from_posterior(
        cls,
        posterior: Any,
        *,
        names: Sequence[str] | str | None = None,
        ax: Any = None,
        masses: Sequence[float] = (0.5, 0.9),
        points: dict[str, np.ndarray] | None = None,
        most: int = MOST,
    ) -> Self:
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Posterior
            With the variable ``coef``.
        names : str or sequence of str, optional
            Labels of coefficients to show; the best known by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        masses : tuple of float, default=(0.5, 0.9)
            Probabilities of the intervals that the thick and the thin line show.
        points : dict of str to array of the shape of the coefficients, optional
            Point estimates to compare with, by name. Other parameters that are shown have none.
        most : int, default=20
            Largest number of coefficients that are shown unless they are named.

        Returns
        -------
        CoefficientDisplay
        """
        require_posterior(cls, posterior)
        check_count("most", most)
        if "coef" not in posterior:
            raise ValueError(
                "CoefficientDisplay shows coefficients, and this posterior has none: its variables "
                f"are {list(posterior)[:10]}. Use IntervalDisplay, with these as `names`."
            )
        kept, labels = chosen_parameters(posterior, "coef" if names is None else names)
        total, mean = len(kept), posterior.mean()
        if names is None:
            with np.errstate(divide="ignore", invalid="ignore"):  # a single draw has no sd
                known = np.abs(mean[kept]) / posterior.std()[kept]
            best = np.array(kept)[np.argsort(-known, kind="stable")[:most]]
            kept = best[np.argsort(-mean[best], kind="stable")]
        labels = short([posterior.labels[j] for j in kept])
        inner, outer = intervals_of(posterior, masses, kept)
        shown = {name: own[kept] for name, own in _points(posterior, points or {}).items()}
        made = cls(mean[kept], inner, outer, labels, tuple(masses), shown)
        return made._of(total if names is None else None, "best known").plot(ax)

    def _draw(self, axes):
        places = np.arange(len(self.labels))
        for k, (name, values) in enumerate(self.points.items()):
            style = {"color": f"C{k + 1}", "markersize": 6, "zorder": 3}
            axes[0, 0].plot(values, places, "x", label=in_legend(name), **style)
        super()._draw(axes)


def _points(posterior, points):
    """Points as arrays with a number for each parameter, NaN for those that are no coefficients.

    `ValueError` for points that are not one number for each coefficient.
    """
    where, found = posterior._where("coef"), {}
    n = where.stop - where.start
    for name, values in points.items():
        if np.size(values) != n:
            raise ValueError(
                f"points[{name!r}] must have one number for each of {n} coefficients, got "
                f"{np.size(values)}."
            )
        found[name] = np.full(len(posterior.labels), np.nan)
        found[name][where] = np.ravel(values)
    return found


def _coefficients(point):
    """The coefficients of a fitted estimator, or the array itself."""
    last = final_step(point)[0]
    return np.asarray(getattr(last, "coef_", last), dtype=float)
