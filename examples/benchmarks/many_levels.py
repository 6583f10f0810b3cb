"""Columns with many levels: group effects beside one-hot columns and a target encoder.

    python examples/benchmarks/many_levels.py [--rows 100000] [--quick]

MovieLens 100K (`ml-100k.npz` in the folder that the variable SKBAYES_SG_DATA names): does a user
give a film four stars or more? The two columns are the 943 users and 1682 films. A tenth of the
films is kept back with all of its ratings, so that these levels are cold, and a fifth of the other
ratings. Printed are log losses of known and of cold levels, in nats a row, with standard errors of
their differences from those of group effects, the coverage of 90 % intervals of the share of high
ratings in cold films, and CPU seconds. "By film" each cold film counts the same, however many
ratings it has: films that are rated more often are liked more.
"""

import time

import numpy as np
from _tables import Parser, needed, save, show, some
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

from skbayes_sg import BayesianLogisticRegression


def divided(n_rows):
    """(X, y) of training, of known levels, and of cold films."""
    z = needed("ml-100k.npz")
    user, item, rating = some(n_rows, z["user"], z["item"], z["rating"])
    X, y = np.column_stack([user, item]).astype(int), (rating >= 4).astype(int)
    rng = np.random.default_rng(0)
    films = np.unique(item)
    cold = np.isin(item, rng.choice(films, len(films) // 10, replace=False))
    held = ~cold & (rng.random(len(y)) < 0.2)
    held &= np.isin(user, user[~cold & ~held]) & np.isin(item, item[~cold & ~held])
    return [(X[rows], y[rows]) for rows in (~cold & ~held, held, cold)]


def models(n_draws):
    one_hot = OneHotEncoder(handle_unknown="ignore")
    groups = {"group_effects": [0, 1], "n_draws": n_draws, "n_chains": 2, "random_state": 0}
    return {
        "group effects": BayesianLogisticRegression(**groups),
        "target encoder": make_pipeline(TargetEncoder(), StandardScaler(), LogisticRegression()),
        "one-hot, C=1": make_pipeline(one_hot, LogisticRegression(max_iter=1000)),
        "one-hot, C=100": make_pipeline(one_hot, LogisticRegression(C=100.0, max_iter=5000)),
    }


def loss_of_rows(model, X, y):
    return -np.log(model.predict_proba(X)[np.arange(len(y)), y])


def coverage_of_films(model, X, y, n_samples=400):
    """Share of cold films whose share of high ratings lies in its 90 % interval."""
    rng, films = np.random.default_rng(1), np.unique(X[:, 1])
    n_samples = min(n_samples, model.n_chains * model.n_draws)
    inside = []
    for film in films:
        rows = X[:, 1] == film
        p = model.predict_proba_samples(X[rows], n_samples)[:, :, 1]
        share = (rng.random(p.shape) < p).mean(axis=1)
        low, high = np.quantile(share, [0.05, 0.95])
        inside.append(low <= y[rows].mean() <= high)
    return float(np.mean(inside))


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, quick=3000)
    parser.add_argument("--n-draws", type=int, default=500, quick=20)
    args = parser.parse_args()
    (X, y), *held = divided(args.rows)
    rows, losses = [], {}
    for name, model in models(args.n_draws).items():
        began = time.process_time()
        model.fit(X, y)
        row = {"model": name, "CPU s": time.process_time() - began}
        for which, (X_new, y_new) in zip(("known", "cold"), held, strict=True):
            own = losses[name, which] = loss_of_rows(model, X_new, y_new)
            off = own - losses["group effects", which]
            row |= {which: own.mean(), f"worse, {which}": off.mean()}
            row[f"se, {which}"] = off.std() / np.sqrt(len(off))
        films = [held[1][0][:, 1] == film for film in np.unique(held[1][0][:, 1])]
        own = [losses[name, "cold"][rows_].mean() for rows_ in films]
        off = own - np.array([losses["group effects", "cold"][rows_].mean() for rows_ in films])
        row |= {"by film": np.mean(own), "worse, by film": off.mean()}
        row["se, by film"] = off.std() / np.sqrt(len(off))
        rows.append(row)
        if name == "group effects":
            scales = dict(zip(("sd of users", "sd of films"), model.group_std_, strict=True))
            scales["coverage of cold films"] = coverage_of_films(model, *held[1])
    show(rows)
    show([scales])
    save(args.output, "many_levels", rows)
    save(args.output, "many_levels_scales", [scales])


if __name__ == "__main__":
    main()
