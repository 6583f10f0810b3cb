"""Excursions: draws of chains without a Metropolis test where the posterior has hardly any mass.

A rare batch, or a step too large for a place, throws a chain far out, and it drifts back within a
few draws. R-hat and effective sample sizes rest on ranks and on autocorrelations, and hardly see so
few draws, but variances are made of them. The potential U = -log p tells them from tails of the
posterior. In D dimensions U at draws of the posterior is spread by about √(D/2) nats. Where the
tail is exponential or lighter, U is h nats above that with probability e^{-h}. Where the density
falls like a power df + 1 of the distance, as under Student's t priors, the probability falls like
the power df alone, and h is (df + 1)/df times as large. Draws beyond both (`EXCURSION`) are no
draws of the posterior.
"""

import numpy as np

from ..importance.potential import Potential
from ..priors import StudentT
from ..priors.columns import SHAPE
from ..priors.families import of_family

__all__ = ["excursion"]

FAR = 8.0  # a draw is far out if a coordinate is more than this many spreads from its median
NORMAL = 1.349  # interquartile range of the standard normal distribution
MOST = 8  # U is computed at the farthest draws, at most so many, and at twice as many others
SPREADS = 10.0  # multiple of the spread √(D/2) of U that an excursion must exceed
UNKNOWN_SCALE = 2.0  # `_heaviness` of Cauchy's tail, assumed where the noise is a parameter too


def excursion(frame, phi):
    """By how many nats U at the farthest draws exceeds what tails of the posterior allow.

    The height is the largest U at draws far out, less the median of U at other draws, divided by
    `_heaviness` so that nats of a power law count as those of an exponential tail. It may be
    `SPREADS` spreads of U; the result is the excess, and 0 where no draws are far out.

    Parameters
    ----------
    frame : Frame
    phi : array of shape (n_chains, n_draws, D)
    """
    flat = phi.reshape(-1, phi.shape[-1])
    if len(flat) == 0:
        return 0.0
    lower, middle, upper = np.quantile(flat, [0.25, 0.5, 0.75], axis=0)
    spread = np.maximum((upper - lower) / NORMAL, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        away = (np.abs(flat - middle) / spread).max(axis=1)
    order = np.argsort(away, kind="stable")
    near = order[: np.searchsorted(away[order], FAR, side="right")]
    far = order[len(near) :][-MOST:]
    if len(far) == 0 or len(near) == 0:
        return 0.0
    usual = near[np.linspace(0, len(near) - 1, min(2 * MOST, len(near))).astype(int)]
    with np.errstate(all="ignore"):
        U = Potential(frame).values(flat[np.concatenate([usual, far])])
    height = np.nan_to_num(U[len(usual) :], nan=np.inf).max() - np.median(U[: len(usual)])
    height /= _heaviness(frame.target)
    return float(np.clip(height - SPREADS * np.sqrt(0.5 * flat.shape[1]), 0.0, 1e9))


def _heaviness(target):
    """How many nats of U in the heaviest possible tail count as one in an exponential tail."""
    df = target.prior[of_family(target.prior, StudentT), SHAPE].min(initial=np.inf)
    return max(1.0 + 1.0 / df, UNKNOWN_SCALE if target.model.n_extra else 1.0)
