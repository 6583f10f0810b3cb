"""Bias of the means by the step size."""

import numpy as np

from ._base import Display, chosen_parameters

__all__ = ["StepBiasDisplay"]


class StepBiasDisplay(Display):
    """Bias of each mean by the step size, with two standard errors, in posterior sd.

    Parameters
    ----------
    bias, mcse : arrays of shape (n,)
        In posterior standard deviations.
    labels : sequence of str
        Names of the parameters.
    limit : float, default=0.2
        Bias beyond which `Posterior.check` objects: the grey band.

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

    def __init__(self, bias, mcse, labels, limit=0.2):
        self.bias, self.mcse, self.labels, self.limit = bias, mcse, list(labels), limit

    @classmethod
    def from_posterior(cls, posterior, *, names=None, ax=None):
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Posterior
            Of a fit with stochastic gradients, which has measured its step.
        names : str or sequence of str, optional
            Labels or variables to show; the first 20 parameters by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        StepBiasDisplay

        Raises
        ------
        ValueError
            If the fit has not measured its step: exact samplers have no such bias.
        """
        known, kept = posterior.evidence, chosen_parameters(posterior, names)
        if "mean_bias" not in known:
            raise ValueError(
                "This posterior has no measured step bias: exact samplers have none, and steps "
                "that vary are not measured."
            )
        labels = [posterior.labels[j] for j in kept]
        return cls(known["mean_bias"][kept], known["mean_bias_mcse"][kept], labels).plot(ax)

    def plot(self, ax=None):
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        StepBiasDisplay
        """
        (axis,) = self._axes(ax, 1, width=6.0, height=0.6 + 0.25 * len(self.labels))
        places = np.arange(len(self.labels))
        axis.axvspan(-self.limit, self.limit, color="0.93", zorder=0)
        axis.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        axis.errorbar(self.bias, places, xerr=2.0 * self.mcse, fmt="o", markersize=4, capsize=2)
        axis.set_yticks(places, self.labels)
        axis.invert_yaxis()
        axis.set_xlabel("bias of the mean by the step size (posterior sd)")
        return self
