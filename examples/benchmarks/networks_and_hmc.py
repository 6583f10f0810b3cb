"""Predictions of small networks beside long Hamiltonian Monte Carlo on all rows.

    python examples/benchmarks/networks_and_hmc.py [--seeds 4] [--draws 2000] [--thin 6] [--quick]

By default, and with gradients of batches. A network of ten units, on the 442 rows of the diabetes
data and on 200 rows of Friedman's first function; every fifth row is held out. Two chains of
Hamiltonian Monte Carlo with a Metropolis test have no error but that of Monte Carlo, and their
difference shows how large it is. "bias" is the root mean square difference of predictive means at
the held-out rows, in predictive standard deviations, and "sd ratio" the mean ratio of those;
"farthest" is the largest difference.
"""

import time
import warnings

import numpy as np
from _tables import Parser, save, show
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianMLPRegressor

DATA = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "friedman": lambda: make_friedman1(200, n_features=5, noise=1.0, random_state=0),
}
FITS = {"default": {}, "batches of 50": {"batch_size": 50}}


def split(name):
    """Standardised columns and response: rows of the fit, and held-out rows."""
    X, y = DATA[name]()
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    held_out = np.arange(len(y)) % 5 == 0
    return X[~held_out], y[~held_out], X[held_out]


def predicted(name, seed, **options):
    """Predictive means and standard deviations, R-hat of predictions, and seconds of processors."""
    X, y, new = split(name)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table has R-hat
        model = BayesianMLPRegressor(hidden_layer_sizes=(10,), random_state=seed, **options)
        model.fit(X, y)
    mean, sd = model.predict(new, return_std=True)
    return mean, sd, model.diagnostics_["function_rhat"], time.process_time() - began


def row(name, fit, found, reference):
    mean, sd, rhat, seconds = found
    apart = (mean - reference[0]) / reference[1]
    return {
        "data": name, "fit": fit, "bias": np.sqrt(np.square(apart).mean()),
        "farthest": np.abs(apart).max(), "sd ratio": (sd / reference[1]).mean(), "R-hat": rhat,
        "CPU s": seconds,
    }  # fmt: skip


def main():
    parser = Parser(__doc__)
    parser.add_argument("--seeds", type=int, default=4, quick=1)
    parser.add_argument("--draws", type=int, default=2000, quick=50)
    parser.add_argument("--thin", type=int, default=6, quick=1)
    options = parser.parse_args()
    rows, hmc = [], {"sampler": "hmc", "n_draws": options.draws, "thin": options.thin}
    for name in DATA:
        long = [predicted(name, 1000 + k, **hmc) for k in range(2)]
        reference = [np.mean([found[j] for found in long], axis=0) for j in range(2)]
        own = [row(name, f"HMC less other, {k}", long[k], long[1 - k]) for k in range(2)]
        for fit, asked in FITS.items():
            for seed in range(options.seeds):
                own.append(row(name, f"{fit}, {seed}", predicted(name, seed, **asked), reference))
        show(own)
        rows += own
    save(options.output, "networks_and_hmc", rows)


if __name__ == "__main__":
    main()
