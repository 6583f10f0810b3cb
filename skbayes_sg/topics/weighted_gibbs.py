r"""Collapsed Gibbs sampling for counts that are not whole numbers.

A count c becomes ⌈c⌉ tokens of weight c/⌈c⌉, each of which adds its weight to all counts. The law
of the assignments is that of `collapsed_gibbs` with these counts; the topic of a token of weight c
has the probabilities

.. math::

    p(z = k) \propto \frac{\Gamma(n_{dk} + \alpha_k + c)}{\Gamma(n_{dk} + \alpha_k)}
        \frac{\Gamma(n_{kw} + \beta + c)}{\Gamma(n_{kw} + \beta)}
        \frac{\Gamma(n_k + V\beta)}{\Gamma(n_k + V\beta + c)}.
"""

import math

import numpy as np

from .._base.jit import entry, inner, jit
from .collapsed_gibbs import count_document

__all__ = ["resample_weighted", "sweep_weighted"]


@inner
def _log_rising(n, c):
    """log(Γ(n + c) / Γ(n))."""
    return math.lgamma(n + c) - math.lgamma(n)


@inner
def _quantile(counts, n_dk, n_k, alpha, beta, mass, weight, masses, u):
    """Return the topic at the quantile u of p(z = k), which the module docstring gives."""
    K, largest = n_k.shape[0], -np.inf
    for k in range(K):
        masses[k] = (
            _log_rising(n_dk[k] + alpha[k], weight)
            + _log_rising(counts[k] + beta, weight)
            - _log_rising(n_k[k] + mass, weight)
        )
        largest = max(largest, masses[k])
    total = 0.0
    for k in range(K):
        total += math.exp(masses[k] - largest)
        masses[k] = total
    k = 0
    while masses[k] <= u * total and k < K - 1:
        k += 1
    return k


@inner
def _add(z, n_wk, n_k, n_dk, w, i, weight):
    """Add `weight` to all counts of the topic of token i, an occurrence of word w.

    The counts are kept from becoming negative by rounding errors.
    """
    k = z[i]
    n_wk[w, k] = max(n_wk[w, k] + weight, 0.0)
    n_k[k] = max(n_k[k] + weight, 0.0)
    n_dk[k] = max(n_dk[k] + weight, 0.0)


@jit
def resample_weighted(state, prior, tokens, d, first, last, u):
    """Resample the tokens ``first:last`` of document d, at the quantiles u of their laws."""
    z, n_wk, _, n_k, n_dk, _, masses = state
    alpha, beta = prior
    starts, words, weights = tokens
    count_document(z, weights, starts[d], starts[d + 1], n_dk)
    mass = n_wk.shape[0] * beta
    for i in range(first, last):
        w, c = words[i], weights[i]
        if z[i] >= 0:
            _add(z, n_wk, n_k, n_dk, w, i, -c)
        z[i] = _quantile(n_wk[w], n_dk, n_k, alpha, beta, mass, c, masses, u[i - first])
        _add(z, n_wk, n_k, n_dk, w, i, c)


@entry
def sweep_weighted(state, prior, tokens, first, last, u, rng):
    """Resample all tokens of the documents ``first:last``.

    `u` is working memory, as long as the longest document.
    """
    for d in range(first, last):
        start, stop = tokens.starts[d], tokens.starts[d + 1]
        for k in range(stop - start):
            u[k] = rng.random()
        resample_weighted(state, prior, tokens, d, start, stop, u)
