"""From documents to posterior draws of topics: which sampler, and what is made of its chains."""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._base import streams
from .._base.threads import in_workers
from ..diagnostics import convergence
from ..schedules import Constant
from .alignment import alignment, topic_distances
from .chains import Plan, new_gibbs_chains, run_chains
from .collapsed_gibbs import Prior, word_topics
from .corpus import as_tokens
from .fold_in import word_rows
from .perplexity import mixes_of
from .posterior import TopicPosterior
from .stochastic import Pieces, StochasticChain, find_centre, new_state

__all__ = ["TopicOutcome", "TopicRequest", "gather", "sample_topics"]

PROBE = 100  # documents
GIBBS_TOKENS = 20_000_000  # up to which all tokens are resampled in every sweep
BATCH = 100  # documents
REMEMBERED_BATCH = 500  # with "saga", which has no noise of the batch: words are moved less often
START_DOCUMENTS = 2000  # on which chains with stochastic gradients start
REMEMBERED, FORGOTTEN = 5.0, 0.3  # h D/n, with and without a memory of all topics
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
    gradient: str | None = None
    batch_size: int | None = None
    schedule: Any = None
    words: Any = ()  # names

    @property
    def asks_for_gradients(self):
        """The first parameter given that only stochastic gradients have; "" if there is none."""
        given = {
            "gradient": self.gradient, "batch_size": self.batch_size, "step_size": self.schedule,
        }  # fmt: skip
        return next((f"{name}={value!r}" for name, value in given.items() if value is not None), "")


@dataclass
class Run:
    """Chains that are ready to go, and what was chosen for them."""

    chains: list
    arguments: tuple
    plan: Plan
    chosen: dict


@dataclass
class TopicOutcome:
    """Draws with aligned topics, what they were made of, and what was measured."""

    posterior: TopicPosterior
    conditional: np.ndarray  # (n_chains, n_draws, K, V): means of φ given all else
    predictive: np.ndarray  # (n_chains, n_draws, K, V): the same with less noise
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


def gather(chains, n_draws, request, probe, origin):
    """The outcome of the first draws of each chain."""
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
    flat = np.concatenate(
        [topics.reshape(C, S, K * V), share, levels[..., None]], axis=2, dtype=np.float64
    )
    orders, reference = alignment(conditional, int(levels.mean(axis=1).argmax()))
    conditional = np.take_along_axis(conditional, orders[..., None], 2)
    distances = [topic_distances(phi, reference) for own in conditional for phi in own]
    return TopicOutcome(
        TopicPosterior(flat, K, request.words, aligned=False, origin=origin).renumbered(orders),
        conditional, _predictive(chains, orders, conditional),
        np.take_along_axis(masses, orders, 2), np.mean(distances, axis=0),
        _diagnostics(levels, distances),
    )  # fmt: skip


def _predictive(chains, orders, conditional):
    """Topics by the smooth parameters of all draws, in these orders; or the means if some lack."""
    smooth = [chain.draws.smooth[: orders.shape[1]] for chain in chains]
    if any(masses is None for own in smooth for masses in own):
        return conditional
    topics = np.empty_like(conditional)
    for c, s in np.ndindex(orders.shape[:2]):
        masses = smooth[c][s][orders[c, s]]
        topics[c, s] = masses / masses.sum(axis=1, keepdims=True)
    return topics


def _diagnostics(levels, distances):
    return {
        "max_rhat": float(convergence.rhat(levels)),
        "topic_distance": float(np.mean(distances)),
        "log_likelihood": float(levels.mean()),
    }


def sample_topics(corpus, request, progress):
    """Posterior draws of topics, by the sampler asked for or the one that suits the corpus."""
    tokens, probe = as_tokens(corpus), probe_of(corpus)
    sampler, gradient = resolve(len(tokens.words), request)
    if sampler == "gibbs":
        run = gibbs_run(corpus, tokens, request)
    else:
        run = stochastic_run(corpus, tokens, request, sampler, gradient)

    def outcome(chains, done):
        return gather(chains, done, request, probe, run.chosen)

    def watch(chains, done):
        return progress(lambda: (outcome(chains, done),), done / run.plan.n_draws)

    chains, done = run_chains(
        run.chains, run.arguments, run.plan, n_jobs=request.n_jobs, watch=watch
    )
    return outcome(chains, done), run


def resolve(n_tokens, request):
    """(sampler, gradient): those asked for, or those that suit a corpus of this size."""
    few, open_ = n_tokens <= GIBBS_TOKENS, request.asks_for_gradients
    sampler = request.sampler or ("gibbs" if few and not open_ else "cir")
    if sampler == "gibbs":
        if open_:
            raise ValueError(
                f"{request.asks_for_gradients} does not go with sampler='gibbs', which resamples "
                "every token in every sweep. Leave one of them to 'auto'."
            )
        return sampler, "none"
    return sampler, request.gradient or ("saga" if few else "minibatch")


def gibbs_run(corpus, tokens, request):
    """Sweeps over the whole corpus."""
    plan = plan_of(request, GIBBS_PLAN)
    chains = new_gibbs_chains(tokens, request.prior, corpus.n_words, request.n_chains, request.seed)
    chosen = {
        "sampler": "gibbs", "gradient": "none", "batch_size": corpus.n_documents,
        "step_size": np.nan, "thin": plan.thin,
    }  # fmt: skip
    return Run(chains, (tokens, request.prior, plan), plan, chosen)


def stochastic_run(corpus, tokens, request, sampler, gradient):
    """Steps with batches, from a start by Gibbs sweeps over some of the documents."""
    prior, D = request.prior, corpus.n_documents
    usual = REMEMBERED_BATCH if gradient == "saga" else BATCH
    n = min(usual if request.batch_size is None else request.batch_size, D)
    plan = plan_of(request, _steps_plan(-(-D // n), gradient, request.n_draws))
    _warn_of_mirrors(sampler, prior.beta)
    part = streams.of_start_documents(request.seed).permutation(D)[:START_DOCUMENTS]
    starts = gibbs_start(corpus.take(part), request)
    chains = [_started(start, part, corpus, tokens, request, sampler, gradient) for start in starts]
    heaviest = max(chain.state.mean.max() for chain in chains)
    schedule = request.schedule or _schedule(sampler, gradient, n / D, heaviest)
    pieces = Pieces(sampler, gradient, n, schedule)
    if gradient == "control_variate":
        work = partial(find_centre, tokens=tokens, prior=prior, pieces=pieces)
        chains = in_workers(work, chains, request.n_jobs)
    chosen = {
        "sampler": sampler, "gradient": gradient, "batch_size": n,
        "step_size": float(schedule(np.array([plan.n_warmup]))[0]), "thin": plan.thin,
    }  # fmt: skip
    return Run(chains, (tokens, prior, pieces, plan), plan, chosen)


def gibbs_start(corpus, request):
    """Chains of Gibbs sweeps over some documents, as warm as the default is."""
    tokens, plan = as_tokens(corpus), GIBBS_PLAN._replace(n_draws=0)
    chains = new_gibbs_chains(tokens, request.prior, corpus.n_words, request.n_chains, request.seed)
    return run_chains(chains, (tokens, request.prior, plan), plan, n_jobs=request.n_jobs)[0]


def _started(start, part, corpus, tokens, request, sampler, gradient):
    """A chain that goes on from counts of a part of the documents."""
    number = request.n_chains + start.number  # its streams are others than those of its start
    rngs = streams.of_chain(request.seed, number)
    counts, beta, z = word_topics(start.state), request.prior.beta, np.zeros(0, np.int16)
    if gradient != "saga":
        scaled = counts * (corpus.counts.sum() / max(counts.sum(), 1.0))
        state = new_state(scaled, beta, sampler)
    else:
        z, state = (
            np.full(len(tokens.words), -1, np.int16),
            new_state(counts, beta, sampler, counts),
        )
        first = 0
        for d in part:
            length = tokens.starts[d + 1] - tokens.starts[d]
            z[tokens.starts[d] : tokens.starts[d + 1]] = start.state.z[first : first + length]
            first += length
    return StochasticChain(start.number, state, *rngs, z)


def _steps_plan(epoch, gradient, n_draws):
    """Warm-up and thinning in steps, given those of a pass over the documents."""
    # Given topics a rare word hardly leaves the one that has it: remembered topics change slowly.
    passes = 5 if gradient == "saga" else 2
    return Plan(max(epoch, min(10 * epoch, 5000)), max(1, min(passes * epoch, 500)), n_draws)


def _schedule(sampler, gradient, share, heaviest):
    """Constant steps; `share` is that of the documents in a batch."""
    if sampler == "sgld":
        return Constant(min(share, 1.0 / heaviest))
    return Constant((REMEMBERED if gradient == "saga" else FORGOTTEN) * share)


def _warn_of_mirrors(sampler, beta):
    if sampler == "sgrld" and beta <= 0.1:
        warnings.warn(
            f"sampler='sgrld' is badly biased for a topic_word_prior as small as {beta:g}: topics "
            "that are mirrored at zero keep too much of words they do not have, at any step size. "
            "Use sampler='cir', which has the exact step of the same process.",
            UserWarning,
            stacklevel=2,
        )
