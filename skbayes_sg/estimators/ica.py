"""Bayesian independent component analysis."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base import weights as weighting
from .._base.callbacks import Progress, with_callbacks
from .._base.columns import weighted_moments
from .._base.filters import without_warnings
from .._base.svd import svd
from .._base.threads import one_blas_thread
from .._base.typing import MatrixLike
from .._base.validation import Parameters
from ..densities.density import density_target
from ..densities.fit import sample_density
from ..densities.ica import LOGISTIC_SD, LogisticSources, log_density
from ..densities.ica_modes import aligned_to_modes, maxima_of_sources
from ..diagnostics import convergence
from ..diagnostics.verdict import disagreement
from ..exceptions import PriorConflictWarning, SamplerConvergenceWarning
from ..posterior import Posterior
from ..priors import Normal
from ..recipe.crossing import judged
from ._chosen import chosen_pieces, origin_of
from ._densities import DensityEstimator, dense_data
from ._fit_warnings import warn_of_unused, warn_untrustworthy
from ._signature import with_parameters_of
from ._store import all_or_nothing, check_draw_store

__all__ = ["BayesianICA"]

RANK = 1e-10  # share of the largest variance below which a direction does not count for the rank
FEWER = "fewer components (n_components)"  # advice where sources can be turned into others
SCORED = 200  # most draws over which predictive densities are averaged
# Standard errors by which the excess kurtosis of a source must be below zero for a warning.
LIGHT = 3.0


class BayesianICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityEstimator):
    r"""Bayesian independent component analysis, with logistic sources.

    .. math::

        p(x_i \mid W) = |\det W| \prod_j p(w_j \cdot z_i), \qquad
        p(y) = \frac{1}{4 \cosh^2(y/2)}, \qquad W_{jk} \sim \mathrm{N}(0, 1/\lambda),

    for whitened rows :math:`z_i` [1]_. Names follow `sklearn.decomposition.FastICA`. The data
    cannot tell the order and the signs of the sources: all draws have the order and the signs of
    the mode that is nearest to them. The sources of the model have heavier tails than normal
    ones; the model does not separate sources with lighter tails, such as uniform ones.

    Parameters
    ----------
    n_components : int, optional
        Number of components, at most the rank of X. None is the rank.
    prior_precision : float, default=1.0
        Prior precision :math:`\lambda` of each entry of W, which multiplies whitened rows.
    sampler : str or object, default="auto"
        "importance" (independent draws around the modes, corrected by importance weights), "hmc" on
        all rows, "mala", "sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht", or an object of
        `skbayes_sg.dynamics`. "auto" is "importance" if nothing but numbers of chains and draws is
        given and the weights can be trusted, and otherwise "hmc"; or "baoab" if a batch size, a
        subsampling scheme or a gradient other than "full" is given. Posterior modes are looked for
        from the solution of FastICA and from random rotations, in 8 to 20 descents, and chains
        begin at each as its Laplace evidence asks for. If a sampler and a step size are both given,
        there is no search, and chains begin near the solution of FastICA.
    gradient : str or Gradient, default="auto"
        "minibatch", "saga", "svrg", "control_variate" or "full". "auto" is "minibatch"; or "svrg"
        if the step size is "auto" as well, and chains are then predicted to need less time.
    subsampling : str or Subsampling, default="auto"
        "uniform", "uniform_without_replacement" or "blocks". "auto" is "uniform".
    batch_size : "auto", int or float, default="auto"
        Number of rows in each step of a stochastic gradient, or their share of all rows; "auto" is
        100, or a tenth of at most 100 rows if a gradient or a scheme is given; or all rows if the
        step size is "auto" as well, and chains then need less time.
    step_size : "auto", float or Schedule, default="auto"
        The step size h in the coordinates of the chain. For stochastic gradients "auto" follows
        from the measured noise of the gradient.
    preconditioner : {"auto", "hessian", "diagonal", None}, default="auto"
        The coordinates in which chains move: scaled by the Hessian at the mode ("hessian"), by its
        diagonal ("diagonal"), or those of the parameters themselves (None). "auto" is "hessian" up
        to 2000 parameters and "diagonal" for more, but None if a sampler and a step size are both
        given.
    n_draws : int, default=250
        Number of draws that each chain keeps.
    n_chains : int, default=4
        Number of independent chains.
    n_warmup : "auto" or int, default="auto"
        Number of steps (for "hmc", trajectories) before the first draw.
    thin : "auto" or int, default="auto"
        Number of steps (for "hmc", trajectories) from one draw to the next.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.
    n_jobs : int or None, default=None
        Number of threads for chains and for passes over the rows.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the unmixing matrix, which turns centred rows into sources.
    components_std_ : ndarray of shape (n_components, n_features)
        Posterior standard deviation of the unmixing matrix.
    mixing_ : ndarray of shape (n_features, n_components)
        The matrix that turns sources into centred rows: the inverse of `components_` on the span of
        the whitened rows.
    mean_ : ndarray of shape (n_features,)
        Mean of each column.
    whitening_ : ndarray of shape (n_components, n_features)
        The matrix that whitens the centred rows.
    posterior_ : Posterior
        All draws of the unmixing matrix, in the variable "components".
    sampler_, gradient_, subsampling_, preconditioner_ : str
        The choices made for "auto", or those given.
    batch_size_, step_size_, thin_, n_warmup_, n_steps_ : int or float
        The numbers chosen for "auto", or those given; `n_steps_` is the number of steps, or
        trajectories, of each chain. Independent draws take no steps: `step_size_` is NaN.
    diagnostics_, seconds_ : dict of str to float
        Measurements of the draws, among them the smallest effective sample size, the largest R-hat
        and, for "importance", Pareto k of the weights ("pareto_k", reliable below 0.7); where
        descents have ended at several places, the number of modes that matter ("n_modes"), and
        their shares of the draws if it is not one ("mode_share_0", ...);
        and the wall time of each part of the fit in seconds.
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
        By `fit`, for data that cannot be used, and for more components than the rank of X.
    SamplerDivergedError
        By `fit`, if a chain leaves the region in which the posterior can have its mass.

    Warns
    -----
    SamplerConvergenceWarning, StepSizeWarning, LongRunWarning
        If the draws cannot be trusted, or if the run will take long.
    MultimodalPosteriorWarning
        If chains do not cross between modes, so that the draws do not tell how much each weighs.
    UnusedParameterWarning
        If a warm-up or thinning is given and the draws are independent.
    PriorConflictWarning
        If sources have lighter tails than a normal distribution: the model cannot separate them.

    See Also
    --------
    sklearn.decomposition.FastICA : A single estimate of the unmixing matrix.
    skbayes_sg.metrics.amari_distance : How far an unmixing matrix is from a known one.

    References
    ----------
    .. [1] K. A. Dubey, S. J. Reddi, S. A. Williamson, B. Poczos, A. J. Smola and E. P. Xing (2016).
       Variance reduction in stochastic gradient Langevin dynamics. NeurIPS, section 5.3.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianICA
    >>> from skbayes_sg.metrics import amari_distance
    >>> rng = np.random.default_rng(0)
    >>> mixing = np.array([[1.0, 0.5], [0.3, 1.0]])
    >>> X = rng.laplace(size=(500, 2)) @ mixing.T
    >>> ica = BayesianICA(n_draws=100, random_state=0).fit(X)
    >>> amari_distance(ica.components_, mixing) < 0.1
    True
    >>> np.allclose(ica.inverse_transform(ica.transform(X)), X)
    True
    """

    @with_parameters_of(DensityEstimator)
    def __init__(
        self,
        n_components: int | None = None,
        *,
        prior_precision: float = 1.0,
        n_draws: int = 250,
        **shared: Any,
    ) -> None:
        super().__init__(n_draws=n_draws, **shared)
        self.n_components = n_components
        self.prior_precision = prior_precision

    @property
    def _n_features_out(self):
        return len(self.components_)

    @with_callbacks
    def fit(self, X: MatrixLike, y: Any = None) -> "BayesianICA":
        """Sample the posterior of the unmixing matrix.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : None
            Ignored; it is there for pipelines.

        Returns
        -------
        self : BayesianICA
            The estimator, with the attributes of the class docstring.
        """
        with all_or_nothing(self):
            X = dense_data(self, X)
            scale = float(Parameters(self).positive("prior_precision", ())) ** -0.5
            centre, whitening, dewhitening, left_out = self._whitening(X)
            d = len(whitening)
            names = [f"whitened[{j}, {k}]" for j in range(d) for k in range(d)]
            request = self._request(len(X), names)
            check_draw_store(request.n_chains, request.n_draws, d * (d + X.shape[1]), 12)
            Z = np.ascontiguousarray((X - centre) @ whitening.T)
            start = _start(Z, request.seed)
            if request.subsampling is not None and request.subsampling.needs_shuffled_rows:
                Z = Z[streams.child(streams.of_recipe(request.seed)).permutation(len(Z))]
            table = Normal(scale=scale)._table((d * d,))
            model, weight = LogisticSources(d * d), np.ones(len(Z))
            target = density_target(model, Z, weight, table, n_jobs=request.n_jobs)
            progress = Progress(self, lambda draws, weights: {}, X=X, y=y)
            # Chains that change order or signs have converged: aligned draws are judged.
            request = replace(request, comparable=False)
            with one_blas_thread:
                outcome, modes = sample_density(
                    target, start[None], request, progress,
                    search=maxima_of_sources, independent=True,
                )  # fmt: skip
            W = aligned_to_modes(outcome.draws.reshape(-1, d, d), modes)
            outcome = replace(outcome, draws=W.reshape(outcome.draws.shape))
            outcome = judged(outcome, modes, request, FEWER)
            fitted = self._attributes(W, outcome, centre, whitening, dewhitening)
            self.__dict__.update(fitted)
            self._left_out = left_out
            warn_of_unused(self, outcome.chosen["sampler"])
            warn_untrustworthy(fitted["posterior_"])
            _warn_of_light_tails((X - centre) @ fitted["components_"].T)
            progress.finish(fitted)
        return self

    def _whitening(self, X):
        """The mean of the columns, the whitening matrix, what undoes it, and the `_LeftOut`.

        `ValueError` for more components than the rank of the centred rows.
        """
        _, centre, variance = weighted_moments(X, np.ones(len(X)))
        p, spread = Parameters(self), np.sqrt(variance)
        asked = None if self.n_components is None else p.integer("n_components", 1)
        spread = np.where(spread > 0.0, spread, 1.0)  # so that units do not decide the rank
        _, sizes, directions = svd((X - centre) / spread, full_matrices=False)
        rank = int((sizes > np.sqrt(RANK) * max(sizes.max(), np.finfo(float).tiny)).sum())
        if rank == 0:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 different rows, got n_samples={len(X)}."
            )
        if asked is not None and asked > rank:
            raise ValueError(
                f"n_components={asked} is more than the rank of the centred rows, {rank} (of "
                f"n_samples = {len(X)} and n_features = {X.shape[1]}): whitening cannot make more "
                "components. Use n_components=None, which takes the rank."
            )
        d, sizes = rank if asked is None else asked, sizes / np.sqrt(len(X))
        signs = np.sign(directions[np.arange(d), np.abs(directions[:d]).argmax(axis=1)])
        scales = signs * sizes[:d]
        back = (directions[:d].T * scales) * spread[:, None]
        left_out = _LeftOut.of(sizes[:rank], directions[:rank], spread, d)
        return centre, directions[:d] / scales[:, None] / spread, back, left_out

    def _attributes(self, W, outcome, centre, whitening, dewhitening):
        """Fitted attributes, by name, from aligned draws W (n, d, d) for whitened rows."""
        shape, d = outcome.draws.shape[:2], len(whitening)
        components = (W @ whitening).reshape(*shape, -1)
        outcome = replace(
            outcome, diagnostics=outcome.diagnostics | _judged(components, outcome.evidence)
        )
        p = whitening.shape[1]
        columns = getattr(self, "feature_names_in_", [f"x{k}" for k in range(p)])
        labels = [f"components[{j}, {name}]" for j in range(d) for name in columns]
        pieces = chosen_pieces(outcome, self._samplers)
        known = {"weights": outcome.weights, "evidence": outcome.evidence}
        posterior = Posterior(
            components, {"components": (d, p)}, labels, origin_of(pieces), **known
        )
        mean = posterior.mean("components")
        self._whitened = W.reshape(*shape, d, d)
        return pieces | {
            "posterior_": posterior,
            "components_": mean,
            "components_std_": posterior.std("components"),
            "mixing_": dewhitening @ np.linalg.inv(mean @ dewhitening),
            "mean_": centre,
            "whitening_": whitening,
        }

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Compute the sources of rows, with the posterior mean of the unmixing matrix.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        return (dense_data(self, X, reset=False) - self.mean_) @ self.components_.T

    def inverse_transform(self, X: MatrixLike) -> np.ndarray:
        """Compute the rows that belong to sources, with the posterior mean of the unmixing matrix.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)
            Sources, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        return np.asarray(X, dtype=np.float64) @ self.mixing_.T + self.mean_

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        r"""Log posterior predictive density of each row.

        With fewer components than the rank of the rows, what components leave out of standardised
        columns has a normal density, with the same variance in all directions, as in
        `sklearn.decomposition.PCA.score_samples`: densities of models with different numbers of
        components can be compared. For rows of less than full rank it is the density in their
        linear subspace, and what new rows have outside of it is ignored.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Densities are averaged over at most 200 draws, evenly spaced.
        """
        check_is_fitted(self)
        d = len(self.whitening_)
        X = dense_data(self, X, reset=False) - self.mean_
        Z = X @ self.whitening_.T
        flat = self._whitened.reshape(-1, d, d)
        chosen = np.unique(np.linspace(0, len(flat) - 1, min(len(flat), SCORED)).astype(int))
        weights = self.posterior_.pooled_weights
        if weights is not None:
            weights = weights[chosen]
        whitened = weighting.log_mean_exp(log_density(Z, flat[chosen]), weights, axis=0)
        return whitened + self._left_out.log_density(X)

    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Mean log posterior predictive density of a row: see `score_samples`.

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


@dataclass(frozen=True)
class _LeftOut:
    """The normal law of what d components leave out of standardised rows, and the Jacobian.

    With standardised columns u = x/spread and r principal directions v_j with standard deviations
    s_j, the density of a row is that of its d whitened coordinates z_j = v_j·u/s_j, over Π_j s_j,
    times that of the other r - d coordinates v_j·u, N(0, variance), times the Jacobian of u.
    """

    others: np.ndarray  # v_j/spread of the other directions, (r - d, n_features)
    variance: float  # mean s_j² of the other directions
    log_jacobian: float

    @classmethod
    def of(cls, sizes, directions, spread, d):
        """The law for d of r directions (r, n_features), which have the standard deviations s_j."""
        # Sorted rows and pivots keep the digits if the columns have very different units.
        basis = (directions * spread)[:, np.argsort(-spread)].T
        volume = np.log(np.abs(np.diag(linalg.qr(basis, mode="r", pivoting=True)[0]))).sum()
        variance = float(np.square(sizes[d:]).mean()) if len(sizes) > d else 1.0
        jacobian = -volume - np.log(sizes[:d]).sum()
        return cls(directions[d:] / spread, variance, float(jacobian))

    def log_density(self, X):
        """The log density of centred rows beyond that of their whitened coordinates."""
        squares = np.square(X @ self.others.T).sum(axis=1) / self.variance
        squares += len(self.others) * np.log(2.0 * np.pi * self.variance)
        return self.log_jacobian - 0.5 * squares


def _judged(components, evidence):
    """A dict of the smallest effective sample size and the largest R-hat of aligned draws.

    `SamplerConvergenceWarning` if chains disagree. Independent draws are no chains: R-hat of few of
    them differs from 1 by chance. Where draws are repeated, because their weights were not equal,
    fewer are effective than their autocorrelations say.
    """
    ess, slow, rhat, apart = convergence.worst_of_chains(components)
    ess *= float(np.min(evidence.get("resampled_share", 1.0)))
    worst, total = (ess, slow, rhat, apart), components.shape[0] * components.shape[1]
    told = disagreement(worst, total, of=" of the unmixing matrix, with sources aligned")
    if told and "independent" not in evidence:
        warnings.warn(
            f"{told}Increase n_draws, thin or n_warmup. Sources that are nearly normal cannot be "
            "told apart.",
            SamplerConvergenceWarning,
            stacklevel=4,
        )
    return {"min_ess": ess, "max_rhat": rhat}


def _warn_of_light_tails(sources):
    """A `PriorConflictWarning` for sources whose excess kurtosis is negative, beyond chance."""
    z = sources - sources.mean(axis=0)
    kurtosis = np.mean(z**4, axis=0) / np.mean(z**2, axis=0) ** 2 - 3.0
    light = np.flatnonzero(kurtosis < -LIGHT * np.sqrt(24.0 / len(z)))
    if len(light) and len(kurtosis) > 1:
        told = ", ".join(f"{j} (excess kurtosis {kurtosis[j]:.2f})" for j in light)
        warnings.warn(
            f"The tails of some sources are lighter than normal: {told}. The model gives every "
            "source the heavier tails of a logistic distribution, which separates signals such as "
            "speech and EEG but not uniform, binary or periodic ones: these sources are probably "
            "still mixed, and the posterior does not know it. Use sklearn.decomposition.FastICA.",
            PriorConflictWarning,
            stacklevel=4,
        )


def _start(Z, seed):
    """The start of all chains: FastICA's unmixing matrix of whitened rows, flattened.

    It is scaled so that sources have the standard deviation of logistic ones.
    """
    if Z.shape[1] == 1:
        return np.full(1, LOGISTIC_SD)
    with without_warnings(ConvergenceWarning):
        found = FastICA(whiten=False, random_state=seed, max_iter=500).fit(Z)
    return LOGISTIC_SD * found.components_.ravel()
