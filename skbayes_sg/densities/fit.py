"""How the posterior of a row density is sampled.

Chains begin at points that are given. By default they are Hamiltonian Monte Carlo on all rows, in
coordinates in which the Hessian at the best of these points is the identity. If both a sampler and
a step size are given, neither a centre nor a Hessian is needed: such chains run in θ itself.

If the step size of a stochastic gradient is not given, it follows from the noise of the rows'
gradients. Noise of covariance C in the coordinates of the chain raises a variance by the share
``inflation(h) C`` in every direction; h is such that this is `INFLATION` for the largest eigenvalue
of C. Where gradient or batch size are not given either, those are chosen with which chains are
predicted to forget soonest where they were: batches of `BATCH` rows, all rows, or SVRG.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from .._base import streams
from ..diagnostics import convergence
from ..diagnostics.verdict import NOISE as BIASED
from ..dynamics import BAOAB, Importance, Metropolis
from ..engine.run import Setup
from ..exceptions import InvalidParameterError, StepSizeWarning
from ..geometry import preconditioning
from ..geometry.frame import START
from ..gradients import SAGA, SVRG, Full, Minibatch
from ..recipe.final_run import (
    Production,
    check_derivatives,
    length_of_run,
    outcome_of,
    step_of_draws,
    warmed_up,
)
from ..recipe.full_data import run_exact
from ..recipe.price import price_of_steps, seconds_of_steps, slowdown_of_batches
from ..schedules import Constant, first_step
from ..subsampling import AllRows, Uniform
from .around import DENSE, with_row_terms
from .density import row_gradients
from .independent import run_independent
from .modes import modes_at, modes_near

__all__ = ["check_request", "sample_density"]

INFLATION = 0.02  # share that gradient noise, and that the step size, may add to a variance
# Largest step size that is chosen, however small the noise is: elsewhere the curvature is several
# times that at the mode.
LARGEST_STEP = 0.03
FEWER = 10  # a gradient that is asked for has at least so many batches
BATCH = 100  # default number of rows in each step, where all rows do not take less time
NOISE_ROWS, NOISE_POINTS = 1000, 4  # numbers of rows and of points at which the noise is measured
ESS_SHARE = 0.25  # effective sample size that is aimed at, as a share of the number of draws
# A chain has diverged if a coordinate is larger than this many times its starting values or width.
FAR = 1e6
SHORTER = "Use larger steps or fewer rows, make fewer draws (n_draws), or use sampler='hmc'."
MOST_BYTES = 1 << 32  # largest size in bytes of the gradients of rows that an estimator remembers


@dataclass(frozen=True)
class _Noise:
    """The gradient noise of a step in the coordinates of the chain."""

    size: float  # the largest eigenvalue of its covariance

    def step_for(self, dynamics):
        """Return the largest step size at which the noise adds at most `INFLATION` to a variance.

        The bias of the step itself is limited to the same share, and the step to `LARGEST_STEP`.
        """
        h = dynamics.step_for_inflation(INFLATION / max(self.size, 1e-12))
        if not dynamics.exact_on_gaussian:
            h = min(h, dynamics.step_for_bias(INFLATION))
        return min(h, LARGEST_STEP)


def check_request(request, n_rows):
    """Raise `ValueError` for pieces of a request that do not fit together or a row density."""
    request.check(n_rows)
    gradient, scheme = request.gradient, request.subsampling
    if gradient is not None and gradient.uses_linear:
        raise InvalidParameterError(
            f"gradient={gradient!r} needs second derivatives of each row, which this model does "
            "not have. Use 'svrg', 'saga', 'control_variate' or 'minibatch'."
        )
    if scheme is not None and (scheme.needs_weights or scheme.needs_reach):
        raise InvalidParameterError(
            f"subsampling={scheme!r} is for models with linear predictors. Use 'uniform', "
            "'uniform_without_replacement' or 'blocks'."
        )


def sample_density(
    target, starts, request, watch=None, *, search=True, further=None, independent=False
):
    """Draw from the posterior of a row density.

    Parameters
    ----------
    target : skbayes_sg.engine.target.Target
        The posterior, whose model is a `RowDensity`.
    starts : array of shape (n_starts, n_parameters)
        Where to begin. If there are several, chains begin at the modes near them, as many at each
        mode as its share of the evidence asks for.
    request : skbayes_sg.recipe.request.Request
    watch : callable, optional
        As for `skbayes_sg.recipe.choose.sample_posterior`.
    search : bool or callable, default=True
        Whether to look for the modes near the starts, or a function that does, ``search(target,
        starts, request)``, and returns maxima. If a sampler and its step size are given, there is
        no search in any case.
    further : iterator of arrays of shape (·, n_parameters), optional
        More starting points for the search, for as long as it finds new modes: see
        `skbayes_sg.densities.modes`.
    independent : bool, default=False
        Whether independent draws are tried first, if nothing is asked for, where a single mode is
        found. That is for densities that are known to be smooth and to have no narrow peaks away
        from most of their mass, which no weights would tell of. Of several modes they are always
        tried, as chains may not cross between these.

    Returns
    -------
    Outcome, Modes

    Raises
    ------
    ValueError
        If flat priors leave no maximum.
    """
    request = replace(request, seconds={})
    named = request.sampler is not None and request.step_size is not None
    with request.timed("centre"):
        kind = _kind(target, request, named)
        if callable(search) and not named:
            modes = modes_at(target, search(target, starts, request), kind)
        elif search and not named:
            modes = modes_near(target, starts, further, request, kind)
        else:
            modes = modes_at(target, starts, kind)
    convergence.prepare()
    outcome = None
    independent = request.leaves_all_to_auto and (independent or len(modes) > 1)
    if independent or isinstance(request.sampler, Importance):
        outcome = run_independent(modes, request, watch)
    if outcome is None:
        exact = _wants_all_rows(request)
        with request.timed("chains on all rows" if exact else "stochastic chains"):
            outcome = (run_exact if exact else _run_stochastic)(modes, request, watch)
    check_derivatives(target, outcome.draws)
    return replace(outcome, seconds=request.seconds), modes


def _kind(target, request, named):
    """Return the preconditioner: "hessian", "diagonal" or "none".

    `named` says that a sampler and a step size are given.
    """
    if request.preconditioner != "auto":
        return request.preconditioner or "none"
    if named:
        return "none"
    most = DENSE if target.model.loss_hessian is None else preconditioning.DENSE_LIMIT
    return "hessian" if target.n_parameters <= most else "diagonal"


def _wants_all_rows(request):
    """Whether the request stands for Metropolis-corrected chains on all rows."""
    if request.sampler is not None:
        return isinstance(request.sampler, Metropolis)
    if isinstance(request.gradient, Full) or isinstance(request.subsampling, AllRows):
        return True
    return not request.names_few_rows


# -- stochastic gradients -------------------------------------------------------------------------


def _run_stochastic(modes, request, watch=None):
    """Return the `Outcome` of chains of a stochastic-gradient sampler."""
    frame = modes.frame
    target, N = frame.target, frame.target.n_rows
    dynamics, step_size = request.sampler or BAOAB(), request.step_size
    gradient, n = _asked(request, N)
    _check_memory(gradient, target, request)
    if gradient.uses_constant:
        frame = with_row_terms(frame)
    spread = frame.starts(request.seed, request.n_chains)
    if step_size is None:
        gradient, n, h = _fastest(frame, dynamics, gradient, n, spread / START, request)
        step_size = Constant(h)
    scheme = AllRows() if isinstance(gradient, Full) else request.subsampling or Uniform()
    units = np.eye(target.n_parameters) if frame.dense else np.ones((1, target.n_parameters))
    widths = np.abs(frame.guess(units)).max(axis=0)
    far = FAR * np.maximum(np.abs(spread).max(axis=0), widths)
    pieces = target.model, gradient, scheme, dynamics
    setup = Setup(frame.problem(gradient), *pieces, n, step_size=step_size, bounds=far)
    made, thin = _produce(frame, setup, modes.begun(spread), request, watch)
    inflation = _inflation(frame, setup, made, thin, request)
    if np.isnan(inflation):
        return outcome_of(made, frame)
    _warn_biased(inflation, setup)
    return outcome_of(made, frame, {"inflation": inflation}, {"inflation": inflation})


def _asked(request, N):
    """The gradient and the batch size asked for, or the usual ones; of all rows it is `Full`."""
    gradient, n = request.gradient or Minibatch(), request.batch_size or BATCH
    if n >= N and request.batch_size is None and request.names_few_rows:
        n = max(1, N // FEWER)
    return (Full(), N) if n >= N or isinstance(gradient, Full) else (gradient, n)


def _fastest(frame, dynamics, gradient, n, points, request):
    """The gradient, the batch size and the step h with which chains forget where they were soonest.

    There is only one choice where gradient and batch size are given. The noise of a gradient, from
    which h follows, is that at the `points`.
    """
    N, choices = frame.target.n_rows, [(gradient, n)]
    if n < N and isinstance(gradient, Minibatch) and request.batch_size is None:
        choices.append((Full(), N))
    if n < N and request.gradient is None:
        choices.append((SVRG(), n))
    flat, found = 1.0 if frame.whitened else frame.curvature_range[0], []
    for own, size in choices:
        noise = _expected_noise(frame, own, size, points, request.seed)
        h = noise.step_for(dynamics)
        seconds = _seconds_of_a_step(frame.target, own, size)
        found.append((seconds * max(1.0, dynamics.relaxation_steps(h, flat)), own, size, h))
    return min(found, key=lambda one: one[0])[1:]


def _seconds_of_a_step(target, gradient, n):
    """Predicted seconds of a step of one chain with batches of n rows."""
    return seconds_of_steps(target, gradient.reads, n) * slowdown_of_batches(target, n)


def _check_memory(gradient, target, request):
    """Raise `MemoryError` if a gradient remembers those of all rows in more than `MOST_BYTES`."""
    N, D = target.n_rows, target.n_parameters
    size = 4 * N * D * request.n_chains if isinstance(gradient, SAGA) else 16 * N * D
    if (isinstance(gradient, SAGA) or gradient.uses_constant) and size > MOST_BYTES:
        raise MemoryError(
            f"{gradient!r} remembers a gradient of {D} numbers for each of {N} rows: "
            f"{size:,} bytes. Use gradient='svrg', which remembers none."
        )


def _produce(frame, setup, positions, request, watch):
    """Return the `FinalDraws` of chains from these positions, and the steps between draws."""
    h, dynamics = first_step(setup.step_size), setup.dynamics
    flat, steep = (1.0, 1.0) if frame.whitened else frame.curvature_range
    thin, n_warmup = length_of_run(setup, dynamics.relaxation_steps(h, flat), request)
    one = _seconds_of_a_step(frame.target, setup.gradient, setup.batch_size)
    seconds = request.n_chains * one
    steps = n_warmup + thin * request.n_draws
    price = price_of_steps(request.n_chains * steps, setup.batch_size, SHORTER)
    price.tell(seconds * steps)
    options = {"largest_step": dynamics.largest_step(steep), "seconds": seconds}
    production = Production(frame, setup, request, thin, n_warmup, ESS_SHARE, **options)
    chains = warmed_up(production, positions)
    price.tell(production.pace * seconds * steps)
    made, _ = production.run(chains, watch)
    return made, production.thin


def _noise(frame, gradient, shares, points, references, seed):
    """Return the `_Noise` of a gradient, averaged over some points φ of the chain.

    With (own, shared) = `shares`, its covariance is `own` times that of the gradient of one uniform
    row, and `shared` times the same for noise that lasts for several steps. For an estimator that
    remembers gradients, those at `references`, where the rows were last seen, are subtracted in the
    first part.
    """
    target, rng, (own, shared), sizes = frame.target, streams.of_recipe(seed), shares, []
    if own == shared == 0.0:
        return _Noise(0.0)
    N, is_plain = target.n_rows, isinstance(gradient, Minibatch)
    rows = rng.permutation(N)[:NOISE_ROWS]

    def largest(g):
        g = preconditioning.pull_back(frame.F, g.T).T
        return N * N * linalg.norm(g - g.mean(axis=0), ord=2) ** 2 / len(rows)

    for phi, reference in zip(points, references, strict=True):
        g = row_gradients(target, frame.theta(phi), rows)
        size = shared * largest(g) if shared else 0.0
        if own:
            g = g if is_plain else g - row_gradients(target, frame.theta(reference), rows)
            size += own * largest(g)
        sizes.append(size)
    return _Noise(float(np.mean(sizes)))


def _expected_noise(frame, gradient, n, points, seed):
    """Return the `_Noise` expected at points φ before the chain has run; n is the batch size.

    Remembered gradients are taken to be as far from the points as the centre is. For estimators
    without a fixed centre both ends of this difference move, which doubles its variance.
    """
    points, N = points[:NOISE_POINTS], frame.target.n_rows
    moves = not (isinstance(gradient, Minibatch) or gradient.uses_centre)
    own = (2.0 if moves else 1.0) / n if n < N else 0.0
    shares = own, gradient.shared_noise(N, n)
    return _noise(frame, gradient, shares, points, np.zeros_like(points), seed)


def _observed_noise(frame, setup, made, thin, seed):
    """Return the `_Noise` at some of the draws of the first chain, for the gradient of the set-up.

    Remembered gradients are those of the draw about `refresh`, or else N/n, steps earlier.
    """
    gradient, n, N = setup.gradient, setup.batch_size, setup.n_rows
    age = getattr(gradient, "refresh", None) or N / n
    lag = int(np.clip(np.ceil(age / thin), 1, made.phi.shape[1] - 1))
    chosen = np.linspace(lag, made.phi.shape[1] - 1, NOISE_POINTS).astype(int)
    points, references = made.phi[0, chosen], made.phi[0, chosen - lag]
    if gradient.uses_centre:
        references = np.zeros_like(points)
    slowest = 1.0 if frame.whitened else frame.curvature_range[0]
    relaxation = setup.dynamics.relaxation_steps(first_step(setup.step_size), slowest)
    shares = (1.0 / n if n < N else 0.0), gradient.shared_noise(N, n, relaxation)
    return _noise(frame, gradient, shares, points, references, seed)


def _inflation(frame, setup, made, thin, request):
    """Return the share that noise and step size are predicted to add to a variance.

    The noise is measured at the draws. With too few draws for a covariance it is NaN.
    """
    draws = made.phi.reshape(-1, made.phi.shape[-1])
    if len(draws) <= draws.shape[1] + 2 or made.phi.shape[1] < 2:
        return np.nan
    noise = _observed_noise(frame, setup, made, thin, request.seed)
    h, dynamics = step_of_draws(setup.step_size, made), setup.dynamics
    narrowest = linalg.eigvalsh(np.atleast_2d(np.cov(draws.T)))[0]
    curvature = 1.0 / max(narrowest, np.finfo(float).tiny)
    return dynamics.noise_inflation(h) * noise.size + abs(dynamics.bias(h, curvature))


def _warn_biased(inflation, setup):
    """Warn with `StepSizeWarning` if the predicted inflation of a variance exceeds `BIASED`."""
    if inflation > BIASED:
        warnings.warn(
            f"step_size={first_step(setup.step_size):.3g} with batch_size={setup.batch_size} is "
            f"predicted to make a variance {inflation:.0%} too large. Use a smaller step_size, "
            "more rows, another gradient such as 'svrg', or step_size='auto'.",
            StepSizeWarning,
            stacklevel=2,
        )
