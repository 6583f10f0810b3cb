"""The figure of the demonstration: posterior intervals, and probabilities with their intervals."""

from ..plots import CoefficientDisplay, ProbabilityDisplay
from ._models import named_posterior

__all__ = ["save_figure"]


def save_figure(fits, table, X, y, path):
    """Draw both panels into a PNG file; raise `ImportError` without matplotlib."""
    from matplotlib.figure import Figure  # this needs neither pyplot nor a screen

    figure = Figure(figsize=(11, 4.8), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
    points = {"LogisticRegression": fits.point.best_estimator_[-1].coef_}
    posterior = named_posterior(fits.bayes, table)
    CoefficientDisplay.from_posterior(posterior, points=points, ax=left)
    left.set_xlabel("change of the log-odds")
    left.tick_params(axis="y", labelsize="small")
    ProbabilityDisplay.from_estimator(fits.bayes, X, y, ax=right)
    right.set_title("held-out rows", loc="left", fontsize="small")
    figure.savefig(path, format="png")
