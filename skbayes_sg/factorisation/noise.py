"""Precision of the noise of a rating, α Π_c w_{a_c}; each factor is drawn given the others.

    α ~ Gamma(1, 1),    w_a ~ Gamma(ν_c, ν_c) for every category a of column c   (shape, rate)

so that the noise may differ between users and between items. Given the squared residuals e², with
n_a ratings of category a,

    w_a ~ Gamma(ν_c + n_a / 2, ν_c + ½ Σ_{ratings of a} α Π_{others} w e²),
    α ~ Gamma(1 + N / 2, 1 + ½ Σ Π w e²),

and ν_c is drawn on a grid of equal logarithmic steps. The marginal law of the noise of a category
is Student's t with 2 ν_c degrees of freedom.
"""

import numpy as np
from scipy.special import gammaln

from .._base.jit import entry
from .._base.threads import in_threads
from ..kernels.copies import copy
from .problem import blocks

__all__ = ["COMMON", "EQUAL", "GRID", "HIERARCHICAL", "KNOWN", "draw_noise", "squared_residuals"]
__all__ += ["squares_of_residuals"]

HIERARCHICAL, COMMON, KNOWN = "hierarchical", "common", "known"
GRID = 2.0 * 2.0 ** (np.arange(24) / 4.0)  # values of ν: 2 to 108
EQUAL = 1e30  # ν where all weights are 1: those of new categories are, too
# Log normalising constants of Gamma(ν, ν) for each ν of the grid.
_LOG_CONSTANT = GRID * np.log(GRID) - gammaln(GRID)


@entry
def squared_residuals(indptr, others, y, first, stop, offset, F, e2_out):
    """(y - f)² of the ratings of categories first:stop of a column, in the order of the column."""
    K, C = F.shape[1] - 1, others.shape[1]
    s = np.empty(K)
    for a in range(first, stop):
        x = F[offset + a]
        for n in range(indptr[a], indptr[a + 1]):
            if C == 1:
                z = F[others[n, 0]]
                f = x[K] + z[K]
                for k in range(K):
                    f += x[k] * z[k]
            else:
                copy(x[:K], s)
                f = x[K]
                for c in range(C):
                    z = F[others[n, c]]
                    f += z[K]
                    for k in range(K):
                        f += s[k] * z[k]
                        s[k] += z[k]
            e2_out[n] = (y[n] - f) ** 2


@entry
def weighted_sums(indptr, others, offset, e2, w, which, sums_out):
    """Add Σ Π w e² over the ratings of each category of column `which` to its entry of sums_out.

    The weight of the category itself is left out of the product. Column 0 is the column by which
    the ratings are grouped (`indptr`).
    """
    for a in range(indptr.shape[0] - 1):
        mine = 1.0 if which == 0 else w[offset + a]
        for n in range(indptr[a], indptr[a + 1]):
            term = mine * e2[n]
            for c in range(others.shape[1]):
                if c + 1 != which:
                    term *= w[others[n, c]]
            if which == 0:
                sums_out[offset + a] += term
            else:
                sums_out[others[n, which - 1]] += term


def _draw_shape(rng, w):
    """Draw ν on the grid given the weights of a column, with probabilities Π Gamma(w; ν, ν)."""
    log_p = len(w) * _LOG_CONSTANT + GRID * (np.log(w) - w).sum()
    p = np.exp(log_p - log_p.max())
    return GRID[min(np.searchsorted(np.cumsum(p) / p.sum(), rng.random()), len(GRID) - 1)]


def _sums(problem, e2, w, which):
    grouped, sums = problem.groups[0], np.zeros(problem.n_rows)
    weighted_sums(grouped.indptr, grouped.others, 0, e2, w, which, sums)
    return sums[problem.rows(which)]


def squares_of_residuals(problem, F, n_jobs=None):
    """(y - f)² of all ratings, (n_ratings,), in the order of column 0."""
    grouped, e2 = problem.groups[0], np.empty(problem.n_ratings)

    def work(block):
        squared_residuals(*grouped, *block, 0, F, e2)

    in_threads(work, blocks(grouped.indptr), n_jobs)
    return e2


def draw_noise(model, chain, n_jobs=None):
    """Draw w of column 0, then α, then the other w, each followed by its ν, in place.

    `KNOWN` noise is not drawn; for `COMMON` noise only α is drawn.
    """
    if model.noise == KNOWN:
        return
    problem, noise = model.problem, chain.noise
    e2 = squares_of_residuals(problem, chain.F, n_jobs)
    sums = _sums(problem, e2, noise.w, 0)
    hierarchical = model.noise == HIERARCHICAL
    if hierarchical:
        _draw_weights(problem, noise, sums, 0, chain.rng)
    total = noise.w[problem.rows(0)] @ sums
    noise.alpha = chain.rng.standard_gamma(1.0 + 0.5 * problem.n_ratings) / (1.0 + 0.5 * total)
    for column in range(1, problem.n_columns if hierarchical else 1):
        _draw_weights(problem, noise, _sums(problem, e2, noise.w, column), column, chain.rng)


def _draw_weights(problem, noise, sums, column, rng):
    rows, nu = problem.rows(column), noise.shapes[column]
    counts = np.diff(problem.groups[column].indptr)
    gamma = rng.standard_gamma(nu + 0.5 * counts)
    noise.w[rows] = np.maximum(gamma / (nu + 0.5 * noise.alpha * sums), np.finfo(float).tiny)
    noise.shapes[column] = _draw_shape(rng, noise.w[rows])
