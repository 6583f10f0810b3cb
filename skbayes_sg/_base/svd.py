"""Singular values by the faster of LAPACK's algorithms, or by the one that always converges."""

from scipy import linalg

__all__ = ["svd"]


def svd(A, **options):
    """Return what `scipy.linalg.svd` returns, by implicit QR if divide and conquer fails.

    Divide and conquer, SciPy's default, fails for some matrices with many equal singular values,
    such as orthonormal columns; implicit QR takes a few times as long.
    """
    try:
        return linalg.svd(A, **options)
    except linalg.LinAlgError:
        return linalg.svd(A, lapack_driver="gesvd", **options)
