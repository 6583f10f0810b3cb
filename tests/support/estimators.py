"""The one list of all estimators. A new one is one row here; the generic tests run over the rows.

Each row says how data for the estimator are made, and what makes a fit of it take a moment.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import BaseEstimator, is_regressor

import skbayes_sg

PUBLIC = {name: getattr(skbayes_sg, name) for name in skbayes_sg.__all__}
CLASSES = {
    name: value
    for name, value in PUBLIC.items()
    if isinstance(value, type) and issubclass(value, BaseEstimator)
}
FEW = {"n_draws": 20, "n_chains": 2, "n_warmup": 20, "thin": 1}
NETWORK = FEW | {"hidden_layer_sizes": (8,), "max_doublings": 0}


@dataclass(frozen=True)
class EstimatorCase:
    """Made data, and parameters.

    An estimator of rows with predictors has a `response`, by which `data` makes y.
    """

    response: Callable | None = None  # (predictors, rng) -> y
    data: Callable = field(default=lambda case, rng: rows_with(case.response, rng))
    quick: dict = field(default_factory=lambda: FEW)
    checks: dict = field(default_factory=dict)  # parameters for scikit-learn's checks


def rows_with(response, rng, n=60, d=3):
    """Standard normal columns, and responses to a predictor of them."""
    X = rng.standard_normal((n, d))
    return X, response(X @ np.linspace(-1.0, 1.0, d) + 0.3, rng)


def ratings(case, rng):
    """Of 12 users for 20 items, each rating once."""
    X = np.column_stack(np.divmod(rng.permutation(240)[:150], 20))
    return X, X[:, 0] % 3 + rng.standard_normal(150)


def documents(case, rng):
    """Counts of words in documents, without a response."""
    return rng.poisson(0.5, (40, 20)).astype(float), None


def rows_for_networks(case, rng):
    """As `rows_with`, for estimators whose predictors are not linear."""
    return rows_with(labels, rng)


def two_groups(case, rng):
    """Rows of two groups, without a response."""
    return rng.standard_normal((40, 2)) + 4.0 * (np.arange(40)[:, None] % 2), None


def mixed_sources(case, rng):
    """Two heavy-tailed sources, mixed."""
    return rng.laplace(size=(60, 2)) @ np.array([[1.0, 0.4], [0.2, 1.0]]), None


def labels(eta, rng):
    return (eta + rng.logistic(size=len(eta)) > 0).astype(int)


ESTIMATORS = {
    "BayesianLogisticRegression": EstimatorCase(labels),
    "BayesianLinearRegression": EstimatorCase(lambda eta, rng: eta + rng.normal(size=len(eta))),
    "BayesianNegativeBinomialRegressor": EstimatorCase(
        lambda eta, rng: rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, len(eta))).astype(float),
        checks={**FEW, "n_chains": 1},
    ),
    "BayesianPoissonRegressor": EstimatorCase(
        lambda eta, rng: rng.poisson(np.exp(eta)).astype(float), checks={**FEW, "n_chains": 1}
    ),
    "BayesianRobustRegression": EstimatorCase(
        lambda eta, rng: eta + rng.standard_t(3.0, len(eta)), checks={**FEW, "n_chains": 1}
    ),
    "BayesianPMF": EstimatorCase(
        data=ratings,
        quick={"rank": 2, "n_draws": 5},
        checks={"n_draws": 20, "n_warmup": 10, "thin": 1},
    ),
    "BayesianMLPClassifier": EstimatorCase(
        data=rows_for_networks, quick=NETWORK, checks={**NETWORK, "n_warmup": 300, "thin": 5}
    ),
    "BayesianMLPRegressor": EstimatorCase(
        data=rows_for_networks, quick=NETWORK, checks={**NETWORK, "n_warmup": 600, "thin": 5}
    ),
    "BayesianGaussianMixture": EstimatorCase(
        data=two_groups, quick={"n_components": 2, **FEW}, checks={**FEW, "n_chains": 1}
    ),
    "BayesianICA": EstimatorCase(data=mixed_sources, checks={**FEW, "n_chains": 1}),
    "BayesianLDA": EstimatorCase(
        data=documents,
        quick={"n_components": 3, "n_draws": 3, "n_warmup": 5, "thin": 1},
        checks={"n_components": 3, "n_chains": 1},
    ),
}
OF_ROWS = [name for name, case in ESTIMATORS.items() if case.response is not None]
REGRESSORS = [name for name in OF_ROWS if is_regressor(CLASSES[name]())]


def made(name, seed=0):
    """(X, y) for an estimator."""
    return ESTIMATORS[name].data(ESTIMATORS[name], np.random.default_rng(seed))


def quick(name, **parameters):
    """An estimator with few draws, for tests of anything but their accuracy."""
    return CLASSES[name](**{**ESTIMATORS[name].quick, "random_state": 0, **parameters})
