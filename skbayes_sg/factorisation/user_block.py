"""Langevin dynamics of items with exact draws of users: gradients of the marginal posterior.

The state consists of all columns but the first (users), and its law is the posterior with users
integrated out. By Fisher's identity the gradient of this law is the expectation, over users given
all else, of the joint gradient. A step takes one of U users, draws its row x_u given all others,
and adds

    U Σ_{ratings n of u} ω_n (y_n - f_n) z_n,    z_n = [x_u + Σ_{other columns} p, 1],

to the rows of its items. This estimate is unbiased
(``tests/factorisation/test_sparse.py::test_step_of_a_user``). Prior and noise of items are applied
as in `sparse`.
"""

import math

import numpy as np

from .._base.jit import entry
from .gibbs_updates import draw_column, draw_hyper, law_of_row
from .lazy import flow
from .noise import draw_noise
from .normals import draw_lanes, workspace
from .sparse import CHUNK, SparseGradient, bring_column

__all__ = ["UserBlockSGLD"]


@entry
def _user_steps(ratings, users, state, now, step, noise, c, H, prior, own, brakes, normals, rng):
    """Make a step for each of `users`; see `skbayes_sg.factorisation.sparse.sparse_pass`.

    `ratings` are grouped by users. `state` is (F, last), and `noise` is (w, root, alpha) with the
    roots of the weights. `prior` is (V, lam, means) of the columns, and `own` (Λ μ, Λ) of users.
    `brakes` is (patience, implicit), and `normals` are standard normal, (n, D).
    """
    (indptr, others, y), (F, last), (w, root, alpha) = ratings, state, noise
    (V, lam, means), (pull, precision), (patience, implicit) = prior, own, brakes
    D, C, U = F.shape[1], others.shape[1], indptr.shape[0] - 1
    K = D - 1
    Z, A, X = workspace(D, 1)
    yy, total = np.empty(D), np.empty(D)
    most = 0
    for u in users:
        most = max(most, indptr[u + 1] - indptr[u])
    push = np.empty((most, C, D))
    for s in range(users.shape[0]):
        u, x = users[s], F[users[s]]
        for n in range(indptr[u], indptr[u + 1]):
            for j in range(C):
                a = others[n, j]
                behind = step * (now - last[a])
                if behind > 0.0 and behind >= patience:
                    flow(behind, H[a], means[j + 1], V[j + 1], lam[j + 1], rng, yy, F[a])
                    last[a] = now
        scale = math.sqrt(alpha) * root[u]
        law_of_row(indptr, others, y, u, F, root, scale, c, pull, precision, Z, 0, A)
        X[:, 0] = normals[s]
        draw_lanes(A, X)
        x[:] = X[:, 0]
        first = indptr[u]
        for n in range(first, indptr[u + 1]):
            omega, f = alpha * w[u], c * x[K]
            for k in range(K):
                total[k] = x[k]
            for j in range(C):
                a = others[n, j]
                omega *= w[a]
                f += c * F[a, K]
                for k in range(K):
                    f += total[k] * F[a, k]
                    total[k] += F[a, k]
            scale = omega * (y[n] - f)
            if implicit:
                for j in range(C):
                    a, square = others[n, j], c * c
                    for k in range(K):
                        square += (total[k] - F[a, k]) ** 2
                    scale /= 1.0 + 0.5 * step * U * omega * square / H[a]
            for j in range(C):
                a = others[n, j]
                for k in range(K):
                    push[n - first, j, k] = scale * (total[k] - F[a, k])
                push[n - first, j, K] = scale * c
        for n in range(first, indptr[u + 1]):
            for j in range(C):
                a = others[n, j]
                gain = 0.5 * step * U / H[a]
                for k in range(D):
                    F[a, k] += gain * push[n - first, j, k]
        now += 1


class UserBlockSGLD(SparseGradient):
    """Langevin dynamics of items, with exact draws of users.

    A step draws one user given all items, and moves the items that the user has rated: see
    `skbayes_sg.factorisation.user_block`. After a pass all users are drawn from their law given the
    items, so that a draw contains users and items together.

    Parameters
    ----------
    step_size : "auto" or float in (0, 4), default="auto"
        h, the time of a pass over the users, as for `SparseSGLD`. "auto" is 0.4.
    patience : float, default=0.1
        The time that the row of an item may be behind when it is used: see `SparseSGLD`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianPMF
    >>> from skbayes_sg.factorisation import UserBlockSGLD
    >>> user, item = np.divmod(np.arange(600), 20)
    >>> y = np.sin(user) * np.cos(item)
    >>> model = BayesianPMF(rank=2, sampler=UserBlockSGLD(), random_state=0)
    >>> model.fit(np.column_stack([user, item]), y).score(np.column_stack([user, item]), y) > 0.9
    True
    """

    has_means = True

    def __init__(self, step_size="auto", patience=0.1):
        self.step_size = step_size
        self.patience = patience

    def ratings_a_step(self, problem):
        """Average number of ratings of a user."""
        return max(1, round(problem.n_ratings / int(problem.offsets[1])))

    def sweep(self, model, chain, n_jobs=None):
        """Make a pass of steps; then draw all users, (μ, Λ) and the noise."""
        h, warming = self._progress(model, chain)
        self._prepare(model, chain, warming)
        self._steps(model, chain, h, warming)
        for column in reversed(range(1, model.problem.n_columns)):
            draw_hyper(model, chain, column)
        chain.means = draw_column(model, chain, 0, n_jobs)
        draw_hyper(model, chain, 0)
        draw_noise(model, chain, n_jobs)

    def _steps(self, model, chain, h, warming):
        problem, memory, noise = model.problem, chain.memory, chain.noise
        grouped, c, U = problem.groups[0], chain.memory.c, int(problem.offsets[1])
        prior = V, lam, means, *_ = self._prior(model, chain, warming)
        mean, precision = chain.hyper[0]
        scaled = np.append(np.ones(problem.rank), c)
        own = (precision @ mean) * scaled, precision * np.outer(scaled, scaled)
        step, weights = h / U, (noise.w, np.sqrt(noise.w), float(noise.alpha))
        chain.F[:, -1] /= c
        state, brakes = (chain.F, memory.last), (float(self.patience), warming)
        law = step, weights, c, memory.H, (V, lam, means), own, brakes
        users = chain.rng.integers(0, U, U)
        size = max(1, int(CHUNK * U / problem.n_ratings))
        for k in range(0, U, size):
            some = users[k : k + size]
            normals = chain.rng.standard_normal((len(some), problem.width))
            _user_steps(grouped, some, state, memory.now, *law, normals, chain.rng)
            memory.now += len(some)
        for column in range(1, problem.n_columns):
            bring_column(model, chain, column, step, (False, 1.0), prior)
        chain.F[:, -1] *= c
