r"""Preferential subsampling: row i with probability p_i, coefficient 1/(n p_i), with replacement.

The covariance of the weighted sum of a_i is ``[Σ a_i a_iᵀ / p_i - (Σ a)(Σ a)ᵀ] / n``; its trace is
smallest for ``p_i ∝ ‖a_i‖`` (Putcha, Nemeth and Fearnhead 2023, lemma 3.1). The a_i depend on the
estimator of the gradient, and on θ; the parameter ``weights`` chooses among

* "posterior": ``p_i ∝ (E ‖a_i(θ)‖²)^½``, which minimise the trace averaged over the posterior
  (eq. 15 there); the expectation is taken over points of pilot chains, or by quadrature over the
  Laplace approximation;
* "gradient": ``p_i ∝ ‖∇ℓ_i(θ̂)‖``, the plain gradient at the mode (eq. 11);
* "hessian": ``p_i ∝ tr(∇²ℓ_i Σ ∇²ℓ_i)^½``, the linearisation of a control variate (eq. 16), with
  the Hessian at the mode and the covariance Σ of the Laplace approximation.

Norms are taken in the chain's preconditioned coordinates; `skbayes_sg.recipe.measure` computes
them.
"""

import warnings

import numpy as np

from .._base.jit import entry, inlined, pointee
from .._base.validation import check_within
from ..exceptions import InvalidParameterError
from ..kernels.layout import frozen
from ._base import Subsampling

__all__ = ["Preferential"]


@inlined
def draw_row(rng, subsample):
    """Draw a row number with the probabilities of the alias table, from one uniform number."""
    u = rng.random() * subsample.n_rows
    i = int(u)
    if u - i >= subsample.chances[i, 0]:
        i = subsample.alias[i]
    return i


@pointee
def _draw(rng, subsample, position, rows_out, coefficients_out):
    n = subsample.batch_size
    for k in range(n):
        rows_out[k] = draw_row(rng, subsample)
        coefficients_out[k] = subsample.chances[rows_out[k], 1]
    return n


@entry
def _alias_table(p, thresholds_out, alias_out):
    """Write Walker's alias table for probabilities p, by Vose's method in O(N) operations.

    A draw from the table takes O(1) operations.
    """
    N = p.shape[0]
    stack = np.empty(N, np.int64)  # small cells from the left, large cells from the right
    n_small, n_large = 0, 0
    for i in range(N):
        thresholds_out[i] = p[i] * N
        alias_out[i] = i
        if thresholds_out[i] < 1.0:
            stack[n_small] = i
            n_small += 1
        else:
            n_large += 1
            stack[N - n_large] = i
    while n_small > 0 and n_large > 0:
        n_small -= 1
        small, large = stack[n_small], stack[N - n_large]
        alias_out[small] = large
        thresholds_out[large] -= 1.0 - thresholds_out[small]
        if thresholds_out[large] < 1.0:
            n_large -= 1
            stack[n_small] = large
            n_small += 1
    for k in range(n_small):  # cells that remain because of rounding are full
        thresholds_out[stack[k]] = 1.0
    for k in range(N - n_large, N):
        thresholds_out[stack[k]] = 1.0


def alias_table(p):
    """Return (thresholds, aliases) with which `draw_row` draws i with probability p_i."""
    thresholds, alias = np.empty(len(p)), np.empty(len(p), dtype=np.int64)
    _alias_table(p, thresholds, alias)
    return thresholds, alias


class Preferential(Subsampling):
    """Rows drawn with replacement; rows that contribute more to the noise are drawn more often.

    Every draw takes row i with probability p_i and gives it the coefficient 1/(n p_i). Use it if
    few rows contribute most of the noise, as with rare classes and rare levels of categorical
    columns. Estimates are unbiased for any probabilities:
    ``tests/gradients/test_gradient_estimators.py::test_preferential_is_unbiased_for_any_chances``.
    A draw looks at two numbers of an alias table, whatever the number of rows is
    (``tests/subsampling/test_index_samplers.py::test_alias_table_is_exact``).

    Parameters
    ----------
    uniform_share : float in [0, 1], default=0.1
        Share of the draws that are uniform, which bounds coefficients by ``N / (n uniform_share)``.
        With 0 the probabilities are those of the paper, eq. 11 and 16, and the fit warns: nothing
        bounds the coefficient of a row that contributes much where the chain is and little where
        the weights were computed.
    weights : {"posterior", "gradient", "hessian"}, default="posterior"
        What the probabilities are proportional to. "posterior": the root mean square over the
        posterior of the row's contribution to the noise of the gradient in use. "gradient": the
        norm of its gradient at the centre, eq. 11 of the paper, meant for "minibatch". "hessian":
        eq. 16, meant for "control_variate".

    Raises
    ------
    InvalidParameterError
        By `fit`, for a share outside [0, 1], for unknown weights, and without a uniform share if
        the weight of a row is zero, because it would never be drawn.

    Warns
    -----
    UserWarning
        By `fit`, for a `uniform_share` of 0.

    References
    ----------
    S. Putcha, C. Nemeth and P. Fearnhead (2023). Preferential subsampling for stochastic gradient
    Langevin dynamics. AISTATS.

    Examples
    --------
    >>> from skbayes_sg.subsampling import Preferential
    >>> Preferential(uniform_share=0.05)
    Preferential(uniform_share=0.05)
    """

    draw = staticmethod(_draw)
    needs_weights = True

    def __init__(self, uniform_share: float = 0.1, weights: str = "posterior") -> None:
        self.uniform_share = uniform_share
        self.weights = weights

    def check(self, n_rows, batch_size):
        """Raise `InvalidParameterError` for unknown weights, and for a share outside [0, 1]."""
        self._share()
        if self.weights not in ("posterior", "gradient", "hessian"):
            raise InvalidParameterError(
                f"The weights of {self!r} must be 'posterior', 'gradient' or 'hessian', got "
                f"{self.weights!r}."
            )

    def probabilities(self, weights):
        """Return the p_i: the weights, normalised and mixed with the uniform distribution.

        Parameters
        ----------
        weights : array-like of shape (n_rows,)
            Nonnegative numbers that the probabilities are proportional to.

        Returns
        -------
        array of shape (n_rows,)

        Raises
        ------
        InvalidParameterError
            For a `uniform_share` outside [0, 1], and for one of 0 if a weight is zero.

        Examples
        --------
        >>> from skbayes_sg.subsampling import Preferential
        >>> Preferential(uniform_share=0.5).probabilities([3.0, 1.0])
        array([0.625, 0.375])
        """
        uniform_share = self._share()
        weights = np.asarray(weights, dtype=np.float64)
        total = weights.sum()
        if uniform_share == 0.0 and total > 0.0:
            self._without_uniform_rows(weights / total)
        share = uniform_share if total > 0.0 else 1.0
        return (1.0 - share) * weights / (total or 1.0) + share / len(weights)

    def _share(self):
        return check_within("uniform_share", self.uniform_share, self, 0.0, 1.0, "[]")

    def _without_uniform_rows(self, p):
        """Raise an error if a probability is zero, and otherwise warn of large coefficients."""
        if p.min() == 0.0:
            raise InvalidParameterError(
                f"With uniform_share=0.0, {self!r} would never draw {np.sum(p == 0.0)} of {len(p)} "
                "rows, whose weight is zero. Set uniform_share to a small positive number."
            )
        warnings.warn(
            f"{self!r} draws no uniform rows: the coefficient of a row can be up to "
            f"{1.0 / (len(p) * p.min()):.3g} times that of a uniform row, which can make the noise "
            "large far from the centre. A uniform_share of 0.1 bounds it by 10.",
            UserWarning,
            stacklevel=2,
        )

    def state(self, n_rows, batch_size, chances=None):
        """Return a fresh `Subsample` with the alias table of the row probabilities `chances`."""
        thresholds, alias = alias_table(np.asarray(chances))
        table = np.stack([thresholds, 1.0 / (batch_size * chances)], axis=1)
        plain = super().state(n_rows, batch_size)
        return plain._replace(chances=frozen(table), alias=frozen(alias, np.int64))
