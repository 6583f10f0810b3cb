r"""Linear and robust regression with few rows for so many columns, by Gibbs sampling.

Where the coefficients can fit all rows, or all but a few that may be outliers, σ may be close to
zero, and there the posterior is so narrow that no step of a gradient-based sampler suits all of it.
But under Laplace and Student's t priors a coefficient is normal given a variance v_j of its own
[1]_, Student's t noise is normal given a precision ω_i/σ² of each row, and given these all but σ is
normal. Let m rows say all that rows of total weight W say: y = Xb + Ff + noise, the coefficients f
with flat priors, and the means of the others subtracted. For any scale c of f, which cancels,
let C = X diag(v) Xᵀ + c FFᵀ + σ² diag(1/ω), where ω is one in linear regression, and
P = C⁻¹ - C⁻¹F (Fᵀ C⁻¹ F)⁻¹ Fᵀ C⁻¹. A sweep is

1. log σ given v and ω, the coefficients integrated out, by random walks:
   log p(y | σ, v, ω) = -(W - m) log σ - ½ log |C| - ½ log |Fᵀ C⁻¹ F| - ½ yᵀ P y;
2. b given σ, v and ω, exactly [2]_: b = b₀ + diag(v) Xᵀ P (y - X b₀ - e),
   b₀ ~ N(0, diag(v)), e ~ N(0, σ² diag(1/ω)); and f given b;
3. v_j given b_j: under a Laplace prior of scale s, 1/v_j is inverse Gaussian with mean 1/(s |b_j|)
   and shape 1/s²; under Student's t with ν degrees of freedom, 1/v_j is gamma with shape (ν + 1)/2
   and rate (ν s² + b_j²)/2;
4. in robust regression, with the residuals z = (y - η)/σ: log ν given z by random walks, and then
   ω_i, gamma with shape (ν + 1)/2 and rate (ν + z_i²)/2.

Where coefficients can fit all rows, y says little of the residuals, and ν given z cannot move far.
So step 1 has a second part, in which ω follows ν [3]_: log ν moves by random walks with fixed
shapes g_i = (log ω_i - m(ν))/s(ν), m and s the mean and the standard deviation of log ω_i under
its prior, the gamma law with shape and rate ν/2. The law of log ν is then, with the coefficients
integrated out, p(y | σ, v, ω) p(ν) Π p(log ω_i | ν) s(ν).

All chains move together, by the kernels of `skbayes_sg.kernels.scale_mixture`.

.. [1] T. Park and G. Casella (2008). The Bayesian lasso. JASA 103, 681-686.
.. [2] A. Bhattacharya, A. Chakraborty and B. K. Mallick (2016). Biometrika 103, 985-991.
.. [3] Y. Yu and X.-L. Meng (2011). To center or not to center: that is not the question. Journal
   of Computational and Graphical Statistics 20, 531-570.
"""

import numpy as np
from scipy import linalg, sparse
from scipy.special import digamma, gammaln, zeta

from .._base import streams
from ..kernels.layout import FACT_Y, frozen
from ..kernels.scale_mixture import project, walk_nu, walk_sigma
from ..models import Linear, Robust
from ..priors import Flat, Laplace, Normal, StudentT
from ..priors.columns import LOC, POWER, SCALE
from ..priors.families import of_family
from ..priors.scale_mixtures import ScaleMixtures, t_precisions
from ..priors.table import prior_value
from . import gibbs
from .closed_form import triangle
from .price import EXACT_SECONDS

__all__ = ["ScaleMixtureGibbs", "is_quick", "run_scale_mixture", "suits_gibbs"]

NEAR = 2.0, 3.5  # largest number of rows for each coefficient, in linear and robust regression
MOST_ROWS = 200  # largest number of rows, unless there are as many coefficients
# Rows are linearly dependent if their smallest singular value is below this share of the largest.
RANK = 1e-6
# With more rows than columns, σ² below this share of C's mean diagonal is not told from zero.
SINGULAR = 1e-11
JITTER = 1e-20  # share of the trace of C that is added to its diagonal
WALKS = 3  # steps of the random walk of log σ, and of each of those of log ν, in a sweep
SHORTEST, LONGEST = 0.1, 3.0  # range of the random scale of these steps
# Sampling is given up where log σ is nearer than this to where C can no longer be factored.
MARGIN = 3.0
# Beside a coefficient with a smaller s²/v, rounding errors hide the others: sampling is given up.
LEAST_OF_V = 1e-10
LEAST_OF_ROWS = 1e-100  # least precision ω of a row, and the inverse of the largest
FIRST_NU = 5.0  # degrees of freedom about which chains begin
# Sweeps of warm-up, sweeps of a draw at first and at most, and share of effective draws aimed at.
WARMUP, THIN, MOST_THIN, AIM = 200, 2, 64, 0.25
# If sweeping twice as often is predicted to take more seconds than `LONG`, this share is enough.
LONG, ENOUGH = 10.0, 0.1
SECONDS = 8e-11, 5e-5  # predicted for a multiplication, and for all else in a sweep of a chain
OF_FLAT = 17  # multiplications for a flat coefficient, where others take one
OF_CHOLESKY = 0.5  # multiplications of a Cholesky factor of m rows, divided by m³


def suits_gibbs(target):
    """Whether Gibbs sampling can and should be used for a target.

    It is for few rows that are linearly independent, priors that are normal, flat or scale mixtures
    of normals, and no earlier rows.
    """
    D = target.n_parameters - target.model.n_extra
    prior = target.prior[:D]
    mixed = of_family(prior, Laplace, StudentT)
    is_robust = isinstance(target.model, Robust) and bool((target.weight == 1.0).all())
    is_linear = isinstance(target.model, Linear) and mixed.any()  # else there is a closed form
    is_whole = target.memory is None and target.quadratic is None
    if not (is_robust or is_linear) or not is_whole:
        return False
    most = max(D, min(NEAR[is_robust] * D, MOST_ROWS))
    if target.n_rows > most or (prior[mixed, POWER] != 1.0).any():
        return False
    return bool((mixed | of_family(prior, Normal, Flat)).all()) and _Rows(target).have_full_rank()


class _Rows:
    """The rows: X and F, whose columns have normal mixtures and flat priors, and the response y."""

    def __init__(self, target):
        D = target.n_parameters - target.model.n_extra
        A, y = self._rows(target, D)
        self.flat = of_family(target.prior[:D], Flat)
        self.prior = target.prior[:D][~self.flat]
        self.loc, self.scale = self.prior[:, LOC], self.prior[:, SCALE]
        self.X, self.F = A[:, ~self.flat], A[:, self.flat]
        self.y = y - self.X @ self.loc
        self.FF, self.size_of_F = self.F @ self.F.T, np.square(self.F).sum()
        self.of_noise = frozen(np.vstack([self.F.T, self.y]))
        self.Q = linalg.qr(self.F)[0][:, self.F.shape[1] :]

    def have_full_rank(self):
        """Whether the rows are linearly independent after projecting out columns with flat priors.

        Where dependent rows agree, such as equal ones, σ might be zero.
        """
        Z = self.Q.T @ self.X * self.scale
        if not len(Z):
            return False
        values = linalg.svdvals(Z)
        return len(values) > 0 and values[-1] > RANK * values[0]

    def size(self):
        """Root mean square of y after projecting out the columns with flat priors.

        Where nothing is left of y, it is the smallest scale of a prior.
        """
        return np.sqrt(np.square(self.Q.T @ self.y).mean()) or self.scale.min()

    @staticmethod
    def _rows(target, D):
        """Design and response: of the rows, or in linear regression of their triangular factor."""
        if isinstance(target.model, Robust):
            A, y = target.design(slice(None)), target.data.facts[:, FACT_Y]
            return (A.toarray() if sparse.issparse(A) else np.asarray(A)), y
        R = triangle(target)[: target.n_rows]
        return R[:, :D], R[:, D]


class ScaleMixtureGibbs:
    """The state of all chains, which a sweep of Gibbs sampling moves together.

    Parameters
    ----------
    target : Target
    n_chains : int
    rng : numpy.random.Generator
    """

    def __init__(self, target, n_chains, rng):
        self.rows, self.rng = _Rows(target), rng
        m, own = len(self.rows.y), target.prior[len(self.rows.flat) :]
        self.excess = float(target.total_weight - m)
        self.prior, self.prior_of_nu = frozen(own[:1]), frozen(own[-1:])
        self.log_sigma = np.log(self.rows.size()) + rng.standard_normal(n_chains)
        self.log_nu = np.log(FIRST_NU) + rng.standard_normal((n_chains, len(own) - 1))
        self.omega = np.ones((n_chains, m))
        self.mixtures = ScaleMixtures(self.rows.prior)
        self.v = np.tile(self.rows.scale**2, (n_chains, 1))
        self.fixed = None  # C for σ = 0, if v never changes
        self._variances(self.rows.scale * rng.standard_normal(self.v.shape))

    def sweep(self):
        """Move all chains by a sweep: steps 1 to 4 of the module's docstring."""
        K = self._without_noise()
        self.lowest = self._lowest(K)
        log_p, P = self._walk(K)
        if self.log_nu.size:
            self._walk_with_shapes(K, log_p, P)
        if (self.log_sigma < self.lowest + MARGIN).any():
            raise np.linalg.LinAlgError("σ is close to zero with more rows than coefficients.")
        self.b = self._coefficients(P)
        self.flat = self._flat_coefficients()
        self._variances(self.b)
        if self.log_nu.size:
            self._precisions()

    def _without_noise(self):
        """C of each chain for σ = 0, with a scale c such that X and F add as much to its trace."""
        if self.fixed is not None:
            return self.fixed
        X, F = self.rows.X, self.rows.F
        C = (X * self.v[:, None]) @ X.T
        if F.size:
            c = np.trace(C, axis1=1, axis2=2) / self.rows.size_of_F
            C += c[:, None, None] * self.rows.FF
        if not (self.mixtures.laplace.size or self.mixtures.t.size):
            self.fixed = C
        return C

    def _lowest(self, K):
        """log σ of each chain below which C cannot be factored; K is C for σ = 0.

        With no more rows than coefficients K itself can be factored, and it is -inf.
        """
        m, D = len(self.rows.y), len(self.rows.flat)
        size = np.trace(K, axis1=1, axis2=2) / m
        return 0.5 * np.log(SINGULAR * size) if m > D else np.full(len(K), -np.inf)

    def _walk(self, K, n_walks=WALKS):
        """Step 1: move log σ; return log p(y, log σ | v, ω) where walks end, and factors of P."""
        P = np.empty_like(K), np.empty((len(K), *self.rows.of_noise.shape))
        jitter, log_p = JITTER * np.trace(K, axis1=1, axis2=2), np.empty(len(K))
        law = 1.0 / self.omega, jitter, self.rows.of_noise, self.prior, self.excess, self.lowest
        walk_sigma(K, *law, *self._steps(n_walks), self.log_sigma, log_p, *P)
        return log_p, P

    def _walk_with_shapes(self, K, log_p, P):
        """Step 1: move log ν and ω with fixed shapes; `log_p` and P, from `_walk`, are renewed."""
        log_p, g = log_p + self._log_p_of_shapes(), self._shapes()
        for step, log_u in zip(*self._steps(WALKS), strict=True):
            before = self.log_nu, self.omega
            self.log_nu = self.log_nu + step[:, None]
            self._set_shapes(g)
            other, Q = self._walk(K, 0)
            other += self._log_p_of_shapes()
            takes = log_u < other - log_p
            log_p = np.where(takes, other, log_p)
            for own, new in zip(P, Q, strict=True):
                own[takes] = new[takes]
            now = self.log_nu, self.omega
            pairs = zip(now, before, strict=True)
            self.log_nu, self.omega = (np.where(takes[:, None], a, b) for a, b in pairs)

    def _law_of_log_omega(self):
        """m(ν) and s(ν): mean and standard deviation of log ω_i under its prior, (n_chains, 1)."""
        k = 0.5 * np.exp(self.log_nu)
        return digamma(k) - np.log(k), np.sqrt(zeta(2.0, k))  # zeta(2, k) is the trigamma function

    def _shapes(self):
        """The shapes g of ω, (n_chains, n_rows)."""
        m, s = self._law_of_log_omega()
        return (np.log(self.omega) - m) / s

    def _set_shapes(self, g):
        """Give ω the shapes g; out of range, log ν becomes NaN, which no chain takes."""
        m, s = self._law_of_log_omega()
        log_omega, bound = m + s * g, -np.log(LEAST_OF_ROWS)
        out = (np.abs(log_omega) > bound).any(axis=1, keepdims=True)
        self.omega = np.exp(np.where(out, 0.0, log_omega))
        self.log_nu = np.where(out, np.nan, self.log_nu)

    def _log_p_of_shapes(self):
        """log p(log ν) + Σ log p(log ω_i | ν) + Σ log s(ν) of each chain, (n_chains,)."""
        k, (_, s) = 0.5 * np.exp(self.log_nu), self._law_of_log_omega()
        terms = k * (np.log(k * self.omega) - self.omega) - gammaln(k) + np.log(s)
        prior = np.array([prior_value(self.prior_of_nu, own) for own in self.log_nu])
        return terms.sum(axis=1) - prior

    def _steps(self, n_walks):
        """Draw steps of random walks and log uniforms for their tests: each (n_walks, n_chains)."""
        shape = n_walks, len(self.log_sigma)
        size = SHORTEST * (LONGEST / SHORTEST) ** self.rng.random(shape)
        return size * self.rng.standard_normal(shape), np.log(self.rng.random(shape))

    def _coefficients(self, P):
        """Step 2: draw b given σ, v and ω, with the factors of P."""
        X, normal = self.rows.X, self.rng.standard_normal
        start = np.sqrt(self.v) * normal(self.v.shape)
        noise = self._sigma() * normal(self.omega.shape) / np.sqrt(self.omega)
        misfit = self.rows.y - start @ X.T - noise
        project(*P, misfit)
        return start + self.v * (misfit @ X)

    def _flat_coefficients(self):
        """Step 2: draw f ~ N(G⁻¹ Fᵀ diag(ω) (y - Xb), σ² G⁻¹) with G = Fᵀ diag(ω) F."""
        F = self.rows.F
        weighted = self.omega[:, None] * F.T
        roots = np.linalg.cholesky(weighted @ F)
        drift = np.einsum("cki,ci->ck", weighted, self.rows.y - self.b @ self.rows.X.T)
        noise = self._sigma() * self.rng.standard_normal(drift.shape)
        white = np.linalg.solve(roots, drift[..., None]) + noise[..., None]
        return np.linalg.solve(roots.transpose(0, 2, 1), white)[..., 0]

    def _variances(self, b):
        """Step 3: draw the variances v given coefficients b."""
        s = self.rows.scale
        precision = self.mixtures.precisions(b / s, self.rng)
        if (precision < LEAST_OF_V).any():
            raise np.linalg.LinAlgError("A coefficient is too far from its prior.")
        self.v = s**2 / precision

    def _precisions(self):
        """Step 4: draw the degrees of freedom ν, and the precisions ω of the rows."""
        misfit = self.rows.y - self.b @ self.rows.X.T - self.flat @ self.rows.F.T
        z = misfit / self._sigma()
        self._walk_nu(z)
        self.omega = np.maximum(t_precisions(z**2, np.exp(self.log_nu), self.rng), LEAST_OF_ROWS)

    def _walk_nu(self, z, n_walks=WALKS):
        """Move log ν by random walks; return log p(log ν | z) where these end."""
        log_p = np.empty(len(z))
        walk_nu(z, self.prior_of_nu, *self._steps(n_walks), self.log_nu[:, 0], log_p)
        return log_p

    def _sigma(self):
        """σ of each chain, (n_chains, 1)."""
        return np.exp(self.log_sigma)[:, None]

    def draws(self):
        """Present parameters of the target, (n_chains, n_parameters)."""
        found = np.empty((len(self.b), len(self.rows.flat)))
        found[:, ~self.rows.flat] = self.rows.loc + self.b
        found[:, self.rows.flat] = self.flat
        return np.column_stack([found, self.log_sigma, self.log_nu])


def run_scale_mixture(target, request, watch=None):
    """The `Outcome` of Gibbs sampling, or None if extreme values of σ or v break its algebra."""
    try:
        return _run(target, request, watch)
    except np.linalg.LinAlgError:
        return None


def _run(target, request, watch):
    """The `Outcome` of Gibbs sampling, unless a sweep raises `LinAlgError`."""
    n_warmup = WARMUP if request.n_warmup is None else request.n_warmup
    state = ScaleMixtureGibbs(target, request.n_chains, streams.of_proposal(request.seed))
    tell = _price(target, n_warmup, request)
    tell(request.thin or THIN)
    for _ in range(n_warmup):
        state.sweep()
    is_long = 2 * THIN * request.n_draws * request.n_chains * _seconds(target) > LONG
    thinning = THIN, MOST_THIN, ENOUGH if is_long else AIM
    draws, thin = gibbs.thinned(state.sweep, state.draws, request, thinning, tell, watch)
    report = "of Gibbs sampling", request.names, thin, n_warmup, target, request
    return gibbs.outcome(draws, "scale_mixture_gibbs", *report)


def _seconds(target):
    """Predicted seconds of a sweep of a chain."""
    (per_product, rest), m = SECONDS, target.n_rows
    prior = target.prior[: target.n_parameters - target.model.n_extra]
    k, mixed = of_family(prior, Flat).sum(), of_family(prior, Laplace, StudentT).any()
    products = (len(prior) - k) * mixed + OF_FLAT * k  # for C
    n_factors = (1 + WALKS) + WALKS * isinstance(target.model, Robust)
    return rest + per_product * (m * m * products + OF_CHOLESKY * n_factors * m**3)


def is_quick(target, request):
    """Whether Gibbs sampling suits a target and is predicted to take at most `EXACT_SECONDS`."""
    if not suits_gibbs(target):
        return False
    sweeps = request.n_chains * (WARMUP + (request.thin or THIN) * request.n_draws)
    return sweeps * _seconds(target) <= EXACT_SECONDS


def _price(target, n_warmup, request):
    """Return a function that warns of a long run: see `gibbs.price_of`."""
    seconds = request.n_chains * _seconds(target)
    what = f"Gibbs sampling with {target.counted} and {target.n_features} columns"
    mixed = of_family(target.prior, Laplace, StudentT)[: target.n_features].any()
    remedy = f"Make fewer draws (n_draws){', or use a normal prior' if mixed else ''}."
    return gibbs.price_of(seconds, n_warmup, request.n_draws, what, remedy)
