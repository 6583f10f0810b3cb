"""Batches one after the other (`partial_fit`) against one fit on all rows.

    python examples/benchmarks/online.py [--rows 20000] [--quick]

For each model and number of batches, in random order and in the order of y: the largest distance of
a posterior mean from that of the fit on all rows, in posterior standard deviations, the smallest
and the largest ratio of standard deviations, what `update_error_` states, and seconds a
batch against those of the fit. Two fits with different seeds differ as well: that is the row of
one batch. "after fit" is a fit on the first half, and partial_fit on the second.

A second table has `warm_start`: a path of `SCALES` of the prior, by fits that begin anew and by
fits that begin at the mode of the one before. Milliseconds of a fit are those of the processor.
"""

import time
import warnings

import numpy as np
from _tables import Parser, save, show
from sklearn.base import clone

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.priors import Normal

MODELS = {
    "linear": (BayesianLinearRegression, lambda eta, rng: eta + rng.normal(size=len(eta))),
    "logistic": (
        BayesianLogisticRegression,
        lambda eta, rng: (eta + rng.logistic(size=len(eta)) > 0).astype(int),
    ),
    "3 classes": (
        BayesianLogisticRegression,
        lambda eta, rng: (eta + rng.normal(size=len(eta)) > [[-0.7], [0.7]]).sum(axis=0),
    ),
    "poisson": (BayesianPoissonRegressor, lambda eta, rng: rng.poisson(np.exp(0.5 * eta))),
    "negative binomial": (
        BayesianNegativeBinomialRegressor,
        lambda eta, rng: rng.poisson(np.exp(0.5 * eta) * rng.gamma(10.0, 0.1, len(eta))),
    ),
    "robust": (
        BayesianRobustRegression,
        lambda eta, rng: eta + rng.standard_t(3, size=len(eta)),
    ),
}


def table(name, n, d=10):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, MODELS[name][1](X @ rng.normal(size=d) / np.sqrt(d), rng)


def online(kind, X, y, batches):
    """A model that has seen the batches, and its seconds."""
    model, began = kind(random_state=1), time.perf_counter()
    first = {"classes": np.unique(y)} if kind is BayesianLogisticRegression else {}
    for rows in batches:
        model.partial_fit(X[rows], y[rows], **first)
    return model, time.perf_counter() - began


def after_fit(kind, X, y):
    half, began = len(y) // 2, time.perf_counter()
    model = kind(random_state=1).fit(X[:half], y[:half])
    return model.partial_fit(X[half:], y[half:]), time.perf_counter() - began


def compared(label, name, n_batches, found, model, seconds):
    online_model, own = found
    a, b = online_model.posterior_, model.posterior_
    ratio = a.std() / b.std()
    return {
        "model": name,
        "batches": label,
        "off, sd": np.abs((a.mean() - b.mean()) / b.std()).max(),
        "least ratio of sd": ratio.min(),
        "largest": ratio.max(),
        "stated, sd": online_model.update_error_,
        "s a batch": own / n_batches,
        "s of the fit": seconds,
    }


def rows_of(name, n, numbers):
    X, y = table(name, n)
    kind = MODELS[name][0]
    began = time.perf_counter()
    model = kind(random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    for n_batches in numbers:
        batches = np.array_split(np.arange(n), n_batches)
        found = online(kind, X, y, batches)
        yield compared(str(n_batches), name, n_batches, found, model, seconds)
    in_order = np.array_split(np.argsort(y, kind="stable"), 10)
    try:
        yield compared("10, sorted by y", name, 10, online(kind, X, y, in_order), model, seconds)
    except SamplerDivergedError as error:
        print(f"{name}, sorted by y: {error}")
    yield compared("after fit", name, 2, after_fit(kind, X, y), model, seconds)


SCALES = np.geomspace(10.0, 0.1, 9)  # of the prior of the coefficients, one fit each


def refits(name, n):
    """Fits along a path of priors, cold and warm by turns, which times on a shared machine need."""
    X, y = table(name, n)
    warm = MODELS[name][0](prior=Normal(scale=SCALES[0]), warm_start=True, random_state=0)
    cold, of_fit, of_search = clone(warm), np.zeros(2), np.zeros(2)
    for scale in SCALES:
        for k, model in enumerate([cold.set_params(warm_start=False), warm]):
            began = time.process_time()
            model.set_params(prior__scale=scale).fit(X, y)
            if scale != SCALES[0]:  # the first one is cold for both
                of_fit[k] += time.process_time() - began
                of_search[k] += model.seconds_["centre"]
    a, b = warm.posterior_, cold.posterior_
    (search, warm_search), (fit, warm_fit) = (v / (len(SCALES) - 1) for v in (of_search, of_fit))
    return {
        "model": name,
        "off, sd": np.abs((a.mean() - b.mean()) / b.std()).max(),
        "ms of a search": 1e3 * search,
        "warm": 1e3 * warm_search,
        "ratio": warm_search / search,
        "ms of a fit": 1e3 * fit,
        "warm ": 1e3 * warm_fit,
        "ratio ": warm_fit / fit,
    }


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000, quick=1500)
    options = parser.parse_args()
    numbers = (1, 5) if options.quick else (1, 10, 100)
    names = ["linear", "logistic"] if options.quick else MODELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is sorted is warned of
        rows = [row for name in names for row in rows_of(name, options.rows, numbers)]
        paths = [refits(name, options.rows) for name in names if name != "linear"]
    show(rows)
    show(paths)
    save(options.output, "online", rows)
    save(options.output, "warm_start", paths)


if __name__ == "__main__":
    main()
