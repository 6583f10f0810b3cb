"""Bayesian mixtures of Gaussians."""

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base import weights as weighting
from .._base.callbacks import Progress, with_callbacks
from .._base.threads import one_blas_thread
from .._base.typing import MatrixLike, RandomState
from .._base.validation import Parameters, check_count, is_real
from ..densities.mixture import DIAG, FULL, KINDS, SPHERICAL, TIED, ComponentsPrior
from ..densities.mixture_chains import log_densities
from ..densities.mixture_fit import classified, sample_mixture
from ..dynamics import DYNAMICS, Dynamics, Metropolis
from ..posterior import Posterior
from ._chosen import chosen_pieces, origin_of
from ._densities import DensityEstimator, dense_data
from ._signature import with_parameters_of
from ._store import all_or_nothing, check_draw_store

__all__ = ["BayesianGaussianMixture"]

# Predictions are averaged over so many draws, and where fewer rows than this were fitted, over as
# many times more, because their densities vary more from draw to draw.
PREDICTING = 400
BLOCK = 2000  # number of rows in a block of predictions
# Fitted attributes of the sampler "gibbs", which takes no steps.
NO_STEPS = {"gradient_": "none", "subsampling_": "all_rows", "preconditioner_": "none"}


class BayesianGaussianMixture(DensityMixin, DensityEstimator):
    r"""Bayesian mixture of Gaussians: draws from the posterior, not one fit.

    .. math::

        x_i \sim \sum_k w_k\, \mathrm{N}(\mu_k, \Sigma_k), \qquad
        w \sim \mathrm{Dirichlet}(\alpha, \ldots, \alpha), \quad
        \mu_{kj} \sim \mathrm{N}(\bar x_j, (m s_j)^2), \quad
        \Sigma_k^{-1} \sim \mathrm{Wishart}(\nu, \cdot),

    with the mean :math:`\bar x_j` and the standard deviation :math:`s_j` of each column; the scale
    of the Wishart prior is such that the mean of :math:`\Sigma_k` is that of `covariance_prior`.
    Single variances ("diag" and "spherical") have the distribution of a diagonal element of such a
    :math:`\Sigma_k`: :math:`1/\sigma^2 \sim \mathrm{Gamma}((\nu - d + 1)/2, (\nu - d - 1) v/2)`
    with the rate last, where v is the prior mean of the column, or for "spherical" of all columns
    on average. Names follow `sklearn.mixture.GaussianMixture`.

    The labels of the components are arbitrary: the posterior is the same if components swap their
    labels. Draws are therefore relabelled before they are summarised, and whether chains agree is
    judged by quantities that do not depend on labels.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    covariance_type : {"full", "diag", "spherical", "tied"}, default="full"
        "full": a covariance matrix for each component; "diag": a diagonal one for each component;
        "spherical": a single variance for each component; "tied": one covariance matrix for all
        components. For "spherical" the columns should have the same unit.
    weight_concentration_prior : float, default=1.0
        Parameter :math:`\alpha` of the prior of the weights. Values below 1 empty components that
        are not needed.
    mean_scale : float, default=2.0
        The factor m: prior standard deviation of the components' means, in standard deviations of
        the columns.
    degrees_of_freedom_prior : float, optional
        Degrees of freedom :math:`\nu` of the Wishart prior, more than d + 1 for d columns. The
        default d + 2 is the whole number that gives the widest prior.
    covariance_prior : float or array-like of shape (n_features,), optional
        Prior mean of the variance of each column within a component. The default is
        :math:`s_j^2 / K^{2/d}`, for components that divide the volume of the data among them [2]_.
    sampler : str or object, default="auto"
        "gibbs", "hmc", "mala", "sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht", or an
        object of `skbayes_sg.dynamics`. "gibbs" alternates between draws of the component of each
        row and draws of weights, means and covariances. The other samplers move in unconstrained
        coordinates of weights, means and covariances. "auto" is "gibbs", unless a gradient, a batch
        size or a step size is given.
    gradient : str or Gradient, default="auto"
        "minibatch", "svrg", "saga", "control_variate" or "full"; "auto" is "minibatch", or "svrg"
        if the step size is "auto" as well, and chains are then predicted to need less time. Not for
        "gibbs".
    subsampling : str or Subsampling, default="auto"
        "uniform", "uniform_without_replacement" or "blocks". Not for "gibbs".
    batch_size : "auto", int or float, default="auto"
        Number of rows in each step of a stochastic gradient, or their share of all rows; "auto" is
        100, or a tenth of at most 100 rows if a gradient or a scheme is given; or all rows if the
        step size is "auto" as well, and chains then need less time. Not for "gibbs".
    step_size : "auto", float or Schedule, default="auto"
        The step size h in the coordinates of the chain. For stochastic gradients "auto" follows
        from the measured noise of the gradient. Not for "gibbs".
    preconditioner : {"auto", "hessian", "diagonal", None}, default="auto"
        The coordinates in which chains move: scaled by the Hessian ("hessian"), by its diagonal
        ("diagonal"), or unscaled (None). "auto" is None if a sampler and a step size are both
        given. Not for "gibbs".
    n_draws : int, default=1000
        Number of draws that each chain keeps.
    n_chains : int, default=4
        Number of independent chains. Each chain begins where the best of six short runs has ended;
        these runs begin at centres that are far apart. If the short runs have found several modes
        of relevant weight, each chain begins at one of these modes.
    n_warmup : "auto" or int, default="auto"
        Number of steps, for "gibbs" of sweeps, before the first draw. For "gibbs" "auto" is 500
        sweeps.
    thin : "auto" or int, default="auto"
        Number of steps, for "gibbs" of sweeps, from one draw to the next. For "gibbs" "auto" begins
        at one sweep and doubles the number while the effective sample size is too small.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.
    n_jobs : int or None, default=None
        Number of threads for chains.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Posterior means of the weights, the largest first.
    means_ : ndarray of shape (n_components, n_features)
        Posterior means of the components' means.
    covariances_ : ndarray
        Posterior means of the covariances, in the shape that `covariance_type` has in scikit-learn:
        (n_components, n_features, n_features), (n_components, n_features), (n_components,) or
        (n_features, n_features).
    weights_std_, means_std_, covariances_std_ : ndarray
        Posterior standard deviations of weights, means and covariances.
    posterior_ : Posterior
        All draws, relabelled, in the variables "weights", "means", "covariances" and
        "log_likelihood".
    sampler_, gradient_, subsampling_, preconditioner_ : str
        The choices made for "auto", or those given. For "gibbs" `gradient_` and `preconditioner_`
        are "none", and `subsampling_` is "all_rows".
    batch_size_, step_size_, thin_, n_warmup_, n_steps_ : int or float
        The numbers chosen for "auto", or those given; `n_steps_` is the number of steps or sweeps
        of each chain, and `step_size_` is NaN for "gibbs".
    diagnostics_, seconds_ : dict of str to float
        ``min_ess`` and ``max_rhat`` of the log-likelihood and of the log densities of some rows,
        which do not depend on labels. If there are several modes that differ by more than labels,
        also their number ``n_modes``, and the share of each in the draws, ``mode_share_0``,
        ``mode_share_1`` and so on. `seconds_` is the wall time of each part of the fit.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted. It is both a `ValueError` and a
        `TypeError`.
    ValueError
        By `fit`, for data that cannot be used.
    SamplerDivergedError
        By `fit`, if a chain leaves the region in which the posterior can have its mass.

    Warns
    -----
    MultimodalPosteriorWarning
        Chains do not cross between modes, so that the draws do not tell how much each mode weighs.
    SamplerConvergenceWarning, StepSizeWarning
        The effective sample size is too small or chains disagree, or the step of a stochastic
        gradient is too large.
    LongRunWarning
        The run is predicted to take more than ten seconds.

    See Also
    --------
    sklearn.mixture.GaussianMixture : A single estimate, by the EM algorithm.
    sklearn.mixture.BayesianGaussianMixture : A variational approximation.

    Notes
    -----
    Means of relabelled draws describe components that are well separated. Where components overlap
    so much that rows do not tell them from each other, look at quantities that do not depend on
    labels: `score_samples`, `sample`, and probabilities that two rows belong to the same component.

    References
    ----------
    .. [1] J. Diebolt and C. P. Robert (1994). Estimation of finite mixture distributions through
       Bayesian sampling. Journal of the Royal Statistical Society B 56, 363-375.
    .. [2] C. Fraley and A. E. Raftery (2007). Bayesian regularization for normal mixture estimation
       and model-based clustering. Journal of Classification 24, 155-181.
    .. [3] M. Stephens (2000). Dealing with label switching in mixture models. Journal of the Royal
       Statistical Society B 62, 795-809.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 2))
    >>> X[:50] += 5.0
    >>> model = BayesianGaussianMixture(2, n_draws=200, random_state=0).fit(X)
    >>> model.weights_.round(1), abs(model.means_).round(0)
    (array([0.7, 0.3]), array([[0., 0.],
           [5., 5.]]))
    >>> model.predict([[0.0, 0.0], [6.0, 5.0]])
    array([0, 1])
    >>> lower, upper = model.posterior_.interval(0.9, name="weights")
    >>> bool(lower[0] < 2 / 3 < upper[0])
    True
    """

    _other_samplers: ClassVar[tuple] = ("gibbs",)
    _samplers: ClassVar[dict] = DYNAMICS
    _kinds_of_samplers: ClassVar[tuple] = (Dynamics, Metropolis)

    @with_parameters_of(DensityEstimator)
    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        weight_concentration_prior: float = 1.0,
        mean_scale: float = 2.0,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_scale = mean_scale
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior

    # -- fitting ------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: MatrixLike, y: Any = None) -> "BayesianGaussianMixture":
        """Sample the posterior.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : None
            Ignored; it is there for pipelines.

        Returns
        -------
        self : BayesianGaussianMixture
            The estimator, with the attributes of the class docstring.
        """
        with all_or_nothing(self):
            X = dense_data(self, X)
            mixture, centre, unit = self._prior(X)
            request = self._request(len(X), mixture.labels())
            gibbs = self._uses_gibbs(request)
            size = mixture.K * (1 + mixture.d + mixture.d**2)
            check_draw_store(request.n_chains, request.n_draws, size)
            rows = np.ascontiguousarray((X - centre) / unit)
            self._units = centre, unit
            progress = Progress(self, lambda draws, weights: {}, X=X, y=y)
            with one_blas_thread:
                options = {"gibbs": gibbs, "units": self._units, "watch": progress}
                result = sample_mixture(rows, mixture, request, **options)
            fitted = self._attributes(result, mixture, request, len(X))
            self.__dict__.update(fitted)
            progress.finish(fitted)
        return self

    def _uses_gibbs(self, request):
        """Whether the sampler is "gibbs"; an error for parameters that do not go with it."""
        if isinstance(self.sampler, str) and self.sampler == "gibbs":
            given = {"gradient": request.gradient, "subsampling": request.subsampling}
            given |= {"batch_size": request.batch_size, "step_size": request.step_size}
            for name, value in given.items():
                if value is not None:
                    Parameters(self).fail(name, "'auto' with sampler='gibbs', which takes no steps")
            return True
        return request.is_open

    def _prior(self, X):
        """The `ComponentsPrior` in units of the columns, and centre and unit of each column.

        The unit is the root of the prior mean of the variance within a component.
        """
        p, d = Parameters(self), X.shape[1]
        K = p.integer("n_components", 1)
        kind = KINDS.index(p.choice("covariance_type", KINDS))
        alpha = float(p.positive("weight_concentration_prior", ()))
        scale = float(p.positive("mean_scale", ()))
        df = self.degrees_of_freedom_prior
        if df is None:
            df = d + 2.0
        elif not (is_real(df) and d + 1.0 < df < np.inf):
            p.fail("degrees_of_freedom_prior", f"None or a number above n_features + 1 = {d + 1}")
        centre, spread = X.mean(axis=0), X.std(axis=0)
        varies = spread > 1e-9 * np.abs(X).max(axis=0)
        spread = np.where(varies, spread, 1.0)
        if self.covariance_prior is None and not varies.all():
            self._warn_of_constants(np.flatnonzero(~varies))
        unit = spread * K ** (-1.0 / d)
        if self.covariance_prior is not None:
            unit = np.sqrt(np.broadcast_to(p.positive("covariance_prior", (d,)), (d,)))
        elif kind == SPHERICAL:
            unit = np.full(d, np.sqrt((unit**2).mean()))
        if kind == SPHERICAL and np.ptp(unit) > 0.0:
            p.fail("covariance_prior", "a single number with covariance_type='spherical'")
        return ComponentsPrior(kind, K, d, alpha, scale * spread / unit, float(df)), centre, unit

    def _warn_of_constants(self, columns):
        """`UserWarning` for constant columns, given their positions."""
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        warnings.warn(
            f"{type(self).__name__}: the columns {[str(names[j]) for j in columns]} of X are "
            "constant. Nothing says how large their variances are but the prior, whose unit is 1 "
            "for them: leave them out, or give covariance_prior.",
            UserWarning,
            stacklevel=4,
        )

    def _attributes(self, result, mixture, request, n_rows):
        """Fitted attributes, by name, from draws in units of the columns."""
        centre, unit = self._units
        shape = result.w.shape[:2]
        flat = result.A.reshape(-1, *result.A.shape[2:])
        covariances = mixture.covariances(flat) * unit[:, None] * unit
        covariances = _in_shape(covariances, mixture.kind).reshape(*shape, -1)
        means = centre + unit * result.mu
        log_likelihood = result.log_likelihood - n_rows * np.log(unit).sum()
        if result.outcome is None:  # Gibbs sweeps leave the constant (2π)^(-nd/2) out
            log_likelihood = log_likelihood - 0.5 * n_rows * mixture.d * np.log(2.0 * np.pi)
        parts = [result.w, means.reshape(*shape, -1), covariances, log_likelihood[..., None]]
        shapes = self._shapes(mixture)
        labels = [label for name, own in shapes.items() for label in _labels(name, own)]
        pieces = self._pieces(result, request, n_rows)
        known = {"weights": result.weights, "evidence": self._evidence(result)}
        posterior = Posterior(np.concatenate(parts, axis=2), shapes, labels, **known)
        posterior.origin, n = origin_of(pieces), result.values.shape[-1]
        said = ["log_likelihood", *(f"log density of row {k}" for k in range(n - 1))]
        posterior.judged = result.values, said
        fitted = {"posterior_": posterior, **pieces}
        for name in ("weights", "means", "covariances"):
            fitted[f"{name}_"] = posterior.mean(name)
            fitted[f"{name}_std_"] = posterior.std(name)
        self._draws, self._n_rows = (result.w, result.mu, result.A), n_rows
        return fitted

    def _evidence(self, result):
        """The measured inflation of variances, for `Posterior.evidence`; empty if there is none."""
        if result.outcome is None or "inflation" not in result.outcome.evidence:
            return {}
        return {"inflation": result.outcome.evidence["inflation"]}

    def _shapes(self, mixture):
        """The variables of the posterior, with their shapes."""
        K, d = mixture.K, mixture.d
        covariance = {FULL: (K, d, d), DIAG: (K, d), SPHERICAL: (K,), TIED: (d, d)}[mixture.kind]
        return {"weights": (K,), "means": (K, d), "covariances": covariance, "log_likelihood": ()}

    def _pieces(self, result, request, n_rows):
        """Fitted attributes that say what every "auto" became, and what was measured."""
        measured = {name: float(value) for name, value in result.diagnostics.items()}
        if result.outcome is not None:
            return chosen_pieces(result.outcome, self._samplers) | {"diagnostics_": measured}
        thin, n_warmup = result.chosen["thin"], result.chosen["n_warmup"]
        return NO_STEPS | {
            "sampler_": "gibbs",
            "batch_size_": n_rows,
            "step_size_": np.nan,
            "thin_": thin,
            "n_warmup_": n_warmup,
            "n_steps_": n_warmup + thin * result.w.shape[1],
            "diagnostics_": measured,
            "seconds_": dict(request.seconds),
        }

    # -- predictions --------------------------------------------------------------------------

    def _chosen_draws(self):
        """[weights, means, triangular factors] of components in some draws, and the draws' weights.

        They are evenly spaced.
        """
        check_is_fitted(self)
        flat = [part.reshape(-1, *part.shape[2:]) for part in self._draws]
        n_rows = getattr(self, "_n_rows", PREDICTING)  # older files do not have it
        n, most = len(flat[0]), PREDICTING * max(1, PREDICTING // n_rows)
        chosen = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))
        weights = self.posterior_.pooled_weights
        if weights is not None:
            weights = weights[chosen]
        return [part[chosen] for part in flat], weights

    def _in_blocks(self, X, of_block):
        """``of_block(rows)`` of blocks of the rows in units of the columns, joined."""
        X = dense_data(self, X, reset=False)
        centre, unit = self._units
        rows = (X - centre) / unit
        parts = [of_block(rows[first : first + BLOCK]) for first in range(0, len(rows), BLOCK)]
        return np.concatenate(parts)

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Posterior probability that each row belongs to each component.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            Probabilities are averaged over 400 draws, evenly spaced, or over up to 400 ⌊400/N⌋ of
            them where N < 200 rows were fitted.
        """
        draws, weights = self._chosen_draws()
        return self._in_blocks(
            X, lambda rows: weighting.mean(classified(rows, *draws), weights, axis=0)
        )

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: MatrixLike, y: Any = None) -> np.ndarray:
        """Sample the posterior, and return the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.fit(X).predict(X)

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Log posterior predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Logarithms of densities that are averaged over as many draws as in `predict_proba`.
            Where a dozen rows were fitted, and 4000 draws kept, the logarithm is off by up to 0.3
            one standard deviation beyond the outermost row, and by several units two beyond it,
            where few of the draws make up the average; more draws make it more accurate.
        """
        draws, weights = self._chosen_draws()
        shift = np.log(self._units[1]).sum()
        return (
            self._in_blocks(
                X,
                lambda rows: weighting.log_mean_exp(log_densities(rows, *draws), weights, axis=0),
            )
            - shift
        )

    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Mean log posterior predictive density of a row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : None
            Ignored.

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def sample(
        self, n_samples: int = 1, random_state: RandomState = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the posterior predictive distribution, each with its own posterior draw.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0
            Seed.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            The component of each row.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        rng = streams.of_predictions(streams.seed_of(random_state))
        w, mu, A = (part.reshape(-1, *part.shape[2:]) for part in self._draws)
        s = weighting.drawn_at_random(rng, self.posterior_.pooled_weights, n_samples, len(w))
        places = w[s].cumsum(axis=1) < rng.random((n_samples, 1)) * w[s].sum(axis=1, keepdims=True)
        k = np.minimum(places.sum(axis=1), w.shape[1] - 1)
        noise = rng.standard_normal((n_samples, mu.shape[2], 1))
        # The covariance matrix of a component is Σ = A⁻ᵀ A⁻¹.
        x = mu[s, k] + np.linalg.solve(np.swapaxes(A[s, k], 1, 2), noise)[:, :, 0]
        centre, unit = self._units
        return centre + unit * x, k


def _in_shape(covariances, kind):
    """Covariances (S, K, d, d) in the shape that their type has in scikit-learn, (S, ...)."""
    if kind == TIED:
        return covariances[:, 0]
    if kind == FULL:
        return covariances
    diagonal = np.einsum("skjj->skj", covariances)
    return diagonal[:, :, 0] if kind == SPHERICAL else diagonal


def _labels(name, shape):
    """Labels of the entries of a variable, such as ``means[0, 1]``."""
    if not shape:
        return [name]
    return [f"{name}[{', '.join(map(str, place))}]" for place in np.ndindex(*shape)]
