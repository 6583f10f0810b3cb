"""Predictions of small networks beside long Hamiltonian Monte Carlo on all rows.

    python examples/benchmarks/networks_and_hmc.py [--seeds 4] [--draws 2000] [--thin 6] [--quick]

By default, and with gradients of batches. Networks of ten units, and of layers of 32 and 16, on the
442 rows of the diabetes data and on 200 rows of Friedman's first function; every fifth row is held
out. Two fits by Hamiltonian Monte Carlo with a Metropolis test have no error but that of Monte
Carlo, and their difference shows how large it is. "bias" is the root mean square difference of
predictive means at the held-out rows, in predictive standard deviations, and "sd ratio" the mean
ratio of those; "farthest" is the largest difference, and "function" the mean ratio of the standard
deviations of the function, without the noise.
"""

import itertools
import time
import warnings

import numpy as np
from _tables import Parser, save, show
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianMLPRegressor

LAYERS = [(10,), (32, 16)]
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


def predicted(name, layers, seed, **options):
    """Predictive means and sds, sds of the function, R-hat of predictions, processor seconds."""
    X, y, new = split(name)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table has R-hat
        model = BayesianMLPRegressor(layers, random_state=seed, **options).fit(X, y)
    seconds = time.process_time() - began
    mean, sd = model.predict(new, return_std=True)
    of_function, _ = model.predict_std_components(new)
    return mean, sd, of_function, model.diagnostics_["function_rhat"], seconds


def row(name, layers, fit, found, reference):
    mean, sd, of_function, rhat, seconds = found
    apart = (mean - reference[0]) / reference[1]
    return {
        "data": name, "layers": layers, "fit": fit, "bias": np.sqrt(np.square(apart).mean()),
        "farthest": np.abs(apart).max(), "sd ratio": (sd / reference[1]).mean(),
        "function": (of_function / reference[2]).mean(), "R-hat": rhat, "CPU s": seconds,
    }  # fmt: skip


def main():
    parser = Parser(__doc__)
    parser.add_argument("--seeds", type=int, default=4, quick=1)
    parser.add_argument("--draws", type=int, default=2000, quick=50)
    parser.add_argument("--thin", type=int, default=6, quick=1)
    options = parser.parse_args()
    rows, hmc = [], {"sampler": "hmc", "n_draws": options.draws, "thin": options.thin}
    for name, layers in itertools.product(DATA, LAYERS[:1] if options.quick else LAYERS):
        long = [predicted(name, layers, 1000 + k, **hmc) for k in range(2)]
        reference = [np.mean([found[j] for found in long], axis=0) for j in range(3)]
        own = [row(name, layers, f"HMC less other, {k}", long[k], long[1 - k]) for k in range(2)]
        for (fit, asked), seed in itertools.product(FITS.items(), range(options.seeds)):
            found = predicted(name, layers, seed, **asked)
            own.append(row(name, layers, f"{fit}, {seed}", found, reference))
        show(own)
        rows += own
    save(options.output, "networks_and_hmc", rows)


if __name__ == "__main__":
    main()
