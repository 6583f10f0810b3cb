"""Plot of the autocorrelation of draws against the lag."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._base.validation import check_count
from ._base import (
    PosteriorDisplay,
    as_given,
    chosen_parameters,
    in_legend,
    require_posterior,
    wrapped,
)

__all__ = ["AutocorrelationDisplay"]


class AutocorrelationDisplay(PosteriorDisplay):
    """Autocorrelation of some parameters against the lag, averaged over chains.

    Parameters
    ----------
    correlations : array of shape (n_lags, n)
        Autocorrelations of the parameters to show, from lag 0.
    labels : sequence of str
        Their names.
    noise : float, default=0.0
        Two standard errors of the correlation of independent draws: the grey band.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import Posterior
    >>> from skbayes_sg.plots import AutocorrelationDisplay
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> posterior = Posterior(draws, {"coef": (1,)}, ["age"])
    >>> AutocorrelationDisplay.from_posterior(posterior, n_lags=3).correlations.shape
    (3, 1)
    """

    def __init__(self, correlations: np.ndarray, labels: Sequence[str], noise: float = 0.0) -> None:
        self.correlations, self.labels, self.noise = correlations, list(labels), noise

    @classmethod
    def from_posterior(
        cls,
        posterior: Any,
        *,
        names: Sequence[str] | str | None = None,
        ax: Any = None,
        n_lags: int = 30,
    ) -> Self:
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Any
        names : str or sequence of str, optional
            Labels or variables to show; the first five parameters by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_lags : int, default=30
            Number of lags, from 0 on.

        Returns
        -------
        AutocorrelationDisplay
        """
        require_posterior(cls, posterior)
        posterior.require_draws()
        check_count("n_lags", n_lags)
        kept, labels = chosen_parameters(posterior, names, 5)
        x = posterior.flat[..., kept]
        correlations = _autocorrelations(x, min(n_lags, posterior.n_draws))
        noise = 2.0 / np.sqrt(x.shape[0] * x.shape[1])
        return cls(correlations, labels, noise).plot(ax)

    def _grid(self):
        return 1, 1, (6.0, 3.5)

    def _draw(self, axes):
        axis = axes[0, 0]
        axis.axhspan(-self.noise, self.noise, color="0.9", zorder=0)
        for values, name in zip(self.correlations.T, wrapped(self.labels), strict=True):
            style = {"marker": "o", "markersize": 3, "linewidth": 1.0}
            axis.plot(values, label=in_legend(name), **style)
        axis.set(xlabel="lag (draws)", ylabel="autocorrelation")
        as_given(axis.legend(loc="best", fontsize="small"))


def _autocorrelations(x, n_lags):
    """Autocorrelations of draws x (n_chains, n_draws, n) at the first lags, (n_lags, n).

    That of lag k is Σ_t (x_t - x̄)(x_{t+k} - x̄) / Σ_t (x_t - x̄)², with x̄ the mean of all chains,
    and with both sums averaged over the chains.
    """
    x = x - x.mean(axis=(0, 1))
    n = x.shape[1]
    covariances = np.array(
        [(x[:, : n - k] * x[:, k:]).sum(axis=1).mean(axis=0) for k in range(n_lags)]
    )
    return covariances / np.maximum(covariances[0], np.finfo(float).tiny)
