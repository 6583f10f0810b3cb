"""The demonstration on a target of numbers or counts: a regression and its predictions."""

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.pipeline import Pipeline

from ..estimators import BayesianLinearRegression, BayesianPoissonRegressor
from ..metrics import interval_coverage, unwrapped
from ..plots import CoefficientDisplay, CoverageDisplay
from . import _report as report
from ._models import new_preparation, renamed

__all__ = ["fit_regression", "report_regression", "save_regression_figure"]

ROWS = 5  # number of rows in the table of predictions


def fit_regression(table, X, y, args):
    """Fit two pipelines, for the posterior and for a point estimate of the same model."""
    options = {"n_draws": args.draws, "random_state": args.seed, "n_jobs": -1}
    if table.task == "counts":
        bayes, point = BayesianPoissonRegressor(**options), PoissonRegressor(max_iter=10_000)
    else:
        bayes, point = BayesianLinearRegression(**options), LinearRegression()
    prepare = new_preparation(table)
    models = (Pipeline([("prepare", clone(prepare)), ("model", m)]) for m in (bayes, point))
    return tuple(model.fit(X, y) for model in models)


def named_regression(bayes, table):
    """The posterior of a pipeline's regressor, with coefficients named after the features."""
    names = [str(name) for name in bayes[:-1].get_feature_names_out(table.names)]
    posterior = bayes[-1].posterior_
    labels = [*names, *posterior.labels[len(names) :]]
    return renamed(posterior, labels)


def report_regression(bayes, point, table, X, y):
    """Print the posterior, and predictions beside those of the point estimate."""
    report.headline("Posterior")
    print(report.best_known(named_regression(bayes, table).summary()))
    unit = "log of the expected count" if table.task == "counts" else f"unit of {table.target!r}"
    report.say(
        f"Coefficients are changes in the {unit} for one standard deviation of a numeric column, "
        "or for being in a category."
    )
    report.report_choices(bayes)
    report.headline("Predictions for the held-out rows")
    model, rows = unwrapped(bayes, X)
    lower, upper = model.predict_interval(rows, 0.9)
    print(f"{'':40}{'root mean square error':>24}{'mean absolute error':>22}")
    for name, own in (("posterior mean", bayes), (type(point[-1]).__name__, point)):
        off = own.predict(X) - y
        print(f"{name:40}{np.sqrt(np.mean(off**2)):24.4g}{np.abs(off).mean():22.4g}")
    coverage = interval_coverage(y, lower, upper)
    report.say(
        f"The 90 % predictive intervals contain {coverage:.0%} of the "
        f"held-out values; their mean width is {np.mean(upper - lower):.4g}. The mean log "
        f"predictive density is {model.predict_log_density(rows, y).mean():.4g}."
    )
    if table.task == "counts" and coverage < 0.85:
        report.say(
            "So few lie inside because the counts vary more than a Poisson distribution does: "
            "BayesianNegativeBinomialRegressor infers by how much."
        )
    _report_rows(bayes.predict(X), lower, upper, y)


def _report_rows(mean, lower, upper, y):
    """Print predictions of `ROWS` rows, evenly spaced in the order of their predictions."""
    print(f"\n{'predicted':>12}{'90 % interval':>26}{'truth':>12}")
    order = np.argsort(mean, kind="stable")
    for i in order[np.linspace(0, len(order) - 1, min(ROWS, len(order))).astype(int)]:
        interval = f"{lower[i]:.4g} to {upper[i]:.4g}"
        print(f"{mean[i]:12.4g}{interval:>26}{y[i]:12.4g}")


def save_regression_figure(bayes, table, X, y, path):
    """Draw coefficients and coverage into a PNG file; raise `ImportError` without matplotlib."""
    from matplotlib.figure import Figure  # this needs neither pyplot nor a screen

    figure = Figure(figsize=(11, 4.8), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1])
    CoefficientDisplay.from_posterior(named_regression(bayes, table), ax=left)
    CoverageDisplay.from_estimator(bayes, X, y, ax=right)
    figure.savefig(path, format="png")
