"""Small made data for the tests of estimators."""

import numpy as np

from skbayes_sg import BayesianLogisticRegression


def binary(n_rows=60, n_features=3, seed=0):
    """Standard normal columns, labels 0 and 1, coefficients evenly spaced in [-1, 1]."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    beta = np.linspace(-1.0, 1.0, n_features)
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-X @ beta - 0.3))).astype(int)
    return X, y


def multinomial(n_rows=90, n_features=3, n_classes=3, seed=0):
    """Standard normal columns, labels from a softmax model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    eta = X @ rng.standard_normal((n_features, n_classes))
    p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    y = (rng.random(n_rows)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    return X, np.minimum(y, n_classes - 1)


def quick(**parameters):
    """An estimator with few draws, for tests of anything but their accuracy."""
    options = {"n_draws": 25, "n_chains": 2, "n_warmup": 50, "random_state": 0, **parameters}
    return BayesianLogisticRegression(**options)


STOCHASTIC = {
    "sampler": "baoab", "gradient": "taylor", "subsampling": "uniform", "batch_size": 20,
    "step_size": 0.1, "n_warmup": 50, "thin": 5,
}  # fmt: skip
"""Parameters of a run that draws rows and has nothing left to choose."""
