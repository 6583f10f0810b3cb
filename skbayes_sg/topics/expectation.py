r"""Expected counts of words by topic in a batch of documents, given φ.

Given φ the documents are independent, and the topic of a token has the probabilities

.. math:: p(z_i = k \mid z_{-i}, \varphi) \propto (n_{dk} + \alpha_k)\, \varphi_{k w_i}

with counts of the other tokens; the mix is integrated out. `expected_counts` starts new Gibbs
sweeps and averages these probabilities over the later ones. `renew` makes a sweep from the previous
topics of the tokens, which leaves p(z | φ) invariant; or, with the masses of the topics,

.. math:: p(z_i = k \mid z_{-i}, \theta) \propto
    (n_{dk} + \alpha_k)\, \frac{\theta_{k w_i}}{V \beta + n_k},

which leaves p(z | θ) invariant for θ_kw ~ Gamma(β + n_kw, 1): see `stochastic_chains`. Both
functions are given their uniform numbers.
"""

import numpy as np

from .._base.jit import entry
from .fold_in import draw_topic

__all__ = ["expected_counts", "list_words", "renew"]


@entry
def list_words(tokens, documents, position, words_out):
    """List the words of a batch, each once, in order of appearance; return their number.

    `position`, which is -1 for all words of the vocabulary, is set to the places in this list.
    """
    m = 0
    for d in documents:
        for i in range(tokens.starts[d], tokens.starts[d + 1]):
            w = tokens.words[i]
            if position[w] < 0:
                position[w] = m
                words_out[m] = w
                m += 1
    return m


@entry
def expected_counts(tokens, documents, phi, position, alpha, n_burn, n_keep, u, counts_out):
    """Add E[n_kw | φ], summed over the batch, to `counts_out`.

    The rows of `phi` and of `counts_out` are the words of the batch; `position` has their places.

    `u` contains ``n_burn + n_keep`` uniform numbers for each token of the batch.
    """
    starts, words, weights = tokens
    K, longest, used = alpha.shape[0], 0, 0
    for d in documents:
        longest = max(longest, starts[d + 1] - starts[d])
    z, n_dk, p = np.empty(longest, np.int64), np.empty(K), np.empty(K)
    for d in documents:
        start = starts[d]
        n_dk[:] = 0.0
        for sweep in range(n_burn + n_keep):
            for i in range(start, starts[d + 1]):
                weight = weights[i] if weights.shape[0] > 0 else 1.0
                if sweep > 0:
                    n_dk[z[i - start]] -= weight
                row = position[words[i]]
                k, total = draw_topic(phi, alpha, row, n_dk, u[used], p)
                used += 1
                n_dk[k] += weight
                z[i - start] = k
                if sweep >= n_burn:
                    share, before = weight / (n_keep * total), 0.0
                    for j in range(K):
                        counts_out[row, j] += share * (p[j] - before)
                        before = p[j]


@entry
def renew(tokens, documents, theta, masses, position, alpha, z, u, change_out):
    """Make a Gibbs sweep over the topics `z` of a batch, given θ; add the change of the counts.

    `masses` are the Vβ + n_k at the beginning of the sweep, or empty if θ are the φ. Tokens without
    a topic (-1) get one. `u` contains a uniform number for each token of the batch.
    """
    starts, words, weights = tokens
    K, used, own = alpha.shape[0], 0, masses.copy()
    n_dk, odds, p, none = np.empty(K), np.empty(K), np.empty(K), np.zeros(K)
    for d in documents:
        n_dk[:] = 0.0
        for i in range(starts[d], starts[d + 1]):
            if z[i] >= 0:
                n_dk[z[i]] += weights[i] if weights.shape[0] > 0 else 1.0
        for i in range(starts[d], starts[d + 1]):
            weight, row = weights[i] if weights.shape[0] > 0 else 1.0, position[words[i]]
            if z[i] >= 0:
                n_dk[z[i]] -= weight
                change_out[row, z[i]] -= weight
                if own.shape[0] > 0:
                    own[z[i]] -= weight
            for k in range(K):
                odds[k] = n_dk[k] + alpha[k]
                if own.shape[0] > 0:
                    odds[k] /= own[k]
            z[i], _ = draw_topic(theta, none, row, odds, u[used], p)
            used += 1
            n_dk[z[i]] += weight
            change_out[row, z[i]] += weight
            if own.shape[0] > 0:
                own[z[i]] += weight
