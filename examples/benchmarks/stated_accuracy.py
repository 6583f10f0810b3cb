"""When `expect` and when draws: posterior means of all coefficients to a stated accuracy.

Made logistic data with 10 columns. Beside each other, on one thread, after a first run that
compiles: `expect` for a root mean square error of 0.1 and of 0.02 posterior standard deviations,
and fits with as many draws as have a Monte Carlo error of that size in the worst coefficient
(the time of a default fit, scaled to the draws that it takes). The errors of both are also measured
against a fit of twenty times the draws; that of draws includes a bias by the step.
"""

import argparse
import time
import warnings

import numpy as np
from _tables import save, show

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
            method = MultilevelSGLD(random_state=seed)
            atol = accuracy * sd.min()
            asks.append(
                timed(lambda m=model, a=atol, how=method: m.expect(
                    coefficients, atol=a, X=X, y=y, method=how))
            )  # fmt: skip
        error = np.sqrt(np.mean([((found.value - truth) / sd) ** 2 for _, found in asks]))
        own = np.sqrt(np.mean([((model.coef_[0] - truth) / sd) ** 2 for _, model in fits]))
        mcse = np.mean([1.0 / np.sqrt(model.diagnostics_["min_ess"]) for _, model in fits])
        seconds = np.median([s for s, _ in fits])
        yield {
            "rows": n, "accuracy, sd": accuracy,
            "expect, s": np.median([s for s, _ in asks]), "its error, sd": error,
            "its passes": np.mean([found.passes for _, found in asks]),
            "fit, s": seconds, "its error, sd ": own, "worst MCSE, sd": mcse,
            "fit at accuracy, s": seconds * (mcse / accuracy) ** 2,
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two sizes, two repetitions")
    quick = parser.parse_args().quick
    measure_one = list(measure(500, 1))  # compiles
    del measure_one
    rows = []
    for n in (1000, 10_000) if quick else (1000, 10_000, 100_000, 1_000_000):
        rows += measure(n, 2 if quick else 5)
        show(rows[-2:])
    show(rows)
    save("stated_accuracy", rows)


if __name__ == "__main__":
    main()
