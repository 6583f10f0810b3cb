"""Substitution with lower triangular matrices of a few rows, in place.

Calls of LAPACK for matrices of this size take longer than their arithmetic.
"""

from .._base.jit import inlined

__all__ = ["solve", "solve_transposed"]


@inlined
def solve(L, b):
    """b ← L⁻¹ b."""
    for i in range(b.shape[0]):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]


@inlined
def solve_transposed(L, b):
    """b ← L⁻ᵀ b."""
    for i in range(b.shape[0] - 1, -1, -1):
        for k in range(i + 1, b.shape[0]):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]
