r"""Consensus Monte Carlo: weighted averages of draws.

Draw t of the result is :math:`\theta_t = (\sum_s W_s)^{-1} \sum_s W_s \theta_{st}`, with the
inverse covariance of shard s for :math:`W_s`. It is exact if every shard is Gaussian: the average
has mean :math:`W^{-1} \sum_s W_s \mu_s` and covariance
:math:`W^{-1} (\sum_s W_s \Sigma_s W_s) W^{-1} = W^{-1}`, with :math:`W = \sum_s W_s`.
"""

from typing import Any

import numpy as np

from ..exceptions import InvalidParameterError
from ._base import Combiner, as_shards, inverses, moments, pooled

__all__ = ["Consensus", "consensus_average"]


def _as_precisions(precisions, n_shards, d):
    P = np.asarray(precisions, dtype=np.float64)
    if P.shape == (n_shards, d):
        P = P[:, :, None] * np.eye(d)
    if P.shape != (n_shards, d, d) or not np.isfinite(P).all():
        raise ValueError(
            f"precisions must be finite and have the shape ({n_shards}, {d}, {d}) or "
            f"({n_shards}, {d}), got the shape {P.shape}."
        )
    return P


def _weights(shards, diagonal):
    if diagonal:
        W = np.stack([_inverse_variances(s, x) for s, x in enumerate(shards)])
        return _as_precisions(W, len(shards), shards[0].shape[1])
    return inverses(moments(shards)[1])


def _inverse_variances(s, x):
    """Return the inverse variances of the draws x of shard s, one for each parameter.

    A `ValueError` names a parameter that is constant.
    """
    constant = np.flatnonzero(np.ptp(x, axis=0) == 0.0)
    if len(constant):
        raise ValueError(
            f"Parameter {constant[0]} has the same value, {x[0, constant[0]]:g}, in all {len(x)} "
            f"draws of shard {s}, so that it has no inverse variance. Leave out parameters that "
            "are constant, or use more draws."
        )
    return 1.0 / x.var(axis=0, ddof=1)


def consensus_average(
    draws: Any, *, precisions: np.ndarray | None = None, diagonal: bool = False
) -> np.ndarray:
    r"""Weighted averages of the draws of shards (consensus Monte Carlo).

    .. math::

        \theta_t = \Bigl(\sum_s W_s\Bigr)^{-1} \sum_s W_s\, \theta_{st}

    This is exact for Gaussian shards, whose product has precision :math:`\sum_s W_s`
    (``tests/combine/test_combine.py::test_consensus_is_exact_for_gaussian_shards``). If weights are
    estimated from the draws, the mean has slightly more than their Monte Carlo error: in one
    dimension, with T independent draws of each shard, its variance is
    :math:`(1 + 2 \sum_s W_s^2 (\mu_s - \mu)^2 / W) / (W T)`
    (``tests/combine/test_combine.py::test_plug_in_weights_have_the_variance_of_the_formula``).

    Parameters
    ----------
    draws : sequence of arrays of shape (n_draws, n_parameters)
        Draws of each shard, the same number of each, independent of those of the other shards.
        They must be in unconstrained coordinates.
    precisions : array of shape (n_shards, n_parameters, n_parameters), optional
        The weights :math:`W_s`, or their diagonals in an array (n_shards, n_parameters). If None,
        they are the inverse sample covariances.
    diagonal : bool, default=False
        Whether to use inverse sample variances instead, one parameter at a time, as is necessary
        with more parameters than draws. The result then has the correlations of the average, not
        those of the product. It is for weights that are estimated, without `precisions`.

    Returns
    -------
    ndarray of shape (n_draws, n_parameters)

    Raises
    ------
    InvalidParameterError
        For `precisions` together with ``diagonal=True``.
    ValueError
        For draws that are not finite or of different shapes, for precisions that do not fit them,
        and for draws without an inverse covariance, or with ``diagonal=True`` of a parameter that
        is constant in a shard.

    References
    ----------
    S. L. Scott, A. W. Blocker, F. V. Bonassi, H. A. Chipman, E. I. George and R. E. McCulloch
    (2016). Bayes and big data: the consensus Monte Carlo algorithm. International Journal of
    Management Science and Engineering Management 11, 78-88. Section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.combine import consensus_average
    >>> rng = np.random.default_rng(0)
    >>> draws = [rng.normal(1.0, 1, (4000, 1)), rng.normal(3.5, 2, (4000, 1))]
    >>> combined = consensus_average(draws)  # mean (1 + 3.5/4) / (1 + 1/4)
    >>> print(combined.mean().round(1), combined.var().round(1))
    1.5 0.8
    """
    shards = as_shards(draws)
    if len({len(x) for x in shards}) > 1:
        raise ValueError(
            "Consensus needs the same number of draws from each shard, got "
            f"{[len(x) for x in shards]}."
        )
    if diagonal and precisions is not None:
        raise InvalidParameterError(
            "diagonal=True is for weights that are estimated from the draws, but precisions are "
            "given. Leave out diagonal; for diagonal weights, pass precisions of the shape "
            "(n_shards, n_parameters)."
        )
    d = shards[0].shape[1]
    if precisions is not None:
        W = _as_precisions(precisions, len(shards), d)
    elif len(shards) == 1:
        return shards[0].copy()
    else:
        W = _weights(shards, diagonal)
    return _average(np.stack(shards), W)


def _average(shards, W):
    """Return the weighted averages (Σ W_s)⁻¹ Σ W_s θ_s of draws (n_shards, ..., d)."""
    total = inverses(W.sum(axis=0)[None])[0]
    out = np.zeros(shards.shape[1:])
    for x, w in zip(shards, W, strict=True):
        out += x @ (total @ w).T
    return out


class Consensus(Combiner):
    """Consensus Monte Carlo: averages of draws, weighted by inverse covariances of the shards.

    Draw t of chain c is the weighted average of the draws t of the chains c of all shards. This is
    exact for Gaussian shards
    (``tests/combine/test_combine.py::test_consensus_is_exact_for_gaussian_shards``). See
    `consensus_average`.

    Parameters
    ----------
    diagonal : bool, default=False
        Whether to weigh by inverse variances, one parameter at a time.

    Raises
    ------
    ValueError
        By `fit`, for draws without an inverse covariance, or without an inverse variance.

    Examples
    --------
    >>> from skbayes_sg.combine import Consensus
    >>> Consensus(diagonal=True)
    Consensus(diagonal=True)
    """

    assumes_gaussian = True

    def __init__(self, diagonal: bool = False) -> None:
        self.diagonal = diagonal

    def _combine(self, shards, rng):
        del rng  # nothing is drawn
        return _average(shards, _weights(pooled(shards), self.diagonal)), {}
