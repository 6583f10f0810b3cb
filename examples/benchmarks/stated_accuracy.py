"""When `expect` and when draws: posterior means of all coefficients to a stated accuracy.

    python examples/benchmarks/stated_accuracy.py [--repetitions 5] [--quick]

Made logistic data with 10 columns. Beside each other, on one thread, after a first run that
compiles: `expect` for a root mean square error of 0.1 and of 0.02 posterior standard deviations,
and fits with as many draws as have a Monte Carlo error of that size in the worst coefficient
(the time of a default fit, scaled to the draws that it takes). The errors of both are also measured
against a fit of twenty times the draws; that of draws includes a bias by the step.
"""

import time
import warnings
from functools import partial

import numpy as np
from _tables import Parser, save, show

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.multilevel import MultilevelSGLD

COLUMNS = 10


def made(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, COLUMNS))
    return X, (X @ np.linspace(-1.0, 1.0, COLUMNS) + rng.logistic(size=n) > 0).astype(int)


def coefficients(p):
    return p["coef"][..., 0, :]


def timed(work):
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def fit(X, y, seed, n_draws=1000):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BayesianLogisticRegression(random_state=seed, n_draws=n_draws).fit(X, y)


def measure(n, repetitions):
    X, y = made(n)
    long = fit(X, y, 99, 20_000)
    truth, sd = long.coef_[0], long.coef_std_[0]
    fits = [timed(lambda seed=seed: fit(X, y, seed)) for seed in range(repetitions)]
    for accuracy in (0.1, 0.02):
        asks = []
        for seed, (_, model) in enumerate(fits):
            how = {"atol": accuracy * sd.min(), "method": MultilevelSGLD(random_state=seed)}
            asks.append(timed(partial(model.expect, coefficients, X=X, y=y, **how)))
        error = np.sqrt(np.mean([((found.value - truth) / sd) ** 2 for _, found in asks]))
        own = np.sqrt(np.mean([((model.coef_[0] - truth) / sd) ** 2 for _, model in fits]))
        mcse = np.mean([1.0 / np.sqrt(model.diagnostics_["min_ess"]) for _, model in fits])
        seconds = np.median([s for s, _ in fits])
        row = {"rows": n, "accuracy, sd": accuracy, "expect, s": np.median([s for s, _ in asks])}
        row |= {"its error, sd": error, "its passes": np.mean([found.passes for _, found in asks])}
        row |= {"fit, s": seconds, "its error, sd ": own, "worst MCSE, sd": mcse}
        yield row | {"fit at accuracy, s": seconds * (mcse / accuracy) ** 2}


def main():
    parser = Parser(__doc__)
    sizes = [1000, 10_000, 100_000, 1_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, quick=[1000])
    parser.add_argument("--repetitions", type=int, default=5, quick=1)
    options, rows = parser.parse_args(), []
    for _ in measure(500, 1):  # compiles
        pass
    for n in options.sizes:
        rows += measure(n, options.repetitions)
        show(rows[-2:])
    show(rows)
    save(options.output, "stated_accuracy", rows)


if __name__ == "__main__":
    main()
