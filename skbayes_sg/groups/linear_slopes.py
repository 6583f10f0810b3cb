"""Linear regression with one factor whose levels have slopes of their own.

The effects of a level are u_l ~ N(0, C Cᵀ), of the columns z = (1, slopes), with C = diag(s) L for
standard deviations s and the factor L of their correlations, uniform over all correlation matrices.
With C' = C/σ, G_l = Σ w z zᵀ and S_l = Σ w z (x, 1, y)ᵀ over the rows of a level,

    Q_l = I + C'ᵀ G_l C',      M = Σ w (x, 1, y)(x, 1, y)ᵀ - Σ_l S_lᵀ C' Q_l⁻¹ C'ᵀ S_l,

and all is as without slopes (`linear_exact`), with the factor Π |Q_l|^-½ in the likelihood. What is
left are a few numbers: log s, the inverse hyperbolic tangents of partial correlations, and log σ.
Independent proposals from Student's t law are accepted by Metropolis and Hastings. The law begins
at the mode, with the Hessian there, and takes the moments of its own weighted draws a few times:
where effects or slopes hardly vary, log s has a long tail to the left, which no Hessian shows.
"""

import numpy as np
from scipy import linalg, optimize

from .._base import streams
from .._base.threads import in_threads
from ..kernels.layout import FACT_Y
from ..kernels.many_draws import log_prior
from ..posterior.moments import kept_draws
from ..recipe.closed_form import Conditional
from .chains import judged
from .covariance import factor_of
from .linear_exact import root_of, units_of
from .problem import GroupOutcome

__all__ = ["SlopeLaw", "fitted_proposal", "run_slopes"]

DF = 5.0  # degrees of freedom of the proposals
WIDER = 1.15  # than the law at its mode
STEP = 1e-3  # of second differences
WARMUP = 50
ROUNDS, PILOT = 6, 100  # of draws that move the proposals: so many for each dimension
ENOUGH = 0.5  # of them effective
RANK = 1e-12  # of the largest eigenvalue, below which one is a rounding error


def _factors(G, C):
    """Lower triangular factors of I + Cᵀ G_l C."""
    one = np.broadcast_to(np.eye(len(C)), G.shape)
    try:
        return np.linalg.cholesky(one + C.T @ G @ C)
    except np.linalg.LinAlgError:  # 1 is lost beside the rest, whose rank may be lower
        values, axes = np.linalg.eigh(G)
        values = np.where(values > RANK * values[:, -1:], values, 0.0)
        half = np.sqrt(values)[:, :, None] * (axes.transpose(0, 2, 1) @ C)
        R = np.linalg.qr(np.concatenate([one, half], axis=1), mode="r")
        return (R * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, :, None]).transpose(0, 2, 1)


class SlopeLaw:
    """The law of (log s, partial correlations, log σ) with β and u integrated out.

    Parameters
    ----------
    problem : skbayes_sg.groups.problem.GroupProblem
    """

    def __init__(self, problem):
        target, codes = problem.target, problem.codes[:, 0]
        weight, y = target.weight, target.data.facts[:, FACT_Y]
        rows = np.column_stack([problem.design, y])
        self.units = units_of(rows, weight, bool(target.intercept))
        rows = rows @ np.linalg.inv(self.units)
        columns = problem.design[:, problem.slopes[0]]
        z = np.column_stack([np.ones(len(y)), columns])
        self.K, self.D, L = z.shape[1], rows.shape[1] - 1, problem.sizes[0]

        def by_level(values):
            return np.stack([np.bincount(codes, weight * v, L) for v in values.T], axis=1)

        pairs = (z[:, :, None] * z[:, None, :]).reshape(len(y), -1)
        self.G = by_level(pairs).reshape(L, self.K, self.K)
        pairs = (z[:, :, None] * rows[:, None, :]).reshape(len(y), -1)
        self.S = by_level(pairs).reshape(L, self.K, self.D + 1)
        self.all = (rows.T * weight) @ rows
        self.total, prior = weight.sum(), target.prior
        self.prior, self.scale = prior[: self.D], problem.scales[0]
        self.noise = prior[self.D] if len(prior) > self.D else None
        self.n_pairs = self.K * (self.K - 1) // 2
        self.n = self.K + self.n_pairs + (self.noise is not None)

    def split(self, theta):
        """log s, the tangents of partial correlations, and log σ."""
        log_sigma = 0.0 if self.noise is None else theta[-1]
        return theta[: self.K], theta[self.K : self.K + self.n_pairs], log_sigma

    def conditional(self, theta):
        """(`Conditional` of β, C/σ, triangular factors of Q_l)."""
        log_sd, partial, log_sigma = self.split(theta)
        C = factor_of(log_sd, partial)[0] / np.exp(log_sigma)
        Q = _factors(self.G, C)
        inner = np.linalg.solve(Q, C.T @ self.S).reshape(-1, self.D + 1)
        R = np.linalg.qr(root_of(self.all - inner.T @ inner) @ self.units, mode="r")
        reference = 1.0 if self.noise is None else np.exp(log_sigma)
        return Conditional(R, self.prior, self.total, reference), C, Q

    def log_density(self, theta):
        """log p(θ | y), up to a constant."""
        log_sd, partial, log_sigma = self.split(theta)
        if not np.abs(theta).max() < 40.0:
            return -np.inf
        conditional, _, Q = self.conditional(theta)
        value = float(conditional.log_likelihood(np.array(log_sigma)))
        value += np.linalg.slogdet(conditional.axes)[1]
        value -= np.log(np.diagonal(Q, axis1=1, axis2=2)).sum()
        value += factor_of(log_sd, partial)[1] + log_prior(self.scale, log_sd).sum()
        return value if self.noise is None else value + log_prior(self.noise, theta[-1:]).sum()

    def draw_coefficients(self, rng, theta):
        """β and u of one draw of θ."""
        conditional, C, Q = self.conditional(theta)
        log_sigma = np.array([self.split(theta)[2]])
        beta = conditional.draw(rng, log_sigma)[0]
        residual = self.S @ self.units @ np.append(-beta, 1.0)  # Σ w z (y - x·β)
        sigma = np.exp(log_sigma[0])
        inner = np.linalg.solve(Q, (residual @ C)[..., None])
        inner = inner / sigma + rng.standard_normal(inner.shape)
        u = np.linalg.solve(Q.transpose(0, 2, 1), inner)[..., 0] @ C.T * sigma
        return beta, u


def mode_and_width(law):
    """The mode of θ, and a root of the inverse Hessian there."""
    start = np.zeros(law.n)
    start[: law.K] = -0.5 * np.log(law.total / len(law.G))
    if law.noise is not None:
        start[-1] = 0.5 * np.log(law.all[-1, -1] / law.total) + np.log(law.units[-1, -1])
        start[: law.K] += start[-1]
    options = {"maxfev": 400 * law.n, "xatol": 1e-4, "fatol": 1e-4}
    found = optimize.minimize(
        lambda x: -law.log_density(x), start, method="Nelder-Mead", options=options
    )
    mode, n = found.x, law.n
    H, steps = np.zeros((n, n)), STEP * np.eye(n)
    for i in range(n):
        for j in range(i + 1):
            ends = [
                a * b * law.log_density(mode + a * steps[i] + b * steps[j])
                for a in (1, -1) for b in (1, -1)
            ]  # fmt: skip
            H[i, j] = H[j, i] = -sum(ends) / (4.0 * STEP**2)
    values, axes = linalg.eigh(H)
    return mode, axes / np.sqrt(np.clip(values, 0.3, None))


def _proposed(law, mode, root, rng):
    """A draw of the proposals, and the logarithm of its weight."""
    x = rng.standard_normal(law.n) / np.sqrt(rng.chisquare(DF) / DF)
    place = mode + WIDER * (root @ x)
    return place, law.log_density(place) + 0.5 * (DF + law.n) * np.log1p(x @ x / DF)


def fitted_proposal(law, rng):
    """Centre and root of proposals that have the moments of their weighted draws."""
    mode, root = mode_and_width(law)
    for _ in range(ROUNDS):
        drawn = [_proposed(law, mode, root, rng) for _ in range(PILOT * law.n)]
        places, log_w = (np.array(part) for part in zip(*drawn, strict=True))
        log_w -= log_w.max()
        power, w = 1.0, np.exp(log_w)
        share = full = w.sum() ** 2 / (w @ w) / len(w)
        while share < 0.1:  # few weights decide: flatter ones
            power *= 0.7
            w = np.exp(power * log_w)
            share = w.sum() ** 2 / (w @ w) / len(w)
        mode = w @ places / w.sum()
        centred = places - mode
        C = (centred.T * w) @ centred / w.sum()
        root = np.linalg.cholesky(C + 1e-9 * np.trace(C) * np.eye(law.n))
        if full > ENOUGH:
            break
    return mode, root


def run_slopes(problem, request, watch=None):
    """Chains of independent proposals: a `GroupOutcome`."""
    law = SlopeLaw(problem)
    mode, root = fitted_proposal(law, streams.of_proposal(request.seed))
    n_kept = request.n_draws if request.keep is None else request.keep
    kept = kept_draws(request.n_draws, n_kept)
    effects = np.empty((problem.sizes[0] * law.K, request.n_chains, n_kept), dtype=np.float32)

    def chain(number):
        rng = streams.of_chain(request.seed, number).noise
        return _chain(law, mode, root, rng, request, kept, effects[:, number])

    found = in_threads(chain, range(request.n_chains), request.n_jobs)
    draws = np.stack([one[0] for one in found])
    first, second = sum(one[1] for one in found) / (request.n_chains * request.n_draws)
    moments = np.stack([first, np.sqrt(np.maximum(second - first**2, 0.0))])
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    ess, rhat = judged(draws, request)
    said = {"min_ess": ess, "max_rhat": rhat, "acceptance": np.mean([one[2] for one in found])}
    factors = [one[3] for one in found]
    return GroupOutcome(
        draws, [effects], [moments], "independence_mh", said, WARMUP, kept=kept,
        factors=[np.concatenate(factors)], thin=request.thin or 1,
    )  # fmt: skip


def _chain(law, mode, root, rng, request, kept, out):
    thin, places = request.thin or 1, {int(k): place for place, k in enumerate(kept)}
    draws, factors = [], np.empty((len(kept), law.K, law.K))
    sums, accepted, n_sweeps = np.zeros((2, len(out))), 0, WARMUP + thin * request.n_draws
    theta, weight = None, -np.inf
    for sweep in range(n_sweeps):
        new, own = _proposed(law, mode, root, rng)
        if theta is None or np.log(rng.random()) < own - weight:
            theta, weight, accepted = new, own, accepted + 1
        k, rest = divmod(sweep - WARMUP + 1, thin)
        if sweep < WARMUP or rest:
            continue
        beta, u = law.draw_coefficients(rng, theta)
        log_sd, partial, log_sigma = law.split(theta)
        C, _, correlations = factor_of(log_sd, partial)
        tail = [] if law.noise is None else [log_sigma]
        draws.append(np.concatenate([beta, tail, log_sd, correlations]))
        flat = u.ravel()
        sums += flat, np.square(flat)
        if k - 1 in places:
            out[:, places[k - 1]], factors[places[k - 1]] = flat, C
    return np.array(draws), sums, accepted / n_sweeps, factors
