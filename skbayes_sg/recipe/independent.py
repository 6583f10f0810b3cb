"""Independent draws with a certificate, and what they become in θ.

The proposal is fitted to the posterior at its centre, its draws are weighed with all rows that
matter, and Pareto k and the effective sample size of the weights say whether to believe them: see
`skbayes_sg.importance`. Where the draws are not to be believed, "auto" goes on to chains.
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from .._base import streams
from ..diagnostics import convergence
from ..diagnostics.score_moments import moments_along
from ..diagnostics.verdict import FEW, FEW_DRAWS, LEAST_DRAWS, RHAT, are_contradicted
from ..dynamics import Importance
from ..exceptions import SamplerConvergenceWarning
from ..geometry.preconditioning import DENSE_LIMIT
from ..importance.certificate import LARGEST_K, LIGHT
from ..importance.fit import MOST_WARPED, fit_proposal
from ..importance.flat_tails import reach_of_tails
from ..importance.growing import EVALUATED, MOST_GROWN, grown_draws
from ..importance.lockstep import Budget
from ..importance.mixture import mixed_draws
from ..importance.sample import certified_draws, draws_of_chains
from ..importance.scores import gradients_for_scores
from ..priors import StudentT
from ..priors.families import of_family
from .crossing import told_of_search
from .final_run import in_single_precision
from .price import (
    BEARABLE_SECONDS,
    EXACT_SECONDS,
    seconds_of_chains,
    seconds_of_rows,
    warn_of_lockstep,
)
from .request import Outcome, chosen_without_steps, moments_and_kept
from .scale_mixture import is_quick, suits_gibbs

__all__ = ["is_possible", "measured_of", "proposals_of", "run_independent"]
__all__ += ["warn_of_weights", "warned_of_chains", "weighed_draws", "with_ess_in_theta"]

# Largest predicted cost of chains in lockstep, or so many times that of chains on all rows as it is
# predicted before it is known how short their steps are.
MOST_SECONDS, LONGER = 120.0, 2.0
# Predicted cost up to which a mixture grows even where chains are predicted to cost less: where
# draws have given way, chains take much longer than predicted.
GROWING_SECONDS = 3.0
# With a smaller share of effective draws, chains on all rows that take at most BEARABLE_SECONDS are
# preferred to independent draws.
POOR = 0.25
RIDGES = 3.5  # rows for each parameter up to which Student's t priors may leave ridges
# Importance weights with a larger Pareto k have infinite variance; Gibbs sampling, and chains that
# take at most BEARABLE_SECONDS where tails may be cut off, are then preferred to independent draws.
FINITE = 0.5
ALL_SCORED = 4_000  # with at most so many rows, scores are computed from all of them
FEW_ROWS_EACH = 4  # rows for each parameter up to which scores judge predictors of rows as well
JUDGED_ROWS = 100  # number of rows whose predictors are judged
# Draws give way to chains if the error of a predictor's mean (in posterior standard deviations) or
# variance (relative) is larger than SHIFT and than SIGMAS of its standard errors.
SHIFT, SIGMAS = 0.1, 4.0
# Scores that take more work (rows x predictors x draws x parameters) are left to `full_scores`.
SCORES_WORK = 1e9


def is_possible(modes):
    """Whether proposals can be fitted: there are few parameters, and all frames are whitened."""
    D = modes.frame.target.n_parameters
    most = MOST_WARPED if _needs_mixture(modes) else DENSE_LIMIT
    return D <= most and all(frame.whitened for frame in modes.frames)


def _needs_mixture(modes):
    """Whether there are several modes, or tails that no Gaussian proposal reaches.

    Under a Student's t prior a coefficient has its tails where the likelihood says nothing, as in
    separable data, and Pareto k cannot tell of tails that have no draws.
    """
    return len(modes) > 1 or _has_heavy_priors(modes.frame.target)


def _has_heavy_priors(target):
    """Whether any prior is Student's t."""
    return bool(of_family(target.prior, StudentT).any())


def _may_have_ridges(target):
    """Whether there are few rows, counted by weight, and Student's t priors.

    The posterior may then have ridges, on which some coefficients are large and others about zero.
    No mode and no Pareto k tells of them; Gibbs sampling walks along them.
    """
    few = target.total_weight <= RIDGES * target.n_parameters
    return few and _has_heavy_priors(target)


def proposals_of(modes):
    """Fit a `Proposal` to each mode."""
    return [fit_proposal(own, local=_needs_mixture(modes)) for own in modes.frames]


def weighed_draws(modes, proposals, n_draws, rng, budget_of):
    """`CertifiedDraws` from the proposals of all modes, in the coordinates φ of the first mode."""
    if _needs_mixture(modes):
        return mixed_draws(proposals, n_draws, rng)
    found = certified_draws(proposals[0], n_draws, rng, budget_of)
    return _with_tails(modes.frame, found, n_draws, rng)


def _with_tails(frame, found, n_draws, rng):
    """Return `CertifiedDraws` that reach into tails which Gaussian proposals cut off.

    Weights whose tail is not light say that the posterior has heavier tails than the proposal, but
    not how much mass is where there are no draws: a third of a standard deviation may be missing.
    Draws of a mixture that reaches farther then replace `found`, if their certificate holds and
    their Pareto k is smaller.
    """
    if not _has_tails(found) or frame.target.n_parameters > MOST_WARPED:
        return found
    wide = mixed_draws([fit_proposal(frame, local=True)], n_draws, rng)
    most = found.certificate.pareto_k if found.holds else LIGHT
    better = wide.holds and wide.certificate.pareto_k < most
    return replace(wide, shares=found.shares) if better else found


def _has_tails(found):
    """Whether the draws are independent and may not reach into the tails of the posterior."""
    return not found.chains and found.certificate.has_heavy_tail


def run_independent(modes, request, watch=None):
    """The `Outcome` of independent draws, or None where "auto" had better run chains."""
    frame = modes.frame
    named = isinstance(request.sampler, Importance)
    if not named and _may_have_ridges(frame.target) and suits_gibbs(frame.target):
        return None
    n = request.n_chains * request.n_draws
    rng = streams.of_proposal(request.seed)
    with request.timed("proposal"):
        proposals = proposals_of(modes)
        reach = None if named else _reach_of_tails(proposals, request)
    with request.timed("weighing"):
        found = None
        if reach is None:
            own = weighed_draws(modes, proposals, n, rng, partial(_budget, request))
            found = with_ess_in_theta(own, frame, request)
        if reach is not None or _gives_way(found, modes, n, request, named):
            found = _others(modes, proposals, found, request, rng, reach)
        elif found.chains and not named:
            found = _grown(modes, proposals, request, rng, reach) or found
    if found is None:
        return None
    if not found.holds:
        if not named and not found.is_sound:
            return None
        warn_of_weights(found)
    with request.timed("scores"):
        outcome = _outcome(proposals[0], found, modes, request, watch)
        is_cheap = seconds_of_chains(frame.target, request) <= EXACT_SECONDS
        if is_cheap and not named and _is_contradicted(outcome):
            return None
    return warned_of_chains(outcome, request)


def _others(modes, proposals, found, request, rng, reach):
    """Draws of a mixture that grows, or of chains in lockstep; None if other chains are better.

    If importance sampling was asked for, no chains follow: where nothing grows, the draws stay.
    """
    grown = _grown(modes, proposals, request, rng, reach)
    if grown is not None:
        return grown
    if found is None or isinstance(request.sampler, Importance):
        return found
    return _of_chains(modes, proposals, found, request, rng)


def _grown(modes, proposals, request, rng, reach):
    """Draws of a mixture that grows; None where it may not, or is not to be believed.

    They are better than those of chains in lockstep, which are short, and go too rarely where the
    posterior is narrow, as at small dispersions of counts.
    """
    if not may_grow(proposals, request):
        return None
    grown = grown_draws(proposals, request.n_chains * request.n_draws, rng, reach)
    return None if grown is None else _with_shares(grown, modes)


def _with_shares(found, modes):
    """`CertifiedDraws` with the shares of several modes: of draws that are nearest to each."""
    if len(modes) == 1:
        return found
    nearest = modes.nearest(modes.frame.theta(found.phi))
    return replace(found, shares=np.bincount(nearest, minlength=len(modes)) / len(nearest))


def may_grow(proposals, request):
    """Whether there are few parameters, and a mixture grows quickly.

    Robust regression of few rows may have one more peak, where some rows leave nearly no noise. It
    is too narrow to be found by a mixture, and chains find it, or do not converge.
    """
    target = proposals[0].frame.target
    few = target.n_parameters <= MOST_GROWN and not target.model.heavy_tailed
    seconds = EVALUATED * seconds_of_rows(target, target.n_rows)
    return few and seconds <= max(GROWING_SECONDS, seconds_of_chains(target, request))


def _of_chains(modes, proposals, found, request, rng):
    """Draws of chains in lockstep where independent ones give way; None if other chains are better.

    Chains on all rows begin without the warps, and take far longer than predicted where these
    matter. They are better where they are cheap, or the posterior has several modes, or may have
    tails of which the warps know nothing because it is not log-concave.
    """
    target = modes.frame.target
    is_cheap = seconds_of_chains(target, request) <= EXACT_SECONDS
    tried = found.chains or found.tried_chains
    if is_cheap or tried or _needs_mixture(modes) or suits_gibbs(target):
        return None
    if found.certificate.pareto_k > FINITE and not target.model.convex:
        return None
    n = request.n_chains * request.n_draws
    other = draws_of_chains(proposals[0], n, rng, partial(_budget, request))
    if other is None:
        return None
    other = with_ess_in_theta(other, modes.frame, request)
    return other if other.holds else None


def _gives_way(found, modes, n_draws, request, named):
    """Whether other draws are worth more than these; if named, only where these do not hold."""
    if named:
        return not found.holds
    target, certificate = modes.frame.target, found.certificate
    seconds = seconds_of_chains(target, request)
    is_bearable = seconds <= BEARABLE_SECONDS
    cuts_tails = certificate.has_heavy_tail and not _needs_mixture(modes)
    is_poor = not found.chains and found.ess < POOR * n_draws
    if seconds <= EXACT_SECONDS and (cuts_tails or not found.holds):
        return True
    if is_bearable and is_poor:
        return True
    has_no_variance = certificate.pareto_k > FINITE
    return has_no_variance and ((cuts_tails and is_bearable) or suits_gibbs(target))


def _reach_of_tails(proposals, request):
    """The reach of flat tails of a posterior with one mode, if chains on all rows are bearable."""
    seconds = seconds_of_chains(proposals[0].frame.target, request)
    if len(proposals) > 1 or seconds > BEARABLE_SECONDS:
        return None
    return reach_of_tails(proposals[0])


def _is_contradicted(outcome):
    """Whether the scores of all rows contradict the draws, whatever the importance weights say."""
    if outcome.scores_of != "all rows":
        return False
    told = outcome.evidence
    for key in ("predictor_mean", "predictor_spread"):
        if key in told and told[key] > _allowed(told[f"{key}_mcse"]):
            return True
    return are_contradicted(outcome.draws, outcome.scores)


def _budget(request, proposal):
    """The `Budget` of chains in lockstep, which is no more than chains on all rows cost.

    There is no limit if importance sampling was asked for, and nothing if Gibbs sampling is quick.
    The warps count for what is told but not for the limit: where there are many, chains on all rows
    need shorter steps than their price allows for.
    """
    target = proposal.frame.target
    n_exact = max(proposal.surrogate.n_exact, 1)
    one, told = (seconds_of_rows(target, n_exact, n) for n in (0, len(proposal.warps)))
    chains = seconds_of_chains(target, request)

    def tell(n_gradients):
        remedy = "Use fewer columns, a prior that is less wide, or make fewer draws (n_draws)."
        warn_of_lockstep(n_gradients * told, target.n_parameters, remedy)

    if isinstance(request.sampler, Importance):
        return Budget(tell=tell)
    if is_quick(target, request):  # Gibbs sampling reaches tails that short chains do not
        return Budget(0.0, tell, 0.0)
    return Budget(max(MOST_SECONDS, LONGER * chains) / one, tell, chains / one)


def with_ess_in_theta(found, frame, request):
    """Return the draws with the effective sample size of the parameters, if that is smaller.

    The parameters, which `check` looks at, may mix worse in chains in lockstep than coordinates φ.
    Independent draws remain as they are.
    """
    if not found.chains:
        return found
    theta = frame.theta(found.phi).reshape(request.n_chains, request.n_draws, -1)
    ess = found.share * convergence.least_of_slowest(request.parameters(theta))
    return replace(found, ess=float(np.fmin(found.ess, ess)))


def warn_of_weights(found):
    """Warn that the importance weights cannot be trusted, or that few draws are effective."""
    effective = f"{found.ess:.0f} of {len(found.phi)} draws are effective"
    message = (
        f"The importance weights cannot be trusted: Pareto k is {found.certificate.pareto_k:.2f} "
        f"(reliable below {LARGEST_K}), {effective}, and R-hat is {found.rhat:.2f}. Use "
        "sampler='auto' or 'hmc'."
    )
    if found.is_sound:
        k = found.certificate.pareto_k
        spread = f", and with a Pareto k of {k:.2f} spreads may be too small" if k > FINITE else ""
        message = (
            f"Only {effective}, from which means are less accurate than n_draws suggests{spread}. "
            "Raise n_draws, or use sampler='hmc', which takes longer."
        )
    warnings.warn(message, SamplerConvergenceWarning, stacklevel=2)


def measured_of(found, proposal, draws, request):
    """Return the diagnostics of certified draws, by name.

    R-hat is that of the chains of the posterior. That of the chains in lockstep, which are short
    and many, is larger and has a limit of its own: it is given as "lockstep_rhat".
    """
    measured, chains = found.measured, dict(found.chains)
    if found.chains:
        rhat, _ = convergence.worst_rhat(request.parameters(draws))
        measured["max_rhat"], chains["rhat"] = float(rhat), found.rhat
    measured["left_out"], measured["rows_exact"] = found.left, float(found.n_exact)
    measured["rows_skewed"] = float(len(proposal.hard))
    measured["directions_warped"] = float(len(proposal.warps))
    return measured | {f"lockstep_{name}": float(value) for name, value in chains.items()}


def warned_of_chains(outcome, request):
    """Return the outcome as it is; warn if it is of chains in lockstep that disagree."""
    rhat = outcome.diagnostics["max_rhat"]
    if rhat > RHAT:
        remedy = FEW if request.n_draws < FEW_DRAWS else "Raise n_draws."
        warnings.warn(
            f"The chains in lockstep have not converged: R-hat is {rhat:.3f}, the limit is {RHAT}. "
            f"{remedy}",
            SamplerConvergenceWarning,
            stacklevel=2,
        )
    return outcome


def _outcome(proposal, found, modes, request, watch):
    """The `Outcome` of certified draws, with their scores, diagnostics and evidence."""
    frame = proposal.frame
    shape = request.n_chains, request.n_draws, -1
    draws = frame.theta(found.phi).reshape(shape)
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    measured = measured_of(found, proposal, draws, request)
    moments, kept = moments_and_kept(draws, request)
    draws, phi = draws[:, kept], found.phi.reshape(shape)[:, kept]
    scores, scores_of = _scores(proposal, phi, found, len(modes))
    told, evidence = told_of_search(modes)
    measured |= told | {f"mode_share_{m}": float(s) for m, s in enumerate(found.shares)}
    rows = np.full(draws.shape[:2], float(frame.target.n_rows))
    evidence |= found.evidence(draws.shape[2])
    if scores_of == "all rows" and shape[1] >= LEAST_DRAWS:
        evidence |= _of_predictors(frame.target, draws, scores)
    return Outcome(
        draws,
        chosen_without_steps(Importance(), frame.kind, frame.target.n_rows),
        measured,
        rows,
        scores=scores,
        scores_of=scores_of,
        evidence=evidence,
        moments=moments,
    )


def _of_predictors(target, draws, scores):
    """Evidence of the largest errors of a predictor's mean and variance, according to the scores.

    With hardly more rows than parameters, the law of each parameter is about its prior, and only
    sums of many parameters, such as predictors, tell that draws are wrong.
    """
    if target.n_rows > FEW_ROWS_EACH * target.n_parameters:
        return {}
    rows = np.unique(np.linspace(0, target.n_rows - 1, JUDGED_ROWS).astype(int))
    directions = target.along(target.design(rows), np.eye(target.n_parameters))
    directions = directions[:, : target.model.n_linear].reshape(-1, target.n_parameters).T
    directions = directions[:, directions.any(axis=0)]
    if not directions.size:
        return {}
    (shift, of_shift), (ratio, of_ratio) = moments_along(draws, scores, directions)
    mean, spread = _worst(np.abs(shift), of_shift), _worst(np.abs(ratio - 1.0), of_ratio)
    told = dict(zip(("predictor_mean", "predictor_mean_mcse"), mean, strict=True))
    return told | dict(zip(("predictor_spread", "predictor_spread_mcse"), spread, strict=True))


def _allowed(mcse):
    """Error of a predictor's mean or variance up to which draws are kept, given its mcse."""
    return np.maximum(SHIFT, SIGMAS * mcse)


def _worst(errors, mcse):
    """Return the error that is largest in units of what is allowed, and its standard error."""
    j = np.argmax(errors / _allowed(mcse))
    return errors[j], mcse[j]


def _scores(proposal, phi, found, n_modes):
    """Return gradients of log p in θ at draws, and in words what they were computed from.

    Where all rows would take too long, as many rows are exact as in the weights, and all rows at
    the far draws where expansions would make right draws look wrong. Where that takes too long as
    well, or expansions around a single mode do not suffice, they are None.
    """
    target = proposal.frame.target
    to_fourth = found.order == 4 and target.n_rows > ALL_SCORED
    n = max(found.n_exact, 0 if to_fourth else len(proposal.hard))
    if target.n_rows <= ALL_SCORED:
        n = target.n_rows
    one_sided = n_modes > 1 and n < target.n_rows  # other rows are expanded around one mode only
    if phi.size * target.model.n_predictors * n > SCORES_WORK or one_sided:
        return None, ""
    potential = proposal.to_fourth_order if to_fourth else proposal.potential(n)
    of_a_draw = target.n_rows * target.model.n_predictors * target.n_parameters
    draws, most = phi.reshape(-1, phi.shape[-1]), SCORES_WORK / of_a_draw
    found = gradients_for_scores(proposal, potential, draws, most)
    if found is None:
        return None, ""
    slopes, n_all = found
    scores = in_single_precision(proposal.frame.scores(slopes.reshape(phi.shape)))
    if n_all == len(draws):
        return scores, "all rows"
    far = f"; all rows at the {n_all} farthest draws" if n_all else ""
    return scores, f"{n} rows, and the others to {'fourth' if to_fourth else 'second'} order{far}"
