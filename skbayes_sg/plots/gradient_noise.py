"""Plot of the share of each variance that the noise of the gradient adds."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ._base import ParameterRows, PosteriorDisplay, all_unless_named, largest, require_posterior

__all__ = ["GradientNoiseDisplay"]

LEAST = 1e-4  # per cent; smaller shares are shown as this one, since the axis is logarithmic


class GradientNoiseDisplay(ParameterRows, PosteriorDisplay):
    """Share of each variance that the noise of the gradient adds, on a logarithmic axis.

    Infinite shares are at the right end of the axis, and those that are not known, NaN, have no
    dot.

    Parameters
    ----------
    shares : array of shape (n,)
        One for each parameter.
    labels : sequence of str
        Names of the parameters.
    limit : float, default=0.1
        The limit of `Posterior.check`, shown as a line.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import Posterior
    >>> from skbayes_sg.plots import GradientNoiseDisplay
    >>> evidence = {"noise_share": np.array([0.02])}
    >>> posterior = Posterior(np.zeros((1, 4, 1)), {"coef": (1,)}, ["age"], evidence=evidence)
    >>> GradientNoiseDisplay.from_posterior(posterior).shares
    array([0.02])
    """

    def __init__(self, shares: np.ndarray, labels: Sequence[str], limit: float = 0.1) -> None:
        self.shares, self.labels, self.limit = shares, list(labels), limit

    @classmethod
    def from_posterior(
        cls, posterior: Any, *, names: Sequence[str] | str | None = None, ax: Any = None
    ) -> Self:
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Any
            The result of a fit with stochastic gradients.
        names : str or sequence of str, optional
            Labels or variables to show; the 20 with the largest shares by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        GradientNoiseDisplay

        Raises
        ------
        ValueError
            If the gradients had no noise, or their noise was not measured.
        """
        require_posterior(cls, posterior)
        if "noise_share" not in posterior.evidence:
            raise ValueError("This posterior has no measured noise: the gradients used all rows.")
        shares = np.asarray(posterior.evidence["noise_share"])
        kept, labels = largest(posterior, shares, names)
        return cls(shares[kept], labels)._of(*all_unless_named(posterior, names)).plot(ax)

    def _draw(self, axes):
        axis, places = axes[0, 0], np.arange(len(self.labels))
        shown = np.maximum(100.0 * np.asarray(self.shares), LEAST)
        finite = shown[np.isfinite(shown)]
        left = min(finite.min(initial=np.inf) / 3.0, 10.0 * self.limit)
        right = max(100.0, 2.0 * finite.max(initial=0.0))
        shown = np.minimum(shown, right)
        axis.hlines(places, left, shown, color="C0", linewidth=1.0, alpha=0.5)
        axis.plot(shown, places, "o", color="C0", markersize=5)
        axis.axvline(100.0 * self.limit, color="C3", linewidth=0.8)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        text = f"too much: above {self.limit:.0%} "
        axis.annotate(
            text, (100.0 * self.limit, 0.0), (0, 4), ha="right", fontsize="small", **place
        )
        axis.set_xscale("log")
        axis.set_xlim(left, right)
        axis.xaxis.set_major_formatter("{x:g}")
        self._label(axis, "share of the variance due to gradient noise (%)")
