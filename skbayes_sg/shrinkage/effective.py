r"""The effective number of coefficients that are not zero, of Piironen and Vehtari (2017).

With the prior variances v_j and the curvature h_j of the likelihood along coefficient j, the
posterior mean is about the share 1 - κ_j = h_j/(h_j + 1/v_j) of what the data alone say, and

    m_eff = Σ_j (1 - κ_j).
"""

import numpy as np
from scipy import linalg

__all__ = ["curvature_along", "log_effective_number"]


def curvature_along(H, n, precision=0.0):
    """h_j of the first n parameters: the diagonal of H with all later ones integrated out.

    Parameters
    ----------
    H : array of shape (n_parameters, n_parameters)
    n : int
    precision : float or array, default=0.0
        Precision of the later parameters that H does not contain, added to its diagonal.
    """
    rest = H[n:, n:] + np.diag(np.broadcast_to(precision, len(H) - n))
    if len(rest) == 0:
        return np.diag(H).copy()
    taken = np.einsum("ab,ba->a", H[:n, n:], linalg.lstsq(rest, H[n:, :n])[0])
    return np.maximum(np.diag(H)[:n] - taken, 0.0)


def log_effective_number(curvature, precision):
    """log m_eff for rows of curvatures h_j and of prior precisions 1/v_j."""
    left = curvature / (curvature + precision)
    return np.log(np.maximum(left.sum(axis=-1), np.finfo(float).tiny))
