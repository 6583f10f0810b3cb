"""The numbers of the demonstration, and their meaning in plain words."""

import re
import textwrap
from collections import Counter

import numpy as np
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import log_loss

from ..metrics import neg_calibration_error_scorer
from ..posterior import Summary
from ._models import named_posterior

__all__ = [
    "best_known",
    "headline",
    "report_choices",
    "report_data",
    "report_predictions",
    "report_search",
]
__all__ += ["report_summary", "report_warnings", "say"]

MOST_ROWS = 15  # largest number of parameters in the summary

COLUMNS = """\
mean, sd      posterior mean and standard deviation of the coefficient, which is the change of the
              log-odds per standard deviation of a numeric column, or for being in a category
5%, 95%       posterior interval: given these data, the model and the prior, the coefficient
              lies inside with probability 90 %
rhat          R-hat: 1.00 means that the independent chains agree, above 1.01 be careful
ess_bulk,     effective sample size: draws of a chain depend on each other, so that they are worth
ess_tail      this many independent draws, for the centre and for the tails
mcse_mean,    Monte Carlo standard error: mean and sd would change by about this much with another
mcse_sd       seed. More draws make it smaller; sd does not depend on their number"""

LOCKSTEP = (
    "Hamiltonian Monte Carlo in coordinates in which the posterior is nearly Gaussian, many chains "
    "in lockstep, corrected by importance weights"
)
SAMPLERS = {
    "importance": "independent draws of a warped Gaussian, corrected by importance weights",
    "hmc": "Hamiltonian Monte Carlo on all rows, exact up to Monte Carlo error",
    "mala": "the Metropolis-adjusted Langevin algorithm on all rows, exact up to Monte Carlo error",
    "baoab": "kinetic Langevin dynamics, each step of which uses only a few rows",
}
MEASURED = {
    "min_ess": "smallest effective sample size over all parameters",
    "max_rhat": "largest R-hat over all parameters",
    "pareto_k": "tail of the importance weights: averages can be trusted below 0.7",
    "weights_ess": "effective sample size that the importance weights leave",
    "left_out": "sd of the log density that rows with small remainders would add to the weights",
    "rows_exact": "rows that enter the weights exactly",
    "rows_skewed": "rows that are far from quadratic where the posterior is",
    "directions_warped": "directions along which the Gaussian is warped",
    "acceptance": "share of the moves that the exact Metropolis test accepted",
    "coupled_distance": "distance, in posterior sd, between chains at this step and at half of it "
    "(above 0.5 there is a warning)",
    "noise_inflation": "share by which using only a few rows may widen a posterior variance",
    "step_inflation": "share by which the size of the step changes a posterior variance",
    "lockstep_epsilon": "step of the chains in lockstep: without the skewness, any step is exact",
    "lockstep_acceptance": "share of the chains' moves that the exact Metropolis test accepted",
    "lockstep_n_gradients": "gradients that the chains in lockstep took, all together",
    "lockstep_rhat": "R-hat of the chains in lockstep, which are short: 1.1 is the limit",
    "n_modes": "modes of the posterior that were found and matter",
    "mode_share": "share of the draws that belong to this mode",
    "curvature_growth": "distance from a normal distribution: growth of the curvature at draws "
    "beyond that at the centre",
}


def headline(text):
    """Print a title, underlined."""
    print(f"\n{text}\n{'-' * len(text)}")


def say(text, indent=""):
    """Print a paragraph, wrapped at 96 characters; `indent` begins its first line."""
    shift = " " * len(indent)
    lines = textwrap.fill(
        text, 96, initial_indent=indent, subsequent_indent=shift, break_on_hyphens=False
    )
    print(lines, flush=True)


def report_data(table, n_train, n_test):
    """Print the origin of the data, and how they were changed."""
    headline("Data")
    say(
        f"{table.source}: {len(table.y)} rows, {len(table.names)} columns to predict "
        f"{table.target!r} from {_described(table)}. {n_train} rows to learn from, {n_test} held "
        "out."
    )
    for note in table.notes:
        say(note, "- ")


def _described(table):
    """A phrase with the number of rows of each class, or with the range of the target."""
    if table.task == "classes":
        classes, counts = np.unique(table.y, return_counts=True)
        shares = (f"{label} {count}" for label, count in zip(classes, counts, strict=True))
        return f"({', '.join(shares)})"
    low, middle, high = np.quantile(table.y, [0.0, 0.5, 1.0])
    return f"(from {low:g} to {high:g}, median {middle:g}), taken as {table.task}"


# -- the search ---------------------------------------------------------------------------------


def report_search(fits, args):
    """Print the table of the search's scores, and how to read it."""
    headline("Grid search: how wide a prior? Does the step size matter?")
    say("Mean log predictive density of held-out folds (zero would be perfect foresight):")
    # GridSearchCV varies the alphabetically last parameter, step_size, fastest
    scores, scatter = _scores(fits.search, (len(args.prior_scales), len(args.step_sizes)))
    points, _ = _scores(fits.point, len(args.prior_scales))
    steps = _row(f"step {h}" for h in args.step_sizes)
    print(f"{'':30}{steps}{'LogisticRegression':>22}")
    for scale, row, point in zip(args.prior_scales, scores, points, strict=True):
        numbers = _row(f"{score:.4f}" for score in row)
        print(f"{f'  prior: normal, scale {scale:g}':30}{numbers}{point:22.4f}")
    say(_down_a_column(scores, points))
    if len(args.step_sizes) > 1:
        say(_along_a_row(scores, scatter))
    if np.isnan(scores).any():
        say("nan: fits that ended in an error (below) rather than in a wrong posterior.")
    say(_chosen(fits.search.best_params_["clf__prior__scale"], args.prior_scales))


def _scores(search, shape):
    """The mean scores over folds in the given shape, and their average standard deviation."""
    results = search.cv_results_
    return results["mean_test_score"].reshape(shape), np.nanmean(results["std_test_score"])


def _row(values):
    """Values in columns of 12 characters."""
    return "".join(f"{value!s:>12}" for value in values)


def _down_a_column(scores, points):
    """The text on what differs down a column of the table: the scale of the prior."""
    text = (
        "Down a column the model changes. LogisticRegression is the point estimate for the same "
        "prior, with C = scale squared."
    )
    if len(points) == 1:
        return text
    return text + (
        f" Over this range of priors its scores span {np.ptp(points):.3f}, those of the posterior "
        f"{np.ptp(scores[:, 0]):.3f}."
    )


def _along_a_row(scores, scatter):
    """The text on what differs along a row of the table: the step size."""
    return (
        "Along a row only the sampler's step changes, which must not matter while it is small "
        f"enough: the scores differ by {np.nanmax(np.ptp(scores, axis=1)):.4f} at most; between "
        f"folds those of one model scatter by {scatter:.4f}."
    )


def _chosen(best, scales):
    """The text on the scale of the prior that the search has chosen."""
    edge = ""
    if len(scales) > 1 and best in (min(scales), max(scales)):
        edge = " It is the edge of the grid: a wider grid (--prior-scales) might hold a better one."
    return f"Chosen: prior scale {best:g}.{edge} The step size is left to 'auto'."


# -- the posterior ------------------------------------------------------------------------------


def report_summary(bayes, table):
    """Print the summary of the posterior, and the meaning of its columns."""
    headline("Posterior")
    summary = named_posterior(bayes, table).summary()
    print(best_known(summary))
    print()
    print(textwrap.indent(COLUMNS, "  "))
    classes = bayes[-1].classes_
    if len(classes) == 2:
        say(f"Log-odds are those of '{classes[1]}' against '{classes[0]}'.")


def best_known(summary):
    """The `MOST_ROWS` rows of a summary whose means are farthest from zero, in units of sd."""
    if len(summary.labels) <= MOST_ROWS:
        return summary
    order = np.argsort(-np.abs(summary["mean"]) / summary["sd"])[:MOST_ROWS]
    columns = {name: values[order] for name, values in summary.columns.items()}
    heading = (
        f"{summary.heading}\n"
        f"The {MOST_ROWS} of {len(summary.labels)} parameters whose sign is most certain:"
    )
    return Summary([summary.labels[i] for i in order], columns, heading)


def report_choices(bayes):
    """Print what "auto" chose, and what the fit has measured."""
    headline('What "auto" chose, and what was measured')
    clf = bayes[-1]
    sampler = SAMPLERS.get(clf.sampler_, f"sampler {clf.sampler_!r}")
    if "lockstep_epsilon" in clf.diagnostics_:
        sampler = LOCKSTEP
    steps = (
        f": {clf.batch_size_} rows a step, gradient {clf.gradient_!r}, step size "
        f"{clf.step_size_:.3g} in units in which the posterior has width 1, {clf.n_warmup_} steps "
        f"of warm-up, every {_ordinal(clf.thin_)} state kept."
    )
    if not np.isfinite(clf.step_size_):
        steps = "."
    say(f"{sampler[0].upper()}{sampler[1:]}{steps}")
    width = max(map(len, clf.diagnostics_), default=0)
    for name, value in clf.diagnostics_.items():
        say(_meaning(name), f"  {name:{width}}  {value:<9.4g} ")


def _meaning(name):
    """The text on what a diagnostic measures; names of single modes end in the mode's number."""
    return MEASURED.get(re.sub(r"_\d+$", "", name), name.replace("_", " "))


def _ordinal(n):
    """An ordinal in "every ... state": "single", "2nd", "3rd", ..."""
    if n == 1:
        return "single"
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


# -- predictions --------------------------------------------------------------------------------


def report_predictions(fits, X, y):
    """Print log-loss, calibration and accuracy of posterior and point estimate on held-out rows."""
    headline("Predictions for the held-out rows")
    rows = {
        "posterior (mean over all draws)": fits.bayes,
        f"LogisticRegression, C = {fits.point.best_params_['clf__C']:g}": fits.point,
    }
    print(f"{'':40}{'log-loss':>12}{'calibration error':>20}{'accuracy':>12}")
    for name, model in rows.items():
        loss = log_loss(y, model.predict_proba(X), labels=model.classes_)
        gap = -neg_calibration_error_scorer(model, X, y)
        print(f"{name:40}{loss:12.4f}{gap:20.4f}{np.mean(model.predict(X) == y):12.4f}")
    say(
        "Log-loss is the mean of -log(probability of what happened); smaller is better. The "
        "calibration error is the average distance of predicted probabilities from frequencies in "
        "ten bins; part of it is due to chance, and less so with more rows. The point estimate's C "
        "was chosen on the same folds."
    )
    say(_difference(fits, X, y))
    _report_doubt(fits.bayes, X, y)


def _losses(model, X, y):
    """The log-loss of each row."""
    p = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return -np.log(np.maximum(p, np.finfo(float).tiny))


def _difference(fits, X, y):
    """The text on the difference in log-loss between both models, with its standard error."""
    gain = _losses(fits.point, X, y) - _losses(fits.bayes, X, y)
    mean, error = gain.mean(), gain.std() / np.sqrt(len(gain))
    verdict = "better" if mean > 0 else "worse"
    if abs(mean) < 2 * error:
        verdict = f"equally well, as far as {len(gain)} rows can tell"
    return (
        f"Gain in log-loss, row by row: {mean:.4f} with standard error {error:.4f}: of single rows "
        f"the posterior predicts {verdict}. What it adds is how sure each probability is."
    )


def _report_doubt(bayes, X, y):
    """Print the three held-out rows whose probability is most uncertain, and the surest one."""
    lower, upper = bayes[-1].predict_proba_interval(bayes[:-1].transform(X))
    p = bayes.predict_proba(X)
    top = p.argmax(axis=1)
    pick = np.arange(len(top)), top
    width = upper[pick] - lower[pick]
    print("\nHeld-out rows whose probability is most uncertain, and least uncertain (last):")
    print(f"{'predicted':>24}{'probability':>14}{'90 % interval':>18}{'truth':>24}")
    for i in [*np.argsort(-width, kind="stable")[:3], np.argmin(width)]:
        interval = f"{lower[i, top[i]]:.2f} to {upper[i, top[i]]:.2f}"
        label = bayes.classes_[top[i]]
        print(f"{label:>24}{p[i, top[i]]:14.2f}{interval:>18}{y[i]:>24}")
    say(
        "The interval is for the probability itself: it would shrink with more training rows, "
        "while the probability need not move towards 0 or 1."
    )


def report_warnings(caught):
    """Print the last warning of each class of this package, and how often it occurred."""
    named = [named for warning in caught for named in _named(warning)]
    if not named:
        return
    headline("Warnings")
    for name, count in Counter(name for name, _ in named).items():
        last = next(message for other, message in reversed(named) if other == name)
        say(f"{name} ({count} times; the last one): {last}", "- ")


def _named(warning):
    """The pairs (class, message) in a warning: of this package, or of its errors in a search."""
    text = str(warning.message)
    if issubclass(warning.category, FitFailedWarning):
        return re.findall(r"skbayes_sg\.exceptions\.(\w+): (.*)", text)
    ours = warning.category.__module__.startswith("skbayes_sg")
    return [(warning.category.__name__, text)] if ours else []
