"""Which method draws coefficients whose scales are learned: the first of these that applies.

1. What cannot be done is an error: samplers and their parts that were asked for, and more than
   `DENSE_LIMIT` parameters.
2. With one scale and many more columns than rows, the rest takes place in the **span of the rows**:
   there z = θ/(τu) is standard normal, as in `skbayes_sg.recipe.row_space`.
3. **Gibbs sampling** under the horseshoe prior, for up to `MANY_LIMIT` parameters (`horseshoe`).
4. **Quadrature**, for linear regression with one scale and a flat intercept (`quadrature`).
5. **Independent draws** of coefficients and scales with importance weights, around the mode of the
   scales (`reference`), in coordinates that hardly depend on them (`collapse`; `path` for one scale
   and few rows); **chains in lockstep** where the weights fail (`independent`). Rows of linear
   regression are first replaced by as few as there are parameters.
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from .._base import streams
from ..diagnostics import convergence
from ..dynamics import Importance
from ..exceptions import SamplerConvergenceWarning
from ..geometry.modes import find_modes
from ..geometry.preconditioning import DENSE_LIMIT
from ..importance.certificate import LARGEST_K
from ..importance.lockstep import N_CHAINS, Budget
from ..importance.sample import LEAST_DRAWS, certified_draws
from ..models import Linear
from ..priors import HalfCauchy, HalfStudentT, Normal
from ..priors.columns import SHAPE
from ..priors.families import of_family
from ..recipe import closed_form
from ..recipe.choose import check_noise
from ..recipe.independent import measured_of, warned_of_chains
from ..recipe.price import Price, seconds_of_rows, warn_of_lockstep
from ..recipe.request import Outcome, chosen_without_steps, moments_and_kept
from ..recipe.row_space import RowSpace, is_wide
from .collapse import FEW_SCALES
from .effective import curvature_along, log_effective_number
from .horseshoe import run_horseshoe
from .independent import ScaledProposal
from .path import along_modes, has_path
from .quadrature import has_quadrature, is_linear_with_one, run_quadrature
from .reference import at_scales, frame_and_collapse, reference_of, width_of_scales

__all__ = ["sample_with_scales"]

CENTRES = 3  # most centres around which draws are tried
MOST_SECONDS = 20.0  # predicted seconds that chains in lockstep may take around each centre
OF_STEP = 1.5e-3  # seconds of a step of all chains, beside those of rows and matrices
# Seconds of a proposed draw with several scales, which factors a matrix, for the cube of the number
# of parameters; and with more than `FEW_SCALES`.
OF_FACTOR = 5e-11, 1.5e-10
FEWER = (
    "Use a prior of the scales with less mass far from what the data say, fewer scales or columns, "
    "or a fixed scale."
)
OF_PATH = 1.2e-9  # seconds of a gradient along a path of modes, for a number in a matrix of it
# Coefficients follow a large scale if the mean square of coefficient over scale is more than this;
# it is 1 under the prior.
FOLLOW = 0.5
# Draws of a scale have the tail of its prior if their Pareto k is more than this share of the
# prior's.
OF_PRIOR = 0.6
MANY_LIMIT = 500  # most parameters with several scales, since each draw factors a matrix
WIDE_LIMIT = 5000  # most parameters of linear regression under a horseshoe with no more rows


def sample_with_scales(target, scales, request, watch=None):
    """Draws of the parameters of a target, and of log scales, which come last.

    Parameters
    ----------
    target : skbayes_sg.engine.target.Target
    scales : skbayes_sg.priors.learned.LearnedScales
    request : skbayes_sg.recipe.request.Request
    watch : callable, optional
        As for `skbayes_sg.recipe.choose.sample_posterior`.

    Returns
    -------
    Outcome
    """
    request = replace(request, seconds={})
    _check_request(request)
    check_noise(target)
    fixed = at_scales(target, scales, np.zeros(scales.n_scales))
    if scales.is_common and is_wide(fixed, request):
        outcome = _in_span(fixed, scales, request, watch)
    else:
        outcome = _sample(target, scales, request, watch)
    return replace(outcome, seconds=request.seconds)


def _check_request(request):
    """Raise `ValueError` if a sampler or a part of one was asked for."""
    if not request.is_open:
        raise ValueError(
            "A prior whose scale is learned chooses its own sampler: leave sampler, gradient, "
            "subsampling, batch_size, step_size and preconditioner to 'auto', or use a fixed "
            "scale, such as Normal(scale=1.0)."
        )


def _sample(target, scales, request, watch):
    """The `Outcome` of the first of the methods 3 to 5 of the module that applies."""
    if scales.slab is not None:
        _check_size(target, scales)
        with request.timed("chains"):
            return run_horseshoe(target, scales, request, watch)
    if has_quadrature(target, scales):
        with request.timed("quadrature"):
            return run_quadrature(target, scales, request, watch)
    _check_size(target, scales)
    if isinstance(target.model, Linear):
        with request.timed("fewer rows"):
            target = closed_form.few_rows(target)
    return _run_independent(target, scales, request, watch)


def _check_size(target, scales):
    """Raise `ValueError` for more parameters than matrices of all of them may have."""
    D, most = target.n_parameters, DENSE_LIMIT if scales.is_common else MANY_LIMIT
    if scales.slab is not None and isinstance(target.model, Linear) and target.n_rows <= MANY_LIMIT:
        most = WIDE_LIMIT
    if D > most:
        learned = "a learned scale" if scales.is_common else "several learned scales"
        other = "fewer rows than that" if scales.is_common else "one scale for all columns"
        raise ValueError(
            f"A fit with {learned} needs matrices of all parameters: there are {D} here, and at "
            f"most {most} are possible. Use a fixed scale, {other}, or fewer columns."
        )


def _run_independent(target, scales, request, watch):
    """The `Outcome` of importance draws along the path of modes, or around the mode of the scales.

    Where draws around the mode fail, the next centre is at the mean of their log scales.
    """
    rng, draws_rng = streams.of_recipe(request.seed), streams.of_proposal(request.seed)
    path = has_path(target, scales)
    with request.timed("centre"):
        s, theta = reference_of(target, scales, rng, refined=not path)
    n, n_before = request.n_chains * request.n_draws, 0
    what = f"A fit with {scales.n_scales} learned scales and {target.n_parameters} parameters"
    price = Price(what, FEWER)
    for number in range(1 if path else CENTRES):
        price.tell((number + 1) * _seconds_of_factors(target, scales, n))
        with request.timed("centre"):
            find = along_modes if path else frame_and_collapse
            frame, collapse = find(target, scales, s, rng, theta)
            _check_frame(frame, scales)
        with request.timed("proposal"):
            s = collapse.log_scales
            proposal = ScaledProposal(frame, collapse, s, width_of_scales(collapse, s))
        with request.timed("weighing"):
            budget_of = partial(_budget, target, scales, n_before)
            found = certified_draws(proposal, n, draws_rng, budget_of, light=True)
        if found.holds:
            break
        n_before += found.chains.get("n_gradients", 0)
        s, theta = found.phi[:, target.n_parameters :].mean(axis=0), frame.centre.theta
    else:
        _warn_of_weights(found, target, scales)
    return warned_of_chains(_outcome(proposal, found, request, watch), request)


def _seconds_of_factors(target, scales, n):
    """Predicted seconds of the matrices of n proposed draws."""
    if scales.n_scales == 1:
        return 0.0
    one = OF_FACTOR[scales.n_scales > FEW_SCALES] * target.n_parameters**3
    return max(n, LEAST_DRAWS) * one


def _budget(target, scales, n_before, proposal):
    """The `Budget` of chains in lockstep: as many gradients as take `MOST_SECONDS`.

    What is told includes the gradients that have been taken around other centres before.
    """
    one = seconds_of_rows(target, max(proposal.surrogate.n_exact, 1)) + OF_STEP / N_CHAINS
    one += (scales.n_scales > 1) * 3e-9 * target.n_parameters**3
    told = one + has_path(target, scales) * OF_PATH * target.n_parameters**2

    def tell(n_gradients):
        seconds = (n_before + n_gradients) * told
        warn_of_lockstep(seconds, target.n_parameters + scales.n_scales, FEWER)

    return Budget(MOST_SECONDS / one, tell)


def _check_frame(frame, scales):
    """Raise `ValueError` without a positive definite Hessian at the mode; warn of several modes."""
    if not frame.whitened:
        raise ValueError(
            "The posterior has no mode around which draws could be made: there are too few rows "
            f"for so many columns. {_better(frame.target, scales)}Use a fixed scale, or fewer "
            "columns."
        )
    n_modes = len(find_modes(frame))
    if n_modes > 1:
        warnings.warn(
            f"The posterior has {n_modes} modes at fixed scales, and where scales are learned only "
            "one of them is sampled. Use a fixed scale, which looks at all of them.",
            SamplerConvergenceWarning,
            stacklevel=2,
        )


def _better(target, scales):
    """The remedy of linear regression that has no quadrature for the prior of its intercept."""
    if not is_linear_with_one(target, scales):
        return ""
    return "With intercept_prior=None, linear regression with one scale is exact. Otherwise: "


def _warn_of_weights(found, target, scales):
    """Issue a `SamplerConvergenceWarning` that says what was measured of the draws."""
    k, measured = found.certificate.pareto_k, f"{found.ess:.0f} of {len(found.phi)} draws are "
    measured += f"effective, and R-hat is {found.rhat:.2f}"
    if k > -np.inf:  # not all weights are the same
        measured = f"Pareto k of their weights is {k:.2f} (reliable below {LARGEST_K}), {measured}"
    warnings.warn(
        f"The draws of coefficients and scales cannot be trusted: {measured}. "
        f"{_better(target, scales)}Use fewer scales, a prior of the scale with lighter tails such "
        "as HalfNormal(1.0), or a fixed scale.",
        SamplerConvergenceWarning,
        stacklevel=2,
    )


def _outcome(proposal, found, request, watch):
    """The `Outcome` of certified draws: parameters, log scales, and log m_eff of local scales."""
    frame, D = proposal.frame, proposal.frame.target.n_parameters
    theta = [frame.theta(found.phi[:, :D]), found.phi[:, D:]]
    scales, n = proposal.collapse.scales, len(proposal.collapse.scales.group)
    if scales.is_local:
        curvature = curvature_along(frame.centre.hessian, n)
        precision = (np.exp(-theta[1])[:, scales.group] / scales.unit) ** 2
        theta.append(log_effective_number(curvature, precision)[:, None])
    draws = np.concatenate(theta, axis=1).reshape(request.n_chains, request.n_draws, -1)
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    measured = measured_of(found, proposal, draws, request)
    moments, kept = moments_and_kept(draws, request)
    draws = draws[:, kept]
    evidence = found.evidence(draws.shape[2]) | {"heavy_tail": np.zeros(draws.shape[2])}
    evidence["heavy_tail"][D : D + scales.n_scales] = _heavy_tails(
        scales, theta[0], found.phi[:, D:]
    )
    return Outcome(
        draws,
        chosen_without_steps(Importance(), frame.kind, frame.target.n_rows),
        measured,
        np.full(draws.shape[:2], float(frame.target.n_rows)),
        evidence=evidence,
        moments=moments,
    )


def _heavy_tails(scales, theta, log_scales):
    """1/df of the prior of scales whose posterior has the tail of a Student's t prior; else 0.

    It has this tail if the shape of the tail of the draws says so, and if coefficients follow the
    scale however large it is. Where the rows hold k coefficients back the tail is lighter, by the
    factor τ^-k.
    """
    found, few = np.zeros(scales.n_scales), max(len(theta) // 100, 1)
    for g in np.flatnonzero(of_family(scales.table, HalfCauchy, HalfStudentT)):
        of_prior, own = 1.0 / scales.table[g, SHAPE], scales.group == g
        outermost = np.argsort(log_scales[:, g])[-few:]
        z = (theta[outermost][:, : len(own)] - scales.loc)[:, own] / scales.unit[own]
        follow = np.square(z / np.exp(log_scales[outermost, g])[:, None]).mean() > FOLLOW
        _, k = convergence.pareto_smoothed(log_scales[:, g])
        found[g] = of_prior * (follow and k > OF_PRIOR * of_prior)
    return found


def _in_span(fixed, scales, request, watch):
    """The `Outcome` of draws in the span of the rows, made with a/τ for the a of `RowSpace`."""
    with request.timed("span of the rows"):
        wide = RowSpace(fixed)
    n = wide.n_linear * wide.reduced_target.n_features
    own = replace(
        scales,
        group=np.zeros(n, dtype=int),
        unit=np.ones(n),
        normals=Normal(scale=1.0)._table((n,)),
    )

    def unreduced(draws):
        tau, a = np.exp(draws[..., -1:]), draws[..., :-1].copy()
        a[..., :n] /= tau
        theta = wide.draws(a, streams.of_complement(request.seed))
        theta[..., : len(scales.group)] *= tau
        return np.concatenate([theta, draws[..., -1:]], axis=-1)

    def parameters(draws):
        return request.parameters(unreduced(draws))

    reduced = replace(request, names=(), parameters=parameters)
    found = _sample(wide.reduced_target, own, reduced, None)
    draws = unreduced(found.draws)
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    return replace(found, draws=draws, evidence=wide.evidence(found.evidence))
