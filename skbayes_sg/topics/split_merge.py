r"""Moves of whole topics during the warm-up: similar topics are merged, mixed ones are split.

Moves of single tokens do not leave a state in which one topic should be two, or two topics should
be one, because the states in between are far less likely. Therefore each of the K topics is split
for a trial, by Gibbs sweeps with two topics over its own tokens, and pairs of similar topics are
merged for a trial. The criterion is the change of

.. math::

    \log p(w, z) = \sum_d \sum_k \log \frac{\Gamma(n_{dk} + \alpha_k)}{\Gamma(\alpha_k)}
    + \sum_k \Bigl( \sum_w \log \frac{\Gamma(n_{kw} + \beta)}{\Gamma(\beta)}
    - \log \frac{\Gamma(n_k + V\beta)}{\Gamma(V\beta)} \Bigr) + \text{const}

A merger leaves a topic empty, which is used for the split with the largest gain if this gain is
positive and exceeds the loss by the merger. If every split reduces log p(w, z), as in most real
corpora, no pair is merged even where that is a gain, because mergers alone make predictions worse.
These moves choose the start of the chain; they are not part of the sampler, and end before the
warm-up does.
"""

from itertools import combinations

import numpy as np
from scipy.special import gammaln

from .collapsed_gibbs import DirichletPrior, new_assignments, recount, sweep
from .corpus import Tokens
from .weighted_gibbs import sweep_weighted

__all__ = ["log_joint", "split_and_merge"]

SWEEPS = 6  # Gibbs sweeps with two topics by which a topic is split for a trial
PAIRS = 2  # candidate pairs for each topic


def _log_rising(a, n):
    """Σ log(Γ(a + n) / Γ(a)) over the entries of n, most of which are 0."""
    n = n[n > 0]
    return float(gammaln(a + n).sum() - len(n) * gammaln(a))


def _log_topic(n_d, n_w, alpha, beta):
    """The contribution of a topic to log p(w, z), from its counts by document and by word."""
    total = n_w.sum(keepdims=True)
    return _log_rising(alpha, n_d) + _log_rising(beta, n_w) - _log_rising(len(n_w) * beta, total)


def _table(z, places, weights, n_places, n_topics):
    """Number of tokens by topic and place, a document or a word: (K, n_places)."""
    cells = z.astype(np.int64) * n_places + places
    return np.bincount(cells, weights, n_topics * n_places).reshape(n_topics, n_places)


def _tables(z, documents, tokens, n_words, n_topics):
    """Numbers of tokens by topic and document, and by topic and word."""
    weights = tokens.weights if len(tokens.weights) else None
    return (
        _table(z, documents, weights, len(tokens.starts) - 1, n_topics),
        _table(z, tokens.words, weights, n_words, n_topics),
    )


def _log_topics(by_document, by_word, alpha, beta):
    rows = zip(by_document, by_word, alpha, strict=True)
    return [_log_topic(n_d, n_w, a, beta) for n_d, n_w, a in rows]


def log_joint(z, documents, tokens, alpha, beta, n_words):
    """log p(w, z) up to a constant; `alpha` has one entry for each topic 0, 1, ..."""
    return sum(_log_topics(*_tables(z, documents, tokens, n_words, len(alpha)), alpha, beta))


def _part(tokens, chosen):
    """The chosen tokens as a corpus of the documents that have any of them."""
    weights = tokens.weights[chosen] if len(tokens.weights) else tokens.weights
    starts = np.unique(np.searchsorted(chosen, tokens.starts))
    made = Tokens(starts, tokens.words[chosen], weights)
    for array in made:
        array.flags.writeable = False
    return made


def _split(own, alpha, beta, n_words, rng):
    """Split a topic with the tokens `own` into two topics by Gibbs sweeps.

    Return log p(w, z) of these tokens after the split, and their z, which is 0 or 1.
    """
    lengths, two = np.diff(own.starts), np.array([alpha, alpha])
    two.flags.writeable = False
    state, u = new_assignments(own, n_words, 2), np.empty(lengths.max())
    kernel = sweep_weighted if len(own.weights) else sweep
    for _ in range(SWEEPS):
        kernel(state, DirichletPrior(two, beta), own, 0, len(lengths), u, rng)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    return log_joint(state.z, documents, own, two, beta, n_words), state.z


def _splits(tokens, chosen, levels, prior, n_words, rng):
    """For each topic, return the gain of log p(w, z) by its split, and the z of its tokens."""
    found = []
    for own, level, alpha in zip(chosen, levels, prior.alpha, strict=True):
        after, z = -np.inf, None
        if len(own) > 1:
            after, z = _split(_part(tokens, own), alpha, prior.beta, n_words, rng)
        found.append((after - level, z))
    return found


def _similar_pairs(by_word):
    """Pairs of topics, the most similar first."""
    root = np.sqrt(by_word / np.maximum(by_word.sum(axis=1, keepdims=True), 1.0))
    affinity = root @ root.T
    pairs = list(combinations(range(len(root)), 2))
    pairs.sort(key=lambda pair: -affinity[pair])
    return pairs[: PAIRS * len(root)]


def _mergers(by_document, by_word, levels, prior):
    """Pairs of topics with the loss of log p(w, z) by their merger, the smallest loss first."""
    found = []
    for a, b in _similar_pairs(by_word):
        both = by_document[a] + by_document[b], by_word[a] + by_word[b]
        after = _log_topic(*both, prior.alpha[a], prior.beta)
        found.append((levels[a] + levels[b] - after, (a, b)))
    return sorted(found)


def split_and_merge(state, prior, tokens, rng):
    """Merge and split topics where that increases log p(w, z), in place.

    Return the number of such moves.
    """
    (V, K), z = state.counts.shape, state.z
    documents = np.repeat(np.arange(len(tokens.starts) - 1), np.diff(tokens.starts))
    tables = _tables(z, documents, tokens, V, K)
    levels, chosen = _log_topics(*tables, *prior), [np.flatnonzero(z == k) for k in range(K)]
    splits = _splits(tokens, chosen, levels, prior, V, rng)
    mergers = _mergers(*tables, levels, prior)
    touched, moves = set(), 0
    for loss, (a, b) in mergers:
        free = [k for k in range(K) if k not in touched | {a, b}]
        if touched & {a, b} or not free:
            continue
        c = max(free, key=lambda k: splits[k][0])
        if splits[c][0] > max(loss, 0.0):
            z[chosen[b]] = a
            z[chosen[c][splits[c][1] == 1]] = b
            touched |= {a, b, c}
            moves += 1
    if moves:
        recount(state, tokens)
    return moves
