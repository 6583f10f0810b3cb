"""Draws from the normal laws of several rows at once, given their precisions.

With the precision Λ and the product Λ m of a row, the lower triangle of

    A = [[Λ, Λ m], [(Λ m)ᵀ, ·]]

represents its law. The Cholesky factorisation extends to the last row, which becomes L⁻¹ Λ m. One
back substitution remains:  Lᵀ m = L⁻¹ Λ m,  Lᵀ x = L⁻¹ Λ m + ε,  x ~ N(m, Λ⁻¹).

Matrices of some tens of rows are too small for vector instructions along their own rows. Therefore
the last axis of A runs over `LANES` matrices, which are factorised side by side. Sums of products
run along the ratings, nine at a time, which is what the registers have room for.
"""

import numpy as np

from .._base.jit import inner

__all__ = ["LANES", "add_products", "draw_lanes", "workspace"]

LANES = 32  # number of matrices that are factorised side by side
RATINGS = 112  # ratings whose products are summed at a time: their z fit into the first-level cache
TILE = 3  # side of the blocks of Z Zᵀ that are summed in registers


@inner
def workspace(D, lanes):
    """Allocate Z (w, RATINGS), A (w, w, lanes) and X (D, lanes).

    w is the smallest multiple of TILE above D. Z and A are zero.
    """
    w = (D + TILE) // TILE * TILE
    return np.zeros((w, RATINGS)), np.zeros((w, w, lanes)), np.empty((D, lanes))


@inner
def add_products(Z, n, lane, A):
    """Add Z Zᵀ, for the first n columns of Z, to the lower triangle of a lane of A.

    The number of rows is a multiple of TILE. Entries above the diagonal may change as well.
    """
    for i in range(0, Z.shape[0], TILE):
        for j in range(0, i + TILE, TILE):
            s00, s01, s02, s10, s11, s12, s20, s21, s22 = (0.0,) * 9
            for k in range(n):
                x0, x1, x2 = Z[i, k], Z[i + 1, k], Z[i + 2, k]
                y0, y1, y2 = Z[j, k], Z[j + 1, k], Z[j + 2, k]
                s00 += x0 * y0
                s01 += x0 * y1
                s02 += x0 * y2
                s10 += x1 * y0
                s11 += x1 * y1
                s12 += x1 * y2
                s20 += x2 * y0
                s21 += x2 * y1
                s22 += x2 * y2
            A[i, j, lane] += s00
            A[i, j + 1, lane] += s01
            A[i, j + 2, lane] += s02
            A[i + 1, j, lane] += s10
            A[i + 1, j + 1, lane] += s11
            A[i + 1, j + 2, lane] += s12
            A[i + 2, j, lane] += s20
            A[i + 2, j + 1, lane] += s21
            A[i + 2, j + 2, lane] += s22


@inner
def _factorise(A, D):
    """Replace each lane of A by its Cholesky factor L, and row D by L⁻¹ Λ m.

    The diagonal has the inverses of the diagonal entries of L.
    """
    n = A.shape[2]
    for j in range(D):
        for lane in range(n):
            A[j, j, lane] = 1.0 / np.sqrt(A[j, j, lane])  # NaN in lanes that are not used
        for i in range(j + 1, D + 1):
            for lane in range(n):
                A[i, j, lane] *= A[j, j, lane]
            for k in range(j + 1, min(i + 1, D)):
                for lane in range(n):
                    A[i, k, lane] -= A[i, j, lane] * A[k, j, lane]


@inner
def draw_lanes(A, X):
    """Replace ε in X by a draw from the law of each lane, and row D of A by the mean of this law.

    The rest of A is overwritten.
    """
    D, n = X.shape
    _factorise(A, D)
    M = A[D]
    for i in range(D):
        for lane in range(n):
            X[i, lane] += M[i, lane]
    for i in range(D - 1, -1, -1):
        for lane in range(n):
            M[i, lane] *= A[i, i, lane]
            X[i, lane] *= A[i, i, lane]
        for k in range(i):
            for lane in range(n):
                M[k, lane] -= A[i, k, lane] * M[i, lane]
                X[k, lane] -= A[i, k, lane] * X[i, lane]
