"""A learned scale beside a grid of fixed ones: held-out log density, and time.

    python examples/benchmarks/learned_scales.py [--folds 5] [--repeats 1] [--only DATA] [--quick]

``Normal(scale=HalfCauchy())`` against `Normal` with 0.01, 0.03, 0.1, 0.3 and 1 standard deviations
of the response (of counts: 1) for one of the column; of classes with 0.1, 0.3, 1, 3 and 10 logits.
Log densities are those of held-out rows, on average over the folds; the best of the grid is chosen
with these very rows, which favours it. With several repeats of the folds each row counts with its
mean log density. Seconds are those of the processor, medians over the folds: of the learned scale,
and of one fit with the best fixed one.
"""

import time
import warnings

import numpy as np
from _tables import Parser, save, show
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.priors import HalfCauchy, Normal

GRID = np.array([0.01, 0.03, 0.1, 0.3, 1.0])
OF_CLASSES = 10.0  # grids of classifiers are wider


def diabetes():
    return (*load_diabetes(return_X_y=True), BayesianLinearRegression)


def outliers():
    X, y = load_diabetes(return_X_y=True)
    y[::20] += 300.0
    return X, y, BayesianRobustRegression


def breast_cancer():
    return (*load_breast_cancer(return_X_y=True), BayesianLogisticRegression)


def three_wines():
    return (*load_wine(return_X_y=True), BayesianLogisticRegression)


def nothing_to_find():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 30)), rng.random(300) < 0.5, BayesianLogisticRegression


def more_columns_than_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 400))
    return X, X @ (0.1 * rng.normal(size=400)) + rng.normal(size=150), BayesianLinearRegression


def counts():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 40))
    return X, rng.poisson(np.exp(0.5 + X @ (0.1 * rng.normal(size=40)))), BayesianPoissonRegressor


def many_clicks():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 50))
    eta = X @ (0.3 * rng.standard_t(3, size=50)) - 2.0
    return X, rng.random(len(X)) < expit(eta), BayesianLogisticRegression


DATA = [diabetes, outliers, breast_cancer, three_wines, nothing_to_find]
DATA += [more_columns_than_rows, counts, many_clicks]


OF_NUMBERS = BayesianLinearRegression, BayesianRobustRegression


def grid_of(estimator):
    """Scales, in standard deviations of the response for one of the column."""
    return OF_CLASSES * GRID if estimator is BayesianLogisticRegression else GRID


def log_density(model, X, y):
    """Of each held-out row."""
    if hasattr(model, "classes_"):
        columns = np.searchsorted(model.classes_, y)
        return model.predict_log_proba(X)[np.arange(len(y)), columns]
    return model.predict_log_density(X, y)


def fitted(estimator, prior, X, y):
    """The model, and the seconds of the processor that it took."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(prior=prior, random_state=0).fit(X, y)
    return model, time.process_time() - began


def measured(X, y, estimator, n_folds, seed):
    """Log densities (n_priors, n_rows) and seconds (n_priors, n_folds), the learned scale last."""
    density, took = np.empty((len(GRID) + 1, len(X))), []
    for train, test in KFold(n_folds, shuffle=True, random_state=seed).split(X):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        unit = y[train].std() if estimator in OF_NUMBERS else 1.0
        scales = unit * grid_of(estimator)
        priors = [Normal(scale=s) for s in scales] + [Normal(scale=HalfCauchy())]
        models = [fitted(estimator, prior, A, y[train]) for prior in priors]
        density[:, test] = [log_density(model, B, y[test]) for model, _ in models]
        took.append([seconds for _, seconds in models])
    return density, np.transpose(took)


def repeated(X, y, estimator, n_folds, n_repeats):
    """As `measured`, with the mean of several repeats for each row."""
    every = [measured(X, y, estimator, n_folds, seed) for seed in range(n_repeats)]
    density, took = zip(*every, strict=True)
    return np.mean(density, axis=0), np.concatenate(took, axis=1)


def row(name, X, estimator, density, seconds):
    """A row of the table."""
    means, medians = density.mean(axis=1), np.median(seconds, axis=1)
    best = int(means[:-1].argmax())
    apart = density[-1] - density[best]
    return {
        "data": name.replace("_", " "),
        "rows": X.shape[0],
        "columns": X.shape[1],
        "learned": round(means[-1], 4),
        "best of grid": round(means[best], 4),
        "worst of grid": round(means[:-1].min(), 4),
        "scale": float(grid_of(estimator)[best]),
        "difference": round(apart.mean(), 4),
        "standard error": round(apart.std() / np.sqrt(len(apart)), 4),
        "seconds": medians[-1],
        "of one fixed": medians[best],
    }


def main():
    parser = Parser(__doc__)
    parser.add_argument("--folds", type=int, default=5, quick=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", metavar="DATA", quick="diabetes", help="a part of a name")
    options = parser.parse_args()
    rows = []
    for data in DATA:
        if options.only and options.only not in data.__name__:
            continue
        X, y, estimator = data()
        for prior in (Normal(scale=HalfCauchy()), Normal(scale=1.0)):
            fitted(estimator, prior, X[::5], y[::5])  # compiles
        found = repeated(X, y, estimator, options.folds, options.repeats)
        rows.append(row(data.__name__, X, estimator, *found))
        show(rows[-1:])
    show(rows)
    save(options.output, "learned_scales", rows)


if __name__ == "__main__":
    main()
