"""Bayesian logistic regression, binary and multinomial."""

import numbers

import numpy as np
import sklearn
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._callbacks import with_callbacks
from .._validation import Parameters, check_data, check_weights
from ..engine import memory
from ..models import Logistic, Softmax
from ._base import BayesianGLM, all_or_nothing

__all__ = ["BayesianLogisticRegression"]


class BayesianLogisticRegression(ClassifierMixin, BayesianGLM):
    """docs"""

    def __init__(
        self, *, prior="normal", fit_intercept=True, intercept_prior=None, class_weight=None,
        sampler="auto", gradient="auto", subsampling="auto", batch_size="auto", step_size="auto",
        preconditioner="auto", n_draws=1000, n_chains=4, n_warmup="auto", thin="auto",
        random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.intercept_prior = intercept_prior
        self.class_weight = class_weight
        self.sampler = sampler
        self.gradient = gradient
        self.subsampling = subsampling
        self.batch_size = batch_size
        self.step_size = step_size
        self.preconditioner = preconditioner
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Sample the posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            Dense float64 and float32 are used as they are, in C order; CSR likewise; everything
            else is converted once. Memory-mapped arrays stay on disk.
        y : array-like of shape (n_rows,)
            Class labels of any type.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row's likelihood: 2 is the row twice, 0 is no row.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            Parameters(self).flag("fit_intercept")
            X, y = check_data(self, X, y)
            check_classification_targets(y)
            X, y, weight = _drop_unweighted(X, y, check_weights(sample_weight, X))
            self.classes_, codes = _encode(y, type(self).__name__)
            weight = weight * _class_weights(self.class_weight, self.classes_, codes, weight)
            K, d = len(self.classes_), X.shape[1]
            model = Logistic() if K == 2 else Softmax(K)
            coef_shape = (1 if K == 2 else K, d)
            return self._sample(X, codes, weight, model, coef_shape, self._labels(coef_shape))

    def _labels(self, coef_shape):
        """One label a parameter, such as ``coef[age]`` or ``coef[setosa, age]``."""
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(coef_shape[1])] if names is None else names
        if coef_shape[0] == 1:
            return [f"coef[{name}]" for name in names] + ["intercept"] * self.fit_intercept
        coefs = [f"coef[{label}, {name}]" for label in self.classes_ for name in names]
        return coefs + [f"intercept[{label}]" for label in self.classes_] * self.fit_intercept

    # -- prediction ---------------------------------------------------------------------------

    def _of_predictors(self, X, reduce, draws=slice(None)):
        """``reduce(eta)`` for blocks eta (rows, draws, predictors) in bounded memory, joined."""
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        B = self.posterior_["coef"].reshape(-1, *self.coef_.shape)[draws]
        S, K, d = B.shape
        b = np.zeros((S, K))
        if "intercept" in self.posterior_:
            b = self.posterior_["intercept"].reshape(-1, K)[draws]
        weights = np.ascontiguousarray(B.reshape(S * K, d).T)
        limit = sklearn.get_config()["working_memory"] * 2**20
        step = max(1, int(limit / (32 * S * len(self.classes_))))
        blocks = []
        for first in range(0, X.shape[0], step):
            eta = safe_sparse_dot(X[first : first + step], weights) + b.ravel()
            blocks.append(reduce(eta.reshape(-1, S, K)))
        return np.concatenate(blocks)

    def predict_proba(self, X):
        """Posterior predictive probability of each class: the mean over all draws.

        The mean of probabilities is not the probability at the mean coefficients: where the
        posterior is wide it is closer to one half.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return self._of_predictors(X, lambda eta: class_probabilities(eta).mean(axis=1))

    def predict_log_proba(self, X):
        """Logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict(self, X):
        """The class of highest posterior predictive probability.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def decision_function(self, X):
        """Log-odds of the posterior predictive probability, log p_k for several classes.

        Its sign, or its largest column, is what `predict` returns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
        """
        tiny = np.finfo(float).tiny
        log_p = self._of_predictors(
            X, lambda eta: np.log(np.maximum(class_probabilities(eta).mean(axis=1), tiny))
        )
        return log_p[:, 1] - log_p[:, 0] if log_p.shape[1] == 2 else log_p

    def predict_proba_interval(self, X, confidence_level=0.9):
        """Central posterior interval of each class probability: how sure the model is of it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        confidence_level : float in (0, 1), default=0.9
            Posterior probability that the class probability lies inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_rows, n_classes)
        """
        if not 0.0 < confidence_level < 1.0:
            raise ValueError(
                f"confidence_level must lie strictly between 0 and 1, got {confidence_level!r}."
            )
        q = [0.5 - confidence_level / 2, 0.5 + confidence_level / 2]
        bounds = self._of_predictors(
            X, lambda eta: np.quantile(class_probabilities(eta), q, axis=1).transpose(1, 0, 2)
        )
        return bounds[:, 0], bounds[:, 1]

    def predict_proba_samples(self, X, n_samples=None):
        """Class probabilities under each draw.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        n_samples : int, optional
            Use so many draws, evenly spaced; all if None.

        Returns
        -------
        ndarray of shape (n_samples, n_rows, n_classes)
        """
        check_is_fitted(self)
        total = self.posterior_.n_chains * self.posterior_.n_draws
        n_samples = total if n_samples is None else n_samples
        if not (isinstance(n_samples, numbers.Integral) and 1 <= n_samples <= total):
            raise ValueError(f"n_samples must be an int in [1, {total}], got {n_samples!r}.")
        draws = np.linspace(0, total - 1, n_samples).astype(int)
        return self._of_predictors(X, class_probabilities, draws).transpose(1, 0, 2)


def class_probabilities(eta):
    """Probabilities of all classes from predictors (..., K); one predictor is the log-odds."""
    if eta.shape[-1] > 1:
        return softmax(eta, axis=-1)
    return np.concatenate([expit(-eta), expit(eta)], axis=-1)


def _encode(y, owner):
    """The classes, and the class number of each row."""
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"y holds labels of mixed types {kinds}; give all the same type."
        ) from error
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs samples of at least 2 classes in the data, but the data contains only "
            f"one class: {classes[0]!r}"
        )
    return classes, codes


def _class_weights(class_weight, classes, codes, weight):
    """Weight of each row's class; "balanced" gives all classes the same total weight."""
    if class_weight is None:
        return np.ones(len(codes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weight)
        return (weight.sum() / (len(classes) * totals))[codes]
    return compute_class_weight(class_weight, classes=classes, y=classes[codes])[codes]


def _drop_unweighted(X, y, weight):
    """Without rows of weight zero, unless X lies on disk."""
    keep = weight > 0.0
    if keep.all() or (isinstance(X, np.ndarray) and memory.mapped(X) is not None):
        return X, y, weight
    return X[keep], y[keep], weight[keep]
