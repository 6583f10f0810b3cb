"""Extreme eigenvalues of symmetric operators that are given by their products (ARPACK)."""

import numpy as np
from scipy.sparse import linalg

from .._base import streams

__all__ = ["extreme_eigenvalue"]


def extreme_eigenvalue(product, D, which):
    """Largest ("LA") or smallest ("SA") eigenvalue of a symmetric operator, to about 1 %.

    If ARPACK finds none, or products overflow, the result is infinity for the largest and zero for
    the smallest, so that whatever depends on it is conservative.
    """
    operator = linalg.LinearOperator((D, D), matvec=lambda v: product(v.ravel()), dtype=float)
    start = streams.fixed().standard_normal(D)
    try:
        found = linalg.eigsh(
            operator, 1, which=which, tol=0.01, v0=start, maxiter=300, return_eigenvectors=False
        )
    except linalg.ArpackNoConvergence as stopped:
        found = stopped.eigenvalues
    except linalg.ArpackError:  # products that are not finite
        found = []
    if len(found) == 0:
        return np.inf if which == "LA" else 0.0
    return float(found[0])
