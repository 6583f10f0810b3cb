r"""Topics of documents that come in parts, in bounded memory: what `partial_fit` does.

The first documents are kept, and sampled by Gibbs sweeps with splits and mergers of topics, anew
whenever their number has grown by a quarter, until there are `BUFFER` of them: a stream that starts
in a bad mode does not leave it. From then on every document is looked at once. Given φ its tokens
get topics by Gibbs sweeps, which enter the counts :math:`n_{kw}` for good, and φ follows by the
exact step of `cir` towards Dirichlet(β + n): step "saga" of `stochastic` without the memory of z.
The topics of a document are never revised. The first documents would need that most, which is why
they are kept in the buffer.
"""

from dataclasses import dataclass, replace

import numpy as np

from .._base import streams
from ..schedules import Constant
from .collapsed_gibbs import word_topics
from .corpus import Corpus, as_tokens, joined
from .gibbs_chains import DrawPlan, TopicDraws, dirichlet, run_chains
from .outcome import gather, probe_of
from .sampling import BATCH, REMEMBERED, choice, gibbs_start
from .stochastic_chains import StochasticChain, TopicPieces, new_state

__all__ = ["Stream", "absorb", "check_stream", "choices", "summarised"]

BUFFER = 5000  # documents
GROWTH = 1.25


@dataclass
class Stream:
    """What is known of the documents that were seen, as arrays and numbers."""

    seed: int
    counts: np.ndarray  # (n_chains, V, K): topics of all tokens seen
    theta: np.ndarray  # (n_chains, V, K)
    buffer: Corpus | None  # the first documents; None once there are `BUFFER` of them
    n_fitted: int = 0  # documents of the buffer when it was last sampled
    n_seen: int = 0
    n_steps: int = 0
    n_calls: int = 0

    @classmethod
    def empty(cls, seed, n_chains, n_words, n_topics):
        """A stream that has seen no document."""
        nothing = np.zeros((n_chains, n_words, n_topics))
        none = np.zeros(0)
        buffer = Corpus(np.zeros(1, np.int64), none.astype(np.int32), none, n_words)
        return cls(seed, nothing, nothing, buffer)


def check_stream(request, stream=None):
    """Raise `ValueError` for what `partial_fit` does not do, or cannot change on the way."""
    given = {name: getattr(request, name) for name in ("gradient", "n_warmup", "thin")}
    given["sampler"] = None if request.sampler == "cir" else request.sampler
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} does not go with partial_fit, which looks at every document "
                "once. Leave it at 'auto', or use fit."
            )
    if stream is None:
        return
    C, _, K = stream.counts.shape
    numbers = ("n_chains", C, request.n_chains), ("n_components", K, len(request.prior.alpha))
    for name, before, now in numbers:
        if now != before:
            raise ValueError(
                f"{name} was {before} when this stream began and is {now} now. Set it back, or "
                "fit anew."
            )


def absorb(stream, corpus, request):
    """The stream after more documents; None is one that begins."""
    if stream is None:
        shape = request.n_chains, corpus.n_words, len(request.prior.alpha)
        stream = Stream.empty(request.seed, *shape)
    stream = replace(stream, n_calls=stream.n_calls + 1)
    first = 0
    if stream.buffer is not None:
        first = min(BUFFER - stream.buffer.n_documents, corpus.n_documents)
        stream = _buffered(stream, corpus.take(np.arange(first)), request)
    if first < corpus.n_documents:
        stream = _passed(stream, corpus.take(np.arange(first, corpus.n_documents)), request)
    return stream


def _buffered(stream, corpus, request):
    """The stream after documents that are kept in its buffer."""
    buffer = joined(stream.buffer, corpus)
    is_full = buffer.n_documents >= BUFFER
    if not is_full and buffer.n_documents < GROWTH * stream.n_fitted:
        return replace(_passed(stream, corpus, request), buffer=buffer)
    own = replace(request, seed=_seed(stream))
    starts = gibbs_start(buffer, own)
    counts = np.array([word_topics(start.state) for start in starts])
    theta, D = counts + request.prior.beta, buffer.n_documents
    stream = replace(stream, counts=counts, theta=theta, n_fitted=D, n_seen=D)
    return replace(stream, buffer=None if is_full else buffer)


def _seed(stream):
    return streams.stream_seed(stream.seed, stream.n_calls)


def _passed(stream, corpus, request):
    """The stream after documents each of which is looked at once."""
    tokens, prior, D = as_tokens(corpus), request.prior, corpus.n_documents
    n, n_seen = min(BATCH if request.batch_size is None else request.batch_size, D), stream.n_seen
    schedule = request.schedule or Constant(REMEMBERED * n / (n_seen + D))
    done = stream.n_steps
    pieces = TopicPieces("cir", "saga", n, lambda t: schedule(t + done), one_pass=True)
    chains, plan = [], DrawPlan(-(-D // n), 1, 0)
    for c in range(len(stream.counts)):
        state = new_state(stream.counts[c], prior.beta, "cir", stream.counts[c].copy())
        state.theta, state.sums = stream.theta[c].copy(), stream.theta[c].sum(axis=0)
        z = np.full(len(tokens.words), -1, np.int16)
        chains.append(StochasticChain(c, state, *streams.of_chain(_seed(stream), c), z))
    chains, _ = run_chains(chains, (tokens, prior, pieces, plan), plan, n_jobs=request.n_jobs)
    for chain in chains:
        chain.catch_up(np.arange(corpus.n_words), prior.beta)
    counts = np.array([chain.state.base for chain in chains])
    theta = np.array([chain.state.theta for chain in chains])
    n_steps = done + plan.n_steps
    return replace(stream, counts=counts, theta=theta, n_seen=n_seen + D, n_steps=n_steps)


def choices(stream, request):
    """What every "auto" became in the last steps."""
    n = BATCH if request.batch_size is None else request.batch_size
    schedule = request.schedule or Constant(REMEMBERED * n / stream.n_seen)
    return choice("cir", "saga", n, float(schedule(np.array([stream.n_steps]))[0]), thin=1)


@dataclass
class _Drawn:
    """The end of a chain, as `gather` reads it."""

    draws: object


def summarised(stream, corpus, request, chosen):
    """The outcome: draws of φ given the topics of all tokens, `n_draws` of each chain."""
    chains = []
    for c, counts in enumerate(stream.counts):
        rng = streams.of_chain(_seed(stream), c).start
        masses = np.ascontiguousarray(counts.T) + request.prior.beta
        drawn = [dirichlet(masses, rng) for _ in range(request.n_draws)]
        none = [None] * request.n_draws
        chains.append(_Drawn(TopicDraws(drawn, [masses] * request.n_draws, none)))
    outcome = gather(chains, request.n_draws, request, probe_of(corpus), chosen)
    first = outcome.conditional[:, :1]
    return replace(outcome, conditional=first, predictive=first, masses=outcome.masses[:, :1])
