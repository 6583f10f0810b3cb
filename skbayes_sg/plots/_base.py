"""What displays share: the axes they are drawn on, and the parameters they show."""

from typing import Any, Self

import numpy as np

__all__ = ["Display", "ParameterRows", "PosteriorDisplay", "chosen_parameters"]

MOST = 20  # parameters that are shown unless the user names them


def pyplot():
    """The module `matplotlib.pyplot`, which is imported only when something is drawn."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Plots need matplotlib: pip install "skbayes_sg[plot]", or pip install matplotlib.'
        ) from error
    return plt


def _posterior_of(estimator):
    """The posterior of a fitted estimator, or of the last step of a pipeline."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if not hasattr(last, "posterior_"):
        raise TypeError(f"A fitted estimator with a posterior_ is needed, got {last!r}.")
    return last.posterior_


def chosen_parameters(posterior, names, most=MOST):
    """Positions and labels of the named labels or variables; of the first few if None."""
    found = []
    if names is None:
        found = list(range(min(most, len(posterior.labels))))
    for name in [names] if isinstance(names, str) else names or ():
        if name in posterior.shapes:
            where = posterior._where(name)
            found += range(where.start, where.stop)
        elif name in posterior.labels:
            found.append(posterior.labels.index(name))
        else:
            raise posterior._unknown(name)
    return found, [posterior.labels[j] for j in found]


class Display:
    """Base of all displays. A subclass defines `_grid` and `_draw`."""

    figure_: Any = None
    axes_: Any = None
    ax_: Any = None

    def _grid(self):
        """(rows, columns, (width, height)) of the axes that the display needs."""
        raise NotImplementedError

    def _draw(self, axes):
        """Draw on the axes, an array (rows, columns)."""
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, optional
            Where to draw, one Axes for each panel; a new figure by default.

        Returns
        -------
        display
        """
        rows, columns, size = self._grid()
        if ax is None:
            options = {"sharex": columns == 1, "figsize": size, "layout": "constrained"}
            _, ax = pyplot().subplots(rows, columns, **options)
        axes = np.atleast_1d(np.asarray(ax, dtype=object))
        if axes.size != rows * columns:
            raise ValueError(f"ax must contain {rows * columns} axes, got {axes.size}.")
        axes = axes.reshape(rows, columns)
        self.figure_, self.ax_ = axes[0, 0].figure, axes[0, 0]
        self.axes_ = axes[:, 0] if columns == 1 else axes
        self._draw(axes)
        return self


class PosteriorDisplay(Display):
    """Base of the displays that show parameters of a posterior."""

    @classmethod
    def from_estimator(cls, estimator, *, names=None, ax=None, **options):
        """Draw the display of a fitted estimator's posterior.

        Parameters
        ----------
        estimator : estimator
            Fitted, or a pipeline that ends in it.
        names : str or sequence of str, optional
            Labels or variables to show; the first ones by default.
        ax : matplotlib Axes, or array of Axes, optional
            Where to draw; a new figure by default.
        **options : dict
            As for `from_posterior`.

        Returns
        -------
        display
        """
        return cls.from_posterior(_posterior_of(estimator), names=names, ax=ax, **options)


class ParameterRows(Display):
    """Base of the displays with one axis, on which each parameter has a row."""

    def _grid(self):
        return 1, 1, (6.0, max(0.6 + 0.25 * len(self.labels), 2.0))

    def _label(self, axis, xlabel):
        """Name the rows, the first at the top, and the horizontal axis."""
        axis.set_yticks(np.arange(len(self.labels)), self.labels)
        axis.invert_yaxis()
        axis.set_xlabel(xlabel)
