"""The default recipe: how a posterior is sampled when nobody says how.

"auto" takes the first of these that succeeds; a sampler asked for by name skips those before it.

1. **Closed form**, for linear regression with normal or flat priors of the coefficients. Under
   other priors the rows are replaced by as many rows as there are parameters, with the same
   likelihood, unless stochastic gradients were asked for (`closed_form`).
   With many more columns than rows, and normal priors, this and the rest take place in the span of
   the rows (`row_space`).
2. A **centre** near the mode, and **coordinates** in which the posterior has about unit width
   (`geometry`). They are common to all that follows. Where there may be other **modes**, they are
   looked for, and those that matter take part in 3, and are where the chains of 4 and 5 begin.
3. **Independent draws with a certificate**: draws of a warped Gaussian with importance weights from
   the rows that matter, or chains in lockstep where the weights fail and the chains can be
   afforded. The draws are believed if Pareto k and the effective sample size of the weights say so
   (`independent`, and `skbayes_sg.importance`).
4. **All rows at every step**, where that is affordable: Hamiltonian Monte Carlo (`full_data`).
5. **Stochastic gradients**: kinetic Langevin dynamics with the Taylor gradient. Pilot chains settle
   the step size, the batch size and the probabilities of the rows (`tuning`); coupled chains check
   the result (`stochastic`). If the gradient noise calls for too many rows a step, or the check
   fails twice, 4 takes over, whatever it costs.
6. **The judgement** of chains: R-hat, effective sample sizes, predicted biases (`final_run`).

What was chosen is returned beside the draws. Decisions depend on data and seed only, never on time.
The documentation's page on what the default does has all constants.
"""

from dataclasses import replace

import numpy as np

from .._base import memmap, streams
from ..diagnostics import convergence
from ..dynamics import Exact, Importance, Metropolis
from ..exceptions import SamplerDivergedError
from ..geometry import preconditioning
from ..geometry.frame import build_frame
from ..geometry.mode import (
    check_independent,
    check_proper,
    check_width,
    find_centre,
    is_good_start,
    not_finite,
)
from ..geometry.modes import find_modes
from ..gradients import Full
from ..importance.fit import MOST_WARPED
from ..kernels.layout import FACT_Y
from ..models import Robust
from ..priors import Flat
from ..priors.families import of_family, tail
from ..priors.flat import PositiveFlat
from ..subsampling import AllRows
from . import closed_form
from .crossing import judged
from .final_run import check_derivatives
from .full_data import run_exact
from .independent import is_possible, run_independent
from .price import BEARABLE_SECONDS, seconds_of_chains
from .row_space import RowSpace, is_wide
from .scale_mixture import run_scale_mixture, suits_gibbs
from .stochastic import run_stochastic
from .tuning import Refused, coordinates_of, has_few_rows

__all__ = ["check_noise", "frame_of", "sample_posterior"]

ROUNDED = 1e-9  # relative rounding error that is allowed in comparisons of sums of weights


def _wants_exact(target, request):
    """Whether chains use all rows at every step.

    They do if the request says so, if there are few rows, or if the method is left open and they
    are predicted to take at most `BEARABLE_SECONDS`.
    """
    if request.sampler is not None:
        return isinstance(request.sampler, Metropolis)
    all_rows = isinstance(request.gradient, Full) or isinstance(request.subsampling, AllRows)
    if all_rows or has_few_rows(target, request):
        return True
    if request.batch_size is not None and request.batch_size >= target.n_rows:
        return True
    return request.is_open and seconds_of_chains(target, request) <= BEARABLE_SECONDS


def _in_order(target, request, rng):
    """The target, with its rows in random order if the subsampling scheme needs that."""
    scheme = request.subsampling
    if scheme is None or not scheme.needs_shuffled_rows or has_few_rows(target, request):
        return target
    if memmap.mapped(target.X) is not None:
        raise ValueError(
            f"subsampling={scheme!r} needs a copy of X in random order, and X is memory-mapped. "
            "Shuffle the file once and use Blocks(shuffle=False), or subsampling='uniform'."
        )
    order = rng.permutation(target.n_rows)
    return target.take(order, target.weight[order], n_jobs=request.n_jobs)


def sample_posterior(target, request, watch=None):
    """Draw from the posterior by the sampler asked for, or by the one that suits it.

    Parameters
    ----------
    target : skbayes_sg.engine.target.Target
    request : Request
    watch : callable, optional
        Called as ``watch(so_far, share) -> stop`` between chunks of the final run. `so_far` is a
        function that returns the draws so far and their weights, `share` the share of the run that
        is done; a true return value ends the run.

    Returns
    -------
    Outcome
    """
    request = replace(request, seconds={})
    request.check(target.n_rows)
    check_noise(target)
    outcome = _chosen(target, request, watch)
    check_derivatives(target, outcome.draws)
    return replace(outcome, seconds=request.seconds)


def _chosen(target, request, watch):
    """The `Outcome` that `sample_posterior` returns, without the seconds of its parts."""
    if target.memory is None and is_wide(target, request):
        with request.timed("span of the rows"):
            wide = RowSpace(target)
        own, watched = wide.request(request), wide.watched(watch, request.seed)
        return wide.outcome(_chosen(wide.reduced_target, own, watched), request.seed)
    no_chains = request.is_open or target.memory is not None
    is_linear = closed_form.is_linear(target)
    if not isinstance(request.sampler, Metropolis):
        is_linear = is_linear or closed_form.has_closed_form(target)
    if is_linear and target.quadratic is None and (no_chains or _is_exact(request.sampler)):
        return _sample_linear(target, request, watch)
    if isinstance(request.sampler, Exact):
        _refuse_closed_form(target)
    return _sample(target, request, watch)


def _is_exact(sampler):
    """Whether a sampler uses all rows and has no bias: "exact", or one with a Metropolis test."""
    return isinstance(sampler, (Exact, Metropolis))


def _sample_linear(target, request, watch):
    """Draw from the posterior of linear regression, where all rows may be used.

    The draws are exact if there is a closed form; if not, a few rows with the same likelihood take
    the place of the data in the other methods.
    """
    if not isinstance(request.sampler, Metropolis) and closed_form.has_closed_form(target):
        with request.timed("closed form"):
            return closed_form.run_closed_form(target, request, watch)
    if isinstance(request.sampler, Exact):
        _refuse_closed_form(target)
    with request.timed("fewer rows"):
        target = closed_form.few_rows(target)
    return _sample(target, request, watch)


def _refuse_closed_form(target):
    """Raise a `ValueError` that says why there is no closed form."""
    why = "The priors of coefficients are others here."
    if not closed_form.is_affordable(target):
        why = (
            f"There are {target.n_parameters} parameters here, and at most "
            f"{preconditioning.DENSE_LIMIT} are possible, or {closed_form.LARGEST} if they take at "
            f"most {closed_form.MOST_SECONDS:.0f} seconds. With fewer rows than that, normal "
            "priors of mean 0 make it possible for any number."
        )
    raise ValueError(
        "sampler='exact' is for linear regression with normal or flat priors of the coefficients. "
        f"{why} Use sampler='auto' or 'hmc'."
    )


def _tail_of_noise(target):
    """df of the tail σ^(-df - 1) of the prior of σ, the noise or the dispersion; -1 if it is flat.

    It is infinite for the extra parameters of other models: what these scale is not known.
    """
    extras = target.prior[-target.model.n_extra :]
    if of_family(extras, PositiveFlat).any():
        return -1.0
    is_scale = target.model.location_scale or target.model.discrete
    return tail(extras[0]) if is_scale else np.inf


def _check_degrees_of_freedom(target):
    """Raise `ValueError` for a flat prior of the degrees of freedom of Student's t noise.

    As the degrees of freedom grow, the likelihood tends to that of normal noise, which is not zero:
    its integral over them is infinite for any rows.
    """
    df = target.prior[-1:]
    if isinstance(target.model, Robust) and tail(df[0]) <= 0.0:
        raise ValueError(
            "Improper posterior: with a flat df_prior the degrees of freedom have no posterior, "
            "because the likelihood does not fall as they grow. Use a proper df_prior, such as the "
            "default."
        )


def check_noise(target):
    """Raise `ValueError` where unknown noise, or an unknown dispersion, leaves no posterior.

    With p coefficients under flat priors, rows of total weight W, and a prior of σ with the tail
    σ^(-df - 1), the posterior of σ has the tail σ^(p - W - df - 1), which can be integrated if
    W > p - df. Under Student's t noise the tail of a coefficient is a power law as well, and W must
    not be less than p.
    """
    flat = of_family(target.prior, Flat).sum()
    _check_degrees_of_freedom(target)
    if not target.model.n_extra or target.quadratic is not None:
        return
    noise, rows, weight = "noise", "rows", target.weight
    if target.model.discrete:  # a large dispersion explains any number of zeros
        positive = target.data.facts[:, FACT_Y] > 0.0
        noise, rows, weight = "dispersion", "positive counts", weight[positive]
    total = weight.sum() + target.total_weight - target.weight.sum()
    df = _tail_of_noise(target)
    # Weights whose sum should be a whole number reach it only to within rounding errors.
    proper = total > (flat - df) * (1.0 + ROUNDED)
    if target.model.heavy_tailed:
        proper = proper and total > flat * (1.0 - ROUNDED)
    if proper:
        return
    if df < 0.0:
        raise ValueError(
            f"Improper posterior: under a flat prior of the {noise}, {rows} must outnumber the "
            f"coefficients with flat priors by more than one; got n_samples={len(weight)} (of "
            f"weight {total:g}) and {flat} such coefficients. Use a proper prior of the {noise}."
        )
    raise ValueError(
        f"Improper posterior: {rows} of total sample weight {total:.3g} are too few for an unknown "
        f"{noise} beside coefficients and intercepts with flat priors, whose number is {flat}. "
        "Scale the weights to a mean of one, or use normal priors."
    )


def frame_of(target, kind, dense, rng, start=None):
    """Return the `Frame` around the mode; raise `ValueError` where flat priors leave no posterior.

    The search for the mode begins at `start`, if `is_good_start` says that it is a good place.
    """
    past = target.quadratic
    flat = of_family(target.prior, Flat).any() and past is None  # earlier rows have been checked
    if flat:
        check_independent(target, dense)
    if past is not None:
        start = past.origin
    elif closed_form.is_linear(target) and closed_form.has_closed_form(target):
        start = closed_form.mode(target)
    elif start is not None and not is_good_start(target, start):
        start = None
    centre = find_centre(target, dense=dense, rng=rng, start=start)
    target.model.check_derivatives(target, centre.theta)
    if flat and target.model.separable:
        centre = check_proper(target, centre)
    if not np.isfinite(centre.hessian).all():
        raise not_finite(centre.theta)
    frame = build_frame(target, centre, kind)
    if flat:
        with np.errstate(over="ignore"):
            check_width(frame.width.max(), target.total_weight)
    return frame


def _independent(modes, request, watch):
    """The `Outcome` of independent draws, or None where "auto" had better run chains."""
    if is_possible(modes):
        return run_independent(modes, request, watch)
    if isinstance(request.sampler, Importance):
        D = modes.frame.target.n_parameters
        raise ValueError(
            "sampler='importance' needs a Hessian at the mode that is positive definite, and at "
            f"most {preconditioning.DENSE_LIMIT} parameters, or {MOST_WARPED} under Student's t "
            f"priors or with several modes (here {D}). Use sampler='auto' or 'hmc'."
        )
    return None


def _sample(target, request, watch):
    """Find the modes, and return the `Outcome` of independent draws or of chains."""
    rng = streams.of_recipe(request.seed)
    target = _in_order(target, request, rng)
    kind = coordinates_of(target, request)
    dense = kind == "hessian" or target.n_parameters <= preconditioning.DENSE_LIMIT
    if request.gradient is not None and request.gradient.uses_linear:
        dense = True  # the gradient estimator needs the Hessian at the centre as a matrix
    with request.timed("centre"):
        modes = find_modes(frame_of(target, kind, dense, rng, request.start))
    convergence.prepare()
    if request.is_open or isinstance(request.sampler, Importance):
        outcome = _independent(modes, request, watch)
        if outcome is not None:
            return _at_mode(outcome, modes.frame.centre)
    outcome = judged(_chains(modes, request, rng, watch), modes, request)
    return _at_mode(outcome, modes.frame.centre)


def _at_mode(outcome, centre):
    """The `Outcome` with the mode, and with what the likelihood alone says of each parameter."""
    h = np.diag(centre.hessian) if centre.hessian.ndim == 2 else centre.hessian
    h = np.where(h > 0.0, h, np.nan)
    by_data = centre.theta - centre.gradient / h, 1.0 / np.sqrt(h)
    return replace(outcome, mode=centre.theta, by_data=by_data)


def _chains(modes, request, rng, watch):
    """The `Outcome` of chains: Gibbs sampling, stochastic gradients, or all rows at every step."""
    target = modes.frame.target
    if request.is_open and suits_gibbs(target):
        with request.timed("Gibbs sampling"):
            outcome = run_scale_mixture(target, request, watch)
        if outcome is not None:
            return outcome
    if not _wants_exact(target, request):
        try:
            with request.timed("stochastic chains"):
                return run_stochastic(modes, request, rng, watch)
        except Refused:
            pass
        except SamplerDivergedError:
            if not request.is_open:
                raise
    with request.timed("chains on all rows"):
        return run_exact(modes, request, watch)
