"""Plot of the effects of a column's levels, sorted, with intervals: a caterpillar plot."""

from typing import Any, Self

import numpy as np

from ._base import Display, final_step

__all__ = ["EffectsDisplay"]

NAMED = 40  # up to this number of levels each has its name beside it


class EffectsDisplay(Display):
    """Effects of the levels of a column, from the smallest to the largest, with 90 % intervals.

    Parameters
    ----------
    means : array of shape (n_levels,)
        Posterior means, sorted.
    intervals : array of shape (2, n_levels)
        Ends of the intervals.
    levels : sequence of str
        Names of the levels.
    column : str
        Name of the column whose levels they are.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    Examples
    --------
    >>> from skbayes_sg.plots import EffectsDisplay
    >>> ends = [[-0.9, 0.1], [-0.1, 0.7]]
    >>> display = EffectsDisplay([-0.5, 0.4], ends, ["north", "south"], "store").plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['north', 'south']
    """

    def __init__(self, means: Any, intervals: Any, levels: Any, column: str) -> None:
        self.means, self.intervals = np.asarray(means), np.asarray(intervals)
        self.levels, self.column = list(levels), column

    @classmethod
    def from_estimator(cls, estimator: Any, *, column: str | None = None, ax: Any = None) -> Self:
        """Draw the effects that a fitted estimator has found.

        Parameters
        ----------
        estimator : estimator
            Fitted with `group_effects`, or a pipeline or search that ends in such an estimator.
        column : str, optional
            One of the columns with groups; the first by default. With varying slopes, the effect
            of a level is shown as "column" and its slopes are as "column:slope".
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        EffectsDisplay

        Raises
        ------
        ValueError
            For an estimator without effects or draws, and for columns that it does not have.
        """
        last, _ = final_step(estimator)
        if not hasattr(last, "effects_"):
            raise ValueError(
                f"An estimator that is fitted with group_effects is needed, got {last!r}."
            )
        table = last.effects_
        if "5%" not in table.columns:
            raise ValueError("No draws were kept, and intervals need some: use keep=100.")
        known = list(last.group_levels_)
        column = known[0] if column is None else column
        name, slope = _parts(column, known)
        end = f"]:{slope}" if slope else "]"
        texts = [text for own in last._groups.levels if own.name == name for text in own.labels]
        level_of = {f"{name}[{text}{end}": text for text in texts}
        kept = [k for k, label in enumerate(table.labels) if label in level_of]
        if not kept:
            raise ValueError(f"There are no effects of {column!r}: the columns are {known}.")
        kept = [kept[k] for k in np.argsort(np.asarray(table["mean"])[kept], kind="stable")]
        levels = [level_of[table.labels[k]] for k in kept]
        intervals = np.stack([table["5%"], table["95%"]])[:, kept]
        return cls(np.asarray(table["mean"])[kept], intervals, levels, column).plot(ax)

    def _grid(self):
        n = len(self.levels)
        return 1, 1, (6.0, min(max(0.6 + 0.22 * n, 2.0), 9.0))

    def _draw(self, axes):
        axis, places = axes[0, 0], np.arange(len(self.levels))
        axis.hlines(places, *self.intervals, color="C0", linewidth=1.0, alpha=0.7)
        axis.plot(self.means, places, "o", color="C0", markersize=3)
        axis.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        if len(places) <= NAMED:
            axis.set_yticks(places, self.levels, parse_math=False)
        else:
            axis.set_ylabel(f"{len(places)} levels, sorted")
        said = f"effect of {self.column} (mean and 90 % interval)"
        axis.set_xlabel(said, parse_math=False)


def _parts(column, known):
    """The column with groups, of which names may contain colons, and the slope, or ""."""
    if column in known:
        return column, ""
    for name in sorted(known, key=len, reverse=True):
        if column.startswith(f"{name}:"):
            return name, column[len(name) + 1 :]
    return column, ""
