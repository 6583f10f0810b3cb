"""Zero-variance control variates: better means from the same draws, given their scores."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._base.svd import svd
from ..diagnostics._draws import as_matrix, as_pair, as_weights

__all__ = ["ZeroVarianceMean", "held_out_values", "zero_variance", "zero_variance_basis"]
__all__ += ["zero_variance_weights"]

ORDERS = ("linear", "quadratic")
PLENTY = 10  # draws for each control variate, from which on "auto" does not shrink coefficients
SHARES = 10.0 ** np.arange(-8, 3.0)  # penalties to try, in mean squares of a control variate


@dataclass(frozen=True)
class ZeroVarianceMean:
    """Means with control variates, the result of `zero_variance`.

    Parameters
    ----------
    mean : ndarray
        The estimates, in the shape of a value.
    residuals : ndarray of shape (n_draws, ...)
        The part of each value that the control variates do not explain. Residuals have mean zero.
        The coefficients were fitted to the same draws, so that their spread is too small where
        there are few draws for each coefficient: `held_out_values` has no such error.
    variance_ratio : ndarray
        Variance of the residuals, corrected for the number of coefficients, as a share of the
        variance of the values: this share of as many independent draws would suffice.
    n_basis : int
        Number of control variates.
    shrinkage : ndarray
        The penalty for each value; 0 is least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.postprocess import zero_variance
    >>> draws = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = zero_variance(draws**2, draws, -draws, order="quadratic")
    >>> found.mean.round(6), found.n_basis
    (array([1., 1.]), 5)
    """

    mean: np.ndarray
    residuals: np.ndarray
    variance_ratio: np.ndarray
    n_basis: int
    shrinkage: np.ndarray


def zero_variance_basis(draws: np.ndarray, scores: np.ndarray, order: str = "linear") -> np.ndarray:
    r"""Control variates: functions of draws and scores whose mean under the density is zero.

    .. math::

        \Delta Q(\theta) + \nabla Q(\theta) \cdot s(\theta), \qquad s = \nabla \log p,

    for the monomials Q of degree one (``"linear"``: the scores themselves) and two
    (``"quadratic"``: these and :math:`\theta_j s_k + \theta_k s_j + 2 \cdot 1[j = k]`, halved for
    j = k). In the notation of the papers :math:`z = -s/2`, which changes coefficients only.

    Parameters
    ----------
    draws, scores : arrays of shape (n_draws, d) or (n_chains, n_draws, d)
    order : {"linear", "quadratic"}, default="linear"

    Returns
    -------
    array of shape (n, d) or (n, d + d (d + 1) / 2)
        One row for each of the n pooled draws.

    Examples
    --------
    >>> from skbayes_sg.postprocess import zero_variance_basis
    >>> zero_variance_basis([[2.0], [0.0]], [[-2.0], [0.0]], "quadratic")
    array([[-2., -3.],
           [ 0.,  1.]])
    """
    x, s = as_pair(draws, scores)
    if order not in ORDERS:
        raise ValueError(f"order must be one of {list(ORDERS)}, got {order!r}.")
    if order == "linear":
        return s
    j, k = np.triu_indices(x.shape[1])
    products = x[:, j] * s[:, k]
    off = j != k
    products[:, off] += x[:, k[off]] * s[:, j[off]]
    products[:, ~off] += 1.0
    return np.hstack([s, products])


def zero_variance(
    values: np.ndarray,
    draws: np.ndarray,
    scores: np.ndarray,
    *,
    order: str = "linear",
    weights: np.ndarray | None = None,
    shrinkage: float | str | None = "auto",
) -> ZeroVarianceMean:
    r"""Posterior means of functions of the draws, with the scores as control variates.

    Fits :math:`g(\theta_i) \approx \mu + \sum_m a_m \psi_m(\theta_i)` by least squares, with the
    functions :math:`\psi_m` of `zero_variance_basis`. Their posterior means are zero, so that
    :math:`\mu` is an estimate of the mean of g, and only the part that the :math:`\psi_m` do not
    explain contributes to its error. For a Gaussian density "linear" gives means, and "quadratic"
    second moments, without any error from any draws
    (``tests/postprocess/test_zero_variance.py::test_linear_gives_means_of_a_gaussian_from_any_points``).
    If draws follow the density only
    approximately, as those of samplers with stochastic gradients do, the estimate also loses most
    of their bias, provided that the density is nearly Gaussian.

    Unbiased estimates of the scores suffice, such as those that the sampler has computed: their
    noise reduces the gain and causes no bias
    (``tests/postprocess/test_zero_variance.py::test_noise_of_the_scores_makes_no_bias``).

    Parameters
    ----------
    values : array of shape (n_draws, ...) or (n_chains, n_draws, ...)
        g at the draws, with chains as in `draws`.
    draws, scores : arrays of shape (n_draws, d) or (n_chains, n_draws, d)
        Draws, and gradients of the log density there.
    order : {"linear", "quadratic"}, default="linear"
        Degree of the polynomials, with d or d + d(d + 1)/2 control variates.
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.
    shrinkage : "auto", None or float, default="auto"
        Ridge penalty on the coefficients, in units of the mean squares of the control variates.
        None is 0. "auto" is 0 if there are ten draws for each control variate; otherwise
        generalised cross-validation chooses the penalty of each value.

    Returns
    -------
    ZeroVarianceMean
        With `mean`, `residuals`, `variance_ratio`.

    Raises
    ------
    ValueError
        If the shapes of the arrays do not match, and if there are no more draws than control
        variates but no shrinkage.

    Warns
    -----
    UserWarning
        If coefficients are shrunk because there are no more draws than control variates.

    References
    ----------
    A. Mira, R. Solgi and D. Imparato (2013). Zero variance Markov chain Monte Carlo for Bayesian
    estimators. Statistics and Computing 23, 653-662. With estimated scores: J. Baker, P. Fearnhead,
    E. B. Fox and C. Nemeth (2019), Control variates for stochastic gradient MCMC, algorithm 2.

    Examples
    --------
    The mean of N(3, 2²) from five points that are not even drawn from it:

    >>> import numpy as np
    >>> from skbayes_sg.postprocess import zero_variance
    >>> theta = np.array([[-1.0], [0.0], [2.0], [5.0], [9.0]])
    >>> zero_variance(theta, theta, -(theta - 3.0) / 2.0**2, shrinkage=None).mean.round(12)
    array([3.])
    """
    w, shape, g = _values(values, draws, weights)
    psi, centre, scale = _centred_basis(draws, scores, order, w)
    n, p = psi.shape
    lam = _penalty(shrinkage, order, n, p)
    root, mean = np.sqrt(w)[:, None], w @ g
    Z, v = root * (psi - centre) / scale, root * (g - mean)
    a, used, df = _coefficients(Z, v, lam)
    a /= scale[:, None]
    mu = mean - centre @ a
    residuals = g - mu - psi @ a
    left, before = w @ residuals**2, (v * v).sum(axis=0)
    spent = 1.0 - np.minimum(df, n - 1.0) / n
    ratio = np.where(before > 0.0, left / np.where(before > 0.0, before, 1.0), 0.0) / spent
    mu, ratio, used = (values.reshape(shape) for values in (mu, ratio, used))
    return ZeroVarianceMean(mu, residuals.reshape(n, *shape), ratio, p, used)


def held_out_values(
    values: np.ndarray,
    draws: np.ndarray,
    scores: np.ndarray,
    *,
    order: str = "linear",
    shrinkage: float | str | None = "auto",
) -> np.ndarray:
    r"""Values of functions less their control variates, with coefficients from other draws.

    The mean of :math:`g - \sum_m a_m \psi_m` is that of g for any coefficients. Here the
    coefficients of each half of the draws are fitted to the other half, so that the spread of the
    results is what the control variates leave, and no part of it is fitted away.

    Parameters
    ----------
    values : array of shape (n_draws, ...) or (n_chains, n_draws, ...)
        g at the draws, with chains as in `draws`.
    draws, scores : arrays of shape (n_draws, d) or (n_chains, n_draws, d)
        Draws, and gradients of the log density there.
    order : {"linear", "quadratic"}, default="linear"
        As in `zero_variance`.
    shrinkage : "auto", None or float, default="auto"
        As in `zero_variance`, for half of the draws.

    Returns
    -------
    array of the shape of `values`

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.postprocess import held_out_values
    >>> theta = np.random.default_rng(0).normal(1.0, 2.0, size=(100, 1))
    >>> held_out_values(theta, theta, -(theta - 1.0) / 2.0**2).std().round(12)
    np.float64(0.0)
    """
    w, _, g = _values(values, draws, None)
    psi, centre, scale = _centred_basis(draws, scores, order, w)
    first = np.arange(np.shape(draws)[-2]) < np.shape(draws)[-2] // 2  # of every chain
    half = np.broadcast_to(first, np.shape(draws)[:-1]).ravel()
    out = np.empty_like(g)
    for fit, rest in ((half, ~half), (~half, half)):
        Z, v = (psi - centre)[fit] / scale, g[fit]
        n = len(v)
        root = 1.0 / np.sqrt(n)  # the weights of the draws
        lam = _penalty(shrinkage, order, *Z.shape)
        a = _coefficients(root * (Z - Z.mean(axis=0)), root * (v - v.mean(axis=0)), lam)[0]
        out[rest] = g[rest] - (psi[rest] / scale) @ a
    return out.reshape(np.shape(values))


def zero_variance_weights(
    draws: np.ndarray,
    scores: np.ndarray,
    *,
    order: str = "linear",
    weights: np.ndarray | None = None,
    shrinkage: float | str | None = "auto",
) -> np.ndarray:
    r"""Weights of draws that give, for every function, the mean that `zero_variance` gives.

    A least squares fit is linear in the values: its mean is :math:`\sum_i \omega_i g(\theta_i)`.
    The weights sum to one, may be negative, and depend on draws and scores alone. Use them to
    average many functions, such as the predictions for many rows.

    Parameters
    ----------
    draws, scores : arrays of shape (n_draws, d) or (n_chains, n_draws, d)
        Draws, and gradients of the log density there.
    order : {"linear", "quadratic"}, default="linear"
        As in `zero_variance`.
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.
    shrinkage : "auto", None or float, default="auto"
        As in `zero_variance`; "auto" takes the median of the penalties that cross-validation
        chooses for the parameters themselves.

    Returns
    -------
    array of shape (n,)
        One weight for each of the n pooled draws.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.postprocess import zero_variance_weights
    >>> theta = np.array([[-1.0], [0.0], [2.0], [5.0], [9.0]])
    >>> w = zero_variance_weights(theta, -(theta - 3.0) / 2.0**2, shrinkage=None)
    >>> (w @ theta).round(12)
    array([3.])
    """
    w = as_weights(weights, draws)
    w = w / w.sum()
    psi, centre, scale = _centred_basis(draws, scores, order, w)
    lam, root = _penalty(shrinkage, order, *psi.shape), np.sqrt(w)[:, None]
    U, d, Vt = svd(root * (psi - centre) / scale, full_matrices=False, check_finite=False)
    keep = d > 1e-13 * d[0]
    U, d, Vt = U[:, keep], d[keep], Vt[keep]
    if lam is None:
        x = as_matrix("draws", draws)
        v = root * (x - w @ x)
        lam = float(np.median(_cross_validated(d, U.T @ v, v)))
    return w - root[:, 0] * (U @ (d / (d**2 + lam) * (Vt @ (centre / scale))))


def _centred_basis(draws, scores, order, w):
    """Return control variates (n, p), their means (p,), and their standard deviations (p,).

    Standard deviations of zero are replaced by 1. The control variates are computed from centred
    draws, so that products do not cancel if a mean is far from zero. As the scores are among them,
    they span the same space as without centring.
    """
    draws = np.asarray(draws, dtype=np.float64)
    psi = zero_variance_basis(draws - w @ as_matrix("draws", draws), scores, order)
    centre = w @ psi
    scale = np.sqrt(w @ (psi - centre) ** 2)
    scale[scale == 0.0] = 1.0
    return psi, centre, scale


def _values(values, draws, weights):
    """Return the weights with sum 1, the shape of a value, and the values as a matrix (n, ·)."""
    lead = np.ndim(draws) - 1
    g, first = np.asarray(values, dtype=np.float64), np.shape(draws)[:lead]
    if g.shape[:lead] != first:
        raise ValueError(f"values must begin with the shape {first} of the draws, got {g.shape}.")
    if not np.isfinite(g).all():
        n = int((~np.isfinite(g)).sum())
        raise ValueError(f"values must be finite; {n} of {g.size} are not.")
    w = as_weights(weights, draws)
    return w / w.sum(), g.shape[lead:], g.reshape(len(w), -1)


def _penalty(shrinkage, order, n, p):
    """Return the penalty for n draws and p control variates, or None for cross-validation."""
    fewer = "" if order == "linear" else ", linear control variates"
    if isinstance(shrinkage, str) and shrinkage == "auto":
        if n > p:
            return 0.0 if n >= PLENTY * p else None
        warnings.warn(
            f"There are {n} draws for {p} control variates, so that their coefficients are shrunk. "
            f"Use more draws{fewer}, or plain means.",
            UserWarning,
            stacklevel=3,
        )
        return None
    lam = 0.0 if shrinkage is None else float(shrinkage)
    if not (np.isfinite(lam) and lam >= 0.0):
        raise ValueError(f"shrinkage must be 'auto', None or a number >= 0, got {shrinkage!r}.")
    if lam == 0.0 and n <= p:
        raise ValueError(
            f"{n} draws are not enough for {p} control variates: at least {p + 1} are needed. Use "
            f"more draws{fewer}, or shrinkage='auto'."
        )
    return lam


def _coefficients(Z, v, lam):
    """Return the coefficients of ridge regression of v on Z, penalties, and degrees of freedom.

    There is one penalty for each column of v, chosen by cross-validation if `lam` is None.
    """
    if lam == 0.0:
        a = linalg.lstsq(Z, v, cond=1e-13, lapack_driver="gelsy", check_finite=False)[0]
        return a, np.zeros(v.shape[1]), float(Z.shape[1])
    U, d, Vt = svd(Z, full_matrices=False, check_finite=False)
    keep = d > 1e-13 * d[0]
    U, d, Vt = U[:, keep], d[keep], Vt[keep]
    b = U.T @ v
    used = np.full(v.shape[1], lam) if lam is not None else _cross_validated(d, b, v)
    filters = d[:, None] ** 2 / (d[:, None] ** 2 + used)
    return Vt.T @ (filters * b / d[:, None]), used, filters.sum(axis=0)


def _cross_validated(d, b, v):
    """Return, for each column of v, the penalty with the least generalised cross-validation error.

    d are the singular values of the regressors, and b the coordinates of v in their left singular
    vectors.
    """
    n, total = len(v), (v * v).sum(axis=0)
    errors = []
    for lam in SHARES:
        f = d**2 / (d**2 + lam)
        left = np.maximum(total - ((2.0 * f - f * f)[:, None] * b * b).sum(axis=0), 0.0)
        errors.append(left / max(1.0 - (f.sum() + 1.0) / n, 1e-3) ** 2)
    return SHARES[np.argmin(errors, axis=0)]
