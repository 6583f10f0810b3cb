"""Evidence on predictions, and a verdict: nothing here refers to a single weight.

R-hat. Chains begin at initialisations of their own. For rows of the fit the predictions of all
draws are compared between chains (rank-normalised split R-hat); the value that is judged is the one
that 95 % of the predictions do not exceed.

Noise. Judged are the share by which gradient noise is predicted to widen variances of predictions,
and the kinetic temperature: the mean square of velocities, over all coordinates and along
predictions, which is 1 if noise and friction are in balance.
"""

import numpy as np
from scipy.special import fdtri

from ..diagnostics import convergence
from ..diagnostics.verdict import NOISE, RHAT, Finding, Verdict

__all__ = ["agree", "by_chance", "diagnostics_of", "verdict"]

QUANTILE = 0.95  # share of the predictions whose R-hat does not exceed the judged value
# The kinetic temperature along predictions may differ from 1 by HEAT, or by SIGMAS standard errors
# if these are more. No error explains a temperature of HOTTEST, along predictions or over all
# weights.
HEAT = 0.1
SIGMAS = 5.0
HOTTEST = 2.0
SURE = 0.995  # probability that R-hat of independent draws is below its limit

MORE = (
    "Raise thin, n_warmup or n_draws, and standardise the columns of X. If it stays, chains are in "
    "different modes, and the average over them is that of an ensemble."
)
LESS_NOISE = "Use step_size='auto', a smaller step, more rows a step, or gradient='svrg'."


def diagnostics_of(records, inflation):
    """Return the numbers of the fitted attribute `diagnostics_`.

    Parameters
    ----------
    records : list of Evidence
        One for each chain.
    inflation : float
        Relative increase of the variance of predictions that gradient noise is predicted to cause.

    Returns
    -------
    dict of str to float
    """
    functions = np.stack([r.functions for r in records])
    ratios = _ratios(functions)
    most = np.quantile(ratios, QUANTILE) if np.isfinite(ratios).all() else ratios.max()
    within = functions.var(axis=1).mean()
    between = functions.mean(axis=1).var(axis=0).mean()
    total = max(within + between, np.finfo(float).tiny)
    heat, error = _ratio_of_means(np.concatenate([r.squared_motions for r in records], axis=1))
    return {
        "max_rhat": float(ratios.max()),
        "rhat_of_predictions": float(most),
        "rhat_by_chance": by_chance(*functions.shape[:2]),
        "between_chains": float(between / total),
        "noise_inflation": float(inflation),
        "temperature": float(np.mean([r.temperature for r in records])),
        "temperature_of_predictions": heat,
        "temperature_error": error,
        "n_chains": float(len(records)),
    }


def _ratios(functions):
    """R-hat of the predictions that vary; infinite if some are no numbers, NaN if none is known."""
    if not np.isfinite(functions).all():
        return np.array([np.inf])
    moving = functions.std(axis=(0, 1)) > 0.0
    ratios = convergence.rhat(functions[..., moving]) if moving.any() else np.array([np.nan])
    return ratios[np.isfinite(ratios)] if np.isfinite(ratios).any() else np.array([np.nan])


def _ratio_of_means(squared_motions):
    """Return the ratio of two means over draws, and its standard error for independent draws."""
    moved, normal = squared_motions
    ratio = moved.mean() / normal.mean()
    error = (moved - ratio * normal).std() / normal.mean() / np.sqrt(len(normal))
    return float(ratio), float(error)


def by_chance(n_chains, n_draws):
    """Return the `SURE` quantile of R-hat of independent draws, from R-hat² = (n - 1 + F)/n.

    Split R-hat compares halves of n draws each; F has the F distribution. Infinite for n < 2.
    """
    halves, n = 2 * n_chains, n_draws // 2
    if n < 2:
        return np.inf
    return float(np.sqrt((n - 1.0 + fdtri(halves - 1, halves * (n - 1), SURE)) / n))


def agree(diagnostics):
    """Whether R-hat of predictions is not above its limit, or above `by_chance`; True if unknown.

    More steps between the draws could not lower an R-hat that is due to their small number.
    """
    limit = max(RHAT, diagnostics.get("rhat_by_chance", RHAT))
    return not diagnostics["rhat_of_predictions"] > limit


def verdict(diagnostics, temperature, altered):
    """Return the `Verdict` on predictions."""
    findings, passed, unknown = [], {}, ["weights: they are not judged, predictions are"]
    _judge_rhat(diagnostics, findings, passed, unknown)
    _judge_noise(diagnostics, findings, passed)
    _judge_heat(diagnostics, findings, passed)
    for what in altered:
        text = f"{what} is active while chains run: the law is not the posterior of the module."
        findings.append(Finding("law", text, "", np.nan, np.nan, is_note=True))
    if temperature != 1.0:
        text = f"the law is the posterior to the power 1/T with T = {temperature:g}."
        findings.append(Finding("temperature", text, "", temperature, 1.0, is_note=True))
    return Verdict(findings, passed, unknown)


def _judge_rhat(d, findings, passed, unknown):
    ratio = d["rhat_of_predictions"]
    text = (
        f"{ratio:.3f} for 95 % of the predictions (largest {d['max_rhat']:.3f}); "
        f"{100.0 * d['between_chains']:.0f} % of their variance is between chains"
    )
    if np.isnan(ratio):
        unknown.append("R-hat of predictions: it needs at least four draws of each chain.")
    elif ratio > RHAT:
        text += f", the limit is {RHAT}."
        findings.append(Finding("R-hat of predictions", text, MORE, ratio, RHAT))
    else:
        passed["R-hat of predictions"] = text
    if d["n_chains"] < 2:
        unknown.append("other modes: a single chain cannot tell. Use n_chains=4.")


def _judge_noise(d, findings, passed):
    share, limit = d["noise_inflation"], NOISE * 1.001
    text = f"the gradient's noise is predicted to widen variances by {100.0 * share:.1f} %"
    if share > limit:
        findings.append(Finding("noise", f"{text}, the limit is 10 %.", LESS_NOISE, share, NOISE))
    else:
        passed["noise"] = text


def _judge_heat(d, findings, passed):
    heat, error = d["temperature_of_predictions"], d["temperature_error"]
    if not np.isfinite(heat):
        return  # the dynamics has no velocities
    limit = min(max(HEAT, SIGMAS * error), HOTTEST - 1.0)
    text = f"{heat:.3f} along predictions, {d['temperature']:.3f} over all weights; it should be 1"
    if abs(heat - 1.0) > limit or not d["temperature"] < HOTTEST:
        text += f" to within {limit:.2g}."
        worst = max(heat, d["temperature"])
        findings.append(Finding("kinetic temperature", text, LESS_NOISE, worst, 1.0 + limit))
    else:
        passed["kinetic temperature"] = text
