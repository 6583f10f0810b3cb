r"""Coefficients in coordinates in which their posterior hardly depends on the scales.

Let θ = θ̂ + Fφ be coordinates around a centre θ̂ found at reference scales ŝ, in which the Hessian
of U is the identity. The quadratic of U at other scales s = log τ has the Hessian Q and the
gradient h,

    Q(s) = I + Σ_j δ_j f_j f_jᵀ,     h(s) = g + Σ_j δ_j r_j f_j,     δ_j = e^{-2 s_j} - e^{-2 ŝ_j},

with s_j the scale of coefficient j, g the gradient at the centre, r_j = (θ̂_j - loc_j)/u_j, and f_j
the j-th row of F over u_j. With Q = L Lᵀ the *collapsed coordinates* z of φ are those of

    φ = -Q⁻¹h + L⁻ᵀz.

For a Gaussian likelihood z is N(0, I) and independent of s: there is no funnel at small scales, and
nothing to choose between centred and non-centred coordinates. For others the map is still an exact
change of variables, whose determinant is that of L⁻ᵀ. The law of s in the same approximation is

    -log p(s | y) = log det L - hᵀQ⁻¹h/2 + Σ_j (δ_j r_j²/2 + s_j) - log p(s).

With one scale, the f_j have right singular vectors V and singular values κ^½ that are the same for
all s: L is taken as V diag(P)^½ Vᵀ, P_k = 1 + δ κ_k (`OneScale`). With several it is the Cholesky
factor (`ManyScales`).
"""

from typing import Any

import numpy as np
from scipy import linalg

from .._base.svd import svd

__all__ = ["FEW_SCALES", "REACH", "Collapse", "ManyScales", "OneScale", "collapse_of"]

BLOCK_BYTES = 1 << 24  # most bytes of an array of matrices, one for each draw of a block
# Share of the trace that is first added to the diagonal of a matrix with a rounding error for its
# least eigenvalue, as where one scale is tiny and another is huge; tenfold until it has a root.
JITTER = 1e-15
LEFT = 1e-12  # least share of the likelihood in the Hessian of U, in any direction
FEW_SCALES = 8  # most scales for which the matrices Σ_j f_j f_jᵀ of each are kept
REACH = 12.0  # largest distance of log scales from the reference: farther ones are not looked at


def collapse_of(frame, scales, log_scales, prior):
    """The `OneScale` or `ManyScales` of a frame found at `log_scales`, under a `ScalePrior`."""
    kind = OneScale if scales.n_scales == 1 else ManyScales
    return kind(frame, scales, log_scales, prior)


def _roots(Q):
    """Cholesky factors of many matrices, with a larger diagonal where there would be none.

    Any map that depends on s alone is an exact change of coordinates, and a larger diagonal costs
    efficiency at that s and nothing else.
    """
    try:
        return np.linalg.cholesky(Q)
    except np.linalg.LinAlgError:
        return np.stack([_root(own) for own in Q])


def _root(Q):
    """`_roots` of a single matrix."""
    added = 0.0
    while True:
        try:
            return np.linalg.cholesky(Q + added * np.trace(Q) * np.eye(len(Q)))
        except np.linalg.LinAlgError:
            if added > 1.0:  # the trace is not positive
                raise
            added = max(10.0 * added, JITTER)


def _solved(L, b, transposed=False):
    """L⁻¹ b, or L⁻ᵀ b, of many lower triangles; their transposes are Fortran arrays as they are."""
    trans, solve = int(not transposed), linalg.lapack.dtrtrs
    return np.array([solve(own.T, v, lower=0, trans=trans)[0] for own, v in zip(L, b, strict=True)])


class Collapse:
    """Base class of the maps z → φ: it holds f_j, r_j and g, and has the slope of the marginal."""

    position: Any
    pull_back: Any
    negative_log_marginal: Any

    def __init__(self, frame, scales, log_scales, prior):
        n = len(scales.group)
        self.scales, self.prior = scales, prior
        self.log_scales, self.reference = np.array(log_scales), np.exp(-2.0 * log_scales)
        self.g = frame.offset
        self.f = frame.F[:n] / scales.unit[:, None]
        self.r = (frame.centre.theta[:n] - scales.loc) / scales.unit
        self.n_scales = scales.n_scales

    def section(self, s, g):
        """The function t → `negative_log_marginal` at s + t e_g, for arrays t."""
        return lambda t: self.negative_log_marginal(s + np.multiply.outer(t, np.eye(len(s))[g]))

    def marginal_slope(self, s):
        """Gradient of `negative_log_marginal` for rows s.

        It is the one at fixed φ, at the minimum φ(0, s) of the quadratic, whose slope in φ is zero.
        """
        zero = np.zeros((len(s), len(self.g)))
        phi, _ = self.position(zero, s)
        _, of_determinant = self.pull_back(zero, s, zero)
        squares = np.square(self.r + phi @ self.f.T) @ np.eye(self.n_scales)[self.scales.group]
        own = self.scales.counts - np.exp(-2.0 * s) * squares
        return own + of_determinant + self.prior.gradients(s)


class OneScale(Collapse):
    """The map for one scale of all coefficients, in the axes V that are the same for all s."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        A, root, Vt = svd(self.f)
        self.V, rest = Vt.T, np.zeros(len(Vt) - len(root))
        self.kappa = np.append(np.minimum(root**2, (1.0 - LEFT) / self.reference), rest)
        self.root = np.sqrt(self.kappa)
        self.rho, self.h = np.append(A.T @ self.r, rest), self.g @ self.V

    def _delta(self, s):
        """δ for rows s, (n, 1)."""
        return np.exp(-2.0 * s) - self.reference

    def negative_log_marginal(self, s):
        """-log p(s | y) for rows s, up to a constant; nothing cancels as s goes to -∞."""
        delta, rho, n = self._delta(s), self.rho, len(self.scales.group)
        left = (1.0 - self.reference * self.kappa[:n]) * np.exp(2.0 * s) + self.kappa[:n]
        misfit = delta * rho**2 - 2.0 * delta * self.root * rho * self.h - self.h**2
        quadratic = (misfit / (1.0 + delta * self.kappa)).sum(axis=1)
        return 0.5 * (quadratic + np.log(left).sum(axis=1)) + self.prior.values(s)

    def position(self, z, s):
        """φ and log |det ∂φ/∂z| for rows z and s."""
        delta = self._delta(s)
        P = 1.0 + delta * self.kappa
        at = z @ self.V / np.sqrt(P) - (self.h + delta * self.root * self.rho) / P
        return at @ self.V.T, -0.5 * np.log(P).sum(axis=1)

    def pull_back(self, z, s, g):
        """∂/∂z and ∂/∂s of U(φ) - log |det ∂φ/∂z|, from g = ∂U/∂φ."""
        q, delta, own = np.exp(-2.0 * s), self._delta(s), z @ self.V
        P, bend, a = 1.0 + delta * self.kappa, -2.0 * q * self.kappa, g @ self.V
        b = self.root * self.rho
        moved = (2.0 * q * b + ((self.h + delta * b) / P - 0.5 * own / np.sqrt(P)) * bend) / P
        along = (a * moved + 0.5 * bend / P).sum(axis=1)
        return a / np.sqrt(P) @ self.V.T, along[:, None]


class ManyScales(Collapse):
    """The map for several scales, by the Cholesky factor of Q(s)."""

    _last: Any = (None, None)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        weighted = self.f * self.reference[self.scales.group, None]
        values, axes = linalg.eigh(np.eye(len(self.g)) - self.f.T @ weighted)
        self.likelihood = axes * np.maximum(values, LEFT) @ axes.T  # with priors of fixed scale
        self.member = np.eye(self.n_scales)[self.scales.group]
        self.squares = None
        if self.n_scales <= FEW_SCALES:
            self.squares = np.stack([(self.f.T * own) @ self.f for own in self.member.T])

    def _precisions(self, s):
        """e^-2s, s held within `REACH`, as matrices lose digits beyond; and where s is within."""
        away = np.nan_to_num(s - self.log_scales)
        inside = np.abs(away) < REACH
        return self.reference * np.exp(-2.0 * np.clip(away, -REACH, REACH)), inside

    def _quadratic(self, s):
        """`_factors` at s, the last of which are remembered for positions and gradients there."""
        if self._last[0] is None or not np.array_equal(self._last[0], s):
            self._last = s.copy(), self._factors(s)
        return self._last[1]

    def _factors(self, s):
        """L, L⁻¹h and δ for rows s."""
        q = self._precisions(s)[0]
        if self.squares is not None:
            Q = self.likelihood + np.tensordot(q, self.squares, 1)
        else:
            Q = self.likelihood + (self.f.T * q[:, None, self.scales.group]) @ self.f
        delta = (q - self.reference)[:, self.scales.group]
        h = self.g + (delta * self.r) @ self.f
        L = _roots(Q)
        return L, _solved(L, h), delta

    def _over_draws(self, work, *arrays):
        """The results of ``work`` on blocks of rows of the arrays, each of them joined."""
        size = max(1, BLOCK_BYTES // (8 * len(self.g) ** 2))
        parts = [
            work(*(array[first : first + size] for array in arrays))
            for first in range(0, len(arrays[0]), size)
        ]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def negative_log_marginal(self, s):
        """-log p(s | y) for rows s, up to a constant."""

        def work(s):
            L, h, delta = self._quadratic(s)
            log_det = np.log(np.einsum("naa->na", L)).sum(axis=1)
            rest = 0.5 * (delta @ self.r**2 - np.square(h).sum(axis=1))
            return (log_det + rest + s @ self.scales.counts,)

        return self._over_draws(work, s)[0] + self.prior.values(s)

    def section(self, s, g):
        """The function t → `negative_log_marginal` at s + t e_g, from a single matrix.

        With L that of s and L⁻¹f_jᵀ = A diag(σ) Wᵀ for the coefficients of scale g, as δ grows by c
        the matrix becomes L (I + c A diag(σ²) Aᵀ) Lᵀ.
        """
        L, h, delta = (part[0] for part in self._quadratic(s[None]))
        own, q = self.scales.group == g, self._precisions(s[None])[0][0]
        columns = linalg.solve_triangular(L, self.f[own].T, lower=True)
        A, sigma, _ = svd(columns, full_matrices=False)
        squares = np.minimum(sigma**2, (1.0 - LEFT) / q[g])
        within, growth = h @ A, columns @ self.r[own] @ A
        r = np.square(self.r[own]).sum()
        rest = delta @ self.r**2 - np.square(h).sum() + np.square(within).sum()
        log_det = np.log(np.diag(L)).sum()

        def f(t):
            rows = s + np.multiply.outer(t, np.eye(len(s))[g])
            c = (self._precisions(rows)[0][..., g] - q[g])[..., None]
            P = 1.0 + c * squares
            misfit = rest + c[..., 0] * r - (np.square(within + c * growth) / P).sum(axis=-1)
            found = log_det + 0.5 * (np.log(P).sum(axis=-1) + misfit) + rows @ self.scales.counts
            return found + self.prior.values(rows)

        return f

    def position(self, z, s):
        """φ and log |det ∂φ/∂z| for rows z and s."""

        def work(z, s):
            L, h, _ = self._quadratic(s)
            log_det = -np.log(np.einsum("naa->na", L)).sum(axis=1)
            return _solved(L, z - h, transposed=True), log_det

        return self._over_draws(work, z, s)

    def pull_back(self, z, s, g):
        """∂/∂z and ∂/∂s of U(φ) - log |det ∂φ/∂z|, from g = ∂U/∂φ."""
        return self._over_draws(self._pulled_back, z, s, g)

    def _pulled_back(self, z, s, g):
        """`pull_back` of a block of rows."""
        L, h, _ = self._quadratic(s)
        inverse = np.array([linalg.lapack.dtrtri(own.T, lower=0)[0].T for own in L])
        a = (inverse @ g[:, :, None])[:, :, 0]
        K = inverse @ self.f.T  # its columns are the L⁻¹ f_j
        # ∂φ/∂δ_j = -Q⁻¹(r_j f_j + f_j (f_j·m)) - L⁻ᵀ Φ(k_j k_jᵀ) z, with m = -Q⁻¹h and Φ the upper
        # triangle with half of the diagonal.
        along = (a[:, None] @ K)[:, 0] * ((h[:, None] @ K)[:, 0] - self.r)
        own = a[:, :, None] * K
        left = np.cumsum(own, axis=1)
        left -= 0.5 * own
        left *= K
        along -= (z[:, None] @ left)[:, 0]
        along += 0.5 * np.square(K).sum(axis=1)  # from log det L
        q, inside = self._precisions(s)
        return a, -2.0 * q * inside * (along @ self.member)
