"""Tools of all classifiers: labels as numbers, weights of classes, and predictions of classes."""

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base import weights as weighting
from .._base.typing import ArrayLike, MatrixLike
from .._base.validation import bools_of, central, check_count
from ..models.probabilities import class_probabilities, log_mean_probabilities, mean_probabilities

__all__ = [
    "MISSING",
    "ClassPredictions",
    "check_labels",
    "check_targets",
    "class_weights",
    "encode",
]

MISSING = {"NoneType", "NAType", "NaTType"}  # names of the types of missing labels, beside NaN


class ClassPredictions:
    """Predictions of a classifier from its draws.

    A subclass has ``_pooled_weights``, the weights of all draws or None, and
    ``_of_predictors(X, reduce, draws, rng)``, which calls ``reduce(eta, components)`` with blocks
    of log-odds against the first class (rows, draws, n_classes - 1) and with
    `skbayes_sg.groups.rows.Components`, and joins the results along the rows.
    """

    _groups: Any = None
    classes_: np.ndarray
    posterior_: Any
    _of_predictors: Any
    _pooled_weights: Any

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Posterior predictive probability of each class: the mean over all draws.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        return self._mean_probabilities(X, self._pooled_weights)

    def _mean_probabilities(self, X, weights):
        """Weighted mean over the draws of the class probabilities, (n_rows, n_classes)."""

        def reduce(eta, components):
            return mean_probabilities(eta, weights=components.weights(weights))

        return self._of_predictors(X, reduce)

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)

        def reduce(eta, components):
            return log_mean_probabilities(eta, weights=components.weights(self._pooled_weights))

        return self._of_predictors(X, reduce)

    def predict(self, X: MatrixLike) -> np.ndarray:
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

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy: the share of rows whose class `predict` returns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            True labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        float
        """
        y = check_labels(y)
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Log-odds of the second class for two classes; log probabilities for three or more.

        Both are those of the posterior predictive probabilities. `predict` returns the class to
        which the sign, or the largest column, belongs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
        """
        log_p = self.predict_log_proba(X)
        return log_p[:, 1] - log_p[:, 0] if log_p.shape[1] == 2 else log_p

    def predict_proba_interval(
        self, X: MatrixLike, confidence_level: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Central posterior interval of each class probability.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        confidence_level : float in (0, 1), default=0.9
            Posterior probability that the class probability lies inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_rows, n_classes)
        """
        q = central("confidence_level", confidence_level)

        def bounds_of(eta, components):
            weights = components.weights(self._pooled_weights)
            # Of two probabilities one rises with η and the other falls: quantiles of η suffice.
            if eta.shape[2] == 1:
                of = lambda x: class_probabilities(x[..., None])  # noqa: E731
                ends = weighting.quantile(eta[..., 0], q, weights, axis=1, of=of)
                return np.sort(ends, axis=0).transpose(1, 0, 2)
            p = class_probabilities(eta)
            return weighting.quantile(p, q, weights, axis=1).transpose(1, 0, 2)

        bounds = self._of_predictors(X, bounds_of)
        return bounds[:, 0], bounds[:, 1]

    def predict_proba_samples(self, X: MatrixLike, n_samples: int | None = None) -> np.ndarray:
        """Class probabilities under each draw.

        All samples have the same weight. If draws have different weights, as after step sizes that
        vary, samples are selected from them in proportion to the weights, without randomness: a
        draw with a large weight may occur several times, one with a small weight not at all.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        n_samples : int, optional
            Number of draws to use, evenly spaced; all draws if None.

        Returns
        -------
        ndarray of shape (n_samples, n_rows, n_classes)
        """
        check_is_fitted(self)
        total = self.posterior_.n_chains * self.posterior_.n_draws
        n_samples = total if n_samples is None else n_samples
        check_count("n_samples", n_samples, total)
        draws = weighting.chosen_draws(self._pooled_weights, n_samples, total)
        # With group effects, those of unknown levels are drawn, always from the same stream.
        rng = None if self._groups is None else streams.fixed()
        found = self._of_predictors(X, lambda eta, _: class_probabilities(eta), draws, rng)
        return found.transpose(1, 0, 2)


def _kinds(y):
    """The names of the types of the labels, sorted."""
    return sorted({type(label).__name__ for label in y})


def _mixed(y):
    """The `ValueError` for labels of mixed types, or for missing ones among them."""
    kinds = _kinds(y)
    if MISSING & set(kinds) or any(isinstance(label, float) and label != label for label in y):
        return ValueError(
            f"Input y contains missing labels: its types are {kinds}. Leave out the rows without a "
            "label."
        )
    return ValueError(f"y contains labels of mixed types {kinds}. Give all labels the same type.")


def check_labels(y):
    """The labels as they are, or as bools if they are objects that are all bools.

    `ValueError` for labels that conversion to an array would change silently: the missing values of
    pandas, and numbers beside strings in a list.
    """
    if hasattr(y, "isna") and np.any(y.isna()):
        raise ValueError("Input y contains NaN (missing labels).")
    if isinstance(y, (list, tuple)):
        strings = sum(isinstance(label, str) for label in y)
        if 0 < strings < len(y):
            raise _mixed(y)
    return bools_of(y)


def check_targets(y):
    """Raise `ValueError` for targets that are not class labels, or cannot be compared."""
    try:
        check_classification_targets(y)
        if y.dtype.kind == "S":
            raise TypeError("scikit-learn < 1.7 takes bytes as class labels.")
    except (TypeError, ValueError) as error:
        kinds = _kinds(y)
        if len(kinds) > 1:
            raise _mixed(y) from error
        if y.dtype.kind in "OS":
            raise ValueError(
                f"Unknown label type: y is an array of {kinds[0]} objects. Convert the labels to "
                "strings, integers or bools, as in y.astype(int)."
            ) from error
        raise


def encode(y, owner):
    """The sorted classes, and the class number of each row; `ValueError` for a single class."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs samples of at least 2 classes in the data, but the data contains only "
            f"one class: {classes.tolist()[0]!r}"
        )
    return classes, codes


def class_weights(class_weight, classes, codes, weight):
    """The factor of each row's weight that its class has, (n_rows,); 1 if `class_weight` is None.

    "balanced" gives all classes the same total weight, given the weights of the rows.
    """
    if class_weight is None:
        return np.ones(len(codes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weight)
        return (weight.sum() / (len(classes) * totals))[codes]
    return compute_class_weight(class_weight, classes=classes, y=classes[codes])[codes]
