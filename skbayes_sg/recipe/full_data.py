"""Runs of the Metropolis-corrected samplers, whose gradients are full: no bias to tune away.

Warming up: dual averaging of the step; then the metric is refined once from the pooled draws of all
chains, ``S = (m cov + (d + 5) I)/(m + d + 5)``, and the step is adapted again.
"""

from dataclasses import replace

import numpy as np

from ..dynamics import HMC
from ..engine import metropolis
from ..engine.run import Setup, new_chains, sample, streams
from ..geometry import preconditioning
from ..gradients import Full
from ..subsampling import AllRows
from .final_run import Production

__all__ = ["predicted_seconds", "run_exact"]

WARMUP = 250
FIRST, SECOND = 0.2, 0.6  # share of the warm-up before draws are pooled, and before they are used
ESS_SHARE = 0.25
START = 0.5  # spread of the starting points, in posterior standard deviations


def predicted_seconds(target, request):
    """Cost of the exact sampler by a fixed model of the machine: decisions must not depend on time.

    About three leapfrog steps a trajectory, and 20 + 0.8 d nanoseconds a row and predictor.
    """
    trajectories = request.n_chains * (request.n_draws + WARMUP)
    row = target.model.n_predictors * (20 + 0.8 * target.n_features)
    return 3.0 * trajectories * (target.n_rows * row + target.n_parameters**2) * 1e-9


def run_exact(frame, request, watch=None):
    """Draws by MALA or HMC."""
    target, dynamics = frame.target, request.sampler or HMC()
    adapt = request.schedule is None
    fixed = None if adapt else float(request.schedule(np.arange(1))[0])
    step_size = fixed or 0.25 / frame.curvature_range[1]
    setup = Setup(
        frame.problem(Full()), target.model, Full(), AllRows(), dynamics, target.n_rows,
        step_size=step_size, adapt=adapt,
    )  # fmt: skip
    normals = [
        streams(request.seed, k)[2].standard_normal(target.n_parameters)
        for k in range(request.n_chains)
    ]
    chains = new_chains(setup, START * frame.guess(np.array(normals)), request.seed)
    frame, setup, chains = _warm_up(frame, setup, chains, request)
    setup = replace(setup, adapt=False)
    if adapt:
        average = np.mean([chain.record[metropolis.LOG_AVERAGE] for chain in chains])
        for chain in chains:
            chain.record[metropolis.LOG_STEP] = average
        setup.step_size = float(np.exp(2.0 * average))
    for chain in chains:
        chain.record[[metropolis.ACCEPTED, metropolis.TRIED]] = 0.0
    n_warmup = WARMUP if request.n_warmup is None else request.n_warmup
    production = Production(frame, setup, request, request.thin or 1, n_warmup, ESS_SHARE)
    outcome, _ = production.run(chains, watch)
    return outcome.in_parameters(frame)


def _warm_up(frame, setup, chains, request):
    n = WARMUP if request.n_warmup is None else request.n_warmup
    first, second = int(FIRST * n), int(SECOND * n)
    options = {"n_jobs": request.n_jobs}
    _, chains = sample(setup, chains, first, 1, **options)
    draws, chains = sample(setup, chains, second - first, 1, **options)
    if setup.adapt and request.preconditioner == "auto" and frame.dense and n >= 100:
        pooled = draws.reshape(-1, draws.shape[2])
        m, d = pooled.shape
        S = (m * np.cov(pooled.T, ddof=0).reshape(d, d) + (d + 5) * np.eye(d)) / (m + d + 5)
        step_size = np.exp(2 * np.mean([c.record[metropolis.LOG_AVERAGE] for c in chains]))
        old, frame = frame, frame.rescaled(S)
        setup = replace(setup, problem=frame.problem(Full()), step_size=float(step_size))
        for chain in chains:
            theta_shift = preconditioning.apply(old.F, chain.state[:1])
            chain.state[0] = preconditioning.solve(frame.F, theta_shift)[0]
            chain.record = metropolis.new_record(setup.step_size)
    _, chains = sample(setup, chains, n - second, 1, **options)
    return frame, setup, chains
