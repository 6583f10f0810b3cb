"""The rows of the coarse paths, given the rows of the two fine steps.

For the telescoping sum of levels the batch of a coarse step must have the law of a batch of a fine
step (Nagapetyan et al. 2017, eq. 8); their joint law is free. Rows 0 and 1 of the arrays are the
fine batches τ₁ and τ₂; rows 2 and 3 are those of the coarse paths.
"""

from typing import Any

from numba.core import types

from .._base.jit import inner, pointee

__all__ = ["COUPLE", "COUPLINGS", "Antithetic", "Common", "Coupling", "Plain"]

_rows, _coefficients = types.Array(types.int64, 2, "C"), types.Array(types.float64, 2, "C")
COUPLE = types.FunctionType(types.void(types.npy_rng, types.int64, _rows, _coefficients))
"""``couple(rng, n, rows, coefficients)`` fills rows 2 and 3 of both arrays from rows 0 and 1."""


@inner
def _copy(n, rows, coefficients, source, to):
    for k in range(n):
        rows[to, k] = rows[source, k]
        coefficients[to, k] = coefficients[source, k]


@pointee
def _plain(rng, n, rows, coefficients):
    _copy(n, rows, coefficients, 0, 2)
    _copy(n, rows, coefficients, 1, 3)
    for k in range(n):  # the first n steps of a Fisher-Yates shuffle of the 2n entries
        other = k + int(rng.random() * (2 * n - k))
        b, j = 2 + other // n, other % n
        rows[2, k], rows[b, j] = rows[b, j], rows[2, k]
        coefficients[2, k], coefficients[b, j] = coefficients[b, j], coefficients[2, k]


@pointee
def _antithetic(rng, n, rows, coefficients):
    _copy(n, rows, coefficients, 0, 2)
    _copy(n, rows, coefficients, 1, 3)


@pointee
def _common(rng, n, rows, coefficients):
    _copy(n, rows, coefficients, 0, 2)


class Coupling:
    """How the batches of coarse paths follow from those of a fine path.

    Attributes
    ----------
    couple : compiled function
        ``couple(rng, n, rows, coefficients)``, see `COUPLE`.
    n_coarse : int
        Number of coarse paths, whose average is compared with the fine path.
    order : float
        The β for which the variance of the difference of two levels is of order h^β.
    """

    couple: Any = None
    n_coarse = 1
    order = 2.0


class Plain(Coupling):
    """Algorithm 1: n of the 2n rows of the two fine batches, drawn without replacement.

    Rows of a fine batch must be independent, as they are with replacement: any n of 2n independent
    rows are n independent rows. From two batches without replacement the mixture could contain a
    row twice, which a single batch cannot.
    """

    couple = staticmethod(_plain)
    order = 1.0


class Antithetic(Coupling):
    """Algorithm 2: two coarse paths, one on τ₁ and one on τ₂, which are averaged.

    The effects of the choice of rows on fine and coarse paths cancel to first order in h: the
    variance of a level is of order h², instead of order h as with `Plain`.
    """

    couple = staticmethod(_antithetic)
    n_coarse = 2


class Common(Coupling):
    """Coupling with all rows at every step, for the fine and the coarse path."""

    couple = staticmethod(_common)


COUPLINGS = {"antithetic": Antithetic, "plain": Plain}
