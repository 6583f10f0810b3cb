"""The outcome of chains: draws with aligned topics, their summaries, and diagnostics."""

from dataclasses import dataclass

import numpy as np

from ..diagnostics import convergence
from .agreement import rhat_of_topics
from .alignment import alignment, topic_distances
from .fold_in import word_rows
from .mixes import mixes_of
from .topic_posterior import TopicPosterior

__all__ = ["TopicOutcome", "fitted_attributes", "outcome_of", "probe_of"]

PROBE = 100  # largest number of documents whose token probabilities are traced


@dataclass
class TopicOutcome:
    """Draws with aligned topics, their conditional means, and diagnostics."""

    posterior: TopicPosterior
    conditional: np.ndarray  # (n_chains, n_draws, K, V): means of φ given all else
    predictive: np.ndarray  # (n_chains, n_draws, K, V): like `conditional`, with less noise
    masses: np.ndarray  # (n_chains, n_draws, K): sums over words of the Dirichlet parameters of φ
    distances: np.ndarray  # (K,): mean total variation between the draws of a topic and its mean
    diagnostics: dict


def probe_of(corpus):
    """Return a corpus of up to `PROBE` evenly spaced documents with words."""
    filled = np.flatnonzero(np.diff(corpus.starts))
    return corpus.take(filled[np.linspace(0, len(filled) - 1, min(PROBE, len(filled))).astype(int)])


def log_likelihood(corpus, topics, alpha, n_jobs=None):
    """Mean log probability of a token under topics (K, V), with mixes fitted to the documents."""
    mixes = mixes_of(corpus, word_rows(topics), alpha, n_jobs)
    documents = np.repeat(np.arange(corpus.n_documents), np.diff(corpus.starts))
    p = np.einsum("ek,ke->e", mixes[documents], topics[:, corpus.words])
    tiny = np.finfo(float).tiny
    return float(corpus.counts @ np.log(np.maximum(p, tiny)) / (corpus.counts.sum() or 1.0))


def outcome_of(chains, n_draws, request, probe, origin):
    """Return the `TopicOutcome` of the first `n_draws` draws of each chain."""
    concentrations = np.array([chain.draws.masses[:n_draws] for chain in chains])
    topics = np.array([chain.draws.topics[:n_draws] for chain in chains])
    C, S, K, V = topics.shape
    prior, n_jobs = request.prior, request.n_jobs
    log_probabilities = np.array(
        [[log_likelihood(probe, phi, prior.alpha, n_jobs) for phi in own] for own in topics]
    )
    masses = concentrations.sum(axis=3)
    conditional = concentrations / masses[..., None]
    share = np.maximum(masses - V * prior.beta, 0.0)
    share /= share.sum(axis=2, keepdims=True)
    flat = [topics.reshape(C, S, K * V), share, log_probabilities[..., None]]
    flat = np.concatenate(flat, axis=2, dtype=np.float64)
    posterior = TopicPosterior(flat, K, request.words, aligned=False, origin=origin)
    best = int(log_probabilities.mean(axis=1).argmax())
    orders, reference = alignment(conditional, best, prior.alpha)
    conditional = np.take_along_axis(conditional, orders[..., None], 2)
    masses = np.take_along_axis(masses, orders, 2)
    distances = [topic_distances(phi, reference) for own in conditional for phi in own]
    evidence = {"topics_rhat": float(np.max(rhat_of_topics(conditional, masses)))}
    evidence |= _of_anchors(chains)
    return TopicOutcome(
        posterior=posterior.renumbered(orders, evidence),
        conditional=conditional,
        predictive=_predictive(chains, orders, conditional),
        masses=masses,
        distances=np.mean(distances, axis=0),
        diagnostics=evidence | _diagnostics(log_probabilities, distances),
    )


def _predictive(chains, orders, conditional):
    """Return aligned topics from the Dirichlet parameters with less noise, `draws.smooth`.

    It is `conditional` if some draws have no such parameters.
    """
    smooth = [chain.draws.smooth[: orders.shape[1]] for chain in chains]
    if any(masses is None for own in smooth for masses in own):
        return conditional
    topics = np.empty_like(conditional)
    for c, s in np.ndindex(orders.shape[:2]):
        masses = smooth[c][s][orders[c, s]]
        topics[c, s] = masses / masses.sum(axis=1, keepdims=True)
    return topics


def _diagnostics(log_probabilities, distances):
    return {
        "max_rhat": float(convergence.rhat(log_probabilities)),
        "min_ess": float(convergence.ess_bulk(log_probabilities)),
        "topic_distance": float(np.mean(distances)),
        "log_likelihood": float(log_probabilities.mean()),
    }


def _of_anchors(chains):
    """Return the largest error of counts at the centre of a chain; {} if no chain has a centre."""
    error = max(getattr(chain, "anchor_error", 0.0) for chain in chains)
    return {"anchor_error": error} if error > 0.0 else {}


def fitted_attributes(outcome):
    """Return the attributes of the estimator that follow from the draws, as a dict."""
    conditional, masses = outcome.conditional, outcome.masses[..., None]
    within = (conditional * (1.0 - conditional) / (masses + 1.0)).mean(axis=(0, 1))
    return {
        "posterior_": outcome.posterior,
        "components_": conditional.mean(axis=(0, 1)),
        "components_std_": np.sqrt(within + conditional.var(axis=(0, 1))),
        "conditional_components_": conditional,
        "predictive_components_": outcome.predictive,
        "topic_masses_": outcome.masses,
        "topic_share_": outcome.posterior.mean("topic_share"),
        "topic_distances_": outcome.distances,
        "diagnostics_": outcome.diagnostics,
    }
