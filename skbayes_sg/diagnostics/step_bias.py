r"""The bias that a step size causes, from a comparison with half the time step.

A chain with time step τ and one with τ/2, driven by the same Brownian motion, stay close, so that
the difference of their averages is known much more accurately than either. With a bias of order r
in τ the difference is the share :math:`1 - 2^{-r}` of the bias (Richardson extrapolation).
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["StepBias", "step_bias"]

BATCHES = 20  # number of batches of draws, over all chains, whose means give standard errors


@dataclass(frozen=True)
class StepBias:
    """Estimated bias of means and standard deviations, with Monte Carlo errors.

    Parameters
    ----------
    mean, mean_mcse : ndarray of shape (d,)
        Bias of each mean, in posterior standard deviations, and its standard error.
    sd, sd_mcse : ndarray of shape (d,)
        Relative bias of each standard deviation (0.1 is ten per cent too large), and its standard
        error.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import StepBias
    >>> StepBias(np.array([0.5]), np.array([0.1]), np.array([0.0]), np.array([0.02])).mean
    array([0.5])
    """

    mean: np.ndarray
    mean_mcse: np.ndarray
    sd: np.ndarray
    sd_mcse: np.ndarray


def step_bias(
    coarse: np.ndarray, fine: np.ndarray, *, sd: np.ndarray | None = None, order: float = 1
) -> StepBias:
    r"""Estimate the bias that the step size causes from coupled chains of time steps τ and τ/2.

    .. math::

        \frac{2^r}{2^r - 1} \; \frac{\bar\theta_\tau - \bar\theta_{\tau/2}}{\text{sd}}, \qquad
        \frac{2^r}{2^r - 1} \; \log \frac{\text{sd}_\tau}{\text{sd}_{\tau/2}}

    Parameters
    ----------
    coarse, fine : arrays of shape (n_chains, n_draws, d)
        Draws at the same times from warmed-up chains that are driven by the same noise.
    sd : array of shape (d,), optional
        Unit of the biases of means; standard deviations of `fine` by default.
    order : float, default=1
        r: 1 for Euler schemes (SGLD) and where gradient noise dominates; 2 for schemes of weak
        order two (BAOAB, Leimkuhler-Matthews) with little noise.

    Returns
    -------
    StepBias
        Standard errors are those of batch means, in about 20 batches.

    Raises
    ------
    ValueError
        If the shapes of the arrays differ, or a chain has fewer than two draws.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.diagnostics import step_bias
    >>> fine = np.random.default_rng(0).normal(size=(2, 500, 1))
    >>> found = step_bias(1.1 * fine + 0.2, fine, order=1)
    >>> found.mean.round(2), found.sd.round(2)
    (array([0.4]), array([0.19]))
    """
    coarse, fine = np.asarray(coarse, dtype=np.float64), np.asarray(fine, dtype=np.float64)
    if coarse.shape != fine.shape or coarse.ndim != 3 or coarse.shape[1] < 2:
        raise ValueError(
            "coarse and fine must have the same shape (n_chains, n_draws, d) with at least two "
            f"draws, got {coarse.shape} and {fine.shape}."
        )
    if not order > 0.0:
        raise ValueError(f"order must be positive, got {order!r}.")
    factor = 2.0**order / (2.0**order - 1.0)
    variances = [np.maximum(x.var(axis=(0, 1)), np.finfo(float).tiny) for x in (coarse, fine)]
    unit = np.sqrt(variances[1]) if sd is None else np.where(np.asarray(sd) > 0.0, sd, 1.0)
    difference = (coarse - fine) / unit
    # The influence of each draw on the logarithm of the standard deviation.
    moves = [
        (x - x.mean(axis=(0, 1))) ** 2 / (2.0 * v)
        for x, v in zip((coarse, fine), variances, strict=True)
    ]
    return StepBias(
        factor * difference.mean(axis=(0, 1)),
        factor * batch_error(difference),
        factor * 0.5 * np.log(variances[0] / variances[1]),
        factor * batch_error(moves[0] - moves[1]),
    )


def batch_error(x):
    """Standard error of the mean of x (n_chains, n_draws, ...) by batch means.

    It takes one pass over the draws, however many entries x has. With about 20 batches the relative
    error of the standard error is about a sixth, 1/√(2 · 19).
    """
    n_chains, n_draws = x.shape[:2]
    per_chain = min(max(2, -(-BATCHES // n_chains)), n_draws)
    size = n_draws // per_chain
    cut = x[:, n_draws - per_chain * size :].reshape(n_chains, per_chain, size, *x.shape[2:])
    means = cut.mean(axis=2).reshape(n_chains * per_chain, *x.shape[2:])
    if len(means) < 2:
        return np.full(x.shape[2:], np.inf)
    return means.std(axis=0, ddof=1) / np.sqrt(len(means))
