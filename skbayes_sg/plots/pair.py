"""Plot of the draws of parameters against each other."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._base import weights as weighting
from .._base.validation import check_count
from ._base import PosteriorDisplay, chosen_parameters, require_posterior, wrapped

__all__ = ["PairDisplay"]


class PairDisplay(PosteriorDisplay):
    """Draws of some parameters against each other, below a diagonal of histograms.

    Parameters
    ----------
    draws : array of shape (n_draws, n)
        Draws of the parameters to show, with all chains pooled.
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

    def __init__(self, draws: np.ndarray, labels: Sequence[str]) -> None:
        self.draws, self.labels = draws, list(labels)

    @classmethod
    def from_posterior(
        cls,
        posterior: Any,
        *,
        names: Sequence[str] | str | None = None,
        ax: np.ndarray | None = None,
        max_draws: int = 1000,
    ) -> Self:
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Any
        names : str or sequence of str, optional
            Labels or variables to show; the first four parameters by default.
        ax : array of Axes of shape (n, n), optional
            Where to draw; a new figure by default.
        max_draws : int, default=1000
            Largest number of points. They are evenly spaced, in proportion to the weights.

        Returns
        -------
        PairDisplay
        """
        require_posterior(cls, posterior)
        posterior.require_draws()
        check_count("max_draws", max_draws)
        kept, labels = chosen_parameters(posterior, names, 4)
        flat = posterior.flat[..., kept].reshape(-1, len(kept))
        weights = np.ones(posterior.n_draws) if posterior.weights is None else posterior.weights
        weights = np.tile(weights, posterior.n_chains)
        shown = weighting.representatives(weights, min(max_draws, len(flat)))
        return cls(flat[shown], labels).plot(ax)

    def _grid(self):
        n = len(self.labels)
        return n, n, (2.0 * n, 2.0 * n)

    def _draw(self, axes):
        n = len(self.labels)
        for (i, j), axis in np.ndenumerate(axes):
            if i < j:  # panels above the diagonal would repeat those below it
                axis.set_axis_off()
                continue
            if i == j:
                axis.hist(self.draws[:, i], bins=30, color="C0", alpha=0.7)
                axis.set_yticks([])
                axis.spines[["left", "top", "right"]].set_visible(False)
            else:
                axis.plot(self.draws[:, j], self.draws[:, i], ".", markersize=1.5, alpha=0.5)
                axis.tick_params(labelleft=j == 0)
            axis.set_xlim(*_range(self.draws[:, j]))
            axis.tick_params(labelbottom=i == n - 1)
            axis.locator_params(nbins=4)
        style = {"fontsize": "small", "parse_math": False}
        for i, name in enumerate(wrapped(self.labels)):
            axes[-1, i].set_xlabel(name, **style)
            if i > 0:
                axes[i, 0].set_ylabel(name, **style)


def _range(x):
    """Limits of the horizontal axis for draws x, with a margin of 5 % on both sides."""
    margin = 0.05 * np.ptp(x) or 1.0
    return x.min() - margin, x.max() + margin
