"""The command line of the demonstration."""

import argparse
import time
import warnings
from pathlib import Path

from sklearn.model_selection import train_test_split

from . import _report as report
from ._decision import report_decision
from ._figure import save_figure
from ._models import fit_all
from ._regression import fit_regression, report_regression, save_regression_figure
from ._table import TASKS, TableError, breast_cancer, read_table

__all__ = ["main"]

HELD_OUT = 0.25  # share of the rows on which predictions are tested
SPLITS = 20  # default number of further random splits, for the built-in table
SAMPLING = "Sampling; the first fit compiles its kernels and keeps them on disk ..."


def _number(text):
    """The positive number that an argument holds; an error for other texts."""
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _count(text):
    """The positive whole number that an argument holds; an error for other texts."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return value


def _step_size(text):
    """The positive number or 'auto' that an argument holds; an error for other texts."""
    return text if text == "auto" else _number(text)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m skbayes_sg",
        description="Bayesian logistic regression on real data: grid search, posterior, "
        "predictions beside LogisticRegression, and a figure. Use --data and --target for your own "
        "table; a target of numbers or counts is predicted by linear or Poisson regression.",
    )
    add = parser.add_argument
    add("--data", metavar="FILE.csv", help="a CSV file with a header (default: breast cancer)")
    add("--target", metavar="COLUMN", help="the column of FILE.csv to predict")
    text = "what the target holds (default: numbers of more than 20 values are not classes)"
    add("--task", choices=["auto", *TASKS], default="auto", help=text)
    text, name = "the file for the figure (default: ./skbayes_sg_demo.png)", "skbayes_sg_demo.png"
    add("--output", metavar="FILE.png", type=Path, default=Path(name), help=text)
    add("--draws", type=_count, default=1000, help="draws of each of four chains (default: 1000)")
    text, folds = "folds of the grid search (default: 3)", range(2, 7)
    add("--folds", type=int, choices=folds, default=3, metavar="2..6", help=text)
    text, scales = "standard deviations of the prior to try (default: 0.3 1 3)", [0.3, 1.0, 3.0]
    add("--prior-scales", type=_number, nargs="+", default=scales, metavar="SCALE", help=text)
    text, steps = "step sizes to try, 'auto' or numbers (default: auto 0.1)", ["auto", 0.1]
    add("--step-sizes", type=_step_size, nargs="+", default=steps, metavar="STEP", help=text)
    text = "other splits for what was gained (default: 20 for the built-in table, else none)"
    add("--splits", type=_count, metavar="N", help=text)
    add("--seed", type=int, default=0, help="seed of splits and draws (default: 0)")
    return parser


def _table(args):
    """The `Table` that the arguments ask for; `TableError` if they do not fit together."""
    if args.data is not None:
        return read_table(args.data, args.target, args.task)
    if args.target is not None:
        raise TableError("--target names a column of --data FILE.csv, but --data is missing.")
    return breast_cancer()


def _check_output(path):
    """Raise `TableError` before the work if the figure cannot be saved."""
    if not path.parent.is_dir():
        raise TableError(f"The folder of --output {path} does not exist.")


def main(argv=None):
    """Run the demonstration.

    Parameters
    ----------
    argv : list of str, optional
        The command line arguments; those of the process if None.

    Returns
    -------
    int
        0. If the arguments or the table cannot be used, `SystemExit` with status 2 and a message.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        _check_output(args.output)
        table = _table(args)
        args.splits = args.splits or (SPLITS if table.n_train else 0)
    except TableError as error:
        parser.exit(2, f"skbayes_sg: {error}\n")
    try:
        _demonstrate(table, args)
    except KeyboardInterrupt:
        parser.exit(130, "\nskbayes_sg: interrupted\n")
    return 0


def _demonstrate(table, args):
    """Run the demonstration for a table, and print its warnings and how long it took."""
    began = time.perf_counter()
    run = _classify if table.task == "classes" else _regress
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(table, args)
    report.report_warnings(caught)
    print(f"\nThe demonstration took {time.perf_counter() - began:.0f} seconds.")


def _classify(table, args):
    """Fit, report and draw the demonstration for a target of classes."""
    n_train = table.n_train or round((1.0 - HELD_OUT) * len(table.y))
    X_train, X_test, y_train, y_test = train_test_split(
        table.X, table.y, train_size=n_train, stratify=table.y, random_state=args.seed
    )
    report.report_data(table, len(y_train), len(y_test))
    report.say(SAMPLING)
    fits = fit_all(table, X_train, y_train, args)
    report.report_search(fits, args)
    report.report_summary(fits.bayes, table)
    report.report_choices(fits.bayes)
    report.report_predictions(fits, X_test, y_test)
    if len(fits.bayes.classes_) == 2:
        report_decision(fits, table, X_test, y_test, n_train, args)
    held = "the probability of each held-out row with its interval"
    _figure(save_figure, fits, table, X_test, y_test, args.output, held)


def _regress(table, args):
    """Fit, report and draw the demonstration for a target of numbers or counts."""
    X_train, X_test, y_train, y_test = train_test_split(
        table.X, table.y, test_size=HELD_OUT, random_state=args.seed
    )
    report.report_data(table, len(y_train), len(y_test))
    report.say(SAMPLING)
    bayes, point = fit_regression(table, X_train, y_train, args)
    report_regression(bayes, point, table, X_test, y_test)
    held = "the share of held-out values inside their intervals, which should be on the diagonal"
    _figure(save_regression_figure, bayes, table, X_test, y_test, args.output, held)


def _figure(save, fits, table, X, y, path, held):
    """Save the figure by a function, and print what it shows or why it was not saved.

    `held` is the phrase on what its second panel shows.
    """
    report.headline("Figure")
    try:
        save(fits, table, X, y, path)
    except ImportError:
        report.say("It was not drawn: matplotlib is missing. Install it: pip install matplotlib")
    except OSError as error:
        report.say(f"It was not saved: {path}: {error.strerror or error}.")
    else:
        report.say(f"{path}: posterior intervals of the coefficients, and {held}.")
