"""Estimators as versions of the package have saved them; run as a script, it saves this version's.

    PYTHONPATH=. python tests/support/saved.py

writes tests/estimators/saved/VERSION.pkl: for each estimator of `estimators.ESTIMATORS` the pickle
of a fit, rows, and what it predicts for them. A release keeps the files of the earlier ones.
"""

import pickle
from pathlib import Path

import estimators
import numpy as np

import skbayes_sg

FOLDER = Path(__file__).parents[1] / "estimators" / "saved"
METHODS = ["predict", "predict_proba", "predict_interval", "transform"]


def predictions(model, X):
    """What a fitted estimator says of rows, by the name of the method."""
    return {name: np.asarray(getattr(model, name)(X)) for name in METHODS if hasattr(model, name)}


def save(path):
    """Write a fit of every estimator with its predictions."""
    found = {}
    for name in estimators.ESTIMATORS:
        X, y = estimators.made(name)
        model = estimators.quick(name).fit(X, y)
        found[name] = {"pickle": pickle.dumps(model), "X": X, "said": predictions(model, X)}
    path.write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    save(FOLDER / f"{skbayes_sg.__version__}.pkl")
