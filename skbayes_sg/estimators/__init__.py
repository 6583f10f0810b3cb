"""The scikit-learn face: validate, sample, predict."""

from .linear import BayesianLinearRegression
from .logistic import BayesianLogisticRegression
from .pmf import BayesianPMF
from .poisson import BayesianPoissonRegressor
from .robust import BayesianRobustRegression

__all__ = [
    "BayesianLinearRegression", "BayesianLogisticRegression", "BayesianPMF",
    "BayesianPoissonRegressor", "BayesianRobustRegression",
]  # fmt: skip
