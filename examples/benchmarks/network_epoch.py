"""The seconds of an epoch of a network: a chain of ours beside scikit-learn's MLPClassifier.

    python examples/benchmarks/network_epoch.py [--rows 60000] [--repeats 5] [--quick]

A network with 100 units for ten classes of 784 columns, as those of MNIST, which is read where
SKBAYES_SG_DATA has mnist.npz, and made otherwise. Both use batches of the same size, and one
thread. An epoch is what three of them take longer than none, with all that belongs to them: a chain
also redraws the scales of its prior and measures the noise of its gradients.
"""

import time
import warnings

import numpy as np
from _tables import Parser, data_file, save, show
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from skbayes_sg import BayesianMLPClassifier

EPOCHS, UNITS = 3, 100


def images(n):
    """The first n images of MNIST, or numbers of the same shape."""
    found = data_file("mnist.npz")
    if found is not None:
        return found["X_train"][:n].reshape(-1, 784).astype(np.float32) / 255, found["y_train"][:n]
    rng = np.random.default_rng(0)
    return rng.random((n, 784), dtype=np.float32), rng.integers(0, 10, n)


def ours(epochs, batch, X, y):
    steps = len(X) // batch
    return BayesianMLPClassifier(
        (UNITS,), batch_size=batch, n_chains=1, n_warmup=30, n_draws=1 + epochs, thin=steps,
        max_doublings=0, random_state=0,
    ).fit(X, y)  # fmt: skip


def sklearns(epochs, batch, X, y):
    options = {"max_iter": 1 + epochs, "tol": 0.0, "n_iter_no_change": 1000, "random_state": 0}
    return MLPClassifier((UNITS,), batch_size=batch, **options).fit(X, y)


def seconds(fit, *arguments):
    began = time.perf_counter()
    fit(*arguments)
    return time.perf_counter() - began


def epoch(fit, batch, X, y):
    longer = seconds(fit, EPOCHS, batch, X, y)
    return (longer - seconds(fit, 0, batch, X, y)) / EPOCHS


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=60_000, quick=2000)
    parser.add_argument("--repeats", type=int, default=5, quick=1)
    options = parser.parse_args()
    X, y = images(options.rows)
    rows = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of few epochs
        for batch in (100, 200):
            ours(0, batch, X[:1000], y[:1000])  # compiles
            both = [
                [epoch(fit, batch, X, y) for fit in (ours, sklearns)]
                for _ in range(options.repeats)
            ]
            own, other = np.median(both, axis=0)
            rows.append(
                {"batch": batch, "ours, s": own, "MLPClassifier, s": other, "ratio": own / other}
            )
    show(rows)
    save(options.output, "network_epoch", rows)


if __name__ == "__main__":
    main()
