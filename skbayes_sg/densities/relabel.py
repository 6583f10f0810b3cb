"""Labels of components, the same in all draws (Stephens 2000).

The posterior does not change when components swap their labels. For means and deviations of single
components each draw gets the permutation under which its classification of the rows is closest, in
Kullback-Leibler divergence, to the mean classification Q of all draws; Q and the permutations are
found in turns.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

__all__ = ["permutations_of"]

ROUNDS = 10  # turns, at most, of finding permutations given Q and Q given permutations
TINY = 1e-12  # smaller probabilities are replaced by this before logarithms are taken


def permutations_of(P):
    """Return a permutation of the components of each draw, (n_draws, K).

    P (n_draws, n_rows, K) are the probabilities of the components for some rows under each draw.

    Component k of the relabelled draw s is component ``found[s, k]`` of the draw.
    """
    S, _, K = P.shape
    found = np.tile(np.arange(K), (S, 1))
    if K == 1:
        return found
    log_P = np.log(np.maximum(P, TINY))
    own = np.einsum("snk,snk->sk", P, log_P)
    Q = P[0]
    for _ in range(ROUNDS):
        before = found
        # The cost of giving component j of a draw the label k is Σ_n P_nj log(P_nj / Q_nk).
        costs = own[:, :, None] - np.einsum("snj,nk->sjk", P, np.log(np.maximum(Q, TINY)))
        found = np.stack([linear_sum_assignment(cost.T)[1] for cost in costs])
        Q = np.take_along_axis(P, found[:, None, :], axis=2).mean(axis=0)
        if np.array_equal(found, before):
            break
    return found
