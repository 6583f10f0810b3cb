r"""Collapsed Gibbs sampling of the topic of every token (Griffiths and Steyvers 2004).

Topics :math:`\varphi_k \sim` Dirichlet(β) over V words, mixes :math:`\theta_d \sim` Dirichlet(α),
topics :math:`z_{di} \sim \theta_d` of tokens, words :math:`w_{di} \sim \varphi_{z_{di}}`. With φ
and θ integrated out, the law of all assignments is

.. math::

    p(z \mid w) \propto \prod_d \prod_k \Gamma(n_{dk} + \alpha_k)
        \prod_k \frac{\prod_w \Gamma(n_{kw} + \beta)}{\Gamma(n_k + V \beta)},

and the topic of one token, given all others (counts without it), has the chances

.. math:: p(z = k) \propto q_k\, (n_{kw} + \beta), \qquad
    q_k = \frac{n_{dk} + \alpha_k}{n_k + V \beta}.

They are drawn from by parts (Yao, Mimno and McCallum 2009): the sum over the few topics in which
the word occurs, and ``β Σ q_k``, which is kept up to date. A sweep does so for every token.
"""

from typing import NamedTuple

import numpy as np

from .._jit import entry, inner, jit

__all__ = ["Assignments", "Prior", "new_assignments", "resample", "sweep"]


class Prior(NamedTuple):
    """The parameters of the Dirichlet priors."""

    alpha: np.ndarray  # (K,), of the topics in a document; read-only
    beta: float  # of the words in a topic


class Assignments(NamedTuple):
    """The topic of every token, and what is counted of them."""

    z: np.ndarray  # int16, (n_tokens,); -1: none yet
    n_wk: np.ndarray  # float64, (V, K): tokens of a word in a topic
    n_k: np.ndarray  # float64, (K,)
    listed: np.ndarray  # int16, (V, K): the topics in which a word occurs, `n_listed` of them
    n_listed: np.ndarray  # int16, (V,)
    n_dk: np.ndarray  # float64, (K,): of the document that is looked at
    q: np.ndarray  # (K,): of that document
    masses: np.ndarray  # (K,): working memory


def new_assignments(n_tokens, n_words, n_topics):
    """No token has a topic yet."""
    K = n_topics
    return Assignments(
        np.full(n_tokens, -1, np.int16), np.zeros((n_words, K)), np.zeros(K),
        np.zeros((n_words, K), np.int16), np.zeros(n_words, np.int16), np.zeros(K),
        np.zeros(K), np.zeros(K),
    )  # fmt: skip


@inner
def count_document(z, weights, start, stop, n_dk_out):
    """Count the topics of a document; weights of length 0 are all 1."""
    for k in range(n_dk_out.shape[0]):
        n_dk_out[k] = 0.0
    for i in range(start, stop):
        if z[i] >= 0:
            n_dk_out[z[i]] += weights[i] if weights.shape[0] > 0 else 1.0


@inner
def _resample(z, words, n_wk, n_k, listed, n_listed, n_dk, q, masses, alpha, beta, first, last, u):
    """Resample the tokens ``first:last`` of the open document, the k-th at the quantile u[k]."""
    # One loop without helpers: handing rows of arrays to another function costs more than the rest.
    K, mass, q_sum = n_k.shape[0], n_wk.shape[0] * beta, q.sum()
    for i in range(first, last):
        w, old = words[i], z[i]
        counts, topics, m = n_wk[w], listed[w], n_listed[w]
        if old >= 0:  # take it out
            counts[old] -= 1.0
            n_k[old] -= 1.0
            n_dk[old] -= 1.0
            if counts[old] == 0.0:
                j = 0
                while topics[j] != old:
                    j += 1
                m -= 1
                topics[j] = topics[m]
            fresh = (n_dk[old] + alpha[old]) / (n_k[old] + mass)
            q_sum += fresh - q[old]
            q[old] = fresh
        total = 0.0  # of q_k n_kw
        for j in range(m):
            k = topics[j]
            total += counts[k] * q[k]
            masses[j] = total
        rest = u[i - first] * (total + beta * q_sum)
        if rest < total:
            j = 0
            while masses[j] <= rest and j < m - 1:
                j += 1
            new = np.int64(topics[j])
        else:
            rest = (rest - total) / beta
            new, total = np.int64(0), q[0]
            while total <= rest and new < K - 1:
                new += 1
                total += q[new]
        if counts[new] == 0.0:  # put it in
            topics[m] = new
            m += 1
        n_listed[w] = m
        counts[new] += 1.0
        n_k[new] += 1.0
        n_dk[new] += 1.0
        fresh = (n_dk[new] + alpha[new]) / (n_k[new] + mass)
        q_sum += fresh - q[new]
        q[new] = fresh
        z[i] = new


@jit
def resample(state, prior, tokens, d, first, last, u):
    """Give the tokens ``first:last`` of document d topics at the quantiles u of their laws."""
    z, n_wk, n_k, listed, n_listed, n_dk, q, masses = state
    alpha, beta = prior
    starts, words, weights = tokens
    count_document(z, weights, starts[d], starts[d + 1], n_dk)
    for k in range(n_k.shape[0]):
        q[k] = (n_dk[k] + alpha[k]) / (n_k[k] + n_wk.shape[0] * beta)
    _resample(z, words, n_wk, n_k, listed, n_listed, n_dk, q, masses, alpha, beta, first, last, u)


@entry
def sweep(state, prior, tokens, first, last, u, rng):
    """Resample all tokens of the documents ``first:last``; `u` is as long as the longest one."""
    for d in range(first, last):
        start, stop = tokens.starts[d], tokens.starts[d + 1]
        for k in range(stop - start):
            u[k] = rng.random()
        resample(state, prior, tokens, d, start, stop, u)
