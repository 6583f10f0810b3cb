"""Runs of the Metropolis-corrected samplers, which use full gradients and have no bias.

In the warm-up dual averaging adapts the step; then the metric is refined once from m pooled draws
of all chains in d coordinates, with the covariance ``S = (m cov + (d + 5) I)/(m + d + 5)``, and the
step is adapted again.
"""

import time
import warnings
from dataclasses import replace

import numpy as np
from scipy import sparse

from ..dynamics import HMC
from ..engine import metropolis
from ..engine.run import Setup, new_chains, sample
from ..exceptions import SamplerConvergenceWarning
from ..geometry import preconditioning
from ..geometry.frame import sheared
from ..geometry.preconditioning import DENSE_LIMIT
from ..gradients import Full
from ..models import Robust
from ..schedules import Constant, first_step
from ..subsampling import AllRows
from . import divergences, walls
from .final_run import Production, outcome_of
from .price import EXACT_WARMUP as WARMUP
from .price import (
    LONG_SECONDS,
    TOLD_SECONDS,
    Price,
    pace_of,
    seconds_of_chains,
    seconds_of_leapfrogs,
)

__all__ = ["run_exact"]

# Draws between these shares of the warm-up are pooled, and the metric is made of them.
FIRST, SECOND = 0.2, 0.6
ESS_SHARE = 0.25  # effective draws that are aimed at, as a share of the draws
KNOWN = 10  # trajectories of warm-up after which the step size is about known
# With more columns for each row, a prior whose scale is learned becomes narrow and chains fast.
WIDE = 0.5
MANY_COLUMNS = 100  # with more columns it is advised to use fewer
# After `KNOWN` trajectories only a run of more than `MUCH_MORE` times these seconds is told.
SURELY_LONG = 200.0
# Trajectories that need more than so many times the steps that they may have are no use.
CRAWLING = 16.0
# Halvings of the spread of starts at most: each takes a pass over all rows for each chain.
MOST_HALVINGS = 100
# No chain begins where U is more than so many nats, and one for each parameter, above its mode.
TOO_HIGH = 100.0


def run_exact(modes, request, watch=None):
    """The `Outcome` of chains on all rows, by MALA or HMC."""
    if _leans(modes):
        modes = replace(modes, frames=(sheared(modes.frame),))
    frame = modes.frame
    target, dynamics = frame.target, request.sampler or HMC()
    price = Price(f"{type(dynamics).__name__} on all {target.counted}", _remedy(target))
    price.tell(seconds_of_chains(target, request))
    adapt = request.step_size is None
    steepest = np.abs(frame.curvature_range).max()  # of a place without a minimum it is negative
    step_size = Constant(0.25 / steepest) if adapt else request.step_size
    pieces = target.model, Full(), AllRows(), dynamics
    steps = {"step_size": step_size, "adapt": adapt}
    setup = Setup(frame.problem(Full()), *pieces, target.n_rows, **steps)
    starts = _within_reach(modes, frame.starts(request.seed, request.n_chains))
    chains = new_chains(setup, starts, request.seed)
    frame, setup, chains, pace = _warm_up(modes, setup, chains, request, price)
    setup = replace(setup, adapt=False)
    if adapt:
        average = _log_step(chains)
        for chain in chains:
            chain.record[metropolis.LOG_STEP] = average
        setup = replace(setup, step_size=_adapted(chains))
    setup, chains = _shortened(setup, target, chains, request)
    n_warmup = WARMUP if request.n_warmup is None else request.n_warmup
    walled = walls.are_bounced_off(chains)
    if adapt and _crawls(setup) and not walled:
        _warn_of_walls()
        request = replace(request, thin=request.thin or 1)  # not doubled: more steps lead nowhere
    thin, seconds = request.thin or 1, _seconds_of_a_draw(setup, target, request, walled)
    price.tell(pace * seconds * thin * request.n_draws)
    known = {"seconds": seconds, "pace": pace}
    production = Production(frame, setup, request, thin, n_warmup, ESS_SHARE, **known)
    made, chains = _produce(production, chains, request, price, watch)
    outcome = divergences.told(outcome_of(made, frame), chains)
    return walls.judged(outcome, frame, chains, request.seed)


def _crawls(setup):
    """Whether the step is so small that the longest trajectories allowed are far too short."""
    return _steps_of_a_trajectory(setup) > CRAWLING * metropolis.MAX_LEAPFROG


def _steps_of_a_trajectory(setup):
    """Leapfrog steps that the length of a trajectory needs, whether or not so many are allowed."""
    return getattr(setup.dynamics, "trajectory", 0.0) / np.sqrt(first_step(setup.step_size))


def _warn_of_walls():
    """Warn that moves are rejected however short they are, as where the density jumps."""
    warnings.warn(
        "Steps have become so short that trajectories of "
        f"{metropolis.MAX_LEAPFROG} of them lead nowhere: most moves are rejected however short "
        "they are. The density jumps where chains are, as that of a log-likelihood which is a "
        "large negative number outside a support that depends on the parameters. Return -inf there "
        "(-np.inf), choose parameters whose support is fixed, such as log(a - max(y)) in the place "
        "of a bound a, or a smooth likelihood.",
        SamplerConvergenceWarning,
        stacklevel=2,
    )


def _leans(modes):
    """Whether to use coordinates in which intercepts move with the coefficients (`sheared`).

    They are for diagonal preconditioners: a dense one removes the dependence by itself.
    """
    frame = modes.frame
    with_diagonal = not frame.dense and frame.kind == "diagonal"
    return with_diagonal and len(modes) == 1 and bool(frame.target.intercept)


def _within_reach(modes, away):
    """Starting points around the modes, moved halfway to the modes as long as U is far too high.

    Under a wide prior the rates of counts half a standard deviation from the mode may be e¹⁰⁰,
    where no step is small enough.
    """
    frame = modes.frame

    def U(positions):
        return np.array([frame.target.value_and_gradient(t)[0] for t in frame.theta(positions)])

    with np.errstate(all="ignore"):
        most = U(modes.begun(np.zeros_like(away))) + TOO_HIGH + away.shape[1]
        for _ in range(MOST_HALVINGS):
            low = U(modes.begun(away)) <= most
            if low.all():
                break
            away = np.where(low[:, None], away, 0.5 * away)
    return modes.begun(away)


def _remedy(target):
    """Advice that makes chains on all rows faster, as far as the model accepts it."""
    K, d = target.model.n_linear, target.n_features
    said = "Make fewer draws (n_draws)"
    if K == 0:
        return f"{said}."
    if K == 1 and (not sparse.issparse(target.X) or _is_of_levels(target.X)):
        said += ", merge rare levels or name their column in group_effects"
    elif d > MANY_COLUMNS:
        said += ", select columns or combine them (sklearn.feature_selection, TruncatedSVD)"
    said += ", or use a prior that is less wide"
    learns = target.n_parameters <= DENSE_LIMIT and not isinstance(target.model, Robust)
    if learns and d > WIDE * target.n_rows:
        said += ": one whose scale is learned, prior=Normal(scale=HalfCauchy(1.0))"
    return f"{said}."


def _is_of_levels(X):
    """Whether all stored numbers of sparse rows are the same, as those of one-hot columns are."""
    return X.nnz > 0 and bool((X.data == X.data[0]).all())


def _seconds_of_a_draw(setup, target, request, walled=False):
    """Predicted seconds of one trajectory of all chains, with the step size of the set-up."""
    most = metropolis.MAX_WALLED if walled else metropolis.MAX_LEAPFROG
    steps = np.clip(_steps_of_a_trajectory(setup), 1.0, most)
    return seconds_of_leapfrogs(target, request.n_chains * steps)


def _seconds_known_early(setup, chains, target, request):
    """Predicted seconds of a run, in the middle of its warm-up.

    The step sizes are those found so far. Their averages still remember the first ones, which are
    small, and the present ones vary: the largest of all is used, so that the prediction is hardly
    too high.
    """
    if setup.adapt:
        entries = [metropolis.LOG_AVERAGE, metropolis.LOG_STEP]
        setup = replace(setup, step_size=_constant(max(c.record[entries].max() for c in chains)))
    n_warmup = WARMUP if request.n_warmup is None else request.n_warmup
    n_draws = n_warmup + (request.thin or 1) * request.n_draws
    walled = walls.are_bounced_off(chains)
    return n_draws * _seconds_of_a_draw(setup, target, request, walled)


def _produce(production, chains, request, price, watch):
    """Run a `Production`, and again with half the step if chains diverge and it is quick.

    They may have found narrow places only now. A run with half the step takes twice as long.
    """
    began = last = time.perf_counter()
    made, chains = production.run(chains, watch)
    for _ in range(divergences.HALVINGS):
        if not _should_halve(request, chains):
            break
        seconds = 2.0 * production.seconds
        if seconds * production.thin * request.n_draws > TOLD_SECONDS:
            break
        production.setup = _with_half_steps(production.setup, chains)
        production.seconds = seconds
        divergences.forget(chains)
        now = time.perf_counter()
        price.tell((now - began) + 2.0 * (now - last))
        last = now
        made, chains = production.run(chains, watch)
    return made, chains


def _shortened(setup, target, chains, request):
    """The set-up and the chains, with steps halved while trajectories diverge."""
    n_trajectories = request.n_draws * (request.thin or 1)
    for halvings in range(divergences.HALVINGS + 1):
        seconds = 2.0 * n_trajectories * _seconds_of_a_draw(setup, target, request)
        if seconds >= LONG_SECONDS or not _should_halve(request, chains):
            break
        if halvings > 0:
            setup = _with_half_steps(setup, chains)
        divergences.forget(chains)
        _, chains = sample(setup, chains, divergences.TRIAL, 1, n_jobs=request.n_jobs)
    divergences.forget(chains)
    return setup, chains


def _should_halve(request, chains):
    """Whether trajectories diverge with a step that was chosen here, in a warm-up long enough."""
    is_short = request.n_warmup is not None and request.n_warmup < divergences.TRIAL
    return request.step_size is None and not is_short and divergences.are_many(chains)


def _with_half_steps(setup, chains):
    """The set-up with half the leapfrog step, which the chains get as well."""
    for chain in chains:
        chain.record[metropolis.LOG_STEP] -= np.log(2.0)
    return replace(setup, step_size=_constant(chains[0].record[metropolis.LOG_STEP]))


def _log_step(chains):
    """The log ε = (log h)/2 from dual averaging, on average over the chains."""
    return np.mean([chain.record[metropolis.LOG_AVERAGE] for chain in chains])


def _adapted(chains):
    """The schedule of the constant step size that the chains have found on average."""
    return _constant(_log_step(chains))


def _constant(log_step):
    """The schedule of constant h = ε² for log ε; h > 0, so that stuck chains can be reported."""
    return Constant(float(np.fmax(np.exp(2.0 * log_step), np.finfo(float).tiny)))


def _warm_up(modes, setup, chains, request, price):
    """Adapt step and metric; return the frame, the set-up, the chains and their pace."""
    frame = modes.frame
    n = WARMUP if request.n_warmup is None else request.n_warmup
    first, second = int(FIRST * n), int(SECOND * n)
    options = {"n_jobs": request.n_jobs}
    few = min(KNOWN, first)
    _, chains = sample(setup, chains, few, 1, **options)
    walled = walls.are_met(frame, chains, request.seed)
    if walled:  # steps have been shortened for nothing
        for chain in chains:
            chain.record = metropolis.new_record(setup.first_step, walled)
    if first > few:
        price.tell(_seconds_known_early(setup, chains, frame.target, request), SURELY_LONG)
        _, chains = sample(setup, chains, first - few, 1, **options)
        price.tell(_seconds_known_early(setup, chains, frame.target, request))
    draws, chains = sample(setup, chains, second - first, 1, **options)
    if setup.adapt and request.preconditioner == "auto" and frame.dense and n >= 100:
        if len(np.unique(modes.of_chains(len(draws)))) > 1:
            # The metric is to reflect the width of each mode, not the distance between modes.
            draws = draws - draws.mean(axis=1, keepdims=True)
        pooled = draws.reshape(-1, draws.shape[2])
        m, d = pooled.shape
        S = (m * np.cov(pooled.T, ddof=0).reshape(d, d) + (d + 5) * np.eye(d)) / (m + d + 5)
        old, frame = frame, frame.rescaled(S)
        setup = replace(setup, problem=frame.problem(Full()), step_size=_adapted(chains))
        for chain in chains:
            theta_shift = preconditioning.apply(old.F, chain.state[:1])
            chain.state[0] = preconditioning.solve(frame.F, theta_shift)[0]
            chain.record = metropolis.new_record(setup.first_step, walled)
    half = (n - second) // 2
    _, chains = sample(setup, chains, half, 1, **options)
    divergences.forget(chains)  # of the steps that were tried first, which may be too long
    began, rest = time.perf_counter(), n - second - half
    _, chains = sample(setup, chains, rest, 1, **options)
    taken = time.perf_counter() - began
    adapted = replace(setup, step_size=_adapted(chains)) if setup.adapt else setup
    walled = walls.are_bounced_off(chains)
    expected = rest * _seconds_of_a_draw(adapted, frame.target, request, walled)
    return frame, setup, chains, pace_of(taken, expected)
