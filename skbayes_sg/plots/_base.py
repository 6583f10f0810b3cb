"""Base classes of displays, and the choice of the parameters that displays show."""

import textwrap
from typing import Any, Self

import numpy as np

from .._base.names import told_apart

__all__ = ["Display", "ParameterRows", "PosteriorDisplay", "all_unless_named"]
__all__ += ["as_given", "chosen_parameters", "final_step", "in_legend", "largest", "legend_below"]
__all__ += ["posterior_of", "require", "require_posterior", "short", "wrapped"]

MOST = 20  # largest number of parameters that are shown unless the user names them
WIDEST = 24  # characters of a name beside a panel; longer names take several lines
HIDDEN = "\u200b"  # what `in_legend` puts before a name, and `as_given` removes


def pyplot():
    """The module `matplotlib.pyplot`, which is imported only when something is drawn."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Plots need matplotlib: pip install "skbayes_sg[plot]", or pip install matplotlib.'
        ) from error
    return plt


def final_step(estimator):
    """The fitted estimator at the end of pipelines and searches, and the pipelines before it."""
    before = []
    while hasattr(estimator, "best_estimator_") or hasattr(estimator, "steps"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            before, estimator = [*before, estimator[:-1]], estimator[-1]
    return estimator, before


def require_posterior(display, posterior):
    """`TypeError` for an estimator in the place of its posterior."""
    if hasattr(posterior, "posterior_"):
        raise TypeError(
            f"{display.__name__}.from_posterior needs a posterior, and got an estimator, "
            f"{type(posterior).__name__}: give its posterior_."
        )


def require(display, estimator, method):
    """`TypeError` for an estimator that lacks a method whose results the display shows."""
    last, _ = final_step(estimator)
    if not hasattr(last, method):
        raise TypeError(
            f"{display.__name__} needs an estimator with the method {method}, which "
            f"{type(last).__name__} does not have."
        )


def posterior_of(estimator):
    """The posterior of a fitted estimator, with column names from the steps before it.

    Names that the estimator itself has come first.
    """
    last, before = final_step(estimator)
    if not hasattr(last, "posterior_"):
        raise TypeError(f"A fitted estimator with a posterior_ is needed, got {last!r}.")
    if hasattr(last, "feature_names_in_"):
        return last.posterior_
    return _with_names(last.posterior_, _names_after(before))


def _names_after(steps):
    """Names of the columns that some steps of a pipeline make; None if they do not tell them."""
    names = None
    for step in steps:
        try:
            names = step.get_feature_names_out(names)
        except (AttributeError, ValueError):
            return None
    return names


def _with_names(posterior, names):
    """The posterior with names in the place of x0, x1, ... in the labels of its coefficients."""
    columns = posterior.shapes.get("coef", (0,))[-1]
    if names is None or len(names) != columns:
        return posterior
    labels, size = list(posterior.labels), int(np.prod(posterior.shapes["coef"]))
    for j, label in enumerate(labels[:size]):
        place = f"x{j % columns}]"
        if not label.endswith(place):
            return posterior
        labels[j] = f"{label.removesuffix(place)}{names[j % columns]}]"
    return posterior.with_labels(told_apart(labels))


def short(labels):
    """The labels, without the ``coef[`` and ``]`` around the names if all are of coefficients."""
    if all(label.startswith("coef[") for label in labels):
        return [label[len("coef[") : -1] for label in labels]
    return list(labels)


def wrapped(labels):
    """The labels as `short` returns them, those of more than `WIDEST` characters in lines."""
    return [textwrap.fill(label, WIDEST) for label in short(labels)]


def chosen_parameters(posterior, names, most=MOST):
    """Positions and labels of the parameters named by label or variable, or of the first `most`."""
    found = []
    if names is not None and len(names) == 0:
        raise ValueError(f"names must name at least one parameter, got {names!r}.")
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


def largest(posterior, values, names):
    """Positions and labels of the named parameters, or of the `MOST` with the largest values."""
    if names is not None or len(values) <= MOST:
        return chosen_parameters(posterior, names)
    found = np.argsort(-values, kind="stable")[:MOST]
    return found, [posterior.labels[j] for j in found]


def all_unless_named(posterior, names):
    """The arguments of `ParameterRows._of`, for displays that show the largest parameters.

    The number of parameters is None if the user has named those to show.
    """
    return None if names is not None else len(posterior.labels), "largest"


def in_legend(name):
    """The name as a label that has an entry in the legend; those that begin with "_" have none."""
    name = str(name)
    return HIDDEN + name if not name or name.startswith("_") else name


def as_given(legend):
    """Let a legend show names as they are: labels by `in_legend`, and "$" as no formula."""
    for text in legend.get_texts():
        text.set(text=text.get_text().removeprefix(HIDDEN), parse_math=False)


def legend_below(axis, columns=2):
    """Put the legend half an inch below the axes, where it hides no data."""
    from matplotlib.transforms import ScaledTranslation

    below = axis.transAxes + ScaledTranslation(0.0, -0.5, axis.figure.dpi_scale_trans)
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
    style = {"fontsize": "small", "frameon": False, "columnspacing": 1.2, "handletextpad": 0.5}
    as_given(axis.legend(**place, **style, ncols=columns))


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
            Fitted; or a pipeline or a search that ends in it.
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
        return cls.from_posterior(posterior_of(estimator), names=names, ax=ax, **options)


class ParameterRows(Display):
    """Base of the displays with one axis, on which each parameter has a row."""

    n_parameters: int | None = None  # number of all parameters, None if the user chose those shown
    chosen = "first"  # which of all parameters are shown, in a word for the title

    def _grid(self):
        """One panel; it is wider for long names, so that they leave room for the axis."""
        width = 3.4 + 0.075 * max(map(len, self._row_names()), default=0)
        return 1, 1, (float(np.clip(width, 6.0, 12.0)), max(1.2 + 0.25 * len(self.labels), 2.0))

    def _of(self, n_parameters, chosen="first"):
        """Return this display, whose title will say if it shows only some of `n_parameters`."""
        self.n_parameters, self.chosen = n_parameters, chosen
        return self

    def _row_names(self):
        """The text beside each row."""
        return self.labels

    def _label(self, axis, xlabel):
        """Name the rows, the first at the top, and the horizontal axis."""
        axis.set_yticks(np.arange(len(self.labels)), self._row_names(), parse_math=False)
        axis.set_ylim(len(self.labels) - 0.5, -0.5)
        axis.set_xlabel(xlabel)
        if self.n_parameters is not None and self.n_parameters > len(self.labels):
            said = f"the {self.chosen} {len(self.labels)} of {self.n_parameters}"
            axis.set_title(said, loc="left", fontsize="small")
