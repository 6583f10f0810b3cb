"""Exact draws of all rows of a column given all else, each by a small Cholesky factorisation.

Given the other columns, the rows of a column are independent and normal. With z and rest from
`skbayes_sg.factorisation.problem`, and the noise precision ω_n of rating n,

    Λ_a = Λ + Σ_n ω_n z_n z_nᵀ,
    m_a = Λ_a⁻¹ (Λ μ + Σ_n ω_n z_n (y_n - rest_n)),
    x_a ~ N(m_a, Λ_a⁻¹)

with sums over the ratings n of category a. The factor and the bias of a row are drawn jointly.
"""

import math

import numpy as np

from .._base.jit import entry, inner
from .._base.threads import in_threads
from .noise import draw_noise
from .normals import LANES, add_products, draw_lanes, workspace
from .problem import blocks, design

__all__ = ["draw_column", "draw_hyper", "draw_rows", "law_of_row", "sweep"]


@inner
def law_of_row(indptr, others, y, a, F, root, scale, c, pull, precision, Z, lane, A_out):
    """Write Λ_a and Λ_a m_a into a lane of A: see `skbayes_sg.factorisation.normals`.

    `scale` is the square root of α w_a. `skbayes_sg.factorisation.problem.design` explains `c`, and
    `draw_rows` the other arguments.
    """
    D = F.shape[1]
    for i in range(D):
        A_out[D, i, lane] = pull[i]
        for j in range(i + 1):
            A_out[i, j, lane] = precision[i, j]
    stop = indptr[a + 1]
    for start in range(indptr[a], stop, Z.shape[1]):
        n = min(Z.shape[1], stop - start)
        for k in range(n):
            rest, s = design(others, start + k, F, root, scale, c, Z, k)
            Z[D, k] = s * (y[start + k] - rest)
        add_products(Z, n, lane, A_out)


@entry
def draw_rows(
    indptr, others, y, first, stop, offset, F, root, alpha, pull, precision, noise, means_out
):
    """Draw the rows first:stop of a column into F, and write their conditional means.

    Parameters
    ----------
    indptr, others, y : see `Grouped`
    first, stop, offset : int
        Categories first:stop of a column, whose rows of F begin at `offset`.
    F : ndarray of shape (n_rows, D), to be changed
    root : ndarray of shape (n_rows,)
        Square roots of the weights w.
    alpha : float
    pull, precision : ndarray of shapes (D,) and (D, D)
        Λ μ and Λ.
    noise : ndarray of shape (n categories, D)
        Standard normal numbers, from which the rows are made.
    means_out : ndarray of shape (n categories, D)
    """
    D = F.shape[1]
    Z, A, X = workspace(D, max(1, min(LANES, stop - first)))
    for start in range(first, stop, LANES):
        n = min(LANES, stop - start)
        for lane in range(n):
            a = start + lane
            scale = math.sqrt(alpha) * root[offset + a]
            law_of_row(indptr, others, y, a, F, root, scale, 1.0, pull, precision, Z, lane, A)
            for k in range(D):
                X[k, lane] = noise[a, k]
        draw_lanes(A, X)
        for lane in range(n):
            for k in range(D):
                F[offset + start + lane, k] = X[k, lane]
                means_out[start + lane, k] = A[D, k, lane]


def draw_column(model, chain, column, n_jobs=None):
    """Draw all rows of a column given everything else; return their conditional means."""
    problem = model.problem
    grouped, rows = problem.groups[column], problem.rows(column)
    mean, precision = (np.ascontiguousarray(array) for array in chain.hyper[column])
    pull = precision @ mean
    # All noise is drawn before the rows are divided among threads, so that the number of threads
    # does not change the draws.
    noise = chain.rng.standard_normal((rows.stop - rows.start, problem.width))
    means, root = np.empty_like(noise), np.sqrt(chain.noise.w)

    law = chain.F, root, float(chain.noise.alpha), pull, precision

    def work(block):
        draw_rows(*grouped, *block, rows.start, *law, noise, means)

    in_threads(work, blocks(grouped.indptr), n_jobs)
    return means


def draw_hyper(model, chain, column):
    """Draw (μ, Λ) of a column given its rows."""
    rows = chain.F[model.problem.rows(column)]
    chain.hyper[column] = model.hyperprior.draw(chain.rng, rows)


def sweep(model, chain, n_jobs=None):
    """Make a pass of Gibbs sampling over all columns, the last one first, and draw the noise."""
    for column in reversed(range(model.problem.n_columns)):
        means = draw_column(model, chain, column, n_jobs)
        draw_hyper(model, chain, column)
    chain.means = means
    draw_noise(model, chain, n_jobs)
