"""Bayesian multilayer perceptrons, for numbers and for classes."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._base import memmap
from .._base.callbacks import CallbackSupportMixin, Progress, with_callbacks
from .._base.threads import in_threads, one_blas_thread
from .._base.typing import ArrayLike, MatrixLike, RandomState
from .._base.validation import (
    Parameters,
    check_data,
    check_size,
    check_weights,
    drop_unweighted,
    is_real,
    widen_small,
)
from ..diagnostics.judgements import warn_of
from ..dynamics import HMC, Dynamics
from ..exceptions import SamplerDivergedError, StepSizeWarning
from ..gradients import Gradient
from ..groups.rows import AS_DRAWN
from ..kernels.layout import frozen
from ..models import Linear, LinearKnownNoise, Logistic, Softmax
from ..models.probabilities import class_probabilities
from ..networks.architecture import blocks_of, make_network
from ..networks.posterior import NetworkPosterior
from ..networks.predictor_map import LARGEST_LOG_SD, new_scratch
from ..networks.prior_scales import make_groups
from ..networks.problem import NetworkProblem, column_moments, merged, standardised
from ..networks.request import FEW_NUMBERS, FEW_ROWS, NetworkRequest
from ..networks.run import predictors_of, sample
from ..networks.scale_scores import shift_of_scales
from ._classes import ClassPredictions, check_labels, check_targets, class_weights, encode
from ._docstrings import SharedDocstring
from ._mixtures import MixturePredictions
from ._saved import SavedEstimator
from ._signature import with_parameters_of
from ._store import all_or_nothing, check_draw_store

__all__ = ["BayesianMLPClassifier", "BayesianMLPRegressor"]

BLOCK_BYTES = 1 << 24  # bytes of the predictors of a block of rows under all draws
# Findings that come with another category of warning than the others.
OF_STEPS = (
    ("gradient noise", StepSizeWarning),
    ("kicks of batches", StepSizeWarning),
    ("kinetic temperature", StepSizeWarning),
)
REMEDY = "The draws are stored as float32. Use a smaller n_draws, or fewer or smaller layers."


class BayesianMLP(CallbackSupportMixin, SharedDocstring, SavedEstimator):
    """Base of the networks for numbers and for classes.

    A subclass has the architecture in its constructor, `fit`, and ``_predictions(eta)``, which
    returns the quantities (n_draws, n) that chains should agree about, from predictors (n_draws,
    rows, K).
    """

    _doc_link_module = "skbayes_sg"
    _doc_link_template = "https://skbayes-sg.readthedocs.io/stable/api/{estimator_name}.html"

    def __init__(
        self,
        *,
        prior_scale: str | float = "infer",
        sampler: str | Dynamics | HMC = "auto",
        gradient: str | Gradient = "auto",
        batch_size: str | float = "auto",
        step_size: str | float = "auto",
        preconditioner: str | None = "auto",
        n_draws: int = 100,
        n_chains: int = 4,
        n_warmup: str | int = "auto",
        thin: str | int = "auto",
        max_doublings: int = 1,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.prior_scale = prior_scale
        self.sampler = sampler
        self.gradient = gradient
        self.batch_size = batch_size
        self.step_size = step_size
        self.preconditioner = preconditioner
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.max_doublings = max_doublings
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _sample(self, request, X, y, weight, model, outputs, log_sd=-1, n_extra=0):
        """Draw from the posterior, set the fitted attributes, and return the estimator.

        `outputs` is the number of units of the last layer, `log_sd` the predictor that is the
        logarithm of the noise (-1 if there is none), and `n_extra` the number of parameters beside
        the weights.
        """
        X, y, weight = _small_merged(X, y, weight)
        centre, spread = column_moments(X, weight)
        sizes = (X.shape[1], *request.hidden, outputs)
        network = make_network(sizes, request.activation, log_sd, n_extra)
        facts, groups = frozen(np.column_stack([y, weight])), _groups(network, request)
        dtype = np.float64 if request.is_exact else np.float32
        problem = NetworkProblem(
            X, facts, centre, spread, network, model, groups, request.prior_scale, dtype
        )
        check_draw_store(request.n_chains, request.n_draws, problem.n_parameters, 4, REMEDY)
        sampler, chosen = request.made(*X.shape)
        data = {"centre_": centre, "spread_": spread, "_network": network} | chosen

        def attributes(outcome):
            return data | self._attributes(outcome, network, request)

        progress = Progress(self, lambda outcome: attributes(outcome()), X=X, y=y)

        def watch(so_far, share):
            return progress(lambda: (so_far,), share)

        try:
            with one_blas_thread:
                outcome = sample(problem, sampler, request, self._predictions, watch)
                if chosen["batch_size_"] == X.shape[0]:
                    outcome.measured |= shift_of_scales(problem, outcome.draws, outcome.scales)
        except SamplerDivergedError as error:
            raise SamplerDivergedError(f"{type(self).__name__}: {error}") from None
        fitted = attributes(outcome)
        vars(self).update(fitted)
        self._warn_of_smaller_steps(request.step_size)
        self._warn()
        progress.finish(fitted)
        return self

    def _warn_of_smaller_steps(self, asked):
        """Warn if chains had to be moved back, and took smaller steps than the user asked for."""
        if asked is not None and self.step_size_ < 0.999 * asked:
            warnings.warn(
                f"{type(self).__name__}: step_size={asked:.3g} is too large here. Steps made the "
                "energy of a chain jump, or made it diverge; it was moved back and went on with "
                f"smaller steps, on average with step_size_={self.step_size_:.2g}. Use "
                "step_size='auto', or a smaller one.",
                StepSizeWarning,
                stacklevel=5,
            )

    def _warn(self):
        """Warn of all findings of the posterior's `check`."""
        warn_of(self.posterior_.check(), 5, OF_STEPS)

    def _attributes(self, outcome, network, request):
        """Fitted attributes, by name, from the outcome of the chains."""
        rhat, known = outcome.rhat, dict(outcome.measured)
        evidence = known | {"function_rhat": rhat[1], "n_returns": outcome.n_returns}
        evidence["n_steps"] = outcome.n_steps * outcome.draws.shape[0]
        if not request.takes_noise_out:
            evidence["noise_left"] = known["noise_inflation"]
        if request.activation == "relu" and 1 in request.hidden:
            evidence["single_relu"] = 1.0
        origin = {"step_size": float(f"{outcome.step**2:.4g}"), "thin": outcome.thin}
        of_layers, of_columns = _groups(network, request).split(outcome.scales)
        return {
            "posterior_": self._posterior(outcome, network, request, origin, evidence),
            "function_rhat_": float(rhat[1]),
            "noise_inflation_": float(known["noise_inflation"]),
            "kinetic_temperature_": float(known["kinetic_temperature"]),
            "prior_scale_": of_layers.mean(axis=(0, 1)),
            "column_scale_": of_columns.mean(axis=(0, 1)) if of_columns.size else None,
            "step_size_": outcome.step**2,
            "n_returns_": int(outcome.n_returns),
            "thin_": int(outcome.thin),
            "n_steps_": int(outcome.n_steps),
            "diagnostics_": {"function_rhat_median": float(rhat[0])}
            | {name: float(value) for name, value in evidence.items()},
        }

    def _posterior(self, outcome, network, request, origin, evidence):
        """The `NetworkPosterior` of the draws of weights, noise and scales."""
        shapes = {block.name: block.shape for block in blocks_of(network)}
        parts = [outcome.draws[..., : blocks_of(network)[-1].stop], *self._noise_of(outcome)]
        if network.n_extra:
            shapes["noise_std"] = ()
        of_layers, of_columns = _groups(network, request).split(outcome.scales)
        shapes["prior_scale"] = of_layers.shape[2:]
        if of_columns.size:
            shapes["column_scale"] = of_columns.shape[2:]
        flat = np.concatenate([*parts, outcome.scales], axis=-1, dtype=np.float32)
        return NetworkPosterior(flat, shapes, outcome.probes, origin, evidence)

    def _noise_of(self, outcome):
        """A list of the draws (n_chains, n_draws, 1) of the noise, empty if it is no parameter."""
        del outcome
        return []

    def _theta(self):
        """Draws of the parameters θ of the network, (n_chains * n_draws, n_parameters)."""
        stop = blocks_of(self._network)[-1].stop
        flat = self.posterior_.flat
        return np.ascontiguousarray(flat[..., :stop].reshape(-1, stop))

    def _in_blocks(self, X, reduce, axis, in_order=False, draws=slice(None)):
        """``reduce(eta)`` of all blocks of predictors (draws, rows, K), joined along an axis."""
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        theta, K = self._theta()[draws], self._network.sizes[-1] + self._network.n_extra
        step = max(1, BLOCK_BYTES // (8 * len(theta) * K))

        def of(first):
            block = memmap.gather(X, slice(first, first + step))
            x = standardised(block, self.centre_, self.spread_, np.float32)
            scratch = new_scratch(self._network, np.dtype(np.float32))
            return reduce(predictors_of(self._network, theta, x, scratch))

        firsts = range(0, X.shape[0], step)
        with one_blas_thread as n_threads:
            return np.concatenate(in_threads(of, firsts, 1 if in_order else n_threads), axis=axis)


def _groups(network, request):
    """The groups of weights with a common scale; columns have scales if these are inferred."""
    return make_groups(network, columns=request.prior_scale is None)


def _small_merged(X, y, weight):
    """(X, y, weight) with equal rows merged, if there are few rows; as they are if many."""
    if X.shape[0] > FEW_ROWS or X.shape[0] * X.shape[1] > FEW_NUMBERS:
        return X, y, weight
    X = widen_small(X)
    return merged(X, y, weight) if isinstance(X, np.ndarray) else (X, y, weight)


class BayesianMLPRegressor(MixturePredictions, RegressorMixin, BayesianMLP):
    r"""Bayesian multilayer perceptron for regression: draws from the posterior of its weights.

    With standardised columns and response, and one or more hidden layers
    :math:`a_l = \varphi(a_{l-1} W_l + b_l)`, the last layer gives the mean of the response and, by
    default, the logarithm of its standard deviation:

    .. math::

        y_i \sim N(m(x_i), s(x_i)^2), \quad (m, \log s)(x) = a_{L-1}(x)\, W_L + b_L, \qquad
        W_l \sim N(0, \tau_l^2 / \mathrm{fan\_in}_l), \quad b_l \sim N(0, 1).

    The scales :math:`\tau_l` have the prior :math:`\tau^2 \sim \mathrm{InvGamma}(2, 2)`, truncated
    to :math:`\tau \le 10`, and are sampled together with the weights; in the last layer the mean
    and the log standard deviation have a scale of their own each. In the first layer the scale of
    the weights of column j is multiplied by :math:`\lambda_j`, which has a half-Cauchy prior
    truncated to at most 10: this shrinks the weights of columns without influence (automatic
    relevance determination). With less than 8 units in the first hidden layer, or without one,
    every :math:`\lambda_j = 1`. The logarithm of s lies within ±6, so that s is 0.25 % to 400 times
    the standard deviation of y.

    Predictions average over the posterior itself, at temperature one. Up to 50 000 rows, "auto"
    runs kinetic Langevin dynamics on all rows; its step is adapted so that the error of the energy
    is small, and a guard moves a chain back to an earlier state if its energy jumps. On more rows
    "auto" uses batches, and removes the noise of their gradients by an additional friction: the
    gradient of a row gets more weight if it points along the velocity. Each chain starts from
    random weights, followed by some steps of the optimiser Adam. If the noise is an output of the
    network, it is a single number for the first two thirds of the warm-up: otherwise the network
    would take for noise what its mean has not learned yet.

    The weights of a network are not identified, since different weights give the same predictions.
    Whether chains have converged is therefore judged by their predictions at up to 200 rows of the
    fit. A fit whose chains disagree is continued (`max_doublings`), and warns if they still
    disagree. Predictions are then averages over what the chains have found, like those of an
    ensemble.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(32, 16)
        Number of units in each hidden layer; without hidden layers the model is linear.
    activation : {"tanh", "relu", "logistic", "identity"}, default="tanh"
        Activation function :math:`\varphi` of the hidden layers.
    noise : {"heteroscedastic", "infer"} or float, default="heteroscedastic"
        "heteroscedastic": the standard deviation of y is an output of the network. "infer": it is a
        single parameter, whose logarithm has the prior N(-1, 1.5²) in units of the standard
        deviation of y. A number is the known standard deviation, in the units of y.
    prior_scale : "infer" or float, default="infer"
        "infer" samples the scales :math:`\tau_l` and :math:`\lambda_j`. A number is the scale
        :math:`\tau` of all weights, with every :math:`\lambda_j = 1`. It takes the place of `alpha`
        in `sklearn.neural_network.MLPRegressor`, whose penalty corresponds to about
        ``alpha = fan_in / prior_scale**2``.
    {network_steps}

    Attributes
    ----------
    posterior_ : skbayes_sg.networks.posterior.NetworkPosterior
        All draws, in the variables "coefs_0", "intercepts_0", ... for the layers, "prior_scale",
        "column_scale", and "noise_std" if ``noise="infer"``. Its method `check` judges predictions.
    noise_std_ : float
        Square root of the posterior mean of the variance of y about its mean, averaged over rows.
    y_centre_, y_spread_ : float
        Weighted mean and standard deviation of y.
    {network_findings}

    See Also
    --------
    sklearn.neural_network.MLPRegressor : A single network, fitted by optimisation.

    Notes
    -----
    {network_notes}

    References
    ----------
    {network_references}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianMLPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianMLPRegressor(hidden_layer_sizes=(10,), n_chains=2, random_state=0)
    >>> model = model.fit(X[:400], y[:400])
    >>> mean, std = model.predict(X[400:], return_std=True)
    >>> lower, upper = model.predict_interval(X[400:])
    >>> print(((lower <= y[400:]) & (y[400:] <= upper)).sum() > 35, "of", len(lower))
    True of 42
    >>> epistemic, aleatoric = model.predict_std_components(X[400:])
    >>> print(epistemic.mean() < aleatoric.mean())
    True
    """

    @with_parameters_of(BayesianMLP, before="prior_scale")
    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (32, 16),
        activation: str = "tanh",
        *,
        noise: str | float = "heteroscedastic",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.noise = noise

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            The rows. Large memory-mapped arrays stay on disk, and large sparse matrices stay
            sparse.
        y : array-like of shape (n_rows,)
            The response.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: 2 counts the row twice, and 0 leaves it out.

        Returns
        -------
        self : BayesianMLPRegressor
            The estimator, with the attributes of the class docstring.
        """
        with all_or_nothing(self):
            request, noise = NetworkRequest(self), self._checked_noise()
            X, y = check_data(self, X, y, y_numeric=True)
            y = y.astype(np.float64, copy=False)
            check_size(self, "y", np.abs(y).max())
            X, y, weight = drop_unweighted(X, y, check_weights(sample_weight, X))
            self.y_centre_, self.y_spread_ = _moments(y, weight)
            y = (y - self.y_centre_) / self.y_spread_
            if noise == "heteroscedastic":
                return self._sample(request, X, y, weight, Linear(), 2, log_sd=1)
            if noise == "infer":
                return self._sample(request, X, y, weight, Linear(), 1, log_sd=1, n_extra=1)
            weight = weight * (self.y_spread_ / noise) ** 2
            return self._sample(request, X, y, weight, LinearKnownNoise(), 1)

    def _checked_noise(self):
        """The parameter `noise`, as one of its strings or as a float."""
        value = self.noise
        if isinstance(value, str) and value in ("heteroscedastic", "infer"):
            return value
        if not (is_real(value) and 0.0 < value < np.inf):
            Parameters(self).fail("noise", "'heteroscedastic', 'infer' or a positive finite number")
        return float(value)

    def _predictions(self, eta):
        return eta.reshape(len(eta), -1)

    def _noise_of(self, outcome):
        if self.noise != "infer":
            return []
        rho = outcome.draws[..., -1:].astype(np.float64)
        return [self.y_spread_ * np.exp(np.clip(rho, -LARGEST_LOG_SD, LARGEST_LOG_SD))]

    def _theta(self):
        theta = super()._theta()
        if "noise_std" not in self.posterior_:
            return theta
        sd = self.posterior_["noise_std"].reshape(-1, 1) / self.y_spread_
        return np.hstack([theta, np.log(sd, dtype=np.float32)])

    def _attributes(self, outcome, network, request):
        found = super()._attributes(outcome, network, request)
        n = outcome.probes.shape[-1]
        if network.log_sd < 0:
            return found | {"noise_std_": float(self.noise)}
        logs = outcome.probes.reshape(-1, n // 2, 2)[..., 1]
        return found | {"noise_std_": float(self.y_spread_ * np.sqrt(np.exp(2.0 * logs).mean()))}

    def _predicted(self, X, reduce, in_order=False):
        """``reduce(means, variances)`` of all blocks of rows, joined along the last axis.

        Both arguments are arrays (draws, rows), in the unit of y and in its square.
        """
        centre, spread = (getattr(self, name, None) for name in ("y_centre_", "y_spread_"))

        def of_block(eta):
            means = centre + spread * eta[:, :, 0]
            if eta.shape[2] == 1:
                return reduce(means, np.full(means.shape, self.noise_std_**2))
            return reduce(means, np.square(spread * np.exp(eta[:, :, 1])))

        return self._in_blocks(X, of_block, -1, in_order)


def _moments(y, weight):
    """Weighted mean and standard deviation of the response; the latter is 1 if it is constant."""
    mean = float(np.average(y, weights=weight))
    spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
    return mean, spread if spread > 1e-14 * np.abs(y).max() else 1.0


class BayesianMLPClassifier(ClassPredictions, ClassifierMixin, BayesianMLP):
    r"""Bayesian multilayer perceptron for classification: draws from the posterior of its weights.

    With standardised columns and one or more hidden layers
    :math:`a_l = \varphi(a_{l-1} W_l + b_l)`, the last layer gives the log-odds of the second class,
    or for more than two the logits of all classes:

    .. math::

        P(y_i = k) = \mathrm{softmax}(\eta(x_i))_k, \quad \eta(x) = a_{L-1}(x)\, W_L + b_L, \qquad
        W_l \sim N(0, \tau_l^2 / \mathrm{fan\_in}_l), \quad b_l \sim N(0, 1).

    The scales :math:`\tau_l` have the prior :math:`\tau^2 \sim \mathrm{InvGamma}(2, 2)`, truncated
    to :math:`\tau \le 10` since they would grow without bound on separable classes, and are sampled
    together with the weights. In the first layer the scale of the weights of column j is multiplied
    by :math:`\lambda_j`, which has a half-Cauchy prior truncated to at most 10: this shrinks the
    weights of columns without influence (automatic relevance determination). With less than 8 units
    in the first hidden layer, or without one, every :math:`\lambda_j = 1`.

    Predictions average over the posterior itself, at temperature one. Up to 50 000 rows, "auto"
    runs kinetic Langevin dynamics on all rows; its step is adapted so that the error of the energy
    is small, and a guard moves a chain back to an earlier state if its energy jumps. On more rows
    "auto" uses batches, and removes the noise of their gradients by an additional friction: the
    gradient of a row gets more weight if it points along the velocity. Each chain starts from
    random weights, followed by some steps of the optimiser Adam.

    The weights of a network are not identified, since different weights give the same predictions.
    Whether chains have converged is therefore judged by their predictions at up to 200 rows of the
    fit. A fit whose chains disagree is continued (`max_doublings`), and warns if they still
    disagree. Predictions are then averages over what the chains have found, like those of an
    ensemble.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(32, 16)
        Number of units in each hidden layer; without hidden layers the model is linear.
    activation : {"tanh", "relu", "logistic", "identity"}, default="tanh"
        Activation function :math:`\varphi` of the hidden layers.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, by which the sample weights of its rows are multiplied. "balanced"
        gives all classes the same total weight. A posterior with weights is not that of the
        original data.
    prior_scale : "infer" or float, default="infer"
        "infer" samples the scales :math:`\tau_l` and :math:`\lambda_j`. A number is the scale
        :math:`\tau` of all weights, with every :math:`\lambda_j = 1`. It takes the place of `alpha`
        in `sklearn.neural_network.MLPClassifier`, whose penalty corresponds to about
        ``alpha = fan_in / prior_scale**2``.
    {network_steps}

    Attributes
    ----------
    posterior_ : skbayes_sg.networks.posterior.NetworkPosterior
        All draws, in the variables "coefs_0", "intercepts_0", ... for the layers, "prior_scale" and
        "column_scale". Its method `check` judges predictions.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    {network_findings}

    See Also
    --------
    sklearn.neural_network.MLPClassifier : A single network, fitted by optimisation.

    Notes
    -----
    {network_notes}

    References
    ----------
    {network_references}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayes_sg import BayesianMLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianMLPClassifier(hidden_layer_sizes=(10,), n_chains=2, random_state=0)
    >>> model = model.fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    >>> lower, upper = model.predict_proba_interval(X[1::2])
    >>> lower.shape
    (75, 3)
    """

    @with_parameters_of(BayesianMLP, before="prior_scale")
    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (32, 16),
        activation: str = "tanh",
        *,
        class_weight: dict[str, Any] | str | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            The rows. Large memory-mapped arrays stay on disk, and large sparse matrices stay
            sparse.
        y : array-like of shape (n_rows,)
            Class labels of any type.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: 2 counts the row twice, and 0 leaves it out.

        Returns
        -------
        self : BayesianMLPClassifier
            The estimator, with the attributes of the class docstring.
        """
        with all_or_nothing(self):
            request = NetworkRequest(self)
            Parameters(self).class_weight()
            y = check_labels(y)
            X, y = check_data(self, X, y)
            check_targets(y)
            X, y, weight = drop_unweighted(X, y, check_weights(sample_weight, X))
            self.classes_, codes = encode(y, type(self).__name__)
            weight = weight * class_weights(self.class_weight, self.classes_, codes, weight)
            K = len(self.classes_)
            model, outputs = (Logistic(), 1) if K == 2 else (Softmax(K), K)
            return self._sample(request, X, codes.astype(np.float64), weight, model, outputs)

    _pooled_weights = None  # all draws have the same weight

    def _predictions(self, eta):
        return class_probabilities(_log_odds(eta))[..., 1:].reshape(len(eta), -1)

    def _of_predictors(self, X, reduce, draws=slice(None), rng=None):
        """``reduce(eta, components)`` of all blocks of predictors, joined along the rows.

        The predictors are log-odds against the first class, (rows, draws, n_classes - 1).
        """
        del rng

        def of_block(eta):
            return reduce(np.ascontiguousarray(_log_odds(eta).transpose(1, 0, 2)), AS_DRAWN)

        return self._in_blocks(X, of_block, 0, draws=draws)


def _log_odds(eta):
    """Log-odds against the first class (..., n_classes - 1), from the outputs of the network."""
    return eta if eta.shape[-1] == 1 else eta[..., 1:] - eta[..., :1]
