r"""Topics of documents that arrive in parts, in bounded memory, for `partial_fit`.

The first `BUFFER` documents are kept in a buffer. Whenever their number has grown by a quarter,
they are sampled again by Gibbs sweeps with splits and mergers of topics, because a stream that
starts in a bad mode does not leave it. After that every document is used once: Gibbs sweeps given φ
assign topics to its tokens, which enter the counts :math:`n_{kw}` for good, and φ follows by the
exact step of `cir` towards Dirichlet(β + n). This is the step "saga" of `stochastic_chains` without
the memory of z. The topics of a document are never revised; the first documents would need that
most, hence the buffer.
"""

from dataclasses import dataclass, replace

import numpy as np

from .._base import streams
from ..schedules import Constant
from .collapsed_gibbs import DirichletPrior, word_topics
from .corpus import Corpus, as_tokens, joined
from .gibbs_chains import DrawPlan, TopicDraws, dirichlet, run_chains
from .outcome import outcome_of, probe_of
from .sampling import BATCH, SAGA_RATE, gibbs_start, settings_used
from .stochastic_chains import StochasticChain, TopicPieces, new_state

__all__ = ["Stream", "absorb", "check_stream", "settings_of_stream", "summarised"]

BUFFER = 5000  # number of first documents that are kept
GROWTH = 1.25  # factor by which the buffer grows before it is sampled again
START, PASS, DRAWS = 0, 1, 2  # parts of a call, each with random numbers of its own


@dataclass
class Stream:
    """The state of a stream of documents, as arrays and numbers."""

    seed: int
    counts: np.ndarray  # (n_chains, V, K): counts of all tokens so far, by topic
    theta: np.ndarray  # (n_chains, V, K): expanded topics θ
    buffer: Corpus | None  # the first documents; None after `BUFFER` of them
    prior: DirichletPrior  # under which tokens have got their topics
    n_fitted: int = 0  # documents in the buffer when it was last sampled
    n_seen: int = 0
    n_steps: int = 0
    n_calls: int = 0

    @classmethod
    def empty(cls, seed, n_chains, n_words, prior):
        """Return a stream without documents."""
        nothing = np.zeros((n_chains, n_words, len(prior.alpha)))
        none = np.zeros(0)
        buffer = Corpus(np.zeros(1, np.int64), none.astype(np.int32), none, n_words)
        return cls(seed, nothing, nothing, buffer, prior)


def check_stream(request, stream=None):
    """Raise `ValueError` for settings that `partial_fit` does not accept, or cannot change."""
    given = {name: getattr(request, name) for name in ("gradient", "n_warmup", "thin")}
    given["sampler"] = None if request.sampler == "cir" else request.sampler
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} cannot be used with partial_fit, which uses every document "
                "once. Set it to 'auto', or use fit."
            )
    if stream is None:
        return
    C, _, K = stream.counts.shape
    now, past = request.prior, stream.prior
    given = (
        ("n_chains", C, request.n_chains),
        ("n_components", K, len(now.alpha)),
        ("topic_word_prior", past.beta, now.beta),
        ("doc_topic_prior", _told(past.alpha), _told(now.alpha)),
    )
    for name, was, is_now in given:
        if is_now != was:
            raise ValueError(
                f"{name} was {was} at the first call of partial_fit and is {is_now} now. Set it "
                "back, or use a new estimator."
            )


def _told(alpha):
    """The numbers of a prior: one if all are equal."""
    return alpha.tolist() if np.ptp(alpha) > 0.0 else float(alpha[0])


def absorb(stream, corpus, request):
    """Return the stream after more documents; `stream` is None before the first ones."""
    if stream is None:
        stream = Stream.empty(request.seed, request.n_chains, corpus.n_words, request.prior)
    stream = replace(stream, n_calls=stream.n_calls + 1)
    first = 0
    if stream.buffer is not None:
        first = min(BUFFER - stream.buffer.n_documents, corpus.n_documents)
        stream = _buffered(stream, corpus.take(np.arange(first)), request)
    if first < corpus.n_documents:
        stream = _passed(stream, corpus.take(np.arange(first, corpus.n_documents)), request)
    return stream


def _buffered(stream, corpus, request):
    """Return the stream after documents that are added to its buffer."""
    buffer = joined(stream.buffer, corpus)
    is_full = buffer.n_documents >= BUFFER
    if not is_full and buffer.n_documents < GROWTH * stream.n_fitted:
        return replace(_passed(stream, corpus, request), buffer=buffer)
    own = replace(request, seed=_seed(stream, START))
    starts = gibbs_start(buffer, own)
    counts = np.array([word_topics(start.state) for start in starts])
    theta, D = counts + request.prior.beta, buffer.n_documents
    stream = replace(stream, counts=counts, theta=theta, n_fitted=D, n_seen=D)
    return replace(stream, buffer=None if is_full else buffer)


def _seed(stream, part):
    """Return the seed of a part of the present call: all parts have streams by chain."""
    return streams.stream_seed(stream.seed, stream.n_calls, part)


def _passed(stream, corpus, request):
    """Return the stream after documents that are used once, in steps of batches."""
    tokens, prior, D = as_tokens(corpus), request.prior, corpus.n_documents
    n, n_seen = min(BATCH if request.batch_size is None else request.batch_size, D), stream.n_seen
    schedule = request.schedule or Constant(SAGA_RATE * n / (n_seen + D))
    done = stream.n_steps
    pieces = TopicPieces("cir", "saga", n, lambda t: schedule(t + done), one_pass=True)
    chains, plan = [], DrawPlan(-(-D // n), 1, 0)
    for c in range(len(stream.counts)):
        state = new_state(stream.counts[c], prior.beta, "cir", stream.counts[c].copy())
        state.theta, state.sums = stream.theta[c].copy(), stream.theta[c].sum(axis=0)
        z = np.full(len(tokens.words), -1, np.int16)
        chains.append(StochasticChain(c, state, *streams.of_chain(_seed(stream, PASS), c), z))
    chains, _ = run_chains(chains, (tokens, prior, pieces, plan), plan, n_jobs=request.n_jobs)
    for chain in chains:
        chain.catch_up(np.arange(corpus.n_words), prior.beta)
    counts = np.array([chain.state.base for chain in chains])
    theta = np.array([chain.state.theta for chain in chains])
    n_steps = done + plan.n_steps
    return replace(stream, counts=counts, theta=theta, n_seen=n_seen + D, n_steps=n_steps)


def settings_of_stream(stream, request):
    """Return a dict of the settings of the last steps, with what every "auto" became."""
    n = BATCH if request.batch_size is None else request.batch_size
    schedule = request.schedule or Constant(SAGA_RATE * n / stream.n_seen)
    return settings_used("cir", "saga", n, float(schedule(np.array([stream.n_steps]))[0]), thin=1)


@dataclass
class _Drawn:
    """The draws of a chain, in the form that `outcome_of` reads."""

    draws: object


def summarised(stream, corpus, request, chosen):
    """Return the `TopicOutcome` of the stream.

    It has `n_draws` draws of φ for each chain, given the topics of all tokens so far.
    """
    chains = []
    for c, counts in enumerate(stream.counts):
        rng = streams.of_chain(_seed(stream, DRAWS), c).start
        masses = np.ascontiguousarray(counts.T) + request.prior.beta
        drawn = [dirichlet(masses, rng) for _ in range(request.n_draws)]
        none = [None] * request.n_draws
        chains.append(_Drawn(TopicDraws(drawn, [masses] * request.n_draws, none)))
    outcome = outcome_of(chains, request.n_draws, request, probe_of(corpus), chosen)
    outcome.posterior.evidence["one_pass"] = 1.0
    first = outcome.conditional[:, :1]
    return replace(outcome, conditional=first, predictive=first, masses=outcome.masses[:, :1])
