"""Plot of posterior means and intervals: a forest plot."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ._base import (
    MOST,
    ParameterRows,
    PosteriorDisplay,
    chosen_parameters,
    legend_below,
    require_posterior,
    short,
)

__all__ = ["IntervalDisplay", "intervals_of"]


class IntervalDisplay(ParameterRows, PosteriorDisplay):
    """Posterior means with two central intervals each: a forest plot.

    Parameters of other units, such as an intercept or a standard deviation of noise, are not shown
    beside coefficients unless they are named.

    Parameters
    ----------
    means : array of shape (n,)
    inner, outer : arrays of shape (2, n)
        Ends of the intervals.
    labels : sequence of str
        Names of the parameters.
    masses : tuple of float, default=(0.5, 0.9)
        Probabilities of the intervals, for the legend.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import Posterior
    >>> from skbayes_sg.plots import IntervalDisplay
    >>> draws = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> posterior = Posterior(draws, {"coef": (2,)}, ["age", "mass"])
    >>> display = IntervalDisplay.from_posterior(posterior)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['age', 'mass']
    """

    xlabel = "value"

    def __init__(
        self,
        means: np.ndarray,
        inner: np.ndarray,
        outer: np.ndarray,
        labels: Sequence[str],
        masses: Sequence[float] = (0.5, 0.9),
    ) -> None:
        self.means, self.inner, self.outer = means, inner, outer
        self.labels, self.masses = list(labels), masses

    @classmethod
    def from_posterior(
        cls,
        posterior: Any,
        *,
        names: Sequence[str] | str | None = None,
        ax: Any = None,
        masses: Sequence[float] = (0.5, 0.9),
    ) -> Self:
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Any
        names : str or sequence of str, optional
            Labels or variables to show; by default the first 20 coefficients, or parameters if
            there are no coefficients.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        masses : tuple of float, default=(0.5, 0.9)
            Probabilities of the intervals that the thick and the thin line show.

        Returns
        -------
        IntervalDisplay
        """
        require_posterior(cls, posterior)
        all_of_them = "coef" if "coef" in posterior.shapes else posterior.names
        kept, labels = chosen_parameters(posterior, all_of_them if names is None else names)
        total = len(labels) if names is None else None
        if names is None:
            kept, labels = kept[:MOST], labels[:MOST]
        inner, outer = intervals_of(posterior, masses, kept)
        made = cls(posterior.mean()[kept], inner, outer, short(labels), tuple(masses))
        return made._of(total).plot(ax)

    def _draw(self, axes):
        axis, places = axes[0, 0], np.arange(len(self.labels))
        for ends, width, mass in zip(
            (self.outer, self.inner), (1.5, 4.5), self.masses[::-1], strict=True
        ):
            label = f"{mass:.0%} interval"
            axis.hlines(places, *ends, color="C0", linewidth=width, label=label)
        axis.plot(
            self.means, places, "o", color="C0", mfc="white", markersize=5, label="posterior mean"
        )
        axis.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        self._label(axis, self.xlabel)
        legend_below(axis)


def intervals_of(posterior, masses, kept):
    """The inner and the outer intervals of the parameters `kept`, each (2, n_parameters).

    `masses` has the probabilities of both.
    """
    if len(masses) != 2:
        raise ValueError(f"masses must be two probabilities, got {masses!r}.")
    inner, outer = (np.array(posterior.interval(mass))[:, kept] for mass in masses)
    return inner, outer
