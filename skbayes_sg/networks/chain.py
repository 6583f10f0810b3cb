"""A chain: its state, its start, and the redrawing of the scales of the prior."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base import streams
from .._base.jit import interruptible
from .._base.threads import raise_if_stopped
from .gradient import gradient_at, pieces_of
from .predictor_map import new_scratch
from .prior_scales import draw_scales, prior_of
from .start import Adam, random_weights

__all__ = ["NetworkChain", "find_start", "new_chain", "redraw_scales"]


@dataclass
class NetworkChain:
    """One chain."""

    number: int
    streams: streams.ChainStreams
    theta: np.ndarray
    tau: np.ndarray
    prior: np.ndarray  # (2, n_parameters): precisions and means, given τ
    scratch: Any
    memory: Any = None  # of the sampler
    n_returns: int = 0
    draws: list = field(default_factory=list)
    scales: list = field(default_factory=list)


def new_chain(problem, seed, number):
    """A chain at a random draw of the weights."""
    own = streams.of_chain(seed, number)
    tau = np.full(len(problem.groups.fan_in), problem.prior_scale or 1.0)
    prior = prior_of(problem.network, problem.groups, tau)
    theta = random_weights(problem.groups, prior, own.start)
    scratch = new_scratch(problem.network, np.dtype(problem.dtype))
    return NetworkChain(number, own, theta, tau, prior, scratch)


def find_start(problem, chain, n_steps, batch_size=None):
    """Move the chain by steps of Adam, on all rows or on batches of them."""
    adam, gradient = Adam(problem.n_parameters, n_steps), np.zeros(problem.n_parameters)
    pieces, N = pieces_of(problem.model), problem.n_rows
    for _ in range(n_steps):
        raise_if_stopped()
        rows, c = problem.all_rows if batch_size is None else None, 1.0
        if rows is None:
            rows = problem.rows(chain.streams.start.integers(0, N, batch_size))
            c = N / batch_size
        with interruptible():
            gradient_at(pieces, problem.network, rows, chain.theta, c, chain.scratch, gradient)
        gradient += chain.prior[0] * (chain.theta - chain.prior[1])
        adam.step(chain.theta, gradient)


def redraw_scales(problem, chain):
    """Draw τ given the weights, unless it is known."""
    if problem.prior_scale is None:
        chain.tau = draw_scales(problem.groups, chain.theta, chain.streams.start)
        chain.prior = prior_of(problem.network, problem.groups, chain.tau)
