"""Distance of an unmixing matrix from a known mixing matrix (Amari, Cichocki and Yang 1996)."""

import numpy as np

from .._base.typing import ArrayLike

__all__ = ["amari_distance"]


def amari_distance(components: ArrayLike, mixing: ArrayLike) -> float:
    r"""Distance of an unmixing matrix W from the inverse of a mixing matrix A, in [0, 1].

    .. math::

        \frac{1}{2d(d-1)} \Bigl[ \sum_i \Bigl( \frac{\sum_j |P_{ij}|}{\max_j |P_{ij}|} - 1 \Bigr)
        + \sum_j \Bigl( \frac{\sum_i |P_{ij}|}{\max_i |P_{ij}|} - 1 \Bigr) \Bigr], \qquad P = W A.

    It is 0 if W recovers the sources up to their order, signs and scales, which independent
    component analysis cannot know.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        Unmixing matrix, as ``components_`` of an estimator.
    mixing : array-like of shape (n_features, n_components)
        Mixing matrix, as ``mixing_`` of an estimator.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the product is not a square matrix of finite numbers without zero rows and columns.

    References
    ----------
    S. Amari, A. Cichocki and H. H. Yang (1996). A new learning algorithm for blind signal
    separation. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.metrics import amari_distance
    >>> mixing = np.array([[1.0, 2.0], [0.0, 1.0]])
    >>> round(amari_distance([[0.0, -3.0], [1.0, -2.0]], mixing), 3)
    0.0
    >>> round(amari_distance(np.eye(2), mixing), 3)
    0.25
    """
    P = np.abs(np.asarray(components, dtype=np.float64) @ np.asarray(mixing, dtype=np.float64))
    is_usable = P.ndim == 2 and P.size > 0 and len(P) == P.shape[1] and np.isfinite(P).all()
    if not (is_usable and P.any(axis=0).all() and P.any(axis=1).all()):
        raise ValueError(
            "amari_distance needs a product components @ mixing that is square and finite, without "
            f"rows or columns of zeros; its shape is {P.shape}."
        )
    d = len(P)
    if d == 1:
        return 0.0
    total = sum((P.sum(axis=axis) / P.max(axis=axis) - 1.0).sum() for axis in (1, 0))
    return float(total / (2.0 * d * (d - 1.0)))
