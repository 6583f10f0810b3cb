"""Documents as kernels read them: the words of a sparse count matrix in one array."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..kernels.layout import frozen

__all__ = ["Corpus", "Tokens", "as_corpus", "as_tokens", "check_not_negative", "check_words"]
__all__ += ["halves", "joined", "warn_of_weights"]


class Corpus(NamedTuple):
    """Counts of words in documents, in CSR form. All arrays are read-only."""

    starts: np.ndarray  # int64, (n_documents + 1,): the first entry of each document
    words: np.ndarray  # int32, (n_entries,): ascending within a document
    counts: np.ndarray  # float64, (n_entries,): positive
    n_words: int  # size V of the vocabulary

    @property
    def n_documents(self):
        """Number of documents, empty ones included."""
        return len(self.starts) - 1

    @property
    def is_whole(self):
        """Whether all counts are whole numbers."""
        return bool((self.counts == np.rint(self.counts)).all())

    def take(self, documents):
        """The corpus of the given documents, in this order."""
        lengths = np.diff(self.starts)[documents]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(self.starts[:-1][documents] - starts[:-1], lengths)
        entries = entries + np.arange(starts[-1])
        return _made(starts, self.words[entries], self.counts[entries], self.n_words)


class Tokens(NamedTuple):
    """Occurrences of words. A count c gives ⌈c⌉ tokens of weight c/⌈c⌉, which is 1 if c is whole.

    All arrays are read-only.
    """

    starts: np.ndarray  # int64, (n_documents + 1,)
    words: np.ndarray  # int32, (n_tokens,)
    weights: np.ndarray  # float64, (n_tokens,); empty if all are 1


def check_not_negative(X, owner):
    """Raise `ValueError` for negative counts, dense or sparse."""
    if (X.data if sparse.issparse(X) else X).min(initial=0.0) < 0.0:
        raise ValueError(f"Negative values in data passed to {owner}: X must be counts of words.")


def check_words(corpus, owner):
    """Raise `ValueError` for a corpus without any word."""
    if not len(corpus.words):
        raise ValueError(f"X has no words: {owner} needs documents with counts above 0.")


def warn_of_weights(corpus):
    """Warn if most entries are not whole numbers, such as those of tf-idf."""
    off = corpus.counts[corpus.counts != np.rint(corpus.counts)]
    if 2 * len(off) > len(corpus.counts):
        warnings.warn(
            f"Most entries of X, such as {off[0]:.3g}, are not whole numbers. Topics are a model "
            "of counts of words: tf-idf and other weights are taken as if a word had occurred so "
            "often, which makes the posterior too wide or too narrow. Use the counts, as "
            "sklearn.feature_extraction.text.CountVectorizer returns them.",
            UserWarning,
            stacklevel=4,
        )


def as_corpus(X):
    """Return the corpus of a dense or sparse matrix of finite nonnegative counts."""
    X = sparse.csr_array(X, dtype=np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if (X.data == 0.0).any():
        X = X.copy()
        X.eliminate_zeros()
    return _made(X.indptr, X.indices, X.data.copy(), X.shape[1])


def joined(first, second):
    """Return a corpus with the documents of two corpora that have the same vocabulary."""
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    words = np.concatenate([first.words, second.words])
    return _made(starts, words, np.concatenate([first.counts, second.counts]), first.n_words)


def _made(starts, words, counts, n_words):
    arrays = frozen(starts, np.int64), frozen(words, np.int32), frozen(counts)
    return Corpus(*arrays, int(n_words))


def as_tokens(corpus):
    """The tokens of a corpus, document by document."""
    copies = np.ceil(corpus.counts).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(copies)])
    weights = np.zeros(0) if corpus.is_whole else np.repeat(corpus.counts / copies, copies)
    words = np.repeat(corpus.words, copies)
    return Tokens(frozen(ends[corpus.starts], np.int64), frozen(words, np.int32), frozen(weights))


def halves(corpus, rng):
    """Return two corpora, with a random half of the tokens of each document and with the rest.

    The first half is the larger one if the number of tokens is odd.
    """
    tokens = as_tokens(corpus)
    lengths = np.diff(tokens.starts)
    document = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(document)) - np.repeat(tokens.starts[:-1], lengths)
    order = np.lexsort((rng.random(len(document)), document))  # shuffles within documents
    is_left = np.empty(len(document), bool)
    is_left[order] = place >= (np.repeat(lengths, lengths) + 1) // 2
    weights = tokens.weights if len(tokens.weights) else np.ones(len(document))
    shape = (corpus.n_documents, corpus.n_words)
    parts = ((weights[k], (document[k], tokens.words[k])) for k in (~is_left, is_left))
    return tuple(as_corpus(sparse.coo_array(part, shape=shape)) for part in parts)
