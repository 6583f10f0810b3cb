"""Pictures of a posterior and of the evidence for it, as scikit-learn's displays are used.

Each display is made by ``from_estimator`` or ``from_posterior``, which draw it at once, and keeps
what it shows: `plot` draws it again, elsewhere or otherwise. Needs matplotlib
(``pip install "skbayes_sg[plot]"``). For everything else there is `Posterior.to_arviz`.
"""

import numpy as np

__all__ = [
    "AutocorrelationDisplay",
    "GradientNoiseDisplay",
    "IntervalDisplay",
    "PairDisplay",
    "StepBiasDisplay",
    "TraceDisplay",
]

MOST = 20  # parameters that are shown unless asked for


def _pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Plots need matplotlib: pip install "skbayes_sg[plot]", or pip install matplotlib.'
        ) from error
    return plt


def _posterior_of(estimator):
    """The posterior of a fitted estimator, or of the last step of a pipeline."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if not hasattr(last, "posterior_"):
        raise TypeError(f"A fitted estimator with a posterior_ is needed, got {last!r}.")
    return last.posterior_


def _chosen(posterior, names, most=MOST):
    """Positions of the parameters with some labels or variables; the first few if None."""
    if names is None:
        return list(range(min(most, len(posterior.labels))))
    found = []
    for name in [names] if isinstance(names, str) else names:
        if name in posterior.shapes:
            where = posterior._where(name)
            found += range(where.start, where.stop)
        elif name in posterior.labels:
            found.append(posterior.labels.index(name))
        else:
            raise KeyError(f"{name!r}: the variables are {list(posterior.names)}.")
    return found


class _Display:
    """What displays share."""

    @classmethod
    def from_estimator(cls, estimator, *, names=None, ax=None, **options):
        """Draw the display of a fitted estimator's posterior.

        Parameters
        ----------
        estimator : estimator
            Fitted, or a pipeline that ends in it.
        names : str or sequence of str, optional
            Labels or variables to show; the first ones by default.
        ax : matplotlib Axes, or array of Axes, optional
            Where to draw; a new figure by default.
        **options : dict
            As for `from_posterior`.

        Returns
        -------
        display
        """
        return cls.from_posterior(_posterior_of(estimator), names=names, ax=ax, **options)

    def _axes(self, ax, n, *, width, height):
        """`n` axes, one below the other, and `figure_`."""
        if ax is None:
            figure, axes = _pyplot().subplots(
                n, 1, squeeze=False, sharex=True, figsize=(width, max(height * n, 2.0)),
                layout="constrained",
            )  # fmt: skip
            axes = axes[:, 0]
        else:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if len(axes) != n:
                raise ValueError(f"ax must hold {n} axes, got {len(axes)}.")
            figure = axes[0].figure
        self.figure_, self.axes_, self.ax_ = figure, axes, axes[0]
        return axes


class TraceDisplay(_Display):
    """Draws of some parameters in the order in which they were made, one line a chain.

    Chains that have converged look alike, like noise, and go nowhere.

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
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['age', 'mass']
    """

    def __init__(self, draws, labels):
        self.draws, self.labels = draws, list(labels)

    @classmethod
    def from_posterior(cls, posterior, *, names=None, ax=None):
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Posterior
        names : str or sequence of str, optional
            Labels or variables to show; the first five parameters by default.
        ax : array of Axes, optional
            One for each parameter; a new figure by default.

        Returns
        -------
        TraceDisplay
        """
        kept = _chosen(posterior, names, 5)
        display = cls(posterior.flat[..., kept], [posterior.labels[j] for j in kept])
        return display.plot(ax)

    def plot(self, ax=None):
        """Draw it.

        Parameters
        ----------
        ax : array of Axes, optional
            One for each parameter; a new figure by default.

        Returns
        -------
        TraceDisplay
        """
        axes = self._axes(ax, len(self.labels), width=7.0, height=1.3)
        for j, (axis, label) in enumerate(zip(axes, self.labels, strict=True)):
            axis.plot(self.draws[:, :, j].T, linewidth=0.5)
            axis.set_ylabel(label)
        axes[-1].set_xlabel("draw")
        return self


class IntervalDisplay(_Display):
    """Posterior means with two central intervals each: a forest plot.

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

    def __init__(self, means, inner, outer, labels, masses=(0.5, 0.9)):
        self.means, self.inner, self.outer = means, inner, outer
        self.labels, self.masses = list(labels), masses

    @classmethod
    def from_posterior(cls, posterior, *, names=None, ax=None, masses=(0.5, 0.9)):
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Posterior
        names : str or sequence of str, optional
            Labels or variables to show; the first 20 parameters by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        masses : tuple of float, default=(0.5, 0.9)
            Probabilities inside of the thick and of the thin line.

        Returns
        -------
        IntervalDisplay
        """
        kept = _chosen(posterior, names)
        inner, outer = (np.array(posterior.interval(mass))[:, kept] for mass in masses)
        labels = [posterior.labels[j] for j in kept]
        return cls(posterior.mean()[kept], inner, outer, labels, tuple(masses)).plot(ax)

    def plot(self, ax=None):
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        IntervalDisplay
        """
        (axis,) = self._axes(ax, 1, width=6.0, height=0.6 + 0.25 * len(self.labels))
        places = np.arange(len(self.labels))
        for ends, width, mass in zip(
            (self.outer, self.inner), (1.0, 3.5), self.masses[::-1], strict=True
        ):
            axis.hlines(places, *ends, color="C0", linewidth=width, label=f"{mass:.0%}")
        axis.plot(self.means, places, "o", color="C0", markersize=4, label="mean")
        axis.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        axis.set_yticks(places, self.labels)
        axis.invert_yaxis()
        axis.set_xlabel("posterior")
        axis.legend(loc="best", fontsize="small")
        return self


class PairDisplay(_Display):
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
        from ._base import weights as weighting

        kept = _chosen(posterior, names, 4)
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
            _, ax = _pyplot().subplots(
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


class AutocorrelationDisplay(_Display):
    """Autocorrelation of some parameters against the lag, averaged over chains.

    Parameters
    ----------
    correlations : array of shape (n_lags, n)
        Of the parameters to show, from lag 0.
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

    def __init__(self, correlations, labels, noise=0.0):
        self.correlations, self.labels, self.noise = correlations, list(labels), noise

    @classmethod
    def from_posterior(cls, posterior, *, names=None, ax=None, n_lags=30):
        """Draw the display of a posterior.

        Parameters
        ----------
        posterior : Posterior
        names : str or sequence of str, optional
            Labels or variables to show; the first five parameters by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_lags : int, default=30
            Lags from 0 on.

        Returns
        -------
        AutocorrelationDisplay
        """
        kept = _chosen(posterior, names, 5)
        x = posterior.flat[..., kept]
        correlations = _autocorrelations(x, min(n_lags, posterior.n_draws))
        noise = 2.0 / np.sqrt(x.shape[0] * x.shape[1])
        return cls(correlations, [posterior.labels[j] for j in kept], noise).plot(ax)

    def plot(self, ax=None):
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        AutocorrelationDisplay
        """
        (axis,) = self._axes(ax, 1, width=6.0, height=3.5)
        axis.axhspan(-self.noise, self.noise, color="0.9", zorder=0)
        for values, label in zip(self.correlations.T, self.labels, strict=True):
            axis.plot(values, marker="o", markersize=3, linewidth=1.0, label=label)
        axis.set_xlabel("lag (draws)")
        axis.set_ylabel("autocorrelation")
        axis.legend(loc="best", fontsize="small")
        return self


def _autocorrelations(x, n_lags):
    """Σ_t (x_t - x̄)(x_{t+k} - x̄) / Σ_t (x_t - x̄)², about the mean of all chains."""
    x = x - x.mean(axis=(0, 1))
    n = x.shape[1]
    covariances = np.array(
        [(x[:, : n - k] * x[:, k:]).sum(axis=1).mean(axis=0) for k in range(n_lags)]
    )
    return covariances / np.maximum(covariances[0], np.finfo(float).tiny)


class StepBiasDisplay(_Display):
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
        known, kept = posterior.evidence, _chosen(posterior, names)
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


class GradientNoiseDisplay(_Display):
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
        kept = _chosen(posterior, names)
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
