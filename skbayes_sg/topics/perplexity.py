"""Perplexity of unseen documents under any topics; `skbayes_sg.topics` has the formulas."""

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .._base import streams
from .._base.validation import check_count
from .corpus import as_corpus, halves
from .held_out import document_log_likelihood, log_score

__all__ = ["completion_log_likelihood", "completion_perplexity", "left_to_right_log_likelihood"]
__all__ += ["split_documents"]


def split_documents(X, random_state=None):
    """Split every document into a half to be observed and a half to be predicted.

    The observed half is random, and the larger one if the number of tokens is odd.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_documents, n_words)
        Counts of words.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    observed, held_out : CSR arrays of shape (n_documents, n_words)
        They add up to X.

    Raises
    ------
    ValueError
        For counts that are negative or not finite.

    Examples
    --------
    >>> from skbayes_sg.topics import split_documents
    >>> observed, held_out = split_documents([[2, 1, 0], [0, 0, 4]], random_state=0)
    >>> observed.sum(axis=1), (observed + held_out).toarray()
    (array([2., 2.]), array([[2., 1., 0.], [0., 0., 4.]]))
    """
    corpus = as_corpus(check_counts(X))
    rng = streams.of_predictions(streams.seed_of(random_state))
    shape = corpus.n_documents, corpus.n_words
    return tuple(
        sparse.csr_array((half.counts, half.words, half.starts), shape=shape)
        for half in halves(corpus, rng)
    )


def check_counts(X, name="X"):
    """Return X as a matrix of finite nonnegative counts, or raise `ValueError`."""
    X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name=name)
    if X.size and (X.data if sparse.issparse(X) else X).min(initial=0.0) < 0.0:
        raise ValueError(f"{name} has negative values; it must be a matrix of counts of words.")
    return X


def _states(topics, n_words):
    """Return topics as a list of matrices (K, V) whose rows add up to 1."""
    if isinstance(topics, np.ndarray) and topics.ndim == 3:
        topics = list(topics)
    elif not isinstance(topics, (list, tuple)) or np.ndim(topics[0]) != 2:
        topics = [topics]
    found = [check_array(phi, dtype=np.float64, input_name="topics") for phi in topics]
    for phi in found:
        if phi.shape[1] != n_words:
            raise ValueError(f"topics has {phi.shape[1]} words, but X has {n_words}.")
        if phi.min() < 0.0 or (phi.sum(axis=1) <= 0.0).any():
            raise ValueError("topics must be nonnegative, and no topic may be all zero.")
    return [phi / phi.sum(axis=1, keepdims=True) for phi in found]


def _alpha(doc_topic_prior, n_topics):
    alpha = np.asarray(doc_topic_prior, dtype=np.float64)
    if alpha.shape not in ((), (n_topics,)) or not ((alpha > 0.0) & np.isfinite(alpha)).all():
        raise ValueError(
            f"doc_topic_prior must be a positive number or {n_topics} of them, "
            f"got {doc_topic_prior!r}."
        )
    return np.ascontiguousarray(np.broadcast_to(alpha, (n_topics,)))


def completion_log_likelihood(topics, observed, held_out, doc_topic_prior=0.1, *, n_jobs=None):
    """Mean log predictive probability of a held-out token, minus log of `completion_perplexity`.

    Parameters
    ----------
    topics : array of shape (n_topics, n_words) or (n_states, n_topics, n_words), or a list
        Topic-word matrices of any origin. Rows are divided by their sums. The predictions of
        several matrices, which may have different numbers of topics, are averaged.
    observed, held_out : {array-like, sparse matrix} of shape (n_documents, n_words)
        Two halves of the same documents, as `split_documents` makes them.
    doc_topic_prior : float or array of shape (n_topics,), default=0.1
        The parameter α of the Dirichlet prior of the mixes.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For counts that are negative or not finite, halves of different documents, topics that are
        negative, all zero or of other words, and a `doc_topic_prior` that is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.topics import completion_log_likelihood
    >>> topics = np.full((2, 4), 0.25)
    >>> completion_log_likelihood(topics, [[1, 1, 0, 0]], [[1, 0, 0, 1]])
    -1.386...
    """
    observed, held_out = (
        as_corpus(check_counts(X, name))
        for X, name in ((observed, "observed"), (held_out, "held_out"))
    )
    if observed.n_documents != held_out.n_documents or observed.n_words != held_out.n_words:
        raise ValueError("observed and held_out must have the same documents and the same words.")
    states = _states(topics, held_out.n_words)
    alphas = [_alpha(doc_topic_prior, len(phi)) for phi in states]
    return log_score(states, alphas, observed, held_out, n_jobs)


def completion_perplexity(topics, observed, held_out, doc_topic_prior=0.1, *, n_jobs=None):
    """Perplexity by document completion, of topics of any origin (formula: `skbayes_sg.topics`).

    CVB0 with fixed topics finds the mixes. It is deterministic, and predicts as well as long Gibbs
    runs for each document.

    Parameters
    ----------
    topics : array of shape (n_topics, n_words) or (n_states, n_topics, n_words), or a list
        Topic-word matrices of any origin. Rows are divided by their sums. The predictions of
        several matrices, which may have different numbers of topics, are averaged.
    observed, held_out : {array-like, sparse matrix} of shape (n_documents, n_words)
        Two halves of the same documents, as `split_documents` makes them.
    doc_topic_prior : float or array of shape (n_topics,), default=0.1
        The parameter α of the Dirichlet prior of the mixes.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.

    Returns
    -------
    float
        From 1 (every word was certain) to infinity; V for uniform topics.

    Raises
    ------
    ValueError
        As by `completion_log_likelihood`.

    Examples
    --------
    The topics of scikit-learn, and uniform topics:

    >>> import numpy as np
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from skbayes_sg.topics import completion_perplexity, split_documents
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.repeat([[4, 4, 0.1, 0.1], [0.1, 0.1, 4, 4]], 20, axis=0))
    >>> observed, held_out = split_documents(X, random_state=0)
    >>> lda = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> completion_perplexity(lda.components_, observed, held_out).__round__()
    2
    >>> completion_perplexity(np.ones((2, 4)), observed, held_out).__round__(6)
    4.0
    """
    score = completion_log_likelihood(topics, observed, held_out, doc_topic_prior, n_jobs=n_jobs)
    return float(np.exp(-score))


def left_to_right_log_likelihood(
    topics, X, doc_topic_prior=0.1, *, n_particles=20, random_state=None, n_jobs=None
):
    r"""Log of an unbiased estimate of the probability of each document under any mix.

    For one state φ this is the left-to-right estimate of p(w_d | φ), for several states the mean of
    their estimates. The estimate is unbiased
    (``tests/topics/test_topics.py::test_left_to_right_is_unbiased``), but its logarithm is too
    small on average; more particles reduce this bias. The work grows with the square of the length
    of a document.

    Parameters
    ----------
    topics : array of shape (n_topics, n_words) or (n_states, n_topics, n_words), or a list
        Topic-word matrices of any origin. Rows are divided by their sums.
    X : {array-like, sparse matrix} of shape (n_documents, n_words)
        Counts of words, whole numbers.
    doc_topic_prior : float or array of shape (n_topics,), default=0.1
        The parameter α of the Dirichlet prior of the mixes.
    n_particles : int, default=20
        Number of independent runs over each document.
    random_state : int, RandomState instance or None, default=None
        Seed.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.

    Returns
    -------
    ndarray of shape (n_documents,)
        The probability is that of the tokens in their order, without a factor for the number of
        ways to order them.

    Raises
    ------
    ValueError
        For counts that are negative or not whole, topics that are negative, all zero or of other
        words, a `doc_topic_prior` that is not positive, and an `n_particles` that is not a positive
        int.

    References
    ----------
    H. M. Wallach, I. Murray, R. Salakhutdinov and D. Mimno (2009). Evaluation methods for topic
    models. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.topics import left_to_right_log_likelihood
    >>> left_to_right_log_likelihood(np.full((2, 4), 0.25), [[1, 1, 0, 0], [0, 0, 0, 1]])
    array([-2.77..., -1.38...])
    """
    check_count("n_particles", n_particles)
    corpus = as_corpus(check_counts(X))
    if not corpus.is_whole:
        raise ValueError("X must contain whole numbers: other counts have no probability.")
    states = _states(topics, corpus.n_words)
    alphas = [_alpha(doc_topic_prior, len(phi)) for phi in states]
    seed = streams.seed_of(random_state)
    return document_log_likelihood(states, alphas, corpus, n_particles, seed, n_jobs)
