"""A classifier around a module."""

from functools import partial

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._base import weights as weighting
from .._base.validation import central, check_count, reject_masked
from ..estimators._classes import MISSING, check_labels, encode
from ..exceptions import InvalidParameterError
from .base import FIRST_ROWS, BayesianModule
from .docs import documented
from .likelihoods import class_logits
from .rows import TensorRows, as_inputs, is_dataset, of_dataset
from .target import ClassLikelihood

__all__ = ["BayesianModuleClassifier", "class_numbers"]

LARGE = 100.0  # factor of all parameters in the check whether outputs stay between 0 and 1
NOT_WHOLE = (
    "Unknown label type: y contains numbers that are not whole. Use BayesianModuleRegressor for "
    "numbers."
)


@documented
class BayesianModuleClassifier(ClassifierMixin, BayesianModule):
    r"""The posterior of any ``torch.nn.Module`` that gives logits of classes.

    The law that is sampled is

    .. math:: \pi(θ) \propto \Bigl(p(θ) \prod_i p(y_i \mid x_i, θ)^{w_i}\Bigr)^{1/T},
        \qquad p(y \mid x, θ) = \mathrm{softmax}(f_θ(x))_y,

    with :math:`f_θ(x)` the output of the module: a logit for each class along its last axis, or a
    single number, the log-odds of ``classes_[1]``. A row may have several labels, such as one for
    each word of a text; y then has the shape of the output without its last axis.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.

    Raises
    ------
    {raises}

    See Also
    --------
    BayesianModuleRegressor : The estimator for numeric responses.
    skbayes_sg.BayesianLogisticRegression : A linear model that needs neither torch nor steps.

    Notes
    -----
    {notes}

    References
    ----------
    {references}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from torch import nn
    >>> from skbayes_sg.torch import BayesianModuleClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    >>> model = BayesianModuleClassifier(net, n_draws=20, n_chains=2, random_state=0)
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the chains are short
    ...     model = make_pipeline(StandardScaler(), model).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def fit(self, X, y=None, sample_weight=None):
        """Sample the posterior.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
            Rows. Arrays become tensors of the module's type; integers stay integers if the module
            has an embedding. Tensors are used as they are. Of a DataLoader the data set, the
            ``collate_fn`` and the ``num_workers`` are used, but not its batch size: `batch_size` of
            the estimator counts.
        y : array-like, optional
            Labels. If they are whole numbers from 0 on, some may be missing, as in a fold of few
            rows: the number of classes is then the number of outputs of the module. For a Dataset y
            is left out: its items are pairs (x, y), with y in 0, 1, ..., of any type that holds
            whole numbers.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: 2 counts the row twice.

        Returns
        -------
        self : estimator
        """
        return self._fit(X, y, sample_weight)

    def _read(self, X, y, sample_weight, device):
        if is_dataset(X):
            self._reject_with_dataset(y, sample_weight)
            rows = of_dataset(X, device, class_numbers)
            x, labels, _ = rows.batch(np.arange(1))
            output = self._first_output(x)
            n = 2 if output.ndim == labels.ndim or output.shape[-1] == 1 else output.shape[-1]
            rows.encode = partial(class_numbers, n_classes=n)
            self.input_shape_, self.classes_ = tuple(x.shape[1:]), np.arange(n)
            return rows, ClassLikelihood(n)
        X = as_inputs(X, self._template(), self._dtype())
        y, weight = self._labels(y, len(X)), self._weights(sample_weight, len(X))
        weight, X, y = self._with_weight(weight, X, y)
        found, _ = encode(y, type(self).__name__)
        self._set_input_shape(X)
        self.classes_ = self._with_missing(found, X[:FIRST_ROWS].to(device))
        codes = torch.from_numpy(np.searchsorted(self.classes_, y))
        return TensorRows(X, codes, weight, device), ClassLikelihood(len(self.classes_))

    def _with_missing(self, found, x):
        """Return all classes: 0, 1, ... if such labels are fewer than the module's outputs."""
        if found.dtype.kind in "iu" and found[0] >= 0:
            output = self._first_output(x)
            n = output.shape[-1] if output.ndim > 1 else 1
            if len(found) < n and found[-1] < n:
                return np.arange(n, dtype=found.dtype)
        return found

    def _check_output(self, x, output):
        """Raise `InvalidParameterError` for a module that returns probabilities."""
        sums = output.sum(dim=-1)
        several = output.ndim > 1 and output.shape[-1] > 1
        adds_up = several and torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
        may_be = bool(output.any()) and _are_shares(output)  # all zero: weights may begin at 0
        if may_be and (adds_up or self._stays_a_share(x)):
            raise InvalidParameterError(
                "The module returns probabilities, and its output is taken for logits. Leave out "
                "the softmax or the sigmoid at its end."
            )

    def _stays_a_share(self, x):
        """Whether outputs are between 0 and 1 for parameters of any size, as after a sigmoid."""
        module = self._evaluating(x.device)
        with torch.no_grad():
            for p in module.parameters():
                p.mul_(LARGE)
            return _are_shares(module(x))

    def _labels(self, y, n_rows):
        """Return labels as an array, after checks of their number and values."""
        if y is None:
            raise ValueError("y is missing; only a Dataset or a DataLoader has its own.")
        reject_masked(y=y)
        y = y.numpy(force=True) if isinstance(y, torch.Tensor) else np.asarray(check_labels(y))
        if len(y) != n_rows:
            raise ValueError(f"X has {n_rows} rows and y has {len(y)}.")
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        _check_objects(y)
        if y.dtype.kind == "f" and not (np.isfinite(y).all() and (y == np.round(y)).all()):
            raise ValueError(NOT_WHOLE)
        return y

    # -- predictions ----------------------------------------------------------------------------

    def _probabilities(self, output):
        return torch.softmax(class_logits(output, len(self.classes_)), dim=-1).double()

    def _mean_probabilities(self, draws):
        """Return the weighted average of the probabilities over draws, a tensor."""
        weights = self._draw_weights()
        return sum(w * self._probabilities(f) for w, (f, _) in zip(weights, draws(), strict=True))

    def predict_proba(self, X):
        """Posterior predictive probabilities: the average of the softmax over all draws.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader

        Returns
        -------
        ndarray of shape (n_rows, ..., n_classes)
        """

        def reduce(draws, y):
            del y
            return (self._mean_probabilities(draws).cpu().numpy(),)

        return self._over_blocks(X, reduce, 2)[0]

    def predict(self, X):
        """The class with the largest predictive probability.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader

        Returns
        -------
        ndarray of shape (n_rows, ...)
        """
        most = self.predict_proba(X).argmax(axis=-1)  # before a fit there are no classes_
        return self.classes_[most]

    def predict_log_proba(self, X):
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader

        Returns
        -------
        ndarray of shape (n_rows, ..., n_classes)
        """
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict_log_density(self, X, y):
        """Log predictive probability of given labels, log p(y | x), one for each label.

        Unlike `predict_log_proba` it does not hold the probabilities of all classes, which suits
        large vocabularies.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
        y : array-like
            Labels, all of them among ``classes_``.

        Returns
        -------
        ndarray in the shape of y
        """
        check_is_fitted(self, "posterior_")
        y = self._labels(y, len(y))
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y contains labels that are not in classes_: {unknown.tolist()}.")
        codes = np.searchsorted(self.classes_, y)
        weights = np.log(np.maximum(self._draw_weights(), np.finfo(float).tiny))

        def reduce(draws, own):
            index = torch.from_numpy(own)
            found = []
            for w, (f, _) in zip(weights, draws(), strict=True):
                terms = self._likelihood.terms(f, index.to(f.device), None)
                found.append(w - terms.double())
            return (torch.logsumexp(torch.stack(found), dim=0).cpu().numpy(),)

        return self._over_blocks(X, reduce, 2, codes)[0]

    def predict_proba_samples(self, X, n_samples=None):
        """Class probabilities under each draw, all with the same weight.

        If draws have different weights, samples are selected in proportion to these, without
        randomness.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
        n_samples : int, optional
            Number of draws to use, evenly spaced; all draws if None.

        Returns
        -------
        ndarray of shape (n_samples, n_rows, ..., n_classes)
        """
        weights = self._draw_weights()
        n = len(weights) if n_samples is None else n_samples
        check_count("n_samples", n, len(weights))
        differ = None if self.posterior_.weights is None else weights
        chosen = weighting.chosen_draws(differ, n, len(weights))

        def reduce(draws, y):
            del y
            p = torch.stack([self._probabilities(f) for f, _ in draws(chosen)], dim=1)
            return (p.cpu().numpy(),)

        return np.moveaxis(self._over_blocks(X, reduce, 4 * n)[0], 1, 0)

    def predict_proba_interval(self, X, confidence_level=0.9):
        """Central posterior interval of each class probability.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
        confidence_level : float in (0, 1), default=0.9
            Posterior probability that the class probability lies inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_rows, ..., n_classes)
        """
        q, weights = central("confidence_level", confidence_level), self._draw_weights()

        def reduce(draws, y):
            del y
            p = torch.stack([self._probabilities(f) for f, _ in draws()]).cpu().numpy()
            if self.posterior_.weights is None:
                return tuple(np.quantile(p, q, axis=0))
            w = np.broadcast_to(weights.reshape(-1, *[1] * (p.ndim - 1)), p.shape)
            return tuple(np.quantile(p, q, axis=0, weights=w, method="inverted_cdf"))

        return self._over_blocks(X, reduce, 4 * len(weights))

    def predict_entropy_components(self, X):
        """The two parts of the uncertainty of a label in nats; more data reduce only the first.

        .. math:: H[E\\,p] = \\underbrace{H[E\\,p] - E\\,H[p]}_{\\text{epistemic}}
            + \\underbrace{E\\,H[p]}_{\\text{aleatoric}}

        with p the probabilities of a draw and H the entropy. The first part is the mutual
        information of label and parameters: by how much the draws disagree.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader

        Returns
        -------
        epistemic, aleatoric : ndarray of shape (n_rows, ...)
        """
        weights = self._draw_weights()

        def reduce(draws, y):
            del y
            mean = inner = 0.0
            for w, (f, _) in zip(weights, draws(), strict=True):
                p = self._probabilities(f)
                mean, inner = mean + w * p, inner + w * _entropy(p)
            return (_entropy(mean) - inner).clamp(min=0.0).cpu().numpy(), inner.cpu().numpy()

        return self._over_blocks(X, reduce, 4)

    def out_of_distribution_score(self, X):
        """The epistemic part of `predict_entropy_components`, larger where draws disagree more.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader

        Returns
        -------
        ndarray of shape (n_rows, ...)
        """
        return self.predict_entropy_components(X)[0]


def class_numbers(y, n_classes=None):
    """Return labels 0, 1, ... of a batch of a Dataset as integers, whatever their type is."""
    if not isinstance(y, torch.Tensor):
        raise ValueError(f"The labels of a Dataset must be 0, 1, ..., got {y[0]!r}.")
    if y.is_floating_point() and not bool((y.isfinite() & (y == y.round())).all()):
        raise ValueError(NOT_WHOLE)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    y = y.long()
    if n_classes is not None and not bool(((y >= 0) & (y < n_classes)).all()):
        raise ValueError(
            f"The labels of a Dataset must be 0, 1, ..., {n_classes - 1} for a module with "
            f"{n_classes} classes, got {y.min()} to {y.max()}."
        )
    return y


def _check_objects(y):
    """Raise a `ValueError` for missing labels, and for strings beside labels of other types."""
    if y.dtype.kind not in "OfT":
        return
    for label in y.flat if y.dtype.kind != "f" else y[np.isnan(y)]:
        if type(label).__name__ in MISSING or label != label:
            raise ValueError(
                f"Input y contains missing labels (NaN), such as {label!r}. Leave out the rows "
                "without a label."
            )
    kinds = sorted({type(label).__name__ for label in y.flat})
    if len(kinds) > 1 and "str" in kinds:
        raise ValueError(f"y contains labels of mixed types {kinds}. Give all the same type.")


def _are_shares(output):
    """Whether all numbers are between 0 and 1."""
    return bool(((output >= 0) & (output <= 1)).all())


def _entropy(p):
    """-Σ p log p along the last axis."""
    return torch.special.entr(p).sum(dim=-1)
