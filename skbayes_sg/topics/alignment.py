r"""Alignment: matching the topics of one draw to those of another, as their labels are arbitrary.

The posterior does not change when topics with the same prior α of their shares are renumbered, so
an average of "topic 3" over chains means nothing. Here the topics of every draw are renumbered by
the assignment (Kuhn 1955) that maximises the sum of the affinities :math:`\sum_w \sqrt{\varphi_{kw}
\varphi'_{k'w}}` with a reference. Distances are reported as total variation :math:`\tfrac12 \sum_w
|\varphi_{kw} - \varphi'_{k'w}|`, from 0 (the same topic) to 1 (no word in common). Chains in
different modes have topics without a counterpart, which have large distances.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

__all__ = ["align_topics", "alignment", "topic_distances"]

FORBIDDEN = -1e6  # affinity of topics that must not change places
ROUNDS = 5  # largest number of times that all draws are aligned to a new reference


def align_topics(topics, reference, doc_topic_prior=0.1):
    """Return the order of the topics in which they are nearest to those of a reference.

    Parameters
    ----------
    topics, reference : array of shape (n_topics, n_words)
        Topic-word probabilities: rows that add up to 1.
    doc_topic_prior : float or array of shape (n_topics,), default=0.1
        The parameters α of the topics. Only topics with the same α change places, because the
        posterior depends on which topic has which α.

    Returns
    -------
    ndarray of int of shape (n_topics,)
        ``topics[order]`` is aligned.

    Raises
    ------
    ValueError
        If the topics are not two matrices of the same shape, with finite nonnegative numbers, or
        `doc_topic_prior` is not one number, or one for each topic.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.topics import align_topics
    >>> align_topics(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([1, 0])
    """
    topics, reference = _matrices(topics, reference)
    affinity = np.sqrt(reference) @ np.sqrt(topics).T
    if np.shape(doc_topic_prior) not in ((), (len(affinity),)):
        raise ValueError(
            f"doc_topic_prior must be a number or {len(affinity)} of them, got {doc_topic_prior!r}."
        )
    alpha = np.broadcast_to(doc_topic_prior, len(affinity))
    affinity[alpha[:, None] != alpha] = FORBIDDEN
    return linear_sum_assignment(affinity, maximize=True)[1]


def topic_distances(topics, reference):
    """Total variation between each topic and the reference topic of the same number.

    Parameters
    ----------
    topics, reference : array of shape (n_topics, n_words)
        Topic-word probabilities: rows that add up to 1. Align them first.

    Returns
    -------
    ndarray of shape (n_topics,)
        From 0 to 1.

    Raises
    ------
    ValueError
        If the topics are not two matrices of the same shape, with finite nonnegative numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.topics import topic_distances
    >>> topic_distances(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.75, 0.25], [1.0, 0.0]]))
    array([0.25, 1.  ])
    """
    topics, reference = _matrices(topics, reference)
    return 0.5 * np.abs(topics - reference).sum(axis=1)


def _matrices(topics, reference):
    """Return topics and their reference as arrays, or raise `ValueError`."""
    topics, reference = np.asarray(topics), np.asarray(reference)
    if topics.ndim != 2 or topics.shape != reference.shape:
        raise ValueError(
            "topics and reference must have the same shape (n_topics, n_words), got "
            f"{topics.shape} and {reference.shape}."
        )
    for name, phi in (("topics", topics), ("reference", reference)):
        if not (np.isfinite(phi) & (phi >= 0.0)).all():
            raise ValueError(f"{name} must be finite and nonnegative.")
    return topics, reference


def alignment(means, first, alpha=0.1):
    """Return orders (n_chains, n_draws, K) that align the topics of all draws, and the reference.

    Topics keep their number if there is no other with the same parameter `alpha`.

    The first reference is the mean of the draws of chain `first`, each aligned to its last draw.
    After that it is the mean of all aligned draws.
    """
    C, S, K, _ = means.shape
    orders = np.tile(np.arange(K), (C, S, 1))
    reference = _mean_aligned(means[first], means[first, -1], alpha)
    for _ in range(ROUNDS):
        before = orders.copy()
        for c in range(C):
            for s in range(S):
                orders[c, s] = align_topics(means[c, s], reference, alpha)
        reference = np.mean([means[c, s][orders[c, s]] for c in range(C) for s in range(S)], axis=0)
        if np.array_equal(orders, before):
            break
    return orders, reference


def _mean_aligned(draws, reference, alpha):
    return np.mean([phi[align_topics(phi, reference, alpha)] for phi in draws], axis=0)
