"""Networks for tables: our posteriors of networks beside what else there is.

    python examples/benchmarks/networks.py [--data concrete pima ...] [--splits 5] [--quick]

Each split holds out a tenth of the rows at random. Of regressions the table has the negative log
predictive density (NLPD, in units of y), the root mean square error and the coverage of 90 %
intervals; of classifications the log-loss and the error. All are means over splits with standard
errors, and the seconds of a fit are those of all processors. What has no predictive law gets one:
the residuals of a tenth of the training rows, held out, give the standard deviation of a normal
law. All see standardised columns, and networks a standardised y. Data that are not there are left
out: set SKBAYES_SG_DATA to the folder of cal_housing.npz (whose response is the logarithm of a
price), concrete.npz, parkinsons.npz, pima.npz, protein_casp.npz.
The page "A network for a table" shows what ``--output examples/benchmarks/results`` has written,
after more than an hour.
"""

import os
import warnings
from functools import partial

import numpy as np
from _tables import Parser, data_file, save, show
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
)

MEMBERS = 10  # of an ensemble
MOST_ROWS_OF_GP = 1200
MOST_ROWS_OF_ONE_SD = 10_000  # the other form of our noise: larger tables take minutes a split


# -- data: X and y, or None -------------------------------------------------------------------


def _file(name, columns=None):
    found = data_file(f"{name}.npz")
    if found is None:
        return None
    if columns is None:
        return found["X"].astype(float), found["y"].astype(float)
    table = found["data"].astype(float)
    return table[:, columns], table[:, 5]  # total UPDRS


def _housing():
    found = data_file("cal_housing.npz")
    return None if found is None else (found["X"], np.log(found["y"]))


REGRESSIONS = {
    "concrete": partial(_file, "concrete"),
    "diabetes": partial(load_diabetes, return_X_y=True),
    "friedman1": partial(make_friedman1, 1000, noise=1.0, random_state=0),
    "parkinsons": partial(_file, "parkinsons", [1, 2, 3, *range(6, 22)]),
    "housing": _housing,
    "protein": partial(_file, "protein_casp"),
}
CLASSIFICATIONS = {
    "pima": partial(_file, "pima"),
    "breast cancer": partial(load_breast_cancer, return_X_y=True),
    "digits": partial(load_digits, return_X_y=True),
}


# -- methods: (X, y, X_new, seed) -> (mean, law) of numbers, or probabilities ------------------


class Normals:
    """Predictive laws of rows: mixtures of normals, means and sds (parts, rows)."""

    def __init__(self, means, sds):
        self.means = np.atleast_2d(means)
        self.sds = np.broadcast_to(sds, self.means.shape)

    def scores(self, y):
        """NLPD, RMSE, and whether 90 % intervals cover y, through P(Y <= y)."""
        log_p = norm.logpdf(y, self.means, self.sds)
        nlpd = -(logsumexp(log_p, axis=0) - np.log(len(log_p))).mean()
        below = norm.cdf(y, self.means, self.sds).mean(axis=0)
        rmse = np.sqrt(np.square(self.means.mean(axis=0) - y).mean())
        return {"NLPD": nlpd, "RMSE": rmse, "coverage": ((below > 0.05) & (below < 0.95)).mean()}


class Draws:
    """Predictive laws that an estimator of this package knows."""

    def __init__(self, model, X):
        self.model, self.X = model, X

    def scores(self, y):
        lower, upper = self.model.predict_interval(self.X)
        nlpd = -self.model.predict_log_density(self.X, y).mean()
        rmse = np.sqrt(np.square(self.model.predict(self.X) - y).mean())
        return {"NLPD": nlpd, "RMSE": rmse, "coverage": ((lower <= y) & (y <= upper)).mean()}


def _scaled(model):
    return TransformedTargetRegressor(model, transformer=StandardScaler())


def _with_residuals(fit, X, y, X_new, seed):
    """Predictions of one model of all rows, and the sd of the residuals of held-out ones."""
    order = np.random.default_rng(seed).permutation(len(X))
    out, rest = order[: len(X) // 10], order[len(X) // 10 :]
    residuals = y[out] - fit(X[rest], y[rest])(X[out])
    return Normals(fit(X, y)(X_new), np.sqrt(np.mean(residuals**2)))


def ours(X, y, X_new, seed, **parameters):
    return Draws(BayesianMLPRegressor(random_state=seed, **parameters).fit(X, y), X_new)


def one_sd(X, y, X_new, seed):
    return None if len(X) > MOST_ROWS_OF_ONE_SD else ours(X, y, X_new, seed, noise="infer")


def linear(X, y, X_new, seed):
    return Draws(BayesianLinearRegression(random_state=seed).fit(X, y), X_new)


def mlp(X, y, X_new, seed):
    def fit(X, y):
        return _scaled(MLPRegressor(max_iter=1000, random_state=seed)).fit(X, y).predict

    return _with_residuals(fit, X, y, X_new, seed)


def ensemble(X, y, X_new, seed):
    def fit(X, y):
        members = [
            _scaled(
                MLPRegressor(hidden_layer_sizes=(50,), max_iter=1000, random_state=seed + k)
            ).fit(X, y)
            for k in range(MEMBERS)
        ]
        return lambda X: np.mean([member.predict(X) for member in members], axis=0)

    return _with_residuals(fit, X, y, X_new, seed)


def boosting(X, y, X_new, seed):
    def fit(X, y):
        return HistGradientBoostingRegressor(random_state=seed).fit(X, y).predict

    return _with_residuals(fit, X, y, X_new, seed)


def gaussian_process(X, y, X_new, seed):
    if len(X) > MOST_ROWS_OF_GP:
        return None
    kernel = ConstantKernel(1.0) * RBF(np.ones(X.shape[1])) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed).fit(X, y)
    return Normals(*model.predict(X_new, return_std=True))


def _classifier(make, X, y, X_new, seed):
    return make(random_state=seed).fit(X, y).predict_proba(X_new)


def ensemble_of_classifiers(X, y, X_new, seed):
    members = (MLPClassifier((50,), max_iter=1000, random_state=seed + k) for k in range(MEMBERS))
    return np.mean([one.fit(X, y).predict_proba(X_new) for one in members], axis=0)


OF_NUMBERS = {
    "BayesianMLPRegressor": ours,
    "... noise='infer'": one_sd,
    "MLPRegressor": mlp,
    "ensemble of ten": ensemble,
    "Gaussian process": gaussian_process,
    "gradient boosting": boosting,
    "BayesianLinearRegression": linear,
}
OF_CLASSES = {
    "BayesianMLPClassifier": partial(_classifier, BayesianMLPClassifier),
    "MLPClassifier": partial(_classifier, partial(MLPClassifier, max_iter=1000)),
    "ensemble of ten": ensemble_of_classifiers,
    "gradient boosting": partial(_classifier, HistGradientBoostingClassifier),
    "BayesianLogisticRegression": partial(_classifier, BayesianLogisticRegression),
}


def scores_of_classes(p, y):
    """Log-loss and error, for labels 0, 1, ..."""
    own = np.clip(p[np.arange(len(y)), y.astype(int)], 1e-15, 1.0)
    return {"log-loss": -np.log(own).mean(), "error": (p.argmax(axis=1) != y).mean()}


# -- the experiment ---------------------------------------------------------------------------


def splits(X, y, n_splits):
    """Training and held-out rows, columns standardised by the training ones."""
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(X))
        new, old = order[: len(X) // 10], order[len(X) // 10 :]
        scale = StandardScaler().fit(X[old])
        yield seed, scale.transform(X[old]), y[old], scale.transform(X[new]), y[new]


def processor_seconds():
    return sum(os.times()[:4])


def measured(method, numeric, X, y, X_new, y_new, seed):
    """Scores of one method on one split, and its seconds."""
    began = processor_seconds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = method(X, y, X_new, seed)
        seconds = processor_seconds() - began
        if found is None:
            return None
        scores = found.scores(y_new) if numeric else scores_of_classes(found, y_new)
    return scores | {"seconds": seconds}


def rows_of(name, X, y, n_splits, numeric):
    """One row of the table for each method."""
    rows, methods = [], OF_NUMBERS if numeric else OF_CLASSES
    for label, method in methods.items():
        method(X[:60], y[:60], X[:5], 0)  # compiles
        each = [measured(method, numeric, *rest, seed) for seed, *rest in splits(X, y, n_splits)]
        if each[0] is None:
            continue
        row = {"data": name, "rows": len(X), "method": label}
        for key in each[0]:
            values = np.array([one[key] for one in each])
            row[key] = float(values.mean())
            if key in ("NLPD", "log-loss"):
                row["±"] = float(values.std(ddof=1) / np.sqrt(n_splits)) if n_splits > 1 else 0.0
        rows.append(row)
        print(*(f"{v:.3f}" if isinstance(v, float) else v for v in row.values()), flush=True)
    return rows


def main():
    parser = Parser(__doc__)
    known = [*REGRESSIONS, *CLASSIFICATIONS]
    parser.add_argument("--data", nargs="+", default=known, quick=["diabetes", "breast cancer"])
    parser.add_argument("--splits", type=int, default=5, quick=1)
    parser.add_argument("--rows", type=int, quick=100, help="at most, the first (default: all)")
    arguments = parser.parse_args()
    tables = {True: [], False: []}
    for name in arguments.data:
        numeric = name in REGRESSIONS
        data = (REGRESSIONS if numeric else CLASSIFICATIONS)[name]()
        if data is None:
            continue
        X, y = (values[: arguments.rows] for values in data)
        tables[numeric] += rows_of(name, X, y, arguments.splits, numeric)
    found = [rows for rows in tables.values() if rows]
    for rows in found:
        show(rows)
    save(arguments.output, "networks", [row for rows in found for row in rows])


if __name__ == "__main__":
    main()
