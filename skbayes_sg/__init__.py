"""Scikit-learn estimators that return a posterior instead of a point."""

from .estimators import BayesianLogisticRegression
from .posterior import Posterior

__version__ = "0.1.0"

__all__ = ["BayesianLogisticRegression", "Posterior", "__version__"]
