"""The scikit-learn face: validate, sample, predict."""

from .lda import BayesianLDA
from .linear import BayesianLinearRegression
from .logistic import BayesianLogisticRegression
from .pmf import BayesianPMF
from .poisson import BayesianPoissonRegressor
from .robust import BayesianRobustRegression

__all__ = [
    "BayesianLDA", "BayesianLinearRegression", "BayesianLogisticRegression", "BayesianPMF",
    "BayesianPoissonRegressor", "BayesianRobustRegression",
]  # fmt: skip
