"""The interface of scikit-learn: validate, sample, predict.

The estimators in `LATER` have engines of their own, which take time to import. They are imported
when they are first asked for, so that the others do not wait for them.
"""

from importlib import import_module

from .linear import BayesianLinearRegression
from .logistic import BayesianLogisticRegression
from .negative_binomial import BayesianNegativeBinomialRegressor
from .poisson import BayesianPoissonRegressor
from .robust import BayesianRobustRegression

LATER = {
    "BayesianGaussianMixture": ".gaussian_mixture",
    "BayesianICA": ".ica",
    "BayesianLDA": ".lda",
    "BayesianMLPClassifier": ".mlp",
    "BayesianMLPRegressor": ".mlp",
    "BayesianPMF": ".pmf",
}

__all__ = ["BayesianLDA", "BayesianLinearRegression", "BayesianLogisticRegression", "BayesianPMF"]
__all__ += ["BayesianMLPClassifier", "BayesianMLPRegressor"]
__all__ += ["BayesianNegativeBinomialRegressor", "BayesianPoissonRegressor"]
__all__ += ["BayesianGaussianMixture", "BayesianICA", "BayesianRobustRegression"]


def __getattr__(name):
    if name in LATER:
        return getattr(import_module(LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
