r"""Moves of whole topics while chains warm up: two like topics become one, a mixed one becomes two.

One token at a time, a chain does not leave a state in which one topic holds what should be two, or
two topics what should be one: it would have to pass through far less likely ones. Here K topics are
split for a trial, each by Gibbs sweeps with two topics over its own tokens; pairs of like topics
are merged for a trial. What counts is by how much

.. math::

    \log p(w, z) = \sum_d \sum_k \log \frac{\Gamma(n_{dk} + \alpha_k)}{\Gamma(\alpha_k)}
    + \sum_k \Bigl( \sum_w \log \frac{\Gamma(n_{kw} + \beta)}{\Gamma(\beta)}
    - \log \frac{\Gamma(n_k + V\beta)}{\Gamma(V\beta)} \Bigr) + \text{const}

grows by a split and falls by a merger: the topic that a merger leaves empty goes to the split that
gains most, while it gains more than the merger loses. A choice of the start, and no part of the
sampler: it ends with the warm-up.
"""

from itertools import combinations

import numpy as np
from scipy.special import gammaln

from .collapsed_gibbs import Prior, new_assignments, recount, sweep, word_topics
from .corpus import Tokens
from .weighted_gibbs import sweep_weighted

__all__ = ["log_joint", "split_and_merge"]

SWEEPS = 6
PAIRS = 2  # pairs of topics that are looked at, for each topic


def _log_rising(a, n):
    return gammaln(a + n) - gammaln(a)


def log_joint(z, documents, tokens, alpha, beta, n_words):
    """log p(w, z) up to a constant, of tokens with topics numbered 0, 1, ...; `alpha` of each."""
    weights = tokens.weights if len(tokens.weights) else None
    total = 0.0
    for k, a in enumerate(alpha):
        own = z == k
        part = None if weights is None else weights[own]
        n_d = np.bincount(documents[own], part)
        n_w = np.bincount(tokens.words[own], part)
        total += _log_rising(a, n_d).sum() + _log_rising(beta, n_w).sum()
        total -= _log_rising(n_words * beta, n_d.sum())
    return float(total)


def _part(tokens, chosen):
    """Some of the tokens, as a corpus of their own."""
    weights = tokens.weights[chosen] if len(tokens.weights) else tokens.weights
    made = Tokens(np.searchsorted(chosen, tokens.starts), tokens.words[chosen], weights)
    for array in made:
        array.flags.writeable = False
    return made


def _split(tokens, documents, chosen, alpha, beta, n_words, rng):
    """Two topics for the chosen tokens, all of one topic: (gain in log p(w, z), their z)."""
    own, n_documents = _part(tokens, chosen), len(tokens.starts) - 1
    two = np.array([alpha, alpha])
    two.flags.writeable = False
    state, u = new_assignments(own, n_words, 2), np.empty(np.diff(own.starts).max())
    kernel = sweep_weighted if len(own.weights) else sweep
    for _ in range(SWEEPS):
        kernel(state, Prior(two, beta), own, 0, n_documents, u, rng)
    after = log_joint(state.z, documents[chosen], own, two, beta, n_words)
    before = log_joint(0 * state.z, documents[chosen], own, two[:1], beta, n_words)
    return after - before, state.z


def _like_pairs(n_wk, n_k):
    """Pairs of topics, the most alike first."""
    root = np.sqrt(n_wk / np.maximum(n_k, 1.0))
    affinity = root.T @ root
    pairs = list(combinations(range(len(n_k)), 2))
    pairs.sort(key=lambda pair: -affinity[pair])
    return pairs[: PAIRS * len(n_k)]


def _merger_loss(tokens, documents, chosen, z, pair, alpha, beta, n_words):
    """By how much log p(w, z) falls if a pair of topics becomes one."""
    a, b = pair
    both = np.sort(np.concatenate([chosen[a], chosen[b]]))
    own, second = _part(tokens, both), (z[both] == b).astype(np.int64)
    here = documents[both]
    before = log_joint(second, here, own, alpha[list(pair)], beta, n_words)
    return before - log_joint(0 * second, here, own, alpha[[a]], beta, n_words)


def split_and_merge(state, prior, tokens, rng):
    """Replace topics where that makes log p(w, z) larger, in place; returns how many."""
    (V, K), (alpha, beta), z = state.counts.shape, prior, state.z
    documents = np.repeat(np.arange(len(tokens.starts) - 1), np.diff(tokens.starts))
    chosen = [np.flatnonzero(z == k) for k in range(K)]
    splits = [
        _split(tokens, documents, own, alpha[k], beta, V, rng) if len(own) > 1 else (-np.inf, None)
        for k, own in enumerate(chosen)
    ]
    mergers = sorted(
        (_merger_loss(tokens, documents, chosen, z, pair, alpha, beta, V), pair)
        for pair in _like_pairs(word_topics(state), state.n_k)
    )
    touched, moves = set(), 0
    for loss, (a, b) in mergers:
        free = [k for k in range(K) if k not in touched | {a, b}]
        if touched & {a, b} or not free:
            continue
        c = max(free, key=lambda k: splits[k][0])
        if splits[c][0] > loss:
            z[chosen[b]] = a
            z[chosen[c][splits[c][1] == 1]] = b
            touched |= {a, b, c}
            moves += 1
    if moves:
        recount(state, tokens)
    return moves
