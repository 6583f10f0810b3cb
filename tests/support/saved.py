"""Estimators as versions of the package have saved them; run as a script, it saves this version's.

    PYTHONPATH=. python tests/support/saved.py

writes tests/estimators/saved/VERSION.pkl: for each estimator of `estimators.ESTIMATORS`, and for
each of `VARIANTS`, the pickle of a fit, rows, and what it predicts for them. A release keeps the
files of the earlier ones, so that they are kept small.
"""

import pickle
from pathlib import Path

import estimators
import numpy as np

import skbayes_sg
from skbayes_sg.priors import HalfCauchy, Normal

FOLDER = Path(__file__).parents[1] / "estimators" / "saved"
METHODS = ["predict", "predict_proba", "predict_interval", "transform"]
FEW = {"hidden_layer_sizes": (2,), "n_draws": 8}  # networks keep predictions beside their draws
SMALL = {"BayesianMLPClassifier": FEW, "BayesianMLPRegressor": FEW}
VARIANTS = {  # fits that contain something else than those with the other parameters at default
    "group effects": ("BayesianLinearRegression", {"group_effects": [0]}),
    "learned scale": ("BayesianPoissonRegressor", {"prior": Normal(scale=HalfCauchy())}),
    "horseshoe": ("BayesianLinearRegression", {"prior": "horseshoe"}),
    "chains": ("BayesianLogisticRegression", {"sampler": "sgld"}),
    "subposteriors": ("BayesianLogisticRegression", {"n_subposteriors": 2}),
}
CASES = {name: (name, SMALL.get(name, {})) for name in estimators.ESTIMATORS} | VARIANTS


def made(name):
    """Rows and responses for an estimator, rounded so that levels of a column have several rows."""
    X, y = estimators.made(name)
    return X.round(1), y


def predictions(model, X):
    """What a fitted estimator says of rows, by the name of the method."""
    return {name: np.asarray(getattr(model, name)(X)) for name in METHODS if hasattr(model, name)}


def save(path):
    """Write a fit of every estimator with its predictions."""
    found = {}
    for case, (name, parameters) in CASES.items():
        X, y = made(name)
        model = estimators.quick(name, **parameters).fit(X, y)
        rows = X[:10]
        found[case] = {"pickle": pickle.dumps(model), "X": rows, "said": predictions(model, rows)}
    path.write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    save(FOLDER / f"{skbayes_sg.__version__}.pkl")
