r"""Means and variances of draws against the density itself, by identities that hold for its scores.

For draws from p with scores :math:`s = \nabla \log p`, :math:`\mathbb{E}\, s = 0` and
:math:`-\mathbb{E}[(\theta - \mu) s^\top] = I`, whatever p is. Draws of another law q, p being
Gaussian, have :math:`-\Sigma\, \mathbb{E}\, s = \mu_q - \mu` and
:math:`-\mathbb{E}[(\theta - \mu_q) s^\top] = \Sigma_q \Sigma^{-1}` instead: how far means are
off, and by what ratio variances are, for each parameter and without any reference.
"""

from dataclasses import dataclass

import numpy as np

from ._draws import as_matrix, as_weights
from .stein import stein_scale
from .step_bias import batch_error

__all__ = ["ScoreMoments", "score_moments"]


@dataclass(frozen=True)
class ScoreMoments:
    """What `score_moments` returns.

    Parameters
    ----------
    shift, shift_mcse : ndarray of shape (d,)
        By how many posterior standard deviations the mean of the draws is off, and its standard
        error.
    ratio, ratio_mcse : ndarray of shape (d,)
        Variance of the draws over that of the density, and its standard error.
    mean_ratio, mean_ratio_mcse : float
        Average of the ratio over all directions, which is known much better.

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


def score_moments(draws, scores, *, weights=None):
    r"""Shift of means, and ratio of variances, of draws against the density of their scores.

    With :math:`G` the covariance that draws and scores say the density has (`stein_scale`),
    :math:`a_j = (\theta_j - \bar\theta_j) / \sqrt{G_{jj}}` and
    :math:`b_j = (G s)_j / \sqrt{G_{jj}}`, the slope of the log density along the direction in which
    the other parameters follow the j-th,

    .. math::

        \text{shift}_j = -\bar{b_j}, \qquad \text{ratio}_j = -\overline{a_j b_j}.

    Zero and one in expectation for draws from any density; what they say of other draws is exact
    for Gaussian densities, and of first order for others. Unbiased estimates of scores will do, if
    their noise is independent of the draw.

    Parameters
    ----------
    draws, scores : arrays of shape (n_chains, n_draws, d)
        Draws, and gradients of the log density there.
    weights : array of shape (n_draws,), optional
        How much the draws count, of every chain; all the same if None.

    Returns
    -------
    ScoreMoments
        Standard errors are those of batch means, in about 20 batches.

    Raises
    ------
    ValueError
        For arrays that do not fit together or are not finite.

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
    ratio = shift * centred / width
    every = -w * (centred * s).mean(axis=1)  # the same in all coordinates
    shift, ratio, every = (v.reshape(*shape[:2], -1) for v in (shift, ratio, every))
    return ScoreMoments(
        shift.mean(axis=(0, 1)), batch_error(shift), ratio.mean(axis=(0, 1)), batch_error(ratio),
        float(every.mean()), float(batch_error(every)[0]),
    )  # fmt: skip
