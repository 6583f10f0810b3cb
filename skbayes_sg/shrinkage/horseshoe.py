r"""Gibbs sampling under the regularised horseshoe prior, all chains at once.

The slab is taken for data, b_j ~ N(θ_j/u_j, c²) seen as 0, and not for a part of the prior of λ and
τ: so given β = θ/u these depend on β_j/τ alone [1]_. With v_j⁻¹ = (τ λ_j)⁻² + c⁻² a sweep is

1. λ_j given β_j and τ, by a slice: η = λ_j⁻², m = β_j²/(2τ²), p(η) ∝ e^{-ηm}/(1 + η), so that
   s ~ U(0, 1/(1 + η)) and then η ~ Exp(m), η < 1/s - 1;
2. a **shift** (log τ + a, log λ_j - a) at fixed β and v, by random walks: costs O(p);
3. log τ given β and λ, by random walks;
4. β and all other parameters given v: for linear regression one exact draw and log σ by random
   walks, else one trajectory of Hamiltonian Monte Carlo in the metric of the Hessian of the
   likelihood at a reference, plus diag(1/v).

log τ mixes slowly: draws are thinned until enough of them are effective.

.. [1] A. Nishimura and M. A. Suchard (2023). Bayesian Analysis 18, 367-390.
"""

from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import linalg

from .._base import streams
from ..geometry.frame import build_frame, shear, shear_back, slopes_of
from ..importance.potential import Potential
from ..kernels.layout import FACT_Y, frozen
from ..kernels.many_draws import log_prior
from ..models import Linear, Logistic, Softmax
from ..priors import Flat, HalfCauchy, Units
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family
from ..recipe import gibbs
from ..recipe.closed_form import triangle
from ..recipe.price import seconds_of_steps
from .effective import curvature_along, log_effective_number
from .reference import frame_and_collapse, reference_of

__all__ = ["run_horseshoe", "tau_zero"]

WARMUP = 1000  # sweeps of warm-up, unless they are given
THIN, MOST_THIN = 5, 40  # sweeps from one draw to the next: at first, and at most
AIM = 0.15  # share of effective draws, of every parameter, up to which draws are thinned
BOUND = np.log(1e6)  # largest size of log λ
SHIFTS, WALKS = 4, 3  # random-walk steps in a sweep: shifts, and steps of log τ and of log σ
LEAPFROGS = 3  # leapfrog steps of a trajectory
# Seconds of a trajectory of a chain beside its gradients: in any case, and times columns².
OF_CHAIN = 1.4e-4, 7e-9
LARGEST = 0.5 * np.pi / LEAPFROGS  # largest leapfrog step: beyond it trajectories turn back
ACCEPTANCE, GAIN = 0.8, 0.1  # acceptance rate aimed at, and gain of the adaptation of the log step
# Seconds of a sweep of a chain in linear regression: in any case, times p², and times p³.
SECONDS = 1e-4, 7e-9, 5e-12


def tau_zero(target, scales):
    """τ₀, the scale of the prior of τ: the ratio k/(p - k), kept in `scales`, times σ̃/√n."""
    model, y = target.model, target.data.facts[:, FACT_Y]
    noise = 2.0 if isinstance(model, (Logistic, Softmax)) else 1.0
    if model.discrete:
        noise = 1.0 / np.sqrt(max(np.average(y, weights=target.weight), 1e-3))
    return scales.table[0, SCALE] * noise / np.sqrt(target.total_weight)


class LocalScales:
    """log λ and log τ of all chains, and their updates given β: (n_chains, p) and (n_chains,)."""

    def __init__(self, n_chains, p, tau_zero, slab, rng):
        self.tau_zero, self.slab, self.rng, self.p = tau_zero, slab, rng, p
        self.log_lambda = np.zeros((n_chains, p))
        self.log_tau = np.full(n_chains, np.log(tau_zero)) + 0.5 * rng.standard_normal(n_chains)

    @property
    def precision(self):
        """1/v_j of all chains, (n_chains, p)."""
        return np.exp(-2.0 * (self.log_lambda + self.log_tau[:, None])) + self.slab**-2

    def update(self, beta):
        """Make steps 1 to 3 of the module, given β of all chains, (n_chains, p)."""
        self._slice(beta)
        for _ in range(SHIFTS):
            self._shift()
        for _ in range(WALKS):
            self._walk(beta)

    def _slice(self, beta):
        """Step 1 of the module: draw λ given β and τ, by a slice."""
        u, v = self.rng.random((2, *beta.shape))
        m = 0.5 * np.square(beta * np.exp(-self.log_tau)[:, None])
        highest = 1.0 / (u / (1.0 + np.exp(-2.0 * self.log_lambda))) - 1.0
        inside = -np.expm1(-m * highest)
        with np.errstate(divide="ignore", invalid="ignore"):
            eta = np.where(inside > 1e-12, -np.log1p(-v * inside) / m, v * highest)
        self.log_lambda = np.clip(-0.5 * np.log(np.maximum(eta, 1e-300)), -BOUND, BOUND)

    def _log_prior_tau(self, log_tau):
        """log p(log τ), up to a constant, of each chain."""
        return log_tau - np.log1p(np.square(np.exp(log_tau) / self.tau_zero))

    @staticmethod
    def _log_prior_lambda(log_lambda):
        """Σ_j log p(log λ_j), up to a constant, of each chain."""
        return (log_lambda - np.log1p(np.exp(2.0 * log_lambda))).sum(axis=1)

    def _shift(self):
        """Step 2 of the module: shift log τ against all log λ_j."""
        a = 2.4 * np.sqrt(2.0 / self.p) * self.rng.standard_normal(len(self.log_tau))
        log_tau, log_lambda = self.log_tau + a, self.log_lambda - a[:, None]
        change = self._log_prior_tau(log_tau) - self._log_prior_tau(self.log_tau)
        change += self._log_prior_lambda(log_lambda) - self._log_prior_lambda(self.log_lambda)
        moved = np.log(self.rng.random(len(a))) < change
        moved &= (np.abs(log_lambda) <= BOUND).all(axis=1)
        self.log_tau = np.where(moved, log_tau, self.log_tau)
        self.log_lambda = np.where(moved[:, None], log_lambda, self.log_lambda)

    def _walk(self, beta):
        """Step 3 of the module: a random-walk step of log τ given β and λ."""
        squares = np.square(beta * np.exp(-self.log_lambda)).sum(axis=1)

        def log_p(log_tau):
            normal = -self.p * log_tau - 0.5 * squares * np.exp(-2.0 * log_tau)
            return normal + self._log_prior_tau(log_tau)

        step = 1.7 / np.sqrt(self.p) * self.rng.standard_normal(len(squares))
        moved = np.log(self.rng.random(len(step))) < log_p(self.log_tau + step) - log_p(
            self.log_tau
        )
        self.log_tau = np.where(moved, self.log_tau + step, self.log_tau)


class LinearCoefficients:
    """Parameters of linear regression: exact draws of θ given σ, and random walks of log σ."""

    def __init__(self, target, scales, n_chains, rng):
        n, model_extra = len(scales.group), target.model.n_extra
        R, self.rng, self.unit = triangle(target), rng, scales.unit
        D = target.n_parameters - model_extra
        scale = np.append(scales.unit, np.ones(D - n))
        A = R[:, :D] * scale
        self.gram, self.shift, self.square = A.T @ A, A.T @ R[:, D], float(R[:, D] @ R[:, D])
        rest = target.prior[n:D]
        flat = of_family(rest, Flat)
        self.precision = np.where(flat, 0.0, rest[:, SCALE] ** -2.0)
        self.drift = np.where(flat, 0.0, rest[:, LOC]) * self.precision
        self.total, self.prior = target.total_weight, target.prior[-1]
        start = 0.5 * np.log(max(self.square / self.total, 1e-300))
        self.log_sigma = np.full(n_chains, start)
        self.theta, self.n = np.zeros((n_chains, D)), n
        self.seconds = n_chains * (SECONDS[0] + SECONDS[1] * D**2 + SECONDS[2] * D**3)

    @property
    def beta(self):
        """β = θ/u of all chains, (n_chains, p)."""
        return self.theta[:, : self.n]

    def update(self, precision, warming_up):
        """Draw θ given v and σ, and then walk log σ given θ; `precision` is 1/v."""
        del warming_up
        inverse = np.exp(-2.0 * self.log_sigma)[:, None]
        more = np.broadcast_to(self.precision, (len(precision), len(self.precision)))
        Q = inverse[:, None] * self.gram
        diagonal = np.arange(Q.shape[1])
        Q[:, diagonal, diagonal] += np.concatenate([precision, more], axis=1)
        drift = np.concatenate([np.zeros(self.n), self.drift])
        self.theta = _normal_draws(Q, inverse * self.shift + drift, self.rng)
        misfit = self.square - 2.0 * self.theta @ self.shift
        misfit += np.einsum("ca,ab,cb->c", self.theta, self.gram, self.theta)
        for _ in range(WALKS):
            self._walk(np.maximum(misfit, 0.0))

    def _walk(self, misfit):
        """A random-walk step of log σ given the residual sum of squares of each chain."""

        def log_p(s):
            likelihood = -self.total * s - 0.5 * misfit * np.exp(-2.0 * s)
            return likelihood + log_prior(self.prior, s)

        s = self.log_sigma + 1.7 / np.sqrt(self.total) * self.rng.standard_normal(len(misfit))
        moved = np.log(self.rng.random(len(s))) < log_p(s) - log_p(self.log_sigma)
        self.log_sigma = np.where(moved, s, self.log_sigma)

    def draws(self):
        """The parameters of the target in all chains, (n_chains, n_parameters)."""
        own = np.concatenate([self.beta * self.unit, self.theta[:, self.n :]], axis=1)
        return np.concatenate([own, self.log_sigma[:, None]], axis=1)

    def curvature(self):
        """Curvature of the likelihood along each β_j, the intercept integrated out."""
        own = curvature_along(self.gram, self.n, self.precision)
        return np.exp(-2.0 * self.log_sigma)[:, None] * own

    told: ClassVar[dict] = {}  # diagnostics: there are none


# With few parameters scipy.linalg would spend ten times as long on its checks as on the numbers.


def _root(Q):
    """The lower triangular L with L Lᵀ = Q."""
    L, failed_at = linalg.lapack.dpotrf(Q, lower=True)
    if failed_at:
        raise linalg.LinAlgError("A matrix of the horseshoe prior is not positive definite.")
    return L


def _triangular(L, b, transposed=False):
    """L⁻¹ b, or L⁻ᵀ b."""
    return linalg.lapack.dtrtrs(L, b, lower=True, trans=transposed)[0]


def _normal_draws(Q, drift, rng):
    """Draw from N(Q⁻¹ drift, Q⁻¹) for each of several Q, one a chain."""
    found = np.empty(drift.shape)
    for c, normal in enumerate(rng.standard_normal(drift.shape)):
        L = _root(Q[c])
        found[c] = _triangular(L, _triangular(L, drift[c]) + normal, transposed=True)
    return found


def _solved(roots, p):
    """(L Lᵀ)⁻¹ p of each chain."""
    return np.stack(
        [linalg.lapack.dpotrs(L, q, lower=True)[0] for L, q in zip(roots, p, strict=True)]
    )


class OtherCoefficients:
    """All parameters of a model that is not linear, by Hamiltonian Monte Carlo given v."""

    def __init__(self, frame, scales, n_chains, rng):
        self.n, self.rng, self.unit = len(scales.group), rng, scales.unit
        prior = frame.target.prior.copy()
        prior[: self.n] = Flat()._table((self.n,))
        flat = frame.target.with_prior(frozen(prior))
        self.centre = frame.centre.theta
        self.potential = Potential(build_frame(flat, replace(frame.centre, prior=prior), "none"))
        H = frame.centre.hessian + np.diag(flat.prior_curvature(self.centre))
        n_intercepts = flat.model.n_linear if flat.intercept else 0
        # Positions x are sheared, since the Hessian in θ has no digits left for the coefficient of
        # a column far from zero. They are also in units in which intercepts have about unit
        # curvature: that of a response in large units would be lost beside the others.
        self.slopes = slopes_of(H, n_intercepts, flat.n_features)
        self.scale = np.append(scales.unit, np.ones(len(H) - self.n))
        H = self._pulled_back(self._pulled_back(H).T)
        own = slice(self.n, self.n + n_intercepts)
        curvature = np.diag(H)[own]
        self.scale[own] = 1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0))
        unit = np.append(np.ones(self.n), self.scale[self.n :])
        H *= np.outer(unit, unit)
        values, axes = linalg.eigh(H)
        self.H = axes * np.maximum(np.abs(values), 1e-10 * np.abs(values).max()) @ axes.T
        self.x = np.tile(shear(-self.slopes, self.centre) / self.scale, (n_chains, 1))
        self.log_step, self.accepted = np.log(0.8 * LARGEST), []
        self.value, self.slope = self._value(self.x), self._slope(self.x)
        rows = seconds_of_steps(flat, n_chains * LEAPFROGS, flat.n_rows)
        self.seconds = rows + n_chains * (OF_CHAIN[0] + OF_CHAIN[1] * self.n**2)

    @property
    def beta(self):
        """β = θ/u of all chains, (n_chains, p)."""
        return self.x[:, : self.n]

    def _theta(self, x):
        """θ at positions x."""
        return shear(self.slopes, x * self.scale)

    def _pulled_back(self, g):
        """Gradients in x from gradients g in θ."""
        return shear_back(self.slopes, g) * self.scale

    def _value(self, x):
        """U without the prior of the coefficients at positions x, up to a constant."""
        with np.errstate(all="ignore"):
            return self.potential.values(self._theta(x) - self.centre)

    def _slope(self, x):
        """The gradient of `_value` in x."""
        with np.errstate(all="ignore"):
            return self._pulled_back(self.potential.gradients(self._theta(x) - self.centre))

    def update(self, precision, warming_up):
        """Move all chains by a trajectory given v; `precision` is 1/v. Adapt ε in warm-up."""
        L = [self._metric(own) for own in precision]
        x = self.x
        g = self._with(self.slope, x, precision)
        p = np.stack([own @ z for own, z in zip(L, self.rng.standard_normal(x.shape), strict=True)])
        before = self._energy(self.value, x, p, precision, L)
        h = np.exp(self.log_step) * (1.0 + 0.2 * (2.0 * self.rng.random() - 1.0))
        for _ in range(LEAPFROGS):
            p = p - 0.5 * h * g
            x = x + h * _solved(L, p)
            slope = self._slope(x)
            g = self._with(slope, x, precision)
            p = p - 0.5 * h * g
        value = self._value(x)
        with np.errstate(all="ignore"):
            change = self._energy(value, x, p, precision, L) - before
        chance = np.exp(-np.maximum(np.where(np.isfinite(change), change, np.inf), 0.0))
        moved = self.rng.random(len(chance)) < chance
        self.x = np.where(moved[:, None], x, self.x)
        self.value = np.where(moved, value, self.value)
        self.slope = np.where(moved[:, None], slope, self.slope)
        if warming_up:
            step = self.log_step + GAIN * (chance.mean() - ACCEPTANCE)
            self.log_step = min(step, np.log(LARGEST))
        else:
            self.accepted.append(chance.mean())

    def _metric(self, precision):
        """The lower Cholesky factor of the metric of one chain."""
        Q = self.H.copy()
        Q[np.arange(self.n), np.arange(self.n)] += precision
        return _root(Q)

    def _with(self, slope, x, precision):
        """The gradient in x with the prior of the coefficients given v."""
        g = slope.copy()
        g[:, : self.n] += precision * x[:, : self.n]
        return g

    def _energy(self, value, x, p, precision, L):
        """The Hamiltonian of each chain at positions x and momenta p."""
        own = [_triangular(root, q) for root, q in zip(L, p, strict=True)]
        kinetic = 0.5 * np.square(own).sum(axis=1)
        return value + 0.5 * (precision * x[:, : self.n] ** 2).sum(axis=1) + kinetic

    def draws(self):
        """The parameters of the target in all chains, (n_chains, n_parameters)."""
        return self._theta(self.x)

    def curvature(self):
        """Curvature of the likelihood along each β_j, all but coefficients integrated out."""
        return np.broadcast_to(curvature_along(self.H, self.n), self.beta.shape)

    @property
    def told(self):
        """Diagnostics: the mean acceptance rate after the warm-up."""
        return {"acceptance": float(np.mean(self.accepted))}


def run_horseshoe(target, scales, request, watch=None):
    """Sample the parameters, log τ and log m_eff by chains that move together: an `Outcome`."""
    rng, p = streams.of_proposal(request.seed), len(scales.group)
    local = LocalScales(request.n_chains, p, tau_zero(target, scales), scales.slab, rng)
    if isinstance(target.model, Linear):
        own = LinearCoefficients(target, scales, request.n_chains, rng)
    else:
        ridge = replace(scales, slab=None, table=HalfCauchy(1.0)._table((1,), "prior", Units()))
        search = streams.of_recipe(request.seed)
        s, theta = reference_of(target, ridge, search)
        frame, _ = frame_and_collapse(target, ridge, s, search, theta)
        own = OtherCoefficients(frame, scales, request.n_chains, rng)
    n_warmup = WARMUP if request.n_warmup is None else request.n_warmup
    tell = _price(own, n_warmup, target, request)
    tell(request.thin or THIN)
    for _ in range(n_warmup):
        _sweep(local, own, True)
    sweep, current = partial(_sweep, local, own), partial(_current, local, own)
    draws, thin = gibbs.thinned(sweep, current, request, (THIN, MOST_THIN, AIM), tell, watch)
    names = [*request.names, "prior_scale", "m_eff"]
    report = "under the horseshoe prior", names, thin, n_warmup, target, request
    return gibbs.outcome(draws, "horseshoe_gibbs", *report, own.told)


def _price(own, n_warmup, target, request):
    """A function that tells the price of draws, given the sweeps from one draw to the next."""
    what = f"Sampling under the horseshoe prior with {target.n_rows} different rows"
    remedy = "Use a normal prior with a learned scale, fewer rows or columns, or make fewer draws."
    return gibbs.price_of(own.seconds, n_warmup, request.n_draws, what, remedy)


def _sweep(local, own, warming_up=False):
    """Update the coefficients given the scales, and then the scales given the coefficients."""
    own.update(local.precision, warming_up)
    local.update(own.beta)


def _current(local, own):
    """Parameters, log τ and log m_eff of all chains as they are: (n_chains, n_parameters + 2)."""
    m_eff = log_effective_number(own.curvature(), local.precision)
    return np.column_stack([own.draws(), local.log_tau, m_eff])
