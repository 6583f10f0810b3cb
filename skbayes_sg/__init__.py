"""Scikit-learn estimators that return a posterior instead of a point."""

from .estimators import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPMF,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from .posterior import Posterior

__version__ = "0.1.0"

__all__ = [
    "BayesianLinearRegression", "BayesianLogisticRegression", "BayesianPMF",
    "BayesianPoissonRegressor", "BayesianRobustRegression", "Posterior", "__version__",
]  # fmt: skip
