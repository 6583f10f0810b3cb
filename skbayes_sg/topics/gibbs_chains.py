"""Chains of topics: their draws, the Gibbs chain, and the loop that runs chains.

As everywhere, a chain depends only on the seed and its number, and kernels run in rounds of a
fraction of a second: see `engine.rounds`.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._base import streams
from ..engine.rounds import run_rounds
from .collapsed_gibbs import Assignments, new_assignments, sweep, word_topics
from .smoothing import expected_masses
from .split_merge import split_and_merge
from .weighted_gibbs import sweep_weighted

__all__ = ["DrawPlan", "GibbsChain", "TopicDraws", "dirichlet", "new_gibbs_chains", "run_chains"]

FIRST_WORK = 100_000  # tokens that a chain resamples in its first round
REARRANGED = (0.3, 0.5, 0.7)  # shares of the warm-up at which topics may be split and merged


class DrawPlan(NamedTuple):
    """When draws are kept: `n_draws` of them, `thin` sweeps apart, after `n_warmup`."""

    n_warmup: int
    thin: int
    n_draws: int

    @property
    def n_steps(self):
        """Total number of sweeps or steps."""
        return self.n_warmup + self.thin * self.n_draws


@dataclass
class TopicDraws:
    """The draws that a chain has kept: lists with one entry for each draw."""

    topics: list = field(default_factory=list)  # φ (K, V)
    masses: list = field(default_factory=list)  # Dirichlet parameters (K, V) of φ given all else
    smooth: list = field(default_factory=list)  # like `masses`, with less noise; or None

    def keep(self, masses, topics, smooth=None):
        """Append one draw to each of the lists."""
        self.masses.append(masses)
        self.topics.append(topics)
        self.smooth.append(smooth)


def dirichlet(masses, rng):
    """Return a Dirichlet draw for each row of parameters, however small the parameters are."""
    # Gamma(a) = Gamma(a + 1) U^(1/a), in logarithms: for small a the gamma itself underflows.
    logs = np.log(rng.standard_gamma(masses + 1.0)) + np.log1p(-rng.random(masses.shape)) / masses
    draws = np.exp(logs - logs.max(axis=1, keepdims=True))
    return draws / draws.sum(axis=1, keepdims=True)


@dataclass
class GibbsChain:
    """A chain of collapsed Gibbs sweeps over a whole corpus."""

    number: int
    state: Assignments
    uniforms: np.ndarray
    rng: Any
    rng_draws: Any
    rng_start: Any
    sweeps: int = 0
    unsettled: bool = True  # whether the last attempt to split and merge topics changed any
    document: int = 0  # the next document of the current sweep
    draws: TopicDraws = field(default_factory=TopicDraws)

    def is_done(self, plan):
        """Whether the chain has all its draws."""
        return self.sweeps >= plan.n_steps

    def advance(self, tokens, prior, plan, work):
        """Resample `work` tokens or a few more; all remaining ones if `work` is None."""
        n_documents = len(tokens.starts) - 1
        kernel = sweep_weighted if len(tokens.weights) else sweep
        left = np.inf if work is None else work
        while left > 0 and not self.is_done(plan):
            first = self.document
            until = tokens.starts[first] + min(left, len(tokens.words))
            last = min(int(np.searchsorted(tokens.starts, until)), n_documents)
            kernel(self.state, prior, tokens, first, last, self.uniforms, self.rng)
            left -= tokens.starts[last] - tokens.starts[first]
            self.document = last % n_documents
            if last == n_documents:
                self._finish_sweep(tokens, prior, plan)
        return self

    def _finish_sweep(self, tokens, prior, plan):
        self.sweeps += 1
        if self.unsettled and self.sweeps in {int(s * plan.n_warmup) for s in REARRANGED}:
            self.unsettled = split_and_merge(self.state, prior, tokens, self.rng_start) > 0
        after = self.sweeps - plan.n_warmup
        if after > 0 and after % plan.thin == 0:
            counts = word_topics(self.state)
            masses = np.ascontiguousarray(counts.T) + prior.beta
            smooth = expected_masses(self.state.z, tokens, prior, counts)
            self.draws.keep(masses, dirichlet(masses, self.rng_draws), smooth)


def new_gibbs_chains(tokens, prior, n_words, n_chains, seed):
    """Return chains in which no token has a topic yet: the first sweep assigns them one by one."""
    chains, longest = [], int(np.diff(tokens.starts).max(initial=0))
    for number in range(n_chains):
        state = new_assignments(tokens, n_words, len(prior.alpha))
        rngs = streams.of_chain(seed, number)
        chains.append(GibbsChain(number, state, np.empty(longest), *rngs))
    return chains


def _advance(arguments, work, chain):
    return chain.advance(*arguments, work)


def run_chains(chains, arguments, plan, *, n_jobs=None, watch=None):
    """Run all chains to their last draw, or until ``watch(chains, done)`` returns true.

    A round calls ``chain.advance(*arguments, work)``; the last of the arguments is the plan.
    Returns the chains and the number of draws that all of them have.
    """

    def done(chains):
        return min(len(chain.draws.topics) for chain in chains)

    chains = run_rounds(
        partial(_advance, arguments),
        chains,
        FIRST_WORK,
        is_done=lambda chains: all(chain.is_done(plan) for chain in chains),
        stop=lambda chains: watch is not None and done(chains) > 0 and watch(chains, done(chains)),
        n_jobs=n_jobs,
    )
    return chains, done(chains)
