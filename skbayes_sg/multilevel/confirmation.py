"""Checks by independent draws: whether paths can answer, and whether their answer is right.

Multilevel SGLD takes its times from the curvature at the mode: it is for posteriors with one mode
that are nearly Gaussian. Neither is visible in its own levels. On a posterior with a long tail all
paths, fine and coarse, are still on their way after the time in which a Gaussian forgets its start,
and at a second mode there are none. So `CONFIRMING` independent draws with a certificate
(`skbayes_sg.importance`), where they can be made,

* tell how much wider than its Laplace approximation the posterior is, in the direction where this
  is largest: a diffusion needs about λ times as long to forget where the variance is λ times as
  large, and beyond `WIDEST` it is refused (`WIDEST_HEAVY` where tails are those of Student's t
  priors);
* have a mean with a known error, with which the answer must agree.

No draws are made of posteriors that are Gaussian but for rows without influence.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._base import streams
from ..exceptions import CouplingError, SamplerConvergenceWarning
from ..importance.lockstep import Budget
from ..priors import Flat, Normal, StudentT
from ..priors.families import of_family
from ..recipe.independent import is_possible, proposals_of, weighed_draws

__all__ = ["Confirmation", "confirming"]

CONFIRMING = 1000  # number of independent draws
GRADIENTS = 20_000  # most gradients that chains in lockstep may take, of all chains together
WIDEST = 9.0  # largest λ, a variance in units of the Laplace approximation, that is accepted
# The largest λ under Student's t priors, whose tails no diffusion forgets at a rate.
WIDEST_HEAVY = 3.0
SIGMAS = 5.0  # most standard errors by which the answer and the mean of the draws may differ
REMEDY = "Use the draws instead: posterior_.expectation(func) of a fit with sampler='auto'."


@dataclass(frozen=True)
class Confirmation:
    """Independent draws of the posterior.

    Parameters
    ----------
    theta : array of shape (n_draws, n_parameters)
    ess : float
        Effective sample size: the number of independent draws without weights that they are worth.
    slowness : float
        λ, the largest variance in coordinates in which that of the Laplace approximation is 1.
    """

    theta: np.ndarray
    ess: float
    slowness: float

    def check(self, found, integrand):
        """Raise `CouplingError` if an `Expectation` and the mean of the draws do not agree."""
        values = integrand.values(self.theta[None])[0]
        mean, variance = values.mean(axis=0), values.var(axis=0)
        value, error = np.ravel(found.value), np.ravel(found.error)
        allowed = SIGMAS * np.sqrt(variance / self.ess + error**2)
        gap = np.abs(value - mean)
        if (gap <= allowed).all():
            return
        j = int(np.argmax(gap / np.maximum(allowed, np.finfo(float).tiny)))
        raise CouplingError(
            f"The estimate {value[j]:.6g} (error {error[j]:.2g}) is not the mean {mean[j]:.6g} "
            f"(standard error {np.sqrt(variance[j] / self.ess):.2g}) of independent draws of the "
            f"posterior: paths forget their starting points too slowly. {REMEDY}"
        )


def confirming(modes, seed):
    """Return the `Confirmation` of a posterior, or None if it needs none or none can be made.

    Independent draws that are not reliable give None and a warning. A posterior with several modes,
    or far from Gaussian, raises `CouplingError`.
    """
    if len(modes) > 1 or not modes.complete:
        raise CouplingError(
            f"The posterior has {len(modes)} modes or more, and paths that begin at one do not "
            f"reach the others. {REMEDY}"
        )
    if not is_possible(modes):
        return None
    proposals = proposals_of(modes)
    if len(proposals[0].hard) == 0 and of_family(modes.frame.target.prior, Normal, Flat).all():
        return None
    rng = streams.of_proposal(seed)
    found = weighed_draws(modes, proposals, CONFIRMING, rng, lambda _: Budget(GRADIENTS))
    if not found.holds:
        warnings.warn(
            "The estimate could not be confirmed, because no reliable independent draws of the "
            f"posterior were made (Pareto k {found.certificate.pareto_k:.2f}). {REMEDY}",
            SamplerConvergenceWarning,
            stacklevel=2,
        )
        return None
    slowness = linalg.eigvalsh(np.atleast_2d(np.cov(found.phi.T, ddof=0))).max()
    heavy = of_family(modes.frame.target.prior, StudentT).any()
    if slowness > (WIDEST_HEAVY if heavy else WIDEST):
        raise CouplingError(
            f"The posterior is far from Gaussian: in one direction its variance is {slowness:.3g} "
            "times that which the curvature at the mode implies, and paths would forget their "
            f"starting points too slowly. {REMEDY}"
        )
    return Confirmation(modes.frame.theta(found.phi), found.ess, max(1.0, float(slowness)))
