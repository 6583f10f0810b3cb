r"""Linear regression under Laplace and Student's t priors whose columns can fit all rows.

Where the coefficients can fit all rows, σ may be close to zero, and there the posterior is so
narrow that no step of a gradient-based sampler suits all of it. But under these priors a
coefficient is normal given a variance v_j of its own [1]_, and given v all but σ is normal. Let m
rows say all that rows of total weight W say, and let (Z, r) be what is left of them once the
coefficients with flat priors are projected away and the means of the others subtracted. With
K = Z diag(v) Zᵀ a sweep of Gibbs sampling is

1. log σ given v, the coefficients integrated out, by random walks:
   log p(r | σ, v) = -(W - m) log σ - ½ log |K + σ²I| - ½ rᵀ (K + σ²I)⁻¹ r;
2. b given σ and v, exactly [2]_: b = b₀ + diag(v) Zᵀ (K + σ²I)⁻¹ (r - Z b₀ - e),
   b₀ ~ N(0, diag(v)), e ~ N(0, σ²I);
3. v_j given b_j: under a Laplace prior of scale s, 1/v_j is inverse Gaussian with mean 1/(s |b_j|)
   and shape 1/s²; under Student's t with ν degrees of freedom, 1/v_j is gamma with shape (ν + 1)/2
   and rate (ν s² + b_j²)/2.

All chains move together.

.. [1] T. Park and G. Casella (2008). The Bayesian lasso. JASA 103, 681-686.
.. [2] A. Bhattacharya, A. Chakraborty and B. K. Mallick (2016). Biometrika 103, 985-991.
"""

import numpy as np
from scipy import linalg

from .._base import streams
from ..kernels.layout import frozen
from ..kernels.many_draws import prior_values
from ..models import Linear
from ..priors import Flat, Laplace, Normal, StudentT
from ..priors.columns import LOC, POWER, SCALE, SHAPE
from ..priors.families import of_family
from . import gibbs
from .closed_form import triangle
from .price import warn_if_long

__all__ = ["ScaleMixtureGibbs", "fits_all_rows", "run_scale_mixture"]

RANK = 1e-10  # of the largest eigenvalue of Z diag(s²) Zᵀ: a smaller one says that rows depend
WALKS = 3  # of log σ in a sweep
SHORTEST, LONGEST = 0.1, 3.0  # of them, their size being random
LEAST = 1e-8  # |b|/s, below which 1/v is drawn as there
WARMUP, THIN, MOST_THIN, AIM = 200, 2, 64, 0.25
SECONDS = 8e-11, 1e-4  # of a multiplication, and of all else in the sweep of a chain


def fits_all_rows(target):
    """Whether other priors are normal or flat, and Z has full row rank."""
    prior = target.prior[: target.n_parameters - target.model.n_extra]
    mixed = of_family(prior, Laplace, StudentT)
    if not isinstance(target.model, Linear) or not mixed.any() or target.n_rows > len(prior):
        return False
    if not (mixed | of_family(prior, Normal, Flat)).all() or (prior[mixed, POWER] != 1.0).any():
        return False
    rows = _Rows(target)
    if not len(rows.r):
        return False
    values = linalg.eigvalsh((rows.Z * rows.scale**2) @ rows.Z.T)
    return values[0] > RANK * values[-1]


class _Rows:
    """Z and r, and the coefficients with flat priors given the others."""

    def __init__(self, target):
        D = target.n_parameters - target.model.n_extra
        R, prior = triangle(target), target.prior[:D]
        R = R[: min(target.n_rows, len(R))]
        self.flat = of_family(prior, Flat)
        self.prior = prior[~self.flat]
        self.loc, self.scale = self.prior[:, LOC], self.prior[:, SCALE]
        self.X, self.y = R[:, :D][:, ~self.flat], R[:, D] - R[:, :D][:, ~self.flat] @ self.loc
        Q, self.F = linalg.qr(R[:, :D][:, self.flat])
        k = int(self.flat.sum())
        self.Q, self.F = Q[:, :k], self.F[:k]
        self.Z, self.r = Q[:, k:].T @ self.X, Q[:, k:].T @ self.y

    def coefficients(self, b, sigma, rng):
        """All coefficients, those with flat priors drawn given the others."""
        found = np.empty((len(b), len(self.flat)))
        found[:, ~self.flat] = self.loc + b
        noise = sigma[:, None] * rng.standard_normal((len(b), len(self.F)))
        left = (self.y - b @ self.X.T) @ self.Q + noise
        found[:, self.flat] = linalg.solve_triangular(self.F, left.T).T
        return found


class ScaleMixtureGibbs:
    """The state of all chains; also the name of the sampler.

    Parameters
    ----------
    target : Target
    n_chains : int
    rng : numpy.random.Generator
    """

    def __init__(self, target, n_chains, rng):
        self.rows, self.rng = _Rows(target), rng
        self.excess = target.total_weight - len(self.rows.y)
        self.prior = frozen(target.prior[-1:])
        size = np.sqrt(np.square(self.rows.r).mean()) or self.rows.scale.min()
        self.log_sigma = np.log(size) + rng.standard_normal(n_chains)
        self.laplace, self.t = (of_family(self.rows.prior, own) for own in (Laplace, StudentT))
        self.v = np.tile(self.rows.scale**2, (n_chains, 1))
        self.b = self.rows.scale * rng.standard_normal(self.v.shape)
        self._variances()

    def sweep(self):
        """Steps 1 to 3."""
        K = (self.rows.Z * self.v[:, None]) @ self.rows.Z.T
        log_p, root = self._marginal(K, self.log_sigma)
        for _ in range(WALKS):
            log_p, root = self._walk(K, log_p, root)
        self._coefficients(root)
        self._variances()

    def _marginal(self, K, log_sigma):
        """log p(r, log σ | v) and the Cholesky factors of K + σ²I."""
        diagonal = np.exp(2.0 * log_sigma) + RANK**2 * np.trace(K, axis1=1, axis2=2)
        root = np.linalg.cholesky(K + diagonal[:, None, None] * np.eye(K.shape[1]))
        white = np.stack([_solved(L, self.rows.r) for L in root])
        log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        log_p = -self.excess * log_sigma - log_det - 0.5 * np.square(white).sum(axis=1)
        prior = np.zeros(len(log_sigma))
        prior_values(self.prior, log_sigma[:, None].copy(), prior)
        return log_p - prior, root

    def _walk(self, K, log_p, root):
        C = len(log_p)
        size = SHORTEST * (LONGEST / SHORTEST) ** self.rng.random(C)
        proposed = self.log_sigma + size * self.rng.standard_normal(C)
        other, other_root = self._marginal(K, proposed)
        moved = np.log(self.rng.random(C)) < other - log_p
        self.log_sigma = np.where(moved, proposed, self.log_sigma)
        return np.where(moved, other, log_p), np.where(moved[:, None, None], other_root, root)

    def _coefficients(self, root):
        Z, r = self.rows.Z, self.rows.r
        start = np.sqrt(self.v) * self.rng.standard_normal(self.v.shape)
        noise = np.exp(self.log_sigma)[:, None] * self.rng.standard_normal((len(start), len(r)))
        misfit = r - start @ Z.T - noise
        solved = [_solved(L, _solved(L, q), True) for L, q in zip(root, misfit, strict=True)]
        self.b = start + self.v * (np.stack(solved) @ Z)

    def _variances(self):
        s = self.rows.scale
        z = np.maximum(np.abs(self.b) / s, LEAST)
        precision = self.rng.wald(1.0 / z[:, self.laplace], 1.0)
        self.v[:, self.laplace] = s[self.laplace] ** 2 / np.maximum(precision, LEAST)
        nu = self.rows.prior[self.t, SHAPE]
        precision = self.rng.gamma(0.5 * (nu + 1.0), 2.0 / (nu + z[:, self.t] ** 2))
        self.v[:, self.t] = s[self.t] ** 2 / np.maximum(precision, LEAST)

    def draws(self):
        """Parameters of the target."""
        coefficients = self.rows.coefficients(self.b, np.exp(self.log_sigma), self.rng)
        return np.column_stack([coefficients, self.log_sigma])


def _solved(L, q, transposed=False):
    options = {"lower": True, "check_finite": False, "trans": "T" if transposed else "N"}
    return linalg.solve_triangular(L, q, **options)


def run_scale_mixture(target, request, watch=None):
    """The `Outcome` of coefficients and log σ, by chains that move together."""
    n_warmup = WARMUP if request.n_warmup is None else request.n_warmup
    state = ScaleMixtureGibbs(target, request.n_chains, streams.of_proposal(request.seed))
    _tell_price(state, n_warmup, request)
    for _ in range(n_warmup):
        state.sweep()
    draws, thin = gibbs.thinned(state.sweep, state.draws, request, (THIN, MOST_THIN, AIM))
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    report = "of Gibbs sampling", request.names, thin, n_warmup, target, request
    return gibbs.outcome(draws, state, *report)


def _tell_price(state, n_warmup, request):
    m, p = state.rows.Z.shape
    per_product, rest = SECONDS
    seconds = request.n_chains * (rest + per_product * (m * m * p + 2 * m**3))
    seconds *= n_warmup + (request.thin or THIN) * request.n_draws
    remedy = "Use fewer columns, a normal prior, or make fewer draws."
    warn_if_long(seconds, f"Gibbs sampling with {m} rows and {p} columns", remedy)
