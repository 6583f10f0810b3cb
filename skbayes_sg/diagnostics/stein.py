"""Kernel Stein discrepancy: the distance of draws from the distribution that has their scores.

It needs only draws and scores (gradients of the log density at the draws), so it applies to draws
from any sampler. It compares means, variances and everything else that a kernel sees, and does not
depend on the normalising constant of the density.
"""

import warnings
from typing import Any

import numpy as np
from scipy import linalg

from .._base.validation import is_whole
from ._draws import as_pair, as_weights

__all__ = ["SteinDiscrepancy", "coordinate_stein_discrepancy", "kernel_stein_discrepancy"]
__all__ += ["stein_scale"]

BLOCK = 256  # draws: a block of the kernel matrix is 512 KiB and stays in cache
MOST_DRAWS = 20_000  # default number of draws above which draws are thinned
# With fewer draws for each parameter, estimated covariances are too noisy: only their diagonals
# are used.
DRAWS_A_PARAMETER = 10


class SteinDiscrepancy(float):
    """A kernel Stein discrepancy: a number with a record of what it was computed from.

    Parameters
    ----------
    squared : float
        Square of the discrepancy. It can be negative if the diagonal was left out; the discrepancy
        is then zero.
    n_draws : int
        Number of draws used, after thinning.
    expected : float
        Root of the expected square for as many independent draws from the right distribution.
    z : float
        Excess of the square over its expectation for independent draws from the right
        distribution, in standard deviations.
    scores : str
        What the scores were computed from.

    Examples
    --------
    >>> from skbayes_sg.diagnostics.stein import SteinDiscrepancy
    >>> ksd = SteinDiscrepancy(0.04, n_draws=500, expected=0.1, z=12.0, scores="all rows")
    >>> float(ksd), ksd.n_draws
    (0.2, 500)
    >>> ksd
    KSD 0.2 (500 draws, scores of all rows; exact independent draws: 0.1)
    """

    def __new__(cls, squared, n_draws, expected, z, scores=""):
        """A float with the root of the square, or zero."""
        del n_draws, expected, z, scores
        return super().__new__(cls, np.sqrt(max(squared, 0.0)))

    def __init__(
        self, squared: float, n_draws: int, expected: float, z: float, scores: str = ""
    ) -> None:
        self.squared, self.n_draws, self.expected = float(squared), int(n_draws), float(expected)
        self.z, self.scores = float(z), scores

    def __getnewargs__(self):
        """The arguments of a copy."""
        return self.squared, self.n_draws, self.expected, self.z, self.scores

    def __repr__(self):
        source = f", scores of {self.scores}" if self.scores else ""
        return (
            f"KSD {float(self):.3g} ({self.n_draws} draws{source}; exact independent draws: "
            f"{self.expected:.3g})"
        )


def merged(draws, scores, weights):
    """Pooled draws, their scores and weights, where equal draws are one draw of their total weight.

    Resampling repeats draws, and repetitions are not independent draws.
    """
    x, s = (a.reshape(-1, a.shape[-1]) for a in (draws, scores))
    w = np.ones(draws.shape[:2]) * (1.0 if weights is None else weights)
    _, first, which = np.unique(x, axis=0, return_index=True, return_inverse=True)
    return x[first], s[first], np.bincount(which.ravel(), w.ravel())


def kernel_stein_discrepancy(
    draws: np.ndarray,
    scores: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    kernel: str = "imq",
    c: float = 1.0,
    beta: float = -0.5,
    length_scale: float = 1.0,
    standardise: bool = True,
    diagonal: bool = True,
    max_draws: int = MOST_DRAWS,
) -> SteinDiscrepancy:
    r"""Kernel Stein discrepancy of draws, given the gradient of the log density at each.

    .. math::

        \mathrm{KSD}^2 = \sum_{i,j} w_i w_j k_p(\theta_i, \theta_j), \qquad
        k_p(x, y) = s(x) \cdot s(y)\, k + s(x) \cdot \nabla_y k + s(y) \cdot \nabla_x k
        + \operatorname{tr} \nabla_x \nabla_y k

    with :math:`s = \nabla \log p`, weights of sum one, and the inverse multiquadric kernel
    :math:`k = (c^2 + \|x - y\|^2)^\beta` or the Gaussian :math:`k = \exp(-\|x - y\|^2 / 2 \ell^2)`.
    As the number of draws grows it tends to zero if and only if their distribution tends to p. For
    n independent draws from p the square is :math:`\mathbb{E} k_p(x, x) / n` on average: about
    2 d/n for the default kernel and d parameters, standardised
    (``tests/diagnostics/test_stein.py::test_mean_under_the_target_is_two_d_over_n``).

    The kernel has a length scale, so draws are standardised first: the linear map that
    `stein_scale` computes from draws and scores gives a Gaussian density unit covariance *whatever
    the distribution of the draws is*. Without it, the discrepancy from a density that is much
    narrower than c is insensitive to the variance of the draws.

    Noisy scores raise the terms i = j, which ``diagonal=False`` leaves out
    (``tests/diagnostics/test_stein.py::test_noise_of_the_scores_is_left_out_with_the_diagonal``).

    It takes O(n²) time and bounded memory: the kernel matrix is never stored.

    Parameters
    ----------
    draws : array of shape (n_draws, d) or (n_chains, n_draws, d)
        The draws; chains are pooled.
    scores : array of the same shape
        Gradient of the log density at each draw. Unbiased estimates suffice with
        ``diagonal=False``.
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.
    kernel : {"imq", "rbf"}, default="imq"
        Inverse multiquadric or Gaussian. The Gaussian kernel misses some failures in many
        dimensions.
    c, beta : float, default=1.0, -0.5
        Parameters of the inverse multiquadric kernel: c > 0 and beta in (-1, 0).
    length_scale : float, default=1.0
        Length scale of the Gaussian kernel.
    standardise : bool, default=True
        Whether to change coordinates first, as described above.
    diagonal : bool, default=True
        Whether to include the terms i = j. Without them the square is an unbiased estimate, and
        noise of the scores that is independent between draws does not raise it; it may be negative.
    max_draws : int, default=20000
        More draws than this are thinned evenly, with a warning.

    Returns
    -------
    SteinDiscrepancy
        A float, with the number of draws used and values to compare it with.

    Raises
    ------
    ValueError
        If arrays do not match or are not finite, or an argument is out of range.

    Warns
    -----
    UserWarning
        If draws are thinned.

    References
    ----------
    J. Gorham and L. Mackey (2017). Measuring sample quality with kernels. ICML. This is the root of
    the sum over coordinates; S. Putcha, C. Nemeth and P. Fearnhead (2023), AISTATS, eq. 20, print
    the sum of the roots: see `coordinate_stein_discrepancy`.

    Examples
    --------
    Draws from N(0, 1), and draws with half of the variance:

    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import kernel_stein_discrepancy
    >>> x = np.random.default_rng(0).normal(size=(2000, 1))
    >>> narrow = np.sqrt(0.5) * x
    >>> kernel_stein_discrepancy(x, -x) < 0.06 < kernel_stein_discrepancy(narrow, -narrow)
    True
    >>> two = np.array([[1.0], [-1.0]])
    >>> print(round(kernel_stein_discrepancy(two, -two, standardise=False), 6))
    0.731367
    """
    x, s = as_pair(draws, scores)
    w = as_weights(weights, draws)
    parts = _kernel(kernel, c, beta, length_scale)
    x, s, w = _thinned(x, s, w, max_draws)
    if standardise:
        x, s = stein_scale(x, s, weights=w).transform(x, s)
    return _statistic(x - x.mean(axis=0), s, w / w.sum(), parts, diagonal)


def coordinate_stein_discrepancy(
    draws: np.ndarray,
    scores: np.ndarray,
    *,
    c: float = 1.0,
    beta: float = -0.5,
    standardise: bool = True,
) -> np.ndarray:
    r"""The part of each coordinate in the kernel Stein discrepancy, with all draws of equal weight.

    .. math::

        \mathrm{KSD}_j^2 = \frac{1}{n^2} \sum_{i,i'} \Bigl[ s_j s'_j\, k
        + s_j\, \partial_{\theta'_j} k + s'_j\, \partial_{\theta_j} k
        + \partial_{\theta_j} \partial_{\theta'_j} k \Bigr](\theta_i, \theta_{i'})

    Their sum is the discrepancy as S. Putcha, C. Nemeth and P. Fearnhead (2023), AISTATS, print it
    in eq. 20. `kernel_stein_discrepancy`, as J. Gorham and L. Mackey (2017) have it, is the root of
    the sum of their squares
    (``tests/diagnostics/test_stein.py::test_squares_of_parts_add_up``). So the sum is at least as
    large, and at most :math:`\sqrt d` times as large for d parameters.

    Parameters
    ----------
    draws : array of shape (n_draws, d) or (n_chains, n_draws, d)
        The draws; chains are pooled.
    scores : array of the same shape
        Gradient of the log density at each draw.
    c, beta : float, default=1.0, -0.5
        Parameters of the inverse multiquadric kernel: c > 0 and beta in (-1, 0).
    standardise : bool, default=True
        Whether to change coordinates first, as in `kernel_stein_discrepancy`; the parts are then
        those of the new coordinates.

    Returns
    -------
    array of shape (d,)

    Raises
    ------
    ValueError
        If arrays do not match or are not finite, or an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import coordinate_stein_discrepancy, kernel_stein_discrepancy
    >>> x = np.random.default_rng(0).normal(size=(500, 3))
    >>> parts = coordinate_stein_discrepancy(x, -x)
    >>> bool(np.isclose(np.sqrt((parts**2).sum()), kernel_stein_discrepancy(x, -x)))
    True
    """
    x, s = as_pair(draws, scores)
    parts, total = _kernel("imq", c, beta, 1.0), np.zeros(x.shape[1])
    if standardise:
        x, s = stein_scale(x, s).transform(x, s)
    for first in range(0, len(x), BLOCK):
        rows = slice(first, first + BLOCK)
        r2 = ((x[rows, None] - x) ** 2).sum(axis=-1)
        k, slope, bend = parts(r2)
        for j, (xj, sj) in enumerate(zip(x.T, s.T, strict=True)):
            gap, t = xj[rows, None] - xj, sj[rows, None]
            along = slope * (2.0 * gap * (sj - t) - 2.0)  # ∂_θ k = 2 κ' gap, ∂_θ' k = -2 κ' gap
            total[j] += (t * sj * k + along - 4.0 * bend * gap**2).sum()
    return np.sqrt(np.maximum(total, 0.0)) / len(x)


def _kernel(kernel, c, beta, length_scale):
    """The function ``parts(q) -> k, k', k''``: kernel and derivatives with respect to q = ‖x - y‖².

    `ValueError` for parameters that are out of range.
    """
    if kernel == "imq":
        if not (c > 0.0 and -1.0 < beta < 0.0):
            raise ValueError(f"c must be positive and beta in (-1, 0), got {c!r} and {beta!r}.")

        def inverse_multiquadric(r2):
            q = r2 + c * c
            k = q**beta if beta != -0.5 else np.reciprocal(np.sqrt(q))
            first = k / q
            first *= beta
            second = np.divide(first, q, out=q)
            second *= beta - 1.0
            return k, first, second

        return inverse_multiquadric
    if kernel == "rbf":
        if not length_scale > 0.0:
            raise ValueError(f"length_scale must be positive, got {length_scale!r}.")
        a = -0.5 / length_scale**2

        def gaussian(r2):
            k = np.exp(a * r2)
            return k, a * k, a * a * k

        return gaussian
    raise ValueError(f"kernel must be 'imq' or 'rbf', got {kernel!r}.")


def _thinned(x, s, w, max_draws):
    """Draws, scores and weights, or those of `max_draws` evenly spaced draws, with a warning."""
    if not (is_whole(max_draws) and max_draws >= 1):
        raise ValueError(f"max_draws must be a positive int, got {max_draws!r}.")
    n = len(x)
    if n <= max_draws:
        return x, s, w
    warnings.warn(
        "The time for a kernel Stein discrepancy grows with the square of the number of draws, so "
        f"{max_draws} of {n} draws were used. Raise max_draws to use more.",
        UserWarning,
        stacklevel=3,
    )
    kept = np.linspace(0, n - 1, max_draws).round().astype(int)
    return x[kept], s[kept], w[kept]


def _statistic(x, s, w, parts, diagonal):
    """The `SteinDiscrepancy` from draws x, scores s and weights w of sum one.

    The symmetric matrix of the kernel is computed in blocks on and above the diagonal.
    """
    total = own = squares = mass = 0.0
    starts = range(0, len(x), BLOCK)
    for a in starts:
        A = slice(a, a + BLOCK)
        for b in starts:
            if b < a:
                continue
            B, twice = slice(b, b + BLOCK), 1.0 if a == b else 2.0
            K = stein_kernel(x[A], s[A], x[B], s[B], parts, same=a == b)
            weighted = K @ w[B]
            total += twice * float(w[A] @ weighted)
            if a == b:
                k = np.diagonal(K)
                own += float(w[A] ** 2 @ k)
                mass += float(w[A] @ k)
                squares -= float(w[A] ** 2 @ k**2)
            K *= K
            squares += twice * float(w[A] @ (K @ w[B]))
    return _result(total, own, mass, squares, w, diagonal)


def _result(total, own, mass, squares, w, diagonal):
    """The `SteinDiscrepancy` from sums over pairs of draws.

    `total` is Σ w_i w_j k_ij, `own` Σ w_i² k_ii, `mass` Σ w_i k_ii, and `squares`
    Σ_{i≠j} w_i w_j k_ij².
    """
    effective = 1.0 / float(w @ w)  # effective number of draws
    rest = max(1.0 - 1.0 / effective, np.finfo(float).tiny)
    unbiased = (total - own) / rest
    scatter = np.sqrt(max(2.0 * squares / rest, 0.0)) / effective
    z = unbiased / scatter if scatter != 0.0 else 0.0
    squared = total if diagonal else unbiased
    expected = np.sqrt(max(mass, 0.0) / effective)
    return SteinDiscrepancy(squared, len(w), expected, z)


def stein_kernel(x, s, y, t, parts, *, same=False):
    """The dense matrix of k_p between draws x with scores s and draws y with scores t.

    If k is a function κ of ‖x - y‖², ∇_x k = 2κ'(x - y), and the trace is -2dκ' - 4κ''‖x - y‖².
    """
    r2 = _left(-2.0 * x, x, x) @ _right(y, y, y).T
    np.maximum(r2, 0.0, out=r2)
    if same:
        np.fill_diagonal(r2, 0.0)
    # x·t + s·y - x·s - y·t - d, in one product
    along = _left(np.hstack([x, s]), -x, s, x.shape[1]) @ _right(np.hstack([t, y]), -y, t).T
    k, first, second = parts(r2)
    along *= first
    second *= r2
    second *= 2.0
    along -= second
    along *= 2.0
    k *= s @ t.T
    k += along
    return k


def _left(columns, x, s, d=0.0):
    """Append the columns x·s - d and 1; their product with `_right` adds x·s - d + y·t."""
    own = (x * s).sum(axis=1, keepdims=True)
    return np.hstack([columns, own - d, np.ones_like(own)])


def _right(columns, y, t):
    """Append the columns 1 and y·t, the counterpart of `_left`."""
    own = (y * t).sum(axis=1, keepdims=True)
    return np.hstack([columns, np.ones_like(own), own])


# -- coordinates ----------------------------------------------------------------------------------


class _Scale:
    """Linear coordinates y with θ = S y; S is a matrix, or a vector with its diagonal."""

    def __init__(self, factor):
        self.factor = factor

    def transform(self, x, s):
        """Draws and scores in the coordinates y."""
        S = self.factor
        if S.ndim == 1:
            return x / S, s * S
        return linalg.solve_triangular(S, x.T, lower=True).T, s @ S


def stein_scale(draws: np.ndarray, scores: np.ndarray, *, weights: np.ndarray | None = None) -> Any:
    r"""Linear coordinates in which the density has about unit covariance, from draws and scores.

    The covariance of a Gaussian density p is the geometric mean
    :math:`G = C_\theta \ast C_s^{-1}` of the covariance of the draws and the inverse
    covariance of their scores, the solution of :math:`G\, C_s\, G = C_\theta`. This holds for draws
    from any distribution, because :math:`s = -\Sigma^{-1}(\theta - \mu)`. With fewer than ten draws
    for each parameter only the variances are used.

    Parameters
    ----------
    draws, scores : arrays of shape (n_draws, d) or (n_chains, n_draws, d)
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.

    Returns
    -------
    object
        Its `factor` S, (d, d) lower triangular with :math:`S S^\top = G` or (d,) for a diagonal;
        ``transform(draws, scores)`` gives :math:`S^{-1} \theta` and :math:`S^\top s`.

    Raises
    ------
    ValueError
        If arrays do not match or are not finite, or weights are negative or all zero.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics.stein import stein_scale
    >>> draws = np.random.default_rng(0).uniform(2.0, 3.0, size=(50, 1))  # not of N(0, 0.1²)
    >>> stein_scale(draws, -draws / 0.1**2).factor.round(12)
    array([[0.1]])
    """
    x, s = as_pair(draws, scores)
    w = as_weights(weights, draws)
    w = w / w.sum()
    x, s = x - w @ x, s - w @ s
    width = np.sqrt(_ratio(_root_mean_square(w, x), _root_mean_square(w, s)))
    if len(x) < max(DRAWS_A_PARAMETER * x.shape[1], 2):
        return _Scale(width)
    x, s = x / width, s * width
    G = _geometric_mean((x.T * w) @ x, (s.T * w) @ s)
    if G is None:
        return _Scale(width)
    return _Scale(width[:, None] * linalg.cholesky(G, lower=True))


def _root_mean_square(w, x):
    """Weighted root mean square of each column, computed so that squares do not overflow."""
    size = np.maximum(np.abs(x).max(axis=0), np.finfo(float).tiny)
    return size * np.sqrt(w @ (x / size) ** 2)


def _ratio(a, b):
    """The ratio a / b, and 1 where a or b is zero."""
    fine = (a > 0.0) & (b > 0.0)
    return np.where(fine, a, 1.0) / np.where(fine, b, 1.0)


def _geometric_mean(A, B):
    """The matrix G with G B G = A; None unless A and B are positive definite."""
    try:
        L = linalg.cholesky(B, lower=True)
        values, vectors = linalg.eigh(L.T @ A @ L)
        if values.min() <= 1e-14 * values.max():
            return None
        left = linalg.solve_triangular(L, vectors, lower=True, trans="T")
        G = (left * np.sqrt(values)) @ left.T
        linalg.cholesky(G, lower=True)
    except (linalg.LinAlgError, ValueError):  # a ValueError if they are not finite
        return None
    return G
