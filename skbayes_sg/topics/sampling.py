"""From documents to posterior draws of topics: which sampler, and what is made of its chains."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..diagnostics import convergence
from .alignment import alignment, topic_distances
from .chains import Plan, new_gibbs_chains, run_chains
from .collapsed_gibbs import Prior
from .corpus import as_tokens
from .fold_in import word_rows
from .perplexity import mixes_of
from .posterior import TopicPosterior

__all__ = ["TopicOutcome", "TopicRequest", "gather", "sample_topics"]

PROBE = 100  # documents
GIBBS_PLAN = Plan(n_warmup=50, thin=10, n_draws=5)


@dataclass
class TopicRequest:
    """What was asked for. None is "auto"."""

    prior: Prior
    sampler: str | None
    n_draws: int
    n_chains: int
    n_warmup: int | None
    thin: int | None
    seed: int
    n_jobs: int | None
    words: Any = ()  # names
    extra: dict = field(default_factory=dict)


@dataclass
class TopicOutcome:
    """Draws with aligned topics, what they were made of, and what was measured."""

    posterior: TopicPosterior
    conditional: np.ndarray  # (n_chains, n_draws, K, V): means of φ given all else
    masses: np.ndarray  # (n_chains, n_draws, K): its Dirichlet parameters, summed over words
    distances: np.ndarray  # (K,): mean total variation of a draw's topic from the mean topic
    diagnostics: dict


def plan_of(request, default):
    """The plan asked for, or what of it is."""
    return Plan(
        default.n_warmup if request.n_warmup is None else request.n_warmup,
        default.thin if request.thin is None else request.thin,
        request.n_draws,
    )


def probe_of(corpus):
    """Some documents with words, evenly spaced."""
    filled = np.flatnonzero(np.diff(corpus.starts))
    return corpus.take(filled[np.linspace(0, len(filled) - 1, min(PROBE, len(filled))).astype(int)])


def log_likelihood(corpus, topics, alpha, n_jobs=None):
    """Mean log probability of a token under topics (K, V), mixes fitted to the documents."""
    mixes = mixes_of(corpus, word_rows(topics), alpha, n_jobs)
    documents = np.repeat(np.arange(corpus.n_documents), np.diff(corpus.starts))
    p = np.einsum("ek,ke->e", mixes[documents], topics[:, corpus.words])
    tiny = np.finfo(float).tiny
    return float(corpus.counts @ np.log(np.maximum(p, tiny)) / corpus.counts.sum())


def gather(chains, n_draws, prior, probe, words, origin):
    """The outcome of the first draws of each chain."""
    concentrations = np.array([chain.draws.masses[:n_draws] for chain in chains])
    topics = np.array([chain.draws.topics[:n_draws] for chain in chains])
    C, S, K, V = topics.shape
    levels = np.array([[log_likelihood(probe, phi, prior.alpha) for phi in own] for own in topics])
    masses = concentrations.sum(axis=3)
    conditional = concentrations / masses[..., None]
    share = np.maximum(masses - V * prior.beta, 0.0)
    share /= share.sum(axis=2, keepdims=True)
    flat = np.concatenate(
        [topics.reshape(C, S, K * V), share, levels[..., None]], axis=2, dtype=np.float64
    )
    orders, reference = alignment(conditional, int(levels.mean(axis=1).argmax()))
    conditional = np.take_along_axis(conditional, orders[..., None], 2)
    distances = [topic_distances(phi, reference) for own in conditional for phi in own]
    return TopicOutcome(
        TopicPosterior(flat, K, words, aligned=False, origin=origin).renumbered(orders),
        conditional, np.take_along_axis(masses, orders, 2), np.mean(distances, axis=0),
        _diagnostics(levels, distances),
    )  # fmt: skip


def _diagnostics(levels, distances):
    return {
        "max_rhat": float(convergence.rhat(levels)),
        "topic_distance": float(np.mean(distances)),
        "log_likelihood": float(levels.mean()),
    }


def sample_topics(corpus, request, progress):
    """Posterior draws of topics, by the sampler asked for or the one that suits the corpus."""
    plan, probe = plan_of(request, GIBBS_PLAN), probe_of(corpus)
    tokens = as_tokens(corpus)
    prior = request.prior
    chains = new_gibbs_chains(tokens, prior, corpus.n_words, request.n_chains, request.seed)
    origin = {"sampler": "gibbs", "thin": plan.thin}

    def outcome(chains, done):
        return gather(chains, done, prior, probe, request.words, origin)

    def watch(chains, done):
        return progress(lambda: (outcome(chains, done),), done / plan.n_draws)

    chains, done = run_chains(
        chains, (tokens, prior, plan), plan, n_jobs=request.n_jobs, watch=watch
    )
    return outcome(chains, done), plan
