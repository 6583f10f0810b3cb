"""The figure of the demonstration: posterior intervals, and probabilities with their intervals."""

import numpy as np

from ._models import named_posterior

__all__ = ["most_certain", "save_figure"]

BLUE, ORANGE, GREY = "#2b6ca3", "#d1641b", "#777777"
MOST_COEFFICIENTS = 20
MOST_ROWS = 150


def save_figure(fits, table, X, y, path):
    """Draw both panels into a PNG file; raise `ImportError` without matplotlib."""
    from matplotlib.figure import Figure  # neither pyplot nor a display

    figure = Figure(figsize=(11, 4.8), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
    _draw_coefficients(left, fits, table)
    _draw_probabilities(right, fits, X, y)
    figure.savefig(path, format="png")


def most_certain(posterior):
    """Positions of the coefficients whose mean is farthest from zero in units of sd."""
    mean, sd = (f("coef").ravel() for f in (posterior.mean, posterior.std))
    return np.argsort(-np.abs(mean) / sd, kind="stable")[:MOST_COEFFICIENTS]


def _draw_coefficients(ax, fits, table):
    """50 % and 90 % posterior intervals, and the point estimates."""
    posterior = named_posterior(fits.bayes, table)
    point = fits.point.best_estimator_[-1].coef_.ravel()
    mean, shown = posterior.mean("coef").ravel(), most_certain(posterior)
    shown = shown[np.argsort(mean[shown])]
    at = np.arange(len(shown))
    for mass, width in ((0.9, 1.5), (0.5, 5.0)):
        lower, upper = (bound.ravel()[shown] for bound in posterior.interval(mass, "coef"))
        ax.hlines(at, lower, upper, color=BLUE, lw=width, label=f"{mass:.0%} interval")
    ax.plot(mean[shown], at, "o", ms=4, mfc="white", mec=BLUE, label="posterior mean")
    ax.plot(point[shown], at, "x", ms=5, color=ORANGE, label="LogisticRegression")
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_yticks(at, [posterior.labels[j] for j in shown], fontsize=8)
    left_out = "" if len(shown) == len(mean) else f"\nthe {len(shown)} of {len(mean)} best known"
    ax.set_title(f"Coefficients{left_out}", fontsize=10)
    ax.set_xlabel("change of the log-odds")
    _legend(ax)


def _draw_probabilities(ax, fits, X, y):
    """Held-out rows in the order of their probability, with intervals and outcomes."""
    bayes = fits.bayes
    p, (lower, upper) = (
        bayes.predict_proba(X),
        bayes[-1].predict_proba_interval(bayes[:-1].transform(X)),
    )
    if len(bayes.classes_) == 2:
        column, event = np.ones(len(y), dtype=int), f"'{bayes.classes_[1]}'"
    else:
        column, event = p.argmax(axis=1), "the predicted class"
    pick = np.arange(len(y)), column
    happened = bayes.classes_[column] == y
    order = np.argsort(p[pick], kind="stable")
    order = order[np.linspace(0, len(order) - 1, min(len(order), MOST_ROWS)).astype(int)]
    at = np.arange(len(order))
    style = {"color": BLUE, "lw": 1.5, "alpha": 0.5, "label": "90% interval of the probability"}
    ax.vlines(at, lower[pick][order], upper[pick][order], **style)
    ax.plot(at, p[pick][order], ".", ms=4, color=BLUE, label="probability")
    ax.plot(at, happened[order] * 1.08 - 0.04, "|", ms=6, color=ORANGE, label="what happened")
    ax.set_title(f"Probability of {event}\nfor held-out rows, and how sure it is", fontsize=10)
    ax.set_xlabel("held-out rows, in the order of the probability")
    ax.set_ylim(-0.08, 1.08)
    _legend(ax)


def _legend(ax):
    """Put the legend below the panel, where it hides no data."""
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12), "ncols": 4}
    ax.legend(**place, fontsize=8, frameon=False, columnspacing=1.2, handletextpad=0.5)
