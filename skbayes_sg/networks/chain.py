"""A chain: its state, its start, and the redrawing of the scales of the prior.

Where the noise is an output, log σ, a chain begins with one σ for all rows: the weights of that
output are held at zero. Otherwise they would take for noise what the mean has not learned yet, and
rows that are taken for noise hardly count any more [1]_; chains do not come back from there.

.. [1] M. Seitzer, A. Tavakoli, D. Antic and G. Martius (2022). On the pitfalls of heteroscedastic
   uncertainty estimation with probabilistic neural networks. ICLR.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base import streams
from .._base.interrupts import without_interrupts
from .._base.threads import raise_if_stopped
from .architecture import weights_of_log_sd
from .gradient import gradient_at, pieces_of
from .predictor_map import new_scratch
from .prior_scales import draw_scales, prior_of
from .start import Adam, random_weights

__all__ = ["NetworkChain", "find_start", "new_chain", "redraw_scales", "release", "set_prior"]

HELD = 1e6  # prior precision of weights that are held at zero


@dataclass
class NetworkChain:
    """The position, prior and random numbers of one chain, and its draws so far."""

    number: int
    streams: streams.ChainStreams
    theta: np.ndarray
    scales_now: np.ndarray  # scales of the prior: τ of all groups, and then λ
    prior: np.ndarray  # (2, n_parameters): precisions and means, given the scales
    scratch: Any  # `NetworkScratch`
    memory: Any = None  # what the sampler keeps of the chain besides its position
    n_returns: int = 0  # moves back to a copy of the state, since the last adaptation
    holds: bool = False  # whether the weights of log σ are held at zero
    draws: list = field(default_factory=list)  # draws of θ, float32
    scales: list = field(default_factory=list)  # `scales_now` at each draw


def new_chain(problem, seed, number):
    """Return a chain at random weights, with prior scales of 1 where they are inferred."""
    own = streams.of_chain(seed, number)
    groups = problem.groups
    tau = np.full(len(groups.fan_in), problem.prior_scale or 1.0)
    scales = np.append(tau, np.ones(groups.n_columns))
    prior = prior_of(problem.network, groups, scales)
    theta = random_weights(groups, prior, own.start)
    scratch = new_scratch(problem.network, np.dtype(problem.dtype))
    chain = NetworkChain(number, own, theta, scales, prior, scratch)
    held = weights_of_log_sd(problem.network)
    if len(held):
        chain.holds, theta[held] = True, 0.0
        set_prior(problem, chain)
    return chain


def find_start(problem, chain, n_steps, batch_size=None):
    """Move the chain by steps of Adam towards a mode, on all rows or on mini-batches of them."""
    adam, gradient = Adam(problem.n_parameters, n_steps), np.zeros(problem.n_parameters)
    pieces, N = pieces_of(problem.model), problem.n_rows
    for _ in range(n_steps):
        raise_if_stopped()
        rows, c = problem.all_rows if batch_size is None else None, 1.0
        if rows is None:
            rows = problem.rows(chain.streams.start.integers(0, N, batch_size))
            c = N / batch_size
        with without_interrupts():
            gradient_at(pieces, problem.network, rows, chain.theta, c, chain.scratch, gradient)
        gradient += chain.prior[0] * (chain.theta - chain.prior[1])
        if chain.holds:
            gradient[weights_of_log_sd(problem.network)] = 0.0
        adam.step(chain.theta, gradient)


def redraw_scales(problem, chain):
    """Draw the scales of the prior given the weights, unless the user has fixed them."""
    if problem.prior_scale is None:
        own, rng = chain.scales_now, chain.streams.start
        chain.scales_now = draw_scales(problem.groups, chain.theta, rng, own)
        set_prior(problem, chain)


def release(problem, chain):
    """Let the weights of log σ move from now on."""
    if chain.holds:
        chain.holds = False
        set_prior(problem, chain)


def set_prior(problem, chain):
    """Set the prior given the scales; for weights that are held it is a narrow one around zero."""
    if chain.holds:
        held = weights_of_log_sd(problem.network)
        chain.scales_now = chain.scales_now.copy()
        chain.scales_now[problem.groups.of_weight[held]] = problem.prior_scale or 1.0
    chain.prior = prior_of(problem.network, problem.groups, chain.scales_now)
    if chain.holds:
        chain.prior[0, held] = HELD
