"""Plot of the bias of means that the step size causes."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ._base import ParameterRows, PosteriorDisplay, all_unless_named, largest, require_posterior

__all__ = ["StepBiasDisplay"]


class StepBiasDisplay(ParameterRows, PosteriorDisplay):
    """Bias of each mean that the step size causes, with two standard errors.

    Parameters
    ----------
    bias, mcse : arrays of shape (n,)
        Biases and their standard errors, in posterior standard deviations.
    labels : sequence of str
        Names of the parameters.
    limit : float, default=0.2
        The limit of `Posterior.check`, shown as a grey band.

    Attributes
    ----------
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import Posterior
    >>> from skbayes_sg.plots import StepBiasDisplay
    >>> evidence = {"mean_bias": np.array([0.1]), "mean_bias_mcse": np.array([0.02])}
    >>> posterior = Posterior(np.zeros((1, 4, 1)), {"coef": (1,)}, ["age"], evidence=evidence)
    >>> StepBiasDisplay.from_posterior(posterior).bias
    array([0.1])
    """

    def __init__(
        self, bias: np.ndarray, mcse: np.ndarray, labels: Sequence[str], limit: float = 0.2
    ) -> None:
        self.bias, self.mcse, self.labels, self.limit = bias, mcse, list(labels), limit

    @classmethod
    def from_posterior(
        cls, posterior: Any, *, names: Sequence[str] | str | None = None, ax: Any = None
    ) -> Self:
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Any
            The result of a fit with stochastic gradients that has measured the effect of its step.
        names : str or sequence of str, optional
            Labels or variables to show; the 20 with the largest biases by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        StepBiasDisplay

        Raises
        ------
        ValueError
            If the fit has not measured the bias. Exact samplers have none.
        """
        require_posterior(cls, posterior)
        known = posterior.evidence
        if "mean_bias" not in known:
            raise ValueError(
                "This posterior has no measured step bias: exact samplers have none, and it is not "
                "measured for step sizes that vary."
            )
        bias, mcse = (np.asarray(known[name]) for name in ("mean_bias", "mean_bias_mcse"))
        kept, labels = largest(posterior, np.abs(bias), names)
        made = cls(bias[kept], mcse[kept], labels)
        return made._of(*all_unless_named(posterior, names)).plot(ax)

    def _draw(self, axes):
        axis, places = axes[0, 0], np.arange(len(self.labels))
        axis.axvspan(-self.limit, self.limit, color="0.93", zorder=0)
        axis.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        axis.errorbar(self.bias, places, xerr=2.0 * self.mcse, fmt="o", markersize=4, capsize=2)
        self._label(axis, "bias of the mean by the step size (posterior sd)")
