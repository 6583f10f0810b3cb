"""Exact draws of all rows of a column given all else, each by one small Cholesky solve.

Given the other columns, the rows of a column are independent and normal. With z and rest of
`skbayes_sg.factorisation.problem`, and the noise precision ω_n of rating n,

    Λ_a = Λ + Σ_n ω_n z_n z_nᵀ,
    m_a = Λ_a⁻¹ (Λ μ + Σ_n ω_n z_n (y_n - rest_n)),
    x_a ~ N(m_a, Λ_a⁻¹)

over the ratings n of category a: the factor and the bias of a row are drawn jointly.
"""

import math

import numpy as np

from .._jit import entry, inner
from ..engine.threads import in_threads
from .noise import draw_noise
from .problem import blocks, design

__all__ = ["draw_column", "draw_hyper", "draw_row", "draw_rows", "sweep"]


@inner
def _add_four(Z, t, A, b):
    """A += Zᵀ Z in the lower triangle, b += Zᵀ t, for four rows Z."""
    for i in range(b.shape[0]):
        z0, z1, z2, z3 = Z[0, i], Z[1, i], Z[2, i], Z[3, i]
        b[i] += z0 * t[0] + z1 * t[1] + z2 * t[2] + z3 * t[3]
        for j in range(i + 1):
            A[i, j] += z0 * Z[0, j] + z1 * Z[1, j] + z2 * Z[2, j] + z3 * Z[3, j]


@inner
def _cholesky(A):
    """A = L Lᵀ in the lower triangle, with the inverses of the diagonal of L on the diagonal."""
    D = A.shape[0]
    for j in range(D):
        for i in range(j, D):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total
        A[j, j] = 1.0 / math.sqrt(A[j, j])
        for i in range(j + 1, D):
            A[i, j] *= A[j, j]


@inner
def _solve(L, b, noise, x_out, mean_out):
    """mean_out = (L Lᵀ)⁻¹ b and x_out = mean_out + L⁻ᵀ noise; b is overwritten by L⁻¹ b."""
    D = b.shape[0]
    for i in range(D):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] *= L[i, i]
    for i in range(D):
        mean_out[i], x_out[i] = b[i], b[i] + noise[i]
    for i in range(D - 1, -1, -1):
        mean_out[i] *= L[i, i]
        x_out[i] *= L[i, i]
        for k in range(i):
            mean_out[k] -= L[i, k] * mean_out[i]
            x_out[k] -= L[i, k] * x_out[i]


@inner
def draw_row(
    indptr, others, y, a, F, root, scale, c, pull, precision, noise, A, b, Z, t, x_out, mean_out
):  # fmt: skip
    """Draw the row of category a given all others, and write its conditional mean.

    `scale` is the root of α w_a; A (D, D), b (D,), Z (4, D) and t (4,) are working memory. For the
    rest see `draw_rows` and `skbayes_sg.factorisation.problem.design`.
    """
    D = F.shape[1]
    for i in range(D):
        b[i] = pull[i]
        for j in range(i + 1):
            A[i, j] = precision[i, j]
    for start in range(indptr[a], indptr[a + 1], 4):
        for k in range(4):
            n = start + k
            if n < indptr[a + 1]:
                rest, s = design(others, n, F, root, scale, c, Z, k)
                t[k] = s * (y[n] - rest)
            else:
                for i in range(D):
                    Z[k, i] = 0.0
                t[k] = 0.0
        _add_four(Z, t, A, b)
    _cholesky(A)
    _solve(A, b, noise, x_out, mean_out)


@entry
def draw_rows(
    indptr, others, y, first, stop, offset, F, root, alpha, pull, precision, noise, means_out
):
    """Draw rows first:stop of a column into F, and write their conditional means.

    Parameters
    ----------
    indptr, others, y : see `Grouped`
    first, stop, offset : int
        Categories first:stop of a column whose rows of F begin at `offset`.
    F : ndarray of shape (n_rows, D), to be changed
    root : ndarray of shape (n_rows,)
        Square roots of the weights w.
    alpha : float
    pull, precision : ndarray of shapes (D,) and (D, D)
        Λ μ and Λ.
    noise : ndarray of shape (n categories, D)
        Standard normal.
    means_out : ndarray of shape (n categories, D)
    """
    D = F.shape[1]
    A, b, Z, t = np.empty((D, D)), np.empty(D), np.empty((4, D)), np.empty(4)
    for a in range(first, stop):
        scale = math.sqrt(alpha) * root[offset + a]
        draw_row(
            indptr, others, y, a, F, root, scale, 1.0, pull, precision, noise[a], A, b, Z, t,
            F[offset + a], means_out[a],
        )  # fmt: skip


def draw_column(model, chain, column, n_jobs=None):
    """Draw all rows of a column given everything else; return their conditional means."""
    problem = model.problem
    grouped, rows = problem.groups[column], problem.rows(column)
    mean, precision = (np.ascontiguousarray(array) for array in chain.hyper[column])
    pull = precision @ mean
    # Before the rows are shared out, so that draws do not depend on the number of threads.
    noise = chain.rng.standard_normal((rows.stop - rows.start, problem.width))
    means, root = np.empty_like(noise), np.sqrt(chain.noise.w)

    def work(block):
        draw_rows(
            *grouped, *block, rows.start, chain.F, root, float(chain.noise.alpha), pull,
            precision, noise, means,
        )  # fmt: skip

    in_threads(work, blocks(grouped.indptr), n_jobs)
    return means


def draw_hyper(model, chain, column):
    """Draw (μ, Λ) of a column given its rows."""
    rows = chain.F[model.problem.rows(column)]
    chain.hyper[column] = model.hyperprior.draw(chain.rng, rows)


def sweep(model, chain, n_jobs=None):
    """One pass of Gibbs sampling: all columns, the last first, then the noise."""
    for column in reversed(range(model.problem.n_columns)):
        means = draw_column(model, chain, column, n_jobs)
        draw_hyper(model, chain, column)
    chain.means = means
    draw_noise(model, chain, n_jobs)
