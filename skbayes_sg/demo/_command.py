"""The command line of the demonstration."""

import os
import sys
import time
import warnings

from sklearn.model_selection import train_test_split

from ..exceptions import SamplerDivergedError
from . import _report as report
from ._arguments import check_output, new_parser
from ._decision import report_decision
from ._figure import save_figure
from ._models import fit_all
from ._regression import fit_regression, report_regression, save_regression_figure
from ._table import TableError, breast_cancer, read_table

__all__ = ["main"]

HELD_OUT = 0.25  # share of the rows on which predictions are tested
SPLITS = 20  # default number of further random splits, for the built-in table
# What fits raise because of step sizes or numbers of draws that are too large.
FAILURES = (SamplerDivergedError, MemoryError)
CLOSED_PIPE = 141  # the status of programs that end because the reader of their output has gone
SAMPLING = "Sampling; the first fit compiles its kernels and keeps them on disk ..."


def _table(args):
    """The `Table` that the arguments ask for; `TableError` if they do not fit together."""
    if args.data is not None:
        return read_table(args.data, args.target, args.task)
    if args.target is not None:
        raise TableError("--target names a column of --data FILE.csv, but --data is missing.")
    return breast_cancer()


def main(argv=None):
    """Run the demonstration.

    Parameters
    ----------
    argv : list of str, optional
        The command line arguments; those of the process if None.

    Returns
    -------
    int
        0, or 1 if the figure could not be saved, or 141 if the reader of the output has gone. If
        the arguments or the table cannot be used, `SystemExit` with status 2 and a message; with
        status 1 if a fit does not succeed.
    """
    parser = new_parser()
    args = parser.parse_args(argv)
    try:
        check_output(args.output)
        table = _table(args)
        args.splits = args.splits or (SPLITS if table.n_train else 0)
    except TableError as error:
        parser.exit(2, f"skbayes_sg: {error}\n")
    try:
        saved = _demonstrate(table, args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        parser.exit(130, "\nskbayes_sg: interrupted\n")
    except BrokenPipeError:
        _drop_output()
        return CLOSED_PIPE
    except FAILURES as error:
        parser.exit(1, f"skbayes_sg: {' '.join(str(error).split())}\n")
    return 0 if saved else 1


def _drop_output():
    """Lead what is left to print nowhere, so that ending the process does not fail on it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _demonstrate(table, args):
    """Run the demonstration for a table, and print its warnings and how long it took.

    Returned is whether the figure was saved, or could not be drawn without matplotlib.
    """
    began = time.perf_counter()
    run = _classify if table.task == "classes" else _regress
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        saved = run(table, args)
    report.report_warnings(caught)
    print(f"\nThe demonstration took {time.perf_counter() - began:.0f} seconds.")
    return saved


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
    return _figure(save_figure, fits, table, X_test, y_test, args.output, held)


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
    return _figure(save_regression_figure, bayes, table, X_test, y_test, args.output, held)


def _figure(save, fits, table, X, y, path, held):
    """Save the figure by a function, and print what it shows or why it was not saved.

    `held` is the phrase on what its second panel shows. Returned is False if the file could not be
    written.
    """
    report.headline("Figure")
    try:
        save(fits, table, X, y, path)
    except ImportError:
        report.say("It was not drawn: matplotlib is missing. Install it: pip install matplotlib")
    except OSError as error:
        report.say(f"It was not saved: {path}: {error.strerror or error}.")
        return False
    else:
        report.say(f"{path}: posterior intervals of the coefficients, and {held}.")
    return True
