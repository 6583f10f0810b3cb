"""Choosing a step size: "auto", or a grid search by Stein discrepancy, or by log-loss.

    python examples/benchmarks/choosing_a_step.py [--rows 3000] [--quick]

SGLD with the Taylor gradient, on made data. For each way of choosing: the step that it takes, what
the choice and the fit cost, and how far the posterior is from that of a long exact run. Log-loss of
held-out rows cannot tell a posterior from one that is twice too wide, and often prefers that; the
Stein discrepancy can, at the price of a grid of fits; "auto" measures once.
"""

import time
import warnings

import numpy as np
from _tables import Parser, save, show
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.metrics import ksd_scorer

STEPS = [0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 3.0]
OPTIONS = {"sampler": "sgld", "gradient": "taylor", "subsampling": "uniform", "batch_size": 100}
FIXED = {"thin": 10, "n_warmup": 300, "n_draws": 500}


def by_search(scoring, steps):
    def fit(X, y):
        model = BayesianLogisticRegression(random_state=0, **OPTIONS, **FIXED)
        search = GridSearchCV(model, {"step_size": steps}, scoring=scoring, cv=3)
        return search.fit(X, y).best_estimator_

    return fit


def by_measuring(**options):
    return lambda X, y: BayesianLogisticRegression(random_state=0, **options).fit(X, y)


def compare(X, y, exact, steps):
    ways = {
        "grid by log-loss": by_search("neg_log_loss", steps),
        "grid by KSD": by_search(ksd_scorer, steps),
        "auto, sgld": by_measuring(**OPTIONS),
        "auto": by_measuring(),
    }
    for name, fit in ways.items():
        began = time.process_time()
        model = fit(X, y)
        seconds = time.process_time() - began
        posterior = model.posterior_
        ratio = posterior.std() / exact.std()
        yield {
            "way": name,
            "step_size": model.step_size_,
            "cpu_seconds": seconds,
            "worst_mean": float(np.abs((posterior.mean() - exact.mean()) / exact.std()).max()),
            "sd_low": float(ratio.min()),
            "sd_high": float(ratio.max()),
            "ksd": float(posterior.ksd()),
            "trustworthy": bool(posterior.check()),
        }


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=3000, quick=400)
    args = parser.parse_args()
    X, y = make_classification(args.rows, 10, n_informative=5, flip_y=0.1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # steps of the grid that are too large
        exact = by_measuring(sampler="hmc", n_draws=500 if args.quick else 5000)(X, y).posterior_
        by_measuring()(X, y)  # kernels are compiled
        rows = list(compare(X, y, exact, STEPS[2:4] if args.quick else STEPS))
    show(rows)
    save(args.output, "choosing_a_step", rows)


if __name__ == "__main__":
    main()
