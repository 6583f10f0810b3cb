"""Whether draws tell how much each mode weighs: only chains that cross between modes do.

A draw belongs to the mode whose Laplace approximation is largest there. Chains cross if R-hat of
these memberships is small and no modes that matter are without draws, or nearly so. Otherwise the
shares of the draws are those of the starting points, whatever R-hat of the parameters says, and a
warning names the modes. Modes matter by their shares, and by their distance: with a share of 0.8 %
each, two modes at 15 standard deviations make a variance four times as large.
"""

import warnings
from dataclasses import replace

import numpy as np

from ..diagnostics import convergence
from ..diagnostics.verdict import RATIO, RHAT
from ..exceptions import MultimodalPosteriorWarning

__all__ = ["cross", "judged", "told_of_search"]

MATTERS = 0.01  # modes with a larger share of the Laplace evidence in all must have draws
# A mode with fewer draws than this, and than this share of those that its evidence lets expect, has
# perhaps not been visited: draws in the tails of another mode may be counted as its own.
FEW_DRAWS, FEW_OF_EXPECTED = 10, 0.1
BY_CHANCE = 3.0  # with fewer draws of a mode expected, there may be none by chance
NAMED = 4  # largest number of modes that a warning describes
PRIORS = "a prior with lighter tails or a larger scale"


def told_of_search(modes):
    """Return diagnostics and evidence of the search for modes; warn of modes that it left out."""
    if not modes.searched:
        return {}, {}
    evidence = {"n_modes": np.array([float(len(modes))])}
    if not modes.complete:
        evidence["modes_left"] = np.array([1.0])
        matter = "that matters" if len(modes) == 1 else "that matter"
        _warn(
            f"The posterior may have many modes: the search has ended after {len(modes)} {matter}, "
            f"and the draws may miss others. {_remedy_of_search(modes)}"
        )
    if modes.degenerate:
        evidence["noiseless_mode"] = np.array([1.0])
        _warn(
            "Some rows are fitted exactly, and the posterior has a mode where the noise is their "
            "rounding error. It was left out: noise far below that of the other rows is excluded. "
            "The response has ties: use a noise_prior that excludes noise below its resolution, "
            "such as InverseGamma(alpha=2, beta=s**2) with s the resolution."
        )
    return {"n_modes": float(len(modes))}, evidence


def _remedy_of_search(modes):
    """Advice where a search has left out modes."""
    if modes.frame.target.model.n_linear:
        return f"Use {PRIORS}, or drop columns that are nearly the same."
    return "Use narrower priors, or say where searches begin (start) with points near the modes."


def judged(outcome, modes, request, remedy=PRIORS):
    """Add diagnostics of the modes to the `Outcome` of chains; warn if the chains do not cross.

    The warning advises the `remedy`, or to look at the modes one by one.
    """
    diagnostics, evidence = told_of_search(modes)
    if len(modes) > 1 and outcome.draws.shape[1] > 0:
        member = modes.nearest(outcome.draws)
        of_mode = member[..., None] == np.arange(len(modes))
        shares = of_mode.mean(axis=(0, 1))
        diagnostics |= {f"mode_share_{m}": float(s) for m, s in enumerate(shares)}
        gap, spread = 0.0, _spread_of_missed(modes, outcome.draws, shares)
        if spread > RATIO or not cross(of_mode.astype(float), modes.shares, shares):
            halves = np.concatenate(
                [part.mean(axis=1) for part in np.array_split(of_mode, 2, axis=1)]
            )
            gap = max(np.abs(shares - modes.shares).max(), np.ptp(halves, axis=0).max())
            _warn_apart(modes, shares, request, remedy)
        evidence |= {"mode_gap": np.array([gap]), "mode_spread": np.array([spread])}
    return replace(
        outcome,
        diagnostics=outcome.diagnostics | diagnostics,
        evidence=outcome.evidence | evidence,
    )


def _are_missed(expected, shares, n):
    """Which modes have not been visited, by their shares of the evidence and of all n draws."""
    return shares * n < np.minimum(FEW_DRAWS, FEW_OF_EXPECTED * expected * n)


def _spread_of_missed(modes, draws, shares):
    """The largest share Σ_m s_m δ_m² that modes without draws would add to a variance.

    s_m is the share of a mode in the evidence, and δ_m its distance from the mean of the draws in
    standard deviations.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    centres = np.array([frame.centre.theta for frame in modes.frames])
    sd = np.maximum(flat.std(axis=0), np.finfo(float).tiny)
    is_due = _are_missed(modes.shares, shares, len(flat)) & (modes.shares * len(flat) > BY_CHANCE)
    return float((modes.shares * is_due @ ((centres - flat.mean(axis=0)) / sd) ** 2).max())


def cross(of_mode, expected, shares):
    """Whether all chains visit all modes alike, and no modes that matter are missed.

    `of_mode` (n_chains, n_draws, n_modes) is 1 for the mode of a draw and else 0; `expected` are
    the modes' shares of the Laplace evidence, and `shares` those of the draws.
    """
    if expected[_are_missed(expected, shares, np.prod(of_mode.shape[:2]))].sum() > MATTERS:
        return False
    visited = (shares > 0.0) & (shares < 1.0)
    ratios = convergence.rhat(of_mode[..., visited])
    return not (np.isinf(ratios) | (ratios > RHAT)).any()


def _warn_apart(modes, shares, request, remedy):
    """Warn that chains do not cross, and name the parameter in which the modes differ most."""
    theta = np.array([frame.centre.theta for frame in modes.frames])
    apart = np.ptp(theta, axis=0) / np.max([frame.width for frame in modes.frames], axis=0)
    worst = int(np.argmax(apart))
    values = request.parameters(theta[None])[0] if len(request.names) else theta
    said = "; ".join(
        f"{values[m, worst]:.3g} with {modes.shares[m]:.0%} of the evidence and {shares[m]:.0%} "
        "of the draws"
        for m in range(min(len(modes), NAMED))
    )
    remedies = f"{remedy}, or look at the modes one by one."
    if request.sampler is not None:
        remedies = "sampler='auto', which weighs modes where it can, " + remedies
    _warn(
        f"The posterior has {len(modes)} modes, and the chains do not cross between them: their "
        f"draws do not tell how much each mode weighs. {request.name_of(worst)} is about {said}. "
        f"Use {remedies}"
    )


def _warn(message):
    warnings.warn(message, MultimodalPosteriorWarning, stacklevel=3)
