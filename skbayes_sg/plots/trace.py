"""Plot of draws in the order in which they were made."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ._base import PosteriorDisplay, chosen_parameters, require_posterior

__all__ = ["TraceDisplay"]


class TraceDisplay(PosteriorDisplay):
    """Draws of some parameters in the order in which they were made, one line for each chain.

    Chains that have converged look alike: like noise without a trend.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, n)
        Draws of the parameters to show.
    labels : sequence of str
        Their names.

    Attributes
    ----------
    figure_, axes_, ax_ : matplotlib objects
        The figure, its axes, and the first of them, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import Posterior
    >>> from skbayes_sg.plots import TraceDisplay
    >>> draws = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> display = TraceDisplay.from_posterior(Posterior(draws, {"coef": (2,)}, ["age", "mass"]))
    >>> [ax.get_title(loc="left") for ax in display.axes_]
    ['age', 'mass']
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
    ) -> Self:
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Any
        names : str or sequence of str, optional
            Labels or variables to show; the first five parameters by default.
        ax : array of Axes, optional
            One for each parameter; a new figure by default.

        Returns
        -------
        TraceDisplay
        """
        require_posterior(cls, posterior)
        posterior.require_draws()
        kept, labels = chosen_parameters(posterior, names, 5)
        return cls(posterior.flat[..., kept], labels).plot(ax)

    def _grid(self):
        n = len(self.labels)
        return n, 1, (7.0, max(1.5 * n, 2.0))

    def _draw(self, axes):
        for j, (axis, label) in enumerate(zip(axes[:, 0], self.labels, strict=True)):
            axis.plot(self.draws[:, :, j].T, linewidth=0.5)
            axis.set_title(label, loc="left", fontsize="small", parse_math=False)
        axes[-1, 0].set_xlabel("draw")
