r"""The posterior of a case, written down from the documentation, in NumPy.

    U(φ) = -log p(θ | X, y), with θ = J φ + c for coefficients and intercepts,

where φ belongs to standardised columns and responses, so that offsets and units lose no digits. A
positive parameter is sampled as its logarithm. Nothing here is imported from the package: priors
are objects whose class names and parameters are read.
"""

import numpy as np
from scipy import linalg, sparse
from scipy.special import digamma, expit, gammaln

BLOCK = 200_000  # predictors at a time, which stay in cache
AUTO = 2.5


def _prior(kind, loc=0.0, scale=1.0, shape=0.0):
    return {"kind": kind, "loc": loc, "scale": scale, "shape": shape}


def _read_prior(prior, auto):
    """Kind, location, scale and shape of a string or an object; `auto` is the scale of "auto"."""
    if isinstance(prior, str):
        kind = {"normal": "Normal", "laplace": "Laplace", "student_t": "StudentT", "flat": "Flat"}
        shape = 4.0 if prior == "student_t" else 0.0
        return _prior(kind[prior], 0.0, 1.0 if prior == "flat" else auto, shape)
    kind, scale = type(prior).__name__, getattr(prior, "scale", 1.0)
    scale = auto if isinstance(scale, str) else scale
    return _prior(kind, getattr(prior, "loc", 0.0), scale, getattr(prior, "df", 0.0))


def _read_positive(prior, auto):
    """Kind, scale and two numbers of a prior of a positive parameter."""
    named = {"half_student_t": ("t", 3.0), "half_cauchy": ("t", 1.0), "half_normal": ("normal", 0)}
    if isinstance(prior, str):
        kind, shape = named[prior]
        return _prior(kind, 0.0, auto, shape)
    name, scale = type(prior).__name__, getattr(prior, "scale", 1.0)
    scale = auto if isinstance(scale, str) else scale
    if name == "Gamma":
        return _prior("gamma", 0.0, 1.0 / prior.rate, prior.shape)
    if name == "InverseGamma":
        return _prior("inverse_gamma", 0.0, np.sqrt(2.0 * prior.beta), prior.alpha)
    shape = {"HalfStudentT": getattr(prior, "df", 3.0), "HalfCauchy": 1.0}.get(name, 0.0)
    return _prior("normal" if name == "HalfNormal" else "t", 0.0, scale, shape)


def of_positive(prior, s):
    """-log(p(v) v) and its derivative in s = log v."""
    a = prior["shape"]
    with np.errstate(over="ignore"):
        z2 = np.exp(2.0 * (s - np.log(prior["scale"])))
        if prior["kind"] == "t":
            return 0.5 * (a + 1) * np.log1p(z2 / a) - s, (a + 1) / (a / z2 + 1.0) - 1.0
        if prior["kind"] == "normal":
            return 0.5 * z2 - s, z2 - 1.0
        if prior["kind"] == "gamma":
            z = np.sqrt(z2)
            return z - a * s, z - a
        return 0.5 / z2 + 2.0 * a * s, 2.0 * a - 1.0 / z2


def _merged(X, y, w):
    """Equal rows as one, where there are many of them."""
    key = np.column_stack([X, y]) @ np.random.default_rng(0).normal(size=X.shape[1] + 1)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    if len(first) > 0.7 * len(y):
        return X, y, w
    same = np.array_equal(X[first][which], X) and np.array_equal(y[first][which], y)
    return (X[first], y[first], np.bincount(which, w)) if same else (X, y, w)


class Density:
    """U and its gradient, for many φ at a time."""

    def __init__(self, case):
        options, model = case.options, case.estimator
        X = case.X.toarray() if sparse.issparse(case.X) else np.asarray(case.X)
        X, w = X.astype(float), np.ones(X.shape[0]) if case.weight is None else case.weight
        exposure = None if case.exposure is None else case.exposure[w > 0.0]
        X, y, w = X[w > 0.0], np.asarray(case.y)[w > 0.0], w[w > 0.0]
        self.known_noise = options.get("noise") if model.endswith("LinearRegression") else None
        self.kind = self._kind(model, y)
        if self.kind in ("logistic", "softmax"):
            classes, y = np.unique(y, return_inverse=True)
            if options.get("class_weight") == "balanced":
                w = w * (w.sum() / (len(classes) * np.bincount(y, w)))[y]
        self.K = len(classes) if self.kind == "softmax" else 1
        self.intercept = options.get("fit_intercept", True)
        extras = {"linear": ["noise_std"], "robust": ["noise_std", "df"], "counts": ["dispersion"]}
        self.extras = extras.get(self.kind, [])
        self._units(X, y.astype(float), w)
        self._priors(options)
        X, y = (X - self.m_x) / self.s_x, (y - self.m_y) / self.s_y
        if exposure is not None and self.kind == "poisson":  # as rates, with exposures as weights
            y, w = y / exposure, w * exposure
        self.exposure = 1.0 if exposure is None else exposure
        self.X, self.y, self.w = (X, y, w) if self.kind == "counts" else _merged(X, y, w)
        if self.kind == "known":
            self.w = self.w / (self.known_noise / self.s_y) ** 2
        self.n, self.p = self.X.shape
        self.D = len(self.J) + len(self.extras)

    def _kind(self, model, y):
        if model.endswith("LogisticRegression"):
            return "logistic" if len(np.unique(y)) == 2 else "softmax"
        kind = {"PoissonRegressor": "poisson", "RobustRegression": "robust"}
        kind["NegativeBinomialRegressor"] = "counts"
        found = kind.get(model.removeprefix("Bayesian"), "linear")
        return found if self.known_noise is None else "known"

    def _units(self, X, y, w):
        mean = w @ X / w.sum()
        sd = np.sqrt(w @ (X - mean) ** 2 / w.sum())
        constant = sd <= 1e-8 * np.abs(mean)
        self.spread = np.where(constant, np.where(mean == 0.0, 1.0, np.abs(mean)), sd)
        self.m_x = mean if self.intercept else np.zeros_like(mean)
        self.s_x = self.spread
        self.response, self.m_y, self.s_y, self.floor = 1.0, 0.0, 1.0, 0.0
        if self.kind not in ("linear", "robust", "known"):
            return
        middle = np.average(y, weights=w)
        spread, size = np.sqrt(np.average((y - middle) ** 2, weights=w)), np.abs(y).max()
        self.floor = max(1e-12 * size, 1e-9 * spread) or 1e-14
        self.response = spread if spread > self.floor else size or 1.0
        self.m_y, self.s_y = middle if self.intercept else 0.0, self.response

    def _priors(self, options):
        """θ = J φ + c, and the priors of θ and of positive parameters."""
        p, K, b = len(self.m_x), self.K, self.intercept
        block = np.zeros((p + b, p + b))
        block[:p, :p] = np.diag(self.s_y / self.s_x)
        c = np.zeros(p + b)
        if b:
            block[p, :p], block[p, p], c[p] = -self.m_x * self.s_y / self.s_x, self.s_y, self.m_y
        self.J, self.c = np.kron(np.eye(K), block), np.tile(c, K)
        regressor = self.kind not in ("logistic", "softmax")
        auto = AUTO * self.response / self.spread if regressor else np.ones(p)
        prior = _read_prior(options.get("prior", "normal"), auto)
        of_b = _prior("Normal", 0.0, 10.0)
        if self.kind in ("linear", "known", "robust"):
            of_b = _prior("Flat")
        if options.get("intercept_prior") is not None:
            of_b = _read_prior(options["intercept_prior"], 10.0)
        elif of_b["kind"] == "Normal" and b:
            of_b = _prior("Normal", 0.0, self._default_scale(prior))

        def spread(name):
            own = np.broadcast_to(np.asarray(prior[name], float), (p,))
            return np.tile(np.r_[own, [of_b[name]] * b], K)

        self.loc, self.scale, self.shape = (spread(name) for name in ("loc", "scale", "shape"))
        self.kinds = np.tile(np.array([prior["kind"]] * p + [of_b["kind"]] * b), K)
        noise = _read_positive(options.get("noise_prior", "half_student_t"), self.response)
        df = options.get("df_prior")
        df = _prior("gamma", 0.0, 10.0, 2.0) if df is None else _read_positive(df, self.response)
        self.positive = [noise, df][: len(self.extras)]
        if self.kind == "counts":
            own = options.get("dispersion_prior", "half_student_t")
            self.positive = [_read_positive(own, 1.0)]

    def _default_scale(self, prior):
        """Of the default prior of an intercept, the wider the farther columns are from zero.

        A coefficient of a column with mean m moves the intercept by m u, with u the scale of a
        normal prior, or what 10 is in units of the column, if that is less: there is room for five
        times as much.
        """
        moved = 0.0
        for j, (mean, sd) in enumerate(zip(self.m_x, self.spread, strict=True)):
            if 1.5 * sd < abs(mean):  # of constants the spread is |mean|
                bounded = prior["kind"] == "Normal"
                u = np.broadcast_to(prior["scale"], self.m_x.shape)[j] if bounded else np.inf
                moved += (5.0 * mean * min(u, 10.0 / sd)) ** 2
        return np.sqrt(100.0 + moved)

    @property
    def gaussian(self):
        """Whether coefficients and intercepts have normal or flat priors."""
        return bool(np.isin(self.kinds, ["Normal", "Flat"]).all())

    def prior_precision(self):
        """About the curvature of the priors, for coordinates."""
        z = self.scale**-2.0 * np.where(self.kinds == "Laplace", 0.5, 1.0)
        return np.where(self.kinds == "Flat", 0.0, z)

    def theta(self, phi):
        """What the package reports: coefficients, class by class, intercepts, positive ones."""
        n = len(self.J)
        lin = (phi[:, :n] @ self.J.T + self.c).reshape(len(phi), self.K, -1)
        own = [lin[:, :, : self.p].reshape(len(phi), -1), lin[:, :, self.p :].reshape(len(phi), -1)]
        units = [self.s_y, 1.0][: len(self.extras)]
        return np.concatenate([*own, np.exp(phi[:, n:]) * units], axis=1)

    def phi(self, theta):
        """The inverse of `theta`."""
        n, at = len(self.J), self.K * self.p
        parts = [theta[:, :at].reshape(len(theta), self.K, self.p)]
        parts.append(theta[:, at:n].reshape(len(theta), self.K, int(self.intercept)))
        lin = np.concatenate(parts, axis=2).reshape(len(theta), n)
        units = [self.s_y, 1.0][: len(self.extras)]
        return np.column_stack(
            [linalg.solve(self.J, (lin - self.c).T).T, np.log(theta[:, n:] / units)]
        )

    def predictors(self, theta, most=20):
        """Linear predictors (m, K·rows) of at most so many rows, and their labels."""
        rows = np.unique(np.linspace(0, self.n - 1, most).astype(int))
        lin = self.phi(theta)[:, : len(self.J)].reshape(len(theta), self.K, -1)
        eta = lin[:, :, : self.p] @ self.X[rows].T + lin[:, :, self.p :].sum(axis=2, keepdims=True)
        labels = [f"predictor[{k}, {row}]" for k in range(self.K) for row in rows]
        return eta.reshape(len(theta), -1), labels

    def __call__(self, phi):
        """U (m,) and ∇U (m, D) of φ (m, D)."""
        U, g = (np.concatenate(part) for part in zip(*self._blocks(phi, True), strict=True))
        return np.where(np.isfinite(U), U, np.inf), g

    def value(self, phi):
        """U (m,) of φ (m, D)."""
        U = np.concatenate(self._blocks(phi, False))
        return np.where(np.isfinite(U), U, np.inf)

    def _blocks(self, phi, slopes):
        size = max(1, BLOCK // (self.n * self.K))
        with np.errstate(all="ignore"):
            return [self._block(phi[i : i + size], slopes) for i in range(0, len(phi), size)]

    def _block(self, phi, slopes):
        m, n = len(phi), len(self.J)
        lin = phi[:, :n].reshape(m, self.K, -1)
        eta = (lin[:, :, : self.p].reshape(-1, self.p) @ self.X.T).reshape(m, self.K, self.n)
        if self.intercept:
            eta += lin[:, :, -1:]
        U, r, of_extras = getattr(self, f"_{self.kind}")(eta, phi[:, n:], slopes)
        if not slopes:
            return U + self._priors_at(phi)[0]
        g = (r.reshape(-1, self.n) @ self.X).reshape(m, self.K, self.p)
        if self.intercept:
            g = np.concatenate([g, r.sum(axis=2)[:, :, None]], axis=2)
        own = np.concatenate([g.reshape(m, n), *[e[:, None] for e in of_extras]], axis=1)
        value, slope = self._priors_at(phi)
        return U + value, own + slope

    def _priors_at(self, phi):
        """-log p(θ), with the Jacobian of positive parameters, and its gradient in φ."""
        n = len(self.J)
        U, slope = self._of_prior(phi[:, :n] @ self.J.T + self.c)
        slopes = [slope @ self.J]
        for k, prior in enumerate(self.positive):
            unit, floor = (self.s_y, self.floor) if k == 0 else (1.0, 0.0)
            s = phi[:, n + k] + np.log(unit)
            value, slope = of_positive(prior, s)
            cut = (floor * np.exp(-s)) ** 2
            U = U + value + 0.5 * cut
            slopes.append((slope - cut)[:, None])
        return U, np.concatenate(slopes, axis=1)

    def _of_prior(self, theta):
        z, a = (theta - self.loc) / self.scale, np.where(self.shape > 0.0, self.shape, 1.0)
        kinds = [self.kinds == kind for kind in ("Normal", "Laplace", "StudentT")]
        values = [0.5 * z**2, np.abs(z), 0.5 * (a + 1.0) * np.log1p(z**2 / a)]
        slopes = [z, np.sign(z), (a + 1.0) * z / (a + z**2)]
        return np.select(kinds, values).sum(axis=1), np.select(kinds, slopes) / self.scale

    # Each likelihood: U (m,), its derivatives in the predictors (m, K, n) and in positive ones.

    def _logistic(self, eta, extras, slopes):
        e = np.exp(-np.abs(eta))
        U = (np.log(1.0 + e) + np.maximum(eta, 0.0) - self.y * eta) @ self.w
        r = self.w * (expit(eta) - self.y) if slopes else None
        return U[:, 0], r, []

    def _softmax(self, eta, extras, slopes):
        which, rows = self.y.astype(int), np.arange(self.n)
        e = np.exp(eta - eta.max(axis=1, keepdims=True))
        total = e.sum(axis=1, keepdims=True)
        U = (np.log(total[:, 0]) + eta.max(axis=1) - eta[:, which, rows]) @ self.w
        r = e / total
        r[:, which, rows] -= 1.0
        return U, self.w * r, []

    def _poisson(self, eta, extras, slopes):
        rate = np.exp(eta)
        r = self.w * (rate - self.y) if slopes else None
        return ((rate - self.y * eta) @ self.w)[:, 0], r, []

    def _counts(self, eta, extras, slopes):
        """Negative binomial: Σ_{j<y} log(1 + jα) by log Γ, or to first order for tiny α."""
        s, alpha = extras[:, 0], np.exp(extras)
        phi, small = 1.0 / alpha, alpha < 1e-7
        first = 0.5 * alpha * self.y * (self.y - 1.0)
        ways = gammaln(self.y + phi) - gammaln(phi) + self.y * s[:, None]
        mu = self.exposure * np.exp(eta[:, 0])
        m = alpha * mu
        U = (self.y + phi) * np.log1p(m) - self.y * eta[:, 0] - np.where(small, first, ways)
        if not slopes:
            return U @ self.w, None, []
        rising = np.where(small, first, self.y - phi * (digamma(self.y + phi) - digamma(phi)))
        of_s = self.y * m / (1.0 + m) - phi * (np.log1p(m) - m / (1.0 + m)) - rising
        return U @ self.w, (self.w * (mu - self.y) / (1.0 + m))[:, None], [of_s @ self.w]

    def _known(self, eta, extras, slopes):
        r = eta - self.y
        return (0.5 * r**2 @ self.w)[:, 0], self.w * r, []

    def _linear(self, eta, extras, slopes):
        r, s, precision = eta - self.y, extras[:, 0], np.exp(-2.0 * extras[:, 0])
        misfit, total = precision * (r**2 @ self.w)[:, 0], self.w.sum()
        return total * s + 0.5 * misfit, self.w * r * precision[:, None, None], [total - misfit]

    def _robust(self, eta, extras, slopes):
        s, u = extras.T
        nu, total = np.exp(u), self.w.sum()
        r = eta - self.y
        precision = np.exp(-2.0 * s - u)[:, None, None]
        q, a = r**2 * precision, 0.5 * (nu + 1.0)
        logs = (np.log1p(q) @ self.w)[:, 0]
        U = total * (s + 0.5 * u + gammaln(0.5 * nu) - gammaln(a)) + a * logs
        if not slopes:
            return U, None, []
        shares = (q / (1.0 + q) @ self.w)[:, 0]
        of_s = total - 2.0 * a * shares
        of_u = total * (0.5 + 0.5 * nu * (digamma(0.5 * nu) - digamma(a)))
        of_u = of_u + 0.5 * nu * logs - a * shares
        return U, self.w * 2.0 * a[:, None, None] * precision * r / (1.0 + q), [of_s, of_u]
