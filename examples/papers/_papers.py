"""What the scripts on the papers share: data, chains by hand, references, figures."""

import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _script import Parser, needed, save_figure, some

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.engine.run import Setup, new_chains, sample
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.geometry.preconditioning import solve

__all__ = [
    "Parser",
    "errors",
    "figure",
    "fit",
    "needed",
    "reference",
    "run",
    "save_figure",
    "some",
    "standardised",
]


def standardised(X, clip=np.inf):
    """Columns of mean 0 and standard deviation 1; outliers moved to the limits."""
    X = np.asarray(X, dtype=float)
    spread = X.std(axis=0)
    X = (X[:, spread > 0] - X[:, spread > 0].mean(axis=0)) / spread[spread > 0]
    return np.clip(X, -clip, clip)


def run(frame, dynamics, gradient, scheme, n, schedule, *, n_draws, thin, start, seed=0):
    """Draws θ of chains that start at given θ: (n_chains, n_draws, D), NaN after a divergence."""
    D = frame.target.n_parameters
    pieces = frame.problem(gradient), frame.target.model, gradient, scheme, dynamics
    bounds = 1e9 * (1.0 + np.abs(solve(frame.F, np.ones((1, D)))[0]))
    setup = Setup(*pieces, n, step_size=schedule, bounds=bounds)
    chains = new_chains(setup, solve(frame.F, start - frame.centre.theta), seed)
    draws, _ = sample(setup, chains, n_draws, thin)
    found = np.full((len(chains), n_draws, D), np.nan)
    found[:, : draws.shape[1]] = frame.theta(draws)
    return found


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
