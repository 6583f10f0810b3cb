"""Independent references: posteriors by quadrature, importance sampling or long Hamiltonian runs.

All work on a `Density`, in whitened coordinates ψ with φ = A ψ + mode, and end in a `Reference`:
points in the parameters that the package reports, with weights and what is known of their errors.
One that cannot vouch for itself returns None. In order of preference:

* `conjugate`: σ on a grid, coefficients given σ in closed form (linear, normal or flat priors).
* `quadrature`: a grid in one or two dimensions.
* `importance`: draws of a mixture of multivariate t around all modes that SciPy finds, refitted to
  its own weighted draws; Pareto k below 0.7 by arviz-stats. `importance_about` does so about the
  farthest draws of a fit as well.
* `hamiltonian`: many chains from all modes and from points far away, Metropolis-corrected; R-hat of
  the ranks, effective sample sizes, and Stein's identities hold.
* `tempered`: several populations of points that move from a wide law to the posterior, each step
  corrected by resampling and Metropolis moves. They weigh modes that no chain passes between, and
  must agree.
* `drifted`: Hamiltonian chains from the draws of a fit, which must stay what they are.
"""

from dataclasses import dataclass

import numpy as np
from arviz_stats.base import array_stats
from scipy import linalg, optimize, stats
from scipy.special import gammaln
from scipy.stats import qmc

from .density import of_positive

LARGEST_K = 0.7
LEAST_ESS = 1000.0
MOST_WORK = 20.0  # seconds that a reference may be predicted to take
RHAT = 1.02
CHAINS = 32
LARGEST = 450  # parameters, beyond which Hamiltonian chains take longer than MOST_WORK


@dataclass
class Reference:
    """Weighted points of the posterior; `chains` where they are draws of Markov chains."""

    kind: str
    points: np.ndarray
    weights: np.ndarray
    ess: float = np.inf  # of the weights
    chains: np.ndarray = None


class Whitened:
    """The density in ψ, with all the modes that were found; ψ = 0 is the best of them."""

    def __init__(self, density, rng):
        self.density, self.D = density, density.D
        self.origin, self.A = np.zeros(density.D), self._from_fisher()
        found = [self._descend(start) for start in self._starts(rng)]
        self._centre(self._distinct(found))

    def __call__(self, psi):
        with np.errstate(all="ignore"):
            U, g = self.density(self.origin + psi @ self.A.T)
            return U - self.best, np.nan_to_num(np.nan_to_num(g) @ self.A)

    def value(self, psi):
        return self.density.value(self.origin + psi @ self.A.T) - self.best

    best, patience = 0.0, 8.0  # patience: of populations, in MOST_WORK

    def _from_fisher(self):
        """A factor of the inverse Fisher information at zero, as first coordinates."""
        d = self.density
        A = np.column_stack([d.X, np.ones(d.n)]) if d.intercept else d.X
        level = max(np.average(d.y, weights=d.w), 0.01)
        size = {"poisson": level, "logistic": 0.25, "softmax": 0.25, "known": 1.0}.get(d.kind, 2.0)
        rows = linalg.qr(np.sqrt(size * d.w)[:, None] * A, mode="r")[0][: A.shape[1]]
        root = np.sqrt(d.prior_precision())[:, None]
        M = np.concatenate([np.kron(np.eye(d.K), rows), root * d.J])
        unit = np.abs(M).max(axis=0)  # so that no square overflows
        unit = unit * linalg.norm(M / unit, axis=0)
        H = (M / unit).T @ (M / unit)
        values, vectors = linalg.eigh(H)
        values = np.maximum(values, 1e-13 * values.max())
        full = np.eye(self.D)
        full[: len(H), : len(H)] = vectors / np.sqrt(values) / unit[:, None]
        full[len(H) :, len(H) :] *= 1.0 / np.sqrt(d.w.sum())
        return full

    def _starts(self, rng):
        """Zeros, fits to few rows, points of the prior, and single columns, in ψ."""
        d = self.density
        n_linear, starts = len(d.J), [np.zeros(self.D)]
        if d.kind in ("logistic", "softmax", "poisson", "known") and d.gaussian:
            return [linalg.solve(self.A, start) for start in starts]  # it is log-concave
        size = d.n * d.K * d.p
        many = 72 if size < 1e4 else 24 if size < 1e6 else 6  # 24: a mode is missed in one of 20
        solve = np.linalg.pinv(d.X)
        for k in range(many):
            start = np.zeros(self.D)
            if d.K == 1 and d.kind in ("linear", "robust", "known"):
                few = (1 + k % 2) * (d.p + 1)  # as few as a line through good rows can have
                rows = rng.choice(d.n, min(d.n, few), replace=False)
                lin = np.column_stack([d.X, np.ones(d.n)])[:, :n_linear]
                start[:n_linear] = linalg.lstsq(lin[rows], d.y[rows])[0]
                misfit = np.abs(d.y - lin @ start[:n_linear])
                start[n_linear : n_linear + 1] = np.log(np.median(misfit) + 1e-9)
            elif rng.random() < 0.5 and d.K == 1:
                j = rng.integers(d.p)
                start[j] = rng.normal() * 2.0
            else:
                start[:n_linear] = rng.normal(size=n_linear)
            starts.append(start)
        if d.K == 1 and d.kind in ("linear", "robust", "known"):
            start = np.zeros(self.D)
            start[: d.p] = solve @ d.y
            starts.append(start)
        if d.kind == "robust":
            last = np.eye(self.D)[-1]
            starts = [start + np.log(df) * last for start in starts for df in (2.0, 20.0)]
        return [linalg.solve(self.A, start) for start in starts]

    def _descend(self, psi):
        def one(psi):
            U, g = self(psi[None])
            return float(np.where(np.isfinite(U[0]), U[0], 1e300)), np.nan_to_num(g[0])

        options = {"maxiter": 2000, "maxfun": 3000, "ftol": 1e-14, "gtol": 1e-8, "maxcor": 20}
        found = optimize.minimize(one, psi, jac=True, method="L-BFGS-B", options=options)
        return found.fun, found.x

    def _centre(self, found):
        """New coordinates at the best mode; the other modes that matter, in them."""
        found = sorted((f for f in found if np.isfinite(f[0])), key=lambda f: f[0])
        self.best, mode = found[0]
        L = self._curvature_factor(mode)
        self.modes = [np.zeros(self.D)]
        for U, psi in found[1:]:
            away = linalg.solve(L, psi - mode)
            if U - self.best < 15.0 + 0.5 * self.D and all(
                linalg.norm(away - other) > 1.5 for other in self.modes
            ):
                self.modes.append(away)
        self.modes = self.modes[:6]
        self.origin, self.A = self.origin + self.A @ mode, self.A @ L
        self.factors = [np.eye(self.D)] + [self._curvature_factor(m) for m in self.modes[1:]]

    def _curvature_factor(self, at):
        """L with L Lᵀ about the covariance: secants as long as the density is wide."""
        U0 = self(at[None])[0][0]
        h = np.ones(self.D)
        for _ in range(30):
            up = self.value(at + np.diag(h)) - U0
            down = self.value(at - np.diag(h)) - U0
            rise = np.nan_to_num(0.5 * (up + down), nan=1e6, posinf=1e6)
            if ((rise > 0.2) & (rise < 1.2)).all():
                break
            h = h * np.clip(np.sqrt(0.5 / np.maximum(rise, 1e-4)), 0.1, 4.0)
        H = (self(at + np.diag(h))[1] - self(at - np.diag(h))[1]) / (2.0 * h[:, None])
        H = np.nan_to_num(0.5 * (H + H.T))
        values, vectors = linalg.eigh(H * np.outer(h, h))
        values = np.maximum(values, 1e-6 * values.max())
        return h[:, None] * vectors / np.sqrt(values)

    def _distinct(self, found):
        return found

    def point(self, psi):
        return self.density.theta(self.origin + psi @ self.A.T)

    def judged(self, psi):
        """What chains must agree about: coordinates, predictors, and the distance from the mode."""
        points = self.point(psi.reshape(-1, self.D))
        eta = self.density.predictors(points)[0].reshape(*psi.shape[:2], -1)
        distance = np.log((psi**2).sum(axis=2, keepdims=True))
        return np.concatenate([psi, eta[..., np.ptp(eta, axis=(0, 1)) > 0.0], distance], axis=2)

    def seconds(self, n_evaluations):
        """Predicted time of so many evaluations of U and its gradient."""
        d = self.density
        each = d.n * d.K * (40e-9 + 0.7e-9 * d.p) + d.D**2 * 1e-9
        return n_evaluations * each * (2.0 if d.kind == "robust" else 1.0)


class Free(Whitened):
    """A density that brings its own starts, its cost, and coordinates of unit size.

    If it is symmetric, with a `theta` that symmetries leave alone, then chains are judged by that,
    and one of several modes that differ by a symmetry is enough.
    """

    patience = 2.0

    def _from_fisher(self):
        return np.eye(self.D)

    def _starts(self, rng):
        return self.density.starts(rng)

    def _distinct(self, found):
        if not self.density.symmetric:
            return found
        kept = {}
        for U, psi in sorted(found, key=lambda f: f[0]):
            kept.setdefault(tuple(self.density.theta(psi[None])[0].round(2)), (U, psi))
        return list(kept.values())

    def judged(self, psi):
        if not self.density.symmetric:
            return psi
        return self.point(psi.reshape(-1, self.D)).reshape(*psi.shape[:2], -1)

    def seconds(self, n_evaluations):
        return n_evaluations * self.density.cost


# -- closed form given σ --------------------------------------------------------------------------


def conjugate(density, rng, size=20_000):
    """Linear regression with normal or flat priors; exact draws."""
    d = density
    if d.kind not in ("linear", "known") or not d.gaussian:
        return None
    root = np.sqrt(d.w)
    A = np.column_stack([d.X, np.ones(d.n)]) if d.intercept else d.X
    y, lam = root * d.y, np.sqrt(d.prior_precision())
    Q, R = linalg.qr(np.concatenate([root[:, None] * A, lam[:, None] * d.J]), mode="economic")
    if np.abs(np.diag(R)).min() < 1e-13 * np.abs(np.diag(R)).max():
        return None
    # Divide and conquer does not converge for some matrices with many equal singular values.
    P, c, Vt = linalg.svd(Q[: d.n], full_matrices=False, lapack_driver="gesvd")
    P, c, Vt = _complete(P, c, Vt, R.shape[0])
    bottom = Q[d.n :] @ Vt.T
    offset = lam * (d.c - d.loc)
    target = P.T @ y
    rest = ((y - P @ target) ** 2).sum()
    s2 = (bottom**2).sum(axis=0)
    h_prior = -bottom.T @ offset

    def given(log_sigma):
        t = np.exp(-2.0 * log_sigma)[:, None]
        precision = c**2 * t + s2
        mean = (c * target * t + h_prior) / precision
        misfit = rest * t[:, 0] + t[:, 0] * ((target - c * mean) ** 2).sum(axis=1)
        misfit += ((mean @ bottom.T + offset) ** 2).sum(axis=1)
        log_p = -d.w.sum() * log_sigma - 0.5 * np.log(precision).sum(axis=1) - 0.5 * misfit
        return log_p, mean, precision

    if d.kind == "known":
        s, p = np.zeros(1), np.ones(1)
    else:

        def log_density(s):
            log_p, _, _ = given(s)
            log_p -= 0.5 * (d.floor / d.s_y * np.exp(-s)) ** 2
            return log_p - of_positive(d.positive[0], s + np.log(d.s_y))[0]

        s = np.linspace(-24.0, 12.0, 20_001)
        for _ in range(2):
            log_p = log_density(s)
            inside = s[log_p > log_p.max() - 32.0]
            step = s[1] - s[0]
            s = np.linspace(inside[0] - step, inside[-1] + step, 20_001)
        log_p = log_density(s)
        p = np.exp(log_p - log_p.max())
        if max(p[0], p[-1]) > 1e-8:
            return None
    which = rng.choice(len(s), size, p=p / p.sum())
    _, mean, precision = given(s[which])
    z = mean + rng.normal(size=mean.shape) / np.sqrt(precision)
    phi = linalg.solve_triangular(R, (z @ Vt).T).T
    if d.kind == "linear":
        phi = np.column_stack([phi, s[which]])
    return Reference("conjugate", d.theta(phi), np.full(size, 1.0 / size), size)


def _complete(P, c, Vt, D):
    """A singular value decomposition with all D directions, also where there are fewer rows."""
    if len(c) == D:
        return P, c, Vt
    more = linalg.null_space(Vt).T
    P = np.column_stack([P, np.zeros((len(P), D - len(c)))])
    return P, np.r_[c, np.zeros(D - len(c))], np.concatenate([Vt, more])


# -- quadrature -----------------------------------------------------------------------------------


def quadrature(white, rng):
    """Midpoints of a grid in the quantiles of a wide t; for one or two parameters."""
    del rng
    sides = {1: 20_000, 2: 300}
    if white.D not in sides:
        return None
    side = sides[white.D]
    if white.seconds(side**white.D) > MOST_WORK:
        return None
    reach = max(1.5, *(np.abs(mode).max() for mode in white.modes))
    u = (np.arange(side) + 0.5) / side
    x, log_q = reach * stats.t.ppf(u, 2), stats.t.logpdf(stats.t.ppf(u, 2), 2)
    grid = np.stack(np.meshgrid(*[x] * white.D, indexing="ij"), axis=-1).reshape(-1, white.D)
    log_q = sum(np.meshgrid(*[log_q] * white.D, indexing="ij")).ravel()
    log_w = -white.value(grid) - log_q
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    if (w > 1e-12).sum() < 20**white.D or not _halves_agree(w.reshape([side] * white.D)):
        return None
    return Reference("quadrature", white.point(grid), w)


def _halves_agree(w):
    """Whether every other place of the grid, along each axis, finds about the same mass.

    A narrow mode that falls between the places has most of its mass at few of them.
    """
    for axis in range(w.ndim):
        even, odd = (np.take(w, range(k, w.shape[axis], 2), axis=axis) for k in (0, 1))
        if np.abs(even - odd).sum() > 0.5 or abs(even.sum() - odd.sum()) > 0.01:
            return False
    return True


# -- importance sampling --------------------------------------------------------------------------


class Mixture:
    """A mixture of multivariate t, with a wide copy of each component for the tails."""

    def __init__(self, means, factors, shares):
        D = len(means[0])
        self.parts = []
        for mean, L, share in zip(means, factors, shares, strict=True):
            self.parts += [(mean, 1.1 * L, 6.0, 0.85 * share), (mean, 3.0 * L, 2.0, 0.15 * share)]
        self.D = D

    def draw(self, size, rng):
        shares = np.array([part[3] for part in self.parts])
        number = rng.multinomial(size, shares / shares.sum())
        uniform = qmc.Sobol(self.D, seed=rng).random(int(2 ** np.ceil(np.log2(size))))[:size]
        z = stats.norm.ppf(np.clip(rng.permutation(uniform), 1e-12, 1 - 1e-12))
        out, first = [], 0
        for (mean, L, df, _), k in zip(self.parts, number, strict=True):
            scale = np.sqrt(df / rng.chisquare(df, k))[:, None]
            out.append(mean + (z[first : first + k] * scale) @ L.T)
            first += k
        return np.concatenate(out)

    def log_parts(self, psi):
        found = []
        for mean, L, df, share in self.parts:
            z = linalg.solve(L, (psi - mean).T).T
            log_q = -0.5 * (df + self.D) * np.log1p((z**2).sum(axis=1) / df)
            log_q += _log_t_constant(self.D, df) - np.linalg.slogdet(L)[1]
            found.append(log_q + np.log(share))
        return np.stack(found)


def _log_t_constant(D, df):
    return gammaln(0.5 * (df + D)) - gammaln(0.5 * df) - 0.5 * D * np.log(df * np.pi)


def _weigh(white, mixture, size, rng):
    psi = mixture.draw(size, rng)
    logs = mixture.log_parts(psi)
    log_q = np.logaddexp.reduce(logs, axis=0)
    U = white.value(psi)
    inverse = np.nan_to_num(log_q + U, posinf=1e12)  # log q - log p
    try:
        log_w, k = array_stats.psislw(inverse)
    except ValueError:  # all large weights are the same: the density is beyond the range of floats
        log_w, k = np.full(size, np.nan), np.inf
    return psi, np.exp(log_w - np.logaddexp.reduce(log_w)), float(k), logs - log_q


def importance(white, rng, mixture=None, wanted=0.5):
    """Weighted draws of a mixture of t that was fitted to its own weighted draws.

    Until their effective number is the share `wanted`.
    """
    if white.D > 40:
        return None
    size = int(np.clip(MOST_WORK / 6.0 / white.seconds(1), 2000, 20_000))
    if white.seconds(size) > 3.0 * MOST_WORK:
        return None
    n_modes = len(white.modes)
    mixture = mixture or Mixture(white.modes, white.factors, np.full(n_modes, 1.0 / n_modes))
    for _ in range(4):
        psi, w, k, logs = _weigh(white, mixture, size, rng)
        ess = 1.0 / (w**2).sum()
        if not np.isfinite(ess):
            return None
        if k < 0.5 and ess > max(wanted * size, LEAST_ESS):
            break
        mixture = _refitted(mixture, psi, w, logs)
    if not (k < LARGEST_K and ess > LEAST_ESS):
        return None
    return Reference("importance", white.point(psi), w, ess)


def importance_about(white, rng, phi):
    """`importance` that also looks where given points lie far away, along each axis of φ.

    References that begin at the modes may miss a tail with a few thousandths of the mass, which
    makes half of a standard deviation. Wherever the points come from, the weights decide.
    """
    psi = linalg.solve(white.A, (phi - white.origin).T).T
    n, means, factors = max(len(psi) // 200, white.D + 2), list(white.modes), list(white.factors)
    shares = [0.5 / len(means)] * len(means) + [0.25 / white.D] * (2 * white.D)
    for order in np.argsort(phi, axis=0).T:
        for far in (psi[order[:n]], psi[order[-n:]]):
            means.append(far.mean(axis=0))
            C = np.cov(far.T, bias=True).reshape(white.D, white.D) + np.eye(white.D)
            factors.append(linalg.cholesky(C, lower=True))
    return importance(white, rng, Mixture(means, factors, shares), wanted=0.1)


def _refitted(mixture, psi, w, logs):
    """Means, covariances and shares of the components, from weighted draws."""
    means, factors, shares = [], [], []
    for j in range(0, len(mixture.parts), 2):
        r = w * np.exp(np.logaddexp(logs[j], logs[j + 1]))
        share, old = r.sum(), mixture.parts[j][1] / 1.1
        if not share > 1e-12:  # too little to fit anything to
            means.append(mixture.parts[j][0])
            factors.append(old)
            shares.append(0.02)
            continue
        mean, n = r @ psi / share, share**2 / (r**2).sum()
        C = (psi - mean).T @ (r[:, None] * (psi - mean)) / share
        trust = n / (n + 5.0 * mixture.D)
        C = trust * C + (1.0 - trust) * old @ old.T
        means.append(mean)
        factors.append(linalg.cholesky(C + 1e-12 * np.trace(C) * np.eye(len(C)), lower=True))
        shares.append(max(share, 0.02))
    return Mixture(means, factors, np.array(shares) / sum(shares))


# -- Hamiltonian Monte Carlo ----------------------------------------------------------------------


class _Chains:
    """Chains that move side by side, with common steps and a common metric L Lᵀ."""

    def __init__(self, white, psi, rng):
        self.white, self.psi, self.rng = white, psi, rng
        self.U, self.g = white(psi)
        self.L, self.log_eps, self.t = np.eye(white.D), np.log(0.3), 0

    def move(self, adapt):
        """A trajectory of every chain, with its share of gradients."""
        rng, L = self.rng, self.L
        self.t += 1
        eps = np.exp(self.log_eps) * rng.uniform(0.6, 1.1) * (0.2 if self.t % 6 == 0 else 1.0)
        n = int(np.clip(np.ceil(rng.uniform(0.6, 1.2) * 1.6 / eps), 1, 32))
        v = rng.normal(size=self.psi.shape)
        before = self.U + 0.5 * (v**2).sum(axis=1)
        psi, g = self.psi, self.g
        v = v - 0.5 * eps * g @ L
        for k in range(n):
            psi = psi + eps * v @ L.T
            U, g = self.white(psi)
            v = v - (0.5 if k == n - 1 else 1.0) * eps * g @ L
        with np.errstate(all="ignore"):
            chance = np.exp(np.minimum(0.0, before - U - 0.5 * (v**2).sum(axis=1)))
        chance = np.nan_to_num(chance)
        taken = rng.random(len(psi)) < chance
        self.psi = np.where(taken[:, None], psi, self.psi)
        self.g, self.U = np.where(taken[:, None], g, self.g), np.where(taken, U, self.U)
        if adapt and self.t % 6:
            self.log_eps += (chance.mean() - 0.85) * 2.0 / np.sqrt(5.0 + adapt)
            self.log_eps = float(np.clip(self.log_eps, np.log(1e-3), np.log(1.2)))
        return n

    def refit(self, draws):
        flat = draws.reshape(-1, draws.shape[-1])
        n, D = flat.shape
        C = np.cov(flat.T).reshape(D, D)
        trust = n / (n + 10.0 * D)
        C = trust * C + (1.0 - trust) * np.diag(np.diag(C))
        self.L = linalg.cholesky(C + 1e-9 * np.trace(C) / D * np.eye(D), lower=True)


def _spread_starts(white, rng):
    """Chains around all modes, some of them far out, but not where U is enormous."""
    which = np.arange(CHAINS) % len(white.modes)
    modes, wide = np.array(white.modes)[which], np.where(np.arange(CHAINS) % 4 == 3, 3.0, 1.0)
    away = [white.factors[k] @ rng.normal(size=white.D) for k in which] * wide[:, None]
    for _ in range(20):
        steep = white.value(modes + away) > 30.0 + 5.0 * white.D
        away[steep] *= 0.7
    return modes + away


def hamiltonian(white, rng, warmup=(60, 60, 100), rounds=4, each=80):
    """Draws of chains that agree; None where they do not, or would take too long."""
    if white.seconds(CHAINS * 10 * (sum(warmup) + each)) > MOST_WORK:
        return None
    chains, budget = _Chains(white, _spread_starts(white, rng), rng), 2.0 * MOST_WORK
    for length in warmup:
        kept = []
        for k in range(length):
            budget -= white.seconds(CHAINS * chains.move(adapt=k + 1))
            kept.append(chains.psi)
            if budget < 0.0:
                return None
        chains.refit(np.stack(kept[length // 3 :]))
        chains.log_eps = min(chains.log_eps, 0.0)
    draws, slopes = [], []
    for _ in range(rounds):
        for _ in range(each):
            budget -= white.seconds(CHAINS * chains.move(adapt=0))
            draws.append(chains.psi)
            slopes.append(chains.g)
        if budget < -MOST_WORK:
            return None
        psi, g = np.stack(draws, axis=1), np.stack(slopes, axis=1)
        if _agree(white.judged(psi)) and _stein(psi, g):
            points = white.point(psi.reshape(-1, white.D))
            weights = np.full(len(points), 1.0 / len(points))
            chains = points.reshape(*psi.shape[:2], -1)
            return Reference("hamiltonian", points, weights, np.inf, chains)
        if budget < 0.0:
            return None
    return None


def drifted(white, rng, phi, n_chains=200, warmup=40, length=120):
    """Where Hamiltonian chains go that begin at given points; None if too slow, or if they stay.

    Right draws stay what they are, also where chains from elsewhere do not arrive.
    """
    if white.seconds(n_chains * 10 * (warmup + length)) > 2.0 * MOST_WORK:
        return None
    psi = linalg.solve(white.A, (phi - white.origin).T).T
    chains = _Chains(white, rng.permutation(psi)[:n_chains], rng)
    chains.refit(psi[None])
    budget, draws = 4.0 * MOST_WORK, []
    for k in range(warmup + length):
        budget -= white.seconds(n_chains * chains.move(adapt=k + 1 if k < warmup else 0))
        draws.append(chains.psi)
        if budget < 0.0 and k < 2 * warmup:
            return None
        if budget < 0.0:
            break
    psi = np.stack(draws[len(draws) // 2 :], axis=1)
    if (psi[:, 1:, 0] != psi[:, :-1, 0]).mean() < 0.3:
        return None
    points = white.point(psi.reshape(-1, white.D))
    weights, own = np.full(len(points), 1.0 / len(points)), points.reshape(*psi.shape[:2], -1)
    return Reference("drift", points, weights, np.inf, own)


def _agree(psi):
    """R-hat of ranks and of distances from the median, effective sizes in the middle and tails."""
    by_parameter = np.moveaxis(psi, 2, 0)
    if array_stats.rhat(by_parameter).max() > RHAT:
        return False
    bulk = array_stats.ess(by_parameter, method="bulk").min()
    tail = array_stats.ess(by_parameter, method="tail", prob=(0.05, 0.95)).min()
    return min(bulk, tail) > LEAST_ESS


def _stein(psi, g):
    """E ∇U = 0 and E (ψ - m)·∇U = 1, within four standard errors and 3 %."""
    centred = psi - psi.mean(axis=(0, 1))
    for values, expected in [(g, 0.0), (centred * g, 1.0)]:
        by_parameter = np.moveaxis(values, 2, 0)
        se = array_stats.mcse(by_parameter, method="mean")
        if (np.abs(values.mean(axis=(0, 1)) - expected) > 0.03 + 4.5 * se).any():
            return False
    return True


# -- tempering ------------------------------------------------------------------------------------


def tempered(white, rng, n_runs=6, moves=8):
    """Points of sequential Monte Carlo; None where the runs do not agree."""
    reach = 4.0 + 1.5 * np.abs(white.modes).max(axis=0)
    for size in (1000, 5000):
        if white.D > 12 or white.seconds(n_runs * size * moves * 30) > white.patience * MOST_WORK:
            return None
        try:
            runs = np.stack([_population(white, rng, reach, size, moves) for _ in range(n_runs)])
        except linalg.LinAlgError:  # a population without a spread
            return None
        if array_stats.rhat(np.moveaxis(white.judged(runs), 2, 0)).max() < RHAT:
            points = white.point(runs.reshape(-1, white.D))
            weights = np.full(len(points), 1.0 / len(points))
            return Reference("tempered", points, weights, len(points) / 8.0)
    return None


def _population(white, rng, reach, size, moves):
    """A population at the end of its way from a t with three degrees of freedom."""
    psi = reach * rng.standard_t(3, (size, white.D))
    U, beta = white.value(psi), 0.0

    def wide(psi):
        return stats.t.logpdf(psi / reach, 3).sum(axis=1)

    log_q = wide(psi)
    while beta < 1.0:
        rise = np.where(np.isfinite(U), -U - log_q, -1e300)
        step = _step(rise, 1.0 - beta)
        beta = min(1.0, beta + step)
        w = np.exp(step * (rise - rise.max()))
        kept = np.searchsorted(np.cumsum(w) / w.sum(), (np.arange(size) + rng.random()) / size)
        kept = np.minimum(kept, size - 1)
        psi, U, log_q = psi[kept], U[kept], log_q[kept]
        for k in range(moves if beta < 1.0 else 5 * moves):
            L = linalg.cholesky(np.cov(psi.T).reshape(white.D, -1) + 1e-12 * np.eye(white.D))
            jump = (1.0, 0.4, 0.15, 0.05)[k % 4] * 2.4 / np.sqrt(white.D)
            new = psi + jump * rng.normal(size=psi.shape) @ L
            U_new, q_new = white.value(new), wide(new)
            rise = beta * (U - U_new) + (1.0 - beta) * (q_new - log_q)
            taken = np.log(rng.random(size)) < np.nan_to_num(rise, nan=-np.inf)
            psi = np.where(taken[:, None], new, psi)
            U, log_q = np.where(taken, U_new, U), np.where(taken, q_new, log_q)
    return psi


def _step(rise, most):
    """The step of the exponent after which 0.6 of the points are effective."""

    def share(step):
        w = np.exp(step * (rise - rise.max()))
        return w.sum() ** 2 / (w**2).sum() / len(w)

    low, high = 0.0, most
    if share(most) > 0.6:
        return most
    for _ in range(40):
        middle = np.sqrt(low * high) if low > 0.0 else 0.5 * high
        low, high = (middle, high) if share(middle) > 0.6 else (low, middle)
    return max(low, 1e-12)


def references(density, seed):
    """References of a posterior, one after the other, as they are asked for."""
    rng = np.random.default_rng([seed, 77])
    found = conjugate(density, rng)
    if found is not None:
        yield found
    if density.D > LARGEST:
        return
    yield from in_turn(Whitened(density, rng), rng)


def in_turn(white, rng):
    """All references that a whitened density allows; none where one of its modes has no spread."""
    if not np.isfinite(white.factors).all():
        return
    for method in (quadrature, importance, hamiltonian, tempered):
        found = method(white, rng)
        if found is not None:
            yield found
