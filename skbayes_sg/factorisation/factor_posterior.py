"""The posterior of quantities that no rotation of the factors changes, and its convergence.

Chains are judged by predictions, of which nine in ten must be within the usual limits: among fifty
predictions, the largest R-hat is above its limit by chance. The noise is one parameter, which must
be within the limits itself. Where steps have been examined (`step_check`), the limits are those of
other posteriors.
"""

import numpy as np
from scipy import stats

from ..diagnostics import convergence
from ..diagnostics.judgements import Judgement, of_finite, verdict_of
from ..diagnostics.verdict import BIAS, ESS_SHARE, RHAT, SD_BIAS, SIGMAS, Verdict
from ..exceptions import StepSizeWarning
from ..posterior import Posterior

__all__ = ["CATEGORIES", "FactorPosterior"]

LEAST_DRAWS = 8  # draws of a chain below which R-hat and effective sample sizes are NaN
SHARE = 0.9  # share of the predictions that must be within the limits
NOISE_BY_CHANCE = 0.01  # probability that the noise of converged chains exceeds its limit of R-hat
MORE = "Increase n_warmup first, and then n_draws or thin."
STEP = "Use sampler='gibbs', which has no steps, or a smaller step_size."
CHAINS = "Use n_chains=4, which visit more of them."
NEGLIGIBLE = 0.01  # relative error of the noise below which its bias is only a note
SPREAD_NAME, NOISE_NAME = "step and spread of predictions", "step and noise"
CATEGORIES = [(SPREAD_NAME, StepSizeWarning), (NOISE_NAME, StepSizeWarning)]
"""The findings that come with other warnings than `SamplerConvergenceWarning`."""


class FactorPosterior(Posterior):
    """Draws of the noise, the mean and some predictions of a factorisation, in the unit of y.

    Parameters
    ----------
    noise_std, mean : array of shape (n_chains, n_draws)
        The standard deviation of the noise, and the expected rating of new categories.
    probes : array of shape (n_chains, n_draws, n_probes)
        Predictions of some rows of the fit.
    origin : dict
        How the draws were made.
    evidence : dict, optional
        What `skbayes_sg.factorisation.step_check.biases` has found, and "numbers_a_rating": how
        many numbers the vectors of all categories have for each rating.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.factorisation.factor_posterior import FactorPosterior
    >>> rng = np.random.default_rng(0)
    >>> noise, mean = rng.normal(size=(2, 100)), np.zeros((2, 100))
    >>> probes = rng.normal(size=(2, 100, 50))
    >>> bool(FactorPosterior(noise, mean, probes, {}).check())
    True
    """

    def __init__(self, noise_std, mean, probes, origin, evidence=None):
        n = probes.shape[-1]
        labels = ["noise_std", "mean", *(f"probes[{k}]" for k in range(n))]
        flat = np.concatenate([noise_std[..., None], mean[..., None], probes], axis=-1)
        shapes = {"noise_std": (), "mean": (), "probes": (n,)}
        super().__init__(flat, shapes, labels, origin, evidence=evidence)

    def convergence(self):
        """Return R-hat and the bulk effective sample size of predictions and of the noise.

        They are the values of a dict with the keys "rhat" and "ess" (nine in ten predictions are no
        worse), "noise_rhat" and "noise_ess". A value is NaN if a chain has fewer than eight draws,
        or if the quantity does not vary, as the noise does not if it is known.
        """
        found = dict.fromkeys(("ess", "rhat", "noise_ess", "noise_rhat"), np.nan)
        probes, noise = self["probes"], self["noise_std"]
        probes = probes[..., probes.std(axis=(0, 1)) > 0.0]
        if self.n_draws < LEAST_DRAWS:
            return found
        if probes.shape[2]:
            found["ess"] = float(np.nanquantile(convergence.ess_bulk(probes), 1.0 - SHARE))
            found["rhat"] = float(np.nanquantile(convergence.rhat(probes), SHARE))
        if np.ptp(noise) > 0.0:
            found["noise_ess"] = float(convergence.ess_bulk(noise))
            found["noise_rhat"] = float(convergence.rhat(noise))
        return found

    def check(self) -> Verdict:
        """Whether the draws can be trusted, and if not, why and what to do.

        R-hat must be at most 1.05, or as much more as chance makes it where few draws are
        effective, and the effective sample size at least a tenth of the draws. The noise must be
        within these limits, and so must nine in ten of the predictions at some rows of the fit.

        Of samplers with stochastic gradients some draws are compared with those to which Gibbs
        sweeps lead from them: by more than five Monte Carlo errors, standard deviations of
        predictions must not be wrong by more than a tenth, nor the standard deviation of the noise
        by more than 0.2 of its posterior standard deviations. It is a note if that is less than one
        per cent of the noise.

        Where fewer ratings than numbers in all vectors were fitted by a single chain, a note says
        that the posterior may have modes that it does not visit.

        Returns
        -------
        Verdict
            It can be used as a condition, and shows one screen of text or a table in notebooks.
        """
        found, shape = self.convergence(), (self.n_chains, self.n_draws)
        note = ", or better for 9 in 10"
        return verdict_of(
            [
                *of_finite("predictions and noise", self.flat),
                *_judged("predictions", found["rhat"], found["ess"], shape, 1.0 - SHARE, note),
                *_judged("noise", found["noise_rhat"], found["noise_ess"], shape, NOISE_BY_CHANCE),
                *_judged_steps(self.evidence),
                *_judged_size(self.evidence, self.n_chains),
            ]
        )


def _judged(what, rhat, ess, shape, by_chance, note=""):
    """Yield the judgements of the R-hat and of the effective sample size of `what`."""
    n_chains, n_draws = shape
    limit, total = max(RHAT, largest_rhat(n_chains, ess, by_chance)), n_chains * n_draws
    yield Judgement(f"R-hat of {what}", f"{rhat:.3f}{note}", rhat, limit, f"{limit:.3g}", MORE)
    name, text = f"effective sample size of {what}", f"{ess:.0f} of {total} draws{note}"
    yield Judgement(name, text, total / ess, 1.0 / ESS_SHARE, f"{ESS_SHARE * total:.0f}", MORE)


def _judged_steps(found):
    """Yield the judgements of what the step size has done, if it was measured."""
    if "sd_bias" in found:
        value, limit = found["sd_bias"], max(SD_BIAS, SIGMAS * found["sd_bias_mcse"])
        text = f"standard deviations are about {abs(value):.0%} {_too(value)}"
        yield Judgement(SPREAD_NAME, text, abs(value), limit, f"{limit:.0%}", STEP)
    if "noise_bias" in found:
        value, limit = found["noise_bias"], max(BIAS, SIGMAS * found["noise_bias_mcse"])
        share, is_note = found["noise_ratio"], abs(found["noise_ratio"]) < NEGLIGIBLE
        text = f"noise_std is about {abs(value):.2g} of its posterior standard deviations, "
        text += f"{abs(share):.1%}, {_too(value)}"
        yield Judgement(NOISE_NAME, text, abs(value), limit, f"{limit:.2g}", STEP, is_note)


def _judged_size(found, n_chains):
    """Yield a note on a single chain where there are more numbers than ratings."""
    value = found.get("numbers_a_rating", 0.0)
    if n_chains == 1 and value > 1.0:
        text = f"each rating determines {value:.1f} numbers, and one chain may miss modes"
        yield Judgement("few ratings", text, value, 1.0, "1", CHAINS, is_note=True)


def _too(value):
    """In words, whether a bias makes something too large or too small."""
    return "too small" if value < 0.0 else "too large"


def largest_rhat(n_chains, ess, by_chance):
    """The R-hat that converged chains exceed with probability `by_chance`, to first order.

    With `ess` effective draws in 2c halves of chains, the means of the halves have 2c/ess times the
    variance of a draw, and (2c - 1) times their variance is χ²: R-hat is 1 + c χ²/((2c - 1) ess).
    """
    return 1.0 + n_chains * stats.chi2.isf(by_chance, 2 * n_chains - 1) / ((2 * n_chains - 1) * ess)
