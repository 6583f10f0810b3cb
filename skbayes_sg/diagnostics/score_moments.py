r"""Compare means and variances of draws with those of the density, by identities of its scores.

For draws from any density p with scores :math:`s = \nabla \log p`, :math:`\mathbb{E}\, s = 0` and
:math:`-\mathbb{E}[(\theta - \mu) s^\top] = I`. If p is Gaussian, draws from another distribution q
have :math:`-\Sigma\, \mathbb{E}\, s = \mu_q - \mu` and
:math:`-\mathbb{E}[(\theta - \mu_q) s^\top] = \Sigma_q \Sigma^{-1}` instead. This gives the errors
of means and the ratios of variances for each parameter, without a reference.
"""

from dataclasses import dataclass

import numpy as np

from ._draws import as_matrix, as_weights
from .stein import stein_scale
from .step_bias import batch_error

__all__ = ["ScoreMoments", "score_moments"]


@dataclass(frozen=True)
class ScoreMoments:
    """Errors of means and variances, the result of `score_moments`.

    Parameters
    ----------
    shift, shift_mcse : ndarray of shape (d,)
        Error of the mean of the draws in posterior standard deviations, and its standard error.
    ratio, ratio_mcse : ndarray of shape (d,)
        Variance of the draws over that of the density, and its standard error.
    mean_ratio, mean_ratio_mcse : float
        Average of the ratio over all directions, and its standard error, which is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import score_moments
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> found = score_moments(draws, -draws / 2.0)  # draws from N(0, 1), scores of N(0, 2)
    >>> abs(found.ratio - 0.5) < 0.1
    array([ True,  True])
    """

    shift: np.ndarray
    shift_mcse: np.ndarray
    ratio: np.ndarray
    ratio_mcse: np.ndarray
    mean_ratio: float
    mean_ratio_mcse: float


def score_moments(
    draws: np.ndarray, scores: np.ndarray, *, weights: np.ndarray | None = None
) -> ScoreMoments:
    r"""Shift of means and ratio of variances of draws, relative to the density of their scores.

    With :math:`G` the covariance of the density as estimated by `stein_scale`,
    :math:`a_j = (\theta_j - \bar\theta_j) / \sqrt{G_{jj}}` and
    :math:`b_j = (G s)_j / \sqrt{G_{jj}}`, the slope of the log density along the direction in which
    the other parameters follow the j-th,

    .. math::

        \text{shift}_j = -\bar{b_j}, \qquad \text{ratio}_j = -\overline{a_j b_j}.

    For draws from the density itself their expectations are zero and one. For other draws they are
    exact if the density is Gaussian
    (``tests/diagnostics/test_verdict.py::test_moments_of_a_correlated_gaussian``), and of first
    order otherwise. Unbiased estimates of the scores suffice if their noise is independent of the
    draw.

    Parameters
    ----------
    draws, scores : arrays of shape (n_chains, n_draws, d)
        Draws, and gradients of the log density there.
    weights : array of shape (n_draws,), optional
        Weights of the draws of every chain; all the same if None.

    Returns
    -------
    ScoreMoments
        Standard errors are those of batch means, in about 20 batches, and at least their median
        over the coordinates.

    Raises
    ------
    ValueError
        If the shapes of the arrays do not match, or values are not finite.

    References
    ----------
    C. Stein (1972). A bound for the error in the normal approximation to the distribution of a sum
    of dependent random variables. Proceedings of the Sixth Berkeley Symposium 2, 583-602.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import score_moments
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> score_moments(draws + 0.3, -(draws + 0.3)).shift.round(1)
    array([0.3])
    """
    shape = np.shape(draws)
    x, s = as_matrix("draws", draws), as_matrix("scores", scores)
    if np.shape(scores) != shape or len(shape) != 3:
        raise ValueError(
            "draws and scores must have the same shape (n_chains, n_draws, d), got "
            f"{shape} and {np.shape(scores)}."
        )
    w = as_weights(weights, draws)
    w = w / w.mean()
    centred = x - w @ x / len(w)
    S = stein_scale(x, s, weights=w).factor
    if S.ndim == 1:
        width, along = S, s * S * S
    else:
        width, along = np.sqrt((S * S).sum(axis=1)), (s @ S) @ S.T
    shift = -w[:, None] * along / width
    (shift, shift_mcse), (ratio, ratio_mcse) = _shift_and_ratio(shape, shift, centred / width)
    # The mean over the coordinates is the same in all linear coordinates.
    every = (-w * (centred * s).mean(axis=1)).reshape(*shape[:2], -1)
    mean_ratio, mean_ratio_mcse = float(every.mean()), float(batch_error(every)[0])
    return ScoreMoments(shift, shift_mcse, ratio, ratio_mcse, mean_ratio, mean_ratio_mcse)


def moments_along(draws, scores, directions):
    r"""(shift, standard error) and (ratio, standard error) of linear functions of the parameters.

    This is `score_moments` for :math:`v = a^\top \theta`, with a the m columns of `directions`
    (d, m), in the place of :math:`\theta_j`, so that :math:`b = a^\top G s / \sqrt{a^\top G a}`.
    Some functions of many parameters may be known much better than each parameter, and draws may
    be wrong in such functions alone.
    """
    x, s = (array.reshape(-1, array.shape[-1]) for array in (draws, scores))
    S = stein_scale(draws, scores).factor
    moved = S[:, None] * directions if S.ndim == 1 else S.T @ directions
    width = np.sqrt(np.square(moved).sum(axis=0))
    shift = -(s * S if S.ndim == 1 else s @ S) @ moved / width
    return _shift_and_ratio(draws.shape, shift, (x - x.mean(axis=0)) @ directions / width)


def _shift_and_ratio(shape, shift, away):
    """(mean, standard error) of the shift, and of the ratio, from their terms for each draw.

    `shift` (n, m) has the terms -b of the shift, and `away` (n, m) the a of `score_moments`;
    `shape` begins with (n_chains, n_draws).
    """
    shift, ratio = (part.reshape(*shape[:2], -1) for part in (shift, shift * away))
    return (shift.mean(axis=(0, 1)), _errors(shift)), (ratio.mean(axis=(0, 1)), _errors(ratio))


def _errors(values):
    """Standard errors of the means of all coordinates, each raised to at least their median.

    An error from 20 batches is too small by chance in some of many coordinates, whose means would
    then seem to be wrong. All coordinates have the same unit, and the median is hardly ever too
    small.
    """
    errors = batch_error(values)
    return np.maximum(errors, np.median(errors))
