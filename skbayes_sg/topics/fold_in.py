r"""Documents under given topics: mixes, predictions and probabilities.

All functions take the topics as a matrix ``phi`` (V, K) with a row for each word.
"""

import math

import numpy as np

from .._base.jit import entry, inner
from ..kernels.layout import frozen

__all__ = ["add_predictions", "draw_mixes", "draw_topic", "fold_in", "left_to_right", "word_rows"]

PASSES = 20  # default number of passes of CVB0 over a document
BURN_IN = 20  # Gibbs sweeps over a document before its mix is drawn


def word_rows(topics):
    """Normalised topics (K, V) as kernels read them: (V, K) in C order."""
    return frozen(np.asarray(topics).T)


@inner
def _reset(alpha, length, n_k, gamma, m):
    """Spread all tokens over the topics in proportion to the prior."""
    total = 0.0
    for k in range(alpha.shape[0]):
        total += alpha[k]
    for k in range(alpha.shape[0]):
        n_k[k] = length * alpha[k] / total
        for j in range(m):
            gamma[j, k] = alpha[k] / total


@inner
def _pass_over(corpus, phi, alpha, first, last, n_k, gamma):
    """Make a pass of CVB0 over a document, skipping words with probability 0 in all topics."""
    K = alpha.shape[0]
    for e in range(first, last):
        w, count, own, total = corpus.words[e], corpus.counts[e], gamma[e - first], 0.0
        one = min(count, 1.0)  # what the token itself adds to n_k, which is left out
        for k in range(K):
            total += phi[w, k] * (alpha[k] + max(n_k[k] - one * own[k], 0.0))
        if total <= 0.0:
            continue
        for k in range(K):
            fresh = phi[w, k] * (alpha[k] + max(n_k[k] - one * own[k], 0.0)) / total
            n_k[k] += count * (fresh - own[k])
            own[k] = fresh


@entry
def fold_in(corpus, phi, alpha, first, last, n_passes, mixes_out):
    r"""Add the mixes of the documents ``first:last`` under fixed topics to `mixes_out`.

    This is CVB0 (Asuncion et al. 2009; Teh et al. 2007, to zeroth order) with fixed topics. For
    every word of a document, with N_k the sum of γ over its tokens,

    .. math:: \gamma_{wk} \propto \varphi_{kw} (\alpha_k + N_k - \gamma_{wk}), \qquad
        \theta_k = \frac{N_k + \alpha_k}{\sum_j N_j + \alpha_j}.

    The result is deterministic and close to the posterior mean of θ; a document without words has
    the prior mean.
    """
    K, longest = alpha.shape[0], 0
    for d in range(first, last):
        longest = max(longest, corpus.starts[d + 1] - corpus.starts[d])
    n_k, gamma = np.empty(K), np.empty((longest, K))
    for d in range(first, last):
        start, stop, length, total = corpus.starts[d], corpus.starts[d + 1], 0.0, 0.0
        for e in range(start, stop):
            length += corpus.counts[e]
        _reset(alpha, length, n_k, gamma, stop - start)
        for _ in range(n_passes):
            _pass_over(corpus, phi, alpha, start, stop, n_k, gamma)
        for k in range(K):
            total += n_k[k] + alpha[k]
        for k in range(K):
            mixes_out[d - first, k] += (n_k[k] + alpha[k]) / total


@entry
def add_predictions(corpus, phi, mixes, first, last, p_out):
    """Add Σ_k θ_dk φ_kw to `p_out`, which has one number for each entry of the corpus."""
    for d in range(first, last):
        for e in range(corpus.starts[d], corpus.starts[d + 1]):
            w = corpus.words[e]
            for k in range(phi.shape[1]):
                p_out[e] += mixes[d - first, k] * phi[w, k]


@inner
def draw_topic(phi, alpha, w, n_k, u, masses_out):
    """Return the topic at the quantile u of the weights φ_kw (n_k + α_k), and their sum.

    The cumulative sums of the weights are written to `masses_out`.
    """
    K, total = alpha.shape[0], 0.0
    for k in range(K):
        total += phi[w, k] * (n_k[k] + alpha[k])
        masses_out[k] = total
    k = 0
    while masses_out[k] <= u * total and k < K - 1:
        k += 1
    return k, total


@entry
def draw_mixes(tokens, phi, alpha, first, last, n_sweeps, rng, mixes_out):
    """Draw the mix θ of each of the documents ``first:last``: Gibbs sweeps, then θ ~ Dirichlet.

    A token adds its weight to the counts (see `collapsed_gibbs`), which is exact for weight 1.
    """
    K = alpha.shape[0]
    n_k, masses = np.empty(K), np.empty(K)
    for d in range(first, last):
        start, stop = tokens.starts[d], tokens.starts[d + 1]
        z = np.full(stop - start, -1)
        n_k[:] = 0.0
        for _ in range(n_sweeps):
            for i in range(start, stop):
                weight = tokens.weights[i] if tokens.weights.shape[0] > 0 else 1.0
                if z[i - start] >= 0:
                    n_k[z[i - start]] -= weight
                k, _ = draw_topic(phi, alpha, tokens.words[i], n_k, rng.random(), masses)
                n_k[k] += weight
                z[i - start] = k
        total = 0.0
        for k in range(K):
            masses[k] = rng.standard_gamma(max(n_k[k], 0.0) + alpha[k])
            total += masses[k]
        for k in range(K):
            mixes_out[d - first, k] = masses[k] / total if total > 0.0 else 1.0 / K


@entry
def left_to_right(tokens, phi, alpha, first, last, n_particles, rng, log_p_out):
    r"""Write the log of an unbiased estimate of p(w | φ) for each of the documents ``first:last``.

    This is the left-to-right algorithm (Wallach et al. 2009). For each token n of a particle, one
    Gibbs sweep given w_1, ..., w_{n-1} resamples the topics of the tokens before it; then the
    particle gains the factor :math:`p_n = \sum_k \varphi_{k w_n} (n_k + \alpha_k) / (n - 1 + \sum
    \alpha)`, and the token gets a topic. The estimate is the mean over particles of :math:`\prod_n
    p_n`. As in annealed importance sampling (Neal 2001), its expectation is p(w | φ) for any number
    of particles.
    """
    K, alpha_sum = alpha.shape[0], 0.0
    n_k, masses, logs = np.empty(K), np.empty(K), np.empty(n_particles)
    for k in range(K):
        alpha_sum += alpha[k]
    for d in range(first, last):
        start, stop = tokens.starts[d], tokens.starts[d + 1]
        z = np.empty(stop - start, np.int64)
        for particle in range(n_particles):
            n_k[:] = 0.0
            log_p = 0.0
            for n in range(stop - start):
                for i in range(n):
                    n_k[z[i]] -= 1.0
                    w = tokens.words[start + i]
                    z[i], _ = draw_topic(phi, alpha, w, n_k, rng.random(), masses)
                    n_k[z[i]] += 1.0
                w = tokens.words[start + n]
                z[n], total = draw_topic(phi, alpha, w, n_k, rng.random(), masses)
                n_k[z[n]] += 1.0
                log_p += math.log(total / (n + alpha_sum)) if total > 0.0 else -np.inf
            logs[particle] = log_p
        largest = logs.max()
        if largest == -np.inf:
            log_p_out[d - first] = -np.inf
        else:
            log_p_out[d - first] = largest + math.log(np.exp(logs - largest).mean())
