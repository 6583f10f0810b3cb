"""What the step size has done to the draws, as Gibbs sweeps show that begin at some of them.

Gibbs sweeps leave the posterior as it is. After sweeps that begin at draws of another law, such as
that of a chain with stochastic gradients, states are nearer to the posterior: an average that they
change was wrong, by at least as much as it changes. Four sweeps take back nearly all of the excess
of standard deviations (``tests/factorisation/test_step_check.py``). Averages before and after are
those of the same chains, and of many predictions, so that few draws are enough.
"""

from typing import NamedTuple

import numpy as np

from ..diagnostics.step_bias import batch_error

__all__ = ["STEPS", "SWEEPS", "Continued", "biases", "places"]

SWEEPS = 4  # Gibbs sweeps from each of the draws that are examined
SHARE = 0.1  # share of the time of a run that they may take
STEPS = 3.0  # a pass with stochastic gradients takes as long as this many Gibbs sweeps
FEWEST, MOST = 8, 100  # draws of all chains together that are examined


class Continued(NamedTuple):
    """What draws of a chain say before the sweeps and after them, along the second axis."""

    predictions: np.ndarray  # (n, 2, n_probes)
    misfits: np.ndarray  # (n, 2): logarithms of the root mean square of the residuals

    @classmethod
    def empty(cls, n, n_probes):
        """Uninitialised values of n draws."""
        return cls(np.empty((n, 2, n_probes)), np.empty((n, 2)))


def places(sampler, n_chains, n_draws, n_passes):
    """The numbers of the draws of each chain that are examined; none of an exact sampler.

    `n_passes` is the number of passes of a chain.
    """
    if sampler.is_exact:
        return np.empty(0, int)
    room = SHARE * STEPS * n_passes / SWEEPS
    n = int(np.clip(room, -(-FEWEST // n_chains), max(1, MOST // n_chains)))
    return np.unique(np.linspace(0, n_draws - 1, n).astype(int))


def biases(predictions, misfits, noise_std):
    """The biases of standard deviations of predictions and of the noise, with their errors.

    Parameters
    ----------
    predictions : array of shape (n_chains, n, 2, n_probes)
    misfits : array of shape (n_chains, n, 2)
        See `Continued`.
    noise_std : array of shape (n_chains, n_draws)
        Draws of the standard deviation of the noise; constant if it is known.

    Returns
    -------
    dict of str to float
        "sd_bias": by how much standard deviations of predictions are too large, as a share; and
        "noise_bias": by how many of its posterior standard deviations that of the noise is too
        large, with "noise_ratio", the bias as a share. The first two come with their Monte Carlo
        errors ("_mcse"). The dict is empty for fewer than two draws, and has no noise if that is
        known.
    """
    if predictions.shape[0] * predictions.shape[1] < 2:
        return {}
    moved = predictions - predictions.mean(axis=(0, 1))
    squares = moved**2
    variances = squares.mean(axis=(0, 1))
    moving = (variances > 0.0).all(axis=0)
    squares, variances = squares[..., moving], variances[:, moving]
    if not moving.any():
        return {}
    bias = 0.5 * np.log(variances[0] / variances[1]).mean()
    influence = (squares / (2.0 * variances)).mean(axis=-1)
    found = {
        "sd_bias": float(np.expm1(bias)),
        "sd_bias_mcse": float(np.exp(bias) * batch_error(influence[..., 0] - influence[..., 1])),
    }
    spread = noise_std.std()
    return found | (_of_noise(misfits, noise_std.mean() / spread) if spread > 0.0 else {})


def _of_noise(misfits, unit):
    """The bias of the noise, whose logarithm moves as that of the residuals on average.

    `unit` is the standard deviation of the noise in units of its posterior standard deviation.
    """
    change = misfits[..., 0] - misfits[..., 1]
    ratio, error = change.mean(), batch_error(change)
    return {
        "noise_bias": float(unit * ratio),
        "noise_bias_mcse": float(unit * error),
        "noise_ratio": float(np.expm1(ratio)),
    }
