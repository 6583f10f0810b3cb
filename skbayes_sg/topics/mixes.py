"""The mixes of topics of documents: means and draws, given the topics of posterior draws."""

import numpy as np

from .._base.threads import in_threads
from .fold_in import BURN_IN, PASSES, draw_mixes, fold_in, word_rows
from .gibbs_chains import dirichlet

__all__ = ["blocks", "compact", "mean_mixes", "mix_samples", "mixes_of"]

BLOCK = 64  # documents that are processed together and have their own random stream


def blocks(n_documents):
    """Consecutive ranges (first, last) of documents."""
    return [(d, min(d + BLOCK, n_documents)) for d in range(0, n_documents, BLOCK)]


def compact(corpus):
    """Return the words that occur in the corpus, and the corpus with these words alone."""
    used, words = np.unique(corpus.words, return_inverse=True)
    words = words.astype(np.int32)
    words.flags.writeable = False
    return used, corpus._replace(words=words, n_words=len(used))


def mixes_of(corpus, phi, alpha, n_jobs=None, n_passes=PASSES):
    """Mixes (n_documents, K) of the documents under topics ``phi`` (V, K)."""
    mixes = np.zeros((corpus.n_documents, phi.shape[1]))

    def work(block):
        fold_in(corpus, phi, alpha, *block, n_passes, mixes[slice(*block)])

    in_threads(work, blocks(corpus.n_documents), n_jobs)
    return mixes


def mean_mixes(states, corpus, alpha, n_jobs=None):
    """Mean of the mixes of documents over states, which are normalised topics (K, V)."""
    used, corpus = compact(corpus)
    total = 0.0
    for phi in states:
        total = total + mixes_of(corpus, word_rows(phi[:, used]), alpha, n_jobs)
    return total / len(states)


def mix_samples(means, masses, tokens, alpha, n_samples, rng):
    """Draw the mixes of all documents n_samples times, (n_samples, D, K).

    For each of them topics are drawn anew, given the assignments of the states in turn: state s has
    the Dirichlet parameters ``masses[s, :, None] * means[s]``. After the last state comes the
    first.
    """
    D, n_states = len(tokens.starts) - 1, len(means)
    mixes = np.empty((n_samples, D, len(alpha)))
    for s, own in enumerate(mixes):
        concentrations = masses[s % n_states, :, None] * means[s % n_states]
        phi = np.maximum(dirichlet(concentrations, rng), np.finfo(float).tiny)
        draw_mixes(tokens, word_rows(phi), alpha, 0, D, BURN_IN, rng, own)
    return mixes
