r"""Posteriors with few parameters, in NumPy: values only, and slopes by differences.

`theta` is what is compared. Where weights or labels are not identified, in densities that are
`symmetric`, it holds densities and predictions at some rows, which no permutation changes.
"""

import numpy as np
from scipy.special import expit, gammaln, log_ndtr

from .density import _read_positive, of_positive

STEP = 1e-5
N_SEEN = 6  # rows at which densities and predictions are compared


class Small:
    """A density of D parameters of unit size; a subclass has `value`, `theta` and `cost`."""

    D, cost, n_starts = 0, 1e-4, 12
    symmetric, has_inverse = True, False

    def __call__(self, phi):
        m, D = phi.shape
        away = phi[:, None, :] + STEP * np.concatenate([np.eye(D), -np.eye(D)])
        U = self.value(away.reshape(-1, D)).reshape(m, 2 * D)
        return self.value(phi), (U[:, :D] - U[:, D:]) / (2.0 * STEP)

    def starts(self, rng):
        return [np.zeros(self.D), *rng.normal(size=(self.n_starts - 1, self.D))]


def in_parts(function, phi, size=200):
    """The function of so many points at a time."""
    return np.concatenate([function(part) for part in np.array_split(phi, len(phi) // size + 1)])


def rows_seen(X):
    """Some rows, in the middle and at the ends of the table."""
    order = np.argsort(X @ np.linspace(1.0, 2.0, X.shape[1]), kind="stable")
    return X[order[np.linspace(0, len(X) - 1, N_SEEN).astype(int)]]


# -- mixtures -------------------------------------------------------------------------------------


class Mixture(Small):
    r"""x ~ Σ_k w_k N(μ_k, P_k⁻¹), w ~ Dirichlet(α), μ ~ N(x̄, (m s)²), P ~ Wishart(ν, ·).

    Rows are standardised by x̄ and s_j K^(-1/d), so that E P⁻¹ = I. The coordinates are those of
    independent gamma variables of which w are the shares, means, and Bartlett's T with
    P = T Tᵀ/(ν - d - 1).
    """

    def __init__(self, case):
        options, X = case.options, np.asarray(case.X, float)
        self.K, self.kind = options["n_components"], options.get("covariance_type", "full")
        self.n, d = X.shape
        self.d, self.alpha = d, options.get("weight_concentration_prior", 1.0)
        self.df = options.get("degrees_of_freedom_prior") or d + 2.0
        spread = X.std(axis=0)
        spread = np.where(spread > 1e-9 * np.abs(X).max(axis=0), spread, 1.0)
        unit = spread * self.K ** (-1.0 / d)
        if self.kind == "spherical":
            unit = np.full(d, np.sqrt((unit**2).mean()))
        self.mean_sd = options.get("mean_scale", 2.0) * spread / unit
        self.Z, self.units = (X - X.mean(axis=0)) / unit, (X.mean(axis=0), unit)
        self.probes = rows_seen(self.Z)
        self.size = {"diag": d, "spherical": 1}.get(self.kind, d * (d + 1) // 2)
        self.M = 1 if self.kind == "tied" else self.K
        self.D = self.K * (1 + d) + self.M * self.size
        self.cost = 1e-5 + self.n * self.K * (d + 2) * 3e-8

    def parts(self, phi):
        """log w, means, T, and the logarithms of squares on the diagonals of T."""
        K, d, m = self.K, self.d, len(phi)
        v = phi[:, :K]
        log_w = v - np.logaddexp.reduce(v, axis=1)[:, None]
        mu = phi[:, K : K + K * d].reshape(m, K, d)
        own = phi[:, K + K * d :].reshape(m, self.M, self.size)
        T, each = np.zeros((m, self.M, d, d)), np.arange(d)
        if self.kind in ("diag", "spherical"):
            logs = own
            T[:, :, each, each] = np.exp(0.5 * own)
        else:
            below = np.tril_indices(d)
            diagonal = below[0] == below[1]
            logs = own[:, :, diagonal]
            T[:, :, below[0], below[1]] = own
            T[:, :, each, each] = np.exp(0.5 * logs)
        return log_w, mu, np.broadcast_to(T, (m, K, d, d)), logs, own

    def _rows(self, Z, log_w, mu, A):
        """x - μ_k, Aᵀ(x - μ_k) and log w_k p(x | k), in standardised units; P = A Aᵀ."""
        moved = Z[None, None] - mu[:, :, None, :]
        y = moved @ A
        log_det = np.log(np.abs(np.linalg.det(A)))
        each = log_w + log_det - 0.5 * self.d * np.log(2.0 * np.pi)
        return moved, y, each[:, :, None] - 0.5 * (y**2).sum(axis=3)

    def log_density(self, Z, log_w, mu, A):
        """log p of rows, (m, rows)."""
        return np.logaddexp.reduce(self._rows(Z, log_w, mu, A)[2], axis=1)

    def value(self, phi):
        return in_parts(lambda part: self._at(part)[0], phi)

    def __call__(self, phi):
        return self._at(phi)

    def _at(self, phi):
        """U and its gradient, with the share of each component in each row."""
        with np.errstate(all="ignore"):
            log_w, mu, T, logs, own = self.parts(phi)
            v, root, m = phi[:, : self.K], np.sqrt(self.df - self.d - 1.0), len(phi)
            moved, y, log_r = self._rows(self.Z, log_w, mu, T / root)
            log_p = np.logaddexp.reduce(log_r, axis=1)
            share = np.exp(log_r - log_p[:, None])
            shape = 0.5 * (self.df - np.arange(self.d))
            if self.kind in ("diag", "spherical"):
                shape = np.full(logs.shape[2], 0.5 * (self.df - self.d + 1.0))
            U = -log_p.sum(axis=1) + (np.exp(v) - self.alpha * v).sum(axis=1)
            U += 0.5 * ((mu / self.mean_sd) ** 2).sum(axis=(1, 2))
            U += (0.5 * np.exp(logs) - shape * logs).sum(axis=(1, 2))
            of_v = np.exp(v) - self.alpha - share.sum(axis=2) + self.n * np.exp(log_w)
            weighted = share[..., None] * y
            of_mu = mu / self.mean_sd**2 - np.einsum(
                "mkj,mkij->mki", weighted.sum(axis=2), T / root
            )
            of_T = np.einsum("mkri,mkrj->mkij", moved, weighted) / root
            diagonal = 0.5 * np.einsum("mkjj,mkjj->mkj", of_T, T)
            diagonal -= 0.5 * share.sum(axis=2)[:, :, None]
            diagonal = self._summed(diagonal, spherical=True) + 0.5 * np.exp(logs) - shape
            if self.kind in ("full", "tied"):
                below = np.tril_indices(self.d)
                off = below[0] != below[1]
                of_own = self._summed(of_T[:, :, below[0], below[1]]) + own
                of_own[:, :, ~off] = diagonal
                U += 0.5 * (own[:, :, off] ** 2).sum(axis=(1, 2))
            else:
                of_own = diagonal
            parts = of_v, of_mu.reshape(m, -1), of_own.reshape(m, -1)
            return np.where(np.isfinite(U), U, np.inf), np.concatenate(parts, axis=1)

    def _summed(self, slopes, spherical=False):
        """Slopes (m, K, numbers) of what components, or columns, have in common."""
        slopes = slopes.sum(axis=1, keepdims=True) if self.kind == "tied" else slopes
        common = spherical and self.kind == "spherical"
        return slopes.sum(axis=2, keepdims=True) if common else slopes

    def of_draws(self, w, mu, covariance):
        """`theta` of draws in the units of the rows: (m, K), (m, K, d) and (m, K, d, d)."""
        centre, unit = self.units
        A = np.linalg.cholesky(np.linalg.inv(covariance / unit[:, None] / unit))
        return self._seen(np.log(w), (mu - centre) / unit, A)

    def _seen(self, log_w, mu, A):
        """Log densities at some rows, and of all of them."""
        total = self.log_density(self.Z, log_w, mu, A).sum(axis=1)
        return np.column_stack([self.log_density(self.probes, log_w, mu, A), total])

    def theta(self, phi):
        def seen(phi):
            log_w, mu, T, _, _ = self.parts(phi)
            return self._seen(log_w, mu, T / np.sqrt(self.df - self.d - 1.0))

        return in_parts(seen, phi)

    def starts(self, rng):
        starts = []
        for _ in range(self.n_starts):
            start = 0.3 * rng.normal(size=self.D)
            means = self.Z[rng.integers(0, self.n, self.K)].ravel()
            start[self.K : self.K + len(means)] = means
            starts.append(start)
        return starts


# -- independent components -----------------------------------------------------------------------


class Sources(Small):
    """p(x) = |det W| Π_j 1/(4 cosh²(w_j·x/2)) of whitened rows, W_jk ~ N(0, 1/λ)."""

    def __init__(self, case):
        X = np.asarray(case.X, float)
        self.mean = X.mean(axis=0)
        spread = np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
        _, sizes, back = np.linalg.svd((X - self.mean) / spread, full_matrices=False)
        rank = int((sizes > 1e-9 * sizes[0]).sum())
        self.d = case.options.get("n_components") or rank
        self.whitening = (back[: self.d] / sizes[: self.d, None] * np.sqrt(len(X))) / spread
        self.back = (back[: self.d].T * sizes[: self.d] / np.sqrt(len(X))) * spread[:, None]
        self.Z = (X - self.mean) @ self.whitening.T
        self.probes = rows_seen(self.Z)
        self.lam, self.D = case.options.get("prior_precision", 1.0), self.d**2
        self.cost = len(X) * self.d * 4e-8 * (2 * self.D + 1)

    def log_density(self, Z, W):
        """log p of rows, (m, rows), of W (m, d, d)."""
        y = np.abs(np.einsum("rj,mij->mri", Z, W))
        return np.linalg.slogdet(W)[1][:, None] - (y + 2.0 * np.log1p(np.exp(-y))).sum(axis=2)

    def log_likelihood(self, phi):
        W = phi.reshape(len(phi), self.d, self.d)
        return in_parts(lambda part: self.log_density(self.Z, part).sum(axis=1), W)

    def value(self, phi):
        return 0.5 * self.lam * (phi**2).sum(axis=1) - self.log_likelihood(phi)

    def of_draws(self, components):
        """`theta` of unmixing matrices of the columns, (m, d, p)."""
        return self.theta((components @ self.back).reshape(len(components), -1))

    def theta(self, phi):
        """Log densities at some rows, and of all of them."""
        W = phi.reshape(len(phi), self.d, self.d)
        return np.column_stack([self.log_density(self.probes, W), self.log_likelihood(phi)])

    def starts(self, rng):
        return [1.8 * np.linalg.qr(rng.normal(size=(self.d, self.d)))[0].ravel() for _ in range(12)]


# -- networks -------------------------------------------------------------------------------------


class Network(Small):
    r"""One hidden layer: η = φ(z W₀ + b₀) W₁ + b₁ of standardised columns.

    W_l = τ_l V_l / fan_in^½ with V and biases standard normal, τ² ~ InvGamma(2, 2), τ <= 10, one τ
    for each layer, and for the outputs mean and log sd one each.
    """

    def __init__(self, case):
        options, X, y = case.options, np.asarray(case.X, float), np.asarray(case.y, float)
        self.classes = case.estimator.endswith("Classifier")
        self.noise = None if self.classes else options.get("noise", "heteroscedastic")
        self.activation = {"tanh": np.tanh, "logistic": expit}[options.get("activation", "tanh")]
        self.X = (X - X.mean(axis=0)) / X.std(axis=0)
        self.units = (0.0, 1.0) if self.classes else (y.mean(), y.std())
        self.y = (y - self.units[0]) / self.units[1]
        self.p, self.H = X.shape[1], options["hidden_layer_sizes"][0]
        self.O = 2 if self.noise == "heteroscedastic" else 1
        self.extra = int(self.noise == "infer")
        self.T = 1 + self.O
        self.shapes = [(self.p, self.H), (self.H,), (self.H, self.O), (self.O,)]
        self.sizes = [int(np.prod(shape)) for shape in self.shapes]
        self.D = sum(self.sizes) + self.extra + self.T
        self.probes = rows_seen(self.X)
        self.cost = 1e-5 + len(X) * self.H * 6e-8

    def weights(self, phi):
        """W₀, b₀, W₁, b₁."""
        parts = np.split(phi[:, : sum(self.sizes)], np.cumsum(self.sizes)[:-1], axis=1)
        found = [part.reshape(len(phi), *s) for part, s in zip(parts, self.shapes, strict=True)]
        tau = np.exp(phi[:, self.D - self.T :])
        found[0] = found[0] * tau[:, :1, None] / np.sqrt(self.p)
        found[2] = found[2] * tau[:, None, 1:] / np.sqrt(self.H)
        return found

    def outputs(self, X, W0, b0, W1, b1, rho=None):
        """(m, rows, outputs): the mean and the log sd, or the log-odds."""
        return self._layers(X, W0, b0, W1, b1, rho)[1]

    def _layers(self, X, W0, b0, W1, b1, rho):
        hidden = self.activation(X @ W0 + b0[:, None, :])
        eta = hidden @ W1 + b1[:, None, :]
        if self.classes:
            return hidden, eta
        if self.O == 1:
            rho = np.log(self.noise / self.units[1]) if rho is None else rho
            eta = np.concatenate([eta, np.broadcast_to(rho, eta.shape)], axis=2)
        eta[:, :, 1] = np.clip(eta[:, :, 1], -6.0, 6.0)
        return hidden, eta

    def _rho(self, phi):
        n = sum(self.sizes)
        return phi[:, n : n + 1, None] if self.extra else None

    def value(self, phi):
        return in_parts(lambda part: self._at(part)[0], phi)

    def __call__(self, phi):
        return self._at(phi)

    def _at(self, phi):
        """U and its gradient, backwards through the layers."""
        with np.errstate(all="ignore"):
            h, n, m = phi[:, self.D - self.T :], sum(self.sizes), len(phi)
            W0, _, W1, _ = weights = self.weights(phi)
            hidden, eta = self._layers(self.X, *weights, self._rho(phi))
            U = 0.5 * (phi[:, :n] ** 2).sum(axis=1) + (4 * h + 2 * np.exp(-2 * h)).sum(axis=1)
            own, r = self._of_rows(eta)
            U += own
            of_W1, of_b1 = (
                np.swapaxes(hidden, 1, 2) @ r[..., : self.O],
                r[..., : self.O].sum(axis=1),
            )
            bend = 1.0 - hidden**2 if self.activation is np.tanh else hidden * (1.0 - hidden)
            back = r[..., : self.O] @ np.swapaxes(W1, 1, 2) * bend
            of_W0, of_b0 = self.X.T @ back, back.sum(axis=1)
            tau = np.exp(h)
            slopes = [of_W0 * tau[:, :1, None] / np.sqrt(self.p), of_b0]
            slopes += [of_W1 * tau[:, None, 1:] / np.sqrt(self.H), of_b1]
            g = np.concatenate([part.reshape(m, -1) for part in slopes], axis=1) + phi[:, :n]
            of_tau = [(W0 * of_W0).sum(axis=(1, 2))[:, None], (W1 * of_W1).sum(axis=1)]
            of_h = np.concatenate(of_tau, axis=1) + 4.0 - 4.0 * np.exp(-2.0 * h)
            of_rho = np.zeros((m, 0))
            if self.extra:
                U += 0.5 * ((phi[:, n] + 1.0) / 1.5) ** 2
                of_rho = (r[:, :, 1].sum(axis=1) + (phi[:, n] + 1.0) / 1.5**2)[:, None]
            inside = (h < np.log(10.0)).all(axis=1) & np.isfinite(U)
            return np.where(inside, U, np.inf), np.concatenate([g, of_rho, of_h], axis=1)

    def _of_rows(self, eta):
        """-log p of the responses, and its slopes in the outputs."""
        if self.classes:
            value = np.logaddexp(0.0, eta[..., 0]) - self.y * eta[..., 0]
            return value.sum(axis=1), expit(eta) - self.y[:, None]
        z = (self.y - eta[..., 0]) * np.exp(-eta[..., 1])
        value = (0.5 * z**2 + eta[..., 1]).sum(axis=1)
        free = np.abs(eta[..., 1]) < 6.0
        return value, np.stack([-z * np.exp(-eta[..., 1]), (1.0 - z**2) * free], axis=2)

    def of_draws(self, weights, noise_std=None):
        """`theta` of the weights of draws; of the sd of the noise, in the unit of y."""
        rho = None if noise_std is None else np.log(noise_std / self.units[1])[:, None, None]
        return self._predictions(self.outputs(self.probes, *weights, rho))

    def _predictions(self, eta):
        if self.classes:
            return expit(eta[:, :, 0])
        return eta.reshape(len(eta), -1) if self.O == 2 else eta[:, :, 0]

    def theta(self, phi):
        """Predictions at some rows."""

        def seen(phi):
            return self._predictions(self.outputs(self.probes, *self.weights(phi), self._rho(phi)))

        return in_parts(seen, phi)

    def starts(self, rng):
        return list(rng.normal(size=(self.n_starts, self.D)) * 0.7)


# -- likelihoods of users -------------------------------------------------------------------------


class Own(Small):
    """Σ_i f(θ, row_i) with priors of their own; positive parameters as logarithms."""

    symmetric, has_inverse = False, True

    def __init__(self, log_likelihood, priors, rows):
        self.log_likelihood, self.rows = log_likelihood, rows
        self.priors = priors
        self.positive = np.array([type(prior).__name__ != "Normal" for prior in priors])
        self.D = len(priors)
        self.cost = len(rows) * 6e-8 * (2 * self.D + 1)

    def theta(self, phi):
        return np.where(self.positive, np.exp(np.where(self.positive, phi, 0.0)), phi)

    def value(self, phi):
        with np.errstate(all="ignore"):
            U = sum(self._of_prior(phi[:, k], prior) for k, prior in enumerate(self.priors))
            theta, parts = self.theta(phi), len(phi) * len(self.rows) // 500_000 + 1
            for some in np.array_split(np.arange(len(phi)), parts):
                U[some] -= self.log_likelihood(theta[some].T[:, :, None], self.rows.T).sum(axis=1)
        return np.where(np.isfinite(U), U, np.inf)

    @staticmethod
    def _of_prior(phi, prior):
        if type(prior).__name__ == "Normal":
            return 0.5 * ((phi - prior.loc) / prior.scale) ** 2
        return of_positive(_read_positive(prior, 1.0), phi)[0]

    def phi(self, theta):
        return np.where(self.positive, np.log(np.where(self.positive, theta, 1.0)), theta)


def tobit(theta, rows):
    """Responses below zero are recorded as zero."""
    *beta, b, sigma = theta
    *X, y = rows
    eta = b + sum(k * x for k, x in zip(beta, X, strict=True))
    seen = -0.5 * ((y - eta) / sigma) ** 2 - np.log(sigma)
    return np.where(y > 0.0, seen, log_ndtr(-eta / sigma))


def zero_inflated(theta, rows):
    """A count that is zero for another reason with log-odds η₀, and else Poisson of log rate η₁."""
    a0, a1, b0, b1 = theta  # coefficients of both predictors, then intercepts
    x, y = rows
    none, log_rate = a0 * x + b0, a1 * x + b1
    poisson = y * log_rate - np.exp(log_rate) - gammaln(y + 1.0)
    zero = np.logaddexp(none, -np.exp(log_rate))
    return np.where(y == 0.0, zero, poisson) - np.logaddexp(0.0, none)


def decay(theta, rows):
    """y = level + size e^(-rate t) with normal noise."""
    level, size, rate, sigma = theta
    t, y = rows
    return -0.5 * ((y - level - size * np.exp(-rate * t)) / sigma) ** 2 - np.log(sigma)


def two_signs(theta, rows):
    """y ~ N(a², 1) and x ~ N(a b, 1): two modes, that differ by the signs of both."""
    a, b = theta
    x, y = rows
    return -0.5 * (y - a * a) ** 2 - 0.5 * (x - a * b) ** 2
