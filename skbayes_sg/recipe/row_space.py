"""Posteriors with more coefficients than rows: sampled in the span of the rows, exactly.

With normal priors of mean 0 and standard deviations s, z = θ/s is standard normal, and the rows
see only X diag(s) z. With X diag(s) = U √w Vᵀ, the likelihood depends on a = Vᵀz alone, whose prior
is standard normal as well, with U √w in the place of X. What is orthogonal to V has its prior law:

    z = ε + V (a - Vᵀε),     ε ~ N(0, I),

for draws a of the posterior with as many columns as X has rank
(``tests/recipe/test_row_space.py::test_it_is_used_where_it_pays_and_is_exact``). With large X no V
is kept, since V = diag(s) Xᵀ U w^-½.
"""

from dataclasses import replace

import numpy as np
from scipy import linalg, sparse

from .._base import memmap, streams
from .._base.svd import svd
from ..dynamics import Exact
from ..engine.target import Target
from ..geometry.preconditioning import DENSE_LIMIT
from ..priors import Normal
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family
from .closed_form import LARGEST, triangular_factor

__all__ = ["RowSpace", "is_wide"]

LEAST_COLUMNS = 300  # number of columns up to which nothing is gained
RANK = 1e-13  # a singular value of X diag(s) below this share of the largest counts as zero
SQUARED = 1e-12  # the same for the eigenvalues of X diag(s²) Xᵀ, which have half the digits
PASSES = 3  # number of times that draws are moved along V, of which U has lost digits
UNEQUAL = 1e4  # the squares lose a column whose norm is this many times below that of another
DENSE, SPARSE = 2e7, 2e6  # number of entries of dense and of sparse X up to which V is kept


def is_wide(target, request):
    """Whether the posterior is better sampled in the span of the rows."""
    K, d, n = target.model.n_linear, target.n_features, target.n_rows
    most = min(DENSE_LIMIT, K * d // 2)
    if target.model.normal and target.n_parameters > DENSE_LIMIT:
        most = min(LARGEST, d + 1)  # there is a closed form in the span alone
    small = K * n + 2 * K <= most
    may_choose = request.is_open or isinstance(request.sampler, Exact)
    if not (small and d > LEAST_COLUMNS and request.keep is None and may_choose):
        return False
    prior = target.prior[: K * d]
    same = prior[:, SCALE].reshape(K, d)
    normal = of_family(prior, Normal).all() and (prior[:, LOC] == 0.0).all()
    return normal and (same == same[0]).all() and memmap.mapped(target.X) is None


class _WithV:
    """X diag(s) = U √w Vᵀ with V in memory, accurate also if a column exceeds all others by far."""

    def __init__(self, S):
        U, root, Vt = svd(S, full_matrices=False)
        kept = root >= RANK * root[0]  # all of them if X is zero
        self.root, self.U, self.V = root[kept], U[:, kept], np.ascontiguousarray(Vt[kept].T)

    def seen(self, z):
        """Vᵀz for each row z."""
        return z @ self.V

    def moved(self, z, a):
        """z + V (a - Vᵀz) for each row z and a."""
        return z + (a - self.seen(z)) @ self.V.T


class _WithoutV:
    """X diag(s) = U √w Vᵀ with products with X in the place of those with V.

    U and w are those of the squares X diag(s²) Xᵀ or, if the squares of some columns would hide
    others, of the triangular factor of diag(s) Xᵀ, which takes four times as long.
    """

    def __init__(self, S):
        norms = np.sqrt(np.asarray((S * S).sum(axis=0)).ravel())
        norms = norms[norms > 0.0]
        unequal = len(norms) > 0 and norms.max() > UNEQUAL * norms.min()
        self.S, self.passes = S, PASSES if unequal else 1
        self.root, self.U = (_of_triangle if unequal else _of_squares)(S)

    def seen(self, z):
        """Vᵀz for each row z."""
        return (self.S @ z.T).T @ self.U / self.root

    def moved(self, z, a):
        """z + V (a - Vᵀz) for each row z and a, refined where U loses digits in products with X."""
        for _ in range(self.passes):
            change = (a - self.seen(z)) / self.root
            z = z + (self.S.T @ (change @ self.U.T).T).T
        return z


def _of_squares(S):
    """√w and U from S Sᵀ = U w Uᵀ."""
    gram = S @ S.T
    w, U = linalg.eigh(gram.toarray() if sparse.issparse(gram) else gram)
    kept = w >= SQUARED * w[-1]  # all of them if X is zero
    return np.sqrt(np.maximum(w[kept], np.finfo(float).tiny)), U[:, kept]


def _of_triangle(S):
    """√w and U from Rᵀ = U √w Wᵀ, where Sᵀ = QR is factored some columns of S at a time."""
    n, d = S.shape
    S, step, R = (sparse.csc_array(S) if sparse.issparse(S) else S), 4 * n, np.empty((0, n))
    for first in range(0, d, step):
        some = S[:, first : first + step]
        some = (some.toarray() if sparse.issparse(some) else some).T
        R = triangular_factor(np.concatenate([R, some]))
    U, root, _ = svd(R.T, full_matrices=False)
    kept = root >= RANK * root[0]
    return root[kept], U[:, kept]


def _decomposed(X, scale):
    """The decomposition of X diag(s), in the form that suits the size of X."""
    is_sparse = sparse.issparse(X)
    S = sparse.csr_array(X * scale) if is_sparse else np.asarray(X, dtype=np.float64) * scale
    if np.prod(S.shape, dtype=float) > (SPARSE if is_sparse else DENSE):
        return _WithoutV(S)
    return _WithV(S.toarray() if is_sparse else S)


class RowSpace:
    """A target with as many columns as X has rank, and the maps to and from its parameters.

    The attribute `reduced_target` is that target.

    Parameters
    ----------
    target : Target
        The original target, for which `is_wide` is true.
    """

    def __init__(self, target):
        K, d = target.model.n_linear, target.n_features
        self.scale, self.n_linear = target.prior[:d, SCALE], K
        self.svd = _decomposed(target.X, self.scale)
        self.rank = len(self.svd.root)
        rest = target.prior[K * d :]
        prior = np.concatenate([Normal(scale=1.0)._table((K * self.rank,)), rest])
        options = {"intercept": target.intercept, "n_jobs": target.n_jobs}
        X = np.ascontiguousarray(self.svd.U * self.svd.root)
        rows = X, target.labels(), target.weight
        self.reduced_target = Target(*rows, target.model, prior, **options)

    def reduced(self, theta):
        """Parameters of the reduced target for θ of the original one: a = Vᵀz with z = θ/s."""
        d, K = len(self.scale), self.n_linear
        parts = [self.svd.seen(theta[c * d : (c + 1) * d] / self.scale) for c in range(K)]
        return np.concatenate([*parts, theta[K * d :]])

    def mode(self, reduced):
        """θ at the mode, given the mode of the reduced target: the part orthogonal to V is zero."""
        r, K = self.rank, self.n_linear
        a = reduced[: K * r].reshape(K, r)
        z = self.svd.moved(np.zeros((K, len(self.scale))), a)
        return np.concatenate([(self.scale * z).ravel(), reduced[K * r :]])

    def request(self, request):
        """The request for the reduced target, whose draws are judged by the original parameters."""

        def parameters(reduced):
            return request.parameters(self.draws(reduced, streams.of_complement(request.seed)))

        start = None if request.start is None else self.reduced(request.start)
        return replace(request, names=(), start=start, parameters=parameters)

    def draws(self, reduced, rng):
        """Draws of θ for draws of the reduced target's parameters, both (n_chains, n_draws, ·)."""
        r, K = self.rank, self.n_linear
        coefficients = [
            self._coefficients(reduced[..., c * r : (c + 1) * r], rng) for c in range(K)
        ]
        return np.concatenate([*coefficients, reduced[..., K * r :]], axis=-1)

    def _coefficients(self, a, rng):
        """Coefficients s z for draws a: z = ε + V (a - Vᵀε) with new normals ε."""
        epsilon = rng.standard_normal((*a.shape[:-1], len(self.scale)))
        flat = epsilon.reshape(-1, len(self.scale))
        return self.scale * self.svd.moved(flat, a.reshape(-1, a.shape[-1])).reshape(epsilon.shape)

    def outcome(self, found, seed):
        """The `Outcome` in θ, for one in the reduced target's parameters."""
        draws = self.draws(found.draws, streams.of_complement(seed))
        mode = None if found.mode is None else self.mode(found.mode)
        known = {"evidence": self.evidence(found.evidence), "mode": mode}
        return replace(found, draws=draws, scores=None, scores_of="", by_data=None, **known)

    def evidence(self, found):
        """Evidence of each parameter: that of a coefficient is the worst of any in the span."""
        return {name: v if np.ndim(v) == 0 else self._worst(v) for name, v in found.items()}

    def _worst(self, value):
        of_span, rest = np.split(value, [self.n_linear * self.rank])
        return np.append(np.full(self.n_linear * len(self.scale), of_span.max()), rest)

    def watched(self, watch, seed):
        """A callback for draws of the reduced target, which passes draws of θ to `watch`."""
        if watch is None:
            return None

        def told(so_far, share):
            def of_theta():
                draws, weights = so_far()
                return self.draws(draws, streams.of_complement(seed)), weights

            return watch(of_theta, share)

        return told
