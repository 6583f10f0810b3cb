"""The arguments of the command line, and what they may be."""

import argparse
import errno
import os
from pathlib import Path

from ._table import TASKS, TableError

__all__ = ["check_output", "new_parser"]

FIGURE = "skbayes_sg_demo.png"
# Beyond these, the square of a scale and its inverse leave the range of floats in a fit.
LEAST_SCALE, LARGEST_SCALE = 1e-100, 1e100
LEAST_DRAWS = 4  # draws of a chain below which R-hat and effective sample sizes are not defined
LARGEST_SEED = 2**32 - 1  # of NumPy's generators, and so of scikit-learn's splits


def _parsed(kind, text, what):
    """The number of a kind that a text holds; an error, which says what it should be, for others.

    `ArgumentTypeError` has its message printed as it is, unlike `ValueError`.
    """
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not {what}") from None


def _number(text, what="a positive number"):
    """The positive number that an argument holds; an error for other texts."""
    value = _parsed(float, text, what)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not {what}")
    return value


def _scale(text):
    """The standard deviation of a prior that an argument holds; an error for other texts."""
    value = _number(text)
    if not LEAST_SCALE <= value <= LARGEST_SCALE:
        limits = f"{LEAST_SCALE:g} and {LARGEST_SCALE:g}"
        raise argparse.ArgumentTypeError(f"{text} is not between {limits}")
    return value


def _step_size(text):
    """The positive number or 'auto' that an argument holds; an error for other texts."""
    return text if text == "auto" else _number(text, "a positive number or 'auto'")


def _count(text):
    """The positive whole number that an argument holds; an error for other texts."""
    value = _parsed(int, text, "a positive whole number")
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return value


def _draws(text):
    """The number of draws that an argument holds; an error if they are too few to be judged."""
    value = _count(text)
    if value < LEAST_DRAWS:
        why = "for fewer draws of a chain, R-hat and effective sample sizes are not defined"
        raise argparse.ArgumentTypeError(f"{text} is less than {LEAST_DRAWS}: {why}")
    return value


def _seed(text):
    """The seed that an argument holds; an error for other texts."""
    what = f"a whole number from 0 to {LARGEST_SEED}"
    value = _parsed(int, text, what)
    if not 0 <= value <= LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"{text} is not {what}")
    return value


def new_parser():
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m skbayes_sg",
        description="Bayesian logistic regression on real data: grid search, posterior, "
        "predictions beside LogisticRegression, and a figure. Use --data and --target for your own "
        "table; a target of numbers or counts is predicted by linear or Poisson regression.",
    )
    add = parser.add_argument
    text = "a CSV file with a header, which gzip may have packed (default: breast cancer)"
    add("--data", metavar="FILE.csv", help=text)
    add("--target", metavar="COLUMN", help="the column of FILE.csv to predict")
    text = "what the target holds (default: numbers of more than 20 values are not classes)"
    add("--task", choices=["auto", *TASKS], default="auto", help=text)
    text, name = f"the file for the figure (default: ./{FIGURE})", "FILE.png"
    add("--output", metavar=name, type=Path, default=Path(FIGURE), help=text)
    text = f"draws of each of four chains, {LEAST_DRAWS} at least (default: 1000)"
    add("--draws", type=_draws, default=1000, help=text)
    text, folds = "folds of the grid search (default: 3)", range(2, 7)
    add("--folds", type=int, choices=folds, default=3, metavar="2..6", help=text)
    text, scales = "standard deviations of the prior to try (default: 0.3 1 3)", [0.3, 1.0, 3.0]
    add("--prior-scales", type=_scale, nargs="+", default=scales, metavar="SCALE", help=text)
    text, steps = "step sizes to try, 'auto' or numbers (default: auto 0.1)", ["auto", 0.1]
    add("--step-sizes", type=_step_size, nargs="+", default=steps, metavar="STEP", help=text)
    text = "other splits for what was gained (default: 20 for the built-in table, else none)"
    add("--splits", type=_count, metavar="N", help=text)
    add("--seed", type=_seed, default=0, help="seed of splits and draws (default: 0)")
    return parser


def check_output(path):
    """Raise `TableError` before the work if the figure cannot be saved."""
    try:
        if path.is_dir():
            raise TableError(f"--output {path} is a folder: name a file, such as {path / FIGURE}.")
        if not path.parent.is_dir():
            raise TableError(f"The folder of --output {path} does not exist.")
        _try_to_write(path)
    except OSError as error:
        raise TableError(
            f"--output {path} cannot be written: {error.strerror or error}."
        ) from error


def _try_to_write(path):
    """Raise `OSError` unless a file can be written; its folder and itself stay as they are.

    Whether new files can be made in a folder is tried: its permissions do not say so for
    administrators and for file systems such as that of processes. An existing file is not opened,
    because it need not be an ordinary one.
    """
    if not os.path.lexists(path):
        path.touch()
        path.unlink()
    elif path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
