"""The value of uncertainty in a decision: planning for a number of events.

The questions are how many of the rows to come are events, and how many places to keep for them. The
outcomes of the rows are random, and the probabilities that the rows share are uncertain as well. A
point estimate has the first kind of uncertainty only.
"""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from .._base import streams
from . import _report as report
from ._models import Fits

__all__ = ["report_decision"]

TOO_FEW, TOO_MANY = 9.0, 1.0  # cost of each place that is missing, and of each that stays empty
DRAWS = 100  # most draws of each chain in the fits of further random splits
REPLICATIONS = 1000  # number of simulated outcomes of all rows for a point estimate


def totals(p, rng):
    """Simulated numbers of events (n,), for n repetitions with probabilities p (n, n_rows)."""
    return (rng.random(p.shape) < p).sum(axis=1)


def totals_of_point(point, X, rng):
    """Simulated numbers of events among the rows X, by the probabilities of a point estimate."""
    p = point.predict_proba(X)[:, 1]
    return totals(np.broadcast_to(p, (REPLICATIONS, len(p))), rng)


def totals_of_posterior(bayes, X, rng):
    """Simulated numbers of events among the rows X, one for each draw of the posterior."""
    samples = bayes[-1].predict_proba_samples(bayes[:-1].transform(X))
    return totals(samples[:, :, 1], rng)


def cost(places, needed):
    """The cost of keeping `places` places when `needed` are needed."""
    return TOO_FEW * max(needed - places, 0.0) + TOO_MANY * max(places - needed, 0.0)


def judged(found, needed):
    """Judge simulated numbers of events by the number that was needed.

    Returned are whether their 90 % interval holds that number, and the cost of keeping the number
    of places that is optimal under them, a quantile.
    """
    low, high = np.quantile(found, [0.05, 0.95])
    return low <= needed <= high, cost(np.quantile(found, TOO_FEW / (TOO_FEW + TOO_MANY)), needed)


def split_again(fits, table, n_train, seed, n_draws):
    """Fit both models to `n_train` other random rows, and judge both on the remaining rows.

    Returned are what `judged` says of the point estimate and of the posterior; None if the rows of
    the fit lack a class.
    """
    parts = train_test_split(table.X, table.y, train_size=n_train, random_state=seed)
    X_train, X_test, y_train, y_test = parts
    if len(np.unique(y_train)) < len(np.unique(table.y)):
        return None
    rng = streams.of_user(seed)
    last = fits.bayes.steps[-1][0]
    bayes = clone(fits.bayes).set_params(**{f"{last}__n_draws": n_draws}).fit(X_train, y_train)
    point = clone(fits.point.best_estimator_).fit(X_train, y_train)
    needed = (y_test == bayes.classes_[1]).sum()
    return (
        judged(totals_of_point(point, X_test, rng), needed),
        judged(totals_of_posterior(bayes, X_test, rng), needed),
    )


def seeds_of_splits(seed, n):
    """The seeds of `n` splits, from `seed` on; after the largest one of NumPy comes zero."""
    return [(seed + k) % 2**32 for k in range(n)]


def report_decision(fits: Fits, table, X, y, n_train, args):
    """Print the intervals for these held-out rows, and what was gained over other random splits."""
    event, rng = fits.bayes.classes_[1], streams.of_user(args.seed)
    report.headline(f"A decision: how many of the {len(y)} held-out rows are '{event}'?")
    by = {
        "posterior": totals_of_posterior(fits.bayes, X, rng),
        f"LogisticRegression, C = {fits.point.best_params_['clf__C']:g}": totals_of_point(
            fits.point, X, rng
        ),
    }
    for name, found in by.items():
        low, high = np.quantile(found, [0.05, 0.95])
        print(f"{name:40}90 % interval {low:.0f} to {high:.0f}")
    print(f"{'what happened':40}{(y == event).sum()}")
    found = [
        split_again(fits, table, n_train, seed, min(args.draws, DRAWS))
        for seed in seeds_of_splits(args.seed, args.splits)
    ]
    found = np.array([one for one in found if one is not None], dtype=float)
    if len(found) > 1:
        report.say(_gained(found, event, n_train))


def _gained(found, event, n_train):
    """The text on what was gained, with standard errors.

    `found` has the shape (n_splits, 2, 2): point estimate and posterior, and of each whether its
    interval held the number of events, and its cost.
    """
    n = len(found)
    inside, error = found[:, :, 0].mean(axis=0), found[:, :, 0].std(axis=0, ddof=1) / n**0.5
    saved = found[:, 0, 1] - found[:, 1, 1]
    paid = found[:, :, 1].mean(axis=0)
    spread = saved.std(ddof=1) / n**0.5
    return (
        f"In {n} random splits with {n_train} rows to learn from, the 90 % interval of the "
        f"posterior held the number of '{event}' in {inside[1]:.0%} (standard error "
        f"{error[1]:.0%}), that of the point estimate in {inside[0]:.0%} ({error[0]:.0%}). If a "
        f"place too few costs {TOO_FEW:g} and one too many {TOO_MANY:g}, planning by the posterior "
        f"cost {paid[1]:.1f} and by the point estimate {paid[0]:.1f}: {saved.mean():.1f} saved, "
        f"standard error {spread:.1f}. The point estimate knows that outcomes are random, but not "
        "that the probabilities of all rows may be off together."
    )
