"""A fit from the checked parameters on: starts of chains, their warm-up, and their draws."""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._base import streams
from ..dynamics import BAOAB
from ..exceptions import SamplerDivergedError
from ..gradients import SVRG
from ..recipe import price
from ..schedules import Constant
from . import auto, energy, evidence
from .chain import ModuleChain, advance
from .device import seeded
from .finish import finish
from .flat import FlatModule, set_training
from .minibatch import MinibatchGradient
from .priors import groups_of
from .start import initialised, search
from .survey import StartSurvey, curvature_of, fisher, noise_of, rmsprop, rows_seen
from .svrg import SVRGGradient
from .target import ModuleTarget, block_for

__all__ = ["ModuleOutcome", "ModuleRequest", "Start", "noise_at", "prepare", "run_chains", "tune"]

N_SEEN = 64  # rows of the fit at which predictions are compared
ROW_PARTS = 10  # parts of all rows, of which one serves to measure the sizes of gradients
N_TRIES = 12  # step sizes that are tried at most where the noise depends on the step size
PRECONDITIONERS = {"fisher": fisher, "rmsprop": rmsprop, "none": lambda gradient: None}
# Parameters per row above which a module may fit all rows, and the floor of residuals, in standard
# deviations of y, that its search for a mode then has.
FLEXIBLE, FLOOR = 0.5, 0.1
PILOT_SEED, FOR_EVER = 0, 10**9  # seed of pilot runs; more steps than any run has


@dataclass
class ModuleRequest:
    """The checked parameters of a fit; a schedule of None stands for "auto".

    Parameters
    ----------
    module : torch.nn.Module or callable
    likelihood : ClassLikelihood or NormalLikelihood
    prior : str, Prior or dict
    rows : TensorRows or DatasetRows
    dynamics : skbayes_sg.dynamics.Dynamics
    gradient : skbayes_sg.gradients.Gradient
    batch_size, n_chains, n_draws, n_warmup, thin, start_steps : int
    schedule : Schedule or None
    preconditioner : {"fisher", "rmsprop", "none"}
    training : bool
    initialisation : str
    temperature, learning_rate : float
    device : torch.device
    seed : int
    random_parts : tuple of str
        What makes gradients differ from those of the rows: dropout, batch normalisation, data
        augmentation.
    n_doublings : int
        How often `thin` may be doubled while R-hat of predictions is above its limit.
    searches_on : bool
        Whether the search for a mode goes on while U falls.
    glides : bool
        Whether the friction follows from `thin`.
    numbers_of_a_row : float
        Count of the numbers that a forward pass of a row holds.
    """

    module: Any
    likelihood: Any
    prior: Any
    rows: Any
    dynamics: Any
    gradient: Any
    batch_size: int
    n_chains: int
    n_draws: int
    n_warmup: int
    thin: int
    start_steps: int
    schedule: Any
    preconditioner: str
    training: bool
    initialisation: str
    temperature: float
    learning_rate: float
    device: Any
    seed: int
    random_parts: tuple = ()
    n_doublings: int = 0
    searches_on: bool = False
    glides: bool = False
    numbers_of_a_row: float = 1.0

    @property
    def is_exact(self):
        """Whether gradients have no noise."""
        return self.batch_size == self.rows.n_rows and not self.random_parts

    @property
    def keeps_energy(self):
        """Whether the step size follows the error of the energy."""
        return self.schedule is None and self.is_exact and isinstance(self.dynamics, BAOAB)


@dataclass
class Start:
    """All that a chain needs before its first step.

    Parameters
    ----------
    number : int
    target : ModuleTarget
        The law, with the parameters at the place where the search has ended.
    plain : MinibatchGradient
        The gradient of the law on batches, with which measurements are made.
    survey : StartSurvey
    seen : tuple
        The rows at which predictions are compared, the same for all chains.
    loss : float
        U/N at the end of the search.
    n_steps : int
        Number of steps of the search.
    noise_seed : int
        Seed of the random numbers of steps and layers.
    rows_rng : numpy.random.Generator
        Draws the rows of the steps.
    """

    number: int
    target: ModuleTarget
    plain: MinibatchGradient
    survey: StartSurvey
    seen: tuple
    loss: float
    n_steps: int
    noise_seed: int
    rows_rng: np.random.Generator


class ModuleOutcome(NamedTuple):
    """The results of the chains besides their draws.

    Parameters
    ----------
    step_size : float
    diagnostics : dict of str to float
    records : list of Evidence
    n_gradients : int
        Number of row gradients that were computed, those of the searches included.
    thin, n_warmup : int
        Their values after all doublings.
    """

    step_size: float
    diagnostics: dict
    records: list
    n_gradients: int
    thin: int
    n_warmup: int


def prepare(request, number):
    """Return the `Start` of a chain: search for a mode from an own initialisation, and survey."""
    own = streams.of_chain(request.seed, number)
    first, noise_seed = (int(rng.integers(2**62)) for rng in (own.start, own.noise))
    with seeded(first, request.device):
        module = initialised(request.module, first, request.initialisation)
        set_training(module, request.training)
        flat = FlatModule(module, request.device, request.likelihood.n_extra)
        groups = groups_of(request.prior, flat)
        block = block_for(request.numbers_of_a_row, request.batch_size)
        law = request.likelihood, groups, request.rows, request.temperature, block
        target = ModuleTarget(flat, *law)
        plain = MinibatchGradient(target, request.batch_size, own.start)
        searching = searching_for(plain, own.start)
        goes_on = request.searches_on and not request.is_exact
        loss, n_steps = search(searching, request.start_steps, request.learning_rate, goes_on)
        if request.searches_on and request.is_exact:
            loss, more = finish(searching, some_rows(searching, streams.child(own.start)))
            n_steps += more
        searching.replay.forget()
        plain.n_evaluated = searching.n_evaluated
        seen = rows_seen(target, streams.of_recipe(request.seed), N_SEEN)
        found = survey_of(plain, request, streams.child(own.start), first)
        plain.replay.forget()
    return Start(number, target, plain, found, seen, loss, n_steps, noise_seed, own.rows)


def searching_for(plain, rng):
    """Return the gradient of a search: with a floor of residuals, if the module may fit all rows.

    Without a floor the mode of such a module has σ = 0, where the density is infinite but hardly
    any posterior mass is.
    """
    target = plain.target
    if target.flat.n_parameters <= FLEXIBLE * target.rows.n_rows:
        return plain
    return MinibatchGradient(target.with_floor(FLOOR), plain.batch_size, streams.child(rng))


def some_rows(gradient, rng):
    """Return the gradient of a tenth of the rows; at least two, for batch normalisation."""
    N = gradient.target.rows.n_rows
    return MinibatchGradient(gradient.target, min(N, max(2, N // ROW_PARTS)), rng)


def survey_of(gradient, request, rng, seed):
    """Return the `StartSurvey` of the place where a search has ended.

    At a mode the gradient of all rows is zero: the sizes of gradients are then measured on a tenth
    of the rows.
    """
    takes_all = request.batch_size == request.rows.n_rows
    of_rows = some_rows(gradient, streams.child(rng)) if takes_all else gradient
    F = PRECONDITIONERS[request.preconditioner](of_rows)
    curvature = curvature_of(gradient, F, rng, gradient.target.generator(seed))
    return StartSurvey(F, curvature) if F is None else StartSurvey(F / curvature**0.5, 1.0)


def gradient_of(start, request):
    """Return the gradient of a chain: the one that was requested, with its own batches."""
    plain = start.target, request.batch_size, start.rows_rng
    N = request.rows.n_rows
    if not isinstance(request.gradient, SVRG) or request.batch_size == N:
        return MinibatchGradient(*plain, is_exact=request.is_exact)
    refresh = request.gradient.refresh or auto.pass_length(N, request.batch_size)
    return SVRGGradient(*plain, start.target.twin(), refresh, request.gradient.anchor_size or N)


def noise_at(chain, h, seen):
    """Return (V, mean variance) of a chain's gradient noise at its place, for step size h.

    The noise of SVRG depends on how far a chain moves between refreshes: it is measured after a
    pilot run of that length. The error of a sum at the anchor from n1 rows is the same for m steps
    and acts like m times the noise.
    """
    gradient, N = chain.gradient, chain.target.rows.n_rows
    if gradient.is_exact:
        return 0.0, 0.0
    if not isinstance(gradient, SVRGGradient):
        return noise_of(gradient, chain.F, seen, chain.generator)
    found = _noise_of_differences(chain, h, seen)
    if gradient.anchor_size == N:
        return found
    plain = MinibatchGradient(chain.target, gradient.batch_size, gradient.rng)
    of_batch = noise_of(plain, chain.F, seen, chain.generator)
    n, n1 = gradient.batch_size, gradient.anchor_size
    times = SVRG(gradient.refresh, n1).shared_noise(N, n) / (1.0 / n - 1.0 / N)
    return tuple(own + times * plain for own, plain in zip(found, of_batch, strict=True))


def _noise_of_differences(chain, h, seen):
    """Return the noise of SVRG at the end of its period, after a pilot run that is undone."""
    gradient, theta = chain.gradient, chain.flat.theta
    centre = theta.clone()
    gradient.left = 0
    pilot = ModuleChain(chain.number, gradient, chain.dynamics, Constant(h), chain.F, PILOT_SEED)
    try:
        pilot.run(gradient.refresh)
        gradient.left = FOR_EVER  # the anchor stays while the noise is measured
        return noise_of(gradient, chain.F, seen, pilot.generator)
    finally:
        theta.copy_(centre)
        gradient.left = 0


def tune(chains, starts, fixed=None):
    """Return the step size h for all chains at their places, and their gradient noise with it.

    Parameters
    ----------
    chains : list of ModuleChain
    starts : list of Start
    fixed : float, optional
        A step size that the user has given: only the noise is measured.

    Returns
    -------
    h : float
    noises : list of (float, float)
        (V, mean variance) of each chain.
    """
    dynamics, curvatures = chains[0].dynamics, [s.survey.curvature for s in starts]

    def noises_at(h):
        return [noise_at(c, h, s.seen) for c, s in zip(chains, starts, strict=True)]

    if fixed is not None:
        return fixed, noises_at(fixed)
    if not isinstance(chains[0].gradient, SVRGGradient):
        noises = noises_at(0.0)
        return auto.choose_step(dynamics, curvatures, noises), noises
    h, noises = auto.choose_step(dynamics, curvatures, [(0.0, 0.0)] * len(chains)), []
    for _ in range(N_TRIES):
        try:
            noises = noises_at(h)
        except SamplerDivergedError:
            h /= 4.0
            continue
        share = auto.predicted_inflation(dynamics, h, noises)
        if share <= auto.INFLATION:
            break
        h *= max(0.1, 0.8 * auto.INFLATION / share)
    return h, noises


def warm_up(chains, starts, request):
    """Run the warm-up; return the `energy.Steady` steps of the draws, and the gradient noise.

    "auto" measures the noise twice: where the search has ended, for the first half of the warm-up,
    and after that half, because the noise grows with the distance from a mode. If a chain diverges,
    all chains go back to the beginning of the half, and h becomes a quarter.
    """
    asked = request.schedule
    if asked is not None:
        _, noises = tune(chains, starts, float(asked(np.arange(1))[0]))
        _run_all(chains, starts, asked, request.n_warmup, request)
        return energy.Steady(asked), noises
    half = request.n_warmup // 2
    for n_steps in (half, request.n_warmup - half):
        h, noises = tune(chains, starts)
        run = partial(_run_all, chains, starts, n_steps=n_steps, request=request)
        h, _ = energy.retreating(chains, h, run)
    return energy.Steady(Constant(h)), noises


def warm_up_in_parts(chains, starts, request):
    """Run the warm-up of chains that keep the energy; return the `energy.Pace`, and zero noise.

    If the chains glide, the first half has a friction of 1, which takes up the energy that the
    search has left.
    """
    h, noises = tune(chains, starts)
    pace = energy.Pace(h, energy.GROWTH * h)
    parts = np.array_split(np.arange(request.n_warmup), energy.N_PARTS)
    for number, part in enumerate(parts):
        early = request.glides and number < energy.N_PARTS // 2
        _set_dynamics(chains, BAOAB() if early else request.dynamics)
        run = partial(_run_all, chains, starts, n_steps=len(part), request=request)
        pace.run(chains, run)
    return pace, noises


def _set_dynamics(chains, dynamics):
    for chain in chains:
        chain.set_dynamics(dynamics)


def _run_all(chains, starts, schedule, n_steps, request):
    for chain, start in zip(chains, starts, strict=True):
        chain.schedule = schedule
        with seeded(start.noise_seed + n_steps, request.device):
            chain.run(n_steps)


def run_chains(starts, request, store):
    """Warm up, then run all chains, one after the other, until they agree or may not go on.

    Parameters
    ----------
    starts : list of Start
    request : ModuleRequest
    store : Store
        The store of the draws.

    Returns
    -------
    ModuleOutcome
    """
    # Measurements between the runs of chains draw random numbers of layers as well.
    with seeded(starts[0].noise_seed, request.device):
        return _run_chains(starts, request, store)


def _run_chains(starts, request, store):
    gradients, asked = [gradient_of(start, request) for start in starts], request.schedule
    chains = [
        ModuleChain(
            s.number, g, request.dynamics, asked, s.survey.F, s.noise_seed, asked is not None
        )
        for s, g in zip(starts, gradients, strict=True)
    ]
    if request.keeps_energy and request.likelihood.n_extra:
        for chain in chains:
            chain.draw_noise()
    warmed = warm_up_in_parts if request.keeps_energy else warm_up
    pace, noises = warmed(chains, starts, request)
    if request.keeps_energy:
        for chain in chains:
            chain.watch_closely()
    share = auto.predicted_inflation(request.dynamics, pace.h, noises)
    thin, n_warmup = request.thin, request.n_warmup
    for doublings in range(request.n_doublings + 1):
        if request.glides:
            _set_dynamics(chains, auto.gliding(thin))
        began = time.perf_counter()
        records = pace.run(chains, partial(_drawn, chains, starts, request, thin, store))
        found = evidence.diagnostics_of(records, share)
        if doublings == request.n_doublings or evidence.agree(found):
            break
        thin, n_warmup = 2 * thin, n_warmup + request.n_draws * thin
        _warn_of_more(2.0 * (time.perf_counter() - began), thin, found)
    _check_moved(chains, records, pace)
    evaluated = [*gradients, *(start.plain for start in starts)]
    n_gradients = sum(gradient.n_evaluated for gradient in evaluated)
    return ModuleOutcome(pace.h, found, records, n_gradients, thin, n_warmup)


def _warn_of_more(seconds, thin, found):
    """Warn before a further round of draws if it is predicted to take long."""
    price.warn_if_long(
        seconds,
        f"The chains do not agree yet (R-hat of predictions {found['rhat_of_predictions']:.3g}) "
        f"and go on with thin={thin}. This round of draws",
        "Give a number for thin to have one round only.",
        price.LONG_SECONDS,
    )


def _check_moved(chains, records, pace):
    """Raise `SamplerDivergedError` for chains that do not move, whose R-hat tells nothing."""
    for chain, record in zip(chains, records, strict=True):
        stays = len(record.functions) > 1 and not record.functions.std(axis=0).any()
        if stays or pace.is_stuck:
            raise SamplerDivergedError(
                f"The draws of chain {chain.number} do not move: the steps are too short, with "
                f"step_size={pace.h:.3g}. {chain.remedy}"
            )


def _drawn(chains, starts, request, thin, store, schedule):
    """Make the draws of all chains, which replace earlier ones; return each chain's `Evidence`."""
    store.clear()

    def take(k, chain):
        store.add(chain.number, k, chain.flat)

    records = []
    for chain, start in zip(chains, starts, strict=True):
        chain.schedule = schedule
        with seeded(start.noise_seed + chain.t, request.device):
            records.append(advance(chain, request.n_draws, thin, start.seen, take))
    return records
