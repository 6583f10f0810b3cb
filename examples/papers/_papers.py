"""What the scripts on the papers share: data, chains by hand, references, tables, figures."""

import csv
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _script import Parser, has_torch, needed, run_all, save_figure, some

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.dynamics import SGLD
from skbayes_sg.engine.run import Setup, new_chains, sample
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import find_centre
from skbayes_sg.geometry.preconditioning import solve
from skbayes_sg.schedules import Constant

__all__ = [
    "Parser",
    "errors",
    "figure",
    "fit",
    "has_torch",
    "make_frame",
    "needed",
    "plain_ticks",
    "reference",
    "run",
    "run_all",
    "run_chains",
    "save_figure",
    "save_table",
    "some",
    "standardised",
]


def standardised(X, clip=np.inf):
    """Columns of mean 0 and standard deviation 1; outliers moved to the limits."""
    X = np.asarray(X, dtype=float)
    spread = X.std(axis=0)
    X = (X[:, spread > 0] - X[:, spread > 0].mean(axis=0)) / spread[spread > 0]
    return np.clip(X, -clip, clip)


def make_frame(X, y, model, prior, kind="none"):
    """The posterior of a model without an intercept, in coordinates around its mode.

    With the kind "none" these are the parameters themselves; with "hessian" the posterior is about
    N(0, I) in them.
    """
    table = prior._table((X.shape[1],))
    target = Target(X, y, np.ones(len(y)), model, table, intercept=False)
    centre = find_centre(target, dense=True, rng=np.random.default_rng(0))
    return build_frame(target, centre, kind)


def run_chains(
    frame, gradient, scheme, n, h, *, n_draws, thin, start, seed=0, dynamics=None, **more
):
    """(draws θ, chains) from given θ; draws are (n_chains, n_draws, D), NaN after a divergence.

    `h` is a step or a schedule, `more` are fields of `Setup`.
    """
    D, dynamics = frame.target.n_parameters, dynamics or SGLD()
    pieces = frame.problem(gradient), frame.target.model, gradient, scheme, dynamics
    bounds = 1e9 * (1.0 + np.abs(solve(frame.F, np.ones((1, D)))[0]))
    step = h if callable(h) else Constant(h)
    setup = Setup(*pieces, n, step_size=step, bounds=bounds, **more)
    chains = new_chains(setup, solve(frame.F, start - frame.centre.theta), seed)
    draws, chains = sample(setup, chains, n_draws, thin)
    found = np.full((len(chains), n_draws, D), np.nan)
    found[:, : draws.shape[1]] = frame.theta(draws)
    return found, chains


def run(frame, gradient, scheme, n, h, **options):
    """The draws of `run_chains`."""
    return run_chains(frame, gradient, scheme, n, h, **options)[0]


def fit(X, y, seed=0, **options):
    """A fitted logistic regression; None if it diverged. Warnings are part of the experiment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return BayesianLogisticRegression(random_state=seed, **options).fit(X, y)
        except SamplerDivergedError:
            return None


def reference(X, y, n_draws=2000, **options):
    """Means and standard deviations of a long run of Hamiltonian Monte Carlo."""
    model = fit(X, y, sampler="hmc", n_draws=n_draws, **options)
    return model.posterior_.mean(), model.posterior_.std()


def errors(model, mean, sd):
    """Root mean square errors: of the means, in standard deviations, and of log sd."""
    if model is None:
        return np.nan, np.nan
    posterior = model.posterior_
    off, ratio = (posterior.mean() - mean) / sd, posterior.std() / sd
    return float(np.sqrt((off**2).mean())), float(np.sqrt((np.log(ratio) ** 2).mean()))


def figure(n_rows, n_columns, width=3.6, height=3.0):
    """An empty figure and its axes; ends the script where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        sys.exit("matplotlib is not installed: pip install 'skbayes_sg[plot]'")
    made = Figure((width * n_columns, height * n_rows), layout="constrained")
    return made, made.subplots(n_rows, n_columns, squeeze=False)


def plain_ticks(axis, values, which="x"):
    """Ticks of a logarithmic axis at these values and nowhere else, written as plain numbers."""
    from matplotlib.ticker import NullLocator

    side = getattr(axis, f"{which}axis")
    side.set_ticks(values, labels=[f"{value:,.6g}" for value in values])
    side.set_minor_locator(NullLocator())


def save_table(folder, name, rows):
    """Write dictionaries with the same keys to ``<folder>/<name>.csv``, numbers to four digits."""
    if folder is None:
        return
    cells = [
        {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows
    ]
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(cells)
    print(f"written: {folder / name}.csv")
