"""Stochastic-gradient runs: tuned, drawn, and checked.

A run passes if two coupled chains, one with step h and one with half its time step, stay within
DISTANCE of each other; if the noise, measured again at the draws, adds no more than BIASED to a
variance; and if no chain has gone where the posterior has no mass (`excursions`). Otherwise the
time step is halved once; if that does not help, the exact sampler takes over.
"""

import warnings
from dataclasses import replace

import numpy as np
from scipy import linalg

from .._base import streams
from ..diagnostics.step_bias import step_bias
from ..diagnostics.verdict import DISTANCE, EXCURSION
from ..diagnostics.verdict import NOISE as BIASED
from ..engine.run import sample_coupled, slopes_at
from ..exceptions import StepSizeWarning
from ..geometry import preconditioning
from ..gradients import Minibatch
from ..importance.potential import Potential
from ..schedules import varies
from .excursions import excursion
from .final_run import (
    LONGEST,
    Production,
    length_of_run,
    outcome_of,
    step_of_draws,
    warmed_up,
)
from .independent import ALL_SCORED
from .price import (
    LONG_SECONDS,
    price_of_steps,
    seconds_of_chains,
    seconds_of_steps,
    slowdown_of_batches,
)
from .tuning import Refused, Tuner

__all__ = ["run_stochastic"]

FEWER_ROWS = "Use larger steps or fewer rows, or make fewer draws (n_draws)."
LESS_NOISE = (
    "Fewer rows a step would not help: their noise would call for smaller steps. Use a gradient "
    "with less noise, such as gradient='auto', or make fewer draws (n_draws)."
)
COUPLED_DRAWS = 600  # draws of all pairs of coupled chains together
PAIRS = 2  # number of pairs of coupled chains
NOISE_PROBES = 64  # draws at which the gradient is estimated a second time
ESS_SHARE = 0.5  # effective draws aimed at, as a share of the draws
# With a longer relaxation time, in steps, draws LONGEST steps apart are worth less than a tenth of
# independent ones.
SLOW = 5 * LONGEST


def run_stochastic(modes, request, rng, watch=None):
    """The `Outcome` of a stochastic-gradient sampler; raise `Refused` if it needs the exact one."""
    tuner = Tuner(modes.frame, request, rng)
    positions = modes.begun(tuner.tune())
    for attempt in (1, 2):
        checks, evidence = {}, {}
        made, chains = _produce(tuner, positions, request, watch)
        if made.n_made < request.n_draws:
            break  # a callback has ended the run
        evidence["excursion"] = strayed = excursion(tuner.frame, made.phi)
        if request.step_size is not None and varies(request.step_size):
            tuner.h = step_of_draws(request.step_size, made)
            break  # coupled chains need a constant step size
        distance, bias = _coupled(tuner, chains, made.phi, request)
        checks = {"coupled_distance": distance}
        evidence |= bias | checks
        tuner.review(made.phi)
        if distance <= DISTANCE and _added(tuner) <= BIASED and strayed <= EXCURSION:
            break
        if request.step_size is not None or attempt == 2:
            _reject_step(distance, tuner, request)
            break
        tuner.be_careful()
        positions = np.stack([chain.state[0] for chain in chains])
    if made.slopes is not None and made.phi.shape[1] > 1 and not tuner.full:
        evidence["noise_share"] = _noise_share(tuner, chains, made)
    evidence["inflation"] = _told(tuner)
    _warn_biased(tuner)
    made = _with_exact_slopes(made, tuner)
    return outcome_of(made, tuner.frame, checks | tuner.biases(), evidence)


def _with_exact_slopes(made, tuner):
    """Replace gradients by those of all rows if these are few: then the verdict sees no noise."""
    if made.slopes is None or tuner.full or tuner.target.n_rows > ALL_SCORED:
        return made
    flat = made.phi.reshape(-1, made.phi.shape[-1])
    slopes = Potential(tuner.frame).gradients(flat).reshape(made.phi.shape)
    return replace(made, slopes=slopes, scores_of="all rows")


def _added(tuner):
    """Share of a variance that step and noise are predicted to add."""
    found = tuner.biases()
    return found["noise_inflation"] + found["step_inflation"]


def _told(tuner):
    """The share `_added`; beyond its limit that of a Gaussian, of which it is the first order."""
    added, found = _added(tuner), tuner.biases()
    if added <= BIASED:
        return added
    flat = tuner.frame.curvature_range[1]
    exact = tuner.dynamics.widening(tuner.h, flat, found["noise_inflation"])
    return exact if np.isfinite(exact) else added


def _produce(tuner, positions, request, watch):
    """Warm up and make the draws, as tuned; return the `FinalDraws` and the chains."""
    frame, setup, relaxation = tuner.frame, tuner.setup(), tuner.relaxation()
    if relaxation > SLOW and not request.is_open:
        _warn_slow(tuner, relaxation)
    thin, n_warmup = length_of_run(setup, relaxation, request)
    price, told = _tell_price(tuner, thin, n_warmup)
    seconds = seconds_of_steps(tuner.target, request.n_chains, tuner.n)
    seconds *= slowdown_of_batches(tuner.target, tuner.n, tuner.scheme)
    options = {"largest_step": tuner.largest_step, "seconds": seconds}
    production = Production(frame, setup, request, thin, n_warmup, ESS_SHARE, **options)
    chains = warmed_up(production, positions)
    price.tell(production.pace * told)
    return production.run(chains, watch)


def _tell_price(tuner, thin, n_warmup):
    """Warn of a run that takes long: its `Price`, and the seconds that are predicted.

    Raise `Refused` if "auto" has something cheaper.
    """
    request, target = tuner.request, tuner.target
    steps = request.n_chains * (n_warmup + thin * request.n_draws) + _coupled_steps(tuner)
    seconds = seconds_of_steps(target, steps, tuner.n)
    if request.is_open and seconds > max(LONG_SECONDS, seconds_of_chains(target, request)):
        raise Refused
    by_noise = isinstance(tuner.gradient, Minibatch) and request.step_size is None
    remedy = LESS_NOISE if by_noise else FEWER_ROWS
    told = slowdown_of_batches(target, tuner.n, tuner.scheme) * seconds
    price = price_of_steps(steps, tuner.n, remedy)
    price.tell(told)
    return price, told


def _warn_slow(tuner, relaxation):
    warnings.warn(
        f"With step_size={tuner.h:.2g} and batch_size={tuner.n} a chain needs {relaxation:.0f} "
        "steps to forget where it was, and draws will be dependent: the gradients are noisy, or "
        "the step is small. Use step_size='auto' with batch_size='auto' or more rows, or "
        "sampler='hmc'.",
        StepSizeWarning,
        stacklevel=2,
    )


def _coupled_thin(tuner):
    """Steps from one draw of coupled chains to the next: half a relaxation time."""
    return int(np.clip(tuner.relaxation() / 2, 1, LONGEST))


def _coupled_steps(tuner):
    """Steps of all coupled chains: each step of one chain goes with two half steps of its twin."""
    return 3 * COUPLED_DRAWS * _coupled_thin(tuner)


def _coupled(tuner, chains, phi, request):
    """Run pairs of coupled chains, one with step h and one with half its time step.

    Returns the root mean square distance of a pair, in posterior standard deviations and for the
    parameter where it is largest, and evidence of the bias of each parameter, which follows from
    the differences of their means and standard deviations.
    """
    frame, setup = tuner.frame, tuner.setup()
    pairs, thin = chains[:PAIRS], _coupled_thin(tuner)
    n = COUPLED_DRAWS // len(pairs)
    with np.errstate(all="ignore"):
        both = sample_coupled(setup, pairs, tuner.h, n, thin, n_jobs=request.n_jobs)
        coarse, fine = (request.identified(frame.theta(pair)[:, n // 10 :]) for pair in both)
        enough = phi.shape[0] * phi.shape[1] >= 200
        made = request.identified(frame.theta(phi))
        sd = np.sqrt(made.var(axis=(0, 1))) if enough else frame.width
        distance = (np.sqrt(((coarse - fine) ** 2).mean(axis=(0, 1))) / sd).max()
        if not np.isfinite(distance):
            return np.inf, {}
        found = step_bias(coarse, fine, sd=sd, order=2 if tuner.dynamics.exact_on_gaussian else 1)
    bias = {"mean_bias": found.mean, "mean_bias_mcse": found.mean_mcse}
    return float(distance), bias | {"sd_bias": found.sd, "sd_bias_mcse": found.sd_mcse}


def _noise_share(tuner, chains, made):
    """Share of each parameter's variance that the noise of the gradient adds.

    Noise of covariance C along axes of curvature a adds ``κ C_uv 2/(a_u + a_v)`` to the covariance,
    to first order in the step, with κ the `Dynamics.noise_inflation`.
    """
    frame, dynamics = tuner.frame, tuner.dynamics
    noise = _noise(tuner, chains, made)
    C = noise.T @ noise / len(noise)
    C[np.diag_indices_from(C)] -= dynamics.absorbed(np.diag(C), tuner.h)[0]
    lasting = tuner.lasting_noise(_some(made.phi), streams.child(chains[0].rng_rows))
    C += lasting.T @ lasting / max(len(lasting), 1)
    a, F = frame.curvature, frame.F
    if a.ndim == 2:
        a, axes = linalg.eigh(a)
        C, F = axes.T @ C @ axes, preconditioning.apply(F, axes.T).T
    V = dynamics.noise_inflation(tuner.h) * C * (2.0 / (a[:, None] + a))
    if len(F) == 1:
        F = np.diag(F[0])
    F, theta = (tuner.request.identified(values) for values in (F.T, frame.theta(made.phi)))
    added, variance = (F * (V @ F)).sum(axis=0), theta.var(axis=(0, 1))
    return added / np.maximum(variance, np.finfo(float).tiny)


def _noise(tuner, chains, made):
    """Noise of the gradient in φ at some draws, (n, n_parameters).

    Two estimates at a draw differ by noise alone: the sampler has used one, and the other is made
    of other rows.
    """
    setup, found, chosen = tuner.setup(), [], _probed(made.phi)
    for chain, phi, slopes in zip(chains, made.phi, made.slopes, strict=True):
        again = slopes_at(setup, chain, phi[chosen], streams.child(chain.rng_rows))
        found.append((again - slopes[chosen]) / np.sqrt(2.0))
    return np.concatenate(found)


def _probed(phi):
    """Indices of the draws of each chain at which noise is measured, evenly spaced."""
    n_chains, n_draws = phi.shape[:2]
    return np.unique(np.linspace(0, n_draws - 1, -(-NOISE_PROBES // n_chains)).astype(int))


def _some(phi):
    """The draws of all chains at which noise is measured, (n, n_parameters)."""
    return phi[:, _probed(phi)].reshape(-1, phi.shape[2])


def _warn_biased(tuner):
    """Warn if the requested step or batch size makes standard deviations visibly wrong."""
    found = tuner.biases()
    share = _added(tuner)
    if share > BIASED:
        either = np.any(tuner.dynamics.absorbed(np.ones(1), tuner.h))
        wrong = "too large or too small" if either else "too large"
        warnings.warn(
            f"step_size={tuner.h:.3g} with batch_size={tuner.n} makes standard deviations about "
            f"{np.sqrt(1.0 + _told(tuner)) - 1.0:.0%} {wrong} (variance, to first order: step "
            f"{found['step_inflation']:.2g}, gradient noise {found['noise_inflation']:.2g}). Use "
            "'auto' for both, a smaller step_size, or more rows.",
            StepSizeWarning,
            stacklevel=2,
        )
    elif found["step_inflation"] < -BIASED:
        warnings.warn(
            f"{tuner.dynamics!r} makes standard deviations up to "
            f"{1.0 - np.sqrt(max(1.0 + found['step_inflation'], 0.0)):.0%} too small where the "
            "gradient has less noise than its noise_estimate assumes. Use a smaller "
            "noise_estimate.",
            StepSizeWarning,
            stacklevel=2,
        )


def _reject_step(distance, tuner, request):
    """Raise `Refused` if the recipe has chosen the step; warn if the user has."""
    if request.is_open:
        raise Refused
    if distance <= DISTANCE:
        return  # `_warn_biased` has warned of a bias, and the verdict warns of an excursion
    warnings.warn(
        f"step_size={tuner.h:.3g} with batch_size={tuner.n} is not safe here: halving the time "
        f"step moves the chain by {distance:.2g} posterior standard deviations, and the limit is "
        f"{DISTANCE}. Use step_size='auto' and batch_size='auto', a smaller step or more rows, or "
        "sampler='hmc', which is exact.",
        StepSizeWarning,
        stacklevel=2,
    )
