"""What the displays of a posterior share: which parameters are shown, and on which axes."""

import numpy as np

__all__ = ["Display", "chosen_parameters", "pyplot"]

MOST = 20  # parameters that are shown unless asked for


def pyplot():
    """The module `matplotlib.pyplot`, which is not needed before something is drawn."""
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


def chosen_parameters(posterior, names, most=MOST):
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


class Display:
    """Base of the displays that show parameters of a posterior."""

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
            size = width, max(height * n, 2.0)
            figure, axes = pyplot().subplots(
                n, 1, squeeze=False, sharex=True, figsize=size, layout="constrained"
            )
            axes = axes[:, 0]
        else:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if len(axes) != n:
                raise ValueError(f"ax must hold {n} axes, got {len(axes)}.")
            figure = axes[0].figure
        self.figure_, self.axes_, self.ax_ = figure, axes, axes[0]
        return axes
