r"""Normal rows with the coefficients integrated out: what they say of the scales and of the noise.

Rows z = A β + ε, ε_i ~ N(0, e_i), with β_j ~ N(0, v_j), have the marginal law z ~ N(0, M) with
M = E + A V Aᵀ. With Q = V⁻¹ + Aᵀ E⁻¹ A, Σ = Q⁻¹ and the posterior mean m = Σ Aᵀ E⁻¹ z,

    -2 log p(z | v, E) = log|E| + log|V| + log|Q| + ‖E^-½ (z - A m)‖² + Σ_j m_j²/v_j,
    ∂ log p/∂ log v_j  = ½ (E β_j²/v_j - 1) = ½ ((m_j² + Σ_jj)/v_j - 1),

up to a constant. `FewColumns` factors Q; `FewRows` factors M instead, where rows are fewer: a
matrix of n² numbers at a price of n² p [1]_.

The intercept is integrated out, too. Along its column there is one row, which is left out under a
flat prior, and has more noise under a normal one; what is left of the other rows beside this column
does not contain it.

.. [1] A. Bhattacharya, A. Chakraborty and B. K. Mallick (2016). Fast sampling with Gaussian
   scale-mixture priors in high-dimensional regression. Biometrika 103, 985-991.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..priors import Flat
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family

__all__ = ["FewColumns", "FewRows", "NormalRows", "intercept_prior", "lower_root"]
__all__ += ["marginal_of", "solved"]

ROUNDING = 4.0 * np.finfo(float).eps
AT_ONCE = 64  # rows of a triangular matrix up to which LAPACK is as fast as halves of it
SMALL = 60  # columns up to which calls take longer than the numbers

# With few parameters scipy.linalg would spend ten times as long on its checks as on the numbers.


def lower_root(Q):
    """The lower triangular L with L Lᵀ = Q."""
    L = _root_or_nan(Q)
    if np.isnan(L[-1, -1]):
        raise linalg.LinAlgError("A matrix of the horseshoe prior is not positive definite.")
    return L


def _root_or_nan(Q):
    """As `lower_root`, for laws: not a number where Q is not positive definite.

    Where it is not because of rounding, as with equal columns that fit the rows exactly, a little
    more than that is added to its diagonal.
    """
    L, failed_at = linalg.lapack.dpotrf(Q, lower=True)
    if failed_at:
        more = ROUNDING * len(Q) * np.abs(np.diag(Q)).max()
        L, failed_at = linalg.lapack.dpotrf(Q + more * np.eye(len(Q)), lower=True)
    return np.full(Q.shape, np.nan) if failed_at else L


def _inverse(L):
    """L⁻¹ of a lower triangular L, by halves.

    Most of the work is then products of matrices, which are two to three times as fast as the
    substitution by which LAPACK inverts all of L.
    """
    n, half = len(L), len(L) // 2
    if n <= AT_ONCE:
        return linalg.lapack.dtrtri(L, lower=True)[0]
    found = np.zeros((n, n), order="F")
    first, last = _inverse(L[:half, :half]), _inverse(L[half:, half:])
    below = linalg.blas.dtrmm(-1.0, last, L[half:, :half], lower=True)
    found[:half, :half], found[half:, half:] = first, last
    found[half:, :half] = linalg.blas.dtrmm(1.0, first, below, lower=True, side=1)
    return found


def solved(L, b, transposed=False):
    """L⁻¹ b, or L⁻ᵀ b."""
    return linalg.lapack.dtrtrs(L, b, lower=True, trans=transposed)[0]


def intercept_prior(target, at):
    """Location and variance of the prior of the intercept, which is parameter `at` of a target."""
    row = target.prior[at]
    if of_family(row[None], Flat)[0]:
        return 0.0, np.inf
    return row[LOC], row[SCALE] ** 2


@dataclass
class NormalRows:
    """Rows z = A β + one (b + means β) + ε of equal noise, with an intercept b.

    Parameters
    ----------
    A : ndarray of shape (n, p)
    z : ndarray of shape (n,)
        It is replaced by what is left of it beside the column of the intercept.
    one : ndarray of shape (n,), optional
        The column of the intercept; None without an intercept.
    means : ndarray of shape (p,), optional
        What has been taken from the columns of A; they must be near zero beside this column, so
        that no digits are lost.
    prior : tuple
        Location and variance of the normal prior of b; it is flat if the variance is infinite.
    """

    A: np.ndarray
    z: np.ndarray
    one: np.ndarray | None = None
    means: np.ndarray | None = None
    prior: tuple = (0.0, np.inf)

    def __post_init__(self):
        if self.one is not None:
            self.size = np.linalg.norm(self.one)
            self.u, (self.loc, self.variance) = self.one / self.size, self.prior
            z = self.z - self.loc * self.one
            self.along, self.seen = self.u @ self.A, self.u @ z
            self.z = z - self.u * self.seen

    @property
    def row(self):
        """Coefficients of the row along the column: seen = row β + size (b - loc) + ε."""
        return self.along + self.size * self.means

    def gram(self):
        """AᵀA and Aᵀz of all rows beside the one along the intercept's column."""
        G, b = self.A.T @ self.A, self.A.T @ self.z
        if self.one is None:
            return G, b
        return G - np.outer(self.along, self.along), b

    def misfit(self, m):
        """‖z - A m‖² of these rows."""
        off = self.z - self.A @ m
        return off @ off - (0.0 if self.one is None else (self.u @ off) ** 2)

    def rows(self):
        """A and z without what is along the intercept's column."""
        if self.one is None:
            return self.A, self.z
        return self.A - np.outer(self.u, self.along), self.z

    def intercept(self, beta, variance, rng):
        """Draw b given β and σ²."""
        precision = self.size**2 / variance + 1.0 / self.variance
        mean = self.size * (self.seen - self.row @ beta) / variance / precision
        return self.loc + mean + rng.standard_normal() / np.sqrt(precision)


class _RowsOfChains:
    """Rows of one chain after another; chains share them if there is only one set.

    Parameters
    ----------
    sets : list of NormalRows
        For each chain, or for all of them.
    power : float or None
        The density of the rows of equal noise has the factor σ^-power; None if σ is known, and does
        not change.
    """

    def __init__(self, sets, power):
        self.sets, self.power = sets, power
        self.has_first = sets[0].one is not None and bool(np.isfinite(sets[0].variance))
        if self.has_first:
            self.row, self.seen = np.stack([o.row for o in sets]), np.array([o.seen for o in sets])
            self.more_noise = np.array([own.variance * own.size**2 for own in sets])

    def curvature(self, variance):
        """Curvature h_j of the rows along each β_j, the intercept integrated out, given σ².

        `variance` is that of all chains, (n_chains,), and the result (n_chains, p).
        """
        found = self.squares / variance[:, None]
        if self.has_first:
            found = found + np.square(self.row) / (variance + self.more_noise)[:, None]
        return found

    def intercepts(self, beta, variance, rng):
        """Draw the intercepts of all chains given β and σ²: (n_chains, 0 or 1)."""
        found = np.empty((len(beta), int(self.sets[0].one is not None)))
        for c in range(len(found) if found.size else 0):
            found[c] = self._set(c).intercept(beta[c], variance[c], rng)
        return found

    def _set(self, c):
        """The rows of chain c."""
        return self.sets[c % len(self.sets)]


class FewColumns(_RowsOfChains):
    """The marginal law by matrices of the coefficients."""

    def __init__(self, sets, power):
        super().__init__(sets, power)
        self.gram, self.shift = (
            np.stack(part) for part in zip(*(o.gram() for o in sets), strict=True)
        )
        self.squares = np.diagonal(self.gram, axis1=1, axis2=2)

    def _conditional(self, precision, variance, root=lower_root):
        """L with L Lᵀ = Q, b = Aᵀ E⁻¹ z and m = Q⁻¹ b of all chains; the noise of the first row."""
        inverse = 1.0 / variance[:, None]
        Q, b, first = inverse[:, None] * self.gram, inverse * self.shift, None
        if self.has_first:
            first = variance + self.more_noise
            part = self.row / first[:, None]
            Q, b = Q + self.row[:, :, None] * part[:, None], b + part * self.seen[:, None]
        diagonal = np.arange(Q.shape[1])
        Q[:, diagonal, diagonal] += precision
        L = [root(own.T) for own in Q]  # Q is symmetric, and LAPACK copies columns faster
        m = [linalg.lapack.dpotrs(own, c, lower=True)[0] for own, c in zip(L, b, strict=True)]
        return L, b, np.stack(m), first

    def draws(self, precision, variance, rng):
        """Draw the β of all chains."""
        L, _, m, _ = self._conditional(precision, variance)
        normals = rng.standard_normal(m.shape)
        return m + [solved(own, z, transposed=True) for own, z in zip(L, normals, strict=True)]

    def marginal(self, precision, variance):
        """log p(z) of all chains, and its derivatives by log v and by log σ.

        By the latter it is -N + E‖z - Aβ‖²/σ² for N rows of equal noise, where E‖z - Aβ‖²/σ² is
        ‖z - A m‖²/σ² + p - Σ_j Σ_jj/v_j since Q Σ = 1.
        """
        L, b, m, first = self._conditional(precision, variance, _root_or_nan)
        roots = [_inverse(own) for own in L]  # R with Σ = Rᵀ R
        variances = np.stack([np.einsum("ij,ij->j", R, R) for R in roots])
        share, squares = precision * variances, np.square(m)
        value = 0.5 * np.log(precision).sum(axis=1)
        value -= np.log([own.diagonal() for own in L]).sum(axis=1)
        of_scales = 0.5 * (precision * squares + share - 1.0)
        if self.power is None:  # what remains is ½ (zᵀ E⁻¹ z - bᵀ m), and z stays as it is
            return value + 0.5 * (b * m).sum(axis=1), of_scales, np.zeros(len(m))
        misfit = np.array([self._set(c).misfit(own) for c, own in enumerate(m)]) / variance
        value -= 0.5 * (self.power * np.log(variance) + misfit + (precision * squares).sum(axis=1))
        of_noise = misfit + m.shape[1] - share.sum(axis=1) - self.power
        if self.has_first:
            seen = np.square(self.seen - (self.row * m).sum(axis=1)) / first
            rows = np.broadcast_to(self.row, m.shape)
            known = [np.square(solved(own, a)).sum() for own, a in zip(L, rows, strict=True)]
            known = np.array(known) / first
            value -= 0.5 * (np.log(first) + seen)
            of_noise += (seen + known - 1.0) * variance / first - known
        return value, of_scales, of_noise


class FewRows(_RowsOfChains):
    """The marginal law by matrices of the rows."""

    def __init__(self, sets, power):
        super().__init__(sets, power)
        self.A, self.z = [], []
        for own in sets:
            A, z = own.rows()
            if self.has_first:
                A, z = np.vstack([own.row, A]), np.append(own.seen, z)
            self.A.append(np.asfortranarray(A))  # as LAPACK reads it
            self.z.append(z)
        self.squares = np.stack([np.square(A[self.has_first :]).sum(axis=0) for A in self.A])

    def _matrix(self, c):
        """A and z of chain c, with the row along the intercept's column first, if there is one."""
        return self.A[c % len(self.sets)], self.z[c % len(self.sets)]

    def _root(self, c, v, variance, root=lower_root):
        """L with L Lᵀ = M for chain c, and the variances of the noise of the rows."""
        A, z = self._matrix(c)
        noise = np.full(len(z), variance)
        if self.has_first:
            noise[0] += self.more_noise[c % len(self.sets)]
        M = linalg.blas.dsyrk(1.0, A * np.sqrt(v), lower=True)
        M.flat[:: len(z) + 1] += noise
        return root(M), noise

    def draws(self, precision, variance, rng):
        """Draw the β of all chains: u ~ N(0, V), and then u + V Aᵀ M⁻¹ (z - A u - ε) [1]_."""
        v, found = 1.0 / precision, rng.standard_normal(precision.shape) / np.sqrt(precision)
        for c, u in enumerate(found):
            A, z = self._matrix(c)
            L, noise = self._root(c, v[c], variance[c])
            off = z - A @ u - np.sqrt(noise) * rng.standard_normal(len(z))
            u += v[c] * (A.T @ solved(L, solved(L, off), transposed=True))
        return found

    def marginal(self, precision, variance):
        """As for `FewColumns`; with K = M⁻¹, ∂ log p/∂ log v_j = ½ v_j ((a_jᵀ K z)² - a_jᵀ K a_j).

        By log σ it is σ² (‖K z‖² - tr K), less the rows of the power that A does not contain.
        """
        parts = [self._one(c, *own) for c, own in enumerate(zip(precision, variance, strict=True))]
        return tuple(np.array(part) for part in zip(*parts, strict=True))

    def _one(self, c, precision, variance):
        """`marginal` of chain c."""
        A, z = self._matrix(c)
        v = 1.0 / precision
        L, _ = self._root(c, v, variance, _root_or_nan)
        white, inverse = solved(L, z), _inverse(L)
        W = linalg.blas.dtrmm(1.0, inverse, A, lower=True)  # 3 times as fast as substitution
        more = 0.0 if self.power is None else self.power - len(z) + self.has_first
        value = -np.log(np.diag(L)).sum() - 0.5 * (white @ white + more * np.log(variance))
        of_scales = 0.5 * v * (np.square(white @ W) - np.einsum("ij,ij->j", W, W))
        Kz = solved(L, white, transposed=True)
        of_noise = variance * (Kz @ Kz - np.square(inverse).sum()) - more
        return value, of_scales, of_noise


def marginal_of(sets, power):
    """`FewRows` for sets with fewer rows than columns, and many of these; else `FewColumns`."""
    n, p = sets[0].A.shape
    return (FewRows if n < p and p > SMALL else FewColumns)(sets, power)
