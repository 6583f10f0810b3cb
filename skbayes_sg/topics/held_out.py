"""Scores of unseen documents under given topics; `skbayes_sg.topics` has the formulas."""

from functools import partial

import numpy as np
from scipy.special import logsumexp

from .._base import streams
from .._base.threads import in_threads
from .corpus import as_tokens, halves
from .fold_in import add_predictions, left_to_right, word_rows
from .mixes import blocks, compact, mixes_of

__all__ = ["document_log_likelihood", "log_score", "mean_predictions", "score_of_states"]

PARTICLES = 20  # particles of each left-to-right estimate in `score_of_states`


def mean_predictions(states, alphas, observed, held_out, n_jobs=None):
    """Predictive probability of each entry of `held_out`: the mean over states of Σ_k θ_dk φ_kw."""
    words = np.concatenate([observed.words, held_out.words])
    used, joined = compact(observed._replace(words=words))
    cut = len(observed.words)
    observed = observed._replace(words=joined.words[:cut])
    held_out = held_out._replace(words=joined.words[cut:])
    p = np.zeros(len(held_out.words))
    for phi, alpha in zip(states, alphas, strict=True):
        rows = word_rows(phi[:, used])
        mixes = mixes_of(observed, rows, alpha, n_jobs)
        add_predictions(held_out, rows, mixes, 0, held_out.n_documents, p)
    return p / len(states)


def log_score(states, alphas, observed, held_out, n_jobs=None):
    """Mean log predictive probability of a held-out token; `ValueError` without such tokens."""
    if not len(held_out.words):
        raise ValueError(
            "No document has two tokens, so there are no held-out tokens. Perplexity by document "
            "completion needs documents with at least two tokens."
        )
    with np.errstate(divide="ignore"):
        log_p = np.log(mean_predictions(states, alphas, observed, held_out, n_jobs))
    return float(held_out.counts @ log_p / held_out.counts.sum())


def document_log_likelihood(states, alphas, corpus, n_particles, seed, n_jobs=None):
    """Log of the mean over the states of the left-to-right estimates of p(w_d | φ)."""
    used, corpus = compact(corpus)
    tokens, found = as_tokens(corpus), np.empty((len(states), corpus.n_documents))
    parts = blocks(corpus.n_documents)

    def work(phi, alpha, out, numbered):
        s, b = numbered
        rng = streams.of_documents(seed, s, b)
        left_to_right(tokens, phi, alpha, *parts[b], n_particles, rng, out[slice(*parts[b])])

    for s, (phi, alpha) in enumerate(zip(states, alphas, strict=True)):
        of_state = partial(work, word_rows(phi[:, used]), alpha, found[s])
        in_threads(of_state, [(s, b) for b in range(len(parts))], n_jobs)
    return logsumexp(found, axis=0) - np.log(len(states))


def score_of_states(states, alpha, corpus, observed, method, seed, n_jobs=None):
    """Mean log predictive probability of a token of a corpus, by one of two methods.

    Parameters
    ----------
    states : sequence of ndarray of shape (K, V)
        Topics of posterior draws, over which predictions are averaged.
    alpha : ndarray of shape (K,)
    corpus : Corpus
    observed : Corpus or None
        Parts of the same documents that determine the mixes. If None, the documents are split.
    method : {"completion", "left_to_right"}
    seed : int
    n_jobs : int, optional
    """
    alphas = [alpha] * len(states)
    if method == "left_to_right" and observed is None:
        if not (corpus.is_whole and len(corpus.words)):
            raise ValueError(
                "method='left_to_right' needs counts that are whole numbers and not all zero."
            )
        log_p = document_log_likelihood(states, alphas, corpus, PARTICLES, seed, n_jobs)
        return log_p.sum() / corpus.counts.sum()
    if method != "completion":
        raise ValueError(
            f"method must be 'completion', or 'left_to_right' without observed, got {method!r}."
        )
    if observed is None:
        observed, corpus = halves(corpus, streams.of_predictions(seed))
    elif observed.n_documents != corpus.n_documents:
        raise ValueError("observed and X must be parts of the same documents.")
    return log_score(states, alphas, observed, corpus, n_jobs)
