r"""Expected counts of words by topic, given all assignments: they have less noise than the counts.

Given the topics of all other tokens, a token has the topic k with the probability
:math:`p(z_i = k \mid z_{-i}, w)` of `collapsed_gibbs`. The sums of these

.. math:: \hat n_{kw} = \sum_{i:\, w_i = w} p(z_i = k \mid z_{-i}, w)

have the same posterior mean as the counts :math:`n_{kw}`, by the law of total expectation, and vary
less from state to state: a word that occurs once is counted in one topic, but expected in several.
This improves predictions from few states (Papanikolaou, Foulds, Rubin and Tsoumakas 2017). The
uncertainty of the topics is computed from the counts themselves.
"""

import numpy as np

from .._base.jit import entry
from ..kernels.copies import copy

__all__ = ["expected_counts_of_others", "expected_masses"]


@entry
def expected_counts_of_others(z, tokens, prior, n_wk, n_k, counts_out):
    """Add p(z_i = k | z_-i, w), for each token that has a topic, to `counts_out` (V, K).

    `n_wk` and `n_k` are the counts of the assignments z; all tokens have weight 1.
    """
    (starts, words, _), (alpha, beta) = tokens, prior
    (V, K), n_dk, p = n_wk.shape, np.empty(n_k.shape[0]), np.empty(n_k.shape[0])
    inverse = 1.0 / (n_k + V * beta)
    for d in range(starts.shape[0] - 1):
        copy(alpha, n_dk)
        for i in range(starts[d], starts[d + 1]):
            if z[i] >= 0:
                n_dk[z[i]] += 1.0
        for i in range(starts[d], starts[d + 1]):
            w, own, total = words[i], z[i], 0.0
            if own < 0:
                continue
            for k in range(K):
                p[k] = n_dk[k] * (n_wk[w, k] + beta) * inverse[k]
            # The sum has its own loop. LLVM puts a check before a vectorised loop that also stores:
            # if its arrays are close to each other in memory, another loop runs, which adds in
            # another order, and the last bits would change from run to run.
            for k in range(K):
                total += p[k]
            alone = (n_dk[own] - 1.0) * (n_wk[w, own] - 1.0 + beta) / (n_k[own] - 1.0 + V * beta)
            total += alone - p[own]
            p[own] = alone
            for k in range(K):
                counts_out[w, k] += p[k] / total


def expected_masses(z, tokens, prior, n_wk):
    """Dirichlet parameters (K, V) for the expected counts; None if tokens have weights."""
    if len(tokens.weights):
        return None
    counts = np.zeros(n_wk.shape)
    expected_counts_of_others(z, tokens, prior, n_wk, n_wk.sum(axis=0), counts)
    return np.ascontiguousarray(counts.T) + prior.beta
