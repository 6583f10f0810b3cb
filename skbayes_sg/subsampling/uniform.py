"""Uniform sampling with replacement: n independent rows, coefficient N/n.

Covariance of the weighted sum of a_i: N² s² / n with s² = Σ (a_i - ā)(a_i - ā)ᵀ / N.
"""

from .._base.jit import pointee
from ._base import Subsampling

__all__ = ["Uniform"]


@pointee
def _draw(rng, subsample, position, rows_out, coefficients_out):
    N, n = subsample.n_rows, subsample.batch_size
    for k in range(n):
        rows_out[k] = int(rng.random() * N)  # bias below N / 2**53; 13 times faster than integers
        coefficients_out[k] = N / n
    return n


class Uniform(Subsampling):
    """Rows drawn uniformly with replacement, coefficient N/n.

    A weighted sum of a_i has covariance N² s²/n with s² = Σ (a_i - ā)(a_i - ā)ᵀ/N.

    Examples
    --------
    >>> from skbayes_sg.subsampling import Uniform
    >>> Uniform()
    Uniform()
    """

    draw = staticmethod(_draw)
