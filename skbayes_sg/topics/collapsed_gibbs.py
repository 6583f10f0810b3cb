r"""Collapsed Gibbs sampling of the topic of every token (Griffiths and Steyvers 2004).

Topics :math:`\varphi_k \sim` Dirichlet(β) over V words, mixes :math:`\theta_d \sim` Dirichlet(α),
topics :math:`z_{di} \sim \theta_d` of tokens, words :math:`w_{di} \sim \varphi_{z_{di}}`. With φ
and θ integrated out, the law of all assignments is

.. math::

    p(z \mid w) \propto \prod_d \prod_k \Gamma(n_{dk} + \alpha_k)
        \prod_k \frac{\prod_w \Gamma(n_{kw} + \beta)}{\Gamma(n_k + V \beta)},

and the topic of one token, given all others, has the probabilities (with counts of the others)

.. math:: p(z = k) \propto q_k\, (n_{kw} + \beta), \qquad
    q_k = \frac{n_{dk} + \alpha_k}{n_k + V \beta}.

Their sum has two parts (Yao, Mimno and McCallum 2009): a sum over the few topics in which the word
occurs, and ``β Σ q_k``, which is kept up to date. A sweep resamples every token.

Each topic of a word is packed with its count into one number, so that all of them lie in one or two
cache lines.
"""

from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inner, jit

__all__ = ["Assignments", "DirichletPrior", "count_document", "new_assignments", "recount"]
__all__ += ["resample", "sweep", "word_topics"]

BITS = 16  # number of low bits of a packed count that hold its topic
TOPIC = (1 << BITS) - 1  # mask of the low bits of a packed count, its topic
ONE = 1 << BITS  # one token in a packed count


class DirichletPrior(NamedTuple):
    """The parameters of the Dirichlet priors."""

    alpha: np.ndarray  # (K,), for the topics of a document; read-only
    beta: float  # for the words of a topic


class Assignments(NamedTuple):
    """The topic of every token, and the counts that follow from these."""

    z: np.ndarray  # int16, (n_tokens,); -1 if the token has no topic yet
    counts: np.ndarray  # (V, K), tokens of a word by topic: int64, packed; float64 for weights
    n_listed: np.ndarray  # int16, (V,): number of packed topics of each word
    n_k: np.ndarray  # float64, (K,): counts of all tokens by topic
    n_dk: np.ndarray  # float64, (K,): counts of the current document
    q: np.ndarray  # (K,): q_k of the current document
    masses: np.ndarray  # (K,): working memory


def new_assignments(tokens, n_words, n_topics):
    """The state in which no token has a topic yet."""
    K, kind = n_topics, np.float64 if len(tokens.weights) else np.int64
    z, counts = np.full(len(tokens.words), -1, np.int16), np.zeros((n_words, K), kind)
    return Assignments(z, counts, np.zeros(n_words, np.int16), *(np.zeros(K) for _ in range(4)))


def word_topics(state):
    """The counts n_kw as a matrix (V, K) of float64."""
    if state.counts.dtype == np.float64:
        return state.counts.copy()
    V, K = state.counts.shape
    words, places = np.nonzero(np.arange(K) < state.n_listed[:, None])
    packed, found = state.counts[words, places], np.zeros((V, K))
    found[words, packed & TOPIC] = packed >> BITS
    return found


def recount(state, tokens):
    """Set all counts to those of the assignments z, in place."""
    V, K = state.counts.shape
    weights = tokens.weights if len(tokens.weights) else None
    cells = tokens.words.astype(np.int64) * K + state.z
    found = np.bincount(cells, weights, V * K).reshape(V, K)
    state.n_k[:] = found.sum(axis=0)
    if weights is not None:
        state.counts[:] = found
        return
    order = np.argsort(found == 0, axis=1, kind="stable")
    state.counts[:] = (np.take_along_axis(found, order, 1) << BITS) | order
    state.n_listed[:] = (found > 0).sum(axis=1)


@inner
def count_document(z, weights, start, stop, n_dk_out):
    """Count the topics of a document; an empty array of weights means that all are 1."""
    for k in range(n_dk_out.shape[0]):
        n_dk_out[k] = 0.0
    for i in range(start, stop):
        if z[i] >= 0:
            n_dk_out[z[i]] += weights[i] if weights.shape[0] > 0 else 1.0


@inner
def _resample(z, words, counts, n_listed, n_k, n_dk, q, masses, alpha, beta, first, last, u):
    """Resample the tokens ``first:last`` of the current document, the k-th at the quantile u[k]."""
    # This is one loop without helpers, because passing rows of arrays to a function costs more than
    # the rest. Most tokens keep their topic; then only q is changed, and restored.
    K, mass, q_sum = n_k.shape[0], counts.shape[0] * beta, q.sum()
    for i in range(first, last):
        w, old, place, before, fresh = words[i], z[i], -1, 0.0, 0.0
        m = n_listed[w]
        if old >= 0:  # q becomes what it is without the token
            before, fresh = q[old], (n_dk[old] - 1.0 + alpha[old]) / (n_k[old] - 1.0 + mass)
            q_sum += fresh - before
            q[old] = fresh
        total = 0.0  # sum of q_k n_kw over the topics of the word
        for j in range(m):
            own = counts[w, j] & TOPIC == old
            place = j if own else place
            total += ((counts[w, j] >> BITS) - own) * q[counts[w, j] & TOPIC]
            masses[j] = total
        rest, j = u[i - first] * (total + beta * q_sum), 0
        if rest < total:
            for other in range(m):  # over all topics, which avoids an unpredictable branch
                j += masses[other] <= rest
            j = min(j, m - 1)
            new = counts[w, j] & TOPIC
        else:
            rest = (rest - total) / beta
            new, total = np.int64(0), q[0]
            while total <= rest and new < K - 1:
                new += 1
                total += q[new]
            while j < m and counts[w, j] & TOPIC != new:
                j += 1
        if new == old:
            q_sum += before - fresh
            q[old] = before
            continue
        if j == m:  # the word is new in the topic
            counts[w, m] = new
            m += 1
        counts[w, j] += ONE
        if old >= 0:
            n_k[old] -= 1.0
            n_dk[old] -= 1.0
            counts[w, place] -= ONE
            if counts[w, place] < ONE:  # the old topic has none of the word left
                m -= 1
                counts[w, place] = counts[w, m]
        n_listed[w] = m
        n_k[new] += 1.0
        n_dk[new] += 1.0
        fresh = (n_dk[new] + alpha[new]) / (n_k[new] + mass)
        q_sum += fresh - q[new]
        q[new] = fresh
        z[i] = new


@jit
def resample(state, prior, tokens, d, first, last, u):
    """Resample the tokens ``first:last`` of document d, at the quantiles u of their laws."""
    z, counts, n_listed, n_k, n_dk, q, masses = state
    alpha, beta = prior
    starts, words, weights = tokens
    count_document(z, weights, starts[d], starts[d + 1], n_dk)
    for k in range(n_k.shape[0]):
        q[k] = (n_dk[k] + alpha[k]) / (n_k[k] + counts.shape[0] * beta)
    _resample(z, words, counts, n_listed, n_k, n_dk, q, masses, alpha, beta, first, last, u)


@entry
def sweep(state, prior, tokens, first, last, u, rng):
    """Resample all tokens of the documents ``first:last``.

    `u` is working memory, as long as the longest document.
    """
    for d in range(first, last):
        start, stop = tokens.starts[d], tokens.starts[d + 1]
        for k in range(stop - start):
            u[k] = rng.random()
        resample(state, prior, tokens, d, start, stop, u)
