"""The scikit-learn face: validate, sample, predict."""

from .logistic import BayesianLogisticRegression

__all__ = ["BayesianLogisticRegression"]
