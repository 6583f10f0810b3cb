"""Scikit-learn estimators that return a posterior instead of a point."""

from importlib import import_module

from . import estimators
from ._base.version import __version__
from .estimators import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from .posterior import Posterior

__all__ = ["BayesianLDA", "BayesianLinearRegression", "BayesianLogisticRegression", "BayesianPMF"]
__all__ += ["BayesianMLPClassifier", "BayesianMLPRegressor"]
__all__ += ["BayesianNegativeBinomialRegressor", "BayesianPoissonRegressor"]
__all__ += ["BayesianGaussianMixture", "BayesianICA", "BayesianRobustRegression"]
__all__ += ["Posterior", "__version__"]

LATER = [
    "custom",
    "model_selection",
    "multilevel",
    "torch",
]  # modules that are imported when they are asked for


def __getattr__(name):  # the names that `estimators` imports when they are asked for
    if name in estimators.LATER:
        return getattr(estimators, name)
    if name in LATER:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*__all__, "estimators", *LATER]
