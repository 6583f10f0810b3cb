"""The outcome of chains: draws with aligned topics, their summaries, and diagnostics."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..diagnostics import convergence
from ..diagnostics.verdict import disagree
from ..exceptions import SamplerConvergenceWarning
from .alignment import alignment, topic_distances
from .fold_in import word_rows
from .mixes import mixes_of
from .topic_posterior import TopicPosterior

__all__ = ["TopicOutcome", "fitted_attributes", "gather", "probe_of", "warn_unless_converged"]

PROBE = 100  # documents
ANCHOR_LIMIT = 0.1  # of the error of counts at a centre, in posterior standard deviations
LEAST_DRAWS = 8  # of a chain, for the rule for all chains
BY_CHANCE = 1e-4  # probability that means of fewer draws are so far apart
TOPICS_APART = 1.3  # R-hat of a topic: 1.0 to 1.1 of few draws that agree, 1.6 to 5 in other modes


@dataclass
class TopicOutcome:
    """Draws with aligned topics, their conditional means, and what was measured."""

    posterior: TopicPosterior
    conditional: np.ndarray  # (n_chains, n_draws, K, V): means of φ given all else
    predictive: np.ndarray  # (n_chains, n_draws, K, V): the same with less noise
    masses: np.ndarray  # (n_chains, n_draws, K): the sums of its Dirichlet parameters over words
    levels: np.ndarray  # (n_chains, n_draws): mean log probability of a token of some documents
    distances: np.ndarray  # (K,): mean total variation between the draws of a topic and its mean
    diagnostics: dict


def probe_of(corpus):
    """Up to `PROBE` documents with words, evenly spaced."""
    filled = np.flatnonzero(np.diff(corpus.starts))
    return corpus.take(filled[np.linspace(0, len(filled) - 1, min(PROBE, len(filled))).astype(int)])


def log_likelihood(corpus, topics, alpha, n_jobs=None):
    """Mean log probability of a token under topics (K, V), with mixes fitted to the documents."""
    mixes = mixes_of(corpus, word_rows(topics), alpha, n_jobs)
    documents = np.repeat(np.arange(corpus.n_documents), np.diff(corpus.starts))
    p = np.einsum("ek,ke->e", mixes[documents], topics[:, corpus.words])
    tiny = np.finfo(float).tiny
    return float(corpus.counts @ np.log(np.maximum(p, tiny)) / (corpus.counts.sum() or 1.0))


def gather(chains, n_draws, request, probe, origin):
    """The `TopicOutcome` of the first draws of each chain."""
    concentrations = np.array([chain.draws.masses[:n_draws] for chain in chains])
    topics = np.array([chain.draws.topics[:n_draws] for chain in chains])
    C, S, K, V = topics.shape
    prior, n_jobs = request.prior, request.n_jobs
    levels = np.array(
        [[log_likelihood(probe, phi, prior.alpha, n_jobs) for phi in own] for own in topics]
    )
    masses = concentrations.sum(axis=3)
    conditional = concentrations / masses[..., None]
    share = np.maximum(masses - V * prior.beta, 0.0)
    share /= share.sum(axis=2, keepdims=True)
    flat = [topics.reshape(C, S, K * V), share, levels[..., None]]
    flat = np.concatenate(flat, axis=2, dtype=np.float64)
    posterior = TopicPosterior(flat, K, request.words, aligned=False, origin=origin)
    orders, reference = alignment(conditional, int(levels.mean(axis=1).argmax()))
    conditional = np.take_along_axis(conditional, orders[..., None], 2)
    distances = [topic_distances(phi, reference) for own in conditional for phi in own]
    return TopicOutcome(
        posterior=posterior.renumbered(orders),
        conditional=conditional,
        predictive=_predictive(chains, orders, conditional),
        masses=np.take_along_axis(masses, orders, 2),
        levels=levels,
        distances=np.mean(distances, axis=0),
        diagnostics=_diagnostics(levels, distances, conditional) | _of_anchors(chains),
    )


def _predictive(chains, orders, conditional):
    """Aligned topics from the smooth parameters; `conditional` if some draws have none."""
    smooth = [chain.draws.smooth[: orders.shape[1]] for chain in chains]
    if any(masses is None for own in smooth for masses in own):
        return conditional
    topics = np.empty_like(conditional)
    for c, s in np.ndindex(orders.shape[:2]):
        masses = smooth[c][s][orders[c, s]]
        topics[c, s] = masses / masses.sum(axis=1, keepdims=True)
    return topics


def _diagnostics(levels, distances, conditional):
    return {
        "topics_rhat": float(np.max(rhat_of_topics(conditional))),
        "max_rhat": float(convergence.rhat(levels)),
        "min_ess": float(convergence.ess_bulk(levels)),
        "topic_distance": float(np.mean(distances)),
        "log_likelihood": float(levels.mean()),
    }


def rhat_of_topics(conditional):
    """R-hat of each aligned topic, with variances between and within chains summed over words.

    √((S - 1)/S + B/(S W)), as for one parameter; so many words leave hardly any room for chance.
    One for a single draw or chain.
    """
    C, S, K, _ = conditional.shape
    if min(C, S) < 2:
        return np.ones(K)
    within = conditional.var(axis=1, ddof=1).mean(axis=0).sum(axis=1)
    between = conditional.mean(axis=1).var(axis=0, ddof=1).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(between > 0.0, between / within, 0.0)
    return np.sqrt((S - 1.0) / S + ratio)


def _of_anchors(chains):
    """The largest error of the counts at a centre, of chains that have one."""
    error = max(getattr(chain, "anchor_error", 0.0) for chain in chains)
    return {"anchor_error": error} if error > 0.0 else {}


def warn_unless_converged(outcome):
    """Issue a `SamplerConvergenceWarning` if chains are in different modes, or hardly move.

    Or if the counts at a centre are inaccurate, an error that all steps of a chain share.
    """
    anchor = outcome.diagnostics.get("anchor_error", 0.0)
    if anchor > ANCHOR_LIMIT:
        warnings.warn(
            f"The expected counts at the centre of a chain are off by {anchor:.2f} posterior "
            "standard deviations, and all draws with them. Use gradient='saga' or sampler='gibbs'.",
            SamplerConvergenceWarning,
            stacklevel=3,
        )
    rhat, ess = outcome.diagnostics["max_rhat"], outcome.diagnostics["min_ess"]
    total, n_draws = outcome.levels.size, outcome.levels.shape[1]
    of_topics, found = outcome.diagnostics["topics_rhat"], ""
    if disagree(rhat, ess, total) if n_draws >= LEAST_DRAWS else are_apart(outcome.levels):
        found = f"the probability of a token has an R-hat of {rhat:.2f} and an effective sample "
        found += f"size of {ess:.0f} of {total} draws"
    elif of_topics > TOPICS_APART:
        found = f"an aligned topic has an R-hat of {of_topics:.2f} over its words"
    if found:
        warnings.warn(
            f"The chains have not converged: {found}. Chains may be in different modes, or hardly "
            "move: compare their topics (topic_distances_), or increase n_warmup, thin or n_draws.",
            SamplerConvergenceWarning,
            stacklevel=3,
        )


def are_apart(levels):
    """Whether few draws of each chain (n_chains, n_draws) differ more than by chance.

    By the F test of their means, since R-hat of so few draws is above its limit by chance.
    """
    if min(levels.shape) < 2 or not np.ptp(levels):
        return False
    return bool(stats.f_oneway(*levels).pvalue < BY_CHANCE)


def fitted_attributes(outcome):
    """The attributes of the estimator that follow from the draws."""
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
