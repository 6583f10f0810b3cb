"""Shares of the variances that the noise of the gradient adds."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ._base import ParameterRows, PosteriorDisplay, chosen_parameters

__all__ = ["GradientNoiseDisplay"]


class GradientNoiseDisplay(ParameterRows, PosteriorDisplay):
    """Share of each variance that the noise of the gradient adds.

    Parameters
    ----------
    shares : array of shape (n,)
        One for each parameter.
    labels : sequence of str
        Names of the parameters.
    limit : float, default=0.1
        The limit of `Posterior.check`, shown as a grey line.

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
            Labels or variables to show; the first 20 parameters by default.
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
        kept, labels = chosen_parameters(posterior, names)
        if "noise_share" not in posterior.evidence:
            raise ValueError("This posterior has no measured noise: the gradients used all rows.")
        return cls(posterior.evidence["noise_share"][kept], labels).plot(ax)

    def _draw(self, axes):
        axis, places = axes[0, 0], np.arange(len(self.labels))
        axis.barh(places, 100.0 * self.shares, height=0.6)
        axis.axvline(100.0 * self.limit, color="0.6", linewidth=0.8)
        self._label(axis, "share of the variance due to gradient noise (%)")
