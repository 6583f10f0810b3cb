r"""Posteriors of group effects, of learned scales and of the horseshoe, in NumPy.

Effects of levels are coefficients of one-hot columns (of slopes: times a column). Coefficients j
whose scale is unknown are

    θ_j = loc_j + u_j σ_j x_j,   σ_j⁻² = e^(-2 s_j) + c⁻²,   s = S h,

with the logarithms h of the scales, units u_j, and for the horseshoe its slab c. `Hierarchical` has
the joint density of z, where x = z but for slopes of levels, which are correlated with their
effects: x_b = ρ z_a + (1 - ρ²)^½ z_b. `Collapsed` integrates out coefficients, for normal noise.
"""

from dataclasses import replace

import numpy as np

from .density import Density, _prior, _read_positive, of_positive


class Scales:
    """Which coefficients have which scales: indices, S, units, locations, priors of e^h."""

    def __init__(self, where, S, unit, loc, priors, slab=np.inf, pairs=None, names=None):
        self.where, self.S, self.loc, self.priors = where, S, loc, priors
        self.unit, self.q = unit, slab**-2.0
        self.pairs = np.zeros((0, 2), dtype=int) if pairs is None else pairs  # (a, b), of one ρ
        self.names = names  # of the h that the package reports, by their numbers


class Hierarchical(Density):
    """U and its gradient in (z or φ of coefficients, φ_b, positive parameters, h, artanh ρ)."""

    symmetric = False

    def __init__(self, case):
        self.of_groups = bool(case.options.get("group_effects"))
        expanded, self.n_effects = _expanded(case)
        super().__init__(expanded)
        self.scales = self._of_groups(case) if self.of_groups else self._of_prior_object(case)
        own = self.scales
        self.kinds[own.where] = "Flat"
        self.k = own.unit * self.s_x[own.where] / self.s_y
        self.shift = own.loc * self.s_x[own.where] / self.s_y
        self.n_linear, self.n_positive = len(self.J), len(self.J) + len(self.extras)
        self.G, self.T = own.S.shape[1], int(len(own.pairs) > 0)
        self.D = self.n_positive + self.G + self.T

    def _of_groups(self, case):
        """Scales of effects, factor by factor, and then those of slopes."""
        prior = case.options.get("group_scale")
        prior = _prior("normal", 0.0, self.response) if prior is None else prior
        prior = prior if isinstance(prior, dict) else _read_positive(prior, self.response)
        codes, slope = _codes(case), _slope(case)
        sizes = [code.max() + 1 for code in codes]
        first = self.n_others = len(self.s_x) - self.n_effects
        lengths = sizes if slope is None else [*sizes, sizes[0]]
        number, m = np.repeat(np.arange(len(lengths)), lengths), sum(lengths)
        pairs = None
        if slope is not None:
            a = np.arange(sizes[0])
            pairs = np.column_stack([a, sum(sizes) + a])
        S = np.eye(number.max() + 1)[number]
        where, unit = first + np.arange(m), np.full(m, self.s_y)
        return Scales(where, S, unit, np.zeros(m), [(prior, self.s_y)] * S.shape[1], pairs=pairs)

    def _of_prior_object(self, case):
        """Scales of all coefficients, of an object such as ``Normal(scale=HalfCauchy())``."""
        prior, p = case.options["prior"], len(self.s_x)
        self.n_others = p
        unit, where = self.response / self.spread, np.arange(p)
        if type(prior).__name__ != "Normal":
            k = prior.n_relevant or max(0.1 * p, 0.5)
            rate = max(np.average(self.y * self.s_y + self.m_y, weights=self.w), 1e-3)
            noise = {"logistic": 2.0, "poisson": rate**-0.5, "counts": rate**-0.5}
            tau = k / (p - k) * noise.get(self.kind, 1.0) / np.sqrt(self.w.sum())
            priors = [(_prior("t", 0.0, 1.0, 1.0), 1.0)] * p + [(_prior("t", 0.0, tau, 1.0), 1.0)]
            S = np.column_stack([np.eye(p), np.ones(p)])
            return Scales(where, S, unit, np.zeros(p), priors, prior.slab, names=[p])
        groups = prior.scale_groups
        number = (
            np.zeros(p, dtype=int) if groups is None else np.unique(groups, return_inverse=1)[1]
        )
        number = where if isinstance(groups, str) else number
        unit = unit if isinstance(prior.scale.scale, str) else np.ones(p)
        S = np.eye(number.max() + 1)[number]
        priors = [(_read_positive(prior.scale, 1.0), 1.0)] * S.shape[1]
        return Scales(where, S, unit, np.full(p, prior.loc), priors)

    def _split(self, phi):
        n, m = self.n_linear, self.n_positive
        return phi[:, :n], phi[:, n:m], phi[:, m : m + self.G], phi[:, m + self.G :]

    def _mixed(self, z, t):
        """x of z."""
        if not self.T:
            return z
        a, b = self.scales.pairs.T
        x = z.copy()
        x[:, b] = np.tanh(t) * z[:, a] + z[:, b] / np.cosh(t)
        return x

    def _standardised(self, phi):
        """φ of the base class, x, and σ and e^(-2s) σ² of the coefficients with scales."""
        lin, extras, h, t = self._split(phi)
        x = self._mixed(lin[:, self.scales.where], t)
        s = np.clip(h @ self.scales.S.T, -150.0, 150.0)
        free = 1.0 / (1.0 + self.scales.q * np.exp(2.0 * s))
        sigma = np.exp(s) * np.sqrt(free)
        v = lin.copy()
        v[:, self.scales.where] = self.shift + self.k * sigma * x
        return np.column_stack([v, extras]), x, sigma, free

    def _block(self, phi, slopes):
        v, x, sigma, free = self._standardised(phi)
        lin, _, h, t = self._split(phi)
        z, own = lin[:, self.scales.where], self.scales
        U = super()._block(v, slopes)
        U, g = U if slopes else (U, None)
        U = U + 0.5 * (z**2).sum(axis=1) - 0.5 * np.log(free).sum(axis=1)
        U_h, g_h = self.of_scales(h)
        U = U + U_h + 2.0 * np.log(np.cosh(t)).sum(axis=1)
        if not slopes:
            return U
        of_x = g[:, own.where] * self.k * sigma
        g_h = g_h + (of_x * free * x + 1.0 - free) @ own.S
        of_z = z + of_x
        g_t = 2.0 * np.tanh(t)
        if self.T:
            a, b = own.pairs.T
            of_z[:, a] += np.tanh(t) * of_x[:, b]
            of_z[:, b] += (1.0 / np.cosh(t) - 1.0) * of_x[:, b]
            change = z[:, a] / np.cosh(t) ** 2 - z[:, b] * np.tanh(t) / np.cosh(t)
            g_t = g_t + (of_x[:, b] * change).sum(axis=1, keepdims=True)
        g[:, own.where] = of_z
        return U, np.column_stack([g, g_h, g_t])

    def of_scales(self, h):
        """-log p(h), and its gradient."""
        found = [
            of_positive(prior, h[:, k] + np.log(unit))
            for k, (prior, unit) in enumerate(self.scales.priors)
        ]
        return sum(value for value, _ in found), np.stack([slope for _, slope in found], axis=1)

    def theta(self, phi):
        """As reported: coefficients, intercept, positive, logarithms of scales, ρ, and effects."""
        _, _, h, t = self._split(phi)
        return self._reported(super().theta(self._standardised(phi)[0]), h, np.tanh(t))

    def _reported(self, theta, h, rho):
        p, m, own = len(self.s_x), self.n_others, self.scales
        h = h if own.names is None else h[:, own.names]
        tau = h + (np.log(self.s_y) if self.of_groups else 0.0)
        return np.column_stack(
            [theta[:, :m], theta[:, p:], tau, rho, self._by_level(theta[:, m:p])]
        )

    def _by_level(self, effects):
        """Effects in the order of the package: of each level its effect, then its slope."""
        if not self.T:
            return effects
        return effects[:, self.scales.pairs.ravel()]

    @property
    def has_inverse(self):
        """Whether `theta` tells all; the λ of a horseshoe are not reported."""
        return self.scales.names is None

    def phi(self, theta):
        """The inverse of `theta`."""
        m, G, n = self.n_others, self.G, theta.shape[1]
        rest = n - self.n_effects
        if self.T:
            order = np.argsort(self.scales.pairs.ravel())
            theta = np.column_stack([theta[:, :rest], theta[:, rest:][:, order]])
        middle = theta[:, m : rest - G - self.T]
        v = super().phi(np.column_stack([theta[:, :m], theta[:, rest:], middle]))
        t = np.arctanh(theta[:, rest - self.T : rest])
        h = theta[:, rest - G - self.T : rest - self.T]
        h = h - np.log(self.s_y) if self.of_groups else h
        own = self.scales
        z = (v[:, own.where] - self.shift) / (self.k * np.exp(h @ own.S.T))
        if self.T:
            a, b = own.pairs.T
            z[:, b] = (z[:, b] - np.tanh(t) * z[:, a]) * np.cosh(t)
        v[:, own.where] = z
        return np.column_stack([v, h, t])

    def starts(self, rng):
        """Zeros, with scales small and large, and random points."""
        starts = []
        for level in (0.0, -1.5, 1.0):
            start = np.zeros(self.D)
            start[self.n_positive : self.n_positive + self.G] = level
            starts += [start, start + 0.5 * rng.normal(size=self.D)]
        if self.kind == "robust":
            starts += [start + np.log(3.0) * np.eye(self.D)[self.n_linear + 1] for start in starts]
        return starts

    @property
    def cost(self):
        """Predicted seconds of U and its gradient at one point."""
        return self.n * (60e-9 + 1.0e-9 * self.p) * (2.0 if self.kind == "robust" else 1.0)


class Collapsed:
    """U of (log σ, h), for linear models with normal noise and priors, without correlations."""

    symmetric = False

    def __init__(self, joint):
        self.joint, d = joint, joint
        self.known = d.kind == "known"
        self.D = d.G + (not self.known)
        Z = np.column_stack([d.X, np.ones(d.n)]) if d.intercept else d.X
        self.G_data, self.Zy = (Z.T * d.w) @ Z, Z.T @ (d.w * d.y)
        self.yy, self.total = d.w @ d.y**2, d.w.sum()
        precision = np.where(d.kinds == "Flat", 0.0, d.scale**-2.0)
        self.G_prior = (d.J.T * precision) @ d.J
        self.b_prior = d.J.T @ (precision * (d.loc - d.c))
        self.rng = np.random.default_rng(0)

    @staticmethod
    def suits(joint):
        linear = joint.kind in ("linear", "known") and joint.gaussian and not joint.T
        return linear and len(joint.J) <= 150

    def _given(self, phi):
        """Coefficients given (log σ, h): precision, mean, Cholesky factor; and s, e^(-2 log σ)."""
        d, m, phi = self.joint, len(phi), np.clip(phi, -40.0, 40.0)
        own, log_sigma = d.scales, np.zeros(m) if self.known else phi[:, 0]
        t, s = np.exp(-2.0 * log_sigma), phi[:, self.D - d.G :] @ own.S.T
        M = t[:, None, None] * self.G_data + self.G_prior
        of_scale = (np.exp(-2.0 * s) + own.q) / d.k**2
        M[:, own.where, own.where] += of_scale
        b = t[:, None] * self.Zy + self.b_prior
        b[:, own.where] += of_scale * d.shift
        each = np.arange(M.shape[1])
        M[:, each, each] *= 1.0 + 1e-12  # so that all have a factor
        L = np.linalg.cholesky(M)
        mean = np.linalg.solve(M, b[:, :, None])[:, :, 0]
        return L, mean, b, s, t, log_sigma, of_scale

    def value(self, phi):
        with np.errstate(all="ignore"):
            return self._value(phi)[0]

    def _value(self, phi):
        d = self.joint
        L, mean, b, s, t, log_sigma, of_scale = found = self._given(phi)
        U = np.log(np.einsum("mjj->mj", L)).sum(axis=1) + self.total * log_sigma * (not self.known)
        U += 0.5 * (t * self.yy + (of_scale * d.shift**2).sum(axis=1) - (b * mean).sum(axis=1))
        U += s.sum(axis=1) + d.of_scales(phi[:, self.D - d.G :])[0]
        if not self.known:
            U += of_positive(d.positive[0], log_sigma + np.log(d.s_y))[0]
            U += 0.5 * (d.floor / d.s_y * np.exp(-log_sigma)) ** 2
        return np.where(np.isfinite(U), U, np.inf), found

    def __call__(self, phi):
        """The gradient is the mean of that of the joint density, given (log σ, h)."""
        d = self.joint
        U, (L, mean, _, s, t, log_sigma, _) = self._value(phi)
        own, V = d.scales, np.linalg.inv(np.einsum("mij,mkj->mik", L, L))
        square = (mean[:, own.where] - d.shift) ** 2 + np.einsum("mjj->mj", V)[:, own.where]
        g_h = (1.0 - np.exp(-2.0 * s) / d.k**2 * square) @ own.S
        g_h = g_h + d.of_scales(phi[:, self.D - d.G :])[1]
        if self.known:
            return U, g_h
        misfit = self.yy - 2.0 * mean @ self.Zy
        misfit += np.einsum("mij,ij->m", V + mean[:, :, None] * mean[:, None, :], self.G_data)
        cut = (d.floor / d.s_y * np.exp(-log_sigma)) ** 2
        of_sigma = of_positive(d.positive[0], log_sigma + np.log(d.s_y))[1]
        return U, np.column_stack([self.total - t * misfit + of_sigma - cut, g_h])

    def theta(self, phi):
        """One draw of the coefficients at each point."""
        d, out = self.joint, []
        for some in np.array_split(phi, max(1, len(phi) // 1000)):
            L, mean, *_, log_sigma, _ = self._given(some)
            z = np.linalg.solve(np.swapaxes(L, 1, 2), self.rng.normal(size=mean.shape)[:, :, None])
            v = np.column_stack([mean + z[:, :, 0], log_sigma[:, None][:, : len(d.extras)]])
            h = some[:, self.D - d.G :]
            out.append(d._reported(Density.theta(d, v), h, np.zeros((len(some), 0))))
        return np.concatenate(out)

    def starts(self, rng):
        """Zeros, with scales small and large."""
        return [
            np.r_[np.zeros(self.D - self.joint.G) + noise, np.full(self.joint.G, level)]
            + 0.1 * rng.normal(size=self.D)
            for level in (0.0, -1.5, 1.0) for noise in (0.0, -1.0)
        ]  # fmt: skip

    @property
    def cost(self):
        r = len(self.Zy)
        return 5e-6 + 2e-9 * r**2 + 1e-9 * r**3


def _codes(case):
    """The levels of each group column, as numbers from zero."""
    columns = case.options["group_effects"]
    return [np.unique(case.X[:, j], return_inverse=True)[1].ravel() for j in columns]


def _slope(case):
    """The column whose slopes vary, or None."""
    slopes = case.options.get("group_slopes")
    return None if slopes is None else case.X[:, next(iter(slopes.values()))[0]]


def _expanded(case):
    """The case with one-hot columns in the place of groups, last, and the number of these."""
    options = {k: v for k, v in case.options.items() if not k.startswith("group_")}
    if not case.options.get("group_effects"):
        return replace(case, options=options | {"prior": "flat"}), 0
    others = np.delete(case.X, case.options["group_effects"], axis=1)
    columns = [np.eye(code.max() + 1)[code] for code in _codes(case)]
    slope = _slope(case)
    if slope is not None:
        columns.append(columns[0] * slope[:, None])
    effects = np.concatenate(columns, axis=1)
    X = np.column_stack([others, effects])
    return replace(case, X=X, options=options), effects.shape[1]
