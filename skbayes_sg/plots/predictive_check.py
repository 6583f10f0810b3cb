"""Plot of statistics of the observed data beside those of data that the model makes."""

from typing import Any, Self

import numpy as np

from .._base.typing import ArrayLike, MatrixLike
from ..metrics import PredictiveCheck, posterior_predictive_check
from ._base import ParameterRows

__all__ = ["PredictiveCheckDisplay"]

LINEAR = 3.0  # standard deviations of the replications beyond which the axis is logarithmic
# Places of ticks to both sides of zero, in the same unit, as far as the axis reaches.
TICKS = 1.0, 2.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e6, 1e9


class PredictiveCheckDisplay(ParameterRows):
    """Where the statistics of a posterior predictive check lie among those of replications.

    Each row is a statistic, in standard deviations of its replications from their median: bars are
    where 50 % and 90 % of the replications lie, dots the observed values. Beyond three standard
    deviations the axis is logarithmic.

    Parameters
    ----------
    check : skbayes_sg.metrics.PredictiveCheck

    Attributes
    ----------
    labels : list of str
        The names of the statistics.
    figure_, ax_ : matplotlib objects
        The figure and its axes, once drawn.

    See Also
    --------
    skbayes_sg.metrics.posterior_predictive_check : What the statistics are.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianPoissonRegressor
    >>> from skbayes_sg.plots import PredictiveCheckDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = rng.poisson(np.exp(1.0 + X[:, 0]))
    >>> model = BayesianPoissonRegressor(random_state=0).fit(X[:200], y[:200])
    >>> PredictiveCheckDisplay.from_estimator(model, X[200:], y[200:]).labels
    ['dispersion', 'zeros', 'tails']
    """

    def __init__(self, check: PredictiveCheck) -> None:
        self.check, self.labels = check, list(check.observed)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: MatrixLike, y: ArrayLike, *, ax: Any = None, **options: Any
    ) -> Self:
        """Check a fitted estimator, and draw the result.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor or classifier, also in a pipeline or a search.
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Observed numbers, counts or labels.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options : dict
            `exposure` and others, as for `skbayes_sg.metrics.posterior_predictive_check`.

        Returns
        -------
        PredictiveCheckDisplay
        """
        return cls(posterior_predictive_check(estimator, X, y, **options)).plot(ax)

    def _draw(self, axes):
        axis, limit = axes[0, 0], LINEAR
        for row, name in enumerate(self.labels):
            made, observed = self.check.replicated[name], self.check.observed[name]
            middle, spread = np.median(made), made.std() or 1.0
            for share, width in ((0.9, 2.0), (0.5, 6.0)):
                ends = (np.quantile(made, [0.5 - share / 2, 0.5 + share / 2]) - middle) / spread
                axis.hlines(row, *ends, color="C0", alpha=0.6, linewidth=width)
            place = (observed - middle) / spread
            limit = max(limit, 1.5 * abs(place))
            axis.plot(place, row, "o", color="C3", label="" if row else "observed")
        axis.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
        axis.set_xscale("symlog", linthresh=LINEAR)
        ticks = [t for t in TICKS if t < limit]
        axis.set_xticks([*(-t for t in ticks[::-1]), 0.0, *ticks])
        axis.xaxis.set_major_formatter("{x:g}")
        axis.minorticks_off()
        axis.set(xlim=(-limit, limit), ylim=(-0.5, len(self.labels) - 0.5))
        axis.set_title(self.check.estimator)
        self._label(axis, "standard deviations of the replications")
