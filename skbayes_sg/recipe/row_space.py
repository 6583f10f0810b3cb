"""Posteriors with more coefficients than rows: sampled in the span of the rows, exactly.

With normal priors of mean 0 and standard deviations s, z = θ/s is standard normal, and the rows
see only X diag(s) z. With X diag(s) = U √w Vᵀ, the likelihood is one of a = Vᵀz, whose prior is
standard normal as well, with U √w in the place of X; what is orthogonal to V has its prior law,

    z = ε + V (a - Vᵀε),     ε ~ N(0, I),

for draws a of the posterior with as many columns as X has rank
(``tests/recipe/test_row_space.py::test_it_is_used_where_it_pays_and_is_exact``). No V is needed,
since V = diag(s) Xᵀ U w^-½.
"""

from dataclasses import replace

import numpy as np
from scipy import linalg, sparse

from .._base import memmap, streams
from ..engine.target import Target
from ..geometry.preconditioning import DENSE_LIMIT
from ..priors import Normal
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family

__all__ = ["RowSpace", "is_wide"]

LEAST_COLUMNS = 300  # below which nothing is gained
RANK = 1e-12  # of the largest eigenvalue of X diag(s²) Xᵀ, below which there is none


def is_wide(target, request):
    """Whether the posterior is better sampled in the span of the rows."""
    K, d, n = target.model.n_linear, target.n_features, target.n_rows
    small = K * n + 2 * K <= min(DENSE_LIMIT, K * d // 2)
    if not (small and d > LEAST_COLUMNS and request.keep is None and request.is_open):
        return False
    prior = target.prior[: K * d]
    same = prior[:, SCALE].reshape(K, d)
    normal = of_family(prior, Normal).all() and (prior[:, LOC] == 0.0).all()
    return normal and (same == same[0]).all() and memmap.mapped(target.X) is None


class RowSpace:
    """A target with as many columns as X has rank, and the way back.

    Parameters
    ----------
    target : Target
        One that `is_wide`.
    """

    def __init__(self, target):
        K, d = target.model.n_linear, target.n_features
        self.scale, self.n_linear = target.prior[:d, SCALE], K
        self.S = sparse.csr_array(target.X * self.scale) if sparse.issparse(target.X) else None
        if self.S is None:
            self.S = np.asarray(target.X, dtype=np.float64) * self.scale
        gram = self.S @ self.S.T
        w, U = linalg.eigh(gram.toarray() if sparse.issparse(gram) else gram)
        kept = w > RANK * max(w[-1], np.finfo(float).tiny)
        self.root, self.U = np.sqrt(w[kept]), U[:, kept]
        rest = target.prior[K * d :]
        prior = np.concatenate([Normal(scale=1.0)._table((K * len(self.root),)), rest])
        options = {"intercept": target.intercept, "n_jobs": target.n_jobs}
        X = np.ascontiguousarray(self.U * self.root)
        self.target = Target(X, target.labels(), target.weight, target.model, prior, **options)

    def reduced(self, theta):
        """The parameters of `target` for those of the rows: a = Vᵀz for z = θ/s."""
        d, K = len(self.scale), self.n_linear
        parts = [self._seen(theta[c * d : (c + 1) * d] / self.scale) for c in range(K)]
        return np.concatenate([*parts, theta[K * d :]])

    def _seen(self, z):
        """Vᵀz, of each row of z."""
        return (self.S @ z.T).T @ self.U / self.root

    def mode(self, reduced):
        """θ at the mode, for the parameters of `target` there: what is orthogonal to V is zero."""
        r, K = len(self.root), self.n_linear
        a = reduced[: K * r].reshape(K, r)
        return np.concatenate([(self.scale * self._unseen(a)).ravel(), reduced[K * r :]])

    def _unseen(self, a):
        """V a, of each row of a."""
        return (self.S.T @ (a / self.root @ self.U.T).T).T

    def request(self, request):
        """What is asked of `target`, whose draws are judged by the parameters they become."""

        def parameters(reduced):
            return request.parameters(self.draws(reduced, streams.of_complement(request.seed)))

        start = None if request.start is None else self.reduced(request.start)
        return replace(request, names=(), start=start, parameters=parameters)

    def draws(self, reduced, rng):
        """Draws of θ for draws of the parameters of `target`, (n_chains, n_draws, ·)."""
        r, K = len(self.root), self.n_linear
        coefficients = [
            self._coefficients(reduced[..., c * r : (c + 1) * r], rng) for c in range(K)
        ]
        return np.concatenate([*coefficients, reduced[..., K * r :]], axis=-1)

    def _coefficients(self, a, rng):
        epsilon = rng.standard_normal((*a.shape[:-1], len(self.scale)))
        flat = epsilon.reshape(-1, len(self.scale))
        change = self._unseen(a.reshape(-1, a.shape[-1]) - self._seen(flat))
        return self.scale * (flat + change).reshape(epsilon.shape)

    def outcome(self, found, seed):
        """The `Outcome` of θ; evidence of single parameters of `target` goes to all of them."""
        draws = self.draws(found.draws, streams.of_complement(seed))
        evidence = {
            name: value if np.ndim(value) == 0 else np.full(draws.shape[-1], np.max(value))
            for name, value in found.evidence.items()  # those of the span hold for all coefficients
        }
        known = {"evidence": evidence, "mode": self.mode(found.mode)}
        return replace(found, draws=draws, scores=None, scores_of="", **known)

    def watched(self, watch, seed):
        """`watch` for draws of the parameters of `target`."""
        if watch is None:
            return None

        def told(so_far, share):
            def of_theta():
                draws, weights = so_far()
                return self.draws(draws, streams.of_complement(seed)), weights

            return watch(of_theta, share)

        return told
