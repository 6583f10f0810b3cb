"""Linear regression with normal priors in closed form: independent draws instead of a chain.

The likelihood depends on the rows only through the triangular factor R of √w (X, 1, y), which has
d + 2 rows whatever N is; orthogonal transformations find it without squaring a condition number.
With R_x, r = R_y - R_x m₀ and the prior precision Λ₀ = diag(λ) around m₀, write C for the factor of
R_xᵀR_x/σ₀² + Λ₀ = CᵀC at a reference σ₀, and R_x C⁻¹/σ₀ = U S Vᵀ. In the axes γ = VᵀC (β - m₀),
with t = (σ₀/σ)², the precision of the coefficients is diagonal for every σ:

    γ_j | σ ~ N(t S_j c_j / p_j, 1 / p_j),   p_j = t S_j² + (1 - S_j²),   c = Uᵀr/σ₀,

and with γ integrated out, where W = Σ w_i and ρ is the part of R_y that no coefficient can fit,

    log p(y | σ) = -W log σ - ½ Σ_j log p_j - ½ t (ρ²/σ₀² + Σ_j c_j² (1 - S_j²)/p_j).

So log σ is drawn by inverting its distribution function on a grid, and γ given it: exact up to the
grid, for any prior of σ, at the price of one pass over the rows
(``tests/recipe/test_closed_form.py::test_draws_have_these_laws``).
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize, sparse

from .._base import streams
from .._base.svd import svd
from ..diagnostics import convergence
from ..dynamics import Exact
from ..engine.memory import Triangle
from ..engine.target import Target
from ..geometry.mode import check_width
from ..geometry.preconditioning import DENSE_LIMIT
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..kernels.many_draws import log_prior
from ..priors import Flat, Normal
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family, tail
from .price import TOLD_SECONDS, seconds_of_closed_form, warn_if_long
from .request import Outcome, chosen_without_steps, moments_and_kept

__all__ = ["LARGEST", "Conditional", "NoiseLaw", "few_rows", "has_closed_form"]
__all__ += ["is_affordable", "is_linear", "remembered", "run_closed_form"]
__all__ += ["exact_outcome", "tell_price", "triangle", "triangular_factor"]

LARGEST = 4000  # number of parameters up to which there is a closed form ...
MOST_SECONDS = 180.0  # ... above `DENSE_LIMIT` if it is predicted to take at most so many seconds
DEPTH = 40.0  # the density of log σ counts as zero this many nats below its maximum
PLACES = 4001  # nodes of the grid of log σ around each of its modes
# A response that deviates from its mean by less than this share of its norm counts as constant: R
# does not resolve a smaller deviation.
CONSTANT = 1e-12
# The columns of a matrix count as linearly dependent if its smallest singular value is below this
# share of the largest.
SINGULAR = 1e-13


def is_linear(target):
    """Whether the likelihood is that of linear regression, with few enough parameters."""
    return target.model.normal and target.n_parameters <= DENSE_LIMIT


def is_affordable(target):
    """Whether linear regression has few enough parameters for a closed form."""
    D = target.n_parameters
    few = D <= DENSE_LIMIT or (D <= LARGEST and seconds_of_closed_form(target) <= MOST_SECONDS)
    return few and target.model.normal


def has_closed_form(target):
    """Whether `is_affordable` holds and the priors of all coefficients are normal or flat."""
    return is_affordable(target) and of_family(_coefficient_priors(target), Normal, Flat).all()


def tell_price(target):
    """Give a `LongRunWarning` if the closed form is predicted to take long."""
    what = f"Linear regression in closed form, with {target.n_parameters} parameters,"
    remedy = "Use fewer columns (sklearn.feature_selection, TruncatedSVD) to take less time."
    warn_if_long(seconds_of_closed_form(target), what, remedy, TOLD_SECONDS)


def _coefficient_priors(target):
    """The rows of the prior table that are priors of coefficients."""
    return target.prior[: target.n_parameters - target.model.n_extra]


# -- the rows ---------------------------------------------------------------------------------


def triangle(target):
    """R of shape (D', D'), D' = d + 2 or d + 1, with RᵀR = (X, 1, y)ᵀ diag(w) (X, 1, y).

    D' is d + 2 with an intercept. R stands for all rows, including earlier ones of which the target
    has kept only the triangular factor.
    """
    width = target.n_features + 1 + bool(target.intercept)

    def factor(rows):
        A, facts = target.design(rows), target.data.facts[rows]
        A = A.toarray() if sparse.issparse(A) else A
        return triangular_factor(
            np.sqrt(facts[:, FACT_WEIGHT, None]) * np.column_stack([A, facts[:, FACT_Y]])
        )

    past = [] if target.memory is None else [target.memory.R]
    parts = target.over_chunks(factor, width, least=4 * width)
    R = triangular_factor(np.concatenate(parts + past))
    return np.concatenate([R, np.zeros((width - len(R), width))])


def remembered(target):
    """The `Triangle` that stands for all rows, including earlier ones, in later fits."""
    return Triangle(triangle(target), float(target.total_weight))


def triangular_factor(A):
    """The factor R of A = QR whose diagonal is not negative, which makes it unique; A is lost."""
    R = linalg.qr(A, mode="r", overwrite_a=True, check_finite=False)[0][: A.shape[1]]
    return np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None] * R


def few_rows(target):
    """A target with the same posterior whose only rows are those of R, with equal weights.

    It is the target itself if that has no more rows than R.
    """
    R, total = triangle(target), target.total_weight
    if len(R) >= target.n_rows and target.memory is None:
        return target
    weight = total / len(R)
    R = R / np.sqrt(weight)
    X, y, weights = np.ascontiguousarray(R[:, :-1]), R[:, -1], np.full(len(R), weight)
    options = {"intercept": False, "n_jobs": target.n_jobs}
    return Target(X, y, weights, target.model, target.prior, **options)


def _full_rank_triangle(A):
    """The triangular factor of A; raise `ValueError` if its columns are linearly dependent."""
    values = linalg.svdvals(A)
    if values[-1] < SINGULAR * values[0]:
        raise ValueError(
            "Improper posterior: a flat prior needs data that determine the coefficients, and the "
            "columns of X (with the intercept) are linearly dependent. Use a proper prior, or drop "
            "columns."
        )
    return triangular_factor(A.copy())


# -- the coefficients, given σ ----------------------------------------------------------------


@dataclass
class Conditional:
    """The law of the coefficients given σ, in axes γ that are independent for every σ.

    The letters are those of the module's docstring.

    Parameters
    ----------
    R : array of shape (D + 1, D + 1)
        Triangular factor of the rows, the response last.
    prior : array of shape (D, 5)
        Prior table of the coefficients, all of them normal or flat.
    total : float
        W, the sum of the weights.
    reference : float
        σ₀, of the order of magnitude of the response; 1 if σ is known.
    """

    R: np.ndarray
    prior: np.ndarray
    total: float
    reference: float

    def __post_init__(self):
        normal = of_family(self.prior, Normal)
        self.loc = np.where(normal, self.prior[:, LOC], 0.0)
        root = np.where(normal, 1.0 / self.prior[:, SCALE], 0.0)  # √λ; 0 under flat priors
        Rx, Ry = self.R[:-1, :-1] / self.reference, self.R[:, -1] / self.reference
        both = np.concatenate([Rx, np.diag(root)])
        size = linalg.norm(both, axis=0)
        C = _full_rank_triangle(both / np.where(size > 0.0, size, 1.0))
        A = linalg.solve_triangular(C, (Rx / size).T, trans="T").T
        B = linalg.solve_triangular(C, np.diag(root / size), trans="T").T
        U, self.S, Vt = svd(A)
        self.V = Vt.T
        self.left = np.square(B @ self.V).sum(axis=0)  # 1 - S², without cancellation
        self.axes = linalg.solve_triangular(C, self.V) / size[:, None]
        self.c = U.T @ (Ry[:-1] - Rx @ self.loc)
        self.rest = float(Ry[-1] ** 2)

    def precisions(self, log_sigma):
        """The precisions p_j of the axes and t = (σ₀/σ)², for each of some log σ."""
        t = np.exp(2.0 * (np.log(self.reference) - np.asarray(log_sigma, dtype=float)))[..., None]
        return t * self.S**2 + self.left, t

    def log_likelihood(self, log_sigma):
        """log p(y | σ), the coefficients integrated out, up to a constant."""
        p, t = self.precisions(log_sigma)
        misfit = self.rest + (self.c**2 * self.left / p).sum(axis=-1)
        log_det = np.log(p).sum(axis=-1)
        return -self.total * np.asarray(log_sigma) - 0.5 * (log_det + t[..., 0] * misfit)

    def mean(self, log_sigma):
        """E(β | σ), the mean of the coefficients, for each of some log σ."""
        p, t = self.precisions(log_sigma)
        return self.loc + (t * self.S * self.c / p) @ self.axes.T

    def variance(self, log_sigma):
        """Var(β_j | σ) of each coefficient."""
        return (1.0 / self.precisions(log_sigma)[0]) @ np.square(self.axes).T

    def draw(self, rng, log_sigma):
        """Draw coefficients β ~ p(β | σ), one vector for each log σ."""
        return self.placed(rng.standard_normal((len(log_sigma), len(self.S))), log_sigma)

    def placed(self, noise, log_sigma):
        """E(β | σ) + Cov(β | σ)^½ ξ for standard normal ξ, one row of noise for each log σ.

        In the coordinates C (β - m₀) the second term is V p^(-1/2) Vᵀ ξ, which is the same for
        every choice of V: V is arbitrary where singular values are equal.
        """
        p, t = self.precisions(log_sigma)
        gamma = t * self.S * self.c / p + noise @ self.V / np.sqrt(p)
        return self.loc + gamma @ self.axes.T


# -- σ ----------------------------------------------------------------------------------------


class NoiseLaw:
    """The law of one number s with log density f, on a grid of places that holds all of its mass.

    Parameters
    ----------
    f : callable
        Log density of s up to a constant, at an array of places.
    first, last : float
        Range of s in which the modes of f are sought.
    """

    def __init__(self, f, first, last):
        coarse = np.linspace(first, last, 400)
        values = f(coarse)
        inner = np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])) + 1
        modes = [self._mode(f, coarse[i - 1], coarse[i + 1]) for i in inner] or [
            coarse[values.argmax()]
        ]
        top = max(float(f(m)) for m in modes)
        grids = [self._grid(f, m, top) for m in modes if f(m) > top - DEPTH]
        self.places = np.unique(np.concatenate(grids))
        self.density = np.exp(f(self.places) - top)
        middle = 0.5 * (self.density[1:] + self.density[:-1])
        share = np.append(0.0, np.cumsum(middle * np.diff(self.places)))
        self.share = share / share[-1]

    @staticmethod
    def _mode(f, first, last):
        """The place between `first` and `last` where f has its maximum."""
        method = {"method": "bounded", "bounds": (first, last), "options": {"xatol": 1e-9}}
        found = optimize.minimize_scalar(lambda s: -float(f(s)), **method)
        return float(found.x)

    @staticmethod
    def _grid(f, mode, top):
        """`PLACES` places around a mode, as far as f is less than `DEPTH` nats below `top`."""
        ends = []
        for sign in (-1.0, 1.0):
            step = 1e-6
            while step < 1e3 and f(mode + sign * step) > top - DEPTH:
                step *= 1.5
            ends.append(mode + sign * step)
        return np.linspace(*ends, PLACES)

    def quantile(self, u):
        """The quantiles of s for probabilities u."""
        return np.interp(u, self.share, self.places)

    def mean(self, values):
        """E g(s), given the values (n_places, ...) of a function g at `places`."""
        weight = self.density.reshape(-1, *[1] * (np.ndim(values) - 1))
        total = np.trapezoid(self.density, self.places)
        return np.trapezoid(weight * values, self.places, axis=0) / total


def noise_law(conditional, prior):
    """The `NoiseLaw` of log σ given y, under a prior of log σ (a row of a prior table)."""

    def f(s):
        return conditional.log_likelihood(s) + log_prior(prior, s)

    middle = np.log(max(conditional.reference, prior[SCALE]))
    lowest = np.log(min(conditional.reference, prior[SCALE])) - 40.0
    return NoiseLaw(f, lowest, middle + 20.0)


def mode(target):
    """Approximate mode of (coefficients, log σ): the median of log σ, and the mean given that."""
    conditional = conditional_of(target)
    if not target.model.n_extra:
        return conditional.mean(0.0)
    law = noise_law(conditional, target.prior[-1])
    log_sigma = law.quantile(0.5)
    return np.append(conditional.mean(log_sigma), log_sigma)


# -- draws ------------------------------------------------------------------------------------


def run_closed_form(target, request, watch=None):
    """The `Outcome` of independent draws of (coefficients, log σ), with streams for each chain."""
    tell_price(target)
    conditional = conditional_of(target)
    law = noise_law(conditional, target.prior[-1]) if target.model.n_extra else None
    if of_family(target.prior, Flat).any():
        log_sigma = 0.0 if law is None else law.quantile(0.5)
        with np.errstate(over="ignore"):
            width = np.sqrt(conditional.variance(log_sigma).max())
        check_width(width, target.total_weight)

    def chain(number):
        _, rng, start = streams.of_chain(request.seed, number)
        if law is None:
            return conditional.draw(rng, np.zeros(request.n_draws))
        log_sigma = law.quantile(start.random(request.n_draws))
        return np.column_stack([conditional.draw(rng, log_sigma), log_sigma])

    return exact_outcome(chain, target, request, watch, heavy_tail(target))


def exact_outcome(chain, target, request, watch, evidence):
    """The `Outcome` of independent exact draws: ``chain(number)`` makes those of a chain.

    `evidence` has what is known besides that the draws are independent.
    """
    draws = np.stack([chain(number) for number in range(request.n_chains)])
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    ess, _, rhat, _ = convergence.worst(draws)
    moments, kept = moments_and_kept(draws, request)
    draws = draws[:, kept]
    found, rows = {"min_ess": ess, "max_rhat": rhat}, np.full(draws.shape[:2], float(target.n_rows))
    chosen = chosen_without_steps(Exact(), "none", target.n_rows)
    evidence = {"independent": np.ones(draws.shape[2])} | evidence
    return Outcome(draws, chosen, found, rows, evidence=evidence, moments=moments)


def heavy_tail(target):
    """Evidence of 1/df of the tails of σ and of coefficients with flat priors; 0 for all others.

    With p such coefficients the density of log σ has the tail σ^(-df), where df = W + df₀ - p and
    df₀ is that of the prior of σ; the law of the coefficients widens with σ. Under normal priors
    coefficients return to these, however large σ is. Nothing is returned if σ is known or no prior
    is flat.
    """
    flat = of_family(target.prior, Flat)
    if not target.model.n_extra or not flat.any():
        return {}
    df = target.total_weight + tail(target.prior[-1]) - flat.sum()
    found = np.where(flat, 1.0 / df, 0.0)
    found[-1] = 1.0 / df
    return {"heavy_tail": found}


def conditional_of(target):
    """The `Conditional` of a target: the law of its coefficients given σ."""
    R = triangle(target)
    total = target.total_weight
    # Where σ is known, the weights have been divided by σ², so that the reference is 1.
    reference = 1.0 if target.model.n_extra == 0 else _spread(R, target.intercept) / np.sqrt(total)
    return Conditional(R, _coefficient_priors(target), total, reference or 1.0)


def _spread(R, intercept):
    """Norm of the response, centred if there is an intercept; a constant is never centred."""
    y, one = R[:, -1], R[:, -2]
    rest = y - one * (one @ y) / (one @ one) if intercept else y
    size, rest = linalg.norm(y), linalg.norm(rest)
    return rest if rest > CONSTANT * size else size
