"""A regressor around a module."""

import numpy as np
import torch
from sklearn.base import RegressorMixin

from .._base import streams
from .._base import weights as weighting
from .._base.validation import (
    Parameters,
    central,
    check_count,
    check_probabilities,
    is_real,
    reject_masked,
)
from ..kernels.normal_mixtures import mixture_quantiles
from .base import BayesianModule
from .docs import documented
from .likelihoods import LOG_2PI, normal_parts
from .rows import TensorRows, as_inputs, is_dataset, of_dataset
from .target import NormalLikelihood

__all__ = ["BayesianModuleRegressor"]

ROUNDING = 1e-14  # a response is constant if its sd is at most this share of its largest value


@documented
class BayesianModuleRegressor(RegressorMixin, BayesianModule):
    r"""The posterior of any ``torch.nn.Module`` whose output is the mean of numbers.

    The law that is sampled is

    .. math:: \pi(θ) \propto \Bigl(p(θ) \prod_i p(y_i \mid x_i, θ)^{w_i}\Bigr)^{1/T},
        \qquad y_i \mid x_i, θ \sim N(f_θ(x_i), σ^2),

    with :math:`f_θ(x)` the output of the module in the shape of y, with or without a last axis of
    length one. The module works in standardised units of the response: its output is multiplied by
    the standard deviation of y, and the mean of y is added, so that a prior of scale one suits y in
    any units. The noise :math:`σ` has a half Student's t prior with 3 degrees of freedom and the
    scale of y, or is known, or is an output of the module.

    Parameters
    ----------
    {parameters}
    noise : "infer", "module" or float, default="infer"
        The standard deviation of the noise. "infer": one number, which is sampled with the
        parameters. "module": an output of the module, whose last axis then has two halves, the
        means and the logarithms of standard deviations. A number is the known standard deviation,
        in the units of y.

    Attributes
    ----------
    {attributes}
    y_mean_, y_scale_ : float or ndarray
        Mean and standard deviation of y. The output of the module is multiplied by `y_scale_`, and
        then `y_mean_` is added.
    noise_std_ : float or ndarray
        Posterior mean of σ in the units of y; only with ``noise="infer"``.

    Raises
    ------
    {raises}

    See Also
    --------
    BayesianModuleClassifier : The estimator for classes.
    skbayes_sg.BayesianLinearRegression : A linear model with a closed form, without torch.

    Notes
    -----
    {notes}

    References
    ----------
    {references}

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from torch import nn
    >>> from skbayes_sg.torch import BayesianModuleRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> net = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1))
    >>> model = BayesianModuleRegressor(net, n_draws=20, n_chains=2, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the chains are short
    ...     model = model.fit(scale(X), y)
    >>> mean, std = model.predict(scale(X)[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    def __init__(
        self, module, *, noise="infer", prior="normal", sampler="auto", gradient="auto",
        batch_size="auto", step_size="auto", preconditioner="auto", temperature=1.0, n_draws=50,
        n_chains=4, n_warmup="auto", thin="auto", start_steps="auto", learning_rate=3e-3,
        initialisation="reset", training=True, keep="all", draws_dtype="float32",
        draws_folder=None, device="auto", data_on_device=False, random_state=None,
    ):  # fmt: skip
        super().__init__(
            module, prior=prior, sampler=sampler, gradient=gradient, batch_size=batch_size,
            step_size=step_size, preconditioner=preconditioner, temperature=temperature,
            n_draws=n_draws, n_chains=n_chains, n_warmup=n_warmup, thin=thin,
            start_steps=start_steps, learning_rate=learning_rate, initialisation=initialisation,
            training=training, keep=keep, draws_dtype=draws_dtype, draws_folder=draws_folder,
            device=device, data_on_device=data_on_device, random_state=random_state,
        )  # fmt: skip
        self.noise = noise

    def fit(self, X, y=None, sample_weight=None):
        """Sample the posterior.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
            As for `BayesianModuleClassifier`.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            The response. The items of a Dataset are pairs (x, y), and the argument y is left out.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row: 2 counts the row twice.

        Returns
        -------
        self : estimator
        """
        self._fit(X, y, sample_weight)
        vars(self).pop("noise_std_", None)
        if self._likelihood.n_extra:
            found = np.exp(self.posterior_.draws[..., -1].ravel().astype(np.float64))
            self.noise_std_ = float(self._draw_weights() @ found) * self.y_scale_
        return self

    def _read(self, X, y, sample_weight, device):
        if is_dataset(X):
            self._reject_with_dataset(y, sample_weight)
            rows = of_dataset(X, device)
            self._learn_scale(_some_targets(rows))
            rows.encode = self._encode
            self.input_shape_ = tuple(rows.batch(np.arange(1))[0].shape[1:])
            return rows, NormalLikelihood(self._log_noise())
        X = as_inputs(X, self._template(), self._dtype())
        y, weight = self._numbers(y, len(X)), self._weights(sample_weight, len(X))
        weight, X, y = self._with_weight(weight, X, y)
        self._learn_scale(y, None if weight is None else weight.numpy(force=True))
        self._set_input_shape(X)
        y = self._encode(torch.from_numpy(y)).to(self._dtype())
        return TensorRows(X, y, weight, device), NormalLikelihood(self._log_noise())

    def _numbers(self, y, n_rows):
        """Return a copy of the responses as an array of float64."""
        if y is None:
            raise ValueError("y is missing; only a Dataset or a DataLoader has its own.")
        reject_masked(y=y)
        y = y.numpy(force=True) if isinstance(y, torch.Tensor) else np.asarray(y)
        y = np.array(y, dtype=np.float64)  # a copy: tensors of it may be written to
        if len(y) != n_rows:
            raise ValueError(f"X has {n_rows} rows and y has {len(y)}.")
        return y

    def _learn_scale(self, y, weight=None):
        """Set mean and standard deviation of each column of y; the latter is 1 for a constant."""
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity.")
        self.y_mean_ = np.average(y, axis=0, weights=weight)
        spread = np.sqrt(np.average((y - self.y_mean_) ** 2, axis=0, weights=weight))
        varies = spread > ROUNDING * np.abs(y).max(axis=0)
        self.y_scale_, self.output_shape_ = np.where(varies, spread, 1.0), y.shape[1:]
        if isinstance(self.noise, str) and not varies.any():
            raise ValueError(
                f"All responses in y are the same: with noise={self.noise!r} there is no posterior "
                "of the noise. Give a number."
            )
        if y.ndim == 1:
            self.y_mean_, self.y_scale_ = float(self.y_mean_), float(self.y_scale_)

    def _encode(self, y):
        """Return responses minus their mean, in units of their standard deviation."""
        how = {"dtype": torch.float64, "device": y.device}
        mean, scale = (torch.as_tensor(value, **how) for value in (self.y_mean_, self.y_scale_))
        return ((y.double() - mean) / scale).to(self._dtype())

    def _log_noise(self):
        if isinstance(self.noise, str) and self.noise in ("infer", "module"):
            return self.noise
        if not (is_real(self.noise) and np.isfinite(self.noise) and self.noise > 0.0):
            Parameters(self).fail("noise", "'infer', 'module' or a positive number")
        return np.log(float(self.noise) / self.y_scale_)

    # -- predictions ----------------------------------------------------------------------------

    def _parts(self, draws, choose=None):
        """Return means and standard deviations of y under each draw, (draws, rows, ...)."""
        means, deviations = [], []
        for output, extra in draws(choose):
            shape = torch.Size((len(output), *self.output_shape_))
            log_noise = self._likelihood.noise(output, extra)
            f, s = normal_parts(output, log_noise, shape)
            means.append(f.double().cpu())
            deviations.append(torch.exp(s.double()).expand_as(f).cpu())
        f, s = torch.stack(means).numpy(), torch.stack(deviations).numpy()
        return self.y_mean_ + self.y_scale_ * f, self.y_scale_ * s

    def _variances(self, X):
        """Return mean, epistemic variance and aleatoric variance of y for each row."""
        w = self._draw_weights()

        def reduce(draws, y):
            del y
            f, s = self._parts(draws)
            mean = np.tensordot(w, f, 1)
            return mean, np.tensordot(w, (f - mean) ** 2, 1), np.tensordot(w, s * s, 1)

        return self._over_blocks(X, reduce, 4 * len(w))

    def predict(self, X, return_std=False):
        """Posterior predictive mean.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
        return_std : bool, default=False
            Whether to return the standard deviation of y as well, which includes the uncertainty of
            the mean and the noise. `predict_std_components` separates them.

        Returns
        -------
        mean : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        std : ndarray of the same shape
            Only if `return_std`.
        """
        mean, epistemic, aleatoric = self._variances(X)
        return (mean, np.sqrt(epistemic + aleatoric)) if return_std else mean

    def predict_std_components(self, X):
        """The two parts of the uncertainty of y; more data reduce only the first one.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader

        Returns
        -------
        epistemic : ndarray
            Posterior standard deviation of the mean of y.
        aleatoric : ndarray
            Square root of the posterior mean of the variance of y about its mean.
        """
        _, epistemic, aleatoric = self._variances(X)
        return np.sqrt(epistemic), np.sqrt(aleatoric)

    def out_of_distribution_score(self, X):
        """Ratio of epistemic to aleatoric standard deviation, the largest one of a row's outputs.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        epistemic, aleatoric = self.predict_std_components(X)
        return (epistemic / aleatoric).reshape(len(epistemic), -1).max(axis=1)

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        """Quantiles of the posterior predictive distribution of y, the mixture over all draws.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
        quantiles : float or sequence of float in (0, 1), default=(0.05, 0.5, 0.95)

        Returns
        -------
        ndarray of shape (n_rows, ..., n_quantiles), or without the last axis for a float
        """
        q, w = check_probabilities("quantiles", quantiles), self._draw_weights()

        def reduce(draws, y):
            del y
            f, s = self._parts(draws)
            found = [mixture_quantiles(f, s, p, w) for p in np.atleast_1d(q)]
            return (np.stack(found, axis=-1),)

        found = self._over_blocks(X, reduce, 6 * len(w))[0]
        return found if q.ndim else found[..., 0]

    def predict_interval(self, X, confidence_level=0.9):
        """Central posterior predictive interval of y.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
        confidence_level : float in (0, 1), default=0.9
            Posterior predictive probability that y lies inside.

        Returns
        -------
        lower, upper : ndarray
        """
        found = self.predict_quantiles(X, central("confidence_level", confidence_level))
        return found[..., 0], found[..., 1]

    def predict_log_density(self, X, y):
        """Log posterior predictive density of observed values, log p(y | x), one for each.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
        y : array-like

        Returns
        -------
        ndarray in the shape of y
        """
        w, y = self._draw_weights(), self._numbers(y, len(y))
        if y.shape[1:] != self.output_shape_:
            raise ValueError(
                f"y must have rows of shape {self.output_shape_}, as in the fit, got {y.shape[1:]}."
            )
        log_weights = np.log(np.maximum(w, np.finfo(float).tiny))

        def reduce(draws, own):
            f, s = self._parts(draws)
            terms = -0.5 * ((own - f) / s) ** 2 - np.log(s) - 0.5 * LOG_2PI
            terms += log_weights.reshape(-1, *[1] * (terms.ndim - 1))
            return (np.logaddexp.reduce(terms, axis=0),)

        return self._over_blocks(X, reduce, 6 * len(w), y)[0]

    def sample_y(self, X, n_samples=1, random_state=0):
        """Draws from the posterior predictive distribution of y.

        Each column uses one draw of the posterior for all rows, so that the rows are correctly
        dependent.

        Parameters
        ----------
        X : array-like, tensor, Dataset or DataLoader
        n_samples : int, default=1
            Number of draws for each row.
        random_state : int, RandomState instance or None, default=0

        Returns
        -------
        ndarray of shape (n_rows, ..., n_samples)
        """
        check_count("n_samples", n_samples)
        rng = streams.of_predictions(streams.seed_of(random_state))
        w = self._draw_weights()
        differ = None if self.posterior_.weights is None else w
        chosen = weighting.drawn_at_random(rng, differ, n_samples, len(w))

        def reduce(draws, y):
            del y
            f, s = self._parts(draws, chosen)
            return (np.moveaxis(f + s * rng.standard_normal(f.shape), 0, -1),)

        return self._over_blocks(X, reduce, 6 * n_samples)[0]


def _some_targets(rows, most=10_000):
    """Return the responses of at most `most` random rows of a Dataset, as an array of float64."""
    index = streams.fixed().permutation(rows.n_rows)[:most]
    parts = [rows.batch(index[k : k + 500])[1] for k in range(0, len(index), 500)]
    return torch.cat(parts).double().cpu().numpy()
