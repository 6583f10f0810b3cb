"""Posteriors of your own likelihood.

* `CustomRegressor`: the log-likelihood of a row is a function of its linear predictors, its
  response, and perhaps some positive parameters.
* `CustomDensity`: the log-likelihood of a row is any function of the parameters and the row.

Both are estimators with priors, samplers, diagnostics and, if you give functions for the mean of a
response or for draws of it, predictions.
"""

from .density import CustomDensity
from .regressor import CustomRegressor

__all__ = ["CustomDensity", "CustomRegressor"]
