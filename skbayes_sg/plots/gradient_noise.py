"""Shares of the variances that the noise of the gradient adds."""

import numpy as np

from ._base import Display, chosen_parameters

__all__ = ["GradientNoiseDisplay"]


class GradientNoiseDisplay(Display):
    """Share of each variance that the noise of the gradient adds.

    Parameters
    ----------
    shares : array of shape (n,)
    labels : sequence of str
        Names of the parameters.
    limit : float, default=0.1
        Share beyond which `Posterior.check` objects: the grey line.

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

    def __init__(self, shares, labels, limit=0.1):
        self.shares, self.labels, self.limit = shares, list(labels), limit

    @classmethod
    def from_posterior(cls, posterior, *, names=None, ax=None):
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Posterior
            Of a fit with stochastic gradients.
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
            If the gradients had no noise, or it was not measured.
        """
        kept = chosen_parameters(posterior, names)
        if "noise_share" not in posterior.evidence:
            raise ValueError("This posterior has no measured noise: gradients were of all rows.")
        labels = [posterior.labels[j] for j in kept]
        return cls(posterior.evidence["noise_share"][kept], labels).plot(ax)

    def plot(self, ax=None):
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        GradientNoiseDisplay
        """
        (axis,) = self._axes(ax, 1, width=6.0, height=0.6 + 0.25 * len(self.labels))
        places = np.arange(len(self.labels))
        axis.barh(places, 100.0 * self.shares, height=0.6)
        axis.axvline(100.0 * self.limit, color="0.6", linewidth=0.8)
        axis.set_yticks(places, self.labels)
        axis.invert_yaxis()
        axis.set_xlabel("share of the variance by gradient noise (%)")
        return self
