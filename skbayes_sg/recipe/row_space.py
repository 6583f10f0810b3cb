"""Posteriors with more coefficients than rows: sampled in the span of the rows, exactly.

With normal priors of mean 0 and standard deviations s, z = θ/s is standard normal, and the rows
see only X diag(s) z. With X diag(s) = U √w Vᵀ, the likelihood depends on a = Vᵀz alone, whose prior
is standard normal as well, with U √w in the place of X. What is orthogonal to V has its prior law:

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

LEAST_COLUMNS = 300  # number of columns up to which nothing is gained
RANK = 1e-12  # an eigenvalue of X diag(s²) Xᵀ below this share of the largest counts as zero


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
        rows = X, target.labels(), target.weight
        self.reduced_target = Target(*rows, target.model, prior, **options)

    def reduced(self, theta):
        """Parameters of the reduced target for θ of the original one: a = Vᵀz with z = θ/s."""
        d, K = len(self.scale), self.n_linear
        parts = [self._seen(theta[c * d : (c + 1) * d] / self.scale) for c in range(K)]
        return np.concatenate([*parts, theta[K * d :]])

    def _seen(self, z):
        """Vᵀz for each row z."""
        return (self.S @ z.T).T @ self.U / self.root

    def mode(self, reduced):
        """θ at the mode, given the mode of the reduced target: the part orthogonal to V is zero."""
        r, K = len(self.root), self.n_linear
        a = reduced[: K * r].reshape(K, r)
        return np.concatenate([(self.scale * self._unseen(a)).ravel(), reduced[K * r :]])

    def _unseen(self, a):
        """V a for each row a."""
        return (self.S.T @ (a / self.root @ self.U.T).T).T

    def request(self, request):
        """The request for the reduced target, whose draws are judged by the original parameters."""

        def parameters(reduced):
            return request.parameters(self.draws(reduced, streams.of_complement(request.seed)))

        start = None if request.start is None else self.reduced(request.start)
        return replace(request, names=(), start=start, parameters=parameters)

    def draws(self, reduced, rng):
        """Draws of θ for draws of the reduced target's parameters, both (n_chains, n_draws, ·)."""
        r, K = len(self.root), self.n_linear
        coefficients = [
            self._coefficients(reduced[..., c * r : (c + 1) * r], rng) for c in range(K)
        ]
        return np.concatenate([*coefficients, reduced[..., K * r :]], axis=-1)

    def _coefficients(self, a, rng):
        """Coefficients s z for draws a: z = ε + V (a - Vᵀε) with new normals ε."""
        epsilon = rng.standard_normal((*a.shape[:-1], len(self.scale)))
        flat = epsilon.reshape(-1, len(self.scale))
        change = self._unseen(a.reshape(-1, a.shape[-1]) - self._seen(flat))
        return self.scale * (flat + change).reshape(epsilon.shape)

    def outcome(self, found, seed):
        """The `Outcome` in θ; evidence of each parameter is the worst of any reduced parameter."""
        draws = self.draws(found.draws, streams.of_complement(seed))
        evidence = {
            name: value if np.ndim(value) == 0 else np.full(draws.shape[-1], np.max(value))
            for name, value in found.evidence.items()  # evidence in the span concerns all of θ
        }
        known = {"evidence": evidence, "mode": self.mode(found.mode)}
        return replace(found, draws=draws, scores=None, scores_of="", by_data=None, **known)

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
