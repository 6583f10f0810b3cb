"""Linear regression beside `BayesianRidge`, and predictions beside the bare matrix product.

    python examples/benchmarks/regression.py [--repeats 5] [--quick]

Protein structures (`protein_casp.npz`, or made rows where it is not at hand): predictive log
density and coverage of 90 % intervals on rows kept back, seconds to fit, and how far the means are
from the exact ones in posterior standard deviations. Then the time of `predict_proba` for 20 000
rows, 4000 draws and 55 columns, as a ratio to the product of the same matrices. Both begin at rest:
BLAS's threads stay busy, waiting, for up to a tenth of a second after a product, and what is timed
meanwhile pays for that. Last, the time of `predict_interval` for 20 000 rows of ten columns with
4000 draws, by estimator and by the number of rows of the fit, in nanoseconds a row.
"""

import time

import numpy as np
from _tables import Parser, data_file, save, show, some
from scipy import stats
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.metrics import interval_coverage

REST = 0.3


def data():
    z = data_file("protein_casp.npz")
    if z is not None:
        return "protein", z["X"], z["y"].astype(float)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(45_730, 9))
    return "made", X, X @ rng.normal(size=9) + 5.0 * rng.normal(size=len(X))


def timed(fit, repeats):
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = fit()
        seconds.append(time.perf_counter() - began)
    return result, float(np.median(seconds))


def judged(name, mean, std, y, seconds, interval=None, density=None):
    half = stats.norm.ppf(0.95) * std
    lower, upper = (mean - half, mean + half) if interval is None else interval
    density = stats.norm.logpdf(y, mean, std) if density is None else density
    row = {"model": name, "s": seconds, "NLPD": -density.mean()}
    return row | {"coverage": interval_coverage(y, lower, upper), "width": (upper - lower).mean()}


SETTINGS = {
    "default": {},
    "baoab": {"sampler": "baoab"},
    "lm + taylor": {"sampler": "leimkuhler_matthews", "gradient": "taylor"},
    "saga": {"gradient": "saga"},
    "laplace prior": {"prior": "laplace"},
}


def regressions(repeats, n_rows):
    name, X, y = data()
    X, y = some(n_rows, X, y)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    _, plain = timed(lambda: LinearRegression().fit(X, y), repeats)
    ridge, seconds = timed(lambda: BayesianRidge().fit(X, y), repeats)
    rows = [judged("BayesianRidge", *ridge.predict(X_test, return_std=True), y_test, seconds)]
    exact = None
    for label, options in SETTINGS.items():
        model, seconds = timed(
            lambda options=options: BayesianLinearRegression(random_state=0, **options).fit(X, y),
            repeats,
        )
        exact = exact or moments(model, X, y)
        found = model.predict_interval(X_test), model.predict_log_density(X_test, y_test)
        row = judged(label, *model.predict(X_test, return_std=True), y_test, seconds, *found)
        off = np.abs(np.r_[model.coef_, model.intercept_] - exact[0]) / exact[1]
        rows.append(row | {"sampler": model.sampler_, "off by sd": off.max()})
    print(f"{name}: {len(y)} rows; LinearRegression takes {plain:.3f} s")
    show([{"sampler": "", "off by sd": np.nan} | row for row in rows])
    return rows


def moments(model, X, y):
    """Mean and sd of coefficients and intercept at the posterior mean of σ: σ hardly varies."""
    A = np.column_stack([X, np.ones(len(X))])
    of_prior = np.r_[(2.5 * y.std() / X.std(axis=0)) ** -2.0, 0.0]
    covariance = np.linalg.inv(A.T @ A / model.noise_std_**2 + np.diag(of_prior))
    return covariance @ (A.T @ y) / model.noise_std_**2, np.sqrt(np.diag(covariance))


def predictions(repeats, n_rows):
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(n_rows, 55)), np.ascontiguousarray(rng.normal(size=(55, 4000)))
    y = X[:, 0] + rng.logistic(size=len(X)) > 0
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    model.predict_proba(X), X @ W  # pages of memory, and kernels, are there from now on
    ratios = []
    for _ in range(repeats):  # interleaved: the machine is not the same from second to second
        time.sleep(REST)
        _, product = timed(lambda: X @ W, 1)
        time.sleep(REST)
        _, ours = timed(lambda: model.predict_proba(X), 1)
        ratios.append({"X @ W s": product, "predict_proba s": ours, "ratio": ours / product})
    show(ratios)
    print(f"median ratio {np.median([row['ratio'] for row in ratios]):.2f}")
    return ratios


def intervals(repeats, n_rows):
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(n_rows, 10)), []
    for n in (30, 1000):
        A = rng.normal(size=(n, 10))
        center = 1.0 + A @ rng.normal(size=10) / 5.0
        responses = {
            BayesianLinearRegression: center + rng.normal(size=n),
            BayesianRobustRegression: center + rng.standard_t(3, size=n),
            BayesianPoissonRegressor: rng.poisson(np.exp(center)),
        }
        for kind, y in responses.items():
            model = kind(random_state=0).fit(A, y)
            n_draws = model.posterior_.n_chains * model.posterior_.n_draws
            model.predict_interval(X[:2])
            _, seconds = timed(lambda model=model: model.predict_interval(X), repeats)
            _, mean = timed(lambda model=model: model.predict(X), repeats)
            row = {"estimator": kind.__name__, "rows of the fit": n, "draws": n_draws}
            per_row = {"interval ns": 1e9 * seconds / n_rows, "mean ns": 1e9 * mean / n_rows}
            rows.append(row | per_row)
    show(rows)
    return rows


def main():
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5, quick=1)
    options = parser.parse_args()
    fits = regressions(options.repeats, 2000 if options.quick else 1_000_000)
    ratios = predictions(options.repeats, 1000 if options.quick else 20_000)
    timings = intervals(options.repeats, 1000 if options.quick else 20_000)
    found = {"fits": fits, "predictions": ratios, "intervals": timings}
    save(options.output, "regression", found)


if __name__ == "__main__":
    main()
