"""Draws of parameters against each other."""

import numpy as np

from .._base import weights as weighting
from ._base import Display, chosen_parameters, pyplot

__all__ = ["PairDisplay"]


class PairDisplay(Display):
    """Draws of some parameters against each other, with histograms on the diagonal.

    Parameters
    ----------
    draws : array of shape (n_draws, n)
        Draws of the parameters to show, chains pooled.
    labels : sequence of str
        Their names.

    Attributes
    ----------
    figure_, axes_, ax_ : matplotlib objects
        The figure, its (n, n) axes, and the first of them, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import Posterior
    >>> from skbayes_sg.plots import PairDisplay
    >>> draws = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> display = PairDisplay.from_posterior(Posterior(draws, {"coef": (2,)}, ["age", "mass"]))
    >>> display.axes_.shape
    (2, 2)
    """

    def __init__(self, draws, labels):
        self.draws, self.labels = draws, list(labels)

    @classmethod
    def from_posterior(cls, posterior, *, names=None, ax=None, max_draws=1000):
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Posterior
        names : str or sequence of str, optional
            Labels or variables to show; the first four parameters by default.
        ax : array of Axes of shape (n, n), optional
            Where to draw; a new figure by default.
        max_draws : int, default=1000
            Points shown at most, evenly spaced; draws of unequal weight are shown in proportion.

        Returns
        -------
        PairDisplay
        """
        kept = chosen_parameters(posterior, names, 4)
        flat = posterior.flat[..., kept].reshape(-1, len(kept))
        weights = np.ones(posterior.n_draws) if posterior.weights is None else posterior.weights
        weights = np.tile(weights, posterior.n_chains)
        shown = weighting.representatives(weights, min(max_draws, len(flat)))
        return cls(flat[shown], [posterior.labels[j] for j in kept]).plot(ax)

    def plot(self, ax=None):
        """Draw it.

        Parameters
        ----------
        ax : array of Axes of shape (n, n), optional
            Where to draw; a new figure by default.

        Returns
        -------
        PairDisplay
        """
        n = len(self.labels)
        if ax is None:
            _, ax = pyplot().subplots(
                n, n, squeeze=False, figsize=(2.0 * n, 2.0 * n), layout="constrained"
            )
        grid = self._axes(ax, n * n, width=0.0, height=0.0).reshape(n, n)
        for i in range(n):
            for j in range(n):
                if i == j:
                    grid[i, j].hist(self.draws[:, i], bins=30, color="C0")
                else:
                    grid[i, j].plot(self.draws[:, j], self.draws[:, i], ".", markersize=1.5)
            grid[i, 0].set_ylabel(self.labels[i])
            grid[-1, i].set_xlabel(self.labels[i])
        self.axes_ = grid
        return self
