"""Corpora as count matrices: real ones where they are at hand, and one that is made."""

import numpy as np
from _tables import needed
from scipy import sparse


def load(name):
    """(counts, vocabulary) of "ap" or "kos", or "20newsgroups", which scikit-learn downloads."""
    if name == "20newsgroups":
        return _newsgroups()
    z = needed(f"{name}.npz")
    shape = len(z["indptr"]) - 1, len(z["vocab"])
    counts = z["counts"].astype(float), z["indices"].astype(np.int32), z["indptr"].astype(np.int64)
    return sparse.csr_array(counts, shape=shape), z["vocab"]


def _newsgroups():
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.feature_extraction.text import CountVectorizer

    texts = fetch_20newsgroups(remove=("headers", "footers", "quotes")).data
    words = CountVectorizer(stop_words="english", min_df=10, max_df=0.5)
    return sparse.csr_array(words.fit_transform(texts), dtype=float), words.get_feature_names_out()


def made_topics(n_topics, n_words, rng, beta=0.05):
    """Topics from their prior."""
    return rng.dirichlet(np.full(n_words, beta), n_topics)


def made_documents(topics, n, length, rng, alpha=0.1):
    """Documents of given topics, a CSR matrix."""
    K, V = topics.shape
    per_topic = rng.multinomial(length, rng.dirichlet(np.full(K, alpha), n))
    z = np.repeat(np.tile(np.arange(K), n), per_topic.ravel())
    words, u = np.empty(len(z), np.int64), rng.random(len(z))
    for k, phi in enumerate(topics):
        own = z == k
        words[own] = np.minimum(np.searchsorted(np.cumsum(phi), u[own], side="right"), V - 1)
    documents = np.repeat(np.arange(n), length)
    return sparse.csr_array((np.ones(len(z)), (documents, words)), shape=(n, V))
