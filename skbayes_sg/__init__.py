"""Scikit-learn estimators that return a posterior instead of a point."""

from .estimators import (
    BayesianLDA,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPMF,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from .posterior import Posterior

__version__ = "0.1.0"

__all__ = [
    "BayesianLDA", "BayesianLinearRegression", "BayesianLogisticRegression", "BayesianPMF",
    "BayesianPoissonRegressor", "BayesianRobustRegression", "Posterior", "__version__",
]  # fmt: skip
